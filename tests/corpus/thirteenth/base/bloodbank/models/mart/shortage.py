import typing as t

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh import ExecutionContext, model


@model(
    "mart.shortage",
    kind="FULL",
    cron="@daily",
    grain=["component"],
    columns={"component": "string", "in_stock": "bigint", "wanted": "bigint", "missing": "bigint"},
    depends_on={"core.stock", "stg.orders"},
    audits=[("not_null", {"columns": ["component"]}), ("unique_values", {"columns": ["component"]})],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> DataFrame:
    stock = context.spark.table(context.resolve_table("core.stock"))
    orders = context.spark.table(context.resolve_table("stg.orders"))
    have = stock.groupBy("component").agg(F.sum("units").alias("in_stock"))
    want = (
        orders.where(F.col("ordered_on") >= F.lit(str(execution_time.date())).cast("date") - F.expr("INTERVAL 7 DAYS"))
        .groupBy("component")
        .agg(F.sum("units").alias("wanted"))
    )
    both = have.join(want, "component", "full_outer").fillna(0, ["in_stock", "wanted"])
    return both.select(
        "component",
        "in_stock",
        "wanted",
        F.greatest(F.col("wanted") - F.col("in_stock"), F.lit(0)).alias("missing"),
    )
