"""A survey of the state: prod's gaps, tables that nobody reads, and estimates. Read-only.

It reads only the state: prod's versions of its models, as `sqlmesh run` uses them, and the ledger.
No file of the project is loaded, and Spark is not started.
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
from ci_bot.protocol.environment import is_prod_name, read_pull_number
from ci_bot.protocol.plan import ModelRange
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import names_and_times
from ci_bot.worker.state_store import ApplyRow, CostLedger

_DAY = 86_400_000
# A nightly run may be late until the next night.
GRACE = _DAY
_NEWEST_APPLIES = 200
_APPLIES_OF = 30 * _DAY
# Below this, a factor shows Spark's start more than the estimate.
_WORTH_A_WORD_HOURS = 0.1
_OFF = 2.0


def survey_state(state: Any, *, prefix: str, now: int | None = None) -> StateSurvey:
    """Surveys the state, without the environments of pull requests.

    Args:
        state: SQLMesh's state, opened for reading.
        prefix: The prefix of pull requests' environments, which are left out.
        now: In milliseconds; the clock's time without it.
    """
    moment = names_and_times.now_milliseconds() if now is None else now
    missing = sqlmesh_compat.list_missing_in_prod(state, moment - GRACE)
    behind = sorted(missing.items(), key=lambda item: (item[1][0], item[0]))
    unused = Counter(
        item.name.replace('"', "").replace("`", "")
        for item in sqlmesh_compat.list_unused_versions(state)
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
    """Lists people's environments that never expire, or that have expired and still exist."""
    for item in sorted(state.get_environments_summary(), key=lambda item: str(item.name)):
        name = str(item.name)
        expires = item.expiration_ts
        if (
            is_prod_name(name)
            or read_pull_number(name, prefix)
            or (expires is not None and expires > now)
        ):
            continue
        yield LastingEnvironment(
            environment=name,
            expires_at=None if expires is None else names_and_times.format_iso(expires),
        )


def _list_applies(state: Any, now: int) -> list[ApplyRow]:
    """Lists the successful applies of the last 30 days, without probes, which build only a part."""
    since = now - _APPLIES_OF
    rows = CostLedger(sqlmesh_compat.unwrap_state_adapter(state)).list_applies(
        newest=_NEWEST_APPLIES
    )
    return [
        row
        for row in rows
        if row.outcome == "applied" and names_and_times.to_milliseconds(row.at) >= since
    ]
