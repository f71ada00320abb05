"""Totals of groups of which each has a row: forms that are one only if no group is empty."""

from __future__ import annotations

from ci_bot.worker.sql.equivalence.block_rewrites import replace_terms
from ci_bot.worker.sql.equivalence.blocks import (
    QueryBlock,
    QuerySource,
    SourceColumn,
    Term,
    TermOperation,
)

_ANY_OF_GROUP = ("max(this)", "min(this)", "anyvalue(this)")
_ONE, _NONE = "number:1", "number:0"


def settle_group_totals(block: QueryBlock) -> None:
    """Writes totals of a block with keys, which has no group without a row, in one way.

    A sum of 1 where a condition holds and of 0 elsewhere counts it; without a row it is NULL, and
    the count is 0. The greatest and the least of a key is the key.
    """
    group = block.group
    if group is None or not group.keys or group.sets:
        return
    keys = {
        (one.source, one.name) for one in group.keys if isinstance(one, SourceColumn) and one.kind
    }

    def replace_total(term: Term) -> Term | None:
        if not isinstance(term, TermOperation) or not (term.aggregated or term.windowed):
            return term
        return _settle_total(term, keys) if term.aggregate else None

    replace_terms(block, replace_total)


def _settle_total(total: TermOperation, keys: set[tuple[QuerySource, str]]) -> Term:
    summed = total.parts[0] if len(total.parts) == 1 else None
    if isinstance(summed, SourceColumn):
        is_key = total.op in _ANY_OF_GROUP and (summed.source, summed.name) in keys
        return summed if is_key else total
    if total.op != "sum(this)" or not isinstance(summed, TermOperation):
        return total
    if summed.op == _ONE:
        return TermOperation("count(*)", aggregate=True)
    given = [one.op if isinstance(one, TermOperation) else "" for one in summed.parts[1:]]
    if summed.op == "case" and given == [_ONE, _NONE]:
        return TermOperation("count_if(this)", summed.parts[:1], aggregate=True)
    return total
