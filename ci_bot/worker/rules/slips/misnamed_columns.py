"""Columns whose name does not fit their value.

Examples are a "last" value that is the smallest, a "latest" row that is the first one, and days
that are counted backwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.declared_keys import make_singular, split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import list_words_of_columns
from ci_bot.worker.rules.slips.named_formulas import describe_misnamed_formula
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_casts, mentions_interval

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_LATE = frozenset({"last", "latest", "newest", "recent"})
_EARLY = frozenset({"first", "earliest", "oldest", "initial"})
_LARGE = frozenset({"max", "maximum", "highest", "largest", "greatest", "biggest"})
_SMALL = frozenset({"min", "minimum", "lowest", "smallest"})
_OPPOSITES = {exp.Min: _LATE | _LARGE, exp.Max: _EARLY | _SMALL}
_ANY_ORDER = _LATE | _EARLY | _LARGE | _SMALL
# The row that is valid now is the newest one.
_NEWEST = _LATE | {"current"}
# Words of columns that hold a time, also as text: ISO texts have the order of their times.
_TIMES = frozenset({
    "date", "day", "ds", "dt", "ts", "time", "timestamp", "at", "on", "hour", "week", "month",
    "quarter", "year", "period", "since", "until", "from",
})  # fmt: skip
_STARTS = frozenset({
    "created", "start", "started", "begin", "began", "opened", "issued", "ordered", "registered",
    "hired", "installed", "born", "requested", "submitted", "issue", "signup", "signed", "placed",
    "pickup",
})  # fmt: skip
_ENDS = frozenset({
    "closed", "end", "ended", "finished", "completed", "resolved", "delivered", "paid", "updated",
    "returned", "cancelled", "canceled", "left", "expired", "settled", "shipped", "due", "reply",
    "replied", "dropoff",
})  # fmt: skip
# `days_to_x` ends with x, `days_since_x` begins with it.
_TO = frozenset({"to", "until", "till", "before"})
_SINCE = frozenset({"since", "after", "from"})
# What the day of the run ends, and what it begins.
_PAST = frozenset({"since", "age", "old", "ago", "tenure"})
_FUTURE = frozenset({"until", "till", "remaining"})
# What is left of pluses and minuses, and what is the same without signs.
_NET = frozenset({"net", "balance"})
_SIZES = frozenset({"abs", "absolute", "gross", "turnover", "volume"})
# Words of what has come together since the beginning.
_RUNNING = (
    ("cumulative",), ("cumulated",), ("running", "total"), ("running", "sum"), ("lifetime",),
    ("on", "hand"), ("to", "date"), ("all", "time"), ("so", "far"),
)  # fmt: skip
_ZONES_OF_UTC = frozenset({"UTC", "ETC/UTC", "GMT", "Z", "+00:00"})
_SHORTEST = 4
_DURATIONS = (exp.DateDiff, exp.TimestampDiff, exp.DatetimeDiff, exp.MonthsBetween)
_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})


@on_model
class MisnamedColumn(ModelRule):
    """A reader trusts a column's name, and nobody sees that its value is another one."""

    spec = find_rule("misnamed-column")

    @cached_property
    def _types(self) -> ModelValueTypes:
        return ModelValueTypes(self.project.by_table, self.project.queries)

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        found: dict[str, tuple[str, str]] = {}
        for select in query.root.selects:
            for name, item in select.results:
                why = (
                    self._describe_extreme(select, name, item)
                    or _describe_negative_days(name, item)
                    or _describe_other_unit(name, item)
                    or _describe_other_place(name, item)
                    or _describe_lost_signs(name, item)
                    or _describe_other_zone(name, item)
                    or describe_misnamed_formula(select, name, item, self.project.by_table)
                )
                if why is not None:
                    found[name] = why
        for name, (what, clears) in found.items():
            yield self.make_observation(
                model, f"`{name}` {what}.", clears, subject=[name], anchors=(name,)
            )
        yield from self._observe_first_row(model, query)
        yield from self._observe_totals_of_an_interval(model, query)

    def _describe_extreme(
        self, select: ScopedSelect, name: str, item: exp.Expr
    ) -> tuple[str, str] | None:
        """Describes a MIN or MAX whose column name means the opposite.

        A MIN is called the last one, a MAX is called the first one, or the "last" text is the one
        at the end of the alphabet. None if the name fits.
        """
        node = enter_casts(item)
        if not isinstance(node, exp.Min | exp.Max) or not isinstance(node.this, exp.Column):
            return None
        words = frozenset(split_column_name_into_words(name))
        read = frozenset(split_column_name_into_words(node.this.name))
        if read & _ANY_ORDER:
            return None
        function = type(node).__name__.upper()
        against = words & _OPPOSITES[type(node)]
        if against and not words & _OPPOSITES[exp.Max if function == "MIN" else exp.Min]:
            return (
                f"is called the {min(against)} one and is {function} of `{node.this.name}`",
                f"{'MAX' if function == 'MIN' else 'MIN'} is used, or the column has another name",
            )
        if not words & (_NEWEST | _EARLY) or (words | read) & _TIMES:
            return None
        kind = self._types.find_type(select, node.this)
        if kind is None or kind.this not in exp.DataType.TEXT_TYPES:
            return None
        return (
            f"is called the {min(words & (_NEWEST | _EARLY))} one and is {function} of the text "
            f"`{node.this.name}`: the one at the {'end' if function == 'MAX' else 'beginning'} of "
            "the alphabet",
            "MAX_BY or MIN_BY with the column that says when",
        )

    def _observe_first_row(self, model: Model, query: ModelQuery) -> Iterator[RuleObservation]:
        """Observes a pick of the oldest row in a model called the latest, or the reverse."""
        numbered = [
            (select, window)
            for select in query.root.selects
            for window in select.find_all(exp.Window)
            if isinstance(window.this, exp.RowNumber)
        ]
        words = frozenset(split_column_name_into_words(model.name.rpartition(".")[2]))
        is_newest, is_oldest = bool(words & _NEWEST), bool(words & _EARLY)
        if len(numbered) != 1 or is_newest == is_oldest or not _picks_first_row(query):
            return
        select, window = numbered[0]
        order = window.args.get("order")
        first = order.expressions[0] if order is not None and order.expressions else None
        column = first.this if isinstance(first, exp.Ordered) else None
        if first is None or not isinstance(column, exp.Column):
            return
        if (
            not self._types.is_time(select, column, _TIMES)
            or bool(first.args.get("desc")) == is_newest
        ):
            return
        picked = "oldest" if is_newest else "newest"
        yield self.make_observation(
            model,
            f"The model is called the {min(words & (_NEWEST if is_newest else _EARLY))} one and "
            f"keeps the {picked} row: ROW_NUMBER is ordered by `{column.name}` "
            f"{'ascending' if is_newest else 'descending'}.",
            f"the order is {'DESC' if is_newest else 'ASC'}, or the model has another name",
            subject=[f"row by {column.name}"],
            anchors=("ROW_NUMBER", "ORDER BY"),
        )

    def _observe_totals_of_an_interval(
        self, model: Model, query: ModelQuery
    ) -> Iterator[RuleObservation]:
        """Observes totals of each interval that are called totals since the beginning."""
        if not model.kind.is_incremental_by_time_range or not mentions_interval(query):
            return
        time = model.time_column.column.name.lower() if model.time_column else ""
        for branch in query.root.branches:
            if branch.find_result(time) not in branch.list_group_keys():
                continue
            for name, item in branch.results:
                running = _find_running_words(name)
                added = enter_casts(item)
                if not running or not isinstance(added, exp.Sum | exp.Count):
                    continue
                # A table with a row for each day may hold the stock or the running total itself.
                if any(_find_running_words(one.name) for one in added.find_all(exp.Column)):
                    continue
                yield self.make_observation(
                    model,
                    f"`{name}` means a total since the beginning ({' '.join(running)}), and adds "
                    f"up the rows of each `{time}` alone.",
                    "a FULL model adds up the days with SUM OVER (ORDER BY ...), or the column has "
                    "another name",
                    subject=[name],
                    anchors=(name,),
                )


