"""Surveys, which change only their own reports: what is still missing (`mode: doctor`), and how
prod and the default branch differ (`mode: drift`), in the job's summary.

The doctor asks what `ci-bot doctor` asks on a laptop, from where the other activities run: with
their secrets, their network and their token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ci_bot.bot.actions import Settings, activities
from ci_bot.bot.github import GitHub, publish_drift_issue, require_github
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import Publisher
from ci_bot.bot.report import render_doctor, render_drift
from ci_bot.bot.sandbox import parse_worker_variables
from ci_bot.bot.worker_client import (
    DriftOptions,
    find_doctor_exit_code,
    find_drift,
    make_activity_failure,
    make_failed_doctor_document,
    request_doctor,
)
from ci_bot.errors import EXIT_DONE, BotError, RequestRefused
from ci_bot.protocol.cleanup_report import DriftReport
from ci_bot.protocol.messages import DoctorDocument
from ci_bot.protocol.plan import ProjectCheck


class DoctorHandler(Handler[activities.Doctor]):
    """Says what the other activities would miss here. Changes nothing."""

    def run(self, activity: activities.Doctor, context: HandlerContext) -> int:
        settings = context.settings
        _check_commit(context)
        document = request_doctor(
            context.client,
            owner_name=settings.runner.repository,
            environment_prefix=settings.prefix,
        )
        return _publish_doctor(document, context, activity.branch)

    def report_failure(
        self, error: BotError, activity: activities.Doctor, context: HandlerContext
    ) -> int:
        """A worker that could not even begin is a finding; GitHub is asked anyway."""
        if isinstance(error, RequestRefused):
            raise error
        failure = make_activity_failure(error, "doctor", context.publisher.redactor)
        return _publish_doctor(make_failed_doctor_document(failure), context, activity.branch)


def _check_commit(context: HandlerContext) -> None:
    """The project is loaded beside the secrets of this job, so it is the commit of the branch that
    somebody with write access has chosen, and never a pull request's.

    Raises:
        RequestRefused: another commit is checked out.
    """
    if context.client.git.read_head() != context.settings.runner.sha:
        raise RequestRefused(
            "A doctor reads the commit that its workflow was started on, and another one is "
            "checked out.",
            hint="Start it on the default branch, with a checkout that names no `ref`, or that "
            "branch.",
            reason_code="other_checkout",
        )


def _publish_doctor(document: DoctorDocument, context: HandlerContext, branch: str | None) -> int:
    publisher, settings = context.publisher, context.settings
    own = [
        *check_variables(settings.inputs.worker_env, publisher.machine.environ),
        *check_github(context.optional_github, settings, branch),
    ]
    document = document.model_copy(update={"checks": [*document.checks, *own]})
    document = publisher.redactor.redact_document(document)
    publisher.summary.append_markdown(render_doctor(document))
    _annotate_checks(document, publisher)
    code = find_doctor_exit_code(document)
    reason = "missing" if code else "nothing_missing"
    publisher.outputs.set_output("reason-code", reason)
    publisher.outputs.set_json(
        "result",
        {
            "schema_version": 1,
            "activity": "doctor",
            "failing": [check.name for check in document.checks if check.status == "fail"],
            "warnings": [check.name for check in document.checks if check.status == "warn"],
            "exit_code": code,
        },
    )
    return code


def _annotate_checks(document: DoctorDocument, publisher: Publisher) -> None:
    for status, level in (("fail", "error"), ("warn", "warning")):
        publisher.annotate_findings(
            [
                (level, f"{check.name}: {check.message} {check.fix or ''}".strip(), None, None)
                for check in document.checks
                if check.status == status
            ]
        )


def check_variables(worker_env: str, environ: Mapping[str, str]) -> Iterator[ProjectCheck]:
    """What `worker-env` names and this job does not have. GitHub gives an empty text for a secret
    that nobody has set."""
    try:
        wanted = parse_worker_variables(worker_env)
    except BotError as error:
        yield ProjectCheck(name="variables", status="fail", message=error.message, fix=error.hint)
        return
    empty = sorted(
        name for name, value in environ.items() if wanted.requires_variable(name) and not value
    )
    absent = sorted(name for name in wanted.names if name not in environ)
    none = [f"{prefix}*" for prefix in wanted.prefixes if not _has_any(prefix, environ)]
    if empty:
        yield _make_missing_variables_check(
            empty, "empty", "Set the secret or variable that the workflow's `env` reads for it."
        )
    if absent or none:
        yield _make_missing_variables_check(
            [*absent, *none],
            "not set in this job",
            "Add it to the `env` of this step, or take it out of `worker-env`.",
        )
    if wanted.names or wanted.prefixes:
        if not (empty or absent or none):
            yield ProjectCheck(
                name="variables", status="ok", message="everything in `worker-env` has a value"
            )
    else:
        yield ProjectCheck(
            name="variables",
            status="ok",
            message="`worker-env` is empty: the project sees no variable of this job",
        )


def _has_any(prefix: str, environ: Mapping[str, str]) -> bool:
    return any(name.startswith(prefix) for name in environ)


def _make_missing_variables_check(names: list[str], what: str, fix: str) -> ProjectCheck:
    listed = ", ".join(f"`{name}`" for name in names)
    are = "is" if len(names) == 1 else "are"
    return ProjectCheck(name="variables", status="warn", message=f"{listed} {are} {what}", fix=fix)


def check_github(
    github: GitHub | None, settings: Settings, branch: str | None
) -> Iterator[ProjectCheck]:
    """What this job's token may do, as far as it can be seen without writing anything."""
    try:
        github = require_github(github)
        login = github.my_login()
        github.pulls_for_sha(settings.runner.sha or "")
    except BotError as error:
        yield ProjectCheck(name="token", status="fail", message=error.message, fix=error.hint)
        return
    yield ProjectCheck(
        name="token",
        status="ok",
        message=f"comments come from `{login}`; pull requests can be read",
    )
    if branch is not None:
        yield _check_branch_rules(github, branch)


def _check_branch_rules(github: GitHub, branch: str) -> ProjectCheck:
    try:
        required = github.list_required_checks(branch)
    except BotError as error:
        return ProjectCheck(
            name="branch rules",
            status="not_run",
            message=f"rules of `{branch}` could not be read: {error.message}",
        )
    if not required:
        return ProjectCheck(
            name="branch rules",
            status="warn",
            message=f"no ruleset of `{branch}` requires a check, so a No-Go can be merged",
            fix="Require the review's check in a ruleset. A classic branch protection rule counts, "
            "too, but only administrators can see it.",
        )
    return ProjectCheck(
        name="branch rules",
        status="ok",
        message=f"`{branch}` requires {', '.join(f'`{name}`' for name in required)}",
    )


class DriftHandler(Handler[activities.Drift]):
    """Tells of drift. It changes only its issue, and has no comment for a failure."""

    def run(self, activity: activities.Drift, context: HandlerContext) -> int:
        settings, publisher = context.settings, context.publisher
        found = find_drift(
            context.client,
            DriftOptions(
                owner=settings.runner.repository,
                environment_prefix=settings.prefix,
                run=str(settings.runner.run_id),
            ),
            context.github.pull_states,
            planned_at=publisher.machine.format_timestamp(),
        )
        return publish_drift(publisher.redactor.redact_document(found), publisher, context)


def publish_drift(report: DriftReport, publisher: Publisher, context: HandlerContext) -> int:
    """The summary and the outputs first, then the issue; returns the exit code.

    Without the right to write issues the summary has it all, and a warning says so.
    """
    text = render_drift(report, publisher.template)
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
        change, issue = publish_drift_issue(
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
