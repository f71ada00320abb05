"""Reviews and cleanups that somebody starts by hand or by a comment, and runs that GitHub hampers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.report.markdown.marker import encode_comment_marker
from tests.e2e.scene import BOT, PROJECT, Change, Scene, add_largest, add_orders
from tests.factories import make_marker
from tests.github_standin import script

pytestmark = pytest.mark.spark


@pytest.mark.night
def test_dispatch__of_a_review__updates_the_same_comment(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    change.review("opened")
    comment, plan = change.sticky_id(), change.marker().plan
    change.push(add_largest)

    outcome = change.review_again()

    assert outcome.exit_code == 0, outcome.stdout
    assert change.sticky_id() == comment
    assert change.marker().head == change.pull.head_sha
    assert change.marker().plan not in (None, plan)
    assert len(change.comments()) == 1
    assert len(outcome.requests) <= 7, outcome.requests
    assert len(outcome.writes) <= 3, outcome.writes


def test_dispatch__of_a_review_in_the_workflow_that_applies__is_refused(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)

    outcome = change.dispatch({"mode": "review"})

    assert outcome.exit_code == 3, outcome.stdout
    assert outcome.outputs["reason-code"] == "review_beside_writer"
    assert "review.yml" in outcome.errors[0]
    assert outcome.requests == []


def outside(scene: Scene, file: Path) -> Change:
    """A pull request from a fork whose code leaves a file where it is loaded."""
    code = f"from pathlib import Path\n\nPath({str(file)!r}).touch()\n"
    scene.commit("from-outside", lambda shop: shop.write("macros/trace.py", code))
    fork = scene.repo.fork("outsider")
    fork.push_git(scene.git.root, {"from-outside": "from-outside"})
    pull = scene.repo.create_pull("from-outside", author="outsider", head_repo=fork)
    change = Change(scene, "from-outside", pull)
    change.pushed()
    return change


@pytest.mark.night
def test_dispatch__without_a_token__loads_nothing(scene: Scene, tmp_path: Path) -> None:
    """Nobody could say whose code it is, who asks, or whether the pull request is open."""
    loaded = tmp_path / "loaded"
    change = outside(scene, loaded)
    no_token = {"github-token": ""}

    for outcome in (
        change.review_again(no_token),
        change.dispatch(no_token),
        change.dispatch({"mode": "cleanup", **no_token}),
    ):
        assert outcome.exit_code == 2, outcome.stdout
        assert outcome.outputs["reason-code"] == "missing_token"
        assert "`github-token` is empty" in outcome.errors[0]
        assert outcome.requests == []
    assert not loaded.exists(), "a fork's code was loaded in a run that has secrets"

    # The same code is loaded where GitHub gives the run no secrets.
    assert change.review("opened").exit_code == 0
    assert loaded.exists()


def test_dispatch__of_a_cleanup_by_comment__asks_who_wrote_it(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    change.review("opened")
    body = change.sticky()
    asked = change.pull.add_comment("/sqlmesh cleanup", "reader")
    inputs = {"mode": "cleanup", "comment-id": str(asked["id"])}

    refused = change.dispatch(inputs, actor=BOT, workspace=scene.checkout(scene.main_sha))

    assert refused.exit_code == 3, refused.stdout
    assert refused.outputs["reason-code"] == "permission"
    assert "@reader may not write" in refused.errors[0]
    assert change.sticky() == body, "the environment is as it was, and so is what is said of it"

    asked = change.pull.add_comment("/sqlmesh cleanup", "writer")
    inputs = {"mode": "cleanup", "comment-id": str(asked["id"])}
    done = change.dispatch(inputs, actor=BOT, workspace=scene.checkout(scene.main_sha))

    assert done.exit_code == 0, done.stdout
    assert done.outputs["reason-code"] == "nothing_to_do"
    assert change.marker().phase == "closed"


@pytest.mark.night
def test_review__without_the_permission_to_comment__is_in_the_summary(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    token = scene.standin.actions_token(scene.repo, {"contents": "read", "pull-requests": "read"})

    outcome = change.review("opened", inputs={"github-token": token})

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.outputs["decision"] == "go"
    assert not outcome.result["reported"]
    assert outcome.outputs["plan-id"][:12] in outcome.summary
    assert "comment-url" not in outcome.outputs
    warnings = outcome.annotations("warning")
    assert any("`pull-requests: write`" in text and "permissions:" in text for text in warnings)
    assert token not in outcome.readable
    assert change.comments() == []


@pytest.mark.night
def test_review__where_the_comments_cannot_be_read__is_in_the_summary(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    path = rf"/repos/{scene.repo.full_name}/issues/.*"
    scene.standin.script.on("GET", path, script.forbidden(), forever=True)

    outcome = change.review("opened")

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.outputs["decision"] == "go"
    assert not outcome.result["reported"]
    assert "shop.revenue" in outcome.summary
    assert any("comment cannot be read" in text for text in outcome.annotations("warning"))
    targets = [write.request.target for write in outcome.writes]
    # The check belongs to this commit, and says the same if it is written twice.
    assert targets == [f"/repos/{scene.repo.full_name}/check-runs"], "no second comment"


@pytest.mark.night
@pytest.mark.parametrize("author", ["outsider", "dependabot[bot]"])
def test_cleanup__of_others_pull_requests__leaves_a_tombstone(
    scene: Scene, tmp_path: Path, author: str
) -> None:
    """GitHub gives `pull_request_target` a token that writes, whoever opened the pull request."""
    if author == "outsider":
        change = outside(scene, tmp_path / "loaded")
    else:
        scene.commit("dependabot/pip/x", add_orders)
        scene.push("dependabot/pip/x")
        pull = scene.repo.create_pull("dependabot/pip/x", author=author)
        change = Change(scene, "dependabot/pip/x", pull)
        change.pushed()
    posted = make_marker(
        key=PROJECT, pr=change.number, env=change.environment, head=change.pull.head_sha
    )
    change.pull.add_comment(f"{encode_comment_marker(posted)}\nThe review.", BOT)
    change.close()

    outcome = change.closed("pull_request_target")

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.result["reported"]
    assert change.marker().phase == "closed"
    assert f"`{change.environment}`: nothing to remove" in change.sticky()


@pytest.mark.night
def test_cleanup__with_a_token_that_only_reads_is_done_and_warns(scene: Scene) -> None:
    """What Dependabot gets where it closes its own pull request, on `pull_request_target` too."""
    change = scene.open("add-orders", add_orders)
    posted = make_marker(
        key=PROJECT, pr=change.number, env=change.environment, head=change.pull.head_sha
    )
    change.pull.add_comment(f"{encode_comment_marker(posted)}\nThe review.", BOT)
    change.close()
    token = scene.standin.actions_token(scene.repo, {"contents": "read", "pull-requests": "read"})

    outcome = change.closed(inputs={"mode": "cleanup", "github-token": token})

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.document("cleanup")["result"] == "nothing_to_do"
    assert not outcome.result["reported"]
    assert any("`pull-requests: write`" in text for text in outcome.annotations("warning"))
    assert change.marker().phase == "planned"


@pytest.mark.night
def test_cleanup__where_the_comments_cannot_be_read__is_done_all_the_same(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    change.close()
    path = rf"/repos/{scene.repo.full_name}/issues/.*"
    scene.standin.script.on("*", path, script.forbidden(), forever=True)

    outcome = change.closed()

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.document("cleanup")["result"] == "nothing_to_do"
    assert any("comment cannot be read" in text for text in outcome.annotations("warning"))
