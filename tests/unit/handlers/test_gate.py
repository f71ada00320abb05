"""The apply gate: every condition by itself, all of them together, and nobody gets around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.actions.comment_command import ApplyCommand
from ci_bot.bot.github.port import Permission, PullRequest
from ci_bot.bot.handlers.gate import (
    ApplyRequester,
    list_gate_conditions_of_review,
    list_gate_conditions_to_load,
    list_unmet_conditions_of_apply_gate,
)
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.plan import Window
from tests.factories import make_report

HEAD, BASE, OTHER = "a" * 40, "b" * 40, "c" * 40
PLAN = "0123456789abcdef" * 4
PULL = PullRequest(
    number=7,
    open=True,
    merged=False,
    draft=False,
    mergeable=True,
    head_sha=HEAD,
    head_ref="feature",
    head_repository="acme/warehouse",
    base_sha=BASE,
    base_ref="main",
    merge_sha=OTHER,
    author="author",
    fork=False,
    url="https://github.example/acme/warehouse/pull/7",
)
WINDOW = Window(start=None, end="2024-01-11T00:00:00Z", execution_time="2024-02-01T00:00:00Z")
REQUEST = ApplyRequester(
    by="writer",
    permission="write",
    command=ApplyCommand(PLAN[:12]),
    checked_out=(BASE, HEAD),
)


def asking(permission: Permission = "write", **command: Any) -> ApplyRequester:
    """Somebody who asks for it in other words."""
    return replace(REQUEST, permission=permission, command=replace(REQUEST.command, **command))


def marker(**changes: Any) -> Marker:
    facts: dict[str, Any] = {
        "key": "project",
        "pr": 7,
        "head": HEAD,
        "env": "pr_7",
        "plan": PLAN,
        "window": WINDOW,
        "phase": "planned",
        "decision": "go",
        "valid_at": "2024-02-01T00:00:00Z",
    }
    return Marker(**{**facts, **changes})


MARKER = marker()


def reasons(
    request: ApplyRequester = REQUEST, pull: PullRequest = PULL, known: Marker | None = MARKER
) -> list[str]:
    return [item.reason_code for item in list_unmet_conditions_of_apply_gate(request, pull, known)]


def test_gate__with_every_condition_met__is_open() -> None:
    assert reasons() == []
    assert reasons(asking(plan_id=None)) == [], "without an id it is the reviewed plan"
    assert reasons(asking(plan_id=PLAN)) == []
    assert reasons(known=marker(decision="review")) == []
    assert reasons(pull=replace(PULL, mergeable=None)) == [], "GitHub has not worked it out yet"


@pytest.mark.parametrize(
    ("request_", "pull", "known", "reason"),
    [
        (REQUEST, replace(PULL, open=False), MARKER, "closed"),
        (REQUEST, replace(PULL, fork=True), MARKER, "fork"),
        (REQUEST, replace(PULL, draft=True), MARKER, "draft"),
        (REQUEST, replace(PULL, mergeable=False), MARKER, "conflict"),
        (replace(REQUEST, permission="triage"), PULL, MARKER, "permission"),
        (replace(REQUEST, permission="read"), PULL, MARKER, "permission"),
        (replace(REQUEST, permission="none"), PULL, MARKER, "permission"),
        (asking(override="hurry"), PULL, MARKER, "override_permission"),
        (REQUEST, PULL, None, "no_reviewed_plan"),
        (REQUEST, PULL, marker(plan=None), "no_reviewed_plan"),
        (REQUEST, PULL, marker(window=None), "no_reviewed_plan"),
        (REQUEST, PULL, marker(head=OTHER), "head_moved"),
        (REQUEST, replace(PULL, head_sha=OTHER), MARKER, "head_moved"),
        (REQUEST, PULL, marker(head=None), "head_moved"),
        (replace(REQUEST, checked_out=()), PULL, MARKER, "wrong_checkout"),
        (replace(REQUEST, checked_out=(BASE, OTHER)), PULL, MARKER, "wrong_checkout"),
        (asking(plan_id="f" * 12), PULL, MARKER, "unknown_plan"),
        (asking(plan_id=PLAN[:7]), PULL, MARKER, "unknown_plan"),
        (asking(plan_id=""), PULL, MARKER, "unknown_plan"),
        (REQUEST, PULL, marker(decision="no_go"), "no_go"),
        (asking(override=""), PULL, marker(decision="no_go"), "no_go"),
    ],
)
def test_gate__names_the_one_condition_that_is_not_met(
    request_: ApplyRequester, pull: PullRequest, known: Marker | None, reason: str
) -> None:
    found = list_unmet_conditions_of_apply_gate(request_, pull, known)

    assert [item.reason_code for item in found] == [reason]
    assert found[0].message.endswith(".")
    assert found[0].hint


def test_gate__names_all_conditions__the_most_basic_first() -> None:
    request = asking("read", plan_id="f" * 12)
    pull = replace(PULL, open=False, fork=True, draft=True, mergeable=False)

    assert reasons(request, pull, marker(head=OTHER, decision="no_go")) == [
        "closed",
        "fork",
        "draft",
        "conflict",
        "permission",
        "head_moved",
        "unknown_plan",
        "no_go",
    ]


@pytest.mark.parametrize(
    ("permission", "expected"),
    [
        ("admin", []),
        ("maintain", []),
        ("write", ["override_permission"]),
        ("triage", ["permission"]),
    ],
)
def test_gate__a_no_go_is_overridden_by_a_maintainer_with_a_reason_only(
    permission: Permission, expected: list[str]
) -> None:
    request = asking(permission, override="the blocker is known")

    assert reasons(request, known=marker(decision="no_go")) == expected


@pytest.mark.parametrize("said", ["go", "review", "no_changes", None])
def test_gate__a_no_go_of_this_runs_own_review_counts_whatever_the_comment_says(
    said: Any,
) -> None:
    own = make_report(plan_id=PLAN, decision="no_go")

    (found,) = list_gate_conditions_of_review(REQUEST, own, marker(decision=said))

    assert found.reason_code == "no_go"
    assert "The comment says otherwise" in found.message
    assert f'`/sqlmesh apply {PLAN[:12]} --override "reason"`' in found.hint
    assert list_gate_conditions_of_review(asking(override=""), own, marker(decision=said))
    # Who gives a reason has been asked for maintain access before anything was planned.
    overridden = asking("maintain", override="the blocker is known")
    assert list_gate_conditions_of_review(overridden, own, marker(decision=said)) == []


@pytest.mark.parametrize("decision", ["go", "review", "no_changes"])
def test_gate__this_runs_own_review_lets_through_what_is_no_no_go(decision: Any) -> None:
    assert list_gate_conditions_of_review(REQUEST, make_report(decision=decision), MARKER) == []


@settings(deadline=None)
@given(
    permission=st.sampled_from(["admin", "maintain", "write", "triage", "read", "none"]),
    override=st.sampled_from([None, "hurry"]),
    plan_id=st.sampled_from([None, PLAN, PLAN[:8], "f" * 12]),
    head=st.sampled_from([HEAD, OTHER]),
    decision=st.sampled_from(["go", "review", "no_go", "no_changes", None]),
    flags=st.tuples(*[st.booleans()] * 3),
)
def test_gate__opens_for_nobody_whom_a_condition_stops(
    permission: Permission,
    override: str | None,
    plan_id: str | None,
    head: str,
    decision: Any,
    flags: tuple[bool, bool, bool],
) -> None:
    is_open, fork, draft = flags
    request = asking(permission, plan_id=plan_id, override=override)
    pull = replace(PULL, open=is_open, fork=fork, draft=draft, head_sha=head)

    opened = list_unmet_conditions_of_apply_gate(request, pull, marker(decision=decision)) == []

    writer = permission in ("admin", "maintain", "write")
    maintainer = permission in ("admin", "maintain")
    assert opened == (
        (is_open and not fork and not draft)
        and (writer and (override is None or maintainer))
        and (head == HEAD and plan_id != "f" * 12)
        and (decision != "no_go" or override is not None)
    )


@pytest.mark.parametrize(
    ("request_", "pull", "expected"),
    [
        (REQUEST, PULL, []),
        (REQUEST, replace(PULL, open=False), ["closed"]),
        (REQUEST, replace(PULL, fork=True), ["fork"]),
        (REQUEST, replace(PULL, draft=True), ["draft"]),
        (REQUEST, replace(PULL, mergeable=False), ["conflict"]),
        (replace(REQUEST, permission="triage"), PULL, ["permission"]),
        (replace(REQUEST, permission="none"), PULL, ["permission"]),
        (replace(REQUEST, checked_out=(BASE, OTHER)), PULL, ["wrong_checkout"]),
        (REQUEST, replace(PULL, head_sha=OTHER), ["wrong_checkout"]),
    ],
)
def test_person__who_accepts_or_estimates_needs_what_an_apply_needs(
    request_: ApplyRequester, pull: PullRequest, expected: list[str]
) -> None:
    against = list_gate_conditions_to_load(
        request_.by, request_.permission, pull, request_.checked_out, what="an estimate"
    )
    assert [item.reason_code for item in against] == expected
