"""Applies that must not happen: refused with every reason, exit 3, and nothing touched."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import nights
from tests.e2e.job import Outcome
from tests.e2e.scene import BOT, Change, Scene, add_largest, add_orders
from tests.github_standin.standin import GitHubStandin
from tests.integration.test_review import digest
from tests.projects import Shop


@dataclass
class Reviewed:
    """A pull request with a plan that could be applied, and the state before anybody asked."""

    change: Change
    plan: str


@pytest.fixture(scope="module")
def reviewed(
    github_standin_process: GitHubStandin,
    built_shop: Shop,
    tmp_path_factory: pytest.TempPathFactory,
) -> Reviewed:
    """Reviewed once: a refusal leaves everything as it was, so the tests can share it."""
    scene = Scene(github_standin_process, built_shop, tmp_path_factory.mktemp("refusals"))
    change = scene.open("add-orders", add_orders)
    outcome = change.review("opened")
    assert outcome.outputs["decision"] == "go", outcome.stdout
    return Reviewed(change, outcome.outputs["plan-id"])


@pytest.fixture
def untouched(built_shop: Shop, github_standin: GitHubStandin) -> Iterator[None]:
    """State and warehouse are after the test, byte for byte, as they were before it."""
    state, warehouse = digest(built_shop.state), digest(built_shop.warehouse)
    yield
    assert digest(built_shop.state) == state
    assert digest(built_shop.warehouse) == warehouse


pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("untouched")]


def assert_refused(outcome: Outcome, change: Change, *reasons: str, says: tuple[str, ...]) -> None:
    """Exit 3, every unmet condition by name, and the same words in log, summary and comment."""
    assert outcome.exit_code == 3, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["reason-code"] == reasons[0]
    assert outcome.result["result"] == "refused"
    assert outcome.result["unmet"] == list(reasons)
    assert len(outcome.errors) == len(reasons)
    told = " ".join(outcome.errors)
    for text in says:
        assert text in told
        assert text in outcome.summary.replace("`", "")
    if change.comments():
        assert change.marker().phase == "refused"
        assert "## ⛔ Apply refused · " in change.sticky()
        assert f"<sub>reason `{reasons[0]}` · " in change.sticky()
        assert len(change.comments()) == 1, "a refusal notifies nobody"


@pytest.mark.night
def test_apply__of_an_id_that_is_not_the_plan__is_refused(reviewed: Reviewed) -> None:
    wrong = "0123456789ab"

    # Nothing of the pull request is installed for a request that is refused: this would fail.
    outcome = reviewed.change.dispatch({"plan-id": wrong, "requirements": "requirements.txt"})

    says = (f"{wrong} is not the plan", f"the reviewed plan is {reviewed.plan[:12]}")
    assert_refused(outcome, reviewed.change, "unknown_plan", says=says)
    assert reviewed.change.marker().plan == reviewed.plan, "the reviewed plan stays appliable"


def test_apply__by_somebody_without_write_access__is_refused(reviewed: Reviewed) -> None:
    comment = reviewed.change.pull.add_comment(f"/sqlmesh apply {reviewed.plan[:12]}", "reader")

    # The command's own job starts the run, so the actor says nothing; the comment's author counts.
    outcome = reviewed.change.dispatch({"comment-id": str(comment["id"])}, actor=BOT)

    says = ("@reader has read access", "write")
    assert_refused(outcome, reviewed.change, "permission", says=says)


def test_apply__of_an_edited_comment__is_refused(reviewed: Reviewed) -> None:
    comment = reviewed.change.pull.add_comment("Looks good.", "writer")
    text = f"/sqlmesh apply {reviewed.plan[:12]}"
    time.sleep(1.1)  # GitHub's times are whole seconds
    reviewed.change.pull.edit_comment(comment["id"], text, "writer")

    outcome = reviewed.change.dispatch({"comment-id": str(comment["id"])}, actor=BOT)

    assert outcome.exit_code == 3, outcome.stdout
    assert outcome.outputs["reason-code"] == "bad_comment"
    assert "is not an unedited apply command" in outcome.errors[0]
    assert "as a new comment" in outcome.errors[0]
    assert reviewed.change.marker().phase == "refused"


def test_apply__of_a_draft__is_refused(reviewed: Reviewed) -> None:
    reviewed.change.pull.set_draft(True)
    try:
        outcome = reviewed.change.dispatch({"plan-id": reviewed.plan})
    finally:
        reviewed.change.pull.set_draft(False)

    assert_refused(outcome, reviewed.change, "draft", says=("is a draft", "ready for review"))


def test_apply__names_every_condition_that_is_not_met(reviewed: Reviewed) -> None:
    reviewed.change.pull.set_draft(True)
    try:
        outcome = reviewed.change.dispatch({"plan-id": "0123456789ab"}, actor="triager")
    finally:
        reviewed.change.pull.set_draft(False)

    says = ("is a draft", "@triager has triage access", "is not the plan")
    assert_refused(outcome, reviewed.change, "draft", "permission", "unknown_plan", says=says)


def test_apply__without_the_merge_commit__is_refused(reviewed: Reviewed) -> None:
    scene = reviewed.change.scene

    outcome = reviewed.change.dispatch(
        {"plan-id": reviewed.plan}, workspace=scene.checkout(scene.main_sha)
    )

    says = ("does not hold the merge commit", "fetch-depth: 2")
    assert_refused(outcome, reviewed.change, "wrong_checkout", says=says)


def test_apply__after_a_push__is_refused(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    plan = change.review("opened").outputs["plan-id"]
    before = change.marker().head or ""

    change.push(add_largest)
    outcome = change.dispatch({"plan-id": plan})

    says = (f"reviewed commit is {before[:7]}", f"branch is at {change.pull.head_sha[:7]}")
    assert_refused(outcome, change, "head_moved", says=says)


@pytest.mark.night
@pytest.mark.parametrize("artifact", nights.cases(["there", "gone"], by_day=["there"]))
def test_apply__where_the_base_changed_the_plan__shows_the_difference(
    scene: Scene, artifact: str
) -> None:
    change = scene.open("add-orders", add_orders)
    plan = change.review("opened", keep=artifact == "there").outputs["plan-id"]

    scene.commit("main", lambda shop: shop.edit("models/top_customers.sql", "> 100", "> 50"))
    change.pushed()  # the same head, on another base
    outcome = change.dispatch({"plan-id": plan})

    assert outcome.exit_code == 3, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["reason-code"] == "plan_changed"
    assert "no longer the reviewed one" in outcome.errors[0]
    assert "Review again" in outcome.errors[0]
    assert change.marker().phase == "refused"
    difference = outcome.document("apply")["difference"]
    if artifact == "there":
        assert "top_customers" in str(difference["snapshots_changed"])
        assert "top_customers" in change.sticky().partition("<!-- review -->")[0]
    else:
        assert difference is None
        assert "gone with their artifact" in change.sticky()


def test_apply__of_a_no_go__is_refused(scene: Scene) -> None:
    # The unit test still expects the old columns.
    change = scene.open(
        "untested",
        lambda shop: shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount * 2)"),
    )
    review = change.review("opened")
    assert review.outputs["decision"] == "no_go", review.stdout
    assert review.exit_code == 1
    plan = review.outputs["plan-id"]
    assert plan, "a No-Go has a plan, so that a maintainer can override it"

    outcome = change.dispatch({"plan-id": plan})

    says = ("decision on this plan is No-Go", "--override")
    assert_refused(outcome, change, "no_go", says=says)

    overridden = change.dispatch({"plan-id": plan, "override-reason": "hurry"}, actor="writer")

    says = ("@writer may not override a No-Go", "maintain")
    assert_refused(overridden, change, "override_permission", says=says)


def test_fork__is_reviewed_without_a_comment_and_never_applied(
    scene: Scene, tmp_path: Path
) -> None:
    scene.commit("from-outside", add_orders)
    fork = scene.repo.fork("outsider")
    fork.push_git(scene.git.root, {"from-outside": "from-outside"})
    pull = scene.repo.create_pull("from-outside", author="outsider", head_repo=fork)
    change = Change(scene, "from-outside", pull)
    change.pushed()

    review = change.review("opened")

    assert review.exit_code == 0, f"{review.stdout}\n{review.stderr}"
    assert review.writes == [], "a fork's token cannot write, and is not tried"
    assert change.comments() == []
    report = review.document("report")
    assert report["baseline"] == "base-branch"
    assert not report["appliable"]
    assert "shop.revenue" in review.summary

    outcome = change.dispatch({"plan-id": "0123456789ab"})

    says = ("comes from a fork", "no reviewed plan")
    assert_refused(outcome, change, "fork", "no_reviewed_plan", says=says)
    assert outcome.writes == []

    dispatched = change.review_again()

    assert dispatched.exit_code == 3, dispatched.stdout
    assert dispatched.outputs["reason-code"] == "fork"
    assert "secrets" in dispatched.errors[0]


@pytest.mark.night
def test_apply__after_the_end__leaves_the_tombstone(reviewed: Reviewed) -> None:
    change = reviewed.change
    change.close()
    closed = change.closed()
    assert closed.exit_code == 0, closed.stdout
    tombstone = change.sticky()
    assert change.marker().phase == "closed"

    outcome = change.dispatch({"plan-id": reviewed.plan})

    assert outcome.exit_code == 3
    assert outcome.outputs["reason-code"] == "closed"
    assert "Reopen it" in outcome.errors[0]
    assert change.sticky() == tombstone
