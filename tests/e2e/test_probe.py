"""A probe on a pull request, through `ci-bot run`: an answer, no environment, and nothing lost."""

from __future__ import annotations

import pytest

from tests.e2e.scene import BOT, Scene
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.night]


def change_orders(shop: Shop) -> None:
    shop.edit("models/orders.sql", "customer_id * 10 AS INT", "customer_id * 9 AS INT")


def test_probe__answers_and_leaves_the_comment_and_a_close_removes_it(scene: Scene) -> None:
    change = scene.open("probe", change_orders)
    reviewed = change.review()
    assert reviewed.exit_code == 0, f"{reviewed.stdout}\n{reviewed.stderr}"
    plan, before = str(reviewed.outputs["plan-id"]), change.sticky()

    comment = change.pull.add_comment(f"/sqlmesh apply {plan[:12]} --probe", login="writer")
    probed = change.dispatch({"comment-id": str(comment["id"])}, actor=BOT)

    assert probed.exit_code == 0, f"{probed.stdout}\n{probed.stderr}"
    assert (probed.outputs["reason-code"], probed.outputs["plan-id"]) == ("probed", plan)
    assert probed.result["activity"] == "probe"
    assert probed.result["executor_hours"] > 0
    assert change.sticky() == before
    said = change.notes()[-1]
    assert "The newest batch of 1 model was built" in said
    assert "`shop.orders` (5 intervals)" in said
    assert "- `shop.revenue`: its kind (FULL) is built as a whole" in said
    assert f"/sqlmesh apply {plan[:12]}" in said
    assert change.environment not in scene.shop.environments()
    assert change.environment in scene.shop.not_cleaned_up()

    change.close()
    closed = change.closed()

    assert closed.exit_code == 0, f"{closed.stdout}\n{closed.stderr}"
    assert change.environment not in scene.shop.not_cleaned_up()
