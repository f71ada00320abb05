"""Numbers, times and the words of the field, as people read them. All text here is ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from ci_bot.contracts import durations
from ci_bot.contracts.documents.plan import Decision

duration, executor_time = durations.duration, durations.executor_time
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_THOUSAND = 1000

DECISIONS: dict[Decision, str] = {
    "go": "Go",
    "review": "Review",
    "no_go": "No-Go",
    "no_changes": "No model changes",
}
DECISION_ICONS: dict[Decision, str] = {
    "go": "🟢",
    "review": "🟡",
    "no_go": "🔴",
    "no_changes": "⚪",
}
SEVERITY_ICONS = {"blocker": "🔴", "high": "🟠", "medium": "🟡", "low": "🔵", "info": "⚪"}
CHANGES = {
    "added": "added",
    "removed": "removed",
    "direct": "modified",
    "indirect": "downstream",
    "metadata": "metadata only",
}
HOW_CHANGED = {
    "dropped": "dropped",
    "retyped": "another type",
    "computed": "computed differently",
    "added": "new",
    "reordered": "another order of columns",
    "rows": "other rows",
    "unknown": "cannot be known",
}
CATEGORIES = {
    "breaking": "breaking",
    "non_breaking": "non-breaking",
    "forward_only": "forward-only",
    "indirect_breaking": "indirect breaking",
    "indirect_non_breaking": "indirect non-breaking",
    "metadata": "metadata",
    "uncategorized": "not categorized",
}
ACTIONS = {
    "full_refresh": "full refresh",
    "recreate_view": "view",
    "incremental": "incremental",
    "seed": "seed",
}
KINDS = {
    "INCREMENTAL_BY_TIME_RANGE": "incremental by time",
    "INCREMENTAL_BY_UNIQUE_KEY": "incremental by key",
    "INCREMENTAL_BY_PARTITION": "incremental by partition",
    "INCREMENTAL_UNMANAGED": "incremental unmanaged",
    "FULL": "full",
    "VIEW": "view",
    "SEED": "seed",
    "SCD_TYPE_2": "SCD type 2",
    "SCD_TYPE_2_BY_TIME": "SCD type 2 by time",
    "SCD_TYPE_2_BY_COLUMN": "SCD type 2 by column",
    "EMBEDDED": "embedded",
    "EXTERNAL": "external",
    "MANAGED": "managed",
    "CUSTOM": "custom",
}

# Why there is no plan where SQLMesh was not heard to the end, by reason code. What the project does
# is then not known: not even whether it loads.
CUT_OFF: Mapping[str, str] = {
    "answer_refused": "the worker's answer was refused",
    "bad_policy": "the team's policy cannot be used",
    "memory_limit": "the worker needed more memory than it may have",
    "timeout": "the run was not over when its time was",
    "worker_crashed": "the worker ended before it could answer",
    "worker_failed": "the worker ended before it could answer",
    "worker_not_started": "the worker could not be started",
}


def number(value: float) -> str:
    """`value` with thousands separators; one decimal where it is small and not whole."""
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"


def and_more(items: Sequence[object], shown: int, more: int = 0) -> str:
    """The end of a list that is cut after `shown` items, with `more` that it does not hold."""
    rest = max(len(items) - shown, 0) + more
    return f" and {number(rest)} more" if rest else ""


def count(value: int, noun: str) -> str:
    """ "1 model", "2 models", "0 models"."""
    return f"{number(value)} {plural(value, noun)}"


def plural(value: int, noun: str) -> str:
    """`noun` in the number that `value` asks for; the last word is the one that changes."""
    if value == 1:
        return noun
    if noun.endswith(("ch", "sh", "s", "x")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def size(value: int) -> str:
    """Bytes in decimal units: "512 bytes", "1.2 GB"."""
    amount = float(value)
    for unit in _UNITS:
        if amount < _THOUSAND or unit == _UNITS[-1]:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= _THOUSAND
    raise AssertionError("unreachable: the last unit always returns")


def money(value: float, currency: str | None = None) -> str:
    """An amount, with its currency where that was said: "14.20 EUR"."""
    return f"{value:,.2f} {currency}" if currency else f"{value:,.2f}"


def percent(rate: float) -> str:
    """A rate as a percentage; never "100 %" unless it is exactly that, and never "0 %" either."""
    if rate in (0.0, 1.0):
        return f"{rate:.0%}".replace("%", " %")
    shown = min(max(rate * 100, 0.01), 99.99)
    return f"{shown:.2f}".rstrip("0").rstrip(".") + " %"


def moment(timestamp: str) -> datetime:
    """The time of a contract's timestamp."""
    return durations.read_time(timestamp).astimezone(timezone.utc)


def clock(timestamp: str, now: str | None = None) -> str:
    """ "10:14 UTC" on the day of `now`, otherwise with the date."""
    then = moment(timestamp)
    if now is not None and moment(now).date() == then.date():
        return f"{then:%H:%M} UTC"
    return f"{then:%Y-%m-%d %H:%M} UTC"


def day(timestamp: str) -> str:
    """The date, with the time of day where that is not midnight."""
    then = moment(timestamp)
    return f"{then:%Y-%m-%d}" if then == _midnight(then) else f"{then:%Y-%m-%d %H:%M}"


def _midnight(then: datetime) -> datetime:
    return then.replace(hour=0, minute=0, second=0, microsecond=0)


def last_day(end: str) -> str:
    """An exclusive end as the reader counts: the last day that is included, or the moment."""
    then = moment(end)
    if then == _midnight(then):
        return f"{then - timedelta(days=1):%Y-%m-%d}"
    return f"{then:%Y-%m-%d %H:%M}"


def window(start: str | None, end: str | None) -> str:
    """ "2024-01-01 → 2024-03-31", both days included; "–" where nothing is bounded."""
    if start is None and end is None:
        return "–"
    first = day(start) if start else "the beginning"
    last = last_day(end) if end else "now"
    # No-break spaces keep a window on one line of a narrow table.
    return first if first == last else f"{first}\u00a0→\u00a0{last}"


def span(windows: list[tuple[str | None, str | None]]) -> str | None:
    """The window that covers all of `windows`; None where none of them is bounded."""
    starts = [start for start, _ in windows if start]
    ends = [end for _, end in windows if end]
    if not starts or not ends:
        return None
    return window(min(starts, key=moment), max(ends, key=moment))


def bar(done: int, total: int, width: int = 24) -> str:
    """A bar of text for `done` of `total`; full only when all is done."""
    filled = width if total and done >= total else min(width * done // max(total, 1), width - 1)
    return "█" * filled + "░" * (width - filled)
