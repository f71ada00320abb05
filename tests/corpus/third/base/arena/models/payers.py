"""What each player paid, also of players who paid nothing."""

from __future__ import annotations

import typing as t
from datetime import datetime

import pandas as pd
from sqlmesh import ExecutionContext, model


@model(
    "arena.payers",
    kind="FULL",
    cron="@daily",
    columns={
        "player_id": "bigint",
        "country": "string",
        "orders": "bigint",
        "gross": "double",
    },
    depends_on={"shop.orders", "shop.players"},
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> pd.DataFrame:
    players = context.fetchdf("SELECT player_id, country FROM shop.players")
    orders = context.fetchdf(
        "SELECT player_id, CAST(gross AS DOUBLE) AS gross FROM shop.orders"
    )
    paid = (
        orders.groupby("player_id")
        .agg(orders=("gross", "size"), gross=("gross", "sum"))
        .reset_index()
    )
    joined = players.merge(paid, on="player_id", how="left")
    joined["orders"] = joined["orders"].fillna(0).astype(int)
    joined["gross"] = joined["gross"].fillna(0.0)
    return joined[["player_id", "country", "orders", "gross"]]
