"""Connectors that delivered nothing for a day, for the field service."""

import typing as t
from datetime import datetime

import pandas as pd

from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "mart.idle_connectors",
    kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column="day", batch_size=31),
    columns={"connector_id": "bigint", "day": "date", "hours": "int", "energy_wh": "bigint"},
    cron="@daily",
    grain=["connector_id", "day"],
    depends_on={"core.connector_hours"},
    audits=[("not_null", {"columns": ["connector_id", "day"]})],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> t.Iterator[pd.DataFrame]:
    hours = context.resolve_table("core.connector_hours")
    df = context.fetchdf(
        f"""
        SELECT connector_id, CAST(hour_at AS DATE) AS day, hour_at, energy_wh
        FROM {hours}
        WHERE CAST(hour_at AS DATE) BETWEEN '{start:%Y-%m-%d}' AND '{end:%Y-%m-%d}'
        """
    )
    if df.empty:
        yield from ()
        return
    days = df.groupby(["connector_id", "day"], as_index=False).agg(
        hours=("hour_at", "count"), energy_wh=("energy_wh", "sum")
    )
    yield days[days["energy_wh"] == 0]
