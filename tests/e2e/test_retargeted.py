"""A pull request gets another base branch: the review of the former one no longer counts.

GitHub sends no `synchronize` then, because the head is the same, and it may start the run on the
merge commit that it has, which is the one with the former branch.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.job import Job, Outcome
from tests.e2e.scene import Change, Scene, add_orders
from tests.projects import Shop

pytestmark = pytest.mark.spark

RELEASE = "release"


def widen_view(shop: Shop) -> None:
    """What only the other branch has, and prod has not."""
    shop.edit("models/top_customers.sql", "> 100", "> 50")


def edit(change: Change, changes: dict[str, Any], *, workspace: str) -> Outcome:
    """review.yml on an edit, with a commit checked out."""
    payload = change.pull.event("edited") | {"changes": changes}
    job = Job("pull_request", payload, sha=change.merge_sha)
    return change.scene.run(job, change.scene.checkout(workspace))


def retarget(change: Change) -> str:
    """Somebody chooses the other base branch; gives GitHub's merge commit with that."""
    scene = change.scene
    base = scene.commit(RELEASE, widen_view)
    scene.git("checkout", "-q", "--detach", RELEASE)
    scene.git("merge", "-q", "--no-ff", "-m", "Merge", change.branch)
    merge = scene.git("rev-parse", "HEAD")
    scene.push(RELEASE)
    scene.repo.push_git(scene.git.root, {f"refs/pull/{change.number}/merge": merge})
    change.pull.retarget(RELEASE)
    change.pull.push(change.pull.head_sha, merge_sha=merge, base_sha=base)
    return merge


@pytest.mark.night
def test_retargeted__is_reviewed_against_its_new_base(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    assert change.review("opened").outputs["decision"] == "go"
    former, plan = change.merge_sha, change.marker().plan
    merge = retarget(change)
    changes = {"base": {"ref": {"from": "main"}, "sha": {"from": scene.main_sha}}}

    stale = edit(change, changes, workspace=former)

    assert stale.exit_code == 3, f"{stale.stdout}\n{stale.stderr}"
    assert stale.outputs["reason-code"] == "wrong_checkout"
    assert f"base branch `{RELEASE}`" in stale.errors[0]
    assert change.marker().phase == "plan_failed", "the Go of the former base is not shown as one"

    outcome = edit(change, changes, workspace=merge)

    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    marker = change.marker()
    assert marker.base == scene.git("rev-parse", RELEASE)
    assert marker.merge == merge
    assert marker.plan not in (None, plan)
    assert "top_customers" in change.sticky()
    assert len(change.comments()) == 3, "one comment, and a note for each move of the decision"


def test_retargeted__another_title__asks_nothing_of_anybody(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)

    outcome = edit(change, {"title": {"from": "x"}}, workspace=change.merge_sha)

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.requests == []
    (told,) = outcome.annotations("notice")
    assert "base branch was not" in told
