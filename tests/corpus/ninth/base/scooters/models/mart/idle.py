"""How long scooters stood still."""

import typing as t
from datetime import datetime

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "mart.idle",
    kind=dict(name=ModelKindName.FULL),
    columns={"scooter_id": "string", "rides": "bigint", "idle_hours": "double", "last_city": "string"},
    grain=["scooter_id"],
    audits=[("unique_values", {"columns": ["scooter_id"]})],
    depends_on=["fleet.rides"],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> pd.DataFrame:
    rides = context.fetchdf(
        f"""
        SELECT scooter_id, city, started_at, ended_at
        FROM {context.resolve_table("fleet.rides")}
        WHERE status = 'done'
        """
    )
    rides = rides.sort_values(["scooter_id", "started_at"])
    rides["before"] = rides.groupby("scooter_id")["ended_at"].shift(1)
    rides["idle"] = (rides["started_at"] - rides["before"]).dt.total_seconds() / 3600
    return rides.groupby("scooter_id", as_index=False).agg(
        rides=("idle", "size"), idle_hours=("idle", "sum"), last_city=("city", "last")
    )
