"""Counting intervals as SQLMesh does: a month is one of the calendar, not 28 days."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model
from sqlmesh.core.snapshot import Snapshot

from ci_bot.worker.planning.describe_plan import count_planned_batches, count_planned_intervals


def snapshot(cron: str, batch_size: int | None = None) -> Snapshot:
    size = f", batch_size {batch_size}" if batch_size else ""
    model: Any = load_sql_based_model(
        parse(
            f"MODEL (name a.b, kind INCREMENTAL_BY_TIME_RANGE (time_column d{size}), cron '{cron}', "
            "dialect spark); SELECT CAST(d AS DATE) AS d FROM a.c WHERE d BETWEEN @start_ds AND @end_ds"
        )
    )
    return Snapshot.from_node(model, nodes={})


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("cron", "start", "end", "count"),
    [
        ("@monthly", "1992-01-01", "1999-01-01", 84),
        ("@monthly", "2024-01-01", "2024-02-01", 1),
        ("@monthly", "2024-02-01", "2024-03-01", 1),
        ("@yearly", "1992-01-01", "1999-01-01", 7),
        ("@weekly", "2024-01-07", "2024-01-14", 7),
        ("@daily", "2024-02-01", "2024-03-01", 29),
        ("@hourly", "2024-02-01", "2024-02-02", 24),
        ("@monthly", "2024-01-01", "2024-01-01", 0),
    ],
)
def test_count__is_by_the_calendar(cron: str, start: str, end: str, count: int) -> None:
    assert count_planned_intervals(snapshot(cron), [(moment(start), moment(end))]) == count


def test_batches__of_months_are_as_many_as_statements() -> None:
    span = (moment("1992-01-01"), moment("1999-01-01"))
    assert count_planned_batches(snapshot("@monthly", batch_size=12), [span]) == 7
