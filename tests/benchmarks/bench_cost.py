"""How good estimates of cost are, on TPC-H data; and whether our counters are Spark's.

    python -u -m tests.benchmarks.bench_cost TPCHGEN [SCALE]

TPCHGEN is the program `tpchgen-cli` (pip install tpchgen-cli). Prod is built with Spark's event log
on. Then: a first estimate from that log alone, an apply, and a second estimate of the same models
with another window and another apply. After each apply its counters are compared with what Spark's
own REST API says of the same jobs.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from ci_bot.contracts.cost.learned import LearnDocument
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.contracts.messages import LearnRequest, Owner
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import CONFIG, Shop

UNTIL = "1999-01-01"
MODELS = {
    "lineitem": (
        "INCREMENTAL_BY_TIME_RANGE (time_column l_shipdate, batch_size 12)",
        "SELECT l_orderkey, l_partkey, l_quantity, l_extendedprice, l_discount, "
        "CAST(l_shipdate AS DATE) AS l_shipdate, 0 AS edition FROM raw.lineitem "
        "WHERE l_shipdate BETWEEN @start_ds AND @end_ds",
    ),
    "orders": (
        "INCREMENTAL_BY_TIME_RANGE (time_column o_orderdate, batch_size 12)",
        "SELECT o_orderkey, o_custkey, o_totalprice, CAST(o_orderdate AS DATE) AS o_orderdate, "
        "0 AS edition FROM raw.orders WHERE o_orderdate BETWEEN @start_ds AND @end_ds",
    ),
    "revenue_by_month": (
        "FULL",
        "SELECT DATE_TRUNC('month', o.o_orderdate) AS month, SUM(l.l_extendedprice) AS revenue, "
        "0 AS edition FROM tpch.lineitem AS l JOIN tpch.orders AS o ON l.l_orderkey = o.o_orderkey "
        "GROUP BY 1",
    ),
    "revenue_by_customer": (
        "FULL",
        "SELECT o.o_custkey, SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue, 0 AS edition "
        "FROM tpch.lineitem AS l JOIN tpch.orders AS o ON l.l_orderkey = o.o_orderkey GROUP BY 1",
    ),
    "parts": (
        "FULL",
        "SELECT l_partkey, COUNT(*) AS lines, AVG(l_quantity) AS quantity, 0 AS edition "
        "FROM tpch.lineitem GROUP BY 1",
    ),
}


def write_project(root: Path, port: int) -> Shop:
    """The project, with Spark's UI and its event log on."""
    project = root / "project"
    (project / "models").mkdir(parents=True)
    (root / "logs").mkdir()
    shop = Shop(root)
    config = CONFIG.format(
        warehouse=shop.warehouse,
        metastore=root / "metastore",
        derby=root / "derby",
        state=shop.state,
    )
    config = config.replace('spark.ui.enabled: "false"', f'spark.ui.port: "{port}"')
    config = config.replace(
        "spark.log.level: ERROR",
        f'spark.log.level: ERROR\n        spark.eventLog.enabled: "true"\n'
        f"        spark.eventLog.dir: {(root / 'logs').as_uri()}",
    )
    config = config.replace("start: 2024-01-01", "start: 1992-01-01")
    config = config.partition("linter:")[0] + "linter:\n  enabled: false\n"
    (project / "config.yaml").write_text(config, "utf-8")
    for name, (kind, query) in MODELS.items():
        cron = "@monthly" if "INCREMENTAL" in kind else "@daily"
        text = f"MODEL (name tpch.{name}, kind {kind}, cron '{cron}', start '1992-01-01');\n\n{query}\n"
        (project / "models" / f"{name}.sql").write_text(text, "utf-8")
    return shop


def new_edition(shop: Shop, number: int) -> None:
    """A change of every model, so that each of them is built."""
    for path in (shop.project / "models").glob("*.sql"):
        text = path.read_text("utf-8")
        before, _, after = text.partition(" AS edition")
        path.write_text(f"{before.rpartition(' ')[0]} {number} AS edition{after}", "utf-8")


def rest(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=30) as answer:
        return json.load(answer)


