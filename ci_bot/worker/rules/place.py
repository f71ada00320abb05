"""Finding the line that a reader should look at.

SQLMesh keeps the query of a model as text of its own, so the positions that the parser notes are
not those of the file. Words are looked up in the file instead: cheap, and right whatever cache the
model came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MODEL_BLOCK = re.compile(r"^\s*MODEL\s*\(", re.IGNORECASE | re.MULTILINE)


def line_of(text: str, anchors: Iterable[str], model_name: str | None = None) -> int | None:
    """The 1-based line of the first anchor that occurs in `text` as a word.

    Comment lines are passed over. Without a hit it is the line that names the model, or the MODEL
    block's.
    """
    lines = text.splitlines()
    for anchor in anchors:
        pattern = _word(anchor)
        for number, line in enumerate(lines, start=1):
            if not line.lstrip().startswith(("--", "#")) and pattern.search(line):
                return number
    if model_name:
        short = re.escape(model_name.replace('"', "").replace("`", ""))
        named = re.compile(rf"(?:name\s*:?\s+|@model\(\s*f?[\"']){short}\b", re.IGNORECASE)
        if found := named.search(text):
            return text.count("\n", 0, found.start()) + 1
    if found := _MODEL_BLOCK.search(text):
        return text.count("\n", 0, found.end()) + 1
    return 1 if lines else None


def _word(anchor: str) -> re.Pattern[str]:
    escaped = r"\s+".join(re.escape(part) for part in anchor.split())
    left = r"(?<![\w.])" if anchor[:1].isalnum() or anchor[:1] == "_" else ""
    right = r"(?!\w)" if anchor[-1:].isalnum() or anchor[-1:] == "_" else ""
    return re.compile(f"{left}{escaped}{right}", re.IGNORECASE)
