"""Conditions that lose rows without a value, if the project shows that there are such rows."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import find_end_of_range
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedSelect,
    enter_expression,
    find_missing_value_reason,
    split_conditions,
)

_BOOLEAN = exp.DataType.Type.BOOLEAN
# Words of columns that end a validity.
_ENDS = frozenset({
    "to", "until", "till", "thru", "through", "end", "ends", "ended", "expiry", "expires",
})  # fmt: skip
_LATER_TESTS = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def iterate_null_slips(
    query: ModelQuery, project: ProjectView, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields conditions and counts that treat a missing value as another one."""
    for select in query.root.selects:
        for part in select.list_clause_conditions("where"):
            yield from _iterate_denied_flags(select, part.unnest(), project, types)
        for join in select.joins:
            parts = [part.unnest() for part in join.conditions]
            yield from _iterate_open_ends(select, parts, project)
        for node in select.find_all(exp.Count):
            yield from _iterate_counted_flags(select, node, types)
            yield from _iterate_counted_gaps(select, node, project)
        for node in select.find_all(exp.Window):
            yield from _iterate_strangers_in_windows(select, node, project)
        for node in select.find_all(exp.Case):
            yield from _iterate_labels_of_missing_values(select, node, project)


def _iterate_denied_flags(
    select: ScopedSelect, part: exp.Expr, project: ProjectView, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields `NOT flag` in WHERE of a flag that is NULL in rows which are meant, too."""
    column = part.this.unnest() if isinstance(part, exp.Not) else None
    if not isinstance(column, exp.Column):
        return
    kind = types.find_type(select, column)
    reason = find_missing_value_reason(select, column, project)
    if kind is not None and kind.this == _BOOLEAN and reason:
        yield QuerySlip(
            part,
            f"drops each row in which `{column.name}` is NULL: {reason}",
            "the condition is NOT COALESCE(..., FALSE), or IS NOT TRUE",
        )


def _iterate_open_ends(
    select: ScopedSelect, parts: list[exp.Expr], project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields ranges of a join whose end is NULL in the rows that are valid now."""
    for part in parts:
        end = find_end_of_range(part)
        if not isinstance(end, exp.Column) or not _has_start(parts, end, part):
            continue
        if _ENDS.isdisjoint(split_column_name_into_words(end.name)):
            continue
        reason = find_missing_value_reason(select, end, project)
        if reason:
            yield QuerySlip(
                part,
                f"is never true in a row without `{end.name}`: {reason}",
                "COALESCE is around the end of the range, or IS NULL beside it",
            )


def _has_start(parts: list[exp.Expr], end: exp.Column, own: exp.Expr) -> bool:
    """Whether the join also compares with a beginning of the same table: it is a range."""
    if isinstance(own, exp.Between):
        _, start, _ = own.iter_expressions()
        return isinstance(start, exp.Column)
    return any(
        isinstance(side, exp.Column) and side.table == end.table and side.name != end.name
        for part in parts
        if part is not own and isinstance(part, _LATER_TESTS)
        for side in (part.this, part.expression)
    )


def _iterate_counted_flags(
    select: ScopedSelect, node: exp.Expr, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields COUNT of a flag, which counts FALSE as well."""
    column = node.this
    if not isinstance(column, exp.Column) or node.expressions:
        return
    kind = types.find_type(select, column)
    if kind is None or kind.this != _BOOLEAN:
        return
    # A share of the known ones: COUNT_IF(flag) / COUNT(flag).
    others = [one for one in select.find_all(exp.Column) if one == column]
    if any(one.find_ancestor(exp.Count, exp.Select) is select.node for one in others):
        return
    yield QuerySlip(
        node,
        "counts FALSE as well: COUNT leaves out only NULL",
        "COUNT_IF is used",
    )


def _iterate_counted_gaps(
    select: ScopedSelect, node: exp.Expr, project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields COUNT(DISTINCT a, b), which leaves out each row without one of them."""
    counted = node.this.expressions if isinstance(node.this, exp.Distinct) else []
    if len(counted) == 1:
        return
    for column in counted:
        reason = _find_reason_of_rows(select, column, project)
        if reason:
            yield QuerySlip(
                node,
                f"leaves out each row in which `{column.name}` is NULL: {reason}",
                f"COALESCE is around `{column.name}`, or the other columns are enough",
            )
            return


def _iterate_strangers_in_windows(
    select: ScopedSelect, node: exp.Expr, project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields LAG and LEAD among the rows of one thing, if rows of nothing are together, too."""
    function = enter_expression(node.this, exp.IgnoreNulls, exp.RespectNulls)
    parts = node.args.get("partition_by") or []
    if not isinstance(function, exp.Lag | exp.Lead) or len(parts) != 1:
        return
    # A condition around the value may leave these rows out.
    if node.find_ancestor(exp.Case, exp.If, exp.Select) is not select.node:
        return
    reason = _find_reason_of_rows(select, parts[0], project)
    if reason:
        yield QuerySlip(
            node,
            f"puts all rows in which `{parts[0].name}` is NULL together: {reason}. So each of "
            "them is compared with a row of something else",
            "WHERE leaves these rows out, or their value is NULL",
        )


def _find_reason_of_rows(select: ScopedSelect, node: exp.Expr, project: ProjectView) -> str:
    """Finds why a column is NULL in rows that WHERE does not speak of; empty without a reason."""
    if not isinstance(node, exp.Column):
        return ""
    conditions = select.list_clause_conditions("where")
    asked = (one for part in conditions for one in part.find_all(exp.Column))
    if any((one.table, one.name) == (node.table, node.name) for one in asked):
        return ""
    return find_missing_value_reason(select, node, project)


def _iterate_labels_of_missing_values(
    select: ScopedSelect, node: exp.Expr, project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields a CASE of two labels whose ELSE takes the rows in which a date is missing."""
    branches = list(node.args.get("ifs") or ())
    default = node.args.get("default")
    if node.this is not None or len(branches) != 1 or not _is_label(default):
        return
    parts = [part.unnest() for part in split_conditions(branches[0].this)]
    test = parts[0] if len(parts) == 1 else None
    if not isinstance(test, _LATER_TESTS) or not _is_label(branches[0].args.get("true")):
        return
    sides = [test.this.unnest(), test.expression.unnest()]
    # A comparison with today is about what is open, too: a missing end is in the future.
    if not all(isinstance(side, exp.Column) for side in sides):
        return
    for side in sides:
        reason = _find_reason_of_rows(select, side, project)
        if reason:
            yield QuerySlip(
                node,
                f"gives {default.sql() if default is not None else ''} to each row without "
                f"`{side.name}`: {reason}",
                f"a branch before it takes `{side.name}` IS NULL",
            )
            return


def _is_label(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)
