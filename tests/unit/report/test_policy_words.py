"""What a comment and a terminal say of weights that are not the rules' own."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.markdown import notices
from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.model import policy_words
from ci_bot.bot.report.text.report_text import render_terminal_text
from ci_bot.protocol.review_report import ModelOwners, PolicyUsed, Report, Weighed
from tests.factories import HEAD, make_context, make_report, make_risk
from tests.unit.policy.test_accepting import acceptance

PLACE = ".sqlmesh-review.yaml line 4"


def told(by: str, **more: Any) -> Weighed:
    return Weighed.model_validate(
        {"by": by, "weight": "high", "reason": "we know", "place": PLACE, **more}
    )


ACCEPTED = told("acceptance", place=None, who="alice", at="2026-11-22T10:00:00Z")
WAYS = [
    (told("severity"), f"By itself high; `{PLACE}` says otherwise: we know."),
    (told("off"), f"The rule is off by `{PLACE}`: we know."),
    (told("ignore", until="2027-01-31"), f"Ignored until 2027-01-31 by `{PLACE}`: we know."),
    (told("statement"), f"Allowed by `{PLACE}`: we know."),
    (told("comment"), f"Ignored by the comment in `{PLACE}`: we know."),
    (ACCEPTED, "Accepted by `@alice` on 2026-11-22: we know."),
]


@pytest.mark.parametrize(("weighed", "expected"), WAYS)
def test_weight__is_told_with_its_reason(weighed: Weighed, expected: str) -> None:
    assert policy_words.describe_weight_of_finding(make_risk(weighed=weighed)) == expected
    assert policy_words.describe_weight_of_finding(make_risk()) == ""


def report(**more: Any) -> Report:
    return make_report(
        risks=[make_risk("join-changed", severity="medium", weighed=told("severity"))],
        set_aside=[
            make_risk("filter-changed", weighed=ACCEPTED),
            make_risk("select-star", weighed=told("ignore", until="2027-01-31")),
            make_risk("missing-grain", weighed=told("ignore", until="2027-01-31")),
        ],
        policy=PolicyUsed(source="base", commit=HEAD, files=["a/.sqlmesh-review.yaml"], entries=3),
        **more,
    )


def comment(document: Report) -> str:
    return " ".join(render_review_comment(document, make_context()).text.split())


def test_comment__says_what_weighs_otherwise_and_lists_what_does_not_count() -> None:
    text = comment(report())
    assert "By itself high" in text
    assert "**Not counted:** 1 accepted by its owner, 2 ignored by the policy" in text
    assert "<summary>3 not counted</summary>" in text
    folded = text.partition("3 not counted")[2]
    for rule in ("filter-changed", "select-star", "missing-grain"):
        assert rule in folded
    assert "Accepted by `@alice` on 2026-11-22" in folded
    assert "of the base commit" in text


def test_comment__without_a_policy_says_nothing_of_one() -> None:
    text = comment(make_report())
    for word in ("Not counted", "do not count", "Policy:", "By itself"):
        assert word not in text


def test_comment__says_why_nothing_becomes_lighter() -> None:
    used = PolicyUsed(
        source="base",
        commit=HEAD,
        files=["x"],
        loosens=False,
        not_loosened_because="It is another branch.",
    )
    text = comment(make_report(policy=used))
    assert "**The policy makes nothing lighter here.** It is another branch." in text


def test_comment__names_who_may_accept_the_first_heavy_finding() -> None:
    owners = [ModelOwners(model="stg.orders", logins=["alice"], teams=["acme/data"], place="x")]
    found = make_risk("join-changed", model="stg.orders", severity="high")
    text = comment(make_report(risks=[found], owners=owners))
    assert "`@alice` or `@acme/data` may accept it" in text
    assert '/sqlmesh accept join-changed stg.orders "reason"' in text
    blocked = make_risk("join-changed", model="stg.orders", severity="blocker")
    assert "may accept it" not in comment(make_report(risks=[blocked], owners=owners))


def test_comment__takes_nothing_of_a_reason_for_markup() -> None:
    evil = told("off", reason="<!-- x --> @everyone [a](http://x) </details> | `")
    text = comment(make_report(set_aside=[make_risk("select-star", weighed=evil)]))
    folded = text.partition("Findings that do not count")[2]
    assert "<!-- x" not in folded
    assert "`[a](http://x)`" in folded, "as code, which is no link"
    assert "`@everyone`" in folded


def test_reply__says_what_was_accepted_where_the_comment_cannot() -> None:
    item = acceptance(reason="<!-- x --> @everyone")
    text = notices.render_accepted_comment(
        item, make_report(decision="go"), make_context(marker=None)
    )
    assert "`@alice` accepts `join-changed` on `mart.a`: `<!--` x `-->` `@everyone`" in text
    assert "A review would say 🟢 Go now." in text


def test_terminal__has_the_same() -> None:
    text = " ".join(render_terminal_text(report(), make_context(marker=None)).split())
    assert "By itself high; .sqlmesh-review.yaml line 4 says otherwise: we know." in text
    assert "Not counted 1 accepted by its owner, 2 ignored by the policy" in text
    assert "Accepted by @alice on 2026-11-22: we know." in text
    assert "of the base commit" in text


def test_terminal__says_that_the_policy_is_the_one_that_lies_here() -> None:
    used = PolicyUsed(source="working_tree", files=[".sqlmesh-review.yaml"], entries=1)
    text = " ".join(
        render_terminal_text(make_report(policy=used), make_context(marker=None)).split()
    )
    assert (
        ".sqlmesh-review.yaml of this directory, because there is no base commit; 1 entry." in text
    )
