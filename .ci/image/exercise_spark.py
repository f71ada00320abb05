"""A short Spark session of the kind that the bot runs: schemas, tables, views, counts, drops.

Called with extra options for the driver's JVM by prepare_spark.py, which records the classes that
get loaded. Hive support, an embedded metastore, Parquet, partitions and a DataFrame made in
Python are in it, because SQLMesh's Spark connection uses all of them.
"""

from __future__ import annotations

import subprocess
import sys

from pyspark.sql import SparkSession

STATEMENTS = (
    "CREATE SCHEMA IF NOT EXISTS exercise",
    "CREATE TABLE exercise.days (id INT, name STRING, price DECIMAL(10, 2), ds DATE)"
    " USING PARQUET PARTITIONED BY (ds)",
    "INSERT OVERWRITE TABLE exercise.days (id, name, price, ds)"
    " SELECT id, name, CAST(price AS DECIMAL(10, 2)), CAST(ds AS DATE) FROM made_in_python",
    "CREATE TABLE exercise.totals USING PARQUET AS"
    " SELECT ds, name, COUNT(*) AS n, SUM(price) AS total, MAX(id) AS last_id"
    " FROM exercise.days GROUP BY ds, name",
    "CREATE OR REPLACE VIEW exercise.report AS"
    " WITH ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY name ORDER BY ds) AS r"
    " FROM exercise.days) SELECT t.ds, t.total, r.r FROM exercise.totals AS t"
    " JOIN ranked AS r ON t.ds = r.ds AND t.name = r.name",
)
QUESTIONS = (
    "SELECT * FROM exercise.report LIMIT 5",
    "SELECT * FROM exercise.report LIMIT 0",
    "SELECT COUNT(*), COUNT_IF(a.n <> b.n) FROM exercise.totals AS a"
    " FULL JOIN exercise.totals AS b ON a.ds <=> b.ds AND a.name <=> b.name",
    "SELECT COUNT(*) FROM exercise.days WHERE ds BETWEEN DATE '2024-01-01' AND DATE '2024-01-02'",
    "SHOW SCHEMAS",
    "SHOW TABLES IN exercise",
    "SHOW VIEWS IN exercise",
    "DESCRIBE EXTENDED exercise.days",
    "SHOW PARTITIONS exercise.days",
)
DROPS = (
    "DROP VIEW exercise.report",
    "DROP TABLE exercise.totals",
    "DROP TABLE exercise.days",
    "DROP SCHEMA exercise",
)


def main(java_options: str) -> None:
    """Run everything, then wait until the JVM is gone: it writes its list of classes on exit."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.ui.enabled", "false")
        .enableHiveSupport()
        .getOrCreate()
    )
    rows = [(1, "one", 1.5, "2024-01-01"), (2, "two", 2.5, "2024-01-02")]
    spark.createDataFrame(rows, ["id", "name", "price", "ds"]).createOrReplaceTempView(
        "made_in_python"
    )
    for statement in STATEMENTS:
        spark.sql(statement)
    for question in QUESTIONS:
        spark.sql(question).collect()
    spark.table("exercise.days").write.mode("append").insertInto("exercise.days")
    for drop in DROPS:
        spark.sql(drop)
    gateway = spark.sparkContext._gateway
    jvm: subprocess.Popen[bytes] | None = gateway.proc if gateway is not None else None
    if jvm is None or jvm.stdin is None:
        sys.exit("pyspark did not start a JVM of its own")
    spark.stop()
    jvm.stdin.close()  # its end is what tells the JVM to leave
    jvm.wait(timeout=60)


if __name__ == "__main__":
    main(sys.argv[1])
