import typing as t

import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model.kind import ModelKindName

from lib.churn import count_by_plan


@model(
    "mart.churn",
    kind=dict(name=ModelKindName.FULL),
    columns={"plan": "string", "country": "string", "left_us": "bigint", "stayed": "bigint"},
    owner="accounts",
    grain=["plan", "country"],
    audits=[("not_null", {"columns": ["country"]})],
    depends_on=["stg.users", "stg.subscriptions"],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    users = context.fetchdf(f"SELECT user_id, country, plan FROM {context.resolve_table('stg.users')}")
    subscriptions = context.fetchdf(
        f"SELECT user_id, state, price FROM {context.resolve_table('stg.subscriptions')}"
    )
    joined = users.merge(subscriptions, on="user_id", how="left")
    return count_by_plan(joined)
