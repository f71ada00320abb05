import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

from vendor.curves.season import expected_litres


@model(
    "mart.forecast",
    kind=dict(name=ModelKindName.FULL),
    columns={"farm_id": "string", "month": "int", "litres": "double"},
    owner="collection",
    grain=["farm_id", "month"],
    audits=[("not_null", {"columns": ["farm_id"]})],
    depends_on=["stg.pickups"],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    table = context.resolve_table("stg.pickups")
    means = context.fetchdf(f"SELECT farm_id, AVG(litres) AS litres FROM {table} GROUP BY farm_id")
    from dairyudf import herd_factor  # of wheels/, where prod runs

    factor = herd_factor() * float(context.var("bonus_factor", 1.0))
    return pd.DataFrame(
        [
            (row.farm_id, month, expected_litres(float(row.litres), month) * factor)
            for row in means.itertuples()
            for month in range(1, 13)
        ],
        columns=["farm_id", "month", "litres"],
    )
