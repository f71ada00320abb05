"""Terms that can fail, and conditions that keep others from failing.

In ANSI mode a query ends at a division by zero, at a text that is no number, and at a place that an
array does not have. Spark evaluates conditions from left to right, and first those of a query that
is read. So `b <> 0` has an effect before `a / b > 1` that it does not have after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_bot.worker.sql.equivalence.blocks import (
    NestedQuery,
    SourceColumn,
    Term,
    TermOperation,
    walk_term,
)
from ci_bot.worker.sql.equivalence.known_types import find_known_type

_COMPARISONS = frozenset({"eq", "neq", "lt", "gte", "same", "in"})
_ALWAYS_DEFINED = frozenset(
    {"and", "or", "not", "is", "case", "coalesce", "upper", "lower", "trim", "like"}
    | {"count", "count_if", "max", "min", "sum", "concatenated"}
    | {"list", "ordered", "sort", "cluster", "distribute"}
)
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def iterate_guarded(conditions: Sequence[Term]) -> Iterator[tuple[Term, list[Term]]]:
    """Yields conditions that can fail, each with those before it that may keep it from failing."""
    for place, condition in enumerate(conditions):
        if can_term_fail(condition) and place:
            yield condition, list(conditions[:place])


def can_term_fail(term: Term) -> bool:
    """Whether a value of a column may make a term end the query.

    Only operations that are known to have a result for each value count as safe: of the others,
    many read a text as a number or a date, or go past the end of a type.
    """
    if isinstance(term, NestedQuery):
        return True
    if isinstance(term, SourceColumn) or not _depends_on_rows(term):
        return False
    name = term.op.partition("(")[0].partition(" ")[0]
    if name in _COMPARISONS:
        kinds = {_name_class_of_type(part) for part in _list_compared(term)}
        # A column of unknown type may be a text, but joins compare columns of one type.
        if len(kinds) > 1 and kinds != {"", "STRING"}:
            return True
    elif name not in _ALWAYS_DEFINED:
        return True
    return any(map(can_term_fail, term.parts))


def _depends_on_rows(term: Term) -> bool:
    return any(isinstance(part, SourceColumn | NestedQuery) for part in walk_term(term))


def _list_compared(term: TermOperation) -> Iterator[Term]:
    for part in term.parts:
        if isinstance(part, TermOperation) and part.op == "list":
            yield from part.parts
        else:
            yield part


def _name_class_of_type(term: Term) -> str:
    """Returns the type of a term; numbers are compared with each other without a failure."""
    if isinstance(term, TermOperation) and term.op.startswith("number:"):
        return "number"
    kind = find_known_type(term)
    return "number" if kind.startswith(_NUMBERS) else kind
