"""Subqueries that are one value: a total of what belongs to a row is a join with groups.

Spark's optimizer does the same (`RewriteCorrelatedScalarSubquery`).
"""

from __future__ import annotations

from dataclasses import replace

from ci_bot.worker.sql.equivalence.block_rewrites import replace_terms
from ci_bot.worker.sql.equivalence.blocks import (
    DependentSource,
    DerivedTable,
    GroupClause,
    NestedQuery,
    OuterJoin,
    QueryBlock,
    QuerySource,
    SourceColumn,
    SourcePart,
    Term,
    TermOperation,
    make_comparison,
    walk_term,
)
from ci_bot.worker.sql.equivalence.known_types import find_known_type

# Totals that are NULL of no rows, as a join has it. A count is 0, but for a correlated one Spark
# 3.5 gives NULL if its table is known to be empty.
_NULL_OF_NOTHING = ("sum(this)", "max(this)", "min(this)", "avg(this)")


def join_scalar_queries(block: QueryBlock) -> None:
    """Reads totals in subqueries of a block's results and conditions as joins."""
    if block.group is not None or block.generators:
        return
    joined: dict[TermOperation, Term] = {}  # two clauses can have one term

    def replace_scalar_query(term: Term) -> Term | None:
        if not isinstance(term, TermOperation) or term.op != "value of":
            return None
        if term not in joined:
            joined[term] = _join_total(block.part, term)
        return joined[term]

    replace_terms(block, replace_scalar_query)


def _join_total(part: SourcePart, value: TermOperation) -> Term:
    """The column of a joined query that a subquery is; `value` itself if it stays one."""
    nested = value.parts[0]
    if not isinstance(nested, NestedQuery) or not _is_one_total(nested.block):
        return value
    inside = nested.block
    own = set(inside.part.iterate_sources())
    kept: list[Term] = []
    equal: list[tuple[SourceColumn, Term]] = []
    for condition in inside.part.where:
        if _sees_only(condition, own):
            kept.append(condition)
            continue
        found = _split_equal(condition, own)
        if found is None:
            return value
        equal.append(found)
    (total,) = inside.outputs.values()
    others = [term for hung in inside.part.hung for term in hung.on]
    if not all(_sees_only(term, own) for term in (total, *others)):
        return value
    keys = {f"key {place}": column for place, (column, _) in enumerate(equal)}
    joined = DerivedTable(
        replace(
            inside,
            part=replace(inside.part, where=kept),
            group=GroupClause(keys=list(keys.values()), is_written=bool(keys)),
            outputs={"total": total, **keys},
        )
    )
    on: list[Term] = [
        make_comparison("eq", SourceColumn(joined, name), outer)
        for name, (_, outer) in zip(keys, equal, strict=True)
    ]
    column = SourceColumn(joined, "total")
    if not equal:  # always one row
        part.inner.append(joined)
        return column
    part.hung.append(DependentSource(joined, "left", on))
    return column


def _is_one_total(block: QueryBlock) -> bool:
    """Whether a query gives one total of all that its one condition lets through."""
    group = block.group
    more = (block.having, block.qualify, block.generators, block.limits, block.layout)
    if group is None or group.keys or group.sets or any(more) or block.distinct is not None:
        return False
    if len(block.outputs) != 1 or any(isinstance(one, OuterJoin) for one in block.part.inner):
        return False
    (total,) = block.outputs.values()
    return isinstance(total, TermOperation) and total.op in _NULL_OF_NOTHING


def _sees_only(term: Term, sources: set[QuerySource]) -> bool:
    return all(
        one.source in sources if isinstance(one, SourceColumn) else not isinstance(one, NestedQuery)
        for one in walk_term(term)
    )


def _split_equal(condition: Term, own: set[QuerySource]) -> tuple[SourceColumn, Term] | None:
    """An equality of an own column with what is outside; both have one type."""
    if not isinstance(condition, TermOperation) or condition.op != "eq":
        return None
    for inner, outer in (condition.parts, condition.parts[::-1]):
        is_own = isinstance(inner, SourceColumn) and inner.source in own
        kind = find_known_type(inner)
        if not isinstance(inner, SourceColumn) or not is_own or kind != find_known_type(outer):
            continue
        seen = [one for one in walk_term(outer) if not isinstance(one, TermOperation)]
        if kind and all(isinstance(one, SourceColumn) and one.source not in own for one in seen):
            return inner, outer
    return None
