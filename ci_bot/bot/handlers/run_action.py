"""`ci-bot run`: from GitHub's environment to an activity, and from its end to an exit code.

Heavy packages are imported only when they are needed, so that an event that needs nothing ends at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ci_bot.bot.actions import (
    ALLOW_UNCAGED,
    EVENT_FILE_HINT,
    ActionSettings,
    activities,
    choose_activity,
    make_variable_name_of_input,
    read_action_settings,
    read_github_event,
)
from ci_bot.errors import (
    EXIT_DONE,
    BadInput,
    BotError,
    RunCancelled,
    format_exception,
    make_unforeseen_error,
)
from ci_bot.host import Machine

if TYPE_CHECKING:
    from ci_bot.bot.actions import WorkflowCommands
    from ci_bot.bot.github import GitHub, GitHubClient
    from ci_bot.bot.handlers.publisher import HandlerPublisher
    from ci_bot.bot.sandbox import SandboxDeadline
    from ci_bot.redaction import Redactor

# Credentials of the job that no text may show and no worker may see, in addition to the token.
_JOB_SECRETS = ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITHUB_TOKEN")
# The variables that hold them. The runner also sets an input of a container action as INPUT_*.
CREDENTIALS = (make_variable_name_of_input("github-token"), "INPUT_GITHUB-TOKEN", *_JOB_SECRETS)


def run_action_in_workflow(machine: Machine, *, starts_early: bool = False) -> int:
    """Does what the event asks for; returns the exit code.

    An event that needs nothing ends before anything heavy is imported and before GitHub is asked.

    Args:
        starts_early: Whether a worker may start before its request is made; this process has to
            be the bot alone then.
    """
    try:
        _check_runs_in_container(machine)
        settings = read_action_settings(machine.environ)
        chosen = _read_activity(settings)
    except (BotError, RunCancelled) as error:
        return _report_ended_run(error, machine)
    except Exception as error:
        _print_traceback(format_exception(error), machine)
        return _report_ended_run(make_unforeseen_error(error), machine)
    if isinstance(chosen, activities.NothingToDo):
        _make_workflow_commands(machine, _make_redactor(machine)).annotate_notice(chosen.reason)
        return EXIT_DONE
    secrets = list_job_secrets(settings, machine.environ)
    if starts_early:
        _start_worker_of_activity(chosen, settings, machine, secrets)
    try:
        return _handle_activity(chosen, settings, machine, secrets)
    except (BotError, RunCancelled) as error:
        return _report_ended_run(error, machine, secrets)
    except Exception as error:
        _print_traceback(format_exception(error), machine, secrets)
        return _report_ended_run(make_unforeseen_error(error), machine, secrets)


def _check_runs_in_container(machine: Machine) -> None:
    """Checks that a workflow runs the project's code in the container, or was allowed not to.

    Raises:
        BadInput: there is no container, and nobody has said that this is intended.
    """
    if not _runs_in_github_actions(machine) or machine.worker_user is not None:
        return
    if machine.environ.get(ALLOW_UNCAGED) != "true":
        raise BadInput(
            "This run is not in the action's container, where the project's code has a user of "
            "its own: here it could read what the runner's user can, other credentials of this "
            "job among it.",
            hint="Use the action as published (`uses:`). If that is understood and wanted, set "
            f"{ALLOW_UNCAGED}=true.",
            reason_code="no_container",
        )
    _make_workflow_commands(machine, _make_redactor(machine)).annotate_warning(
        f"{ALLOW_UNCAGED}=true: the project's code runs as the same user as the bot. The token is "
        "kept from it, but it can read and change what this user can: files, other processes of "
        "this job and what they hold, later steps."
    )


def _runs_in_github_actions(machine: Machine) -> bool:
    return machine.environ.get("GITHUB_ACTIONS") == "true"


def _start_worker_of_activity(
    chosen: activities.Activity,
    settings: ActionSettings,
    machine: Machine,
    secrets: tuple[str, ...],
) -> None:
    """Has a worker import SQLMesh while this process imports its own modules and asks GitHub."""
    if isinstance(chosen, activities.Review | activities.Apply):
        activity: Literal["review", "spark"] = "review"
    elif isinstance(chosen, activities.Cleanup):
        activity = "spark"
    else:
        return
    if settings.inputs.requirements:
        return  # it would have other packages
    from ci_bot.bot.sandbox import start_early_worker_in_workflow

    with suppress(BotError):  # whoever reads the inputs next reports what is wrong with them
        start_early_worker_in_workflow(
            activity, machine, worker_env=settings.inputs.worker_env, secrets=secrets
        )


def _make_redactor(machine: Machine, secrets: tuple[str, ...] = ()) -> Redactor:
    """Makes a redactor of all secrets that this run can know, also if its inputs cannot be read."""
    from ci_bot.bot.sandbox import make_redactor_for_sandbox

    worker_env = machine.environ.get(make_variable_name_of_input("worker-env"), "")
    return make_redactor_for_sandbox(machine.environ, worker_env=worker_env, secrets=secrets)


def list_job_secrets(settings: ActionSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Lists the values that only the bot may know."""
    values = [settings.inputs.github_token, *(environ.get(name, "") for name in _JOB_SECRETS)]
    return tuple(dict.fromkeys(value for value in values if value))


