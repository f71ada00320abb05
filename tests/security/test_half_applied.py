"""A worker that dies in the middle of an apply, on real Spark: the next apply converges."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_bot.protocol.messages import Progress
from tests.integration.test_apply_and_cleanup import prod_intervals
from tests.integration.test_review import REVENUE
from tests.projects import Shop
from tests.worker import Client, Heard

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def worker_processes() -> list[int]:
    """Children of this process that are workers of ours."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(stat[1]) == os.getpid() and b"ci_bot.worker" in command:
                found.append(int(entry.name))
    return found


class Killer(list[Progress]):
    """Kills the worker at the first word of a stage, so that it can tidy nothing up."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
        self.killed = 0

    def append(self, step: Progress) -> None:
        super().append(step)
        if not self.killed and self.words in f"{step.phase}: {step.message}":
            for pid in worker_processes():
                os.kill(pid, signal.SIGKILL)
                self.killed += 1


class Mortal(Client):
    """A client whose worker dies at a stage."""

    killer: Killer | None = None

    @property
    def heard(self) -> Heard:
        return self._heard

    @heard.setter
    def heard(self, heard: Heard) -> None:
        if self.killer is not None:
            heard.progress = self.killer
        self._heard = heard


@pytest.fixture
def worker(shop: Shop) -> Iterator[Mortal]:
    used = Mortal(shop.project)
    yield used
    used.killer = None
    used.cleanup("pr_4")


# Each stage has a column of its own: what another test built already would not be built again.
@pytest.mark.parametrize(
    ("stage", "column", "left"),
    [
        pytest.param(
            "apply: shop.revenue",
            "killed_in_backfill",
            "may be half built",
            marks=pytest.mark.night,
        ),
        ("updating the virtual layer", "killed_in_promotion", "may be half built"),
        pytest.param(
            "verify: ",
            "killed_in_verification",
            "is built and its views are made",
            marks=pytest.mark.night,
        ),
        pytest.param(
            "evidence: ",
            "killed_in_evidence",
            "is built and its views are made",
            marks=pytest.mark.night,
        ),
    ],
)
def test_apply__killed_at_a_stage__is_told_and_finished_by_the_next(
    shop: Shop, worker: Mortal, stage: str, column: str, left: str
) -> None:
    shop.edit("models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {column}")
    before = prod_intervals(shop)
    reviewed = worker.review("pr_4")
    request = {
        "plan_id": reviewed.plan_id,
        "window": reviewed.identity and reviewed.identity.window,
    }
    worker.killer = Killer(stage)
    killed = worker.apply("pr_4", **request)
    assert worker.killer.killed == 1, [f"{step.phase}: {step.message}" for step in worker.killer]
    worker.killer = None
    assert killed.result == "failed"
    assert killed.failure is not None
    assert killed.failure.exit_code == 4
    assert killed.plan_id == reviewed.plan_id
    assert left in killed.partial[0]
    assert "shop.revenue" in {model.model for model in killed.models}
    assert killed.versions.sqlmesh is not None
    assert killed.timings

    again = worker.review("pr_4")
    assert again.plan_id == reviewed.plan_id, "the same request has the same id with less work"
    assert len(again.work) <= len(reviewed.work)
    applied = worker.apply("pr_4", **request)

    assert applied.failure is None
    # Whatever was built already: that it works is looked at now.
    assert applied.result == "applied"
    assert all(view.resolves for view in applied.views)
    assert {diff.model for diff in applied.table_diff} == {"shop.revenue", "shop.top_customers"}
    finished = worker.apply("pr_4", **request)
    assert (finished.result, finished.reason_code) == ("nothing_to_apply", "already_applied")
    held = worker.review("pr_4")
    assert held.work == []
    assert "already holds" in (held.environment_now or "")
    assert prod_intervals(shop) == before
