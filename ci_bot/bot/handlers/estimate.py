"""What building the pull request's environment will cost, as a comment. Nothing is built.

It loads the pull request beside the credentials of an apply, because it has to ask Spark. So it has
the same conditions for the pull request and the person as an acceptance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ci_bot.bot.actions import EstimateCommand, activities
from ci_bot.bot.handlers.gate import (
    UnmetApplyCondition,
    check_gate_is_met,
    list_gate_conditions_to_load,
    make_gate_error,
)
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.own_review import find_merge_commits
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import (
    answer_refused_run,
    find_checked_out_commit,
    read_command_for_handler,
)
from ci_bot.bot.handlers.review import read_plan_flags
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import (
    apply,
    list_changes_of_pull_for_request,
    make_error_of_worker_failure,
    read_agreed_cost_for_request,
    request_estimate_from_worker,
)
from ci_bot.errors import EXIT_DONE, EXIT_FAILED, BotError
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure, PlanId
from ci_bot.protocol.messages import Owner
from ci_bot.protocol.plan import Cost
from ci_bot.protocol.plan_identity import selects_by_git

# How an answer with figures is published: the outputs of the step and its summary.


_Activity = Literal["estimate", "probe"]


def report_estimate_failure(
    error: BotError, activity: _Activity, publisher: HandlerPublisher
) -> int:
    """Answers a request that failed; the comment stays as it is. Returns the exit code."""
    answer_refused_run(error, activity, publisher)
    set_outputs_of_estimate_run(publisher, activity, "refused", error.reason_code, error.exit_code)
    return error.exit_code


def set_outputs_of_estimate_run(
    publisher: HandlerPublisher,
    activity: _Activity,
    result: str,
    reason: str,
    code: int,
    *,
    plan_id: PlanId | None = None,
    cost: Cost | None = None,
    after_merge: Cost | None = None,
) -> None:
    """Writes the outputs.

    Args:
        cost: The environment's, if it is known; `after_merge` is prod's.
    """
    publisher.set_outputs(
        {"reason-code": reason, "plan-id": plan_id or ""},
        {
            "activity": activity,
            "result": result,
            "reason_code": reason,
            "executor_hours": cost.executor_hours_mid if cost else None,
            "prod_executor_hours": after_merge.executor_hours_mid if after_merge else None,
            "exit_code": code,
        },
    )


class EstimateHandler(Handler[activities.Estimate]):
    """Says what building the environment will cost."""

    def run(self, activity: activities.Estimate, context: HandlerContext) -> int:
        """Checks who asks, asks the worker, and answers; returns 1 if the limit is exceeded.

        Raises:
            BotError: the cost cannot be known, and the message says why.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.github
        pull = github.get_pull(activity.number, settle=True)
        by = activity.requested_by
        if activity.comment_id is not None:
            by, _ = read_command_for_handler(
                activity.comment_id, activity.number, EstimateCommand, github
            )
        against = list_gate_conditions_to_load(
            by,
            github.get_permission(by),
            pull,
            find_checked_out_commit(client),
            what="an estimate",
        )
        check_gate_is_met(against)
        marker, inputs = publisher.read_marker(), settings.inputs
        window = marker.window if marker and marker.head == pull.head_sha else None
        commits, flags = find_merge_commits(pull, client), read_plan_flags(inputs)
        changed = (
            list_changes_of_pull_for_request(client.git, commits) if selects_by_git(flags) else None
        )
        limit, price = read_agreed_cost_for_request(
            client,
            commits,
            hours=inputs.max_executor_hours,
            price=inputs.executor_hour_price,
            today=publisher.machine.read_date(),
        )
        document = request_estimate_from_worker(
            client,
            environment=publisher.environment,
            owner=Owner(
                name=settings.runner.repository, pr_number=pull.number, head_sha=pull.head_sha
            ),
            window=window,
            start=inputs.start,
            end=inputs.end,
            flags=flags,
            head_branch=commits.head_branch,
            base_names=commits.base_names(),
            changed_files=changed.paths if changed is not None else None,
            executor_hour_price=price,
        )
        if isinstance(document, Failure):
            raise make_error_of_worker_failure(document)
        above = notices.is_estimate_above_in_comment(document, limit)
        publisher.try_note(notices.render_estimated_comment(document, limit, publisher.template))
        code = EXIT_FAILED if above else EXIT_DONE
        reason = "over_budget" if above else "estimated"
        set_outputs_of_estimate_run(
            publisher,
            "estimate",
            "estimated",
            reason,
            code,
            plan_id=document.plan_id,
            cost=document.cost,
            after_merge=document.after_merge,
        )
        return code

    def report_failure(
        self, error: BotError, activity: activities.Estimate, context: HandlerContext
    ) -> int:
        return report_estimate_failure(error, "estimate", context.publisher)


# The result of a probe of the reviewed plan: an answer of its own, like an estimate's.
#
# The comment still shows the review, because there is no environment yet that it could show.


def publish_estimate(
    document: ApplyDocument, publisher: HandlerPublisher, limit: float | None
) -> int:
    """Answers with the figures, or with why there are none; returns the exit code.

    Args:
        limit: The most executor-hours that the plan may take, and also prod's plan after the merge.
            If one of them is above it, the exit code is 1, as for an estimate.
    """
    failure, code = document.failure, apply.choose_exit_code_of_worker_apply(document)
    if failure is not None:
        left = " ".join([failure.message, *document.partial])
        error = make_error_of_worker_failure(failure.model_copy(update={"message": left}))
        if document.reason_code == "cancelled":
            # GitHub kills the run within seconds; writing an answer would leave no time for the
            # outputs.
            publisher.commands.annotate_error(left)
        else:
            answer_refused_run(error, "probe", publisher)
        _set_document_outputs(document, failure.reason_code, code, publisher)
        return code
    above = notices.is_estimate_above_in_comment(document, limit)
    publisher.try_note(notices.render_probed_comment(document, limit, publisher.template))
    code = EXIT_FAILED if above else code
    reason = "over_budget" if above else document.reason_code or document.result
    _set_document_outputs(document, reason, code, publisher)
    return code


def refuse_estimate_in_comment(
    against: Sequence[UnmetApplyCondition], publisher: HandlerPublisher
) -> int:
    """Answers with the unmet conditions, changes nothing else, and returns the exit code."""
    return report_estimate_failure(make_gate_error(against), "probe", publisher)


def _set_document_outputs(
    document: ApplyDocument, reason: str, code: int, publisher: HandlerPublisher
) -> None:
    set_outputs_of_estimate_run(
        publisher,
        "probe",
        document.result,
        reason,
        code,
        plan_id=document.plan_id,
        cost=document.estimate,
        after_merge=document.prod_estimate,
    )
