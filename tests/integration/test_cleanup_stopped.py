"""Cleanups that are stopped in the middle, by the runner or worse; the next one ends the job.

The real command, real signals, real Spark. The environment is applied once; its files are put back
before each test.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import run_python
from tests.integration.test_apply_and_cleanup import prod_intervals, sql
from tests.integration.test_cancel import PATIENCE_SECONDS, Bot, command, environments
from tests.integration.test_review import REVENUE
from tests.projects import Shop

# By day `test_cleanup_faults.py` has a cleanup beside foreign tables, and `e2e/test_cancel.py` a signal.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.night,
    pytest.mark.own_jvm,
    pytest.mark.cold_worker,
]

ENVIRONMENT = "pr_71"
# What the log says when a step begins. Nothing of a cleanup happens before or between them.
STEPS = {
    "while Spark starts": "spark: starting Spark",
    "at the first view": "drop 2/2",
    "while it verifies": "verify: ",
    "at the records": "records: ",
    "while it reclaims": "reclaim 1/",
}


@pytest.fixture(scope="module")
def saved(
    built_shop: Shop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, Path]]:
    """The shop with the environment applied, and a copy of all of its files."""
    before, after = (tmp_path_factory.mktemp(name) / "shop" for name in ("before", "after"))
    shutil.copytree(built_shop.root, before)
    built_shop.edit(
        "models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS stopped"
    )
    applied = command(built_shop, tmp_path_factory.mktemp("apply"), "apply", ENVIRONMENT)
    assert applied.process.wait(timeout=300) == 0, applied.log[-3000:]
    assert schema_directory(built_shop).is_dir()
    shutil.copytree(built_shop.root, after)
    yield built_shop, after
    put_back(built_shop, before)


@pytest.fixture
def applied(saved: tuple[Shop, Path]) -> Shop:
    put_back(*saved)
    return saved[0]


def put_back(shop: Shop, files: Path) -> None:
    shutil.rmtree(shop.root)
    shutil.copytree(files, shop.root)


def schema_directory(shop: Shop) -> Path:
    return shop.warehouse / f"shop__{ENVIRONMENT}.db"


def cleanup(shop: Shop, directory: Path) -> Bot:
    return command(shop, directory, "cleanup", ENVIRONMENT, "--reclaim", "always")


def check_gone(shop: Shop, directory: Path, prod: object) -> None:
    """A second cleanup finishes at once: no lease is left behind, and nothing of the environment."""
    second = cleanup(shop, directory)
    assert second.process.wait(timeout=300) == 0, second.log[-3000:]
    assert "waiting" not in second.log, "the first has given its lease back"
    document = second.document()
    assert document["result"] in ("removed", "nothing_to_do")
    assert document["leftovers"] == document["foreign"] == []
    assert ENVIRONMENT not in environments(shop)
    assert not schema_directory(shop).exists(), "Hive keeps it for as long as there is the schema"
    assert prod_intervals(shop) == prod


@pytest.mark.parametrize("words", STEPS.values(), ids=STEPS)
def test_cleanup__terminated__is_finished_by_the_next(
    applied: Shop, tmp_path: Path, words: str
) -> None:
    prod = prod_intervals(applied)
    first = cleanup(applied, tmp_path / "first")
    first.wait_for(lambda: words in first.log, words)

    seconds = first.stop(signal.SIGTERM)

    assert seconds < PATIENCE_SECONDS
    # The last steps take a moment: it may have been done before the signal came.
    assert first.process.returncode in (0, 143), first.log[-3000:]
    if first.process.returncode == 143:
        told = first.document()
        assert told["result"] == "incomplete"
        assert told["failure"]["reason_code"] == "cancelled"
    check_gone(applied, tmp_path / "second", prod)


FOREIGN = f"shop__{ENVIRONMENT}.notes"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, id=step)
        for step, words in STEPS.items()
        if step != "while it reclaims"  # nothing is reclaimed beside what others have made
    ],
)
def test_cleanup__killed__leaves_what_others_made_to_no_janitor(
    applied: Shop, tmp_path: Path, words: str
) -> None:
    sql(applied, f"CREATE TABLE {FOREIGN} USING parquet AS SELECT 7 AS a")
    first = cleanup(applied, tmp_path / "first")
    first.wait_for(lambda: words in first.log, words)

    kill(first)
    run_python("tests.projects.run_janitor", str(applied.project))

    second = cleanup(applied, tmp_path / "second")
    assert second.process.wait(timeout=300) == 4, second.log[-3000:]
    told = second.document()
    assert told["foreign"] == [FOREIGN]
    assert told["leftovers"] == []
    assert told["failure"]["reason_code"] == "foreign_objects"
    assert ENVIRONMENT not in environments(applied), "no janitor finds it later on"
    assert sql(applied, f"SELECT a FROM {FOREIGN}") == [[["7"]]]


def kill(bot: Bot) -> None:
    """As a machine does that goes away: no process of it says another word."""
    family = [pid for pid, _ in bot.family()]
    for pid in (bot.process.pid, *family):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    bot.process.wait()


def test_cleanup__whose_spark_dies_in_the_middle__is_finished_by_the_next(
    applied: Shop, tmp_path: Path
) -> None:
    prod = prod_intervals(applied)
    first = cleanup(applied, tmp_path / "first")
    first.wait_for(lambda: "drop 2/2" in first.log, "a view was dropped")

    for (pid, _), name in first.family().items():
        if name == "java":
            os.kill(pid, signal.SIGKILL)

    assert first.process.wait(timeout=60) == 4, first.log[-3000:]
    told = first.document()
    assert told["result"] == "incomplete"
    assert told["leftovers"]
    assert not told["state_record_removed"], "it still names what has to go"
    check_gone(applied, tmp_path / "second", prod)


def test_cleanup__ends_its_spark_before_its_jvm(applied: Shop, tmp_path: Path) -> None:
    logs = tmp_path / "event-logs"
    logs.mkdir()
    applied.edit(
        "config.yaml",
        "        spark.log.level: ERROR\n",
        "        spark.log.level: ERROR\n"
        f"        spark.eventLog.enabled: true\n        spark.eventLog.dir: {logs}\n",
    )

    done = command(applied, tmp_path / "run", "cleanup", ENVIRONMENT)

    assert done.process.wait(timeout=300) == 0, done.log[-3000:]
    assert done.document()["result"] == "removed"
    assert done.log.count("Setting default log level") == 1, "one JVM, started early"
    (log,) = logs.iterdir()
    assert log.suffix != ".inprogress", "a Spark that was killed has not closed it"
