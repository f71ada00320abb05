"""Somebody has edited the bot's comment: what it says may refuse an apply, and lets none through.

Who may write to a repository may edit the comment, and every workflow there posts as the same bot.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ci_bot.bot.report.markdown.marker import decode_comment_marker, encode_comment_marker
from ci_bot.protocol.comment import Marker
from tests import nights
from tests.e2e.scene import BOT, Change, Scene, add_orders
from tests.github_standin.standin import GitHubStandin
from tests.integration.test_review import digest
from tests.projects import Shop

pytestmark = pytest.mark.spark


def break_a_test(shop: Shop) -> None:
    """The unit test still expects the old sums: No-Go."""
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount * 2)")


@dataclass
class NoGo:
    """A pull request that was reviewed and is No-Go, and the comment that says so."""

    change: Change
    marker: Marker
    body: str

    def say(self, **claims: object) -> None:
        """Makes the comment's record say something else; the rest of it stays."""
        forged = encode_comment_marker(self.marker.model_copy(update=claims))
        body = f"{forged}\n{self.body.partition(chr(10))[2]}".replace("No-Go", "Go")
        self.change.pull.edit_comment(self.change.sticky_id(), body, "writer")


@pytest.fixture(scope="module")
def no_go(
    github_standin_process: GitHubStandin,
    built_shop: Shop,
    tmp_path_factory: pytest.TempPathFactory,
) -> NoGo:
    """Reviewed once: what is refused leaves everything as it was, but for the comment."""
    scene = Scene(github_standin_process, built_shop, tmp_path_factory.mktemp("forged"))
    change = scene.open("untested", break_a_test)
    outcome = change.review("opened")
    assert outcome.outputs["decision"] == "no_go", outcome.stdout
    return NoGo(change, change.marker(), change.sticky())


def edited(no_go: NoGo, **claims: object) -> None:
    no_go.say(**claims)


def rewritten(no_go: NoGo, **claims: object) -> None:
    """Another workflow of the repository removes the comment and writes its own, marker only."""
    change = no_go.change
    change.pull.delete_comment(change.sticky_id(), BOT)
    change.pull.add_comment(encode_comment_marker(no_go.marker.model_copy(update=claims)), BOT)


@pytest.mark.parametrize(
    "forge",
    nights.cases({"edited": edited, "rewritten": rewritten}, by_day=["rewritten"]),
)
def test_no_go__that_the_comment_calls_go__is_refused_to_a_writer(
    no_go: NoGo, built_shop: Shop, forge: Callable[..., None]
) -> None:
    plan = no_go.marker.plan or ""
    state, warehouse = digest(built_shop.state), digest(built_shop.warehouse)
    forge(no_go, decision="go")

    outcome = no_go.change.dispatch({"plan-id": plan[:12]}, actor="writer")

    assert outcome.exit_code == 3, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["reason-code"] == "no_go"
    assert "reviewed the plan once more" in outcome.errors[0]
    assert "The comment says otherwise: it was edited" in outcome.errors[0]
    assert digest(built_shop.state) == state
    assert digest(built_shop.warehouse) == warehouse
    # The comment shows this run's review again, and its record is right for the next command.
    marker = no_go.change.marker()
    assert (marker.phase, marker.decision, marker.plan) == ("refused", "no_go", plan)
    assert "unit test" in no_go.change.sticky().partition("<!-- review -->")[2]
    assert outcome.document("report")["decision"] == "no_go"


def test_no_go__that_the_comment_calls_go__needs_maintain_access_all_the_same(
    no_go: NoGo,
) -> None:
    plan = no_go.marker.plan or ""
    no_go.say(decision="go")

    outcome = no_go.change.dispatch({"plan-id": plan, "override-reason": "hurry"}, actor="writer")

    assert outcome.exit_code == 3, outcome.stdout
    assert outcome.outputs["reason-code"] == "override_permission"


@pytest.mark.night
@pytest.mark.parametrize(
    "claim",
    nights.cases(["another plan", "a longer window", "another head"], by_day=["a longer window"]),
)
def test_comment__that_names_what_is_not_there__builds_nothing(
    no_go: NoGo, built_shop: Shop, claim: str
) -> None:
    window = no_go.marker.window
    assert window is not None
    claims: dict[str, dict[str, object]] = {
        "another plan": {"plan": "0123456789abcdef" * 4},
        "a longer window": {"window": window.model_copy(update={"start": "2020-01-01T00:00:00Z"})},
        "another head": {"head": "0" * 40},
    }
    state, warehouse = digest(built_shop.state), digest(built_shop.warehouse)
    no_go.say(decision="go", **claims[claim])
    plan = str(claims[claim].get("plan", no_go.marker.plan))

    outcome = no_go.change.dispatch({"plan-id": plan[:12]}, actor="writer")

    assert outcome.exit_code == 3, f"{outcome.stdout}\n{outcome.stderr}"
    reason = "head_moved" if claim == "another head" else "plan_changed"
    assert outcome.outputs["reason-code"] == reason
    assert digest(built_shop.state) == state
    assert digest(built_shop.warehouse) == warehouse


@pytest.mark.night
@pytest.mark.slow
def test_apply__says_which_decision_counted(scene: Scene) -> None:
    """The limits of this run are stricter than the review's were: Review, not Go."""
    change = scene.open("add-orders", add_orders)
    plan = change.review("opened").outputs["plan-id"]
    assert change.marker().decision == "go"

    outcome = change.dispatch({"plan-id": plan, "max-intervals": "0"})

    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["decision"] == "review"
    assert change.marker().decision == "review"
    top = change.sticky().partition("<!-- review -->")[0]
    assert re.search(r"the comment said .*Go.*reviewed the plan once more: .*Review", top)
    assert re.search(r"Decision with this data: .*Review", top)
    assert outcome.document("report")["decision"] == "review"
    assert decode_comment_marker(change.sticky()) is not None