def _read_activity(settings: ActionSettings) -> activities.Activity:
    runner = settings.runner
    try:
        text = Path(runner.event_path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            "The event file cannot be read.",
            hint=EVENT_FILE_HINT,
            reason_code="event_unreadable",
        ) from error
    event = read_github_event(runner.event_name, text, sha=runner.sha)
    return choose_activity.choose_activity(event, settings.inputs, actor=runner.actor)


def _make_workflow_commands(
    machine: Machine, redactor: Redactor, masked: tuple[str, ...] = ()
) -> WorkflowCommands:
    from ci_bot.bot.actions import WorkflowCommands

    # Outside a workflow a mask command would print the secret that it should hide.
    return WorkflowCommands(
        machine.out,
        token=machine.token,
        secrets=masked if _runs_in_github_actions(machine) else (),
        redactor=redactor,
    )


def _print_traceback(text: str, machine: Machine, secrets: tuple[str, ...] = ()) -> None:
    """Prints a traceback of the bot in a group of the log, for those who fix it."""
    redactor = _make_redactor(machine, secrets)
    commands = _make_workflow_commands(machine, redactor)
    with commands.fold_lines("Traceback"):
        for line in redactor.redact(text).splitlines():
            # The message of an exception may contain words of somebody else.
            commands.write_worker_line(line)


def _report_ended_run(
    error: BotError | RunCancelled, machine: Machine, secrets: tuple[str, ...] = ()
) -> int:
    """Reports the failure as an annotation and as outputs for conditions; returns the exit code."""
    from ci_bot.bot.actions import ActionStepOutputs

    commands = _make_workflow_commands(machine, _make_redactor(machine, secrets))
    text = f"{error.message} {error.hint or ''}".strip()
    commands.annotate_error(text, file=error.path, line=error.line)
    path = machine.environ.get("GITHUB_OUTPUT")
    outputs = ActionStepOutputs(
        Path(path) if path else None, delimiter=machine.token, warn=commands.annotate_warning
    )
    if isinstance(error, RunCancelled) and outputs.has_output("result"):
        # It was stopped while it wrote to GitHub: the outputs keep what was done.
        return error.exit_code
    outputs.set_output("reason-code", error.reason_code)
    result = {"schema_version": 1, "reason_code": error.reason_code, "exit_code": error.exit_code}
    outputs.set_json("result", result)
    return error.exit_code


