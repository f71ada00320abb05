"""Mistakes in the order of time: the row before, the ends of ranges, and dates as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import (
    PERCENT_WORDS,
    VALUE_WRAPPERS,
    drop_hundred,
    read_constant_number_or_day,
)
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.sql import ModelQuery, ScopedSelect, enter_expression, table_name

_SHARES = PERCENT_WORDS | {"share", "ratio"}
_RUNNING = frozenset({
    "cumulative", "cumulated", "running", "cum", "to", "date", "far", "ytd", "mtd", "qtd",
    "rolling", "growth",
})  # fmt: skip
_GROWTH = frozenset({"growth", "change", "delta", "increase", "gain"})
_AHEAD = frozenset({"next", "until", "following", "forward", "churn", "loss", "decline"})
_BEFORE = frozenset({"previous", "prev", "prior"})
_TIMES = frozenset({"day", "date", "week", "month", "quarter", "year", "at", "on", "ts", "time"})
_VISITS = frozenset({"session", "sessions", "visits", "trips", "streaks"})
_OPEN_ENDS = frozenset({
    "closed", "ended", "finished", "completed", "resolved", "delivered", "shipped", "returned",
    "paid", "settled", "replied", "reply",
})  # fmt: skip
_WRAPPERS = (*VALUE_WRAPPERS, exp.Nullif)
_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_HANDLING_NULL = (exp.Coalesce, exp.Case, exp.If, exp.Or, exp.Is)
_MOST_LEVELS = 4
_DAY_TEXT = re.compile(r"\d{4}-\d\d-\d\d")
_PARTS = re.compile(r"%-?([A-Za-z])")
_NAMES_OF_TIME = frozenset("bBaA")
_LARGER_LAST = re.compile(r"%-?[dm].*%-?[Yy]|%-?d.*%-?m")


def iterate_order_slips(
    query: ModelQuery, project: ProjectView, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields what takes one moment for another, or loses the first or the last one."""
    for select in query.root.selects:
        for name, item in select.results:
            words = frozenset(split_column_name_into_words(name))
            if words & _SHARES and not words & _RUNNING:
                yield from _iterate_running_shares(select, item, origins)
            if words & _GROWTH and not words & _AHEAD:
                yield from _iterate_growth(select, item, origins, types)
            if words & _BEFORE and _reads_later_row(select, item.unnest(), types):
                yield QuerySlip(
                    item,
                    f"reads the row after this one in time, and `{name}` is called the one before",
                    "LAG in ascending order reads the row before",
                )
            if words & _VISITS:
                yield from _iterate_uncounted_firsts(select, item, origins)
        yield from _iterate_dates_ordered_as_texts(select, origins)
        yield from _iterate_lost_last_days(select)
        yield from _iterate_hours_of_dates(select, types)
        yield from _iterate_open_ends_in_time(select, project)


def _find_window(select: ScopedSelect, node: exp.Expr, origins: ValueOrigins) -> exp.Window | None:
    """Finds the window function that makes a value, through columns of queries below."""
    _, made = origins.find_expression(select, enter_expression(node, *_WRAPPERS))
    window = enter_expression(made, *_WRAPPERS)
    return window if isinstance(window, exp.Window) else None


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether two values are the same one, or columns with one name."""
    sides = [enter_expression(side, *_WRAPPERS) for side in (one, other)]
    if all(isinstance(side, exp.Column) for side in sides):
        return sides[0].name.lower() == sides[1].name.lower()
    return sides[0] == sides[1]


def _iterate_running_shares(
    select: ScopedSelect, item: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields a part of a total that only reaches to the current row."""
    for node in item.find_all(exp.Div):
        window = _find_window(select, node.expression, origins)
        order = window.args.get("order") if window is not None else None
        if window is None or order is None or window.args.get("spec") is not None:
            continue
        by = window.args.get("partition_by") or []
        if all(one.this in by for one in order.expressions):
            continue  # all rows of the partition are equal in this order
        if isinstance(window.this, exp.Sum) and _is_same(drop_hundred(node.this), window.this.this):
            yield QuerySlip(
                node,
                "divides by a running total: with ORDER BY, SUM adds up only the rows so far, so "
                "the first share is always 1",
                "the SUM of the whole has no ORDER BY",
            )


def _reads_later_row(select: ScopedSelect, node: exp.Expr, types: ModelValueTypes) -> bool:
    """Whether a value is LAG in descending order of time, or LEAD in ascending order."""
    if not isinstance(node, exp.Window) or node.args.get("order") is None:
        return False
    function = enter_expression(node.this, exp.IgnoreNulls, exp.RespectNulls)
    first = node.args["order"].expressions[0]
    if not isinstance(function, exp.Lag | exp.Lead) or not isinstance(first.this, exp.Column):
        return False
    kind = types.find_type(select, first.this)
    is_time = not _TIMES.isdisjoint(split_column_name_into_words(first.this.name))
    if kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES:
        is_time = True
    return is_time and isinstance(function, exp.Lag) == bool(first.args.get("desc"))


