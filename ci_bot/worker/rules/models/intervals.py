"""Incremental models and their interval: filters, time columns, windows and totals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import (
    TIMESTAMPS,
    ModelQuery,
    ScopedQuery,
    ScopedSelect,
    enter_expression,
    find_interval_bounds,
    is_interval_predicate,
    list_column_names,
    list_known_types,
    list_last_days,
    list_unused_edges,
    mentions_interval,
    name_query_part,
    read_day_macro,
    split_conditions,
)
from ci_bot.worker.sqlmesh_compat import is_incremental_unmanaged, is_python_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, PythonModel

# Seconds of the units to which a date can be truncated, and of SQLMesh's interval units.
UNITS = {
    "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800,
    "month": 2_592_000, "quarter": 7_776_000, "year": 31_536_000,
}  # fmt: skip

_ALIASES = {
    "mm": "month", "mon": "month", "yy": "year", "yyyy": "year", "q": "quarter", "dd": "day",
    "hh": "hour", "wk": "week", "isoweek": "week",
}  # fmt: skip

BOTH = 2

# A column is followed through at most this many queries.
_MOST_LEVELS = 10
_SHIFTS = frozenset({"from_utc_timestamp", "to_utc_timestamp", "convert_timezone"})


def _is_time_range(model: Model) -> bool:
    return bool(model.kind.is_incremental_by_time_range and model.is_sql and model.time_column)


@on_model
class TimeFilterMissing(ModelRule):
    """Every row of an incremental query must belong to its interval."""

    spec = find_rule("time-filter-missing")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if is_python_model(model) and model.kind.is_incremental_by_time_range:
            yield from self._observe_python_model(model)
        if not (query := self.query_of(model)):
            return
        if model.kind.is_incremental_by_unique_key:
            if not mentions_interval(query):
                yield self.make_observation(
                    model,
                    "Every run reads all of the source: the query has no filter on the interval.",
                    "the query filters on the interval, or the source is known to stay small",
                    severity="low",
                )
            return
        if is_incremental_unmanaged(kind := model.kind) and not kind.insert_overwrite:
            if not (mentions_interval(query) or model.depends_on_self):
                yield self.make_observation(
                    model,
                    "Each run appends all rows that the query gives, beside the same rows of "
                    "earlier runs: the query has no filter on the interval and does not read what "
                    "the table has.",
                    "the query filters on the interval, or leaves out rows that the table has",
                    anchors=("INCREMENTAL_UNMANAGED", "kind", "FROM"),
                )
            return
        time = model.time_column
        if not _is_time_range(model) or time is None or not query.tree.has_any(exp.Table):
            return
        bounds = find_interval_bounds(query)
        if bounds.lower and bounds.upper:
            yield from self._observe_single_day_filter(model, query)
            return
        column = time.column.sql(dialect=model.dialect)
        if bounds.is_bounded:
            end = "start" if bounds.upper else "end"
            yield self.make_observation(
                model,
                f"The filter on the interval has no {end}, so a run reads more than its interval.",
                f"`{column}` is filtered BETWEEN @start_ds AND @end_ds (or the like)",
                subject=[end],
                severity="medium",
                anchors=("@start_ds", "@start_ts", "@start_dt", "@end_ds", "@end_ts", "WHERE"),
            )
            return
        is_mentioned = mentions_interval(query)
        yield self.make_observation(
            model,
            "Start and end occur, but not every row has to pass them (an OR, an outer join, or a "
            "branch without the filter), so each run reads rows of all time."
            if is_mentioned
            else "The query does not filter on the interval, so each run reads all of history.",
            f"`{column}` is filtered BETWEEN @start_ds AND @end_ds (or the like) for every row",
            subject=["start", "end"],
            anchors=("@start_ds", "@start_ts", "@start_dt", "@start_date", "FROM"),
        )

    def _observe_python_model(self, model: PythonModel) -> Iterator[RuleObservation]:
        unused = list_unused_edges(model)
        if unused:
            yield self.make_observation(
                model,
                f"The code uses no {' and no '.join(unused)}, so each run reads more than its "
                "interval, and may write rows that are dated outside of it.",
                "what is read is filtered by `start` and `end`",
                subject=unused,
                severity=None if len(unused) == BOTH else "medium",
                anchors=("fetchdf", "resolve_table", "def execute", "def "),
            )

    def _observe_single_day_filter(
        self, model: Model, query: ModelQuery
    ) -> Iterator[RuleObservation]:
        """Observes a filter on one day.

        A run of several intervals, such as a backfill, has one start and one end for all of them.
        """
        alone = model.batch_size == 1 and not model.lookback
        if alone or query.written is None:
            return
        for test in query.written_tree.find_all(exp.EQ):
            edges = {
                name for side in (test.this, test.expression) if (name := read_day_macro(side))
            }
            if len(edges) == 1 and (edge := edges.pop()):
                yield self.make_observation(
                    model,
                    f"`= @{edge}` reads one day only, and a backfill runs many intervals at once: "
                    "the others stay empty and count as done.",
                    "BETWEEN, or <= and >=, compare with start and end; or batch_size is 1, "
                    "without a lookback",
                    subject=[f"= @{edge}"],
                    anchors=(f"@{edge}",),
                )


@on_model
class IntervalEdge(ModelRule):
    """start_ds and end_ds are both inside the interval, as days."""

    spec = find_rule("interval-edge-lost")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or query.written is None or not model.kind.is_incremental:
            return
        for test in query.written_tree.find_all(exp.LT, exp.GT):
            left = isinstance(test, exp.LT)
            # x < end and x > start, or end > x and start < x.
            for side, loses_end in ((test.expression, left), (test.this, not left)):
                name = read_day_macro(side)
                if name is not None and name.startswith("end_" if loses_end else "start_"):
                    yield self.make_observation(
                        model,
                        f"`{'<' if loses_end else '>'} @{name}` leaves out the "
                        f"{'last' if loses_end else 'first'} day of every interval, and @{name} is "
                        "part of it: a daily run writes nothing.",
                        "BETWEEN, or <= and >=, compare with start and end",
                        subject=[f"@{name}"],
                        anchors=(f"@{name}",),
                    )
        compared: dict[str, list[str]] = {}
        for select, side, name in list_last_days(query):
            if self._has_hours(select, side):
                compared.setdefault(name, []).append(side.sql(dialect=model.dialect))
        for name, sides in compared.items():
            what = "is a timestamp" if len({*sides}) == 1 else "are timestamps"
            yield self.make_observation(
                model,
                f"{quote_names(sides)} {what}, and @{name} is midnight "
                "at the begin of the interval's last day: the rest of that day is left out.",
                "timestamps are compared with @start_ts and @end_ts, or cast to DATE",
                subject=[f"timestamps to @{name}"] * len(sides),
                anchors=(f"@{name}",),
            )

    def _has_hours(self, select: ScopedSelect, side: exp.Expr) -> bool:
        """Whether all values are known to be timestamps, by casts and models."""
        if isinstance(side, exp.Cast | exp.TryCast):
            return str(side.to.this.value) in TIMESTAMPS
        found = select.find_origins(side)
        kinds = [
            (list_known_types(self.project.by_table.get(table)) or {}).get(name)
            for table, name in found
        ]
        return bool(kinds) and all(
            kind is not None and str(kind.this.value) in TIMESTAMPS for kind in kinds
        )


@on_model
class TimeFilterWrongColumn(ModelRule):
    """The filter must use the same time as the time column."""

    spec = find_rule("time-filter-wrong-column")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        time = model.time_column
        if not _is_time_range(model) or time is None or not (query := self.query_of(model)):
            return
        filtered = {name for _, name in find_interval_bounds(query).columns}
        target = time.column.name
        made_of = {name for _, name in query.scopes.find_origins(target)}
        if filtered and made_of and not filtered & (made_of | {target.lower()}):
            yield self.make_observation(
                model,
                f"The time column `{target}` is made of {quote_names(made_of)}, but the interval "
                f"is compared with {quote_names(filtered)}: rows of one interval carry dates of "
                "another.",
                f"the filter is on what `{target}` is made of",
                subject=[f"{target} by {', '.join(sorted(filtered))}"],
                anchors=("@start_ds", "@start_ts", "@start_dt", "@start_date"),
            )


@on_model
class TimeColumnOutsideInterval(ModelRule):
    """A time column that is truncated or shifted can leave the interval of its run."""

    spec = find_rule("time-column-outside-interval")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        time = model.time_column
        if not _is_time_range(model) or time is None or not (query := self.query_of(model)):
            return
        interval = UNITS[_read_interval_unit(model)]
        name = time.column.name
        for item in _list_expressions(query.scopes, name):
            unit = _find_truncation(item)
            if unit is not None and UNITS[unit] > interval:
                yield self.make_observation(
                    model,
                    f"`{name}` is cut to the {unit}, while the interval is one "
                    f"{_read_interval_unit(model)}: a run writes rows that are dated outside "
                    "of it.",
                    f"the model runs by the {unit}, or the time column keeps its precision",
                    subject=[f"{name} cut to the {unit}"],
                    anchors=(name,),
                )
            elif (how := _find_time_shift(item)) and not _shifts_filter(query):
                yield self.make_observation(
                    model,
                    f"`{name}` is moved by {how}, and the filter on the interval is not: rows "
                    "near its edges are dated outside of it.",
                    "filter and time column are moved alike",
                    subject=[f"{name} moved by {how}"],
                    anchors=(how, name),
                )


def _read_interval_unit(model: Model) -> str:
    unit = str(model.interval_unit.value).lower()
    if unit.endswith("minute"):
        return "minute"
    return unit if unit in UNITS else "day"


def _list_expressions(query: ScopedQuery, name: str, depth: int = 0) -> Iterator[exp.Expr]:
    """Lists the expressions of a result column, through CTEs that only pass it on."""
    for branch in query.branches:
        item = branch.find_result(name)
        source = branch.find_source(item) if isinstance(item, exp.Column) else None
        if (
            isinstance(item, exp.Column)
            and isinstance(source, ScopedQuery)
            and depth < _MOST_LEVELS
        ):
            yield from _list_expressions(source, item.name, depth + 1)
        elif item is not None:
            yield item


def _find_truncation(node: exp.Expr) -> str | None:
    """Finds the unit to which an expression truncates a date, through casts; None for others."""
    while isinstance(node, exp.Cast | exp.TryCast | exp.Paren | exp.TsOrDsToDate):
        if isinstance(node, exp.TsOrDsToDate) or (
            isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DataType.Type.DATE
        ):
            inner = _find_truncation(node.this)
            return inner or "day"
        node = node.this
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc | exp.DatetimeTrunc):
        unit = node.args.get("unit")
        text = unit.name.lower() if unit is not None else ""
        text = _ALIASES.get(text, text)
        return text if text in UNITS else None
    if isinstance(node, exp.LastDay):
        return "month"
    return None


def _find_time_shift(node: exp.Expr) -> str | None:
    """Finds the function that shifts a time to another zone or day; None if there is none."""
    for inner in node.walk():
        if isinstance(inner, exp.ConvertTimezone | exp.AtTimeZone | exp.FromTimeZone):
            return _name_function(inner)
        if isinstance(inner, exp.DateAdd | exp.DateSub | exp.TsOrDsAdd | exp.AddMonths):
            return _name_function(inner)
        if isinstance(inner, exp.Anonymous) and inner.name.lower() in _SHIFTS:
            return str(inner.name)
        if isinstance(inner, exp.Add | exp.Sub) and inner.find(exp.Interval):
            return "INTERVAL"
    return None


def _name_function(node: exp.AtTimeZone | exp.FromTimeZone | exp.Func) -> str:
    if isinstance(node, exp.AtTimeZone | exp.FromTimeZone):
        return "FROM_UTC_TIMESTAMP" if isinstance(node, exp.AtTimeZone) else "TO_UTC_TIMESTAMP"
    return str(node.sql_name())


def _shifts_filter(query: ModelQuery) -> bool:
    """Whether a filter on the interval also shifts its column."""
    for where in query.tree.find_all(exp.Where):
        for part in split_conditions(where.this):
            if is_interval_predicate(part) and _find_time_shift(part):
                return True
    return False


# Windows and totals over one interval only, in models that need the whole history.


_ORDERED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)


@on_model
class WindowOverInterval(ModelRule):
    """A window contains only the rows of its interval."""

    spec = find_rule("window-over-interval")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        kind = model.kind
        if not (kind.is_incremental_by_time_range or kind.is_incremental_by_unique_key):
            return
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Window) or not mentions_interval(query):
            return
        time = model.time_column.column.name if model.time_column else None
        ranks = _list_rank_columns(query)
        for select in query.known_root.selects:
            times = _list_filtered_columns(select) | ({time.lower()} if time else set())
            for window in select.find_all(exp.Window):
                if _is_harmless_window(window, select, times, ranks):
                    continue
                text = window.this.sql(dialect=model.dialect)
                yield self.make_observation(
                    model,
                    f"`{text} OVER (…)` sees the rows of one interval only, so its value changes "
                    "at every edge and is wrong after a backfill with another batch size.",
                    "the window is partitioned by the time column, or computed in a model that "
                    "reads the whole history",
                    subject=[f"{window.this.sql_name()} in {name_query_part(window, query)}"],
                    anchors=(f"{window.this.sql_name()}(", "OVER"),
                )


def _list_filtered_columns(select: ScopedSelect) -> set[str]:
    """Lists the columns that WHERE compares with the interval."""
    return {
        name
        for part in select.list_clause_conditions("where")
        if is_interval_predicate(part)
        for _, name in select.find_origins(part)
    }


def _is_harmless_window(
    window: exp.Expr, select: ScopedSelect, times: set[str], ranks: frozenset[str]
) -> bool:
    function = enter_expression(window.this, exp.IgnoreNulls, exp.RespectNulls, exp.Filter)
    partition = window.args.get("partition_by") or []
    if any(name in times for item in partition for _, name in select.find_origins(item)):
        return True
    if isinstance(function, _RANKS):
        # A filter on a rank removes duplicates inside an interval: one row of each key remains.
        alias = window.parent.alias.lower() if isinstance(window.parent, exp.Alias) else ""
        return alias in ranks or window.find_ancestor(exp.Qualify) is not None
    if isinstance(function, _ORDERED):
        return False
    return not isinstance(function, exp.AggFunc)


def _list_rank_columns(query: ModelQuery) -> frozenset[str]:
    """Lists columns that WHERE or QUALIFY compares with a number, as in rn = 1."""
    found: set[str] = set()
    for clause in query.tree.find_all(exp.Where, exp.Qualify):
        for test in clause.find_all(exp.EQ, exp.LTE, exp.LT):
            sides = (test.this, test.expression)
            if any(isinstance(side, exp.Literal) for side in sides):
                found |= {side.name.lower() for side in sides if isinstance(side, exp.Column)}
    return frozenset(found)


@on_model
class AggregateOverInterval(ModelRule):
    """A merge replaces the stored total by the total of the last interval."""

    spec = find_rule("aggregate-over-interval")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if not model.kind.is_incremental_by_unique_key or not (query := self.query_of(model)):
            return
        if getattr(model.kind, "when_matched", None) is not None:
            return
        bounds = find_interval_bounds(query)
        if not bounds.is_bounded:
            return
        key = set(list_column_names(model.unique_key))
        for branch in query.root.branches:
            if branch.node.args.get("group") is None:
                continue
            times = _list_filtered_columns(branch) or {name for _, name in bounds.columns}
            keys = branch.list_group_keys()
            if any(name in times for item in keys for _, name in branch.find_origins(item)):
                continue
            totals = [
                name
                for name, item in branch.results
                if name not in key and _forgets_history(item, branch, times)
            ]
            if totals:
                yield self.make_observation(
                    model,
                    lambda columns: (
                        f"{quote_names(columns)} count one interval, and the merge on "
                        f"{quote_names(key)} replaces the stored value with it: totals shrink to "
                        "those of the last run."
                    ),
                    "the model is FULL or groups by the interval too, or WHEN MATCHED adds up",
                    subject=totals,
                    anchors=(*totals, "GROUP BY"),
                )


def _forgets_history(item: exp.Expr, select: ScopedSelect, times: set[str]) -> bool:
    """Whether an aggregate loses the rows of earlier intervals.

    The latest time of an interval is later than any time before it, so MAX of the time column is
    safe.
    """
    for aggregate in item.find_all(exp.AggFunc):
        over = {name for _, name in select.find_origins(aggregate)}
        if isinstance(aggregate, exp.Max | exp.ArgMax | exp.AnyValue) and over & times:
            continue
        if isinstance(aggregate, exp.AnyValue | exp.First | exp.Last):
            continue
        return True
    return False
