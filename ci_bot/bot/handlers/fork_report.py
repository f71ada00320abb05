"""Posts the report of a fork's review, which could not comment itself (`workflow_run`).

That review ran the fork's code, and its workflow file was also the fork's, so its artifact may hold
anything. Nothing is checked out here, and nothing of the artifact is executed or shown as it is.
One file is read up to a limit, must be a report by its schema, and must be about the commit that
GitHub names for the run. GitHub, never the artifact, says which pull request that is, and so the
environment's name. The comment is rendered again with our templates.
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
from ci_bot.protocol.comment import choose_review_phase
from ci_bot.protocol.review_report import Report, Risk

ARTIFACT = "ci-bot-report"
MEMBER = "report.json"
# The report of a thousand changed models is about 3 MB of JSON, and a tenth of that compressed.
MAX_ARCHIVE_BYTES = 8 * 1024 * 1024
MAX_REPORT_BYTES = 16 * 1024 * 1024
_UNTRUSTED = "The report comes from a run that had no secrets and may not comment."
_MADE_THERE = (
    "This report was computed in the pull request's own run, by code that the pull request can "
    "change."
)


class _NothingToPost(Exception):
    """The reason, as a sentence, why there is nothing to post. It is no failure."""


class ForkReportHandler(Handler[activities.PostForkReport]):
    """Posts the report of a fork's review."""

    needs_worker = False

    def run(self, activity: activities.PostForkReport, context: HandlerContext) -> int:
        """Posts the report; returns the exit code.

        Raises:
            RequestRefused: the artifact cannot be trusted, or its pull request is not clear.
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
    """Returns the one open pull request with this head, as GitHub reports it.

    Raises:
        RequestRefused: several pull requests have this head, so the report may be about any of
            them.
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
        # The name of a branch may look like one of Dependabot's.
        raise _NothingToPost(
            f"Pull request #{pull.number} is from this repository; its review has commented itself."
        )
    return pull


def read_report_of_fork_run(activity: activities.PostForkReport, github: GitHub) -> Report:
    """Reads the report in the run's artifact, as far as it can be trusted.

    Raises:
        RequestRefused: the report cannot be trusted.
    """
    try:
        archive = github.download_artifact(activity.run_id, ARTIFACT, max_bytes=MAX_ARCHIVE_BYTES)
    except NotFound as error:
        raise _NothingToPost(
            f"The run {activity.run_id} has left no report. {error.hint or ''}".strip()
        ) from error
    # The artifact also holds the report as Markdown. It is never read.
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
    """Returns the report with our own facts instead of its claims.

    Args:
        untouched: Whether GitHub says that the pull request changes no file of the project, so that
            "no changes" can be trusted.
    """
    environment = publisher.environment
    decision, reasons = report.decision, list(report.reasons)
    if decision == "go" or (decision == "no_changes" and not untouched):
        decision, reasons = "review", [_MADE_THERE, *reasons]
    inputs = publisher.settings.inputs
    # The team's own texts are the base branch's, and only its own runs read them.
    used = report.policy and report.policy.model_copy(update={"header": None, "footer": None})
    risks, set_aside = _sort_findings(report)
    return report.model_copy(
        update={
            "environment": environment,
            "environment_now": None,
            "environment_holds_plan": False,
            "policy": used,
            # Nobody can accept a finding of a fork, and no owner can let prod build again for one.
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
    """Returns the findings that count, and those that do not, as far as this run can know.

    A trusted run is needed for the rest: the ledger records who has accepted a finding, an apply
    compares the data, and GitHub says whom a team trusts.
    """
    counting: list[Risk] = list(report.risks)
    aside: list[Risk] = []
    for risk in report.set_aside:
        (counting if _needs_run_with_secrets(risk) else aside).append(risk)
    return [_weigh_fork_finding_alone(risk) for risk in counting], [
        risk.model_copy(update={"message": None}) for risk in aside
    ]


def _needs_run_with_secrets(risk: Risk) -> bool:
    """Whether a finding's weight depends on facts that a run without secrets cannot know."""
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
    """Whether GitHub's list of changed files confirms that nothing of the project changed."""
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
    phase = choose_review_phase(report)

    def render_comment(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_review_comment(report, context, budget)

    publisher.write_summary(render_comment, phase)
    facts = CommentMarkerFacts(
        head=activity.head_sha,
        base=pull.base_sha,
        # No plan, no window and no artifact, so that no apply can start from it.
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
