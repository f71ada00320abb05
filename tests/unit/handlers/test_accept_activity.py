"""Who may accept what: checked before anything is loaded, and again by the run's own review."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.comment_command import AcceptCommand
from ci_bot.bot.github.port import Permission, PullComment
from ci_bot.bot.handlers import accept_command, owner_command
from ci_bot.bot.policy.model_owners import ModelOwnershipByPolicy
from ci_bot.errors import BotError
from ci_bot.protocol.base import Failure
from ci_bot.protocol.review_report import ModelOwners, Risk
from tests.factories import HEAD, make_change, make_report, make_risk
from tests.publishing import Memory, context_of, publisher_of
from tests.unit.handlers.test_command_activity import ACCEPT

MERGE, BASE, OTHER = "c" * 40, "b" * 40, "d" * 40
LINE = '/sqlmesh accept join-changed mart.a "one row per key"'


def comment(body: str = LINE, *, number: int = 142, updated: str = "10:00") -> PullComment:
    return PullComment(
        id=99,
        number=number,
        body=body,
        author="ada",
        created_at="2026-11-22T10:00:00Z",
        updated_at=f"2026-11-22T{updated}:00Z",
        url="",
    )


@dataclass
class GitHub(Memory):
    asked: PullComment = field(default_factory=comment)
    members: tuple[tuple[str, str], ...] = ()

    def get_comment(self, comment_id: int) -> PullComment:
        self._call("get_comment")
        return self.asked

    def in_team(self, team: str, login: str) -> bool:
        self._call("in_team")
        return (team, login) in self.members


class Checkout:
    """The part of a client that is asked before anything is loaded."""

    def __init__(self, head: str = MERGE, parents: tuple[str, ...] = (BASE, HEAD)) -> None:
        self.git = self
        self._head, self._parents = head, parents

    def read_head(self) -> str:
        return self._head

    def list_parents(self, commit: str) -> list[str]:
        return list(self._parents)


def refused(github: GitHub, checkout: Checkout | None = None) -> BotError:
    context = context_of(publisher_of(github), github, checkout or Checkout())
    activity = activities.Accept(number=142, comment_id=99)
    with pytest.raises(BotError) as caught:
        accept_command.AcceptHandler().run(activity, context)
    return caught.value


def github(**pull: Any) -> GitHub:
    found = GitHub()
    found.pull = replace(found.pull, merge_sha=MERGE, default_branch="main", **pull)
    return found


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (comment(updated="10:07"), "bad_comment"),
        (comment(number=7), "bad_comment"),
        (comment("/sqlmesh apply 0123456789ab"), "bad_comment"),
        (comment("> " + LINE), "bad_comment"),
        (comment(LINE.removesuffix(' "one row per key"')), "bad_comment"),
    ],
    ids=["edited", "of another pull request", "another command", "a quotation", "no reason"],
)
def test_accept__goes_by_the_unedited_comment_alone(asked: PullComment, reason: str) -> None:
    found = github()
    found.asked = asked
    error = refused(found)
    assert (error.reason_code, error.exit_code) == (reason, 3)


@pytest.mark.parametrize(
    ("role", "pull", "checkout", "reason"),
    [
        ("read", {}, Checkout(), "permission"),
        ("none", {}, Checkout(), "permission"),
        ("write", {"fork": True}, Checkout(), "fork"),
        ("write", {"open": False}, Checkout(), "closed"),
        ("write", {"draft": True}, Checkout(), "draft"),
        ("write", {"head_sha": OTHER}, Checkout(), "wrong_checkout"),
        ("write", {"base_ref": "lax"}, Checkout(), "untrusted_base"),
        ("write", {}, Checkout(OTHER), "untrusted_base"),
    ],
)
def test_accept__is_refused_before_anything_is_loaded(
    role: Permission, pull: dict[str, Any], checkout: Checkout, reason: str
) -> None:
    found = github(**pull)
    found.role = role
    error = refused(found, checkout)
    assert (error.reason_code, error.exit_code) == (reason, 3)
    assert error.hint


HIGH = make_risk("join-changed", model="mart.a", severity="high")


def test_findings__are_all_of_the_rule_on_the_model_heaviest_first() -> None:
    low = make_risk("join-changed", model="mart.a", severity="low", subject="x")
    own = make_report(risks=[HIGH, low, make_risk("join-changed", model="mart.b")])
    assert list(accept_command.list_findings_that_owner_accepts(own, ACCEPT)) == [HIGH, low]


FAILURE = Failure(stage="load", reason_code="load_failed", exit_code=1, message="No.", hint="Do.")


@pytest.mark.parametrize(
    ("report", "command", "reason", "told"),
    [
        ({}, ACCEPT, "no_such_finding", "has none that could be accepted"),
        (
            {"risks": [HIGH]},
            replace(ACCEPT, model="mart.aa"),
            "no_such_finding",
            "join-changed mar",
        ),
        ({"set_aside": [HIGH]}, ACCEPT, "no_such_finding", "The comment says why."),
        ({"failure": FAILURE}, ACCEPT, "no_reviewed_plan", "Do."),
        ({"risks": [HIGH]}, replace(ACCEPT, rule="R12-code-on-load"), "not_acceptable", "Nobody"),
        (
            {"risks": [make_risk("join-changed", model="mart.a", severity="blocker"), HIGH]},
            ACCEPT,
            "not_acceptable",
            "`--override`",
        ),
    ],
    ids=["none", "another model", "counts no more", "no plan", "always counts", "it blocks"],
)
def test_findings__that_cannot_be_accepted_are_told_with_the_fix(
    report: dict[str, Any], command: AcceptCommand, reason: str, told: str
) -> None:
    with pytest.raises(BotError) as caught:
        accept_command.list_findings_that_owner_accepts(
            make_report(**{"risks": [], **report}), command
        )
    assert caught.value.reason_code == reason
    assert told in (caught.value.hint or "")


def test_acceptance__is_bound_to_the_model_that_changes() -> None:
    own = make_report(changes=[make_change("mart.a", fingerprint="a-b-c")])
    assert accept_command.find_fingerprint_for_owner_command(own, "mart.a") == "a-b-c"
    with pytest.raises(BotError) as caught:
        accept_command.find_fingerprint_for_owner_command(own, "mart.b")
    assert caught.value.reason_code == "not_acceptable"


def test_owner__is_a_person_who_is_named_or_in_a_team() -> None:
    found = GitHub(members=(("acme/data", "bob"),))
    ownership = ModelOwnershipByPolicy(("Ada",), ("acme/bi", "acme/data"), "CODEOWNERS line 1")
    assert owner_command.is_commenter_owner("ada", ownership, found)
    assert found.calls == [], "nobody else has to be asked"
    assert owner_command.is_commenter_owner("bob", ownership, found)
    assert not owner_command.is_commenter_owner("eve", ownership, found)
    assert not owner_command.is_commenter_owner("eve", ModelOwnershipByPolicy(), found)


def test_owner__who_is_not_is_told_who_is() -> None:
    own = make_report(
        owners=[ModelOwners(model="mart.a", logins=["bob"], teams=["acme/bi"], place="CODEOWNERS")]
    )
    error = owner_command.make_not_owner_error(
        "ada", "mart.a", accept_command.find_owners_of_risk_for_command(own, HIGH)
    )
    assert error.message == "`@ada` does not own `mart.a`."
    assert (error.hint or "").startswith("`@bob` or `@acme/bi` may accept it, by CODEOWNERS.")
    assert "`members: read`" in (error.hint or "")
    error = owner_command.make_not_owner_error(
        "ada",
        "mart.b",
        accept_command.find_owners_of_risk_for_command(
            own, make_risk("join-changed", model="mart.b")
        ),
    )
    assert error.message.startswith("Nobody owns `mart.b`")


def reader(name: str) -> Risk:
    return make_risk("exposure-affected", model="mart.a", severity="high", subject=name)


def asked(name: str, *logins: str, teams: tuple[str, ...] = ()) -> ModelOwners:
    return ModelOwners(
        model="mart.a",
        rule="exposure-affected",
        subject=name,
        logins=list(logins),
        teams=list(teams),
        place=f"policy line of {name}",
    )


OF_MODEL = ModelOwners(model="mart.a", logins=["lead"], teams=[], place="CODEOWNERS line 1")


def test_reader__outside_is_accepted_by_its_own_owner() -> None:
    own = make_report(owners=[OF_MODEL, asked("One", "ada"), asked("Two", teams=("acme/bi",))])
    every = [reader("One"), reader("Two"), reader("Three")]
    found = github()
    found.members = (("acme/bi", "bob"),)
    assert accept_command.list_findings_of_commenting_owner("ada", every, own, found) == [every[0]]
    assert accept_command.list_findings_of_commenting_owner("bob", every, own, found) == [every[1]]
    # Whom nobody on GitHub answers for is for the owner of the model.
    assert accept_command.list_findings_of_commenting_owner("lead", every, own, found) == [every[2]]
    with pytest.raises(BotError) as caught:
        accept_command.list_findings_of_commenting_owner("eve", every, own, found)
    assert caught.value.reason_code == "not_the_owner"
    assert "`@ada` may accept it, by policy line of One." in (caught.value.hint or "")


def test_owners__of_a_reader_do_not_own_the_model() -> None:
    own = make_report(owners=[asked("One", "ada")])
    assert accept_command.find_owners_of_risk_for_command(own, HIGH) == ModelOwnershipByPolicy()
