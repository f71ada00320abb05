"""Our data diff against SQLMesh's TableDiff: same tables, same Spark session, one run.

    python -m tests.benchmarks.bench_diff [--rows 2000000] [--rounds 3] [--format hive|parquet]

The session is the one SQLMesh itself would start (`SparkConnectionConfig` enables Hive support), so
TableDiff's temporary table is a Hive text table, as it is for a team that sets nothing. With
`--format parquet` it is a Spark table, which is the harder baseline. Both sides run in turn and the
order changes from round to round. A round before the first is not counted: it warms up the JVM,
which in an apply is warm as well.

Prints one line per round and the ratio of the medians; exits 1 where that is above 0.25, or where
the counts differ. CPU seconds are those of the JVM: on a busy machine they say more than the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from sqlmesh.core.engine_adapter.spark import SparkEngineAdapter
from sqlmesh.core.table_diff import TableDiff
from sqlmesh.engines.spark.db_api import spark_session

from ci_bot.worker.apply.evidence import MAX_ROWS_DISTINCT
from ci_bot.worker.data_diff.compare import diff_tables
from ci_bot.worker.data_diff.spark_port import SparkDiffPort
from ci_bot.worker.data_diff.spec import DiffSpec
from ci_bot.worker.runtime.java import find_java_environment

GOAL = 0.25
KEY = "order_id"
PROD = """
SELECT id AS order_id, CAST(id % 1000 AS INT) AS store_id, CAST(HASH(id) % 100000 AS INT) AS items,
  CONCAT('customer-', id % 50000) AS customer, MD5(CAST(id AS STRING)) AS token,
  (id * 7919 % 1000003) / 97.0D AS price, CAST(id % 99991 / 100 AS DECIMAL(18, 4)) AS tax,
  DATE_ADD(DATE '2024-01-01', CAST(id % 365 AS INT)) AS ordered_on,
  TIMESTAMP_SECONDS(1700000000 + id) AS ordered_at, id % 3 = 0 AS gift
FROM RANGE(0, {rows}, 1, 4)
"""
# A change as a review sees it: some rows gone and new, some columns a little different, and floats
# with the noise of another order of summation.
PR = """
SELECT IF(order_id % 1000 = 7, order_id + {rows} * 2, order_id) AS order_id, store_id,
  IF(order_id % 50 = 0, items + 1, items) AS items, customer, token,
  CASE WHEN order_id % 10 = 0 THEN price + 1e-9 WHEN order_id % 333 = 0 THEN price + 1
    ELSE price END AS price,
  tax, ordered_on, ordered_at, gift
FROM diff_prod
"""


@dataclass(frozen=True)
class Measured:
    """One run: what was counted, and what it took."""

    counts: dict[str, int]
    seconds: float
    cpu: float | None


def main() -> int:
    parser = argparse.ArgumentParser(description="Our data diff against SQLMesh's TableDiff.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--format", choices=("hive", "parquet"), default="hive")
    options = parser.parse_args()
    os.environ.update(find_java_environment(os.environ, python=sys.executable))
    with tempfile.TemporaryDirectory(prefix="bench-diff-") as place:
        spark = session(Path(place), options.format)
        try:
            return run(spark, options.rows, options.rounds, options.format)
        finally:
            spark.stop()


def session(place: Path, form: str) -> Any:
    """Two slots, everything on disk below `place`."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.warehouse.dir", str(place / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.legacy.createHiveTableByDefault", str(form == "hive").lower())
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL",
            "jdbc:derby:memory:bench;create=true",
        )
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={place}")
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(spark: Any, rows: int, rounds: int, form: str) -> int:
    for name, query in (("diff_prod", PROD), ("diff_pr", PR)):
        spark.sql(f"CREATE TABLE {name} USING parquet AS {query.format(rows=rows)}")
    both: list[tuple[str, Callable[[], dict[str, int]]]] = [
        ("ours", lambda: ours(spark, rows)),
        ("TableDiff", lambda: theirs(spark)),
    ]
    taken: dict[str, list[Measured]] = {name: [] for name, _ in both}
    for number in range(rounds + 1):
        for name, diff in both if number % 2 else reversed(both):
            measured = measure(diff)
            cpu = "" if measured.cpu is None else f", {measured.cpu:.1f} s CPU"
            say(f"round {number} {name:>9}: {measured.seconds:.1f} s{cpu}")
            if number:
                taken[name].append(measured)
    answers = {tuple(sorted(m.counts.items())) for found in taken.values() for m in found}
    if len(answers) != 1:
        say(f"The counts differ: {answers}")
        return 1
    ratio = median(taken["ours"], "seconds") / median(taken["TableDiff"], "seconds")
    line = f"{rows:,} rows, {form} temporary table: ratio {ratio:.3f} of TableDiff's time"
    if taken["ours"][0].cpu is not None:
        cpu_ratio = median(taken["ours"], "cpu") / median(taken["TableDiff"], "cpu")
        line += f", {cpu_ratio:.3f} of its CPU time"
    say(f"{line} (goal {GOAL}); counts {dict(answers.pop())}")
    return 0 if ratio <= GOAL else 1


def ours(spark: Any, rows: int) -> dict[str, int]:
    # As an apply does it; see `MAX_ROWS_DISTINCT`.
    distinct = 2 * rows <= MAX_ROWS_DISTINCT
    spec = DiffSpec("orders", "diff_prod", "diff_pr", (KEY,), distinct=distinct)
    found = diff_tables(SparkDiffPort(spark), spec)
    matched = found.matched or 0
    counts = {
        "rows_prod": found.rows_prod or 0,
        "rows_pr": found.rows_pr or 0,
        "only_prod": found.only_prod or 0,
        "only_pr": found.only_pr or 0,
        "matched": matched,
        "full_match": found.full_match or 0,
    }
    for column in found.columns:
        counts[column.name] = round((column.match_rate or 0) * matched)
    return counts


def theirs(spark: Any) -> dict[str, int]:
    adapter = SparkEngineAdapter(
        lambda: spark_session.connection(spark), default_catalog="spark_catalog"
    )
    found = TableDiff(adapter, "diff_prod", "diff_pr", on=[KEY]).row_diff()
    counts = {
        "rows_prod": found.source_count,
        "rows_pr": found.target_count,
        "only_prod": found.s_only_count,
        "only_pr": found.t_only_count,
        "matched": found.join_count,
        "full_match": found.full_match_count,
    }
    for name, value in found.stats.items():
        if name.endswith("_matches") and name != f"{KEY}_matches":
            counts[name.removesuffix("_matches")] = int(value)
    return counts


def measure(work: Callable[[], dict[str, int]]) -> Measured:
    before, began = jvm_cpu(), time.monotonic()
    counts = work()
    after = jvm_cpu()
    seconds = time.monotonic() - began
    return Measured(counts, seconds, None if before is None or after is None else after - before)


def jvm_cpu() -> float | None:
    """CPU seconds of this process's JVM so far; None where there is no /proc."""
    ticks = os.sysconf("SC_CLK_TCK")
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except OSError:  # the process ended meanwhile
            continue
        fields = tail.split()
        if fields[1] == str(os.getpid()) and "java" in head:
            return (int(fields[11]) + int(fields[12])) / ticks
    return None


def median(found: list[Measured], field: str) -> float:
    return statistics.median(float(getattr(one, field)) for one in found)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
