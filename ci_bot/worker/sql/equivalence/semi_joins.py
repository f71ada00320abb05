"""Conditions of a semi join that are not about what it joins: a filter asks them as well.

`o LEFT SEMI JOIN c ON c.id = o.cust AND o.amt > 1` keeps a row if it meets `o.amt > 1` and has a
match, and so does the semi join with `WHERE o.amt > 1`. An anti join keeps the other rows, so its
conditions stay.
"""

from __future__ import annotations

from ci_bot.worker.sql.equivalence.blocks import (
    NestedQuery,
    QuerySource,
    SourceColumn,
    SourcePart,
    Term,
    TermOperation,
    UnknownName,
    split_conjuncts,
    walk_term,
)
from ci_bot.worker.sql.equivalence.guarded_conditions import can_term_fail

_DEPENDENT_ROWS = frozenset({"left", "semi", "anti"})
_CONSTANTS = ("boolean:", "number:", "string:", "null(")
# A condition is computed for other rows after its move, so its value may depend on nothing else.
_COMPARED = frozenset({"and", "or", "not", "is", "eq", "neq", "lt", "gte", "same", "in", "list"})


def move_conditions_of_semi_joins(part: SourcePart) -> None:
    """Moves conditions of semi joins that do not read what they join to WHERE.

    If any condition can end the query, all stay: one that comes later may have kept it from that.
    """
    if any(hung.how not in _DEPENDENT_ROWS for hung in part.hung):
        return
    if any(map(can_term_fail, [*part.where, *(term for hung in part.hung for term in hung.on)])):
        return
    for hung in [one for one in part.hung if one.how == "semi"]:
        asked = [item for term in hung.on for item in split_conjuncts(term)]
        moved = [term for term in asked if _is_of_other_sources(term, hung.source)]
        own = {id(term) for term in moved}
        hung.on = [term for term in asked if id(term) not in own]
        part.where += moved


def _is_of_other_sources(condition: Term, joined: QuerySource) -> bool:
    """Whether a condition compares columns, none of them of the source that is joined."""
    asked = list(walk_term(condition))
    columns = [one for one in asked if isinstance(one, SourceColumn)]
    operations = [one for one in asked if isinstance(one, TermOperation)]
    return (
        bool(columns)
        and all(one.source is not joined for one in columns)
        and not any(isinstance(one, NestedQuery | UnknownName) for one in asked)
        and all(map(_compares_or_is_constant, operations))
    )


def _compares_or_is_constant(operation: TermOperation) -> bool:
    name = operation.op.partition("(")[0]
    return name in _COMPARED or operation.op.startswith(_CONSTANTS)
