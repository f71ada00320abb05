import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model import ModelKindName

from lib.shifts import summarize


@model(
    "mart.shift_report",
    kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column="reading_day", batch_size=15),
    columns={"machine_id": "string", "pieces": "double", "reading_day": "date"},
    grain=["machine_id", "reading_day"],
    audits=[("not_null", {"columns": ["machine_id"]})],
    depends_on=["core.output", "ref.shifts"],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> t.Iterator[pd.DataFrame]:
    output = context.resolve_table("core.output")
    frame = context.fetchdf(
        f"SELECT machine_id, pieces, reading_day FROM {output} "
        f"WHERE reading_day BETWEEN '{start.date()}' AND '{end.date()}'"
    )
    limit = context.var("scrap_limit", 10)
    summed = summarize(frame, limit)
    if summed.empty:
        yield from ()
    else:
        yield summed
