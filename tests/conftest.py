"""Fixtures that every level shares. Real parts that a machine lacks are skipped with their reason;
with CI_BOT_REQUIRE_PARTS=1, which `.ci/run` sets, their absence is a failure."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

from tests import nights
from tests.oracle.fuzzing import FULL
from tests.projects import Shop, write_shop
from tests.shared_jvm import JVM, LENT

pytest_plugins = ["tests.github_standin.fixtures"]

# Shared machines are slow at times; how long an example takes says nothing about it.
settings.register_profile("ci-bot", deadline=None)
settings.load_profile("ci-bot")

# A test's JVM lives for seconds. Java's optimizing compiler would take half of its processor time,
# and a container's has variables of its own.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

# SQLMesh loads models in forks. What earlier tests left behind must not be collected there: the end
# of a DuckDB connection waits for threads that a fork does not have, and the process crashed.
os.register_at_fork(after_in_child=gc.freeze)
# Nor does it collect its own: it ends soon, and a collection has ended one with a signal.
os.register_at_fork(after_in_child=gc.disable)

REPOSITORY = Path(__file__).parent.parent
# prod's data ends here: ten days, two batches of five.
PROD_UNTIL = "2024-01-11"


def _has_own_jvm(item: pytest.Item) -> bool:
    """A container's Spark cannot be any other."""
    return any(item.get_closest_marker(name) for name in ("own_jvm", "container"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests for the nights out of a day's run; pytest says how many. Those with a JVM of
    their own come last, because the one that the others share ends before them."""
    items.sort(key=_has_own_jvm)
    if FULL:
        return
    late = nights.list_late_cases(items)
    kept = [item for item in items if item not in late]
    left_out = [item for item in items if item in late]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before all of a test's fixtures, those that it shares with others among them."""
    JVM.begin(shares=not _has_own_jvm(item))


def missing(part: str) -> NoReturn:
    """Skips a test whose real part is not there; fails it where all parts are required."""
    if os.environ.get("CI_BOT_REQUIRE_PARTS") == "1":
        pytest.fail(f"{part}, and CI_BOT_REQUIRE_PARTS=1 requires every real part")
    pytest.skip(part)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """A test that runs the worker's code in this process leaves no variable behind: a review makes
    every later PostgreSQL connection of its process read-only."""
    before = os.environ.get("PGOPTIONS")
    yield
    if before is None:
        os.environ.pop("PGOPTIONS", None)
    else:
        os.environ["PGOPTIONS"] = before


@pytest.fixture(scope="session")
def java() -> Iterator[None]:
    """A Java runtime that Spark can use."""
    from ci_bot.errors import BadInput
    from ci_bot.worker.runtime.java import find_java_environment

    try:
        os.environ.update(find_java_environment(os.environ, python=sys.executable))
    except BadInput as error:
        missing(error.message)
    JVM.open()
    yield
    JVM.end()
    LENT.end()


def run_python(module: str, *arguments: str, timeout: float = 300) -> str:
    """Runs a module in a process of its own (one JVM each) and returns its output."""
    JVM.settle()
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    JVM.settle()
    if done.returncode != 0:
        raise AssertionError(f"{module} failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


@pytest.fixture(scope="session")
def built_shop(tmp_path_factory: pytest.TempPathFactory, java: None) -> Shop:
    """The shop with prod built on Spark. Shared: tests take environments of their own."""
    shop = write_shop(tmp_path_factory.mktemp("shop"))
    run_python("tests.projects.build_prod", str(shop.project), PROD_UNTIL)
    return shop


@pytest.fixture
def shop(built_shop: Shop) -> Iterator[Shop]:
    """The shop with its files as on the main branch, before and after the test."""
    with built_shop.kept():
        yield built_shop
