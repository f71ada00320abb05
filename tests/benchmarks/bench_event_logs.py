"""Reading event logs: seconds and memory for a directory of a gigabyte, without Spark.

    python -m tests.benchmarks.bench_event_logs [MEGABYTES]

The logs are made: each statement has one stage of 200 tasks, whose events are as long as those that
Spark 3.5 writes, because they are most of what a log is.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlmesh.core.config.connection import DuckDBConnectionConfig

from ci_bot.worker.cost.event_logs import LocalEventLogFiles, learn_costs_from_event_logs
from ci_bot.worker.state_store.cost_ledger import CostLedger
from tests.unit.cost.event_logs import begin, finish, line, log, statement

TASKS, LOGS = 200, 10
# As Spark 3.5.9 wrote them on a table of a few columns.
TASK_END, TASK_START, PLAN = 4_000, 340, 12_000


def write_application(path: Path, number: int, size: int) -> None:
    """One log of about `size` bytes, written piece by piece."""
    end = line("SparkListenerTaskEnd", **{"Task Metrics": "x" * TASK_END})
    start = line("SparkListenerTaskStart", **{"Task Info": "x" * TASK_START})
    noise = log([start, end] * TASKS)
    plan = f"(2) Filter\nCondition : ((d#1 >= 2024-01-01) AND (d#1 <= 2024-01-05))\n{'x' * PLAN}"
    now = time.time() - 3_600
    with path.open("wb") as file:
        file.write(log(begin(application=f"app-{number}")))
        for each in range(max(1, size // (len(noise) + PLAN * 2))):
            made = statement(each, now + each, now + each + 1, plan=plan)
            file.write(log(made[:2]) + noise + log(made[2:]))
        file.write(log(finish()))


def main(megabytes: int) -> None:
    """Makes the logs, reads them, and prints one row."""
    with tempfile.TemporaryDirectory(prefix="ci-bot-bench-") as home:
        for number in range(LOGS):
            path = Path(home, f"app-{number}")
            write_application(path, number, megabytes * 1_000_000 // LOGS)
        size = sum(path.stat().st_size for path in Path(home).iterdir())
        adapter: Any = DuckDBConnectionConfig(database=":memory:").create_engine_adapter()
        ledger = CostLedger(adapter)
        ledger.prepare_tables()
        before = resource.getrusage(resource.RUSAGE_SELF)
        started = time.perf_counter()
        found = learn_costs_from_event_logs(
            LocalEventLogFiles(_never), home, ledger, now=time.time()
        )
        seconds = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{'size':>10} {'seconds':>8} {'cpu':>6} {'peak memory':>12} {'writes':>7}")
    print(
        f"{size / 1e6:>7.0f} MB {seconds:>8.1f} {after.ru_utime - before.ru_utime:>6.1f} "
        f"{after.ru_maxrss / 1_024:>9.0f} MB {found.counts['writes']:>7}"
    )


def _never(path: str) -> Any:
    raise AssertionError(path)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
