"""The owner of a model accepts a finding on it, or lets prod build it again after the merge.

What is asked for, and by whom, says an unedited comment of that person; whether the finding is
there, and what a restatement builds and costs, the review that this run makes; whose the model is,
policy and CODEOWNERS of the base commit. Both are kept in the ledger, which none but the accounts
of apply and cleanup can write: a comment of the bot can be edited, and a review's artifact comes
from a workflow file of the pull request's own.

Prod is written by the deployment alone, which plans it again and refuses what is not recorded.
(`ci-bot prod-plan --pull-request`) Whoever may write takes a restatement back.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from ci_bot.bot.actions import AcceptCommand, RestateCommand, Settings, activities
from ci_bot.bot.decision import judge_again
from ci_bot.bot.github import GitHub, PullRequest
from ci_bot.bot.handlers import review
from ci_bot.bot.handlers.gate import UnmetCondition, check_met, find_condition_to_load
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.own_review import review_again
from ci_bot.bot.handlers.publisher import Publisher
from ci_bot.bot.handlers.pull_request_context import (
    answer_refused,
    find_checked_out_commit,
    read_command,
)
from ci_bot.bot.handlers.review import explain_strict_policy
from ci_bot.bot.policy import (
    UNWEIGHED,
    Acceptances,
    ModelOwnership,
    list_fingerprints,
    may_be_accepted,
)
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import WorkerClient, make_error_of_failure, make_owner
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.base import Failure
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.messages import AcceptRequest, RestateAnswer, RestateRequest
from ci_bot.protocol.review_inputs import ProdRestatement, RecordedRestatement, RestatementWish
from ci_bot.protocol.review_report import Acceptance, Report, Risk, find_owners

# What stands against an acceptance, by the review that its own run has made. Pure.


_MOST_SHOWN = 5


def list_accepted_findings(own: Report, command: AcceptCommand) -> Sequence[Risk]:
    """The findings that are to be accepted, heaviest first.

    Raises:
        BadInput: there is none.
        Refused: an owner cannot accept them.
    """
    check_reviewed(own)
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


def check_reviewed(own: Report) -> None:
    """Whether there is something that an owner can decide on.

    Raises:
        Refused: the review has failed.
    """
    if own.failure is not None:
        raise RequestRefused(
            f"The review that this run has made failed: {own.failure.message}",
            hint=own.failure.hint,
            reason_code="no_reviewed_plan",
        )


def find_risk_ownership(own: Report, risk: Risk) -> ModelOwnership:
    """Who may accept a finding, as the review has found it."""
    item = find_owners(own.owners, risk)
    if item is None:
        return ModelOwnership()
    return ModelOwnership(tuple(item.logins), tuple(item.teams), item.place)


def find_model_ownership(own: Report, model: str) -> ModelOwnership:
    """Finds a model's owners in the review."""
    for item in own.owners:
        if item.model == model and item.rule is None:
            return ModelOwnership(tuple(item.logins), tuple(item.teams), item.place)
    return ModelOwnership()


def find_fingerprint(own: Report, model: str) -> str:
    """Finds the fingerprint that an acceptance is bound to.

    Raises:
        Refused: nothing of the model changes.
    """
    found = list_fingerprints(own.changes).get(model)
    if found is None:
        raise RequestRefused(
            f"Nothing of `{model}` changes in this pull request, so there is nothing that an "
            "acceptance could be bound to.",
            hint="Ignore the finding in the policy, or fix what it is about.",
            reason_code="not_acceptable",
        )
    return found


def make_not_owner_error(
    by: str, model: str, ownership: ModelOwnership, *, what: str = "accept it"
) -> RequestRefused:
    """Makes the refusal: it names who may do `what`, and the policy line that says so."""
    names = [f"`@{name}`" for name in (*ownership.logins, *ownership.teams)]
    if not names:
        return RequestRefused(
            f"Nobody owns `{model}`: neither policy nor CODEOWNERS of the base branch says who.",
            hint="Name its owners there; it counts from the merge on.",
            reason_code="not_the_owner",
        )
    hint = f"{' or '.join(names)} may {what}, by {ownership.place}."
    if ownership.teams:
        # GitHub answers the same where a person is not in a team and where a token may not see it.
        hint += " Who is in a team, only a token with `members: read` of the organization sees."
    return RequestRefused(
        f"`@{by}` does not own `{model}`.", hint=hint, reason_code="not_the_owner"
    )


def _make_unknown_finding_error(own: Report, command: AcceptCommand) -> BadInput:
    done = [r for r in own.set_aside if (r.rule, r.model) == (command.rule, command.model)]
    if done:
        return BadInput(
            f"`{command.rule}` on `{command.model}` does not count already.",
            hint="The comment says why.",
            reason_code="no_such_finding",
        )
    every = sorted({f"{r.rule} {r.model}" for r in own.risks if may_be_accepted(r)})
    near = difflib.get_close_matches(f"{command.rule} {command.model}", every, n=_MOST_SHOWN)
    listed = ", ".join(f"`{item}`" for item in near or every[:_MOST_SHOWN])
    return BadInput(
        f"The review has no finding `{command.rule}` on `{command.model}`.",
        hint=f"It has {listed}." if listed else "It has none that could be accepted.",
        reason_code="no_such_finding",
    )


