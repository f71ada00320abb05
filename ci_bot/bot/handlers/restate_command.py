"""The owner of a model lets prod build it again after the merge.

The review that this run makes says what a restatement builds and costs. Only the deployment writes
prod: it plans the restatement again (`ci-bot prod-plan --pull-request`) and refuses what is not
recorded. Anyone who may write can take a restatement back.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ci_bot.bot.actions import ActionSettings, RestateCommand, activities
from ci_bot.bot.github import GitHub, PullRequest
from ci_bot.bot.handlers.gate import check_gate_is_met
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
from ci_bot.bot.policy import ModelOwnershipByPolicy
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import WorkerClient, make_error_of_worker_failure
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import RestateAnswer, RestateRequest
from ci_bot.protocol.review_inputs import ProdRestatement, RecordedRestatement, RestatementWish
from ci_bot.protocol.review_report import Report

_NEAR = 3


class RestateHandler(Handler[activities.Restate]):
    """Records that prod builds a model again after the merge."""

    def run(self, activity: activities.Restate, context: HandlerContext) -> int:
        """Checks who asks for what, reviews, records it, shows the review; returns the exit code.

        Raises:
            RequestRefused, BadInput: nothing was recorded, and the message says why.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.github
        pull, by, command, against = read_owner_command(
            activity, RestateCommand, client, github, what="a restatement"
        )
        if command.reason is None:
            check_gate_is_met(against)
            return _take_restatement_command_back(
                by, command.model, settings, publisher, client, pull, github
            )
        check_gate_of_owner_command(against, pull, client)
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
        own = review_again_in_apply_run(
            settings, publisher, client, pull=pull, marker=marker, github=github, wish=wish
        )
        planned_restatement = find_restatement_asked_in_comment(own)
        model = planned_restatement.recorded.model
        ownership = find_owners_of_model_for_command(own, model)
        if not is_commenter_owner(by, ownership, github):
            raise make_not_owner_error(by, model, ownership, what="ask for it")
        _write_restatement(client, settings, pull, model, planned_restatement.recorded)
        sentence = f"`@{by}` lets prod build `{model}` again after the merge."
        publisher.commands.annotate_notice(publisher.redactor.redact(sentence))
        note = notices.render_restated_comment(sentence, publisher.template)
        return publish_review_decided_by_owner(own, note, marker, settings, publisher, pull)

    def report_failure(
        self, error: BotError, activity: activities.Restate, context: HandlerContext
    ) -> int:
        return report_owner_command_failure(error, "restate", context.publisher)


def find_restatement_asked_in_comment(own: Report) -> ProdRestatement:
    """Returns the requested restatement, as the review has planned it.

    Raises:
        BadInput, RequestRefused: it cannot be done; the message says why.
    """
    check_owner_command_has_review(own)
    if own.refused_wish is not None:
        raise make_error_of_worker_failure(own.refused_wish)
    restatement = own.prod_restatements[-1]
    if restatement.problem is not None:
        raise RequestRefused(
            restatement.problem, hint="Fix that first, and ask again.", reason_code="not_restatable"
        )
    return restatement


def find_owners_of_model_for_command(own: Report, model: str) -> ModelOwnershipByPolicy:
    """Finds a model's owners in the review."""
    owners = (item for item in own.owners if item.model == model and item.rule is None)
    return make_ownership_of_review(next(owners, None))


def check_restatement_command_was_recorded(
    model: str, before: Sequence[RecordedRestatement]
) -> None:
    """Checks that there was something to take back.

    Raises:
        BadInput: there was nothing.
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


def _take_restatement_command_back(
    by: str,
    model: str,
    settings: ActionSettings,
    publisher: HandlerPublisher,
    client: WorkerClient,
    pull: PullRequest,
    github: GitHub,
) -> int:
    """Takes it back, which leaves prod as it is; returns the exit code.

    So it needs no owner, and no project that can be loaded.
    """
    answer = _write_restatement(client, settings, pull, model, None)
    check_restatement_command_was_recorded(model, answer.before)
    sentence = f"`@{by}` has taken back the restatement of `{model}`."
    publisher.commands.annotate_notice(publisher.redactor.redact(sentence))
    marker = publisher.read_marker()
    own = review_again_in_apply_run(
        settings, publisher, client, pull=pull, marker=marker, github=github
    )
    note = notices.render_restated_comment(sentence, publisher.template)
    return publish_review_decided_by_owner(own, note, marker, settings, publisher, pull)


def _write_restatement(
    client: WorkerClient,
    settings: ActionSettings,
    pull: PullRequest,
    model: str,
    item: RecordedRestatement | None,
) -> RestateAnswer:
    answer = client.request_restate(
        client.make_request(
            RestateRequest,
            owner=make_owner_of_run(settings, pull.number, pull.head_sha),
            model=model,
            restatement=item,
        )
    )
    if isinstance(answer, Failure):
        raise make_error_of_worker_failure(answer)
    return answer