def _find_running_words(name: str) -> tuple[str, ...]:
    """Finds words in a name that mean a total since the beginning; empty without them."""
    words = split_column_name_into_words(name)
    return next(
        (
            wanted
            for wanted in _RUNNING
            for place in range(len(words))
            if tuple(words[place : place + len(wanted)]) == wanted
        ),
        (),
    )


def _describe_negative_days(name: str, item: exp.Expr) -> tuple[str, str] | None:
    """Describes a time from the end to the start, which is below zero."""
    span = _find_span(item)
    if span is None or any(len(columns) > 1 for columns in span):
        return None
    end, start = (
        split_column_name_into_words(columns[0].name) if columns else None for columns in span
    )
    if end is not None and start is not None:
        # The next start is after the end before it.
        is_backwards = "next" not in end and not (
            _STARTS.isdisjoint(end) or _ENDS.isdisjoint(start)
        )
        is_backwards = is_backwards or _is_said_of(name, _TO, start, end)
        is_backwards = is_backwards or _is_said_of(name, _SINCE, end, start)
    else:
        # One end is the day of the run.
        words = frozenset(split_column_name_into_words(name))
        is_past, is_future = not words.isdisjoint(_PAST), not words.isdisjoint(_FUTURE)
        is_backwards = is_past != is_future and is_past == (start is None)
    if not is_backwards:
        return None
    shown = [columns[0].name if columns else "the day of the run" for columns in span]
    return (
        f"counts backwards: it is the time from `{shown[1]}` to `{shown[0]}`, which is below zero",
        "the ends are the other way round: DATEDIFF takes the end first, and TIMESTAMPDIFF the "
        "start",
    )


