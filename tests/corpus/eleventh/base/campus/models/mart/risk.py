"""Students who may give up."""

import typing as t
from datetime import datetime

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

QUIET_DAYS = 3


@model(
    "mart.risk",
    kind=dict(name=ModelKindName.FULL),
    columns={"program": "string", "students": "bigint", "quiet": "bigint", "mean_average": "double"},
    grain=["program"],
    depends_on=["stg.students", "mart.averages", "mart.attendance_weeks"],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> pd.DataFrame:
    students = context.fetchdf(
        f"SELECT student_id, program FROM {context.resolve_table('stg.students')} WHERE left_on IS NULL"
    )
    averages = context.fetchdf(
        f"SELECT student_id, average FROM {context.resolve_table('mart.averages')}"
    )
    weeks = context.fetchdf(
        f"SELECT student_id, MAX(days) AS days FROM {context.resolve_table('mart.attendance_weeks')} GROUP BY student_id"
    )
    joined = students.merge(averages, on="student_id", how="left").merge(
        weeks, on="student_id", how="left"
    )
    joined["average"] = joined["average"].astype(float)
    joined["quiet"] = joined["days"].fillna(0) < QUIET_DAYS
    return (
        joined.groupby("program", dropna=False)
        .agg(students=("student_id", "count"), quiet=("quiet", "sum"), mean_average=("average", "mean"))
        .reset_index()
    )
