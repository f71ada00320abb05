"""Merchants whose approvals fall."""

import typing as t
from datetime import datetime

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

from lib.risk import flag_falls

WEEKS = 4


@model(
    "mart.risk",
    kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column="day", batch_size=7, lookback=1),
    columns={
        "merchant_id": "bigint",
        "day": "date",
        "requests": "bigint",
        "approval_rate": "double",
        "falls": "boolean",
    },
    grain=["merchant_id", "day"],
    partitioned_by=["day"],
    audits=[("not_null", {"columns": ["merchant_id", "day"]})],
    depends_on=["core.authorizations"],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> t.Generator[pd.DataFrame, None, None]:
    table = context.resolve_table("core.authorizations")
    minimum = context.var("minimum_requests", 20)
    frame = context.fetchdf(
        f"""
        SELECT a.merchant_id, CAST(a.requested_at AS DATE) AS day, a.approved
        FROM {table} AS a
        WHERE CAST(a.requested_at AS DATE) BETWEEN DATE '{start:%Y-%m-%d}' - INTERVAL {WEEKS} WEEKS
          AND DATE '{end:%Y-%m-%d}'
        """
    )
    if frame.empty:
        yield from ()
        return
    days = flag_falls(frame, minimum=minimum)
    yield days[(days["day"] >= start.date()) & (days["day"] <= end.date())]
