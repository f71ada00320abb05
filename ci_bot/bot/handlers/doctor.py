"""The doctor: it reports in the job's summary what is still missing, and changes nothing else.

It checks the same as `ci-bot doctor` on a laptop, but from where the other activities run: with
their secrets, their network and their token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ci_bot.bot.actions import ActionSettings, activities
from ci_bot.bot.github import GitHub, require_github
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.report import render_doctor_markdown
from ci_bot.bot.sandbox import parse_sandbox_variables
from ci_bot.bot.worker_client import (
    choose_exit_code_of_worker_doctor,
    make_activity_failure_of_worker,
    make_failed_doctor_document_for_worker,
    request_doctor_from_worker,
)
from ci_bot.errors import BotError, RequestRefused
from ci_bot.protocol.messages import DoctorDocument
from ci_bot.protocol.plan import ProjectCheck


class DoctorHandler(Handler[activities.Doctor]):
    """Reports what the other activities would lack here. It changes nothing."""

    def run(self, activity: activities.Doctor, context: HandlerContext) -> int:
        settings = context.settings
        _check_commit(context)
        document = request_doctor_from_worker(
            context.client,
            owner_name=settings.runner.repository,
            environment_prefix=settings.prefix,
        )
        return _publish_doctor(document, context, activity.branch)

    def report_failure(
        self, error: BotError, activity: activities.Doctor, context: HandlerContext
    ) -> int:
        """Reports a worker that could not start as a finding; it asks GitHub anyway."""
        if isinstance(error, RequestRefused):
            raise error
        failure = make_activity_failure_of_worker(error, "doctor", context.publisher.redactor)
        return _publish_doctor(
            make_failed_doctor_document_for_worker(failure), context, activity.branch
        )


def _check_commit(context: HandlerContext) -> None:
    """Checks that the workspace holds the commit on which the workflow was started.

    The project is loaded beside this job's secrets. So it has to be the branch's commit that
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
        *list_variable_checks_of_doctor(settings.inputs.worker_env, publisher.machine.environ),
        *list_token_checks_of_doctor(context.optional_github, settings, branch),
    ]
    document = document.model_copy(update={"checks": [*document.checks, *own]})
    document = publisher.redactor.redact_document(document)
    publisher.summary.append_markdown(render_doctor_markdown(document))
    _annotate_doctor_checks(document, publisher)
    code = choose_exit_code_of_worker_doctor(document)
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


def _annotate_doctor_checks(document: DoctorDocument, publisher: HandlerPublisher) -> None:
    for status, level in (("fail", "error"), ("warn", "warning")):
        publisher.annotate_findings(
            [
                (level, f"{check.name}: {check.message} {check.fix or ''}".strip(), None, None)
                for check in document.checks
                if check.status == status
            ]
        )


def list_variable_checks_of_doctor(
    worker_env: str, environ: Mapping[str, str]
) -> Iterator[ProjectCheck]:
    """Yields checks about variables that `worker-env` names and this job does not have.

    GitHub gives an empty text for a secret that nobody has set.
    """
    try:
        wanted = parse_sandbox_variables(worker_env)
    except BotError as error:
        yield ProjectCheck(name="variables", status="fail", message=error.message, fix=error.hint)
        return
    empty = sorted(
        name for name, value in environ.items() if wanted.requires_variable(name) and not value
    )
    absent = sorted(name for name in wanted.names if name not in environ)
    none = [
        f"{prefix}*" for prefix in wanted.prefixes if not _has_variable_with_prefix(prefix, environ)
    ]
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


def _has_variable_with_prefix(prefix: str, environ: Mapping[str, str]) -> bool:
    return any(name.startswith(prefix) for name in environ)


def _make_missing_variables_check(names: list[str], what: str, fix: str) -> ProjectCheck:
    listed = ", ".join(f"`{name}`" for name in names)
    are = "is" if len(names) == 1 else "are"
    return ProjectCheck(name="variables", status="warn", message=f"{listed} {are} {what}", fix=fix)


def list_token_checks_of_doctor(
    github: GitHub | None, settings: ActionSettings, branch: str | None
) -> Iterator[ProjectCheck]:
    """Yields checks about the token's rights, as far as they are visible without writing."""
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
