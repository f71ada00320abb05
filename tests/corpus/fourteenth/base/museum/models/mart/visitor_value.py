import typing as t

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh import ExecutionContext, model


@model(
    "mart.visitor_value",
    kind="FULL",
    grain=["visitor_id"],
    columns={"visitor_id": "bigint", "orders": "bigint", "spent_cents": "bigint", "last_on": "date"},
    depends_on={"core.sales"},
    audits=[("not_null", {"columns": ["visitor_id"]}), ("unique_values", {"columns": ["visitor_id"]})],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> DataFrame:
    sales = context.spark.table(context.resolve_table("core.sales"))
    return (
        sales.where(F.col("visitor_id").isNotNull())
        .groupBy("visitor_id")
        .agg(
            F.countDistinct("order_id").alias("orders"),
            F.sum("amount_cents").alias("spent_cents"),
            F.max("ordered_on").alias("last_on"),
        )
    )
