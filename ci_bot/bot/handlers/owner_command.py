"""What the commands of a model's owner share: who asks, by which right, and the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from ci_bot.bot.actions import AcceptCommand, ActionSettings, RestateCommand, activities
from ci_bot.bot.github import GitHub, PullRequest
from ci_bot.bot.handlers import review
from ci_bot.bot.handlers.gate import (
    UnmetApplyCondition,
    check_gate_is_met,
    list_gate_conditions_to_load,
)
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import (
    answer_refused_run,
    find_checked_out_commit,
    read_command_for_handler,
)
from ci_bot.bot.policy import ModelOwnershipByPolicy
from ci_bot.bot.worker_client import WorkerClient
from ci_bot.errors import BotError, RequestRefused
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.review_report import ModelOwners, Report

# In these phases a review would remove something: evidence, or proof that an environment is gone.
_KEPT = ("applied", "closed", "cleanup_failed")


Command = TypeVar("Command", AcceptCommand, RestateCommand)


def read_owner_command(
    activity: activities.Accept | activities.Restate,
    kind: type[Command],
    client: WorkerClient,
    github: GitHub,
    *,
    what: str,
) -> tuple[PullRequest, str, Command, Sequence[UnmetApplyCondition]]:
    """Returns pull request, author, command, and the unmet conditions for loading it.

    Args:
        what: The request in words, for example "an acceptance".

    Raises:
        RequestRefused: the comment is no command of this kind.
    """
    pull = github.get_pull(activity.number, settle=True)
    by, command = read_command_for_handler(activity.comment_id, activity.number, kind, github)
    unmet = list_gate_conditions_to_load(
        by,
        github.get_permission(by),
        pull,
        find_checked_out_commit(client),
        what=what,
    )
    return pull, by, command, unmet


def check_gate_of_owner_command(
    against: Sequence[UnmetApplyCondition], pull: PullRequest, client: WorkerClient
) -> None:
    """Checks that an owner may decide something here.

    Raises:
        RequestRefused: a condition is not met, or the checkout does not say who owns a model.
    """
    check_gate_is_met(against)
    untrusted = review.explain_why_policy_lowers_no_severity(
        pull, None, checked_out=client.git.read_head()
    )
    if untrusted is not None:
        raise RequestRefused(
            f"Who owns a model is not known here. {untrusted}",
            hint="A person reads the finding, as without a policy.",
            reason_code="untrusted_base",
        )


def check_owner_command_has_review(own: Report) -> None:
    """Checks that there is a review on which an owner can decide.

    Raises:
        RequestRefused: the review has failed.
    """
    if own.failure is not None:
        raise RequestRefused(
            f"The review that this run has made failed: {own.failure.message}",
            hint=own.failure.hint,
            reason_code="no_reviewed_plan",
        )


def make_ownership_of_review(owners: ModelOwners | None) -> ModelOwnershipByPolicy:
    """Makes the ownership that a review reports; without owners for None."""
    if owners is None:
        return ModelOwnershipByPolicy()
    return ModelOwnershipByPolicy(tuple(owners.logins), tuple(owners.teams), owners.place)


def is_commenter_owner(by: str, ownership: ModelOwnershipByPolicy, github: GitHub) -> bool:
    """Whether a person owns a model, by name or as a member of a team.

    Raises:
        RequestRefused: the token may not read who is in a team.
    """
    return ownership.names_person(by) or any(github.in_team(team, by) for team in ownership.teams)


def make_not_owner_error(
    by: str, model: str, ownership: ModelOwnershipByPolicy, *, what: str = "accept it"
) -> RequestRefused:
    """Makes the refusal, which names who may do `what`, and the policy line that says so."""
    names = [f"`@{name}`" for name in (*ownership.logins, *ownership.teams)]
    if not names:
        return RequestRefused(
            f"Nobody owns `{model}`: neither policy nor CODEOWNERS of the base branch says who.",
            hint="Name its owners there; it counts from the merge on.",
            reason_code="not_the_owner",
        )
    hint = f"{' or '.join(names)} may {what}, by {ownership.place}."
    if ownership.teams:
        # GitHub answers the same if a person is not in a team and if the token may not see the
        # team.
        hint += " Who is in a team, only a token with `members: read` of the organization sees."
    return RequestRefused(
        f"`@{by}` does not own `{model}`.", hint=hint, reason_code="not_the_owner"
    )


def publish_review_decided_by_owner(
    report: Report,
    note: str,
    marker: Marker | None,
    settings: ActionSettings,
    publisher: HandlerPublisher,
    pull: PullRequest,
) -> int:
    """Publishes the review as an owner has decided it; returns the exit code.

    A comment with evidence keeps it: a note says what was decided, and the next review shows it.
    """
    if marker is not None and marker.phase in _KEPT:
        publisher.try_note(note)
        publisher.sticky = None
    seen = replace(settings, inputs=replace(settings.inputs, fail_on="never"))
    activity = activities.Review(number=pull.number, head_sha=report.head_sha)
    return review.publish_review(report, activity, seen, publisher)


def report_owner_command_failure(
    error: BotError, verb: Literal["accept", "restate"], publisher: HandlerPublisher
) -> int:
    """Answers a command that failed; the comment stays as it is. Returns the exit code."""
    answer_refused_run(error, verb, publisher)
    publisher.set_outputs(
        {"reason-code": error.reason_code},
        {
            "activity": verb,
            "result": "refused",
            "reason_code": error.reason_code,
            "exit_code": error.exit_code,
        },
    )
    return error.exit_code
