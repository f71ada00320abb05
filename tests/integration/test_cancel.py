"""Cancelling an apply on real Spark, wherever it is at that moment.

The real command in a process of its own, and real signals. The runner gives 7.5 s.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ci_bot.bot.sandbox.process_tree import read_table_of_sandboxed_processes
from tests.conftest import REPOSITORY
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm, pytest.mark.cold_worker]

PATIENCE_SECONDS = 7.5
AT_ONCE_SECONDS = 2.5
START_SECONDS = 180

# A thousand million pairs for each of two cores, and hardly a row that passes.
PAIRS = """\
SELECT
  CAST(a.id AS BIGINT) AS id
FROM RANGE(0, 4000000) AS a
CROSS JOIN RANGE(0, 1000000) AS b
WHERE
  a.id * b.id % 1000003 = 1000002 AND a.id + b.id < 10
"""
LONG_SQL = f"MODEL (name shop.pairs, kind FULL);\n\n{PAIRS}"
# Where no engine is at hand the macro is rendered for a look at what it does, which is nothing.
LATE_MACRO = """\
import time
from pathlib import Path

from sqlmesh import macro


@macro()
def late(evaluator):
    if "engine_adapter" in evaluator.locals:
        Path({mark!r}).touch()
        time.sleep(600)
    return []
"""
LONG_PROMOTION = """\
MODEL (name shop.late, kind VIEW);

SELECT
  1 AS id;

ON_VIRTUAL_UPDATE_BEGIN;
@late();
ON_VIRTUAL_UPDATE_END;
"""
LONG_PYTHON = """\
import time
import typing as t
from pathlib import Path

from sqlmesh import ExecutionContext, model


@model("shop.asleep", kind="FULL", columns={{"id": "int"}})
def execute(context: ExecutionContext, **kwargs: t.Any) -> t.Any:
    Path({mark!r}).touch()
    while True:
        time.sleep(0.5)
"""


@dataclass
class Bot:
    """`ci-bot` in a process of its own."""

    process: subprocess.Popen[bytes]
    directory: Path
    activity: str

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text("utf-8", errors="replace")

    def wait_for(self, reached: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not reached():
            assert self.process.poll() is None, f"it ended before {what}:\n{self.log[-3000:]}"
            assert time.monotonic() < deadline, f"never {what}:\n{self.log[-3000:]}"
            time.sleep(0.02)

    def family(self) -> dict[tuple[int, int], str]:
        return family(self.process.pid)

    def stop(self, *signals: signal.Signals) -> float:
        """Sends the signals and waits; returns seconds. Nothing of its family may be left."""
        family = self.family()
        began = time.monotonic()
        for number in signals:
            self.process.send_signal(number)
            if number is not signals[-1]:
                time.sleep(0.2)
        try:
            self.process.wait(timeout=30)
        finally:
            seconds = time.monotonic() - began
        alive = {
            process.process_key
            for process in read_table_of_sandboxed_processes().values()
            if process.state not in "ZX"
        }
        assert not {key: name for key, name in family.items() if key in alive}
        # A second signal leaves that to a process which nobody waits for.
        deadline = time.monotonic() + START_SECONDS
        while left := list((self.directory / "tmp").iterdir()):
            assert time.monotonic() < deadline, f"private directories are left: {left}"
            time.sleep(0.02)
        return seconds

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            (self.directory / "out" / f"{self.activity}.json").read_text("utf-8")
        )
        return found


def family(pid: int) -> dict[tuple[int, int], str]:
    """Everything below a process, with its names."""
    table = read_table_of_sandboxed_processes()
    found: dict[tuple[int, int], str] = {}
    parents = {pid}
    while True:
        fresh = [p for p in table.values() if p.parent in parents and p.process_key not in found]
        if not fresh:
            return found
        for process in fresh:
            found[process.process_key] = _name(process.pid)
            parents.add(process.pid)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def command(shop: Shop, directory: Path, activity: str, environment: str, *more: str) -> Bot:
    """Starts `ci-bot <activity>`; everything that it writes goes below `directory`."""
    (directory / "tmp").mkdir(parents=True)
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ci_bot", activity, "--project", str(shop.project)),
                *("--environment", environment, "--output", str(directory / "out"), *more),
            ],
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": str(directory / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return Bot(process, directory, activity)


Start = Callable[[str], Bot]


@pytest.fixture
def start(shop: Shop, tmp_path: Path) -> Iterator[Start]:
    """Starts applies of environments; whatever is left of them goes after the test."""
    started: list[tuple[Bot, str]] = []

    def begin(environment: str) -> Bot:
        bot = command(shop, tmp_path, "apply", environment)
        started.append((bot, environment))
        return bot

    yield begin
    for bot, environment in started:
        if bot.process.poll() is None:
            bot.process.kill()
            bot.process.wait()
        else:
            forget(shop, environment)


def writing(shop: Shop, table: str) -> Callable[[], object]:
    """Whether Spark is writing into a table, whose name begins so."""
    return lambda: list(shop.warehouse.glob(f"**/{table}*/_temporary"))


def environments(shop: Shop) -> list[str]:
    """Those in SQLMesh's state, which can be opened, so nobody holds it any more."""
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        rows = connection.execute("SELECT name FROM sqlmesh._environments").fetchall()
    return [str(row[0]) for row in rows]


