"""Reviews and cleanups that somebody starts by hand or by a comment, and runs that GitHub hampers."""

from __future__ import annotations

import pytest

from tests.e2e.scene import BOT, Scene, add_largest, add_orders
from tests.github_standin import script

pytestmark = pytest.mark.spark


def test_dispatch__of_a_review__updates_the_same_comment(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    change.review("opened")
    comment, plan = change.sticky_id(), change.marker().plan
    change.push(add_largest)

    outcome = change.dispatch({"mode": "review"})

    assert outcome.exit_code == 0, outcome.stdout
    assert change.sticky_id() == comment
    assert change.marker().head == change.pull.head_sha
    assert change.marker().plan not in (None, plan)
    assert len(change.comments()) == 1
    assert len(outcome.requests) <= 6, outcome.requests
    assert len(outcome.writes) <= 2, outcome.writes


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
    assert outcome.writes == [], "who cannot look must not write a second comment"


def test_cleanup__where_the_comments_cannot_be_read__is_done_all_the_same(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    change.close()
    path = rf"/repos/{scene.repo.full_name}/issues/.*"
    scene.standin.script.on("*", path, script.forbidden(), forever=True)

    outcome = change.closed()

    assert outcome.exit_code == 0, outcome.stdout
    assert outcome.document("cleanup")["result"] == "nothing_to_do"
    assert any("comment cannot be read" in text for text in outcome.annotations("warning"))
