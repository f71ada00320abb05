"""Whether this person may apply this plan now: all unmet conditions, with their fixes. Pure.

It is checked twice. `list_unmet_conditions_of_apply_gate` uses the comment's facts about the
reviewed plan, before anything is loaded: it can only refuse. `list_gate_conditions_of_review` uses
the review of the apply's own run, and no plan is applied without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci_bot.bot.actions import ApplyCommand
from ci_bot.bot.github import Permission, PullRequest, may_maintain_on_github, may_write_on_github
from ci_bot.errors import RequestRefused
from ci_bot.protocol.base import shorten_plan_id
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.plan_identity import matches_plan_id
from ci_bot.protocol.review_report import Report

WRONG_CHECKOUT_HINT = "Check out `refs/pull/<number>/merge` with `fetch-depth: 2` in the workflow."
WRONG_CHECKOUT = "The workspace does not hold the merge commit of this pull request."


@dataclass(frozen=True, kw_only=True)
class UnmetApplyCondition:
    """A condition that is not met; `reason_code` is stable, for outputs and tests."""

    reason_code: str
    message: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class ApplyRequester:
    """The person who asks, and for which plan.

    `checked_out` are the parents of the workspace's commit: base and head of the merge commit.
    """

    by: str
    permission: Permission
    command: ApplyCommand
    checked_out: tuple[str, ...]


def list_unmet_conditions_of_apply_gate(
    requester: ApplyRequester, pull: PullRequest, marker: Marker | None
) -> list[UnmetApplyCondition]:
    """Lists all unmet conditions of an apply, the most basic first; empty if all are met."""
    found = [
        *_list_unmet_conditions_of_pull(pull),
        *_list_unmet_conditions_of_person(requester),
    ]
    if marker is None or marker.plan is None or marker.window is None:
        found.append(
            UnmetApplyCondition(
                reason_code="no_reviewed_plan",
                message="There is no reviewed plan of this pull request that could be applied.",
                hint="Ask for one with `/sqlmesh plan`, then apply its id.",
            )
        )
        return found
    found += _list_unmet_conditions_of_plan(requester, pull, marker)
    return found


def check_gate_is_met(against: Sequence[UnmetApplyCondition]) -> None:
    """Ends a run whose conditions are not met.

    Raises:
        RequestRefused: a condition is not met; the message names all of them.
    """
    if against:
        raise make_gate_error(against)


def make_gate_error(against: Sequence[UnmetApplyCondition]) -> RequestRefused:
    """Makes the error that names all of these conditions; the first one gives the reason code."""
    return RequestRefused(
        " ".join(item.message for item in against),
        hint=" ".join(item.hint for item in against),
        reason_code=against[0].reason_code,
    )


def list_gate_conditions_to_load(
    by: str, permission: Permission, pull: PullRequest, checked_out: tuple[str, ...], *, what: str
) -> list[UnmetApplyCondition]:
    """Lists what prevents loading a pull request beside an apply's credentials without an apply.

    The list is empty if nothing does.

    Args:
        what: The request in words, for example "an acceptance".
    """
    found = [
        *_list_unmet_conditions_of_pull(pull),
        *_list_unmet_conditions_of_permission(by, permission, what),
    ]
    if pull.head_sha not in checked_out:
        found.append(_make_wrong_checkout_condition())
    return found


def _list_unmet_conditions_of_pull(pull: PullRequest) -> Sequence[UnmetApplyCondition]:
    found = []
    if not pull.open:
        found.append(
            UnmetApplyCondition(
                reason_code="closed",
                message=f"Pull request #{pull.number} is closed.",
                hint="Reopen it; its environment is removed when it closes.",
            )
        )
    if pull.fork:
        found.append(
            UnmetApplyCondition(
                reason_code="fork",
                message="The pull request comes from a fork, and a fork's code never gets "
                "warehouse access.",
                hint="A maintainer can push the branch to this repository and open a new one.",
            )
        )
    if pull.draft:
        found.append(
            UnmetApplyCondition(
                reason_code="draft",
                message="The pull request is a draft.",
                hint="Mark it as ready for review.",
            )
        )
    if pull.mergeable is False:
        found.append(
            UnmetApplyCondition(
                reason_code="conflict",
                message=f"The pull request has conflicts with `{pull.base_ref}`.",
                hint="Resolve them and push; the new commit is reviewed automatically.",
            )
        )
    return found


def _list_unmet_conditions_of_permission(
    by: str, permission: Permission, what: str
) -> list[UnmetApplyCondition]:
    if may_write_on_github(permission):
        return []
    return [
        UnmetApplyCondition(
            reason_code="permission",
            message=f"@{by} has {permission} access, and {what} needs write.",
            hint="Ask somebody with write access to the repository.",
        )
    ]


def _list_unmet_conditions_of_person(
    requester: ApplyRequester,
) -> Sequence[UnmetApplyCondition]:
    found = _list_unmet_conditions_of_permission(requester.by, requester.permission, "an apply")
    if (
        not found
        and requester.command.override
        and not may_maintain_on_github(requester.permission)
    ):
        found.append(
            UnmetApplyCondition(
                reason_code="override_permission",
                message=f"@{requester.by} may not override a No-Go; that needs maintain access.",
                hint="Ask a maintainer, or clear the blockers.",
            )
        )
    return found


def _list_unmet_conditions_of_plan(
    requester: ApplyRequester, pull: PullRequest, marker: Marker
) -> Sequence[UnmetApplyCondition]:
    plan = marker.plan or ""
    found = []
    if marker.head != pull.head_sha:
        found.append(
            UnmetApplyCondition(
                reason_code="head_moved",
                message=f"The reviewed commit is {shorten_plan_id(marker.head)[:7]}, and the "
                f"branch is at {pull.head_sha[:7]}.",
                hint="Wait for the review of the new commit, then apply its plan id.",
            )
        )
    elif pull.head_sha not in requester.checked_out:
        found.append(_make_wrong_checkout_condition())
    plan_id = requester.command.plan_id
    if plan_id is not None and not matches_plan_id(plan_id, plan):
        found.append(
            UnmetApplyCondition(
                reason_code="unknown_plan",
                message=f"{shorten_plan_id(plan_id)} is not the plan of this pull request; the "
                f"reviewed plan is {shorten_plan_id(plan)}.",
                hint=f"Apply it with `/sqlmesh apply {shorten_plan_id(plan)}`.",
            )
        )
    if marker.decision == "no_go" and not requester.command.override:
        found.append(_make_no_go_condition("The decision on this plan is No-Go.", plan))
    return found


def _make_wrong_checkout_condition() -> UnmetApplyCondition:
    return UnmetApplyCondition(
        reason_code="wrong_checkout",
        message=WRONG_CHECKOUT,
        hint=WRONG_CHECKOUT_HINT,
    )


def list_gate_conditions_of_review(
    requester: ApplyRequester, own: Report, marker: Marker
) -> list[UnmetApplyCondition]:
    """Lists what prevents an apply, according to the review that its own run has made.

    Args:
        requester: Who asks; all conditions of `list_unmet_conditions_of_apply_gate` are met.
        own: The review. Its plan is the requested one.
        marker: The comment's record.
    """
    if own.decision != "no_go" or requester.command.override:
        return []
    message = "This run has reviewed the plan once more, and the decision is No-Go."
    if marker.decision != own.decision:
        message += (
            " The comment says otherwise: it was edited, or prod, the limits or the action have "
            "changed since."
        )
    return [_make_no_go_condition(message, own.plan_id or "")]


def _make_no_go_condition(message: str, plan: str) -> UnmetApplyCondition:
    return UnmetApplyCondition(
        reason_code="no_go",
        message=message,
        hint="Clear the blockers and push, or let a maintainer apply it with a reason: "
        f'`/sqlmesh apply {shorten_plan_id(plan)} --override "reason"`.',
    )
