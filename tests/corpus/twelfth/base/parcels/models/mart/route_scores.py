import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model


@model(
    "mart.route_scores",
    kind="FULL",
    columns={"service": "string", "parcels": "bigint", "score": "double"},
    grain="service",
    audits=[("not_null", {"columns": ["service"]})],
)
def execute(
    context: ExecutionContext, start, end, execution_time, **kwargs: t.Any
) -> t.Iterator[pd.DataFrame]:
    journeys = context.resolve_table("core.journeys")
    frame = context.fetchdf(f"SELECT service, attempts, depots FROM {journeys}")
    frame = frame.dropna(subset=["service"])
    frame["points"] = 100 - 10 * frame["attempts"].clip(upper=5) - 2 * frame["depots"]
    out = frame.groupby("service", as_index=False).agg(
        parcels=("points", "size"), score=("points", "mean")
    )
    if not out.empty:
        yield out.sort_values("service")
