"""The demo's sample project: real data, real SQLMesh, real Spark, one month instead of a year.

SQLMesh and Spark run in processes of their own. The second one is this very file, started as a
script: it lints, tests, plans and applies the pull request, and prints what it found as JSON.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.cli.demo_story import (
    CHANGE_FILES,
    PROJECT_FILES,
    DemoLayout,
    list_files_of_demo_change,
)
from ci_bot.errors import BadInput
from ci_bot.worker.demo_prod import RAW_TABLES, export_demo_flights
from ci_bot.worker.runtime.java import find_java_environment

END = "2013-01-31"
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class DemoRun:
    """What the two processes printed, and the flights of the window as the package has them."""

    build: list[str]
    probe: dict[str, Any]
    flights: list[dict[str, str]]


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    # A space in the path: it goes through YAML, a JDBC URL and the JVM's command line.
    layout = DemoLayout(tmp_path_factory.mktemp("demo") / "a home")
    layout.create_layout()
    environment = _environment(layout)
    build = _python(
        environment,
        layout.home,
        *("-m", "ci_bot.worker.demo_prod", "project", "--data", "data", "--end", END),
    )
    # The base stays beside the change, so that both are checked in one JVM.
    base = DemoLayout(layout.home / "base")
    base.create_layout()
    layout.apply_change()
    probe = _python(
        environment,
        layout.home,
        __file__,
        str(base.project_directory),
        str(layout.project_directory),
    )
    with (layout.data_directory / "flights.csv").open(newline="") as lines:
        flights = [row for row in csv.DictReader(lines) if row["month"] == "1"]
    return DemoRun(build.splitlines(), json.loads(probe.splitlines()[-1]), flights)


def test_export_flights__unpacks_every_raw_file_and_keeps_it(tmp_path: Path) -> None:
    files = export_demo_flights(tmp_path / "data")

    assert [path.name for path in files] == ["flights.csv", "weather.csv", "planes.csv"]
    assert [_rows(path) for path in files] == [336_776, 26_115, 3_322]
    files[0].write_text("kept")
    assert export_demo_flights(tmp_path / "data")[0].read_text() == "kept"
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == sorted(
        path.name for path in files
    )


def test_export_flights__columns_are_those_of_the_files(tmp_path: Path) -> None:
    for table, path in zip(RAW_TABLES, export_demo_flights(tmp_path), strict=True):
        with path.open(newline="") as lines:
            assert next(csv.reader(lines)) == [
                column.split()[0] for column in table.schema.split(", ")
            ]


def test_export_flights__missing_package_names_the_fix(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        export_demo_flights(tmp_path, package="flights_of_another_year")

    assert "flights_of_another_year is not installed" in caught.value.message
    assert "pip install" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_seeds__hold_the_packages_rows(tmp_path: Path) -> None:
    airlines = _column(PROJECT_FILES / "seeds" / "airlines.csv", "carrier")
    airports = _column(PROJECT_FILES / "seeds" / "airports.csv", "airport")
    flights = export_demo_flights(tmp_path)[0]

    assert set(_column(flights, "carrier")) == set(airlines)
    assert len(airports) == len(set(airports)) == 1_458
    # Four airports of the Caribbean are missing in the package; a non-blocking audit reports them.
    assert set(_column(flights, "dest")) - set(airports) == {"BQN", "PSE", "SJU", "STT"}


def test_change__every_file_differs_from_the_project() -> None:
    unchanged = [
        name
        for name in list_files_of_demo_change()
        if (PROJECT_FILES / name).exists()
        and (PROJECT_FILES / name).read_bytes() == (CHANGE_FILES / name).read_bytes()
    ]

    assert len(list_files_of_demo_change()) >= 5
    assert unchanged == []


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_build_prod__reports_batches_and_warnings(demo_run: DemoRun) -> None:
    lines = [" ".join(line.split()) for line in demo_run.build]

    assert "prod raw.flights 336,776 rows" in lines
    assert any(line.startswith("prod staging.flights 31/31 days") for line in lines)
    assert any(line.startswith("prod marts.weather_delays built") for line in lines)
    assert any(
        line.startswith("prod warning marts.route_summary: 'not_null_non_blocking'")
        for line in lines
    )
    assert lines[-1].startswith(f"prod built up to {END} in ")


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_prod__holds_the_window_and_nothing_else(demo_run: DemoRun) -> None:
    tables = demo_run.probe["prod"]

    assert tables["staging.flights"] == len(demo_run.flights)
    assert tables["staging.weather"] == 26_115
    assert tables["marts.carrier_scorecard"] == len({row["carrier"] for row in demo_run.flights})
    assert tables["marts.route_summary"] == tables["marts.route_ranking"]
    assert tables["marts.weather_delays"] >= 9


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("side", "tests"), [("base", 6), ("change", 7)])
def test_project__lint_and_unit_tests_pass(demo_run: DemoRun, side: str, tests: int) -> None:
    checks = demo_run.probe["checks"][side]

    assert checks == {"lint": [], "tests_run": tests, "tests_passed": True, "unformatted": []}


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_change__has_one_of_each_category(demo_run: DemoRun) -> None:
    assert demo_run.probe["changes"] == {
        "added": ["marts.carrier_fleet"],
        "removed": [],
        "metadata": ["marts.weather_delays"],
        "categories": {
            "marts.carrier_fleet": "BREAKING",
            "marts.carrier_scorecard": "INDIRECT_BREAKING",
            "marts.daily_carrier_performance": "BREAKING",
            "marts.route_ranking": "INDIRECT_NON_BREAKING",
            "marts.route_summary": "NON_BREAKING",
        },
    }


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_change__applied_numbers_agree_with_the_files(demo_run: DemoRun) -> None:
    late = [int(row["arr_delay"]) for row in demo_run.flights if row["arr_delay"] != "NA"]
    flown = {
        (row["carrier"], row["tailnum"]) for row in demo_run.flights if row["dep_time"] != "NA"
    }
    numbers = demo_run.probe["numbers"]

    assert numbers["late_prod"] == sum(delay > 15 for delay in late)
    assert numbers["late_pr"] == sum(delay >= 15 for delay in late)
    assert numbers["late_pr"] > numbers["late_prod"]
    assert numbers["cancelled_pr"] == sum(row["dep_time"] == "NA" for row in demo_run.flights)
    assert numbers["aircraft_pr"] == len(flown)


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_change__applying_it_leaves_prod_as_it_was(demo_run: DemoRun) -> None:
    assert demo_run.probe["prod_after"] == demo_run.probe["prod"]
    assert demo_run.probe["prod_snapshots_after"] == demo_run.probe["prod_snapshots"]


def _environment(layout: DemoLayout) -> dict[str, str]:
    environment = {
        **os.environ,
        **layout.list_variables(),
        "PYTHONPATH": str(REPOSITORY),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
    }
    return {**environment, **find_java_environment(environment, python=sys.executable)}


def _python(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _rows(path: Path) -> int:
    with path.open(newline="") as lines:
        return sum(1 for _ in csv.reader(lines)) - 1


def _column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as lines:
        return [row[name] for row in csv.DictReader(lines)]


def probe(base: Path, changed: Path) -> dict[str, Any]:
    """Runs in a process of its own: check both projects, plan the change, apply it, count."""
    from sqlmesh import Context

    base_context = Context(paths=[base])
    context = Context(paths=[changed])
    found: dict[str, Any] = {
        "checks": {"base": _checks(base_context), "change": _checks(context)},
        "prod": dict(_prod_counts(base_context)),
        "prod_snapshots": _prod_snapshots(context),
    }
    plan = context.plan_builder("pr_1", skip_tests=True).build()
    names = {snapshot.name: snapshot.node.name for snapshot in plan.snapshots.values()}
    difference = plan.context_diff
    found["changes"] = {
        "added": sorted(names[s.name] for s in difference.added),
        "removed": sorted(s.name for s in difference.removed_snapshots),
        "metadata": sorted(
            names[name]
            for name in difference.modified_snapshots
            if difference.metadata_updated(name)
            and not difference.directly_modified(name)
            and not difference.indirectly_modified(name)
        ),
        "categories": {
            snapshot.node.name: snapshot.change_category.name
            for snapshot in difference.new_snapshots.values()
            if snapshot.change_category and snapshot.change_category.name != "METADATA"
        },
    }
    context.apply(plan)
    late = "SUM(late_arrivals)"
    found["numbers"] = {
        "late_prod": _value(context, late, "marts.daily_carrier_performance"),
        "late_pr": _value(context, late, "marts__pr_1.daily_carrier_performance"),
        "cancelled_pr": _value(context, "SUM(cancelled_flights)", "marts__pr_1.route_summary"),
        "aircraft_pr": _value(context, "SUM(aircraft)", "marts__pr_1.carrier_fleet"),
    }
    found["prod_after"] = dict(_prod_counts(base_context))
    found["prod_snapshots_after"] = _prod_snapshots(context)
    context.close()
    return found


def _checks(context: Any) -> dict[str, Any]:
    result = context.test()
    return {
        "lint": [str(violation) for violation in context.lint_models(raise_on_error=False)],
        "tests_run": result.testsRun,
        "tests_passed": result.wasSuccessful(),
        "unformatted": [] if context.format(check=True) else ["see the output of sqlmesh format"],
    }


def _prod_counts(context: Any) -> Iterator[tuple[str, int]]:
    for model in context.models.values():
        if not model.kind.is_external:
            yield model.name, _value(context, "COUNT(*)", model.name)


def _value(context: Any, expression: str, table: str) -> Any:
    query = f"SELECT {expression} FROM {table}"
    return context.engine_adapter.fetchone(query)[0]


def _prod_snapshots(context: Any) -> dict[str, Any]:
    """Every table version that prod references, with the intervals it holds."""
    environment = context.state_reader.get_environment("prod")
    snapshots = context.state_reader.get_snapshots(environment.snapshots)
    return {
        f"{snapshot.name} {snapshot.version}": [list(span) for span in snapshot.intervals]
        for snapshot in snapshots.values()
    }


if __name__ == "__main__":
    sys.stdout.write(f"\n{json.dumps(probe(Path(sys.argv[1]), Path(sys.argv[2])))}\n")
