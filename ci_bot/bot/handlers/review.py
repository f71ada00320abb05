"""A pull request is opened or pushed to: it gets a comment with a decision, and no other change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_bot.bot.actions import ActionInputs, ActionSettings, activities
from ci_bot.bot.decision import (
    FAILURE_RISKS,
    TeamLimits,
    choose_exit_code_of_review_decision,
    is_decision_misleading,
)
from ci_bot.bot.github import GitHub, PullRequest, require_github
from ci_bot.bot.handlers.gate import WRONG_CHECKOUT, WRONG_CHECKOUT_HINT
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import (
    find_checked_out_commit,
    find_commits_of_run_event,
    make_change_author_finder,
)
from ci_bot.bot.report import (
    ApplyConditionView,
    CommentMarkerFacts,
    CommentViewContext,
    RenderedText,
    describe_baseline_in_view,
    make_baseline_notice_view,
    notices,
    prepare_review_comment,
    render_planning_comment,
    render_review_comment,
)
from ci_bot.bot.worker_client import (
    RequestedReviewCommits,
    WorkerClient,
    WorkerReviewOptions,
    make_activity_failure_of_worker,
)
from ci_bot.bot.worker_client import review as reviewing
from ci_bot.errors import EXIT_DONE, EXIT_FAILED, BotError, RequestRefused
from ci_bot.protocol.base import Sha
from ci_bot.protocol.comment import Marker, choose_review_phase
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import Owner
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report

# Whether a policy from the base of a pull request may make findings lighter.
#
# Anyone who can write to the repository can make a branch with any policy on it, and point any pull
# request at it for a minute. But other people have seen what is merged into the default branch.


def explain_why_policy_lowers_no_severity(
    pull: PullRequest | None, activity: activities.Review | None, *, checked_out: str
) -> str | None:
    """Explains why this run's policy makes nothing lighter, as a sentence; None if it may.

    Args:
        pull: As GitHub describes it now, if GitHub was asked; None if the event counts.
        checked_out: The commit in the workspace.
    """
    if pull is None:
        onto_default = activity is not None and activity.onto_default
        return None if onto_default else _OTHER_BRANCH
    if pull.default_branch is None or pull.base_ref != pull.default_branch:
        return _OTHER_BRANCH
    if pull.merge_sha != checked_out:
        return (
            "The workspace does not hold GitHub's merge commit of now, so it is not sure that its "
            "base is the default branch. Run it again."
        )
    return None


_OTHER_BRANCH = (
    "The pull request is not to be merged into the default branch, and on any other branch anybody "
    "who can push may have written the policy."
)


def read_plan_flags(inputs: ActionInputs) -> GivenFlags:
    """Reads the plan's options from the action's inputs."""
    return GivenFlags(
        forward_only=inputs.forward_only,
        include_unmodified=inputs.include_unmodified,
        skip_backfill=inputs.skip_backfill,
        min_intervals=inputs.min_intervals,
        preview_start=inputs.preview_start,
        preview_min_intervals=inputs.preview_min_intervals,
        select_models=sorted(inputs.select_model),
        restate_models=sorted(inputs.restate_model),
        allow_destructive=sorted(inputs.allow_destructive),
    )


class ReviewHandler(Handler[activities.Review]):
    """Reviews a pull request and explains it."""

    def run(self, activity: activities.Review, context: HandlerContext) -> int:
        """Reviews a pull request; returns the exit code.

        Raises:
            BadInput: the event does not prove what is checked out, and there is no token to ask.
            RequestRefused: it is not this repository's, or not what is checked out.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.optional_github
        pull = None
        if activity.number is not None and (activity.was_dispatched or activity.retargeted):
            pull = require_github(github).get_pull(activity.number, settle=True)
            if activity.was_dispatched:
                check_dispatched_review_run(pull, find_checked_out_commit(client))
            else:
                check_retargeted_review_run(pull, activity.head_sha, client)
        commits = find_commits_of_run_event(activity, pull, client)
        if commits.head_branch is None:
            commits = replace(
                commits, head_branch=_find_branch_in_merge_queue(activity, publisher, github)
            )
        new_base = commits.base_branch if activity.retargeted else None
        announce_planning_in_comment(commits.head, publisher, new_base=new_base)
        client.do_meanwhile(prepare_review_comment)
        report = make_report_of_review_run(
            activity, settings, publisher, client, commits=commits, pull=pull, github=github
        )
        return publish_review(report, activity, settings, publisher)

    def report_failure(
        self, error: BotError, activity: activities.Review, context: HandlerContext
    ) -> int:
        return report_review_failure(error, activity, context.settings, context.publisher)


