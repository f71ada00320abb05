import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

from dairy.routing import load_routes, round_trip


@model(
    "mart.routes",
    kind=dict(name=ModelKindName.FULL),
    columns={"tanker_id": "string", "route": "string", "km": "double"},
    owner="collection",
    grain=["tanker_id", "route"],
    audits=[("not_null", {"columns": ["tanker_id"]})],
    depends_on=["stg.pickups"],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    stops = context.fetchdf(
        f"SELECT DISTINCT tanker_id, farm_id FROM {context.resolve_table('stg.pickups')}"
    )
    routes = load_routes()
    return pd.DataFrame(
        [
            (tanker, name, round_trip(stops_of_route))
            for tanker in sorted(stops["tanker_id"].unique())
            for name, stops_of_route in routes.items()
        ],
        columns=["tanker_id", "route", "km"],
    )
