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
# SUM is among them although a total can pass the end of its type: an order by a total is common.
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
    if not isinstance(term, TermOperation):
        return isinstance(term, NestedQuery)
    name = term.op.partition("(")[0].partition(" ")[0]
    is_safe = _compares_one_type(term) if name in _COMPARISONS else name in _ALWAYS_DEFINED
    return any(map(can_term_fail, term.parts)) if is_safe else _depends_on_rows(term)


def _depends_on_rows(term: Term) -> bool:
    return any(isinstance(part, SourceColumn | NestedQuery) for part in walk_term(term))


def _compares_one_type(term: TermOperation) -> bool:
    kinds = set[str]()
    for part in term.parts:
        listed = part.parts if isinstance(part, TermOperation) and part.op == "list" else (part,)
        kinds.update(map(_name_class_of_type, listed))
    # A column of unknown type may be a text, but joins compare columns of one type.
    return len(kinds) == 1 or kinds == {"", "STRING"}


def _name_class_of_type(term: Term) -> str:
    """Returns the type of a term; numbers are compared with each other without a failure."""
    if isinstance(term, TermOperation) and term.op.startswith("number:"):
        return "number"
    kind = find_known_type(term)
    return "number" if kind.startswith(_NUMBERS) else kind
