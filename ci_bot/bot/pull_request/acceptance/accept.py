"""The owner of a model accepts a finding on it: the decision is made again, and it is written down.

What is accepted, and by whom, says an unedited comment of that person; whether the finding is
there, the review that this run makes; whose the model is, policy and CODEOWNERS of the base commit.
It is kept in the ledger, which none but the accounts of apply and cleanup can write: a comment of
the bot can be edited, and a review's artifact comes from a workflow file of the pull request's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ci_bot.bot.comment import reply
from ci_bot.bot.decision import judge_again
from ci_bot.bot.github.port import GitHub, PullRequest
from ci_bot.bot.policy.owning.accepting import Acceptances
from ci_bot.bot.policy.owning.owners import Ownership
from ci_bot.bot.pull_request import review as reviews
from ci_bot.bot.pull_request.acceptance import conditions
from ci_bot.bot.pull_request.gate import Unmet, check_met, unmet_to_load
from ci_bot.bot.pull_request.own_review import review_again
from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.bot.pull_request.request import answer_refused, read_command
from ci_bot.bot.pull_request.trusted_base import why_no_lighter
from ci_bot.bot.trigger import job
from ci_bot.bot.trigger.comment_command import AcceptCommand
from ci_bot.bot.trigger.inputs import Settings
from ci_bot.bot.worker_calls.client import WorkerClient, owner
from ci_bot.bot.worker_calls.failures import error_of
from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.comment import Marker
from ci_bot.contracts.documents.policy import Acceptance
from ci_bot.contracts.documents.report import Report
from ci_bot.contracts.messages import AcceptRequest
from ci_bot.errors import BotError, Refused

# What these show, a review would take away: evidence, or proof that an environment is gone.
_KEPT = ("applied", "closed", "cleanup_failed")


def accept(
    activity: job.Accept,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    github: GitHub,
) -> int:
    """Checks who asks for what, reviews, writes it down, and shows the decision; the exit code.

    Raises:
        Refused, BadInput: nothing was written, and the message says why.
    """
    pull = github.get_pull(activity.number, settle=True)
    by, command = read_command(activity.comment_id, activity.number, AcceptCommand, github)
    against = unmet_to_load(
        by, github.permission(by), pull, reviews.checked_out(client), what="an acceptance"
    )
    _check(against, pull, client)
    marker = publisher.before()
    own = review_again(settings, publisher, client, pull=pull, marker=marker)
    found = conditions.findings(own, command)
    ownership = conditions.ownership_of(own, command.model)
    if not is_owner(by, ownership, github):
        raise conditions.not_the_owner(by, command.model, ownership)
    acceptance = Acceptance(
        rule=command.rule,
        model=command.model,
        fingerprint=conditions.fingerprint_of(own, command.model),
        severity=found[0].severity,
        subjects=sorted({risk.subject or "" for risk in found}),
        by=by,
        at=publisher.machine.timestamp(),
        reason=publisher.redactor.redact(command.reason),
        comment_id=activity.comment_id,
    )
    kept = _write(client, settings, pull, acceptance)
    report = judge_again(own, Acceptances.of(kept, own.changes))
    return _publish(report, acceptance, marker, settings, publisher, pull)


def give_up(error: BotError, publisher: Publisher) -> int:
    """Answers an acceptance that came to nothing; the comment stays as it is."""
    answer_refused(error, "accept", publisher)
    publisher.result(
        {"reason-code": error.reason_code},
        {
            "activity": "accept",
            "result": "refused",
            "reason_code": error.reason_code,
            "exit_code": error.exit_code,
        },
    )
    return error.exit_code


def is_owner(by: str, ownership: Ownership, github: GitHub) -> bool:
    """Whether a person owns a model, by name or as a member of a team.

    Raises:
        Refused: the token may not say who is in a team.
    """
    return ownership.has(by) or any(github.in_team(team, by) for team in ownership.teams)


def _check(against: Sequence[Unmet], pull: PullRequest, client: WorkerClient) -> None:
    check_met(against)
    untrusted = why_no_lighter(pull, None, checked_out=client.git.head())
    if untrusted is not None:
        raise Refused(
            f"Whose a model is cannot be said here. {untrusted}",
            hint="A person reads the finding, as without a policy.",
            reason_code="untrusted_base",
        )


def _write(
    client: WorkerClient, settings: Settings, pull: PullRequest, acceptance: Acceptance
) -> list[Acceptance]:
    """What the ledger holds afterwards."""
    answer = client.accept(
        client.request(
            AcceptRequest,
            owner=owner(
                settings.runner.repository,
                number=pull.number,
                head_sha=pull.head_sha,
                run=str(settings.runner.run_id),
            ),
            acceptance=acceptance,
        )
    )
    if isinstance(answer, Failure):
        raise error_of(answer)
    return answer.acceptances


def _publish(
    report: Report,
    acceptance: Acceptance,
    marker: Marker | None,
    settings: Settings,
    publisher: Publisher,
    pull: PullRequest,
) -> int:
    """The review as it is now. A comment with evidence keeps it, and the next review shows this."""
    told = f"`@{acceptance.by}` accepts `{acceptance.rule}` on `{acceptance.model}`."
    publisher.commands.notice(publisher.redactor.redact(told))
    if marker is not None and marker.phase in _KEPT:
        publisher.try_note(reply.accepted(acceptance, report, publisher.template))
        publisher.sticky = None
    seen = replace(settings, inputs=replace(settings.inputs, fail_on="never"))
    activity = job.Review(number=pull.number, head_sha=report.head_sha)
    return reviews.publish(report, activity, seen, publisher)
