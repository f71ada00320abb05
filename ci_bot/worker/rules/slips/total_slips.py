"""Values that are added up although their sum means nothing: distinct people of each day, levels
at a moment, averages, and prices apart from their quantities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import (
    list_column_aliases_and_names,
    list_unique_keys,
    make_singular,
    split_column_name_into_words,
)
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import VALUE_WRAPPERS
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_expression, table_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_MOST_LEVELS = 12
_BOTH_SIDES = 2
_TIMES = frozenset({
    "date", "day", "ds", "dt", "hour", "week", "month", "quarter", "year", "period",
})  # fmt: skip
# Those who come back on another day.
_RETURNING = frozenset({
    "user", "customer", "visitor", "account", "member", "client", "device", "player", "subscriber",
    "driver", "patient", "student", "employee", "guest", "person", "people", "buyer", "seller",
    "contact", "reader", "viewer", "listener", "rider", "agent", "store", "product", "sku",
    "vehicle", "machine", "sensor", "host", "tenant", "company", "patron", "shopper",
})  # fmt: skip
# What happens once to each of them, so that they are in one group.
_ONCE = frozenset({
    "new", "first", "signup", "signed", "registered", "created", "joined", "acquired", "activated",
    "churned", "lost", "cohort", "born", "birth", "onboarded",
})  # fmt: skip
# A row of these days is there once, whatever its level is.
_OWN_DAYS = frozenset({
    "issue", "issued", "order", "ordered", "created", "due", "invoice", "invoiced", "placed",
    "opened", "started", "signed", "purchased", "paid",
})  # fmt: skip
# A sum over days is called so: user days, or totals of averages.
_SUMS_OF_TIMES = frozenset({
    "day", "days", "week", "weeks", "month", "months", "hour", "hours", "visit", "visits", "sum",
    "cumulative", "cumulated", "avg", "average", "mean", "expected", "weighted", "area", "integral",
})  # fmt: skip
_LEVELS = frozenset({
    "mrr", "arr", "balance", "balances", "stock", "inventory", "headcount", "backlog",
})  # fmt: skip
# What a level gains and loses can be added up.
_FLOWS = frozenset({
    "new", "expansion", "churn", "churned", "contraction", "change", "changes", "delta", "net",
    "diff", "added", "lost", "gained", "movement", "movements", "reactivation", "reactivated",
    "upsell", "downgrade", "adjustment", "adjustments", "sold", "moved", "out", "received",
    "shipped", "increase", "decrease", "growth", "opened", "variance", "interest", "transactions",
})  # fmt: skip
_PRICES = frozenset({"price", "cost", "rate", "fee", "tariff", "wage", "salary"})
_QUANTITIES = frozenset({
    "quantity", "qty", "units", "seats", "hours", "pieces", "items", "volume", "nights", "weight",
    "kwh", "mwh", "minutes", "shares", "licenses", "licences", "count", "boxes", "litres", "liters",
})  # fmt: skip
# Words of a flag, or a number, that picks one of many times.
_MOMENTS = frozenset({"latest", "last", "current", "newest", "eom", "end", "closing", "recent"})
_TOTALS = (exp.Sum, exp.Avg)
_CHOOSING = ("having", "qualify", "limit", "distinct")
_VALIDITY = frozenset({"valid_from", "valid_to"})


def iterate_total_slips(
    query: ModelQuery, project: ProjectView, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields totals of values that do not add up."""
    for select in query.root.selects:
        for name, item in select.results:
            added = _read_added_column(select, name, item)
            if added is None or not _SUMS_OF_TIMES.isdisjoint(split_column_name_into_words(name)):
                continue
            if _picks_a_moment(added.list_conditions()):
                continue
            yield from _iterate_sums_of_results(added, project, origins, types)
            yield from _iterate_sums_of_levels(added, project)
        for node in select.find_all(exp.Mul):
            yield from _iterate_products_of_totals(select, node, origins)


def _find_column(node: object) -> exp.Column | None:
    value = enter_expression(node, *VALUE_WRAPPERS) if isinstance(node, exp.Expression) else None
    return value if isinstance(value, exp.Column) else None