def announce_planning_in_comment(
    head: Sha | None, publisher: HandlerPublisher, *, new_base: str | None = None
) -> None:
    """Says in the comment that this commit is being planned, above the review that is there.

    Args:
        new_base: The base branch, if the review in the comment was made with another one.
    """
    if publisher.sticky is None:
        return
    publisher.template = replace(publisher.template, new_head=head, new_base=new_base)
    with publisher.leave_out_if_refused("The comment does not say yet that a plan is being made"):
        before, earlier = publisher.read_marker(), publisher.read_earlier_review()
        publisher.post_comment(
            "planning",
            CommentMarkerFacts.from_marker(before),
            lambda context, budget: render_planning_comment(context, budget, review=earlier),
            current_head=head,
        )


def report_review_failure(
    error: BotError,
    activity: activities.Review,
    settings: ActionSettings,
    publisher: HandlerPublisher,
) -> int:
    """Reports a review that ended before the worker was asked; returns the exit code."""
    publisher.try_read_marker()
    report = reviewing.make_report_of_failed_worker(
        make_activity_failure_of_worker(error, "start", publisher.redactor),
        make_options_of_review_run(
            activity,
            settings,
            publisher.environment,
            RequestedReviewCommits(
                head=activity.head_sha, base=activity.base_sha, merge=activity.merge_sha
            ),
            pull=None,
        ),
        projects=settings.inputs.project,
        gateway=settings.inputs.gateway,
        planned_at=publisher.machine.format_timestamp(),
    )
    return publish_review(report, activity, settings, publisher)


def check_dispatched_review_run(pull: PullRequest, checked_out: Sequence[str]) -> None:
    """Checks a dispatched run: it has the repository's secrets, and no event proves its checkout.

    Raises:
        RequestRefused: the code is a fork's, or it is not the pull request's.
    """
    if pull.fork:
        raise RequestRefused(
            f"Pull request #{pull.number} comes from a fork, and this run has secrets that a "
            "fork's code must not see.",
            hint="A fork is reviewed by the `pull_request` event, which has none.",
            reason_code="fork",
        )
    if pull.head_sha not in checked_out:
        raise RequestRefused(
            WRONG_CHECKOUT,
            hint=WRONG_CHECKOUT_HINT,
            reason_code="wrong_checkout",
        )


def check_retargeted_review_run(pull: PullRequest, head: Sha | None, client: WorkerClient) -> None:
    """Checks the merge commit: GitHub may use the former one after the base branch has changed.

    Raises:
        RequestRefused: the workspace does not hold the current merge commit.
    """
    if client.git.read_head() == pull.merge_sha and head in find_checked_out_commit(client):
        return
    raise RequestRefused(
        f"The pull request has got the base branch `{pull.base_ref}`, and the workspace does not "
        "hold its merge commit with that branch.",
        hint="Run this job again, with `ref: refs/pull/<number>/merge` at the checkout as in the "
        "example; or push.",
        reason_code="wrong_checkout",
    )


def _find_branch_in_merge_queue(
    activity: activities.Review, publisher: HandlerPublisher, github: GitHub | None
) -> str | None:
    """Finds the branch of a pull request in the merge queue; the event names only the queue's."""
    if activity.number is None or github is None:
        return None
    try:
        return github.get_pull(activity.number).head_ref
    except BotError as error:
        publisher.annotate_problem(
            "The pull request's branch is not known, so a name that makes plans forward-only is "
            "not seen",
            error,
        )
        return None


def make_report_of_review_run(
    activity: activities.Review,
    settings: ActionSettings,
    publisher: HandlerPublisher,
    client: WorkerClient,
    *,
    commits: RequestedReviewCommits,
    pull: PullRequest | None,
    github: GitHub | None,
) -> Report:
    """Makes the report; if the worker failed, the report holds the failure."""
    options = replace(
        make_options_of_review_run(activity, settings, publisher.environment, commits, pull),
        no_lighter=explain_why_policy_lowers_no_severity(
            pull, activity, checked_out=client.git.read_head()
        ),
        find_authors=make_change_author_finder(github, activity.number, commits.head),
    )
    now = publisher.machine.format_timestamp()
    return reviewing.request_review_or_report_failure(client, options, planned_at=now)


def make_options_of_review_run(
    activity: activities.Review,
    settings: ActionSettings,
    environment: EnvironmentName,
    commits: RequestedReviewCommits,
    pull: PullRequest | None,
) -> WorkerReviewOptions:
    """Makes the options: what is reviewed, and what only GitHub and the inputs know about it."""
    inputs = settings.inputs
    return WorkerReviewOptions(
        environment=environment,
        owner=Owner(
            name=settings.runner.repository, pr_number=activity.number, head_sha=commits.head
        ),
        commits=commits,
        baseline="base-branch" if activity.untrusted else inputs.baseline,
        flags=read_plan_flags(inputs),
        start=inputs.start,
        end=inputs.end,
        limits=TeamLimits(
            max_intervals=inputs.max_intervals, max_executor_hours=inputs.max_executor_hours
        ),
        executor_hour_price=inputs.executor_hour_price,
        conflict=pull is not None and pull.mergeable is False,
        fork=activity.untrusted is not None,
        python_path=inputs.python_path,
        cache_dir=inputs.cache_dir if inputs.cache == "base" else None,
    )