def _handle_activity(
    chosen: activities.Activity,
    settings: ActionSettings,
    machine: Machine,
    secrets: tuple[str, ...],
) -> int:
    from ci_bot.bot.handlers import pull_request_context
    from ci_bot.bot.handlers.handler import HandlerContext, find_handler
    from ci_bot.bot.handlers.publisher import REPORT_DIRECTORY
    from ci_bot.bot.report import check_within
    from ci_bot.bot.sandbox import (
        SandboxCancelToken,
        SandboxDeadline,
        SandboxedTracebackFilter,
        handle_signals_of_sandbox,
    )
    from ci_bot.bot.worker_client import WorkerClientOptions, WorkListener, open_worker_client
    from ci_bot.protocol.messages import Progress

    redactor = _make_redactor(machine, secrets)
    commands = _make_workflow_commands(machine, redactor, secrets)
    inputs = settings.inputs
    deadline = SandboxDeadline(inputs.timeout_minutes * 60.0, clock=machine.monotonic)
    github = _make_github_client(settings, machine, deadline)
    cancel = SandboxCancelToken(clock=machine.monotonic)

    def on_traceback(lines: list[str]) -> None:
        with commands.fold_lines("Traceback"):
            for line in lines:
                commands.write_worker_line(line)

    log = SandboxedTracebackFilter(on_line=commands.write_worker_line, on_traceback=on_traceback)

    def on_progress(step: Progress) -> None:
        count = f" {step.done}/{step.total}" if step.total else ""
        commands.write_line(f"{step.phase}{count}: {step.message}")

    options = WorkerClientOptions(
        checkout=Path(settings.runner.workspace),
        projects=inputs.project,
        gateway=inputs.gateway,
        requirements=inputs.requirements,
        python_path=inputs.python_path,
        worker_env=inputs.worker_env,
        timeout_minutes=inputs.timeout_minutes,
        secrets=secrets,
    )
    listener = WorkListener(
        on_progress=on_progress,
        on_log=log.feed_line,
        on_traceback=on_traceback,
        # First of all, so that the update of the comment takes no longer than the worker's last
        # seconds.
        on_cancel=lambda: github.hurry_requests() if github else None,
    )
    publisher = _make_handler_publisher(
        chosen, settings, machine, commands=commands, github=github, redactor=redactor
    )
    handler = find_handler(chosen)
    context = HandlerContext(settings, publisher, github)
    try:
        with handle_signals_of_sandbox(cancel):
            if not handler.needs_worker:
                return handler.run(chosen, context)
            try:
                activities.check_image_has_spark_for_activity(chosen, has_spark=machine.has_spark)
                if chosen.writes_report:
                    check_within(options.checkout, REPORT_DIRECTORY)
                with open_worker_client(
                    options,
                    machine,
                    redactor=redactor,
                    cancel=cancel,
                    listener=listener,
                    deadline=deadline,
                ) as client:
                    settings = pull_request_context.name_environment_of_run(
                        chosen, settings, publisher, client
                    )
                    context = replace(context, settings=settings, worker=client)
                    return handler.run(chosen, context)
            except BotError as error:
                return handler.report_failure(error, chosen, context)
            except Exception as error:
                on_traceback(publisher.redactor.redact(format_exception(error)).splitlines())
                return handler.report_failure(make_unforeseen_error(error), chosen, context)
    finally:
        log.release_held()
        commands.end_worker_part()
        cancel.close()


def _make_github_client(
    settings: ActionSettings, machine: Machine, deadline: SandboxDeadline
) -> GitHubClient | None:
    if not settings.inputs.github_token:
        return None
    from ci_bot.bot.github import (
        GitHubClient,
        find_certificates_for_github,
        make_github_client_time,
    )

    return GitHubClient(
        repository=settings.runner.repository,
        token=settings.inputs.github_token,
        api_url=settings.runner.api_url,
        time=make_github_client_time(machine, deadline),
        trust=find_certificates_for_github(machine.environ),
    )


def _make_handler_publisher(
    chosen: activities.Activity,
    settings: ActionSettings,
    machine: Machine,
    *,
    commands: WorkflowCommands,
    github: GitHub | None,
    redactor: Redactor,
) -> HandlerPublisher:
    from ci_bot.bot.actions import ActionStepOutputs, ActionStepSummary
    from ci_bot.bot.github import GitHubStickyComment
    from ci_bot.bot.handlers.publisher import (
        HandlerPublisher,
        make_comment_context,
        make_project_key,
    )

    number = chosen.number
    key = make_project_key(settings)
    runner = settings.runner
    return HandlerPublisher(
        settings=settings,
        machine=machine,
        commands=commands,
        outputs=ActionStepOutputs(
            Path(runner.output) if runner.output else None,
            delimiter=machine.token,
            warn=commands.annotate_warning,
        ),
        summary=ActionStepSummary(
            Path(runner.step_summary) if runner.step_summary else None,
            warn=commands.annotate_warning,
        ),
        redactor=redactor,
        number=number,
        github=github,
        sticky=GitHubStickyComment(
            github,
            number=number,
            key=key,
            monotonic=machine.monotonic,
            now=machine.format_timestamp,
            asked=isinstance(chosen, activities.Review) and chosen.was_dispatched,
            each_plan=settings.inputs.comment == "new",
        )
        if github is not None and number is not None and chosen.may_comment
        else None,
        template=make_comment_context(settings, number, machine),
        key=key,
    )
