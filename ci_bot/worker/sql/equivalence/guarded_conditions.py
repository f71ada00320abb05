"""Conditions that another condition keeps from failing.

In ANSI mode a query ends at a division by zero, at a text that is no number, and at a place that an
array does not have. Spark evaluates conditions from left to right, and first those of a query that
is read. So `b <> 0` has an effect before `a / b > 1` that it does not have after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_bot.worker.sql.equivalence.blocks import SourceColumn, Term, TermOperation, walk_term
from ci_bot.worker.sql.equivalence.known_types import find_known_type

_DIVISIONS = ("div(", "intdiv(", "mod(")
# The parser calls CAST a TRY_CAST, and TRY_CAST a safe one.
_CASTS = ("cast(", "trycast(")


def iterate_guarded(conditions: Sequence[Term]) -> Iterator[tuple[Term, list[Term]]]:
    """Yields conditions that can fail, each with those before it that may keep it from failing."""
    for place, condition in enumerate(conditions):
        read = {column for part in walk_term(condition) for column in _list_where_it_fails(part)}
        guards = [
            one
            for one in conditions[:place]
            if not _tests_null(one) and read & set(_list_columns(one))
        ]
        if guards:
            yield condition, guards


def _list_where_it_fails(term: Term) -> list[tuple[object, str]]:
    """Lists the columns whose values can make an operation fail."""
    if not isinstance(term, TermOperation) or not term.parts:
        return []
    if term.op.startswith(_DIVISIONS):
        return _list_columns(term.parts[1])
    if term.op.startswith(_CASTS) and "safe" not in term.op:
        reads_text = find_known_type(term.parts[0]) in {"STRING", ""}
        is_read = reads_text and find_known_type(term) != "STRING"
        return _list_columns(term.parts[0]) if is_read else []
    key = term.parts[1] if term.op.startswith("bracket(") else None
    if isinstance(key, TermOperation) and not key.op.startswith("string:"):
        return _list_columns(term)
    return []


def _list_columns(term: Term) -> list[tuple[object, str]]:
    return [(one.source, one.name) for one in walk_term(term) if isinstance(one, SourceColumn)]


def _tests_null(term: Term) -> bool:
    """Whether a condition only asks whether something is NULL, which cannot fail."""
    tested = term.parts[0] if isinstance(term, TermOperation) and term.op == "not" else term
    return isinstance(tested, TermOperation) and tested.op.startswith("is(")
