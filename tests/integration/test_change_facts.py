"""What a change does to results is found beside the plan's description, and changes nothing there."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from sqlmesh.core.context import Context

from ci_bot.protocol.review_report import Impact, Report
from ci_bot.worker.review.change_facts import ChangeFacts, find_change_facts_beside
from tests.integration.test_review import ADD_ORDERS, digest
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.security.forked import forked
from tests.worker import client

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) == 1, reason="one processor only, so nothing runs beside"
)


@pytest.fixture
def duck_shop(tmp_path: Path) -> Shop:
    shop = write_duck_shop(tmp_path)
    forked(lambda: run_prod(shop, "2024-01-11"), tmp_path)
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    return shop


def find_beside(
    shop: Shop,
    scratch: Path,
    find: Callable[[Context, bool], object],
    load: Callable[[], object] = lambda: None,
) -> tuple[bool, int]:
    """Runs `find` beside a process that has the project's state open.

    Args:
        find: its second argument says whether it runs in the first process.
        load: what the project's code does in the first process before.

    Returns:
        whether the result is of the first process, and how many snapshots of prod that one reads
        from the state afterwards.
    """

    def work() -> tuple[bool, int]:
        context, first = Context(paths=[str(shop.project)]), os.getpid()
        prod = context.state_reader.get_environment("prod")
        assert prod is not None
        load()

        def find_here() -> ChangeFacts:
            find(context, os.getpid() == first)
            return ChangeFacts([], [], Impact(), {"process": float(os.getpid())})

        with find_change_facts_beside(find_here, context, scratch / "change.json") as wait:
            found = wait().seconds["process"]
        return found == first, len(context.state_reader.get_snapshots(prod.snapshots))

    return forked(work, scratch)


def test_facts__are_found_in_another_process(duck_shop: Shop, tmp_path: Path) -> None:
    before = digest(duck_shop.state)

    assert find_beside(duck_shop, tmp_path, lambda context, is_first: None) == (False, 4)
    assert digest(duck_shop.state) == before


def ask_state(context: Context, _is_first: bool) -> None:
    context.state_reader.get_environment("prod")


def ask_engine(context: Context, _is_first: bool) -> None:
    context.engine_adapter.fetchone("SELECT 1")


def ask_state_and_go_on(context: Context, is_first: bool) -> None:
    with suppress(RuntimeError):  # as a rule that fails ends no review
        ask_state(context, is_first)


def die_beside(_context: Context, is_first: bool) -> None:
    if not is_first:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("find", [ask_state, ask_engine, ask_state_and_go_on, die_beside])
def test_facts__that_cannot_be_found_beside__are_found_in_the_first_process(
    duck_shop: Shop,
    tmp_path: Path,
    find: Callable[[Context, bool], object],
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = digest(duck_shop.state)

    assert find_beside(duck_shop, tmp_path, find) == (True, 4)
    assert "They are looked for again." in capfd.readouterr().err
    assert digest(duck_shop.state) == before


def test_facts__beside_a_thread_of_the_project__are_found_in_the_first_process(
    duck_shop: Shop, tmp_path: Path
) -> None:
    metrics = threading.Thread(target=threading.Event().wait, name="metrics", daemon=True)

    found = find_beside(duck_shop, tmp_path, lambda context, is_first: None, metrics.start)

    assert found == (True, 4)


def test_review__on_one_processor__is_the_same(duck_shop: Shop) -> None:
    every = os.sched_getaffinity(0)

    beside = client(duck_shop).review("pr_1")
    os.sched_setaffinity(0, {min(every)})
    try:
        alone = client(duck_shop).review("pr_1")
    finally:
        os.sched_setaffinity(0, every)

    assert beside.failure is None
    assert beside.findings
    assert beside.impact.changed
    assert leave_out_times(beside) == leave_out_times(alone)


def leave_out_times(report: Report) -> dict[str, object]:
    found = report.model_dump(exclude={"timings": True, "checks": {"tests": {"seconds"}}})
    assert found["checks"]["tests"]["status"] == "failed"  # it has no column `orders` yet
    return found
