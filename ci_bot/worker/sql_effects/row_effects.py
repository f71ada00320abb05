"""Whether a statement can change rows or values: of a table, or of a query that runs after it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.worker.runtime import silence_log
from ci_bot.worker.sql_effects.effects import SqlEffect
from ci_bot.worker.sql_effects.read_statement import list_statement_effects

_THIS_MODEL = re.compile(
    r"@\{this_model\}|@this_model(?!\w)|\{\{\s*this_model\s*\}\}", re.IGNORECASE
)
_JINJA_BLOCK = re.compile(
    r"^\s*JINJA_STATEMENT_BEGIN;(.*)JINJA_END;?\s*$", re.DOTALL | re.IGNORECASE
)
_SETS_VARIABLE = re.compile(r"^\s*SET\s+VAR(?:IABLE)?\b", re.IGNORECASE)
_PLACEHOLDER = "__this_model"
_QUERIES = ("SELECT", "UNION", "INTERSECT", "EXCEPT", "SUBQUERY", "VALUES")
# They only read, or change where data is kept. Views, functions and variables of the session do not
# belong here: a later query may read them.
_READ_ONLY = frozenset(
    {*_QUERIES, *("SHOW", "DESCRIBE", "REFRESH", "CACHE", "UNCACHE", "SEMICOLON", "SET", "nothing")}
)
# Spark lists the partitions of a table again, so rows may come or go.
_FINDS_ROWS = ("MSCK", "RECOVER")
# It removes files that no current version of the table reads.
_KEEPS_ROWS = frozenset({"VACUUM"})


def statements_change_rows(before: Sequence[str], after: Sequence[str], dialect: str) -> bool:
    """Whether the difference of two lists of statements can change rows or values."""
    old, new = Counter(before), Counter(after)
    differing = [*(old - new), *(new - old)]
    if differing or list(before) == list(after):
        return any(can_change_rows(text, dialect) for text in differing)
    # The same statements in another order: each may depend on one before it.
    return any(can_change_rows(text, dialect) for text in after)


def can_change_rows(text: str, dialect: str) -> bool:
    """Whether a statement, as its file has it, can change rows or values.

    A statement that cannot be read may. Statistics, comments, properties, rights and caches cannot.
    """
    text = _THIS_MODEL.sub(_PLACEHOLDER, _JINJA_BLOCK.sub(r"\1", text))
    if _SETS_VARIABLE.match(text):
        return True
    return any(
        not _keeps_rows(effect)
        for part in _split_condition(text, dialect)
        for effect in list_statement_effects(part, dialect)
    )


def _split_condition(text: str, dialect: str) -> Iterable[str]:
    """The statements that SQLMesh's `@IF` chooses from; for any other text, the text itself."""
    if "@" not in text:
        return [text]
    with silence_log("sqlglot"):
        try:
            trees = d.parse(text, default_dialect=dialect)
        except Exception:  # the text that cannot be parsed is judged whole, as unknown
            return [text]
    function = trees[0].this if len(trees) == 1 and isinstance(trees[0], d.MacroFunc) else None
    if not isinstance(function, exp.Anonymous) or function.name.upper() != "IF":
        return [text]
    return [branch.sql(dialect=dialect) for branch in function.expressions[1:]]


def _keeps_rows(effect: SqlEffect) -> bool:
    if effect.kind in _KEEPS_ROWS:
        return True
    if effect.action in ("describes", "grants"):
        return not any(word in effect.kind for word in _FINDS_ROWS)
    return effect.action == "nothing" and effect.target is None and effect.kind in _READ_ONLY
