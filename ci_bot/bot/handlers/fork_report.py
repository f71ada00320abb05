"""Posts the report of a fork's review, which could not comment itself (`workflow_run`).

That review ran the fork's code, and its workflow file was the fork's as well, so its artifact may
hold anything. Nothing is checked out here, and nothing of the artifact is executed or shown as it
is: one file is read up to a limit, must be a report by its schema, and must be about the commit
that GitHub names for the run. Which pull request that is, and with it the environment's name, is
asked of GitHub and never taken from the artifact. The comment is rendered again with our templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from pydantic import ValidationError

from ci_bot.bot.actions import activities
from ci_bot.bot.github import GitHub, NotFound, PullRequest, read_file_of_github_artifact
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher, make_handler_publisher_for
from ci_bot.bot.handlers.review import list_apply_conditions
from ci_bot.bot.policy import UNWEIGHED
from ci_bot.bot.report import (
    SENTENCES,
    CommentMarkerFacts,
    CommentViewContext,
    RenderedText,
    group_findings,
    render_review_comment,
)
from ci_bot.bot.sandbox import SandboxedAnswerRefusedError, check_json_of_sandboxed_worker
from ci_bot.errors import EXIT_DONE, RequestRefused
from ci_bot.protocol.comment import review_phase
from ci_bot.protocol.review_report import Report, Risk

ARTIFACT = "ci-bot-report"
MEMBER = "report.json"
# A review of a thousand changed models is about 3 MB of JSON, and a tenth of that compressed.
MAX_ARCHIVE_BYTES = 8 * 1024 * 1024
MAX_REPORT_BYTES = 16 * 1024 * 1024
_UNTRUSTED = "The report comes from a run that had no secrets and may not comment."
_MADE_THERE = (
    "This report was computed in the pull request's own run, by code that the pull request can "
    "change."
)


class _NothingToPost(Exception):
    """Why there is nothing to do, as a sentence. Not a failure."""


class ForkReportHandler(Handler[activities.PostForkReport]):
    """Posts the report of a fork's review."""

    needs_worker = False

    def run(self, activity: activities.PostForkReport, context: HandlerContext) -> int:
        """Posts the report; returns the exit code.

        Raises:
            Refused: the artifact is not one that can be trusted, or it is not clear whose it is.
            BotError: GitHub did not answer.
        """
        publisher, github = context.publisher, context.github
        try:
            pull = find_pull_request_of_fork_run(activity, github)
            report = read_report_of_fork_run(activity, github)
        except _NothingToPost as reason:
            publisher.commands.annotate_notice(str(reason))
            publisher.outputs.set_output("reason-code", "nothing_to_post")
            return EXIT_DONE
        mine = make_handler_publisher_for(publisher, pull.number)
        report = publisher.redactor.redact_document(report)
        report = rewrite_claims_of_fork_report(
            report, pull, mine, _is_project_untouched(report, pull, mine, github)
        )
        return _publish_fork_report(report, activity, pull, mine)


def find_pull_request_of_fork_run(
    activity: activities.PostForkReport, github: GitHub
) -> PullRequest:
    """The one open pull request with this head, by GitHub's word.

    Raises:
        Refused: several pull requests share the head, so the report may be about either.
    """
    owner = activity.head_repository.partition("/")[0] if activity.head_repository else None
    head = f"{owner}:{activity.head_branch}" if owner and activity.head_branch else None
    found = github.pulls_for_sha(activity.head_sha, head=head)
    if activity.head_repository is not None:
        same = activity.head_repository.lower()
        found = [pull for pull in found if (pull.head_repository or "").lower() == same]
    if not found:
        raise _NothingToPost(
            f"No open pull request has the commit {activity.head_sha[:7]} as its head any more, so "
            "there is nothing to post. Each push is reviewed automatically."
        )
    if len(found) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in found)
        raise RequestRefused(
            f"The pull requests {numbers} have the same head, so it is not clear which of them the "
            "report is about.",
            hint="Read the report in the step summary of its own run.",
            reason_code="ambiguous_head",
        )
    pull = found[0]
    if not pull.fork and not pull.is_dependabot:
        # A branch may be called like one of Dependabot's.
        raise _NothingToPost(
            f"Pull request #{pull.number} is from this repository; its review has commented itself."
        )
    return pull


def read_report_of_fork_run(activity: activities.PostForkReport, github: GitHub) -> Report:
    """The report in the run's artifact, as far as that can be trusted.

    Raises:
        Refused: it cannot be.
    """
    try:
        archive = github.download_artifact(activity.run_id, ARTIFACT, max_bytes=MAX_ARCHIVE_BYTES)
    except NotFound as error:
        raise _NothingToPost(
            f"The run {activity.run_id} has left no report. {error.hint or ''}".strip()
        ) from error
    # Beside the report lies its Markdown form. It is never read.
    content = read_file_of_github_artifact(archive, MEMBER, max_bytes=MAX_REPORT_BYTES, alone=False)
    try:
        check_json_of_sandboxed_worker(content)
        report = Report.model_validate_json(content)
    except SandboxedAnswerRefusedError as why:
        raise _refuse_fork_report(str(why)) from None
    except (ValidationError, ValueError, RecursionError):
        raise _refuse_fork_report("it is no report of this version") from None
    if report.head_sha != activity.head_sha:
        raise _refuse_fork_report("it is about another commit than its run")
    return report