@dataclass(frozen=True)
class _AddedColumn:
    """A column that SUM adds up, in groups or in a window.

    Attributes:
        node: SUM, or the window around it.
        name: of the result.
        conditions: of FILTER, or of a CASE without another value.
    """

    select: ScopedSelect
    node: exp.Expr
    column: exp.Column
    name: str
    conditions: tuple[exp.Expr, ...] = ()

    def list_kept(self) -> list[exp.Expr]:
        """Lists the expressions that have one value in all rows of a sum."""
        if isinstance(self.node, exp.Window):
            return list(self.node.args.get("partition_by") or ())
        return self.select.list_group_keys()

    def list_conditions(self) -> list[exp.Expr]:
        """Lists the conditions of WHERE, ON and the sum itself."""
        joined = (part for join in self.select.joins for part in join.conditions)
        return [*joined, *self.conditions, *self.select.list_clause_conditions("where")]

    def list_fixed_names(self) -> set[str]:
        """Lists columns of the source that the query keeps, or compares for equality."""
        fixed = {name for join in self.select.joins for name in join.using}
        fixed |= _list_compared(self.list_conditions(), self.column.table.lower())
        return fixed | {key.name.lower() for key in self.list_kept() if isinstance(key, exp.Column)}


def _read_added_column(select: ScopedSelect, name: str, item: exp.Expr) -> _AddedColumn | None:
    """Reads a result that is a SUM of one column; None for another one."""
    node = enter_expression(item, *VALUE_WRAPPERS)
    conditions: tuple[exp.Expr, ...] = ()
    total: exp.Expr = node.this if isinstance(node, exp.Window) else node
    if isinstance(total, exp.Filter):
        conditions, total = (total.expression.this,), total.this
    added = enter_expression(total.this, *VALUE_WRAPPERS) if isinstance(total, exp.Sum) else None
    branches: list[exp.Expr] = []
    if isinstance(added, exp.Case):
        branches = list(added.args.get("ifs") or ())
    if isinstance(added, exp.Case) and added.this is None and len(branches) == 1:
        default = added.args.get("default")
        if default is None or isinstance(default, exp.Literal | exp.Null):
            conditions = (*conditions, branches[0].this)
            added = enter_expression(branches[0].args["true"], *VALUE_WRAPPERS)
    if not isinstance(added, exp.Column):
        return None
    return _AddedColumn(select, node, added, name, conditions)


def _list_compared(conditions: Iterable[exp.Expr], alias: str = "") -> set[str]:
    """Lists columns that conditions compare by = or IN; with `alias` those of one source.

    A part of a time counts as well: `DAY(day) = 1` and `LAST_DAY(day) = day` pick one of a month.
    """
    places = {
        place
        for part in conditions
        for node in part.find_all(exp.EQ, exp.NullSafeEQ, exp.In)
        for place in list_column_aliases_and_names(node)
    }
    return {name for owner, name in places if not alias or owner == alias}


def _picks_a_moment(conditions: Iterable[exp.Expr]) -> bool:
    """Whether a condition asks for a flag of the last row, such as `is_latest`."""
    return any(
        not _MOMENTS.isdisjoint(split_column_name_into_words(name))
        for part in conditions
        for _, name in list_column_aliases_and_names(part)
    )


# Sums of what a query below has counted or averaged.


