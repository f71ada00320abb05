"""`comment: new`: each plan has a comment of its own, and GitHub folds the one before it."""

from __future__ import annotations

import pytest

from ci_bot.bot.report.markdown.marker import decode_comment_marker
from tests.e2e.scene import Scene, add_largest, add_orders

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NEW = {"comment": "new"}


@pytest.mark.night
def test_new__folds_the_comment_of_the_plan_before(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)
    first = change.review("opened", inputs=NEW)
    assert first.exit_code == 0, first.stdout

    change.push(add_largest)
    second = change.review("synchronize", inputs=NEW)

    assert second.exit_code == 0, second.stdout
    older, newer = change.comments()
    assert older["minimized"] == {"reason": "outdated"}
    assert newer["minimized"] is None
    plans = [decode_comment_marker(comment["body"]) for comment in (older, newer)]
    assert [marker and marker.plan for marker in plans] == [
        first.outputs["plan-id"],
        second.outputs["plan-id"],
    ]
    assert plans[1] is not None
    assert [entry.plan for entry in plans[1].history] == [first.outputs["plan-id"]]
    assert "Each plan has a comment of its own" in newer["body"]
    assert second.outputs["comment-url"] == newer["html_url"]

    # The same plan again is shown in its own comment.
    again = change.review_again(NEW)
    assert again.exit_code == 0, again.stdout
    assert [each["id"] for each in change.comments()] == [older["id"], newer["id"]]
