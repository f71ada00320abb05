"""A cancelled apply on GitHub: the comment says so, and a GitHub that is stuck does not matter."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.job import Outcome
from tests.e2e.scene import Change, Scene
from tests.github_standin import script
from tests.integration.test_cancel import LONG_PYTHON, PATIENCE_SECONDS, START_SECONDS, family

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


def cancel(change: Change, plan: str, mark: Path, number: signal.Signals) -> tuple[Outcome, float]:
    """Dispatches an apply, and stops it while its Python model is asleep; with seconds."""
    sent: list[float] = []

    def meanwhile(pid: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        sent.append(time.monotonic())
        os.kill(pid, number)

    mark.unlink(missing_ok=True)
    outcome = change.dispatch({"plan-id": plan}, meanwhile=meanwhile)
    seconds = time.monotonic() - sent[0]
    assert mark.exists(), f"the model never ran\n{outcome.stdout}\n{outcome.stderr}"
    return outcome, seconds


def terminate_once_java_runs(pid: int) -> None:
    """Stops a run while its Spark starts."""
    deadline = time.monotonic() + START_SECONDS
    while "java" not in family(pid).values() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(pid, signal.SIGTERM)


def check(outcome: Outcome, seconds: float, exit_code: int) -> None:
    assert outcome.exit_code == exit_code, f"{outcome.stdout}\n{outcome.stderr}"
    assert seconds < PATIENCE_SECONDS
    document = outcome.document("apply")
    assert document["result"] == "cancelled"
    assert "may be half built" in document["partial"][0]
    assert outcome.result["result"] == "cancelled"
    assert outcome.result["exit_code"] == exit_code
    assert outcome.outputs["reason-code"] == "cancelled"
    assert "Apply cancelled" in outcome.summary
    assert "may be half built: tables may hold a part of their data" in outcome.summary


@pytest.mark.night
def test_cancel__marks_the_comment_and_is_not_held_up_by_a_stuck_github(
    scene: Scene, tmp_path: Path
) -> None:
    mark = tmp_path / "asleep"
    text = LONG_PYTHON.format(mark=str(mark))
    change = scene.open("asleep", lambda shop: shop.write("models/asleep.py", text), number=51)
    plan = change.review("opened").outputs["plan-id"]

    outcome, seconds = cancel(change, plan, mark, signal.SIGINT)

    check(outcome, seconds, 130)
    assert change.marker().phase == "cancelled"
    assert change.marker().plan == plan
    assert "The environment may be partial" in change.sticky()
    assert f"/sqlmesh apply {plan[:12]}" in change.sticky()

    # The comment says that the apply has begun; from then on GitHub takes requests, and no more.
    path = rf"/repos/{scene.repo.full_name}/.*"
    stuck = scene.standin.script.on("PATCH", path, script.silence(60), forever=True, skip=1)
    outcome, seconds = cancel(change, plan, mark, signal.SIGTERM)
    scene.standin.script.clear()

    check(outcome, seconds, 143)
    assert stuck.served
    assert change.marker().phase == "applying"

    change.close()
    stopped = change.closed(meanwhile=terminate_once_java_runs)

    assert stopped.exit_code == 143, f"{stopped.stdout}\n{stopped.stderr}"
    assert stopped.result["result"] == "incomplete"
    assert stopped.outputs["reason-code"] == "cancelled"
    assert change.marker().phase == "cleanup_failed"
    assert "goes on from where this one was stopped" in change.sticky()

    assert change.closed().result["result"] == "removed"
    assert change.marker().phase == "closed"
