"""The parser of a trial: functions keep their names, operators bind as in Spark's grammar.

The time of the run is the same for both sides.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from ci_bot.worker.duckdb_trials.value_types import UntriedError
from ci_bot.worker.sql import read_as_spark

# The time of the run for both sides.
NOW = "2024-03-31 10:20:30"
LARGEST_TEXT = 200_000
_CLOCK_CALLS = {"current_timestamp", "now", "current_date", "curdate"}
_KEPT_PARSERS = ("CAST", "TRY_CAST", "EXTRACT")


@cache
def _make_plain_duckdb_parser() -> Any:
    """Makes Spark's parser that keeps each function under the name that Spark reads.

    ARRAY keeps its class, because SQLGlot takes its bare name before an index for the start of a
    list. For other functions SQLGlot has its own classes, which differ by version, and arguments in
    another order.
    """
    own = Spark.Parser
    kept = {name: own.FUNCTION_PARSERS[name] for name in _KEPT_PARSERS}

    class PlainParser(own):  # type: ignore[misc, valid-type]
        # SQLGlot declares them so: the values are builders of several forms.
        FUNCTIONS: ClassVar[dict[str, Any]] = {"ARRAY": own.FUNCTIONS["ARRAY"]}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = kept

    return PlainParser


def parse_duckdb_plainly(text: str) -> exp.Expr:
    """Returns the tree that Spark makes of a query's text.

    Raises:
        UntriedError: The text is too long, cannot be parsed, or Spark may read it differently.
    """
    if len(text) > LARGEST_TEXT:
        raise UntriedError(f"a text of {len(text):,} characters")
    dialect = Spark()
    try:
        (tree,) = _make_plain_duckdb_parser()(dialect=dialect).parse(dialect.tokenize(text), text)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise UntriedError("a text that cannot be read again") from error
    reading = read_as_spark(tree)
    if reading.gaps:
        raise UntriedError(reading.gaps[0])
    return _freeze_duckdb_time(reading.tree)


def _freeze_duckdb_time(tree: exp.Expr) -> exp.Expr:
    """Replaces the clock by one moment, so both sides of a pair run at the same time."""
    for node in list(tree.find_all(exp.Anonymous, exp.CurrentDate, exp.CurrentTimestamp)):
        name = (str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if name in _CLOCK_CALLS and not node.expressions:
            is_date = name in {"current_date", "curdate"}
            text = NOW[:10] if is_date else NOW
            node.replace(exp.cast(exp.Literal.string(text), "date" if is_date else "timestamp"))
    return tree
