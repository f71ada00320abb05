"""Build the demo's prod environment, in a process of its own: it imports SQLMesh and starts a JVM.

    python -m ci_bot.worker.demo.build_prod PROJECT --data DIR --end 2013-12-31

The environment variables that PROJECT/config.yaml reads must be set (`DemoLayout.variables`).
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from sqlmesh import Context
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.environment import EnvironmentNamingInfo
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.core.snapshot.definition import Interval, Intervals
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.errors import EXIT_DONE, EXIT_FAILED, BadInput, BotError
from ci_bot.worker.demo.data import export_flights, register_raw_tables

Write = Callable[[str], None]
TimeSource = Callable[[], float]

_DAY_MS = 24 * 60 * 60 * 1000


class BatchConsole(NoopConsole):
    """A SQLMesh console that writes one line per finished batch, and what went wrong."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        # Batches finish in SQLMesh's worker threads.
        self._lock = threading.Lock()

    def start_evaluation_progress(
        self,
        batched_intervals: dict[Snapshot, Intervals],
        environment_naming_info: EnvironmentNamingInfo,
        default_catalog: str | None,
        audit_only: bool = False,
    ) -> None:
        """Note how many days each model has to cover."""
        self._totals = {
            snapshot.name: sum(_days(interval) for interval in intervals)
            for snapshot, intervals in batched_intervals.items()
        }
        self._done = dict.fromkeys(self._totals, 0)

    def update_snapshot_evaluation_progress(
        self,
        snapshot: Snapshot,
        interval: Interval,
        batch_idx: int,
        duration_ms: int | None,
        num_audits_passed: int,
        num_audits_failed: int,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Write the line of one batch."""
        with self._lock:
            done = self._done[snapshot.name] = self._done.get(snapshot.name, 0) + _days(interval)
            total = self._totals.get(snapshot.name, done)
        by_day = snapshot.is_model and snapshot.model.kind.is_incremental_by_time_range
        parts = [
            f"prod  {snapshot.node.name:<32}",
            f"{done}/{total} days" if by_day else "built",
            "" if duration_ms is None else f"{duration_ms / 1000:.1f} s",
            f"{num_audits_failed} audit warning" if num_audits_failed else "",
        ]
        self._write("  ".join(part for part in parts if part))

    def log_failed_models(self, errors: list[Any]) -> None:
        """Name each failed model with its cause."""
        for error in errors:
            cause = error.__cause__ or error
            self._write(f"prod  failed  {error.node}: {str(cause).strip().splitlines()[0]}")

    def log_warning(
        self, short_message: str, long_message: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Write what a model warns of; before that SQLMesh warns that DuckDB holds the state."""
        if self._totals:
            self._write(f"prod  warning  {short_message.strip().splitlines()[0]}")

    def log_error(self, message: str, *args: Any, **kwargs: Any) -> None:
        """Write an error of SQLMesh."""
        self._write(f"prod  error  {message}")


def build_prod(project: Path, data: Path, end: date, write: Write, clock: TimeSource) -> None:
    """Load the raw tables, then plan and apply prod up to and including `end`.

    SQLMesh takes no end date for a production plan, so the plan is made as of the midnight after
    `end`; the beginning is the `start` of the models.

    Args:
        project: The folder with config.yaml.
        data: The folder for the raw files.
        end: The last day of data that prod gets.
        write: Takes one line of progress.
        clock: Seconds, monotonic.

    Raises:
        BotError: The data is missing, or the project is not a Spark project.
        SQLMeshError: The project does not load, or a model fails.
    """
    started = clock()
    set_console(BatchConsole(write))
    export_flights(data)
    context = Context(paths=[project])
    try:
        spark: Any = context.engine_adapter.spark
        if spark is None:
            raise BadInput(
                f"The default gateway of {project} is not Spark.",
                hint="Set default_gateway to a gateway of type spark in its config.yaml.",
            )
        write(f"prod  Spark {spark.version} is up after {clock() - started:.1f} s")
        for name, rows in register_raw_tables(spark, data).items():
            write(f"prod  {name:<32}  {rows:,} rows")
        plan = context.plan_builder(
            execution_time=(end + timedelta(days=1)).isoformat(),
            skip_tests=True,  # the review runs them; here they would only be waited for
        ).build()
        context.apply(plan)
    finally:
        # Without this DuckDB leaves a write-ahead log, and the next reader rewrites the state file.
        context.close()
    write(f"prod  built up to {end.isoformat()} in {clock() - started:.1f} s")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: 0 when prod is built, otherwise the exit code of the failure."""
    parser = argparse.ArgumentParser(prog="python -m ci_bot.worker.demo.build_prod")
    parser.add_argument("project", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder for the raw files")
    parser.add_argument(
        "--end", type=date.fromisoformat, default=date(2013, 12, 31), help="last day, YYYY-MM-DD"
    )
    options = parser.parse_args(argv)
    try:
        build_prod(options.project, options.data, options.end, _write, time.monotonic)
    except BotError as error:
        _write(f"{error.message} {error.hint or ''}".rstrip())
        return error.exit_code
    except SQLMeshError as error:
        _write(f"prod was not built: {error}")
        return EXIT_FAILED
    return EXIT_DONE


def _days(interval: Interval) -> int:
    start, end = interval
    return int((end - start) / _DAY_MS)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
