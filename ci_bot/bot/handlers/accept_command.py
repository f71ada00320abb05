"""The owner of a model accepts a finding on it.

Three sources are trusted. An unedited comment says who asks and for what. The review that this run
makes says whether the finding exists. The policy and CODEOWNERS of the base commit say who owns the
model.

An acceptance and a restatement are kept in the ledger, which only the accounts of apply and cleanup
can write. Other places are not safe: a comment of the bot can be edited, and a review's artifact
comes from a workflow file of the pull request.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ci_bot.bot.actions import AcceptCommand, ActionSettings, activities
from ci_bot.bot.decision import decide_on_review_again
from ci_bot.bot.github import GitHub, PullRequest
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.own_review import review_again_in_apply_run
from ci_bot.bot.handlers.owner_command import (
    check_gate_of_owner_command,
    check_owner_command_has_review,
    is_commenter_owner,
    make_not_owner_error,
    make_ownership_of_review,
    publish_review_decided_by_owner,
    read_owner_command,
    report_owner_command_failure,
)
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import make_owner_of_run
from ci_bot.bot.policy import (
    UNWEIGHED,
    AcceptancesByOwners,
    ModelOwnershipByPolicy,
    list_fingerprints_for_acceptances,
    may_be_accepted_by_owner,
)
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import WorkerClient, make_error_of_worker_failure
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.base import Failure
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.messages import AcceptRequest
from ci_bot.protocol.review_report import Acceptance, Report, Risk, find_owners

# What prevents an acceptance, according to the review that its own run has made. Pure.


_MOST_SHOWN = 5


def list_findings_that_owner_accepts(own: Report, command: AcceptCommand) -> Sequence[Risk]:
    """Lists the findings that are to be accepted, the heaviest first.

    Raises:
        BadInput: there is no such finding.
        RequestRefused: an owner cannot accept them.
    """
    check_owner_command_has_review(own)
    if command.rule in UNWEIGHED:
        raise RequestRefused(
            f"`{command.rule}` always counts, because {UNWEIGHED[command.rule]}.",
            hint="Nobody can accept it.",
            reason_code="not_acceptable",
        )
    found = [r for r in own.risks if (r.rule, r.model) == (command.rule, command.model)]
    if not found:
        raise _make_unknown_finding_error(own, command)
    if any(risk.severity == "blocker" for risk in found):
        raise RequestRefused(
            f"`{command.rule}` on `{command.model}` blocks, and a blocker is not accepted.",
            hint="Clear it, or let a maintainer apply the plan with `--override`.",
            reason_code="not_acceptable",
        )
    return found


def find_owners_of_risk_for_command(own: Report, risk: Risk) -> ModelOwnershipByPolicy:
    """Returns who may accept a finding, as the review has found it."""
    return make_ownership_of_review(find_owners(own.owners, risk))


def find_fingerprint_for_owner_command(own: Report, model: str) -> str:
    """Finds the fingerprint that an acceptance is bound to.

    Raises:
        RequestRefused: nothing of the model changes.
    """
    found = list_fingerprints_for_acceptances(own.changes).get(model)
    if found is None:
        raise RequestRefused(
            f"Nothing of `{model}` changes in this pull request, so there is nothing that an "
            "acceptance could be bound to.",
            hint="Ignore the finding in the policy, or fix what it is about.",
            reason_code="not_acceptable",
        )
    return found


def _make_unknown_finding_error(own: Report, command: AcceptCommand) -> BadInput:
    done = [r for r in own.set_aside if (r.rule, r.model) == (command.rule, command.model)]
    if done:
        return BadInput(
            f"`{command.rule}` on `{command.model}` does not count already.",
            hint="The comment says why.",
            reason_code="no_such_finding",
        )
    every = sorted({f"{r.rule} {r.model}" for r in own.risks if may_be_accepted_by_owner(r)})
    near = difflib.get_close_matches(f"{command.rule} {command.model}", every, n=_MOST_SHOWN)
    listed = ", ".join(f"`{item}`" for item in near or every[:_MOST_SHOWN])
    return BadInput(
        f"The review has no finding `{command.rule}` on `{command.model}`.",
        hint=f"It has {listed}." if listed else "It has none that could be accepted.",
        reason_code="no_such_finding",
    )


class AcceptHandler(Handler[activities.Accept]):
    """Records that an owner accepts a finding."""

    def run(self, activity: activities.Accept, context: HandlerContext) -> int:
        """Reviews, records the acceptance and shows the decision; returns the exit code.

        Before, it checks who asks, and for which finding.

        Raises:
            RequestRefused, BadInput: nothing was recorded, and the message says why.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.github
        pull, by, command, against = read_owner_command(
            activity, AcceptCommand, client, github, what="an acceptance"
        )
        check_gate_of_owner_command(against, pull, client)
        marker = publisher.read_marker()
        own = review_again_in_apply_run(
            settings, publisher, client, pull=pull, marker=marker, github=github
        )
        found = list_findings_that_owner_accepts(own, command)
        found = list_findings_of_commenting_owner(by, found, own, github)
        acceptance = Acceptance(
            rule=command.rule,
            model=command.model,
            fingerprint=find_fingerprint_for_owner_command(own, command.model),
            severity=found[0].severity,
            subjects=sorted({risk.subject or "" for risk in found}),
            by=by,
            at=publisher.machine.format_timestamp(),
            reason=publisher.redactor.redact(command.reason),
            comment_id=activity.comment_id,
        )
        kept = _write_acceptance(client, settings, pull, acceptance)
        report = decide_on_review_again(own, AcceptancesByOwners.from_items(kept, own.changes))
        return _publish_acceptance(report, acceptance, marker, settings, publisher, pull)

    def report_failure(
        self, error: BotError, activity: activities.Accept, context: HandlerContext
    ) -> int:
        return report_owner_command_failure(error, "accept", context.publisher)


