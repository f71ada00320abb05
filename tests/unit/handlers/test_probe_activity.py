"""What is answered of a probe on a pull request; the comment stays as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.comment_command import ApplyCommand
from ci_bot.bot.handlers import estimate
from ci_bot.bot.handlers.apply import ApplyHandler
from ci_bot.bot.handlers.estimate import report_estimate_failure
from ci_bot.bot.report.markdown import marker
from ci_bot.errors import BadInput
from ci_bot.protocol.apply_report import ApplyDocument, ApplyStep, NotProbed
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import ActualCost
from tests.factories import HEAD, PLAN, make_apply, make_marker
from tests.publishing import Memory, context_of, publisher_of
from tests.unit.handlers.test_accept_activity import BASE
from tests.unit.handlers.test_command_activity import WINDOW
from tests.unit.handlers.test_estimate_activity import COST

NOT_PROBED = NotProbed(model="shop.on_top", why="its kind (FULL) is built as a whole")


def document(**overrides: Any) -> ApplyDocument:
    given: dict[str, Any] = {
        "result": "probed",
        "reason_code": "probed",
        "views": [],
        "table_diff": [],
        "estimate": COST,
        "not_probed": [NOT_PROBED],
        "cost": ActualCost(source="counters", allocated_hours=0.5),
    }
    return make_apply(**given | overrides)


def published(found: ApplyDocument, limit: float | None = None) -> tuple[int, Memory, str]:
    github = Memory()
    github.say(f"{marker.encode_comment_marker(make_marker(window=WINDOW))}\nThe review.")
    before = list(github.comments)
    publisher = publisher_of(github)
    code = estimate.publish_estimate(found, publisher, limit)
    assert github.comments[: len(before)] == before
    said = [each.body for each in github.comments[len(before) :]]
    return code, github, "\n".join(said)


@pytest.mark.parametrize(("limit", "code"), [(None, 0), (2.5, 0), (2.4, 1)])
def test_probe__says_what_was_built_and_what_the_whole_will_cost(
    limit: float | None, code: int
) -> None:
    ended, _, text = published(document(), limit)
    assert ended == code
    assert "The newest batch of 2 models was built, in 30 min of executor time" in text
    assert "`stg.orders` (964 intervals)" in text
    assert "An apply of this plan reuses it." in text
    assert "Building all of `pr_142`" in text
    assert "at least **2 h 30 min** of executor time" in text
    assert "- `shop.on_top`: its kind (FULL) is built as a whole" in text
    assert f"**Next:** `/sqlmesh apply {PLAN[:12]}`" in text
    assert ("⛔" in text) == (code == 1)


def test_probe__of_nothing_says_that_nothing_was_built() -> None:
    code, _, text = published(document(models=[], reason_code="nothing_to_probe", cost=None))
    assert code == 0
    assert (
        "Nothing was built: no model of this plan has a batch that says something about the others."
        in text
    )
    assert "The newest batch" not in text
    assert "Not probed:" in text


def test_probe__of_a_plan_that_is_built_says_so() -> None:
    found = document(result="nothing_to_apply", reason_code="already_applied", estimate=None)
    code, _, text = published(found)
    assert code == 0
    assert "`pr_142` has nothing left to build" in text


def test_probe__that_failed_says_what_is_left() -> None:
    failure = Failure(stage="apply", reason_code="failed", exit_code=4, message="No.", hint="Do.")
    found = document(
        result="failed",
        reason_code="failed",
        failure=failure,
        partial=["pr_142 may be half built."],
    )
    code, _, text = published(found)
    assert code == 4
    assert "No. `pr_142` may be half built." in text
    assert "**Next:** Do." in text


def test_probe__that_was_cancelled_asks_nothing_of_github() -> None:
    failure = Failure(stage="apply", reason_code="cancelled", exit_code=143, message="Stopped.")
    found = document(result="cancelled", reason_code="cancelled", failure=failure)
    code, github, text = published(found)
    assert (code, text, github.calls) == (143, "", [])


def test_probe__that_could_not_begin_is_answered() -> None:
    github = Memory()
    assert report_estimate_failure(BadInput("No.", hint="Do."), "probe", publisher_of(github)) == 2
    assert "**Next:** Do." in github.reply


class Client:
    """The part of a client that the gate asks."""

    git: Any = None

    def __init__(self) -> None:
        self.git = self

    def read_head(self) -> str:
        return "c" * 40

    def list_parents(self, commit: str) -> list[str]:
        return [BASE, HEAD]


@pytest.mark.parametrize(
    ("pull", "role", "plan", "reason"),
    [
        ({}, "read", PLAN, "permission"),
        ({"fork": True}, "write", PLAN, "fork"),
        ({"draft": True}, "write", PLAN, "draft"),
        ({"head_sha": "d" * 40}, "write", PLAN, "head_moved"),
        ({}, "write", "f" * 12, "unknown_plan"),
    ],
)
def test_probe__is_refused_for_what_refuses_an_apply(
    pull: dict[str, Any], role: Any, plan: str, reason: str
) -> None:
    github = Memory(role=role)
    github.say(f"{marker.encode_comment_marker(make_marker(window=WINDOW))}\nThe review.")
    github.pull = replace(github.pull, **pull)
    publisher = publisher_of(github)
    activity = activities.Apply(
        number=142, requested_by="ada", command=ApplyCommand(plan, probe=True)
    )
    assert ApplyHandler().run(activity, context_of(publisher, github, Client())) == 3
    assert f"`{reason}`" in github.reply
    assert len(github.comments) == 2
    assert "The review." in github.comments[0].body


def test_probe__that_ends_midway_speaks_of_tables_and_of_no_view() -> None:
    step = ApplyStep(phase="apply", message="probing pr_7", done=1, total=3, probe=True)
    assert step.describe_state_left("pr_7") == (
        "Tables for pr_7 may be there and hold a part of their data (1 of 3 batches were done). The "
        "last step was: probing pr_7. An apply of the plan reuses them; a cleanup removes them."
    )
