"""The types of values as Spark has them, for terms whose type is sure.

SQLGlot's types are not enough: `1.50`, a mean of decimals and a double have the same type there,
and CEIL is an int.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ci_bot.worker.sql.equivalence.blocks import (
    DerivedTable,
    NestedQuery,
    SetOperation,
    SourceColumn,
    Term,
    TermOperation,
)

_MOST_OF_INT = 2**31 - 1
_WHOLE = ("INT", "BIGINT")
_TRUTHS = frozenset({"eq", "neq", "lt", "gte", "and", "or", "not", "same", "in", "exists"})
_TEXTS = frozenset({"string", "concatenated", "upper", "lower", "trim"})


def find_known_type(term: Term) -> str:
    """Returns Spark's name of the type of a term's values; empty if it is not sure."""
    if isinstance(term, SourceColumn):
        return _find_type_of_column(term)
    if isinstance(term, NestedQuery):
        return ""
    name = term.op.partition(":")[0].partition("(")[0]
    if name in _TRUTHS or name == "boolean":
        return "BOOLEAN"
    if name in _TEXTS:
        return "STRING"
    find = _BY_NAME.get(name)
    return find(term) if find is not None else ""


def name_certain_type(text: str) -> str:
    """Returns the type of a stored column or a cast, if a union of it with itself keeps each value.

    Otherwise it is empty.
    """
    return "" if not text or "CHAR" in text or text == "UNKNOWN" else text


def _find_type_of_column(column: SourceColumn) -> str:
    source = column.source
    if isinstance(source, DerivedTable):
        term = source.block.find_output(column.name)
        return find_known_type(term) if term is not None else ""
    if isinstance(source, SetOperation):
        place = int(column.name)
        return _find_common_type(list(one.outputs.values())[place] for one in source.branches)
    return column.stored_type


def _find_common_type(terms: Iterable[Term]) -> str:
    kinds = {find_known_type(term) for term in terms}
    return kinds.pop() if len(kinds) == 1 else ""


def _find_type_of_number(term: TermOperation) -> str:
    digits = term.op.partition(":")[2]
    return "INT" if digits.isdigit() and int(digits) <= _MOST_OF_INT else ""


def _find_type_of_cast(term: TermOperation) -> str:
    named = [
        part.op.partition(":")[2]
        for part in term.parts
        if isinstance(part, TermOperation) and part.op.startswith("type:")
    ]
    return name_certain_type(named[0]) if len(named) == 1 else ""


def _find_type_of_sum(term: TermOperation) -> str:
    kind = _find_common_type(term.parts)
    return "BIGINT" if kind in _WHOLE else kind if kind == "DOUBLE" else ""


def _find_type_of_choice(term: TermOperation) -> str:
    # Conditions and results alternate, and the last part may be the result of ELSE.
    results = [*term.parts[1::2], *(term.parts[-1:] if len(term.parts) % 2 else ())]
    return _find_common_type(results)


def _find_type_of_parts(term: TermOperation) -> str:
    return _find_common_type(term.parts)


_BY_NAME: Mapping[str, Callable[[TermOperation], str]] = {
    "number": _find_type_of_number,
    "cast": _find_type_of_cast,
    "trycast": _find_type_of_cast,
    "count": lambda _: "BIGINT",
    "count_if": lambda _: "BIGINT",
    "sum": _find_type_of_sum,
    "max": _find_type_of_parts,
    "min": _find_type_of_parts,
    "coalesce": _find_type_of_parts,
    "case": _find_type_of_choice,
}
