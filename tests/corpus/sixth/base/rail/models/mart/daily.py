import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model import ModelKindName

from helpers.grouping import group_days


@model(
    "mart.daily",
    kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column="event_day", batch_size=30),
    columns={"station": "string", "load_kg": "bigint", "event_day": "date"},
    grain=["station", "event_day"],
    audits=[("not_null", {"columns": ["station"]})],
    depends_on=["core.loads"],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    table = context.resolve_table("core.loads")
    days = context.fetchdf(
        f"SELECT station, load_kg, event_day FROM {table} "
        f"WHERE event_day BETWEEN '{start.date()}' AND '{end.date()}'"
    )
    return group_days(days)
