import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "mart.pickup",
    kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column="night", lookback=30),
    columns={"night": "date", "property_id": "int", "sold": "bigint", "sold_share": "double"},
    grain=["night", "property_id"],
    audits=[("not_null", {"columns": ["night", "property_id"]})],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs):
    occupancy = context.resolve_table("core.occupancy")
    frame = context.fetchdf(
        f"""
        SELECT night, property_id, rooms_sold AS sold, rooms
        FROM {occupancy}
        WHERE night BETWEEN '{start.date()}' AND '{end.date()}'
        """
    )
    frame["sold_share"] = frame["sold"] / frame["rooms"]
    if len(frame):
        yield frame[["night", "property_id", "sold", "sold_share"]]
