"""Time from "import pyspark" to the first rows, in the image. Prints one JSON object.

Mounted into a container by test_spark_start.py; arguments are `key=value` Spark settings. The
processor time is the JVM's: unlike the wall clock it does not depend on what else runs here.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

started = time.monotonic()

from pyspark.sql import SparkSession  # noqa: E402 - the import is a part of what is measured

builder = SparkSession.builder.master("local[2]").enableHiveSupport()
for argument in sys.argv[1:]:
    key, _, value = argument.partition("=")
    builder = builder.config(key, value)
spark = builder.getOrCreate()
session_seconds = time.monotonic() - started
rows = spark.sql("SELECT 1 AS one").collect()
seconds = time.monotonic() - started

gateway = spark.sparkContext._gateway
if gateway is None:
    sys.exit("pyspark did not start a JVM of its own")
jvm = Path("/proc") / str(gateway.proc.pid)
ticks = jvm.joinpath("stat").read_text("utf-8").rsplit(")", 1)[1].split()[11:13]
print(
    json.dumps(
        {
            "rows": [row.asDict() for row in rows],
            "archive_mapped": "spark-classes.jsa" in jvm.joinpath("maps").read_text("utf-8"),
            "session_seconds": round(session_seconds, 2),
            "seconds": round(seconds, 2),
            "jvm_cpu_seconds": round(sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), 2),
        }
    )
)