def _describe_other_unit(name: str, item: exp.Expr) -> tuple[str, str] | None:
    """Describes days that are called hours, and the like."""
    node = enter_casts(item)
    while isinstance(node, exp.Avg | exp.Max | exp.Min):
        node = enter_casts(node.this)
    if not isinstance(node, _DURATIONS):
        return None
    unit = node.text("unit").upper() or ("MONTH" if isinstance(node, exp.MonthsBetween) else "DAY")
    named = {make_singular(word).upper() for word in split_column_name_into_words(name)} & _UNITS
    if len(named) != 1 or unit in named or unit not in _UNITS:
        return None
    return (
        f"is called by the {min(named).lower()} and counts by the {unit.lower()}",
        "the unit is that of the name, or the column has another name",
    )


def _describe_other_place(name: str, item: exp.Expr) -> tuple[str, str] | None:
    """Describes the second element of an array that is called the first one."""
    node = enter_casts(item)
    is_second = (
        isinstance(node, exp.Bracket)
        and not node.args.get("offset")
        and [one.name for one in node.expressions] == ["1"]
    )
    if not is_second or "first" not in split_column_name_into_words(name):
        return None
    return (
        "is called the first one and is the second: Spark counts the elements in brackets from 0",
        "it is [0], or ELEMENT_AT(..., 1)",
    )


def _describe_lost_signs(name: str, item: exp.Expr) -> tuple[str, str] | None:
    """Describes a sum of sizes that is called a net amount."""
    words = split_column_name_into_words(name)
    node = enter_casts(item)
    while isinstance(node, exp.Round | exp.Coalesce):
        node = enter_casts(node.this)
    added = enter_casts(node.this) if isinstance(node, exp.Sum) else None
    if not isinstance(added, exp.Abs) or _NET.isdisjoint(words) or not _SIZES.isdisjoint(words):
        return None
    read = list_words_of_columns(added)
    if not _NET.isdisjoint(read):
        return None
    return (
        "is called a net amount and adds up sizes: ABS makes what is taken away a plus",
        "SUM reads the amounts with their signs, or the column has another name",
    )


def _describe_other_zone(name: str, item: exp.Expr) -> tuple[str, str] | None:
    """Describes a time of a zone that is called UTC, and one of UTC that is called local."""
    node = enter_casts(item)
    if not isinstance(node, exp.FromTimeZone | exp.AtTimeZone):
        return None
    words = split_column_name_into_words(name)
    zone = node.args.get("zone")
    if zone is None or zone.name.upper() in _ZONES_OF_UTC:
        return None
    if isinstance(node, exp.FromTimeZone) and "local" in words and "utc" not in words:
        return (
            "is called local and is a time of UTC: TO_UTC_TIMESTAMP takes its argument for a "
            "local time",
            "it is FROM_UTC_TIMESTAMP, or the column has another name",
        )
    if isinstance(node, exp.AtTimeZone) and "utc" in words and "local" not in words:
        return (
            "is called UTC and is a local time: FROM_UTC_TIMESTAMP takes its argument for a time "
            "of UTC",
            "it is TO_UTC_TIMESTAMP, or the column has another name",
        )
    return None


def _find_span(item: exp.Expr) -> tuple[list[exp.Column], list[exp.Column]] | None:
    """Finds the columns of the end and of the start of a duration, through aggregates."""
    node = enter_casts(item)
    while isinstance(node, exp.Avg | exp.Sum | exp.Max | exp.Min | exp.Div | exp.Round | exp.Floor):
        node = enter_casts(node.this)
    is_time = all(
        isinstance(one, exp.StrToUnix | exp.UnixSeconds) for one in node.iter_expressions()
    )
    if not isinstance(node, _DURATIONS) and not (isinstance(node, exp.Sub) and is_time):
        return None
    end, start = (list(side.find_all(exp.Column)) for side in (node.this, node.expression))
    return (end, start) if end or start else None


def _is_said_of(
    name: str, before: frozenset[str], one: Sequence[str], other: Sequence[str]
) -> bool:
    """Whether a name says that a duration ends, or begins, with one column and not with the other:
    `days_to_issue` ends with `issued_on`."""
    words = split_column_name_into_words(name)
    for place, word in enumerate(words[:-1]):
        if word in before:
            return _begins_alike(words[place + 1], one) and not _begins_alike(
                words[place + 1], other
            )
    return False


def _begins_alike(word: str, words: Sequence[str]) -> bool:
    return len(word) >= _SHORTEST and any(one.startswith(word[:_SHORTEST]) for one in words)


def _picks_first_row(query: ModelQuery) -> bool:
    """Whether a condition keeps the rows with the number 1."""
    return any(
        isinstance(side, exp.Literal) and side.name == "1" and not side.is_string
        for node in query.tree.find_all(exp.EQ)
        if node.find_ancestor(exp.Where, exp.Qualify, exp.Join) is not None
        for side in (node.this, node.expression)
    )