def publish_review(
    report: Report,
    activity: activities.Review,
    settings: ActionSettings,
    publisher: HandlerPublisher,
) -> int:
    """Publishes files, summary, outputs, comment and note, the most important first.

    Returns the exit code.
    """
    phase = choose_review_phase(report)
    before = publisher.try_read_marker()
    publisher.template = replace(
        publisher.template,
        conditions=list_apply_conditions(report, untrusted=activity.untrusted),
        fork=activity.untrusted is not None,
        new_head=None,
        new_base=None,
    )
    last_good = publisher.read_earlier_review() if report.failure is not None else None

    def render_comment(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_review_comment(report, context, budget, last_good=last_good)

    digest = publisher.keep_report_files("report", report, render_comment, phase)
    publisher.report_run = settings.runner.run_id or None
    publisher.write_summary(render_comment, phase)
    facts = CommentMarkerFacts(
        head=report.head_sha,
        base=report.base_sha,
        merge=report.merge_sha,
        plan=report.plan_id,
        window=report.identity.window if report.identity else None,
        decision=report.decision,
        report_sha256=digest,
    )
    _annotate_review(report, publisher)
    code = choose_exit_code_of_review_decision(report, settings.inputs.fail_on)
    result = {
        "activity": "review",
        "decision": report.decision,
        "plan_id": report.plan_id,
        "changes": len(report.changes),
        "exit_code": code,
    }
    posted = publisher.set_outputs_and_post(
        {
            "decision": report.decision,
            "reason-code": report.failure.reason_code if report.failure else report.decision,
            "plan-id": report.plan_id or "",
            "blockers": str(sum(risk.severity == "blocker" for risk in report.risks)),
            "compared-with": describe_baseline_in_view(report),
        },
        result,
        lambda: publisher.try_post(phase, facts, render_comment, current_head=report.head_sha),
    )
    if not publisher.write_check(report):
        # A check would already have all of them at the same lines.
        _annotate_findings(report, publisher)
    shown = publisher.not_replaced.decision if publisher.not_replaced else None
    if code == EXIT_DONE and is_decision_misleading(report, shown, settings.inputs.fail_on):
        return _fail_check_of_hidden_review(result, publisher)
    moved = before is not None and before.decision not in (None, report.decision)
    if posted and before is not None and moved:
        _notify_of_review(publisher, before, report)
    return code


def _fail_check_of_hidden_review(result: Mapping[str, Any], publisher: HandlerPublisher) -> int:
    """Fails the check of a review that nobody would see; returns the exit code."""
    publisher.commands.annotate_error(
        "This check fails because the comment could not be updated and shows a lighter decision "
        "than this run's. The summary of this run has the report. Run the job again."
    )
    publisher.set_outputs(
        {"reason-code": "not_reported"}, {**result, "reported": False, "exit_code": EXIT_FAILED}
    )
    return EXIT_FAILED


def _annotate_review(report: Report, publisher: HandlerPublisher) -> None:
    """Annotates the failure, if there is one: it says more than the finding about it."""
    if report.failure is not None:
        publisher.annotate_failure(report.failure)
    compared = make_baseline_notice_view(report)
    if compared is not None and not compared.expected:
        publisher.annotate_findings([("warning", compared.render_unmarked(), None, None)])


def _annotate_findings(report: Report, publisher: HandlerPublisher) -> None:
    publisher.annotate_findings(
        [
            (
                "error" if risk.severity == "blocker" else "warning",
                f"{risk.rule}: {risk.evidence}",
                risk.path,
                risk.line,
            )
            for risk in report.risks
            if risk.severity in ("blocker", "high", "medium")
            and not (report.failure is not None and risk.rule in FAILURE_RISKS)
        ]
    )


def _notify_of_review(publisher: HandlerPublisher, before: Marker, report: Report) -> None:
    if before.decision is None:
        return
    summary = report.reasons[0] if report.reasons else "Nothing is against this plan."
    text = notices.render_decision_changed_notice(
        before.decision,
        report.decision,
        summary,
        replace(publisher.template, phase="planned"),
        head=report.head_sha,
        comment_url=publisher.comment_url,
    )
    publisher.try_news(text)


def list_apply_conditions(
    report: Report, *, untrusted: str | None
) -> tuple[ApplyConditionView, ...]:
    """Lists what an apply of this plan still needs, so that people see it before they ask."""
    no_blocker = report.decision != "no_go"
    return (
        ApplyConditionView(label="planned with prod's state", met=report.baseline == "state"),
        ApplyConditionView(label="a change to apply", met=report.plan_id is not None),
        ApplyConditionView(
            label="no blocker",
            met=no_blocker,
            next_command=None if no_blocker else "fix the blockers and push",
        ),
        ApplyConditionView(label="not from a fork", met=untrusted is None),
    )
