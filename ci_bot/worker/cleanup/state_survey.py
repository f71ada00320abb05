"""What a state says of prod's gaps, of tables that nobody reads, and of estimates. Read-only.

Only the state is read: prod's own versions of its models, as `sqlmesh run` would take them, and the
rows beside them. No file of the project is loaded, and Spark is not started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ci_bot.protocol.drift_report import (
    MOST_LISTED,
    LastingEnvironment,
    MissedEstimate,
    StateSurvey,
    UnusedTables,
)
from ci_bot.protocol.environment import means_prod, number_of
from ci_bot.protocol.plan import ModelRange
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import names_and_times
from ci_bot.worker.state_store import ApplyRow, CostLedger

_DAY = 86_400_000
# A run of the night has until the next night.
GRACE = _DAY
_NEWEST_APPLIES = 200
_APPLIES_OF = 30 * _DAY
# Below it a factor says more of Spark's start than of the estimate.
_WORTH_A_WORD_HOURS = 0.1
_OFF = 2.0


def survey_state(state: Any, *, prefix: str, now: int | None = None) -> StateSurvey:
    """Describes what the state holds besides the environments of pull requests.

    Args:
        state: Of SQLMesh, opened for reading.
        prefix: Of pull requests' environments, which are left out here.
        now: In milliseconds; the clock's time without it.
    """
    moment = names_and_times.now_milliseconds() if now is None else now
    missing = sqlmesh_compat.missing_in_prod(state, moment - GRACE)
    behind = sorted(missing.items(), key=lambda item: (item[1][0], item[0]))
    unused = Counter(
        item.name.replace('"', "").replace("`", "")
        for item in sqlmesh_compat.unused_versions(state)
        if item.ended_ts < moment
    )
    applies = [row for row in _list_applies(state, moment) if row.expected_hours is not None]
    return StateSurvey(
        behind=[
            ModelRange(
                model=name,
                start=names_and_times.format_iso(start),
                end=names_and_times.format_iso(end),
            )
            for name, (start, end) in behind[:MOST_LISTED]
        ],
        behind_models=len(behind),
        lasting=list(_list_lasting(state, prefix, moment))[:MOST_LISTED],
        unused=[
            UnusedTables(model=model, versions=count)
            for model, count in sorted(unused.items())[:MOST_LISTED]
        ],
        unused_versions=sum(unused.values()),
        estimates=[
            MissedEstimate(
                environment=row.environment,
                at=row.at,
                expected_hours=row.expected_hours or 0.0,
                used_hours=row.allocated_hours,
            )
            for row in applies
            if is_estimate_off(row.expected_hours or 0.0, row.allocated_hours)
        ][:MOST_LISTED],
        applies=len(applies),
    )


def is_estimate_off(expected: float, used: float) -> bool:
    """Whether an apply cost at least twice as much as expected, or half of it; in hours."""
    low, high = sorted((expected, used))
    return high >= _WORTH_A_WORD_HOURS and high >= _OFF * low


def _list_lasting(state: Any, prefix: str, now: int) -> Iterator[LastingEnvironment]:
    """Environments of people that never expire, or have expired and are still there."""
    for item in sorted(state.get_environments_summary(), key=lambda item: str(item.name)):
        name = str(item.name)
        expires = item.expiration_ts
        if means_prod(name) or number_of(name, prefix) or (expires is not None and expires > now):
            continue
        yield LastingEnvironment(
            environment=name,
            expires_at=None if expires is None else names_and_times.format_iso(expires),
        )


def _list_applies(state: Any, now: int) -> list[ApplyRow]:
    """Applies of the last 30 days that ended well; a probe says nothing of the whole."""
    since = now - _APPLIES_OF
    rows = CostLedger(sqlmesh_compat.state_adapter_of(state)).list_applies(newest=_NEWEST_APPLIES)
    return [
        row
        for row in rows
        if row.outcome == "applied" and names_and_times.to_milliseconds(row.at) >= since
    ]
