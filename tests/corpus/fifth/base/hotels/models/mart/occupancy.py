"""Nights and bookings of each hotel."""

from __future__ import annotations

import typing as t
from datetime import datetime

import pandas as pd

from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "mart.occupancy",
    kind=dict(name=ModelKindName.FULL),
    cron="@daily",
    columns={"hotel_id": "string", "city": "string", "nights": "bigint"},
    grain="hotel_id",
    depends_on={"core.stays", "ref.hotels"},
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> pd.DataFrame:
    stays = context.fetchdf(f"SELECT hotel_id, nights FROM {context.resolve_table('core.stays')}")
    hotels = context.fetchdf(f"SELECT hotel_id, city FROM {context.resolve_table('ref.hotels')}")
    nights = stays.groupby("hotel_id", as_index=False)["nights"].sum()
    return hotels.merge(nights, on="hotel_id", how="left")[["hotel_id", "city", "nights"]]
