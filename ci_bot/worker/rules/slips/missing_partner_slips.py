"""Rows without a partner: joins that count them as one, EXPLODE that drops them, and amounts that
are NULL because one of them has no row.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from ci_bot.protocol.rules import quote_names
from ci_bot.worker.rules.models.declared_keys import (
    keeps_only_unmatched,
    list_column_aliases_and_names,
    list_fixed_columns,
    split_column_name_into_words,
)
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.fan_outs import list_source_keys
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import VALUE_WRAPPERS
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedJoin,
    ScopedQuery,
    ScopedSelect,
    SelectSource,
    enter_expression,
    list_filled_columns,
    table_name,
)

_BOTH_SIDES = 2
# A history has one current row for each key, and what is deleted counts as not there.
_CURRENT = frozenset({"valid", "to", "until", "deleted", "superseded", "effective"})
_EXPLODING = (exp.Explode, exp.Inline)
# Arrays that have an element if they are no NULL.
_FILLED_ARRAYS = (exp.ArrayAgg, exp.ArrayUniqueAgg, exp.RegexpSplit, exp.GenerateSeries, exp.Array)
# A count of rows that have an element is called so.
_ONLY_SOME = frozenset({"with", "having", "tagged", "in", "by", "per", "containing"})
# Without one of these there is no difference.
_COMPARED = frozenset({
    "prev", "previous", "prior", "last", "before", "ly", "py", "lag", "budget", "target", "plan",
    "planned", "forecast", "goal", "quota", "baseline", "base", "expected", "benchmark", "estimate",
    "reference", "old", "first", "avg", "average", "mean", "median", "limit",
})  # fmt: skip
# Two systems are compared: what only one of them has is another finding.
_DIFFERENCES = frozenset({
    "diff", "difference", "delta", "variance", "gap", "deviation", "change", "growth", "drift",
})  # fmt: skip
# What is taken from an amount, or comes to it, and is nothing if there is none.
_TAKEN = frozenset({
    "paid", "payment", "payments", "refund", "refunds", "refunded", "credit", "credited", "spent",
    "returned", "fee", "fees", "shipping", "discount", "discounts", "allocated", "reserved",
})  # fmt: skip
_GUARDS = (exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.AggFunc, exp.Predicate, exp.Window)
_STEPS = (exp.DateAdd, exp.DateSub, exp.AddMonths, exp.TsOrDsAdd, exp.Interval)


def iterate_missing_partner_slips(
    query: ModelQuery, project: ProjectView, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields counts and amounts that are wrong in rows without a partner or an element."""
    for select in query.root.selects:
        yield from _iterate_counts_of_nobody(select, project)
        yield from _iterate_lost_rows_of_arrays(select, origins)
        yield from _iterate_rows_without_open_partners(select, project)
    for select in query.root.branches:
        yield from _iterate_lost_amounts(select, origins, types)


# COUNT over a LEFT JOIN.


def _iterate_counts_of_nobody(select: ScopedSelect, project: ProjectView) -> Iterator[QuerySlip]:
    """Yields counts in which a row without a partner is one partner.

    If the key of the partner is known, `fan-out-total` finds it.
    """
    partners = _find_uncounted_partners(select, project)
    if select.start is None or not partners:
        return
    first = select.start.alias_or_name.lower()
    for name, item in select.results:
        count = enter_expression(item, exp.Paren, exp.Cast, exp.Coalesce)
        if not isinstance(count, exp.Count) or count.find(exp.Distinct):
            continue
        words = set(split_column_name_into_words(name))
        read = {alias for alias, _ in list_column_aliases_and_names(count)}
        is_plain = isinstance(count.this, exp.Star | exp.Literal | exp.Column)
        if is_plain and read <= {first} and words.isdisjoint({"row", "rows", "lines"}):
            shown = quote_names(project.name_of_source(select, alias) for alias in partners)
            yield QuerySlip(
                count,
                f"counts 1 if the LEFT JOIN finds nothing in {shown}: the row of the left side "
                "stays, and it is counted",
                f"COUNT names a column of {shown}, which is NULL there",
            )


def _find_uncounted_partners(select: ScopedSelect, project: ProjectView) -> list[str]:
    """Finds the partners of a LEFT JOIN in a query with a group for each row of the left side."""
    keys = [enter_expression(key, exp.Cast, exp.Paren) for key in select.list_group_keys()]
    if select.start is None or not select.joins or not keys or select.groups_by_sets:
        return []
    if select.laterals:
        return []  # the elements are counted
    first = select.start.alias_or_name.lower()
    grouped = {key.name.lower() for key in keys if isinstance(key, exp.Column)}
    is_of_first = all(isinstance(key, exp.Column) and key.table.lower() == first for key in keys)
    if not is_of_first or not _is_key(select.sources.get(first), grouped, project):
        return []
    filled = {
        column.table.lower()
        for part in select.list_clause_conditions("where", "having")
        for column in list_filled_columns(part)
    }
    asked = select.list_clause_conditions("having")
    tested = {alias for part in asked for alias, _ in list_column_aliases_and_names(part)}
    partners = []
    for join in select.joins:
        if not join.adds_columns or _is_one_row(select, join, project):
            continue
        if join.node.side != "LEFT" or keeps_only_unmatched(select, join):
            return []
        if join.alias in (filled | tested) or list_source_keys(
            select.sources.get(join.alias), project.by_table
        ):
            return []
        partners.append(join.alias)
    return partners


