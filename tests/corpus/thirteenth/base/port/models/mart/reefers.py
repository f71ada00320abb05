import typing as t

import pandas as pd

from sqlmesh import ExecutionContext, model


@model(
    "mart.reefers",
    kind="FULL",
    owner="terminal_data",
    columns={"container_no": "string", "hours": "double", "surcharge": "double"},
    grain=["container_no"],
    depends_on={"core.dwell", "stg.containers"},
    audits=[("not_null", {"columns": ["container_no"]}), ("unique_values", {"columns": ["container_no"]})],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> pd.DataFrame:
    dwell = context.resolve_table("core.dwell")
    boxes = context.resolve_table("stg.containers")
    frame = context.fetchdf(
        f"""
        SELECT d.container_no, d.in_at, d.out_at
        FROM {dwell} AS d
        JOIN {boxes} AS b ON b.container_no = d.container_no
        WHERE b.is_reefer AND d.out_at IS NOT NULL
        """
    )
    frame["hours"] = (frame["out_at"] - frame["in_at"]).dt.total_seconds() / 3600
    summed = frame.groupby("container_no", as_index=False)["hours"].sum()
    summed["surcharge"] = summed["hours"] / 24 * context.var("reefer_surcharge")
    return summed[["container_no", "hours", "surcharge"]]
