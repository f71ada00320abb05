"""Hours between the first and the last scan of a parcel in a depot."""
import json
import typing as t
from datetime import datetime

import pandas as pd

from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "ship.dwell",
    kind=dict(name=ModelKindName.FULL),
    cron="@daily",
    columns={"parcel_id": "string", "depot_id": "string", "hours": "double"},
    grain=["parcel_id", "depot_id"],
    depends_on={"ship.scans"},
)
def execute(
    context: ExecutionContext, start: datetime, end: datetime, execution_time: datetime, **kwargs: t.Any
) -> t.Iterator[pd.DataFrame]:
    table = context.resolve_table("ship.scans")
    df = context.fetchdf(f"SELECT parcel_id, depot_id, event_ts FROM {table} WHERE NOT depot_id IS NULL")
    if df.empty:
        yield from ()
        return
    spans = df.groupby(["parcel_id", "depot_id"])["event_ts"].agg(["min", "max"]).reset_index()
    spans["hours"] = (spans["max"] - spans["min"]).dt.total_seconds() / 3600
    yield spans[["parcel_id", "depot_id", "hours"]]
