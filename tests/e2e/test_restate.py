"""An owner lets prod build a model again after the merge, on pull requests of the stand-in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.job import Outcome
from tests.e2e.scene import BOT, Change, Edit, Scene
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OWNERS = "* @maintainer\n/project/models/orders* @writer\n"
LINE = '/sqlmesh restate shop.orders 2024-01-02 2024-01-03 "the shop sent two days again"'


def note(text: str) -> Edit:
    """A commit that SQLMesh reads nothing of: only the source's rows have changed."""
    return lambda shop: (shop.project / "NOTES.md").write_text(text, "utf-8")


def owners(scene: Scene) -> None:
    def edit(shop: Shop) -> None:
        (shop.project.parent / "CODEOWNERS").write_text(OWNERS, "utf-8")

    scene.commit("main", edit, "Agree on it")
    scene.push("main")


def command(change: Change, text: str, author: str = "writer") -> Outcome:
    """Somebody writes a command, and comments.yml starts apply.yml for it."""
    asked = change.pull.add_comment(text, author)
    inputs = {"mode": "restate", "comment-id": str(asked["id"])}
    return change.dispatch(inputs, actor=BOT)


def recorded(outcome: Outcome) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = outcome.document("report")["prod_restatements"]
    return [item["recorded"] for item in items]


@pytest.mark.night
def test_restate__by_the_owner_is_reviewed_recorded_and_taken_back(scene: Scene) -> None:
    owners(scene)
    change = scene.open("late", note("The shop sent two days again.\n"))
    assert change.review("opened").outputs["decision"] == "no_changes"

    outcome = command(change, LINE)
    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["decision"] == "go"
    (item,) = recorded(outcome)
    assert (item["model"], item["by"]) == ("shop.orders", "writer")
    assert (item["start"], item["end"]) == ("2024-01-02T00:00:00Z", "2024-01-04T00:00:00Z")
    text = change.sticky()
    assert "restated-after-merge" in text
    assert "the shop sent two days again" in text
    assert "from 2024-01-02 to 2024-01-03" in text

    # Another commit, and a comment that says nothing of it any more: the ledger counts.
    change.pull.edit_comment(change.sticky_id(), "gone", "writer")
    change.push(note("And a third one.\n"))
    outcome = change.review("synchronize")
    assert outcome.outputs["decision"] == "go", outcome.stdout
    assert recorded(outcome) == [item]

    refusals = (
        (command(change, LINE, "maintainer"), 3, "not_the_owner"),
        (command(change, LINE, "reader"), 3, "permission"),
        (command(change, '/sqlmesh restate shop.customers "x"'), 3, "not_restatable"),
        (command(change, '/sqlmesh restate shop.ordrs "x"'), 2, "unknown_model"),
        (command(change, "/sqlmesh restate shop.revenue off"), 2, "no_such_restatement"),
        (command(change, "/sqlmesh restate shop.orders 2024-01-02"), 3, "bad_comment"),
    )
    for refused, code, reason in refusals:
        assert refused.exit_code == code, f"{reason}: {refused.stdout}"
        assert refused.outputs["reason-code"] == reason
    assert recorded(change.review("synchronize")) == [item]

    # Whoever may write takes it back, and prod stays as it is.
    outcome = command(change, "/sqlmesh restate shop.orders off", "maintainer")
    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["decision"] == "no_changes"
    assert recorded(outcome) == []


@pytest.mark.night
def test_restate__of_a_model_whose_file_the_author_moves_to_their_own_is_refused(
    scene: Scene,
) -> None:
    owners(scene)

    def move(shop: Shop) -> None:
        models = shop.project / "models"
        (models / "revenue.sql").rename(models / "orders_revenue.sql")

    change = scene.open("moved", move)
    change.review("opened")
    outcome = command(change, '/sqlmesh restate shop.revenue "mine now"')
    assert outcome.exit_code == 3, outcome.stdout
    assert outcome.outputs["reason-code"] == "not_the_owner"
