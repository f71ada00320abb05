"""How good estimates of cost are, on TPC-H data; and whether our counters are Spark's.

    python -u -m tests.benchmarks.bench_cost TPCHGEN [SCALE]

TPCHGEN is the program `tpchgen-cli` (pip install tpchgen-cli). Prod is built with Spark's event log
on: two incremental models by month, three tables as a whole. Then, an apply each:

1. models that were never built, estimated by the size of their input alone, after prod's log has
   told of three others;
2. new versions of prod's models, estimated from the log alone;
3. the same models once more, with another window, estimated from the apply before;
4. once more, by a probe, which builds 12 of 84 months: what it says of the whole, beside what the
   probe and the apply that reuses it have then taken together.

After each apply its counters are compared with what Spark's own REST API says of the same jobs, and
what the counting itself took with the whole time of building: on a machine that others share, pairs
of applies with and without it differ by more than it takes.
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

from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cost import LearnDocument
from ci_bot.protocol.messages import LearnRequest, Owner
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import CONFIG, Shop

UNTIL = "1999-01-01"
RANGE = "INCREMENTAL_BY_TIME_RANGE (time_column {column}, batch_size 12, partition_by_time_column false)"
# SQLMesh partitions by the time column unless it is told not to. By day these would be thousands of
# files of a few kilobytes, and the benchmark one of opening files.
MODELS = {
    "lineitem": (
        RANGE.format(column="l_shipdate"),
        "l_shipmonth",
        "SELECT l_orderkey, l_partkey, l_quantity, l_extendedprice, l_discount, "
        "CAST(l_shipdate AS DATE) AS l_shipdate, 0 AS edition, "
        "CAST(DATE_FORMAT(l_shipdate, 'yyyyMM') AS INT) AS l_shipmonth FROM raw.lineitem "
        "WHERE l_shipdate BETWEEN @start_ds AND @end_ds",
    ),
    "orders": (
        RANGE.format(column="o_orderdate"),
        "o_ordermonth",
        "SELECT o_orderkey, o_custkey, o_totalprice, CAST(o_orderdate AS DATE) AS o_orderdate, "
        "0 AS edition, CAST(DATE_FORMAT(o_orderdate, 'yyyyMM') AS INT) AS o_ordermonth "
        "FROM raw.orders WHERE o_orderdate BETWEEN @start_ds AND @end_ds",
    ),
    "revenue_by_month": (
        "FULL",
        None,
        "SELECT DATE_TRUNC('month', o.o_orderdate) AS month, SUM(l.l_extendedprice) AS revenue, "
        "0 AS edition FROM tpch.lineitem AS l JOIN tpch.orders AS o ON l.l_orderkey = o.o_orderkey "
        "GROUP BY 1",
    ),
}
# Nobody has built these when they are estimated.
NEW_MODELS = {
    "revenue_by_customer": (
        "FULL",
        None,
        "SELECT o.o_custkey, SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue, 0 AS edition "
        "FROM tpch.lineitem AS l JOIN tpch.orders AS o ON l.l_orderkey = o.o_orderkey GROUP BY 1",
    ),
    "parts": (
        "FULL",
        None,
        "SELECT l_partkey, COUNT(*) AS lines, AVG(l_quantity) AS quantity, 0 AS edition "
        "FROM tpch.lineitem GROUP BY 1",
    ),
    "daily": (
        RANGE.format(column="day"),
        "month",
        "SELECT o_orderdate AS day, COUNT(*) AS orders, SUM(o_totalprice) AS price, 0 AS edition, "
        "o_ordermonth AS month FROM tpch.orders "
        "WHERE o_orderdate BETWEEN @start_ds AND @end_ds "
        "AND o_ordermonth BETWEEN CAST(DATE_FORMAT(CAST(@start_ds AS DATE), 'yyyyMM') AS INT) "
        "AND CAST(DATE_FORMAT(CAST(@end_ds AS DATE), 'yyyyMM') AS INT) GROUP BY 1, 5",
    ),
}
WINDOWS = (("1992-01-01", "1998-12-31"), ("1994-01-01", "1997-12-31"))


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
    # Said, because the defaults of an image without Spark's own page would turn it off.
    page = f'spark.ui.enabled: "true"\n        spark.ui.port: "{port}"'
    config = config.replace('spark.ui.enabled: "false"', page)
    config = config.replace(
        "spark.log.level: ERROR",
        f'spark.log.level: ERROR\n        spark.eventLog.enabled: "true"\n'
        f"        spark.eventLog.dir: {(root / 'logs').as_uri()}",
    )
    config = config.replace("start: 2024-01-01", "start: 1992-01-01")
    config = config.partition("linter:")[0] + "linter:\n  enabled: false\n"
    (project / "config.yaml").write_text(config, "utf-8")
    write_models(shop, MODELS)
    return shop


def write_models(shop: Shop, models: dict[str, tuple[str, str | None, str]]) -> None:
    """Their files."""
    for name, (kind, partition, query) in models.items():
        cron = "@monthly" if "INCREMENTAL" in kind else "@daily"
        by = f", partitioned_by ({partition})" if partition else ""
        text = (
            f"MODEL (name tpch.{name}, kind {kind}, cron '{cron}', start '1992-01-01'{by});\n\n"
            f"{query}\n"
        )
        shop.write(f"models/{name}.sql", text)


def new_edition(shop: Shop, number: int) -> None:
    """A change of every model, so that each of them is built."""
    for path in (shop.project / "models").glob("*.sql"):
        text = path.read_text("utf-8")
        before, sign, after = text.partition(" AS edition")
        if sign:
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
    print(
        f"\n{title}\n{'model':<28}{'layer':<12}{'expected s':>11}{'actual s':>10}{'factor':>8}"
        f"{'expected MB':>13}{'read MB':>9}"
    )
    for model in document.models:
        known = expected.get(model.model)
        if known is None or model.executor_seconds is None:
            continue
        guess, actual = known.executor_hours_mid * 3_600, model.executor_seconds
        errors.append(abs(guess - actual) / actual)
        sums = [sums[0] + guess, sums[1] + actual]
        factor = max(guess, actual) / min(guess, actual)
        size = f"{known.input_bytes / 1e6:.1f}" if known.input_bytes is not None else ""
        read = f"{model.counters.input_bytes / 1e6:.1f}" if model.counters is not None else ""
        print(
            f"{model.model:<28}{known.layer:<12}{guess:>11.1f}{actual:>10.1f}{factor:>8.2f}"
            f"{size:>13}{read:>9}"
        )
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


def make_data(program: str, scale: str, data: Path) -> None:
    for name in ("lineitem", "orders"):
        target = data / name
        target.mkdir(parents=True)
        command = [program, "parquet", "-s", scale, "--tables", name]
        subprocess.run([*command, "--output-dir", str(target)], check=True, capture_output=True)


def free_port() -> int:
    """For Spark's own address: none that the system could give to somebody else meanwhile."""
    for port in range(4040, 4140):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise RuntimeError("no port from 4040 to 4139 is free")