def _iterate_growth(
    select: ScopedSelect, item: exp.Expr, origins: ValueOrigins, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields growth from the later row to this one, and growth as a part of the new value."""
    for node in item.find_all(exp.Sub):
        below, made = origins.find_expression(select, enter_expression(node.expression, *_WRAPPERS))
        window = enter_expression(made, *_WRAPPERS)
        if not isinstance(window, exp.Window):
            continue
        function = enter_expression(window.this, exp.IgnoreNulls, exp.RespectNulls)
        if not isinstance(function, exp.Lag | exp.Lead) or not _is_same(node.this, function.this):
            continue
        if _reads_later_row(below, window, types):
            yield QuerySlip(
                node,
                "takes the later value from this one: growth is below zero, and a loss above it",
                "LAG in ascending order of time reads the value before",
            )
            continue
        whole = node.parent
        while isinstance(whole, (*VALUE_WRAPPERS, exp.Mul)):
            whole = whole.parent
        is_part = isinstance(whole, exp.Div) and whole.expression.find(exp.Sub) is None
        if (
            isinstance(whole, exp.Div)
            and is_part
            and isinstance(function, exp.Lag)
            and _is_same(whole.expression, node.this)
        ):
            yield QuerySlip(
                whole,
                "divides growth by the new value: from 100 to 200 is 50% then, and not 100%",
                "it is divided by the value before",
            )


def _reads_row_before(
    select: ScopedSelect, node: exp.Expr, origins: ValueOrigins, depth: int = 0
) -> bool:
    """Whether a value is NULL in the first row, because it reads LAG without a default."""
    if depth >= _MOST_LEVELS or node.find(*_HANDLING_NULL) is not None:
        return False
    for lag in node.find_all(exp.Lag):
        return lag.args.get("default") is None
    for column in node.find_all(exp.Column):
        below, made = origins.find_expression(select, column)
        if made is not column and _reads_row_before(below, made, origins, depth + 1):
            return True
    return False


def _iterate_uncounted_firsts(
    select: ScopedSelect, item: exp.Expr, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields counts of gaps that leave out the first session, which has no row before it."""
    total = enter_expression(item, *VALUE_WRAPPERS)
    if not isinstance(total, exp.Sum | exp.CountIf):
        return
    below, made = origins.find_expression(select, total.this)
    condition = made.unnest()
    if isinstance(condition, exp.Case) and len(condition.args["ifs"]) == 1:
        branch = condition.args["ifs"][0]
        other = condition.args.get("default")
        is_flag = read_constant_number_or_day(branch.args.get("true")) == 1
        if not is_flag or (other is not None and read_constant_number_or_day(other) != 0):
            return
        condition = branch.this.unnest()
    if isinstance(condition, exp.GT | exp.GTE) and _reads_row_before(below, condition, origins):
        yield QuerySlip(
            total,
            "does not count the first one: there is no row before it, so the difference is NULL "
            "and not above the limit",
            "LAG IS NULL counts, too",
        )


def _find_unsorted_text(
    select: ScopedSelect, node: exp.Expr | None, origins: ValueOrigins
) -> exp.TimeToStr | None:
    """Finds a date as a text that sorts in another order than the dates."""
    if node is None:
        return None
    _, made = origins.find_expression(select, enter_expression(node, exp.Paren))
    if not isinstance(made, exp.TimeToStr) or not isinstance(made.args.get("format"), exp.Literal):
        return None
    pattern = made.text("format")
    parts = _PARTS.findall(pattern)
    is_named = bool(parts) and parts[0] in _NAMES_OF_TIME and not {"a", "A"} & set(parts)
    return made if is_named or _LARGER_LAST.search(_drop_sorted_start(pattern)) else None


def _drop_sorted_start(pattern: str) -> str:
    """Returns a pattern without the year and the month at its start, which sort as time."""
    return re.sub(r"^%Y\W?(%m\W?)?", "", pattern)


def _iterate_dates_ordered_as_texts(
    select: ScopedSelect, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    for node in select.find_all(exp.Ordered, *_COMPARED):
        sides = [node.this, node.expression] if isinstance(node, _COMPARED) else [node.this]
        texts = [_find_unsorted_text(select, side, origins) for side in sides]
        text = next((one for one in texts if one is not None), None)
        if text is None:
            continue
        yield QuerySlip(
            text if isinstance(node, exp.Ordered) else node,
            "compares dates as texts, which sort by their first letters: 31.01.2023 is after "
            "01.02.2024, and April before March",
            "the date itself is compared, or its text begins with the year (yyyy-MM-dd)",
        )


def _read_day(node: exp.Expr) -> date | None:
    text = read_constant_number_or_day(node)
    if not isinstance(text, str) or not _DAY_TEXT.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _iterate_lost_last_days(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields ranges from the first of a month that end before the last day of one."""
    starts = {_read_day(node.expression): node for node in select.find_all(exp.GTE)}
    for node in select.find_all(exp.LT):
        end = _read_day(node.expression)
        if end is None or end in starts or (end + timedelta(days=1)).day != 1:
            continue
        top: exp.Expr = node
        while isinstance(top.parent, exp.And | exp.Paren):
            top = top.parent
        for part in top.flatten() if isinstance(top, exp.And) else ():
            low = part.unnest()
            start = _read_day(low.expression) if isinstance(low, exp.GTE) else None
            if start is not None and start.day == 1 and start < end and low.this == node.this:
                yield QuerySlip(
                    node,
                    f"leaves out {end.isoformat()}, the last day of the range that begins at "
                    f"{start.isoformat()}",
                    f"it is < {(end + timedelta(days=1)).isoformat()}",
                )


def _iterate_hours_of_dates(select: ScopedSelect, types: ModelValueTypes) -> Iterator[QuerySlip]:
    """Yields the hour of what is a date, which is always 0."""
    for node in select.find_all(exp.Hour, exp.Extract, exp.TimestampTrunc, exp.TimeToStr):
        value = node.expression if isinstance(node, exp.Extract) else node.this
        if isinstance(node, exp.Extract) and node.this.name.upper() != "HOUR":
            continue
        if isinstance(node, exp.TimestampTrunc) and node.text("unit").upper() != "HOUR":
            continue
        pattern = node.text("format") if isinstance(node, exp.TimeToStr) else "%H"
        if "%H" not in pattern or "%d" in pattern:
            continue
        value = enter_expression(value, exp.Paren, exp.TimeStrToTime, exp.Timestamp)
        while isinstance(value, exp.Cast) and value.to.this in exp.DataType.TEMPORAL_TYPES:
            if value.to.this == exp.DataType.Type.DATE:
                break
            value = value.this.unnest()
        kind = types.find_type(select, value)
        if kind is not None and kind.this == exp.DataType.Type.DATE:
            yield QuerySlip(
                node,
                "is the hour of a date, which is always midnight",
                "the hour is read from the timestamp",
            )


def _iterate_open_ends_in_time(select: ScopedSelect, project: ProjectView) -> Iterator[QuerySlip]:
    """Yields flags that call what has not ended in time, because its duration is NULL."""
    for node in select.find_all(exp.Case):
        branches = node.args.get("ifs") or []
        if len(branches) != 1 or node.args.get("default") is None or node.this is not None:
            continue
        condition = branches[0].this.unnest()
        is_good = read_constant_number_or_day(node.args["default"]) == 1
        is_good = is_good and read_constant_number_or_day(branches[0].args["true"]) == 0
        if not is_good or not isinstance(condition, exp.GT | exp.GTE):
            continue
        span = enter_expression(condition.this, exp.Paren, exp.Cast)
        if not isinstance(span, exp.Sub | exp.DateDiff | exp.TimestampDiff):
            continue
        ends = list(span.this.find_all(exp.Column))
        if len(ends) != 1 or span.find(exp.Coalesce) or not span.expression.find(exp.Column):
            continue
        if _OPEN_ENDS.isdisjoint(split_column_name_into_words(ends[0].name)):
            continue
        if not _is_never_open(select, ends[0], project):
            yield QuerySlip(
                node,
                f"counts what has no `{ends[0].name}` yet as in time: its duration is NULL, and "
                "that falls into ELSE",
                f"a branch before says what a NULL of `{ends[0].name}` means, or WHERE leaves it "
                "out",
            )


def _is_never_open(select: ScopedSelect, end: exp.Column, project: ProjectView) -> bool:
    """Whether a filter, or an audit of the table, may leave out what has not ended."""
    name = end.name.lower()
    source = select.find_source(end)
    if not isinstance(source, exp.Table):
        return True
    for part in select.node.root().find_all(exp.Where, exp.Filter, exp.Having):
        if any(one.name.lower() == name for one in part.find_all(exp.Column)):
            return True
        texts = {one.name.lower() for one in part.find_all(exp.Literal) if one.is_string}
        if texts & _OPEN_ENDS:
            return True
    model = project.by_table.get(table_name(source))
    audits = model.audits if model is not None else ()
    return any(
        audit.lower() == "not_null" and name in str(arguments).lower()
        for audit, arguments in audits
    )
