"""Share of the standard day that a candidate worked, per week."""

import typing as t
from datetime import datetime

import pandas as pd

from sqlmesh import ExecutionContext, model


@model(
    "mart.utilisation",
    kind="FULL",
    columns={"candidate_id": "bigint", "week": "date", "minutes": "bigint", "share": "double"},
    grain=["candidate_id", "week"],
    depends_on={"core.work_days"},
    audits=[("unique_combination_of_columns", {"columns": ["candidate_id", "week"]})],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> t.Iterator[pd.DataFrame]:
    days = context.resolve_table("core.work_days")
    standard = int(context.var("standard_day_minutes", 456))
    df = context.fetchdf(
        f"""
        SELECT candidate_id, CAST(DATE_TRUNC('WEEK', work_date) AS DATE) AS week, worked_minutes
        FROM {days}
        """
    )
    if df.empty:
        yield from ()
        return
    weeks = df.groupby(["candidate_id", "week"], as_index=False).agg(
        minutes=("worked_minutes", "sum")
    )
    weeks["share"] = weeks["minutes"] / (5 * standard)
    yield weeks