def _iterate_sums_of_results(
    added: _AddedColumn, project: ProjectView, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields sums over days of distinct people of each day, and of averages of each day."""
    select = added.select
    below, made = origins.find_expression(select, added.column)
    value = enter_expression(made, *VALUE_WRAPPERS)
    if below is select or below.groups_by_sets:
        return
    time = _find_dropped_time(added, below, origins, types)
    if time is None:
        return
    counted = _find_distinct(value)
    if counted is not None and _may_recur_on_other_days(below, counted, added, project):
        yield QuerySlip(
            added.node,
            f"counts one `{counted.name}` once for each `{time}`: `{added.column.name}` is "
            f"COUNT(DISTINCT {counted.name}) of each of them",
            f"COUNT(DISTINCT {counted.name}) reads the rows themselves",
        )
    elif isinstance(value, exp.Avg):
        yield QuerySlip(
            added.node,
            f"adds up averages: `{added.column.name}` is AVG of each `{time}`",
            "the values themselves are added up, or the result is an average, too",
        )


def _find_distinct(value: exp.Expr) -> exp.Column | None:
    """Finds the column of which a value is the number of distinct values."""
    if isinstance(value, exp.ApproxDistinct):
        return _find_column(value.this)
    if isinstance(value, exp.Count) and isinstance(value.this, exp.Distinct):
        listed = value.this.expressions
        return _find_column(listed[0]) if len(listed) == 1 else None
    is_set = isinstance(value, exp.ArraySize) and isinstance(value.this, exp.ArrayUniqueAgg)
    return _find_column(value.this.this) if is_set else None


def _may_recur_on_other_days(
    below: ScopedSelect, counted: exp.Column, added: _AddedColumn, project: ProjectView
) -> bool:
    """Whether what is counted may be there on several days: it is no row of its own table."""
    source = below.find_source(counted)
    if isinstance(source, exp.Table):
        keys = list_unique_keys(project.by_table.get(table_name(source)))
        if frozenset({counted.name.lower()}) in keys:
            return False
    words = {
        make_singular(word)
        for name in (counted.name, added.column.name, added.name)
        for word in split_column_name_into_words(name)
    }
    return not _RETURNING.isdisjoint(words) and _ONCE.isdisjoint(words)


def _find_dropped_time(
    added: _AddedColumn, below: ScopedSelect, origins: ValueOrigins, types: ModelValueTypes
) -> str | None:
    """Finds the time by which a query below groups, and which a sum does not keep apart."""
    kept = {_trace_to_query(added.select, key, origins) for key in added.list_kept()}
    shown = {item: name for name, item in below.results}
    fixed = added.list_fixed_names()
    for key in below.list_group_keys():
        name = shown.get(key)
        if name is None or name in fixed or _trace_to_query(below, key, origins) in kept:
            continue
        if not _ONCE.isdisjoint(split_column_name_into_words(name)):
            continue
        if _is_time(below, key, name, types):
            return name
    return None


def _trace_to_query(select: ScopedSelect, node: exp.Expr, origins: ValueOrigins) -> tuple[int, str]:
    below, made = origins.find_expression(select, node)
    return id(below), made.sql().lower()


def _is_time(select: ScopedSelect, node: exp.Expr, name: str, types: ModelValueTypes) -> bool:
    kind = types.find_type(select, node)
    if kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES:
        return True
    return not _TIMES.isdisjoint(split_column_name_into_words(name)[-1:])


# Levels at a moment.


def _iterate_sums_of_levels(added: _AddedColumn, project: ProjectView) -> Iterator[QuerySlip]:
    """Yields sums of a stock or a balance over the days for which a table has it."""
    if not _is_level(added.column.name) or not _is_level(added.name):
        return
    time = _find_dropped_time_of_table(added, project)
    if time is not None:
        yield QuerySlip(
            added.node,
            f"adds up a level: `{added.column.name}` is there again for each `{time}`, and the "
            "sum has it as often",
            f"MAX_BY(..., {time}) takes the last one, AVG an average, or `{time}` is in the group",
        )


def _is_level(name: str) -> bool:
    words = split_column_name_into_words(name)
    is_on_hand = any(pair == ("on", "hand") for pair in pairwise(words))
    is_level = is_on_hand or words[0] == "open" or not _LEVELS.isdisjoint(words)
    return is_level and _FLOWS.isdisjoint(words)


def _find_dropped_time_of_table(added: _AddedColumn, project: ProjectView) -> str | None:
    """Finds the time in the key of a table whose rows a sum does not keep apart by it."""
    select, column, fixed = added.select, added.column, added.list_fixed_names()
    for _ in range(_MOST_LEVELS):
        source = None if select.pivoted else select.find_source(column)
        if isinstance(source, exp.Table):
            return _find_time_of_key(project.by_table.get(table_name(source)), fixed)
        below = source.only_branch if source is not None else None
        item = below.find_result(column.name) if below is not None else None
        added_below = _find_added(below, item)
        if below is None or added_below is None or _chooses_rows(select, below):
            return None
        passed = {
            name: value.name.lower()
            for name, value in below.results
            if isinstance(value, exp.Column)
        }
        fixed = {passed.get(name, name) for name in fixed} | _list_compared(
            below.list_clause_conditions("where")
        )
        select, column = below, added_below
    return None


def _find_added(select: ScopedSelect | None, item: exp.Expr | None) -> exp.Column | None:
    """Finds the column that a query passes on, or adds up in its groups."""
    if select is None or item is None or select.groups_by_sets:
        return None
    is_grouped = select.node.args.get("group") is not None
    value = enter_expression(item, *VALUE_WRAPPERS) if is_grouped else item
    return _find_column(value.this if isinstance(value, exp.Sum) else None if is_grouped else value)


def _chooses_rows(select: ScopedSelect, below: ScopedSelect) -> bool:
    """Whether a query below joins or merges rows, or WHERE keeps the last row by a window."""
    if below.joins or any(below.node.args.get(name) for name in _CHOOSING):
        return True
    windows = {name for name, value in below.results if value.find(exp.Window)}
    asked = select.list_clause_conditions("where")
    return any(name in windows for part in asked for _, name in list_column_aliases_and_names(part))


def _find_time_of_key(model: Model | None, fixed: set[str]) -> str | None:
    """Finds the time in a key of a model that has a row for each time and something else."""
    kinds = model.columns_to_types or {} if model is not None else {}
    for key in list_unique_keys(model):
        times = [name for name in sorted(key) if _is_time_column(name, kinds.get(name))]
        if times and len(times) < len(key) and fixed.isdisjoint(times):
            return times[0]
    return None


def _is_time_column(name: str, kind: exp.DataType | None) -> bool:
    if name in _VALIDITY or not _OWN_DAYS.isdisjoint(split_column_name_into_words(name)):
        return False
    if kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES:
        return True
    return split_column_name_into_words(name)[-1] in _TIMES


# Products of totals.


def _iterate_products_of_totals(
    select: ScopedSelect, node: exp.Mul, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields `SUM(price) * SUM(quantity)`: each price is multiplied by all quantities."""
    if node.find_ancestor(exp.Sub, exp.Div, exp.Select) is not select.node:
        return
    sides = [enter_expression(side, *VALUE_WRAPPERS) for side in node.iter_expressions()]
    traced = [origins.find_expression(select, side) for side in sides]
    if traced[0][0] is not traced[1][0]:
        return
    below = traced[0][0]
    totals = [enter_expression(made, *VALUE_WRAPPERS) for _, made in traced]
    columns = [_find_column(one.this) for one in totals if isinstance(one, _TOTALS)]
    if len(columns) != _BOTH_SIDES or not any(isinstance(one, exp.Sum) for one in totals):
        return
    one, other = columns
    if one is None or other is None or one.table != other.table or one.name == other.name:
        return
    grouped = {key.sql().lower() for key in below.list_group_keys()}
    if any(column.sql().lower() in grouped for column in (one, other)):
        return
    prices = [column for column in (one, other) if _has_word(column, _PRICES)]
    quantities = [column for column in (one, other) if _has_word(column, _QUANTITIES)]
    if len(prices) == 1 and len(quantities) == 1 and prices[0] is not quantities[0]:
        yield QuerySlip(
            node,
            f"multiplies all of `{prices[0].name}` by all of `{quantities[0].name}`, also those of "
            "different rows",
            f"SUM({prices[0].name} * {quantities[0].name}) multiplies in each row",
        )


def _has_word(column: exp.Column, words: frozenset[str]) -> bool:
    return not words.isdisjoint(split_column_name_into_words(column.name))