# What these show, a review would take away: evidence, or proof that an environment is gone.
_KEPT = ("applied", "closed", "cleanup_failed")


def accept_finding(
    activity: activities.Accept,
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
    against = find_condition_to_load(
        by,
        github.get_permission(by),
        pull,
        find_checked_out_commit(client),
        what="an acceptance",
    )
    check_owner_gate(against, pull, client)
    marker = publisher.read_marker()
    own = review_again(settings, publisher, client, pull=pull, marker=marker, github=github)
    found = list_accepted_findings(own, command)
    found = list_own_findings(by, found, own, github)
    acceptance = Acceptance(
        rule=command.rule,
        model=command.model,
        fingerprint=find_fingerprint(own, command.model),
        severity=found[0].severity,
        subjects=sorted({risk.subject or "" for risk in found}),
        by=by,
        at=publisher.machine.format_timestamp(),
        reason=publisher.redactor.redact(command.reason),
        comment_id=activity.comment_id,
    )
    kept = _write_acceptance(client, settings, pull, acceptance)
    report = judge_again(own, Acceptances.from_items(kept, own.changes))
    return _publish_acceptance(report, acceptance, marker, settings, publisher, pull)


def report_accept_failure(error: BotError, publisher: Publisher) -> int:
    """Answers an acceptance that came to nothing; the comment stays as it is."""
    answer_refused(error, "accept", publisher)
    publisher.set_outputs(
        {"reason-code": error.reason_code},
        {
            "activity": "accept",
            "result": "refused",
            "reason_code": error.reason_code,
            "exit_code": error.exit_code,
        },
    )
    return error.exit_code


def is_owner(by: str, ownership: ModelOwnership, github: GitHub) -> bool:
    """Whether a person owns a model, by name or as a member of a team.

    Raises:
        Refused: the token may not say who is in a team.
    """
    return ownership.names_person(by) or any(github.in_team(team, by) for team in ownership.teams)


def list_own_findings(
    by: str, found: Sequence[Risk], own: Report, github: GitHub
) -> Sequence[Risk]:
    """Those of some findings on a model that a person owns; each owner is looked up once.

    Raises:
        Refused: it is none of them, or the token may not say who is in a team.
    """
    owned: dict[ModelOwnership, bool] = {}
    for risk in found:
        ownership = find_risk_ownership(own, risk)
        if ownership not in owned:
            owned[ownership] = is_owner(by, ownership, github)
    mine = [risk for risk in found if owned[find_risk_ownership(own, risk)]]
    if not mine:
        raise make_not_owner_error(by, found[0].model or "", next(iter(owned)))
    return mine


def check_owner_gate(
    against: Sequence[UnmetCondition], pull: PullRequest, client: WorkerClient
) -> None:
    """Whether an owner may decide something here.

    Raises:
        Refused: a condition is unmet, or what is checked out does not say who owns a model.
    """
    check_met(against)
    untrusted = explain_strict_policy(pull, None, checked_out=client.git.read_head())
    if untrusted is not None:
        raise RequestRefused(
            f"Who owns a model is not known here. {untrusted}",
            hint="A person reads the finding, as without a policy.",
            reason_code="untrusted_base",
        )


def _write_acceptance(
    client: WorkerClient, settings: Settings, pull: PullRequest, acceptance: Acceptance
) -> list[Acceptance]:
    """What the ledger holds afterwards."""
    answer = client.request_accept(
        client.make_request(
            AcceptRequest,
            owner=make_owner(
                settings.runner.repository,
                number=pull.number,
                head_sha=pull.head_sha,
                run=str(settings.runner.run_id),
            ),
            acceptance=acceptance,
        )
    )
    if isinstance(answer, Failure):
        raise make_error_of_failure(answer)
    return answer.acceptances


def _publish_acceptance(
    report: Report,
    acceptance: Acceptance,
    marker: Marker | None,
    settings: Settings,
    publisher: Publisher,
    pull: PullRequest,
) -> int:
    sentence = f"`@{acceptance.by}` accepts `{acceptance.rule}` on `{acceptance.model}`."
    publisher.commands.annotate_notice(publisher.redactor.redact(sentence))
    note = notices.render_accepted(acceptance, report, publisher.template)
    return show_decided(report, note, marker, settings, publisher, pull)


def show_decided(
    report: Report,
    note: str,
    marker: Marker | None,
    settings: Settings,
    publisher: Publisher,
    pull: PullRequest,
) -> int:
    """The review as an owner has decided it. A comment with evidence keeps it, a note says what was
    decided, and the next review shows this."""
    if marker is not None and marker.phase in _KEPT:
        publisher.try_note(note)
        publisher.sticky = None
    seen = replace(settings, inputs=replace(settings.inputs, fail_on="never"))
    activity = activities.Review(number=pull.number, head_sha=report.head_sha)
    return review.publish_review(report, activity, seen, publisher)


class AcceptHandler(Handler[activities.Accept]):
    """Writes down that an owner accepts a finding."""

    def run(self, activity: activities.Accept, context: HandlerContext) -> int:
        return accept_finding(
            activity, context.settings, context.publisher, context.client, context.github
        )

    def report_failure(
        self, error: BotError, activity: activities.Accept, context: HandlerContext
    ) -> int:
        return report_accept_failure(error, context.publisher)


_NEAR = 3


def restate_model(
    activity: activities.Restate,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    github: GitHub,
) -> int:
    """Checks who asks for what, reviews, writes it down, and shows the review; the exit code.

    Raises:
        Refused, BadInput: nothing was written, and the message says why.
    """
    pull = github.get_pull(activity.number, settle=True)
    by, command = read_command(activity.comment_id, activity.number, RestateCommand, github)
    against = find_condition_to_load(
        by, github.get_permission(by), pull, find_checked_out_commit(client), what="a restatement"
    )
    if command.reason is None:
        check_met(against)
        return _take_back(by, command.model, settings, publisher, client, pull, github)
    check_owner_gate(against, pull, client)
    wish = RestatementWish(
        model=command.model,
        start=command.start,
        end=command.end,
        by=by,
        at=publisher.machine.format_timestamp(),
        reason=publisher.redactor.redact(command.reason),
        comment_id=activity.comment_id,
    )
    marker = publisher.read_marker()
    own = review_again(
        settings, publisher, client, pull=pull, marker=marker, github=github, wish=wish
    )
    planned_restatement = find_asked(own)
    model = planned_restatement.recorded.model
    ownership = find_model_ownership(own, model)
    if not is_owner(by, ownership, github):
        raise make_not_owner_error(by, model, ownership, what="ask for it")
    _write_restatement(client, settings, pull, model, planned_restatement.recorded)
    sentence = f"`@{by}` lets prod build `{model}` again after the merge."
    publisher.commands.annotate_notice(publisher.redactor.redact(sentence))
    note = notices.render_restated(sentence, publisher.template)
    return show_decided(own, note, marker, settings, publisher, pull)


def find_asked(own: Report) -> ProdRestatement:
    """What was asked for, as the review has planned it.

    Raises:
        BadInput, Refused: it cannot be; the message says why.
    """
    check_reviewed(own)
    if own.refused_wish is not None:
        raise make_error_of_failure(own.refused_wish)
    restatement = own.prod_restatements[-1]
    if restatement.problem is not None:
        raise RequestRefused(
            restatement.problem, hint="Fix that first, and ask again.", reason_code="not_restatable"
        )
    return restatement


def check_was_recorded(model: str, before: Sequence[RecordedRestatement]) -> None:
    """Whether there was something to take back.

    Raises:
        BadInput: there was not.
    """
    known = [item.model for item in before]
    if model in known:
        return
    shown = ", ".join(
        f"`{name}`" for name in difflib.get_close_matches(model, known, n=_NEAR, cutoff=0)
    )
    raise BadInput(
        f"No restatement of `{model}` is recorded for this pull request.",
        hint=f"Recorded are {shown}." if shown else "None is.",
        reason_code="no_such_restatement",
    )


def report_restate_failure(error: BotError, publisher: Publisher) -> int:
    """Answers a restatement that came to nothing; the comment stays as it is."""
    answer_refused(error, "restate", publisher)
    publisher.set_outputs(
        {"reason-code": error.reason_code},
        {
            "activity": "restate",
            "result": "refused",
            "reason_code": error.reason_code,
            "exit_code": error.exit_code,
        },
    )
    return error.exit_code


def _take_back(
    by: str,
    model: str,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    pull: PullRequest,
    github: GitHub,
) -> int:
    """Prod is left as it is then, so no owner is needed, and no project that loads."""
    answer = _write_restatement(client, settings, pull, model, None)
    check_was_recorded(model, answer.before)
    sentence = f"`@{by}` has taken back the restatement of `{model}`."
    publisher.commands.annotate_notice(publisher.redactor.redact(sentence))
    marker = publisher.read_marker()
    own = review_again(settings, publisher, client, pull=pull, marker=marker, github=github)
    note = notices.render_restated(sentence, publisher.template)
    return show_decided(own, note, marker, settings, publisher, pull)


def _write_restatement(
    client: WorkerClient,
    settings: Settings,
    pull: PullRequest,
    model: str,
    item: RecordedRestatement | None,
) -> RestateAnswer:
    answer = client.request_restate(
        client.make_request(
            RestateRequest,
            owner=make_owner(
                settings.runner.repository,
                number=pull.number,
                head_sha=pull.head_sha,
                run=str(settings.runner.run_id),
            ),
            model=model,
            restatement=item,
        )
    )
    if isinstance(answer, Failure):
        raise make_error_of_failure(answer)
    return answer


class RestateHandler(Handler[activities.Restate]):
    """Writes down that prod builds a model again after the merge."""

    def run(self, activity: activities.Restate, context: HandlerContext) -> int:
        return restate_model(
            activity, context.settings, context.publisher, context.client, context.github
        )

    def report_failure(
        self, error: BotError, activity: activities.Restate, context: HandlerContext
    ) -> int:
        return report_restate_failure(error, context.publisher)