def off_from_rest(port: int, document: ApplyDocument, seen: set[int]) -> dict[str, float]:
    """By how much the apply's counters differ from Spark's REST API, as shares."""
    application = rest(port, "applications")[0]["id"]
    jobs = rest(port, f"applications/{application}/jobs")
    ours = [j for j in jobs if str(j.get("jobGroup", "")).startswith("ci-bot/")]
    stages = {n for job in ours if job["jobId"] not in seen for n in job["stageIds"]}
    seen.update(job["jobId"] for job in ours)
    told = [
        stage
        for stage in rest(port, f"applications/{application}/stages")
        if stage["stageId"] in stages and stage["status"] != "SKIPPED"
    ]
    assert document.cost is not None
    counters = document.cost.counters
    assert counters is not None
    pairs = {
        "used": (counters.used_seconds, sum(s["executorRunTime"] for s in told) / 1_000),
        "input": (counters.input_bytes, sum(s["inputBytes"] for s in told)),
        "output": (counters.output_bytes, sum(s["outputBytes"] for s in told)),
        "shuffle": (counters.shuffle_write_bytes, sum(s["shuffleWriteBytes"] for s in told)),
    }
    return {name: abs(ours - theirs) / max(theirs, 1e-9) for name, (ours, theirs) in pairs.items()}


def compare(title: str, document: ApplyDocument) -> None:
    """Prints each model's estimate beside what it cost, and the sum."""
    assert document.estimate is not None, document
    expected = {item.model: item for item in document.estimate.models}
    errors, sums = [], [0.0, 0.0]
    print(f"\n{title}\n{'model':<28}{'layer':<12}{'expected s':>11}{'actual s':>10}{'factor':>8}")
    for model in document.models:
        known = expected.get(model.model)
        if known is None or model.executor_seconds is None:
            continue
        guess, actual = known.executor_hours_mid * 3_600, model.executor_seconds
        errors.append(abs(guess - actual) / actual)
        sums = [sums[0] + guess, sums[1] + actual]
        factor = max(guess, actual) / min(guess, actual)
        print(f"{model.model:<28}{known.layer:<12}{guess:>11.1f}{actual:>10.1f}{factor:>8.2f}")
    if errors:
        print(f"{'sum':<40}{sums[0]:>11.1f}{sums[1]:>10.1f}{max(sums) / min(sums):>8.2f}")
        print(
            f"median error {statistics.median(errors):.0%}; not known: {document.estimate.unknown}"
        )


def build_prod(jvm: OneJvm, data: Path) -> None:
    jvm.sql(
        "CREATE SCHEMA raw",
        *(
            f"CREATE TABLE raw.{name} USING parquet LOCATION '{data / name}'"
            for name in ("lineitem", "orders")
        ),
    )
    jvm.plan_prod(UNTIL)
    jvm.apply_prod()


def main(program: str, scale: str) -> None:
    """Prints a table for each apply."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="ci-bot-bench-") as home:
        root = Path(home)
        for name in ("lineitem", "orders"):
            target = root / "data" / name
            target.mkdir(parents=True)
            command = [program, "parquet", "-s", scale, "--tables", name]
            subprocess.run([*command, "--output-dir", str(target)], check=True, capture_output=True)
        shop = write_project(root, port)
        with one_jvm(shop) as jvm:
            started = time.perf_counter()
            build_prod(jvm, root / "data")
            print(f"TPC-H at scale factor {scale}; prod in {time.perf_counter() - started:.0f} s")
            asked = jvm.request(
                LearnRequest, owner=Owner(name=OWNER), event_logs=str(root / "logs")
            )
            learned = jvm.ask(asked)
            assert isinstance(learned, LearnDocument), learned
            print(f"event logs: {learned.writes} writes into {learned.tables} tables")
            seen: set[int] = set()
            windows = (("1992-01-01", "1994-12-31"), ("1995-01-01", "1996-12-31"))
            for number, (start, end) in enumerate(windows, 1):
                new_edition(shop, number)
                document = jvm.apply(f"pr_{number}", start=start, end=end, table_diff=False)
                assert document.result == "applied", document
                compare(f"apply {number}: {start} to {end}", document)
                off = off_from_rest(port, document, seen)
                shown = ", ".join(f"{name} {share:.2%}" for name, share in off.items())
                print(f"counters against Spark's REST API: off by {shown}")
                print(document.cost and document.cost.model_dump(exclude={"counters"}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0.1")