def rewrite_claims_of_fork_report(
    report: Report, pull: PullRequest, publisher: HandlerPublisher, untouched: bool
) -> Report:
    """The report with our own facts in the place of its claims.

    Args:
        untouched: GitHub says that the pull request changes no file of the project, so that "no
            changes" can be trusted.
    """
    environment = publisher.environment
    decision, reasons = report.decision, list(report.reasons)
    if decision == "go" or (decision == "no_changes" and not untouched):
        decision, reasons = "review", [_MADE_THERE, *reasons]
    inputs = publisher.settings.inputs
    # The team's own words are the base branch's, and only its own runs read them.
    used = report.policy and report.policy.model_copy(update={"header": None, "footer": None})
    risks, set_aside = _sort_findings(report)
    return report.model_copy(
        update={
            "environment": environment,
            "environment_now": None,
            "environment_holds_plan": False,
            "policy": used,
            # Nobody can accept a finding of a fork, and no owner lets prod build again for one.
            "owners": [] if pull.fork else report.owners,
            "prod_restatements": [],
            "refused_wish": None,
            "risks": risks,
            "findings": group_findings(risks),
            "set_aside": set_aside,
            "base_sha": pull.base_sha,
            "merge_sha": None,
            "project": report.project.model_copy(
                update={"paths": list(inputs.project), "gateway": inputs.gateway}
            ),
            "identity": None,
            "plan_id": None,
            "appliable": False,
            "not_appliable_because": SENTENCES.fork_never_applied
            if pull.fork
            else SENTENCES.needs_prods_state,
            "baseline": "base-branch",
            "decision": decision,
            "reasons": reasons,
            "notes": [_MADE_THERE, *report.notes],
        }
    )


def _sort_findings(report: Report) -> tuple[list[Risk], list[Risk]]:
    """The findings that count, and those that do not, without what only a trusted run can know.

    Who has accepted a finding stands in the ledger, what data shows is compared by an apply, and
    whom a team trusts is asked of GitHub.
    """
    counting: list[Risk] = list(report.risks)
    aside: list[Risk] = []
    for risk in report.set_aside:
        (counting if _needs_run_with_secrets(risk) else aside).append(risk)
    return [_weigh_fork_finding_alone(risk) for risk in counting], [
        risk.model_copy(update={"message": None}) for risk in aside
    ]


def _needs_run_with_secrets(risk: Risk) -> bool:
    """Whether a finding got its weight from what a run without secrets cannot know."""
    weighed = risk.weighed
    return weighed is not None and (
        weighed.by in ("acceptance", "data_diff") or risk.rule in UNWEIGHED
    )


def _weigh_fork_finding_alone(risk: Risk) -> Risk:
    own: dict[str, object] = {"message": None}
    if risk.weighed is not None and _needs_run_with_secrets(risk):
        return risk.model_copy(update={**own, "severity": risk.weighed.weight, "weighed": None})
    return risk.model_copy(update=own)


def _is_project_untouched(
    report: Report, pull: PullRequest, publisher: HandlerPublisher, github: GitHub
) -> bool:
    """Whether GitHub's list of changed files bears out that nothing of the project changed."""
    if report.decision != "no_changes":
        return False
    files = github.changed_files(pull.number)
    return files is not None and not _list_files_inside_projects(
        files, publisher.settings.inputs.project
    )


def _list_files_inside_projects(files: Sequence[str], projects: Sequence[str]) -> list[str]:
    roots = [PurePosixPath(project) for project in projects]
    return [
        file for file in files if any(PurePosixPath(file).is_relative_to(root) for root in roots)
    ]


def _publish_fork_report(
    report: Report,
    activity: activities.PostForkReport,
    pull: PullRequest,
    publisher: HandlerPublisher,
) -> int:
    runner = publisher.settings.runner
    review_run = f"{runner.server_url}/{runner.repository}/actions/runs/{activity.run_id}"
    publisher.template = replace(
        publisher.template,
        conditions=list_apply_conditions(report, untrusted=_UNTRUSTED),
        fork=True,
        base_name=pull.base_ref,
        run_url=review_run,
        report_url=f"{review_run}#artifacts",
    )
    phase = review_phase(report)

    def render_comment(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_review_comment(report, context, budget)

    publisher.write_summary(render_comment, phase)
    facts = CommentMarkerFacts(
        head=activity.head_sha,
        base=pull.base_sha,
        # No plan, no window and no artifact: nothing that an apply could ever start from.
        decision=report.decision,
    )
    publisher.set_outputs_and_post(
        {
            "decision": report.decision,
            "reason-code": report.failure.reason_code if report.failure else report.decision,
        },
        {
            "activity": "fork-report",
            "decision": report.decision,
            "pr_number": pull.number,
            "changes": len(report.changes),
        },
        lambda: publisher.is_shown(
            publisher.post_comment(phase, facts, render_comment, current_head=pull.head_sha)
        ),
    )
    return EXIT_DONE


def _refuse_fork_report(why: str) -> RequestRefused:
    return RequestRefused(
        f"The report that the other run left is not posted: {why}.",
        hint="It was ignored. Its own run has the log; running that again leaves a fresh report.",
        reason_code="report_refused",
    )
