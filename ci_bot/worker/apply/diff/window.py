"""The range of time that both sides have, and the condition that selects it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from ci_bot.contracts.documents.apply import DiffWindow
from ci_bot.worker.apply.diff.spark_types import SparkType
from ci_bot.worker.apply.diff.spec import Interval

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DAY = 86_400_000


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same moments in order, intervals that touch joined, empty ones gone."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def shared(prod: Iterable[Interval], pr: Iterable[Interval]) -> list[Interval]:
    """The intervals that both sides have. A gap on either side is a gap here."""
    common = [
        (max(start, other_start), min(end, other_end))
        for start, end in merged(prod)
        for other_start, other_end in merged(pr)
    ]
    return merged(common)


def span(column: str, intervals: Sequence[Interval]) -> DiffWindow | None:
    """From the first start to the last end, as the report shows it; None where there is nothing."""
    known = merged(intervals)
    if not known:
        return None
    return DiffWindow(column=column, start=_iso(known[0][0]), end=_iso(known[-1][1]))


def condition(column: str, kind: SparkType, intervals: Sequence[Interval], form: str) -> str | None:
    """A condition on `column` (SQL text) that holds within the intervals.

    Args:
        kind: The column's type. Timestamps are compared in UTC, which is SQLMesh's clock.
        form: The model's time format (as for `strftime`), for text and whole numbers.

    Returns:
        None where a column of this type holds no time.
    """
    ranges = []
    for start, end in merged(intervals):
        first, last = _literal(start, kind, form), _literal(end, kind, form)
        if first is None or last is None:
            return None
        ranges.append(f"({column} >= {first} AND {column} < {last})")
    return " OR ".join(ranges) if ranges else None


def _literal(moment: int, kind: SparkType, form: str) -> str | None:
    when = _moment(moment)
    if kind.name == "date":
        # A date stands for its midnight, so the first one at or after the moment is the bound.
        return f"DATE '{_moment(-(-moment // _DAY) * _DAY):%Y-%m-%d}'"
    if kind.name == "timestamp":
        return f"TIMESTAMP '{when:%Y-%m-%d %H:%M:%S.%f}+00:00'"
    if kind.name == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{when:%Y-%m-%d %H:%M:%S.%f}'"
    text = when.strftime(form)
    if kind.name in ("string", "varchar", "char"):
        return literal(text)
    if kind.name in ("int", "bigint") and text.isascii() and text.isdigit():
        return str(int(text))
    return None


def literal(text: str) -> str:
    """A text literal of Spark SQL, with quotes and backslashes escaped."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _moment(milliseconds: int) -> datetime:
    # timedelta, because datetime.fromtimestamp refuses years before 1970 on some systems.
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _iso(milliseconds: int) -> str:
    when = _moment(milliseconds)
    return when.strftime("%Y-%m-%dT%H:%M:%S") + (f".{when:%f}Z" if when.microsecond else "Z")
