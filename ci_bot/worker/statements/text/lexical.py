"""What a statement's text can hide from a parser that is not Spark's own."""

from __future__ import annotations

import re
from typing import Any

# Spark puts a variable's value into the text before it reads it, inside literals and comments too:
# org.apache.spark.internal.config.ConfigReader.
_VARIABLE = re.compile(r"\$\{(?:\w+?:)?\S+?\}")
SPARK = frozenset({"spark", "spark2", "databricks", "hive"})


def hidden(text: str, tokens: list[Any], dialect: str) -> str | None:
    """Why `text` may mean something else to the engine than to us; None where it cannot."""
    if dialect in SPARK and _VARIABLE.search(text):
        return "Spark replaces a variable, ${...}, in its text before it reads it"
    for token in tokens:
        if any("/*" in comment or "*/" in comment for comment in token.comments):
            return "a comment inside a comment, which engines read differently"
    return None
