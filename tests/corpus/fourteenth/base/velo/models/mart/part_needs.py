import typing as t

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh import ExecutionContext, model


@model(
    "mart.part_needs",
    kind="FULL",
    grain=["part_no", "plant"],
    columns={"part_no": "string", "plant": "string", "needed": "decimal(38,3)"},
    depends_on={"stg.work_orders", "erp.bom"},
    audits=[("not_null", {"columns": ["part_no"]})],
)
def execute(context: ExecutionContext, start, end, execution_time, **kwargs: t.Any) -> DataFrame:
    orders = context.spark.table(context.resolve_table("stg.work_orders"))
    bom = context.spark.table("erp.bom").where(F.col("valid_to").isNull())
    return (
        orders.where(F.col("closed_on").isNull())
        .join(bom, "bike_code")
        .groupBy("part_no", "plant")
        .agg(F.sum(F.col("planned_qty") * F.col("qty_per")).cast("decimal(38,3)").alias("needed"))
    )
