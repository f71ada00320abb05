"""Tickets of passengers that nobody scanned, per sailing."""
import typing as t
from datetime import datetime

import pandas as pd

from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "mart.no_shows",
    kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column="sold_on", batch_size=31),
    columns={
        "sailing_id": "bigint",
        "sold_on": "date",
        "sold": "int",
        "missing": "int",
        "share": "double",
    },
    cron="@daily",
    grain=["sailing_id", "sold_on"],
    depends_on={"stg.tickets", "core.boarded"},
    audits=[("not_null", {"columns": ["sailing_id", "sold_on"]})],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> t.Iterator[pd.DataFrame]:
    tickets = context.resolve_table("stg.tickets")
    boarded = context.resolve_table("core.boarded")
    df = context.fetchdf(
        f"""
        SELECT t.sailing_id, t.sold_on, t.ticket_id, b.ticket_id AS seen
        FROM {tickets} AS t
        LEFT JOIN {boarded} AS b ON t.ticket_id = b.ticket_id
        WHERE t.kind = 'passenger' AND t.sold_on BETWEEN '{start:%Y-%m-%d}' AND '{end:%Y-%m-%d}'
        """
    )
    if df.empty:
        yield from ()
        return
    grouped = df.groupby(["sailing_id", "sold_on"], as_index=False).agg(
        sold=("ticket_id", "count"), scanned=("seen", "count")
    )
    grouped["missing"] = grouped["sold"] - grouped["scanned"]
    grouped["share"] = grouped["missing"] / grouped["sold"]
    yield grouped[["sailing_id", "sold_on", "sold", "missing", "share"]]