def forget(shop: Shop, environment: str) -> None:
    """Takes what a cancelled apply has recorded away: other tests count what the state holds."""
    with duckdb.connect(str(shop.state)) as connection:
        for schema in ("sqlmesh", "sqlmesh_ci_bot"):
            connection.execute(f"DELETE FROM {schema}._environments WHERE name = ?", [environment])


def check(bot: Bot, seconds: float, exit_code: int) -> dict[str, Any]:
    """It ended in time, with the code of its signal, and told what became of the apply."""
    assert bot.process.returncode == exit_code, bot.log[-3000:]
    assert seconds < PATIENCE_SECONDS
    document = bot.document()
    assert (document["result"], document["reason_code"]) == ("cancelled", "cancelled")
    assert document["failure"]["exit_code"] == exit_code
    word = {130: "interrupted", 143: "terminated"}[exit_code]
    assert f"The run was {word}" in document["failure"]["message"]
    assert "Apply cancelled" in (bot.directory / "out" / "apply.md").read_text("utf-8")
    return document


@pytest.mark.night
def test_cancel__during_an_sql_model(shop: Shop, start: Start) -> None:
    shop.write("models/pairs.sql", LONG_SQL)
    bot = start("pr_41")
    bot.wait_for(writing(shop, "shop__pairs__"), "the model was being built")
    assert "java" in bot.family().values()

    document = check(bot, bot.stop(signal.SIGINT), 130)

    (partial,) = document["partial"]
    assert partial.startswith("pr_41 may be half built")
    text = (bot.directory / "out" / "apply.md").read_text("utf-8")
    assert "`pr_41` may be half built: tables may hold a part of their data" in text
    assert "pr_41" not in environments(shop)


@pytest.mark.night
def test_cancel__during_a_python_model(shop: Shop, start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "asleep"
    shop.write("models/asleep.py", LONG_PYTHON.format(mark=str(mark)))
    bot = start("pr_42")
    bot.wait_for(mark.exists, "the model was asleep")

    document = check(bot, bot.stop(signal.SIGTERM), 143)

    assert document["partial"]
    assert "pr_42" not in environments(shop)


@pytest.mark.night
def test_cancel__while_the_jvm_starts(shop: Shop, start: Start) -> None:
    shop.write("models/pairs.sql", LONG_SQL)
    bot = start("pr_43")
    bot.wait_for(lambda: "java" in bot.family().values(), "a JVM was started")

    document = check(bot, bot.stop(signal.SIGINT), 130)

    assert document["partial"] == [], "nothing is written before Spark answers"
    text = (bot.directory / "out" / "apply.md").read_text("utf-8")
    assert "Nothing was built yet. `prod` is not touched." in text
    assert "pr_43" not in environments(shop)


@pytest.mark.night
def test_cancel__during_promotion(shop: Shop, start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "late"
    shop.write("macros/__init__.py", "")
    shop.write("macros/late.py", LATE_MACRO.format(mark=str(mark)))
    shop.write("models/late.sql", LONG_PROMOTION)
    bot = start("pr_44")
    bot.wait_for(mark.exists, "the views were being made")

    document = check(bot, bot.stop(signal.SIGTERM), 143)

    assert "updating the virtual layer" in document["partial"][0]
    assert "pr_44" in environments(shop), "the state has it, so that a cleanup finds it"


@pytest.mark.night
def test_cancel__twice__ends_at_once(shop: Shop, start: Start, tmp_path: Path) -> None:
    mark = tmp_path / "asleep"
    shop.write("models/asleep.py", LONG_PYTHON.format(mark=str(mark)))
    bot = start("pr_45")
    bot.wait_for(mark.exists, "the model was asleep")

    seconds = bot.stop(signal.SIGINT, signal.SIGTERM)

    assert bot.process.returncode in (130, 143), "the first may have been enough"
    assert seconds < AT_ONCE_SECONDS