def apply_and_tell(
    jvm: OneJvm, port: int, seen: set[int], title: str, environment: str, **window: str
) -> None:
    started = time.perf_counter()
    document = jvm.apply(environment, table_diff=False, **window)
    assert document.result == "applied", document
    compare(f"{title} ({time.perf_counter() - started:.0f} s)", document)
    off = off_from_rest(port, document, seen)
    shown = ", ".join(f"{name} {share:.2%}" for name, share in off.items())
    print(f"counters against Spark's REST API: off by {shown}")
    share = document.timings["counting"] / document.timings["apply"]
    print(f"counting took {share:.2%} of the time of building", flush=True)


def probe_and_tell(jvm: OneJvm) -> None:
    """A probe, then the apply of the same plan."""
    probed = jvm.apply("pr_4", table_diff=False, probe=True)
    assert probed.result == "probed", probed
    applied = jvm.apply("pr_4", table_diff=False, plan_id=probed.plan_id)
    assert applied.result == "applied", applied
    before = {model.model: model for model in probed.models}
    both = [
        model.model_copy(
            update={
                "executor_seconds": (model.executor_seconds or 0)
                + (before[model.model].executor_seconds or 0 if model.model in before else 0)
            }
        )
        for model in applied.models
    ]
    told = applied.model_copy(update={"models": both, "estimate": probed.estimate})
    compare("by a probe of the same plan", told)
    for name, model in before.items():
        rest = next(other for other in applied.models if other.model == name)
        print(
            f"{name}: the probe built {model.intervals} intervals in {model.batches} batch, the "
            f"apply {rest.intervals} in {rest.batches}"
        )
    left = ", ".join(f"{item.model} ({item.why})" for item in probed.not_probed)
    print(f"not probed: {left}", flush=True)


def main(program: str, scale: str) -> None:
    """Prints a table for each apply."""
    begun, port = time.perf_counter(), free_port()
    with tempfile.TemporaryDirectory(prefix="ci-bot-bench-") as home:
        root = Path(home)
        make_data(program, scale, root / "data")
        shop = write_project(root, port)
        with one_jvm(shop) as jvm:
            started = time.perf_counter()
            build_prod(jvm, root / "data")
            told = f"TPC-H at scale factor {scale}; prod in {time.perf_counter() - started:.0f} s"
            print(told, flush=True)
            asked = jvm.make_request(
                LearnRequest, owner=Owner(name=OWNER), event_logs=str(root / "logs")
            )
            learned = jvm.ask(asked)
            assert isinstance(learned, LearnDocument), learned
            print(f"event logs: {learned.writes} writes into {learned.tables} tables", flush=True)
            seen: set[int] = set()
            write_models(shop, NEW_MODELS)
            apply_and_tell(jvm, port, seen, "by input size, never built", "pr_1")
            for name in NEW_MODELS:
                (shop.project / "models" / f"{name}.sql").unlink()
            for number, title in enumerate(("by prod's event log", "by the apply before"), 2):
                new_edition(shop, number)
                start, end = WINDOWS[number - 2]
                apply_and_tell(
                    jvm,
                    port,
                    seen,
                    f"{title}: {start} to {end}",
                    f"pr_{number}",
                    start=start,
                    end=end,
                )
            new_edition(shop, 4)
            probe_and_tell(jvm)
    print(f"all of it in {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0.1")
