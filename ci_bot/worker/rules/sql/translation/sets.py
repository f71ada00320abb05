"""UNION, INTERSECT and EXCEPT as one source."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from ci_bot.worker.compat.parsing.trees import WITH
from ci_bot.worker.rules.sql.algebra.blocks import Block, Part, SetKind, SetOperation
from ci_bot.worker.rules.sql.algebra.terms import SourceColumn

_KINDS: dict[type, SetKind] = {
    exp.Union: "union",
    exp.Intersect: "intersect",
    exp.Except: "except",
}
_CLAUSES = frozenset({"this", "expression", "distinct", WITH, "order", "limit", "offset"})
_TWO = 2


def kind_of(node: Any) -> SetKind | None:
    """Which set operation it is; None for one with clauses that change what it does."""
    told = any(value for name, value in node.args.items() if name not in _CLAUSES)
    return None if told else _KINDS.get(type(node))


def combined(
    node: Any, kind: SetKind, branches: list[Block], used: frozenset[str] | None
) -> tuple[SetOperation, list[str]] | None:
    """The set operation of `branches`, and the names of its columns by place.

    None where the branches cannot be matched: a star, or another number of columns.
    """
    distinct = bool(node.args.get("distinct"))
    names = list(branches[0].outputs)
    if any(b.has_star or len(b.outputs) != len(names) for b in branches):
        return None
    loose = _has_one_type_for_each_column(node)
    if kind == "union" and loose:
        branches = [leaf for branch in branches for leaf in _leaves(branch, distinct=distinct)]
    places = range(len(names))
    if kind == "union" and not distinct and used is not None:
        # Rows are kept as they are, so a column that nobody reads is of no account.
        places = [place for place, name in enumerate(names) if name in used]  # type: ignore[assignment]
    for branch in branches:
        terms = list(branch.outputs.values())
        branch.outputs = {str(new): terms[old] for new, old in enumerate(places)}
    names = [names[place] for place in places]
    source = SetOperation(kind, distinct, branches, names, loose=loose or len(branches) == _TWO)
    return source, names


def wrapped(source: SetOperation, names: list[str]) -> Block:
    """A SELECT of everything that a set operation gives."""
    outputs = {name: SourceColumn(source, str(place)) for place, name in enumerate(names)}
    return Block(part=Part([source]), outputs=dict(outputs))


def _leaves(block: Block, *, distinct: bool) -> list[Block]:
    """The branches of a nested UNION that may stand in the one around it."""
    source = block.part.inner[0] if block.part.inner else None
    if (
        not isinstance(source, SetOperation)
        or source.kind != "union"
        or (source.distinct and not distinct)
        or not block.is_simple
        or len(block.part.inner) > 1
        or block.part.hung
        or block.part.where
    ):
        return [block]
    places: list[str] = []
    for term in block.outputs.values():
        if not isinstance(term, SourceColumn) or term.source is not source:
            return [block]
        places.append(term.name)
    if source.distinct and set(places) != {str(n) for n in range(len(source.names))}:
        return [block]
    for branch in source.branches:
        branch.outputs = {str(new): branch.outputs[old] for new, old in enumerate(places)}
    return source.branches


def _has_one_type_for_each_column(node: Any) -> bool:
    """Whether no branch's values are converted: the result of three types hangs on their order."""
    rows = [[item.type for item in select.expressions] for select in _selects(node)]
    if len({len(row) for row in rows}) != 1:
        return False
    return all(
        first is not None and not first.is_type(exp.DataType.Type.UNKNOWN) and set(kinds) == {first}
        for first, *kinds in zip(*rows, strict=True)
    )


def _selects(node: Any) -> list[Any]:
    query = node.unnest() if isinstance(node, exp.Subquery) else node
    if isinstance(query, exp.SetOperation):
        return [*_selects(query.this), *_selects(query.expression)]
    return [query] if isinstance(query, exp.Select) else []
