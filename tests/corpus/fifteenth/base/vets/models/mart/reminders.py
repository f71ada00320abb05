"""Vaccinations that are due soon, for the letters of the clinics."""
import typing as t
from datetime import datetime

import pandas as pd
from helpers.dates import days_from

from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName


@model(
    "mart.reminders",
    kind=dict(name=ModelKindName.FULL),
    columns={"pet_id": "bigint", "owner_id": "bigint", "vaccine": "string", "due_on": "date"},
    cron="@weekly",
    grain=["pet_id", "vaccine"],
    depends_on={"core.vaccinations", "stg.pets", "stg.owners"},
    audits=[("not_null", {"columns": ["pet_id", "vaccine", "due_on"]})],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> t.Iterator[pd.DataFrame]:
    shots = context.resolve_table("core.vaccinations")
    pets = context.resolve_table("stg.pets")
    owners = context.resolve_table("stg.owners")
    until = days_from(execution_time, context.var("reminder_days", 30))
    df = context.fetchdf(
        f"""
        SELECT s.pet_id, p.owner_id, s.vaccine, s.due_on
        FROM {shots} AS s
        JOIN {pets} AS p ON s.pet_id = p.pet_id
        JOIN {owners} AS o ON p.owner_id = o.owner_id
        WHERE s.is_latest AND p.died_on IS NULL AND NOT o.is_deceased
        """
    )
    due = df[pd.to_datetime(df["due_on"]) <= pd.Timestamp(until)]
    if due.empty:
        yield from ()
        return
    yield due[["pet_id", "owner_id", "vaccine", "due_on"]]