def list_findings_of_commenting_owner(
    by: str, found: Sequence[Risk], own: Report, github: GitHub
) -> Sequence[Risk]:
    """Returns the findings on a model that a person owns; it looks up each owner once.

    Raises:
        RequestRefused: the person owns none of them, or the token may not read who is in a team.
    """
    owned: dict[ModelOwnershipByPolicy, bool] = {}
    for risk in found:
        ownership = find_owners_of_risk_for_command(own, risk)
        if ownership not in owned:
            owned[ownership] = is_commenter_owner(by, ownership, github)
    mine = [risk for risk in found if owned[find_owners_of_risk_for_command(own, risk)]]
    if not mine:
        raise make_not_owner_error(by, found[0].model or "", next(iter(owned)))
    return mine


def _write_acceptance(
    client: WorkerClient, settings: ActionSettings, pull: PullRequest, acceptance: Acceptance
) -> list[Acceptance]:
    """Records the acceptance; returns all acceptances that the ledger holds afterwards."""
    answer = client.request_accept(
        client.make_request(
            AcceptRequest,
            owner=make_owner_of_run(settings, pull.number, pull.head_sha),
            acceptance=acceptance,
        )
    )
    if isinstance(answer, Failure):
        raise make_error_of_worker_failure(answer)
    return answer.acceptances


def _publish_acceptance(
    report: Report,
    acceptance: Acceptance,
    marker: Marker | None,
    settings: ActionSettings,
    publisher: HandlerPublisher,
    pull: PullRequest,
) -> int:
    sentence = f"`@{acceptance.by}` accepts `{acceptance.rule}` on `{acceptance.model}`."
    publisher.commands.annotate_notice(publisher.redactor.redact(sentence))
    note = notices.render_accepted_comment(acceptance, report, publisher.template)
    return publish_review_decided_by_owner(report, note, marker, settings, publisher, pull)
