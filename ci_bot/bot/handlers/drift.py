"""A drift run: it shows how prod and the default branch differ, in its summary and an issue."""

from __future__ import annotations

from ci_bot.bot.actions import activities
from ci_bot.bot.github import publish_drift_issue_on_github
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.report import render_drift_markdown
from ci_bot.bot.worker_client import WorkerDriftOptions, request_drift_from_worker
from ci_bot.errors import EXIT_DONE, BotError
from ci_bot.protocol.cleanup_report import DriftReport


class DriftHandler(Handler[activities.Drift]):
    """Reports drift. It changes only its issue, and has no comment for a failure."""

    def run(self, activity: activities.Drift, context: HandlerContext) -> int:
        settings, publisher = context.settings, context.publisher
        found = request_drift_from_worker(
            context.client,
            WorkerDriftOptions(
                owner=settings.runner.repository,
                environment_prefix=settings.prefix,
                run=str(settings.runner.run_id),
            ),
            context.github.pull_states,
            planned_at=publisher.machine.format_timestamp(),
        )
        return publish_drift_of_run(publisher.redactor.redact_document(found), publisher, context)


def publish_drift_of_run(
    report: DriftReport, publisher: HandlerPublisher, context: HandlerContext
) -> int:
    """Publishes the summary and the outputs first, then the issue; returns the exit code.

    Without the right to write issues, the summary has all of it, and a warning says so.
    """
    text = render_drift_markdown(report, publisher.template)
    publisher.summary.append_markdown(text)
    code = report.failure.exit_code if report.failure is not None else EXIT_DONE
    if report.failure is not None:
        publisher.annotate_failure(report.failure)
        reason = report.failure.reason_code
    else:
        reason = "no_drift" if report.is_clean else "drift"
    publisher.outputs.set_output("reason-code", reason)
    publisher.outputs.set_json(
        "result",
        {
            "schema_version": 1,
            "activity": "drift",
            "findings": report.findings,
            "changed_models": report.changed_models,
            "behind_models": report.survey.behind_models,
            "environments": len(report.environments) + len(report.survey.lasting),
            "unused_versions": report.survey.unused_versions,
            "estimates": len(report.survey.estimates),
            "exit_code": code,
        },
    )
    try:
        change, issue = publish_drift_issue_on_github(
            context.github,
            key=publisher.key,
            title=f"SQLMesh drift of prod: {publisher.key}",
            body=text,
            clean=report.is_clean,
        )
    except BotError as error:
        publisher.annotate_problem(
            "The issue about drift could not be written, and the summary of this run has its text",
            error,
        )
        return code
    if issue is not None and change != "unchanged":
        publisher.commands.annotate_notice(f"Issue #{issue.number} is {change}: {issue.url}")
    return code
