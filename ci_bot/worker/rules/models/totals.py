"""Windows and totals that see one interval and claim more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.models.base import ModelRule, on_model
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.sql.audits import column_names
from ci_bot.worker.rules.sql.interval import bounds_of, is_interval_predicate, mentions_interval
from ci_bot.worker.rules.sql.places import place_of
from ci_bot.worker.rules.sql.queries import Query, origins, outer, selects

_ORDERED = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)


@on_model
class WindowOverInterval(ModelRule):
    """A window sees only the rows of its interval."""

    spec = rule("window-over-interval")

    def see(self, model: Any) -> Iterator[Observation]:
        kind = model.kind
        if not (kind.is_incremental_by_time_range or kind.is_incremental_by_unique_key):
            return
        query = self.query(model)
        if query is None or not query.tree.has(exp.Window) or not mentions_interval(query):
            return
        time = model.time_column.column.name if model.time_column else None
        ranks = _rank_filters(query)
        for scope in selects(query.root or query.written_root):
            times = _interval_columns(scope) | ({("", time.lower())} if time else set())
            for window in scope.expression.find_all(exp.Window):
                if window.find_ancestor(exp.Select) is not scope.expression:
                    continue
                if _harmless(window, scope, times, ranks):
                    continue
                text = window.this.sql(dialect=model.dialect)
                yield self.observation(
                    model,
                    f"`{text} OVER (…)` sees the rows of one interval only, so its value changes "
                    "at every edge and is wrong after a backfill with another batch size.",
                    "the window is partitioned by the time column, or computed in a model that "
                    "reads the whole history",
                    subject=[f"{window.this.sql_name()} in {place_of(window, query)}"],
                    anchors=(f"{window.this.sql_name()}(", "OVER"),
                )


def _interval_columns(scope: Any) -> set[tuple[str, str]]:
    where = scope.expression.args.get("where")
    found: set[tuple[str, str]] = set()
    if where is None:
        return found
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    for part in parts:
        if is_interval_predicate(part):
            found |= {("", name) for _, name in origins(scope, part)}
    return found


def _harmless(window: Any, scope: Any, times: set[tuple[str, str]], ranks: frozenset[str]) -> bool:
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    partition = window.args.get("partition_by") or []
    for item in partition:
        named = {("", name) for _, name in origins(scope, item)}
        if named & times:
            return True
    if isinstance(function, _RANKS):
        # Picking one row of each key is how duplicates are removed inside an interval.
        alias = window.parent.alias.lower() if isinstance(window.parent, exp.Alias) else ""
        return alias in ranks or window.find_ancestor(exp.Qualify) is not None
    if isinstance(function, _ORDERED):
        return False
    return not isinstance(function, exp.AggFunc)


def _rank_filters(query: Query) -> frozenset[str]:
    """Columns that are compared with a number in a WHERE or QUALIFY, as in rn = 1."""
    found: set[str] = set()
    for clause in query.tree.all(exp.Where, exp.Qualify):
        for test in clause.find_all(exp.EQ, exp.LTE, exp.LT):
            sides = (test.this, test.expression)
            if any(isinstance(side, exp.Literal) for side in sides):
                found |= {side.name.lower() for side in sides if isinstance(side, exp.Column)}
    return frozenset(found)


@on_model
class AggregateOverInterval(ModelRule):
    """A merge replaces the stored total by the total of the last interval."""

    spec = rule("aggregate-over-interval")

    def see(self, model: Any) -> Iterator[Observation]:
        if not model.kind.is_incremental_by_unique_key or not (query := self.query(model)):
            return
        if query.root is None or getattr(model.kind, "when_matched", None) is not None:
            return
        if not bounds_of(query).any:
            return
        key = set(column_names(model.unique_key))
        for branch in outer(query.root):
            group = branch.expression.args.get("group")
            if group is None:
                continue
            times = _interval_columns(branch) or {
                ("", name) for _, name in bounds_of(query).columns
            }
            grouped = {("", n) for item in group.expressions for _, n in origins(branch, item)}
            if grouped & times:
                continue
            totals = [
                item.alias_or_name
                for item in branch.expression.expressions
                if item.alias_or_name.lower() not in key and _forgets(item, branch, times)
            ]
            if totals:
                yield self.observation(
                    model,
                    lambda columns: (
                        f"{names(columns)} count one interval, and the merge on {names(key)} "
                        "replaces the stored value with it: totals shrink to those of the last run."
                    ),
                    "the model is FULL or groups by the interval too, or WHEN MATCHED adds up",
                    subject=totals,
                    anchors=(*totals, "GROUP BY"),
                )


def _forgets(item: Any, scope: Any, times: set[tuple[str, str]]) -> bool:
    """Whether an aggregate loses what earlier intervals contributed to it.

    The latest time of an interval is later than all before, so MAX of the time column is safe.
    """
    for aggregate in item.find_all(exp.AggFunc):
        over = {("", name) for _, name in origins(scope, aggregate)}
        if isinstance(aggregate, exp.Max | exp.ArgMax | exp.AnyValue) and over & times:
            continue
        if isinstance(aggregate, exp.AnyValue | exp.First | exp.Last):
            continue
        return True
    return False
