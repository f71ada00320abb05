"""Who lets prod build a model again: checked before anything is loaded, and by the run's review."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.github.port import Permission
from ci_bot.bot.handlers import restate_command
from ci_bot.errors import BotError
from ci_bot.protocol.base import Failure
from ci_bot.protocol.review_inputs import ProdRestatement, RecordedRestatement
from tests.factories import make_report
from tests.publishing import context_of, publisher_of
from tests.unit.handlers.test_accept_activity import OTHER, Checkout, GitHub, comment, github

LINE = '/sqlmesh restate mart.a 2024-01-01 2024-01-07 "late rows"'
OFF = "/sqlmesh restate mart.a off"


def refused(found: GitHub, checkout: Checkout | None = None) -> BotError:
    context = context_of(publisher_of(found), found, checkout or Checkout())
    activity = activities.Restate(number=142, comment_id=99)
    with pytest.raises(BotError) as caught:
        restate_command.RestateHandler().run(activity, context)
    return caught.value


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (LINE, {"updated": "10:07"}),
        (LINE, {"number": 7}),
        ('/sqlmesh accept join-changed mart.a "x"', {}),
        (f"> {LINE}", {}),
        ("/sqlmesh restate mart.a 2024-01-01", {}),
    ],
    ids=["edited", "of another pull request", "another command", "a quotation", "no reason"],
)
def test_restate__goes_by_the_unedited_comment_alone(body: str, more: dict[str, Any]) -> None:
    found = github()
    found.asked = comment(body, **more)
    error = refused(found)
    assert (error.reason_code, error.exit_code) == ("bad_comment", 3)


@pytest.mark.parametrize("line", [LINE, OFF])
@pytest.mark.parametrize(
    ("role", "pull", "checkout", "reason"),
    [
        ("read", {}, Checkout(), "permission"),
        ("none", {}, Checkout(), "permission"),
        ("write", {"fork": True}, Checkout(), "fork"),
        ("write", {"open": False}, Checkout(), "closed"),
        ("write", {"draft": True}, Checkout(), "draft"),
        ("write", {"head_sha": OTHER}, Checkout(), "wrong_checkout"),
    ],
)
def test_restate__is_refused_before_anything_is_loaded(
    line: str, role: Permission, pull: dict[str, Any], checkout: Checkout, reason: str
) -> None:
    found = github(**pull)
    found.role, found.asked = role, comment(line)
    error = refused(found, checkout)
    assert (error.reason_code, error.exit_code) == (reason, 3)
    assert error.hint


@pytest.mark.parametrize(
    ("pull", "checkout"), [({"base_ref": "lax"}, Checkout()), ({}, Checkout(OTHER))]
)
def test_restate__needs_a_base_that_says_who_owns_a_model(
    pull: dict[str, Any], checkout: Checkout
) -> None:
    found = github(**pull)
    found.asked = comment(LINE)
    assert refused(found, checkout).reason_code == "untrusted_base"


ASKED = RecordedRestatement(
    model="mart.a",
    start=None,
    end=None,
    fingerprint="1-2-3",
    rebuilds=["mart.a"],
    by="ada",
    at="2026-11-22T10:00:00Z",
    reason="late rows",
    comment_id=99,
    head_sha=None,
    prod_plan_id=None,
)
REFUSED = Failure(
    stage="restate", reason_code="unknown_model", exit_code=2, message="No.", hint="Do."
)


@pytest.mark.parametrize(
    ("report", "reason", "code"),
    [
        ({"refused_wish": REFUSED}, "unknown_model", 2),
        ({"failure": REFUSED}, "no_reviewed_plan", 3),
        (
            {"prod_restatements": [ProdRestatement(recorded=ASKED, problem="It fails.")]},
            "not_restatable",
            3,
        ),
    ],
)
def test_asked__that_cannot_be_is_refused(report: dict[str, Any], reason: str, code: int) -> None:
    with pytest.raises(BotError) as caught:
        restate_command.find_restatement_asked_in_comment(make_report(**report))
    assert (caught.value.reason_code, caught.value.exit_code) == (reason, code)


def test_asked__is_the_last_of_the_review() -> None:
    other = ProdRestatement(recorded=ASKED.model_copy(update={"model": "mart.b"}))
    own = ProdRestatement(recorded=ASKED)
    assert (
        restate_command.find_restatement_asked_in_comment(
            make_report(prod_restatements=[other, own])
        )
        is own
    )


def test_take_back__of_what_was_never_recorded_names_what_is() -> None:
    restate_command.check_restatement_command_was_recorded("mart.a", [ASKED])
    with pytest.raises(BotError) as caught:
        restate_command.check_restatement_command_was_recorded("mart.aa", [ASKED])
    assert (caught.value.reason_code, caught.value.exit_code) == ("no_such_restatement", 2)
    assert "`mart.a`" in (caught.value.hint or "")
    with pytest.raises(BotError) as caught:
        restate_command.check_restatement_command_was_recorded("mart.a", [])
    assert caught.value.hint == "None is."
