"""The cells: which versions, which activities, and the tests that hold each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.databases import POSTGRES, postgres_programs, postgresql
from tests.matrix.installed import python_with

REPOSITORY = Path(__file__).parents[2]
CELL_SECONDS = 1_500
# The oldest and newest of what is supported, one for each version of the state's schema (100 up to
# 0.233, 101 in 0.234 and 0.235, 102 since 0.236), and one for each parser that they bring.
VERSIONS = ("0.227.1", "0.228.1", "0.230.1", "0.233.0", "0.235.4", "0.236.4")
OLDEST = VERSIONS[0]
# One of each release line but the image's. Those from 4.0 on need a Java with all of its modules.
PYSPARK_VERSIONS = ("3.4.4", "4.0.2", "4.1.4", "4.2.1", "4.3.0")

_FOLDER = "tests/integration"
_LIFE = "test_apply_and_cleanup.py::test_life__review_apply_review_cleanup_twice"
_SWEEP = "test_sweep.py::test_sweep__rescues_what_is_closed_and_touches_nothing_else"
_RESTATED = "test_restatement.py::test_restate_model"
ACTIVITIES: Mapping[str, tuple[str, ...]] = {
    "internals": ("test_compat.py", "test_throwaway_cache.py", "test_reported_cases.py"),
    "findings": ("../unit/rules", "../unit/sql/lineage", "../unit/sql_effects"),
    "review": ("test_review.py", "test_wrong_requests.py"),
    "base branch": ("test_base_branch.py",),
    "apply, cleanup": (_LIFE,),
    "restatement": (
        f"{_RESTATED}__builds_its_range_again_and_all_downstream",
        f"{_RESTATED}__beside_another_change__builds_both",
        f"{_RESTATED}__of_prods_version__is_refused",
    ),
    "forward-only": (
        "test_restatement.py::test_forward_only__builds_a_preview_from_its_start",
        "test_restatement.py::test_allow_destructive__permits_a_forward_only_change_of_type",
    ),
    "reclaim": (
        "test_reclaim.py::test_reclaim__after_a_close_the_sweep_takes_them_a_day_later",
        "test_reclaim_previews.py::"
        "test_reclaim__the_preview_of_a_reader_goes_and_prod_keeps_its_table",
    ),
    "sweep": (_SWEEP,),
    "two plans at once": ("test_apply_ends.py::test_two_plans_of_shared_models__both_end_well",),
    "probe": ("test_probe.py",),
    # Those without TableDiff beside them, which Spark 3.4 with pandas 2 cannot run.
    "data diff": tuple(
        f"test_data_diff.py::test_{name}"
        for name in (
            "difference__maps_are_compared",
            "ansi_mode__casts_that_overflow_do_not_fail",
            "cancel__ends_the_query_that_runs",
            "port__reads_few_rows_past_the_views_that_they_are_defined_through",
            "side_by_side__many_models_in_one_session",
        )
    ),
    "cancel": ("test_cancel.py::test_cancel__during_an_sql_model",),
}
# Their tests make their inputs: as many as by day, because a night's would take hours with each
# version. The other cells have a night's tests whenever they are run.
GENERATED = frozenset({"findings"})
ON_POSTGRES: Mapping[str, tuple[str, ...]] = {
    "review, apply, cleanup": ("test_postgres_state.py",),
    "leases": ("test_lease.py", "test_lease_on_spark.py"),
    "ledger": ("test_ledger_versions.py",),
    "rights": ("test_grants.py",),
    "TLS": ("test_state_tls.py",),
    "pooler": ("test_state_servers.py::test_leases__behind_a_pooler__one_run_at_a_time",
               "test_state_servers.py::test_review__behind_a_pooler__cannot_write"),
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """What a table has in its rows.

    Attributes:
        title: Of the column that names them.
        versions: All of them.
        activities: The columns, and the tests that hold each.
        prepared: Gives the interpreter for a version, and the variables that its tests need.
    """

    title: str
    versions: tuple[str, ...]
    activities: Mapping[str, tuple[str, ...]]
    prepared: Callable[[str], AbstractContextManager[tuple[Path, Mapping[str, str]]]]


@contextmanager
def _of_package(package: str, version: str) -> Iterator[tuple[Path, Mapping[str, str]]]:
    yield python_with(version, package), {}


@contextmanager
def _of_server(line: str) -> Iterator[tuple[Path, Mapping[str, str]]]:
    programs = postgres_programs(line, os.environ)
    with (
        tempfile.TemporaryDirectory(prefix="ci-bot-postgres-") as place,
        postgresql(programs, Path(place) / "server") as url,
    ):
        yield (
            Path(sys.executable),
            {"CI_BOT_TEST_POSTGRES": url, "CI_BOT_TEST_POSTGRES_PROGRAMS": str(programs)},
        )


TABLES: Mapping[str, Rows] = {
    "sqlmesh": Rows("SQLMesh", VERSIONS, ACTIVITIES, partial(_of_package, "sqlmesh")),
    "pyspark": Rows("PySpark", PYSPARK_VERSIONS, ACTIVITIES, partial(_of_package, "pyspark")),
    "postgres": Rows("PostgreSQL", tuple(POSTGRES), ON_POSTGRES, _of_server),
}


# How `pytest --verbose` ends its line of a test.
_ENDED = re.compile(
    r"^(tests/\S+?\.py::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.MULTILINE
)


@dataclass(frozen=True)
class Cell:
    """How the tests of one activity ended with one version; skipped ones have shown nothing."""

    version: str
    activity: str
    tests: Mapping[str, str]

    @property
    def passed(self) -> bool:
        return set(self.tests.values()) == {"PASSED"}


@dataclass(frozen=True)
class Run:
    """Cells that were run together, and pytest's own report of them."""

    cells: list[Cell]
    seconds: float
    told: str

    @property
    def passed(self) -> bool:
        return all(cell.passed for cell in self.cells)


def run(version: str, activities: Sequence[str], table: str = "sqlmesh") -> Run:
    """Runs the tests of some activities with a version, in a process of their own.

    Args:
        table: A name of `TABLES`.

    Raises:
        JarMissingError, NotInstalledError: the version cannot be had.
        TimeoutExpired: they took more than `CELL_SECONDS` each.
    """
    rows = TABLES[table]
    of = {
        name: [os.path.normpath(f"{_FOLDER}/{test}") for test in rows.activities[name]]
        for name in activities
    }
    ended: dict[str, str] = {}
    told: list[str] = []
    with rows.prepared(version) as (python, variables):
        started = time.monotonic()
        for generated in (True, False):
            names = [name for name in activities if (name in GENERATED) is generated]
            if not names:
                continue
            tests = list(dict.fromkeys(test for name in names for test in of[name]))
            done = subprocess.run(
                [python, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--tb=short", *tests],
                cwd=REPOSITORY,
                env={**os.environ, "CI_BOT_FUZZ": "" if generated else "full", **variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=CELL_SECONDS * len(names),
                check=False,
            )
            # A test that passes and fails to clean up has two lines; the later one counts.
            ended |= dict(_ENDED.findall(done.stdout))
            told.append(done.stdout[-8_000:])
    cells = [Cell(version, name, _of(of[name], ended)) for name in activities]
    return Run(cells, time.monotonic() - started, "\n".join(told))


def _of(tests: Sequence[str], ended: Mapping[str, str]) -> dict[str, str]:
    """The results of these tests; one that did not run at all counts as missing."""
    found: dict[str, str] = {}
    for asked in tests:
        mine = {name: how for name, how in ended.items() if name.startswith(asked)}
        found |= mine or {asked: "MISSING"}
    return found
