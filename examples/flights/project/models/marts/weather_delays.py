"""How much later flights depart when one cannot see far."""

from __future__ import annotations

import typing as t
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sqlglot import exp
from sqlmesh import ExecutionContext, model

# Columns, not strings: SQLMesh takes a string for a literal, and a literal is never null.
KEY = [exp.column("origin"), exp.column("visibility_band")]


@model(
    "marts.weather_delays",
    kind="FULL",
    cron="@daily",
    owner="network-planning",
    description="Delays at departure by airport and visibility, over the whole period.",
    columns={
        "origin": "string",
        "visibility_band": "string",
        "departed_flights": "bigint",
        "mean_departure_delay_minutes": "double",
        "median_departure_delay_minutes": "int",
    },
    column_descriptions={
        "origin": "FAA code of the airport of departure",
        "visibility_band": "Visibility at the hour: clear is 10 miles or more, low is below 3",
        "departed_flights": "Flights that departed",
        "mean_departure_delay_minutes": "Mean delay at departure in minutes",
        "median_departure_delay_minutes": "Median delay at departure in minutes",
    },
    grain=["origin", "visibility_band"],
    depends_on=["staging.flights", "staging.weather"],
    audits=[
        ("not_null", {"columns": KEY}),
        ("unique_combination_of_columns", {"columns": KEY}),
    ],
)
def execute(
    context: ExecutionContext,
    start: datetime,
    end: datetime,
    execution_time: datetime,
    **kwargs: t.Any,
) -> DataFrame:
    """Join flights with the weather of their scheduled hour; Spark does all of the work."""
    flights = context.spark.table(context.resolve_table("staging.flights"))
    weather = context.spark.table(context.resolve_table("staging.weather"))
    band = (
        F.when(F.col("visibility_miles") >= 10, "clear")
        .when(F.col("visibility_miles") >= 3, "hazy")
        .when(F.col("visibility_miles").isNotNull(), "low")
        .otherwise("unknown")
    )
    delay = F.col("departure_delay_minutes")
    return (
        flights.where(~F.col("is_cancelled"))
        .join(
            weather.withColumnRenamed("observed_at_utc", "scheduled_hour_utc"),
            on=["origin", "scheduled_hour_utc"],
            how="left",
        )
        .groupBy("origin", band.alias("visibility_band"))
        .agg(
            F.count(F.lit(1)).alias("departed_flights"),
            F.avg(delay).alias("mean_departure_delay_minutes"),
            F.percentile_approx(delay, 0.5).alias("median_departure_delay_minutes"),
        )
    )