def _is_key(source: SelectSource | None, names: set[str], project: ProjectView) -> bool:
    """Whether columns identify a row of a source, also the days of a calendar."""
    if any(key <= names for key in list_source_keys(source, project.by_table)):
        return True
    branch = source.only_branch if isinstance(source, ScopedQuery) else None
    if branch is None or not branch.results or not names.issuperset(branch.names):
        return False
    days = [value for _, value in branch.results if isinstance(value, exp.Explode)]
    is_calendar = any(isinstance(value.this, exp.GenerateSeries) for value in days)
    return branch.node.args.get("distinct") is not None or is_calendar


def _is_one_row(select: ScopedSelect, join: ScopedJoin, project: ProjectView) -> bool:
    """Whether a row finds one partner at most."""
    fixed = list_fixed_columns(join)
    keys = list_source_keys(select.sources.get(join.alias), project.by_table)
    return any(key <= fixed for key in keys)


# IS NULL of a partner's value.


def _iterate_rows_without_open_partners(
    select: ScopedSelect, project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields `WHERE i.paid_on IS NULL` over a LEFT JOIN with a group for each row of the left side.

    The row of a client stays without an invoice and with an open one, and goes if all are paid.
    """
    keys = [enter_expression(key, exp.Cast, exp.Paren) for key in select.list_group_keys()]
    columns = [key for key in keys if isinstance(key, exp.Column)]
    if select.start is None or not keys or len(columns) < len(keys):
        return
    first = select.start.alias_or_name.lower()
    grouped = {key.name.lower() for key in columns if key.table.lower() == first}
    if len(grouped) < len(keys) or not _is_key(select.sources.get(first), grouped, project):
        return
    totals = {
        alias
        for _, item in select.results
        for node in item.find_all(exp.AggFunc)
        for alias, _ in list_column_aliases_and_names(node)
    }
    for join in select.joins:
        compared = {
            name for part in join.conditions for _, name in list_column_aliases_and_names(part)
        }
        if join.node.side != "LEFT" or join.alias not in totals:
            continue
        for part in select.list_clause_conditions("where"):
            test = part.unnest()
            column = test.this if isinstance(test, exp.Is) else None
            if not isinstance(column, exp.Column) or not isinstance(test.expression, exp.Null):
                continue
            name = column.name.lower()
            is_other = name in compared or not _CURRENT.isdisjoint(
                split_column_name_into_words(name)
            )
            if column.table.lower() == join.alias and not is_other:
                yield QuerySlip(
                    test,
                    f"leaves out each row whose partners in "
                    f"`{project.name_of_source(select, join.alias)}` all have `{name}`, and keeps "
                    "those without a partner",
                    "the condition is in ON",
                )


# EXPLODE without OUTER.


def _iterate_lost_rows_of_arrays(
    select: ScopedSelect, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields counts of rows of which EXPLODE leaves out those with an empty array."""
    if any(isinstance(item, _EXPLODING) for _, item in select.results):
        return
    for alias, names, made_of, array in _iterate_exploded(select, origins):
        places = {(alias, name) for name in names}
        asked = select.list_clause_conditions("where", "having", "qualify")
        tested = {place for part in asked for place in list_column_aliases_and_names(part)}
        keys = select.list_group_keys()
        grouped = {place for key in keys for place in list_column_aliases_and_names(key)}
        if (tested | grouped) & places or any(part.find(exp.ArraySize) for part in asked):
            continue
        if any(name == array.name.lower() for _, name in tested):
            continue
        totals = [
            (name, node)
            for name, item in select.results
            for node in item.find_all(exp.Count, exp.Sum)
            if node.find_ancestor(exp.Window, exp.Filter, exp.Case) is None
        ]
        read = [list_column_aliases_and_names(node) for _, node in totals]
        if not any(one & places for one in read):
            continue
        for (name, node), columns in zip(totals, read, strict=True):
            words = split_column_name_into_words(name)
            is_of_row = columns and not columns & places and {one for one, _ in columns} <= made_of
            # A part for each element is added up; `fan-out-total` finds totals beside a VIEW.
            is_other = node.find(exp.Div) is not None or (
                array.table.lower() in made_of and node.find(exp.Distinct) is None
            )
            if is_of_row and not is_other and _ONLY_SOME.isdisjoint(words):
                yield QuerySlip(
                    node,
                    f"counts no row whose `{array.name}` is empty or NULL: EXPLODE makes "
                    "no row of it",
                    "it is LATERAL VIEW OUTER or EXPLODE_OUTER, or the rows are counted in a CTE "
                    "of their own",
                )


def _iterate_exploded(
    select: ScopedSelect, origins: ValueOrigins
) -> Iterator[tuple[str, set[str], set[str], exp.Column]]:
    """Yields the sources with elements of arrays: alias, columns of the elements, aliases of the
    rows, and the array.
    """
    for lateral in select.laterals:
        alias = lateral.args.get("alias")
        array = _find_array(select, lateral.this, origins)
        if array is not None and alias is not None and not lateral.args.get("outer"):
            names = {column.name.lower() for column in alias.columns}
            yield alias.name.lower(), names, {array.table.lower()}, array
    for alias, source in select.sources.items():
        branch = source.only_branch if isinstance(source, ScopedQuery) else None
        if branch is None or branch.node.args.get("where") is not None or branch.joins:
            continue
        made = [(name, item) for name, item in branch.results if isinstance(item, _EXPLODING)]
        array = _find_array(branch, made[0][1], origins) if made else None
        if array is not None:
            yield alias, {name for name, _ in made}, {alias}, array


def _find_array(select: ScopedSelect, call: exp.Expr, origins: ValueOrigins) -> exp.Column | None:
    """Finds the column with the array of EXPLODE; None if no row is lost, as with OUTER."""
    if not isinstance(call, _EXPLODING) or isinstance(call, exp.ExplodeOuter | exp.PosexplodeOuter):
        return None
    if not isinstance(call.this, exp.Column):
        return None
    _, made = origins.find_expression(select, call.this)
    return None if isinstance(made, _FILLED_ARRAYS) else call.this


# Amounts that a LEFT JOIN makes NULL.


def _iterate_lost_amounts(
    select: ScopedSelect, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields results of + and - that are NULL because one of the totals has no row."""
    for name, item in select.results if select.joins else ():
        value = enter_expression(item, exp.Paren, exp.Cast, exp.Round, exp.Alias)
        if not isinstance(value, exp.Add | exp.Sub) or value.find(*_GUARDS, *_STEPS, exp.Query):
            continue
        if not _DIFFERENCES.isdisjoint(split_column_name_into_words(name)):
            continue
        columns = list(value.find_all(exp.Column))
        if len({column.table.lower() for column in columns}) < _BOTH_SIDES:
            continue
        kinds = [types.find_type(select, column) for column in columns]
        if any(kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES for kind in kinds):
            continue
        bare = next((one for one in columns if _is_missing_total(select, one, origins)), None)
        if bare is not None and not any(_is_compared(select, one) for one in columns):
            yield QuerySlip(
                value,
                f"is NULL if the join finds no partner with `{bare.name}`: the other amount is "
                "lost, too",
                f"COALESCE makes 0 of a missing `{bare.name}`",
            )


def _is_missing_total(select: ScopedSelect, column: exp.Column, origins: ValueOrigins) -> bool:
    """Whether a column is a total, or a part of an amount, that a LEFT JOIN may not find."""
    alias, source = column.table.lower(), select.find_source(column)
    join = next((one for one in select.joins if one.alias == alias), None)
    if join is None or join.node.side not in {"LEFT", "FULL"} or source is None:
        return False
    asked = [*select.list_clause_conditions("where"), *_list_later_conditions(select, join)]
    filled = {one.table.lower() for part in asked for one in list_filled_columns(part)}
    if alias in filled or any(part.find(*_STEPS) for part in join.conditions):
        return False
    others = [other for name, other in select.sources.items() if name != alias]
    if any(_shares_rows(source, other) for other in others):
        return False
    below, made = origins.find_expression(select, column)
    total = enter_expression(made, *VALUE_WRAPPERS)
    is_total = below is not select and isinstance(total, exp.Sum | exp.Count | exp.CountIf)
    words = set(split_column_name_into_words(column.name))
    return (is_total and isinstance(source, ScopedQuery)) or bool(words & _TAKEN)


def _list_later_conditions(select: ScopedSelect, join: ScopedJoin) -> list[exp.Expr]:
    """Lists the conditions of inner joins, which a row without a partner does not pass."""
    inner = [one for one in select.joins if not one.node.side and one.adds_columns]
    return [part for one in inner if one is not join for part in one.conditions]


def _shares_rows(one: SelectSource, other: SelectSource) -> bool:
    """Whether two sources read the same rows, so that each finds its partner or is its past."""
    tables = [
        {table_name(source)}
        if isinstance(source, exp.Table)
        else {
            table_name(table)
            for branch in source.branches
            for table in branch.sources.values()
            if isinstance(table, exp.Table)
        }
        for source in (one, other)
    ]
    return bool(tables[0] & tables[1])


def _is_compared(select: ScopedSelect, column: exp.Column) -> bool:
    """Whether a column is one side of a comparison, as a budget, or as the month before."""
    names = (column.name, column.table)
    return any(_COMPARED & set(split_column_name_into_words(name)) for name in names)
