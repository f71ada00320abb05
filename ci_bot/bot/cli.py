"""The commands. Parses, wires, and turns errors into exit codes; nothing else.

Heavy packages are imported inside the commands, so that an event that needs nothing ends at once.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from ci_bot import __version__
from ci_bot.bot import values
from ci_bot.bot.options import (
    Argument,
    Option,
    TwoLineCommand,
    Value,
    Word,
    is_verbose,
    plan_options,
    verbose_option,
    with_flags,
)
from ci_bot.errors import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    BotError,
    Cancelled,
    unexpected,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci_bot.machine import Machine


Function = TypeVar("Function", bound="Callable[..., Any]")


def _option(*names: str, **more: Any) -> Callable[[Function], Function]:
    return click.option(*names, cls=Option, **more)


_PROJECT = _option(
    "--project",
    "projects",
    type=Value(values.path),
    multiple=True,
    required=True,
    metavar="PATH",
    help="Directory of a SQLMesh project; repeat it for several projects on one state.",
)
_GATEWAY = _option(
    "--gateway", type=Value(values.text), help="SQLMesh gateway; the project's default otherwise."
)
_PYTHON_PATH = _option(
    "--python-path",
    type=Value(values.path),
    multiple=True,
    metavar="DIR",
    help="Directory of the checkout with Python modules of the project, as in PYTHONPATH; repeat.",
)
_OUTPUT = _option(
    "--output", type=Value(values.path), metavar="DIR", help="Write the complete files here."
)
_FORMAT = _option(
    "--format",
    "form",
    type=Word("terminal", "markdown", "json"),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
_WORKER_ENV = _option(
    "--worker-env",
    type=Value(values.utf8),
    default="",
    help="Names and PREFIX_* of variables that the project may see, separated by blanks.",
)
_PREFIX = _option(
    "--environment-prefix",
    type=Value(values.environment_prefix),
    help="PR environments are called PREFIX_<number of the PR>; the project's, or pr.",
)
_TIMEOUT = _option(
    "--timeout-minutes",
    type=Value(values.minutes, "integer"),
    default=60,
    show_default=True,
    help="Time limit of the whole run.",
)


_CLAIM = _option(
    "--claim",
    is_flag=True,
    help="It is yours although no record of this action says so, or says that it is another "
    "repository's.",
)


@click.group(no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@verbose_option
def commands() -> None:
    """Plan reviews, PR environments and proven cleanup for SQLMesh projects on Spark."""


def _command(function: Callable[..., None]) -> click.Command:
    return commands.command(cls=TwoLineCommand)(verbose_option(function))


@_command
def run() -> None:
    """The action's entry point: GitHub's environment decides what is done."""
    from ci_bot.bot.action import CREDENTIALS, run_workflow
    from ci_bot.bot.runner.secrecy import keep_secrets

    def begin(machine: Machine) -> int:
        # Before anything is started, and before anything of a project is read.
        keep_secrets(os.environ, CREDENTIALS)
        return run_workflow(machine)

    _guarded(begin)


@_command
@_PROJECT
@_GATEWAY
@_option(
    "--environment",
    type=Value(values.text),
    default="dev",
    show_default=True,
    help="The environment to plan.",
)
@_option(
    "--baseline",
    type=Word("auto", "state", "base-branch"),
    default="auto",
    show_default=True,
    help="What prod is taken to be.",
)
@_option(
    "--base-ref",
    type=Value(values.text),
    help="The base branch, for base-branch and for the list of changes.",
)
@plan_options
@_PYTHON_PATH
@_WORKER_ENV
@_TIMEOUT
@_OUTPUT
@_FORMAT
def review(**options: Any) -> None:
    """Explain what the project would change in prod. Changes nothing."""
    from ci_bot.bot.terminal.local import review_locally

    _locally(review_locally, with_flags(options))


@_command
@_PROJECT
@_GATEWAY
@_option(
    "--environment",
    type=Value(values.text),
    required=True,
    help="The environment to build; never prod.",
)
@_option(
    "--plan-id",
    type=Value(values.plan_id),
    help="Apply only if the plan has this id (8 digits or more).",
)
@plan_options
@_PYTHON_PATH
@_CLAIM
@_WORKER_ENV
@_TIMEOUT
@_OUTPUT
@_FORMAT
def apply(**options: Any) -> None:
    """Build the environment on Spark, and show the evidence."""
    from ci_bot.bot.terminal.local import apply_locally

    _locally(apply_locally, with_flags(options))


@_command
@_PROJECT
@_GATEWAY
@_option(
    "--environment",
    type=Value(values.text),
    required=True,
    help="The environment to remove, such as pr_17.",
)
@_PREFIX
@_option(
    "--reclaim",
    type=Word("auto", "never", "always"),
    default="auto",
    show_default=True,
    help="What happens to the physical tables of a PR that was not merged.",
)
@_option("--merged/--unmerged", default=None, help="How the PR ended.")
@_PYTHON_PATH
@_CLAIM
@_WORKER_ENV
@_TIMEOUT
@_OUTPUT
@_FORMAT
def cleanup(**options: Any) -> None:
    """Remove a PR environment, and prove that nothing is left."""
    from ci_bot.bot.terminal.local import cleanup_locally

    _locally(cleanup_locally, options)


@_command
@_PROJECT
@_GATEWAY
@_PREFIX
@_option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@_option(
    "--max-deletions",
    type=Value(values.whole_number(1), "integer"),
    default=20,
    show_default=True,
    help="The most environments that are removed.",
)
@_PYTHON_PATH
@_WORKER_ENV
@_TIMEOUT
def sweep(**options: Any) -> None:
    """Remove environments whose pull request is closed. Asks GitHub, so it needs GITHUB_TOKEN."""
    from ci_bot.bot.terminal.local_sweep import sweep_locally

    _locally(sweep_locally, options)


@_command
@_PROJECT
@_GATEWAY
@_PYTHON_PATH
@_WORKER_ENV
@_TIMEOUT
@_option(
    "--format",
    "form",
    type=Word("terminal", "json"),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
def doctor(**options: Any) -> None:
    """Look at everything that the other commands need, and change nothing."""
    from ci_bot.bot.terminal.local_doctor import doctor_locally

    _locally(doctor_locally, options)


@_command
@_option("--keep", type=Value(values.path), metavar="DIR", help="Keep the demo's files here.")
def demo(keep: str | None) -> None:
    """The whole life of one PR on embedded Spark and state, with real data."""
    from ci_bot.bot.demo.story import run_demo

    _guarded(lambda machine: run_demo(machine, Path(keep) if keep else None))


@_command
@click.argument("rule", cls=Argument, type=Value(values.text), required=False)
def explain(rule: str | None) -> None:
    """Print what a rule sees, why it matters and how to clear it; without RULE, all rules."""
    from ci_bot.bot.terminal.explain import explain as explain_rule

    _guarded(lambda machine: explain_rule(machine, rule))


@commands.group("policy", no_args_is_help=False)
@verbose_option
def policy_commands() -> None:
    """A team's own policy: is the file right, and what does it say of a model?"""


@policy_commands.command(cls=TwoLineCommand)
@verbose_option
@click.argument("path", cls=Argument, type=Value(values.path), default=".")
def check(path: str) -> None:
    """Read .sqlmesh-review.yaml, and print each entry. PATH is the file or its directory."""
    from ci_bot.bot.terminal.local_policy import check_policy

    _guarded(lambda machine: check_policy(machine, path=path))


@policy_commands.command("explain", cls=TwoLineCommand)
@verbose_option
@click.argument("model", cls=Argument, type=Value(values.text))
@_option(
    "--project",
    "projects",
    type=Value(values.path),
    multiple=True,
    default=(".",),
    show_default=True,
    metavar="PATH",
    help="Directory of a SQLMesh project; repeat it for several projects on one state.",
)
@_GATEWAY
@_option(
    "--base-ref",
    type=Value(values.text),
    help="The branch whose policy counts; without it the file that lies there.",
)
@_PYTHON_PATH
@_WORKER_ENV
@_TIMEOUT
def explain_model(**options: Any) -> None:
    """Print which entries are about MODEL, and who may accept its findings."""
    from ci_bot.bot.terminal.local_policy import explain_policy

    _locally(explain_policy, options)


@_command
@click.argument("document", cls=Argument, type=Word("report", "apply", "cleanup", "policy"))
def schema(document: str) -> None:
    """Print the JSON Schema of a file."""
    import json

    from pydantic import BaseModel

    if document == "policy":
        from ci_bot.bot.policy.schema import policy_schema

        click.echo(json.dumps(policy_schema(), indent=2))
        return

    from ci_bot.contracts.base import json_schema
    from ci_bot.contracts.documents.apply import ApplyDocument
    from ci_bot.contracts.documents.cleanup import CleanupDocument
    from ci_bot.contracts.documents.report import Report

    models: dict[str, type[BaseModel]] = {
        "report": Report,
        "apply": ApplyDocument,
        "cleanup": CleanupDocument,
    }
    click.echo(json.dumps(json_schema(models[document]), indent=2))


def _locally(activity: Callable[..., int], options: dict[str, Any]) -> NoReturn:
    _guarded(lambda machine: activity(machine, **options))


def _guarded(activity: Callable[[Machine], int]) -> NoReturn:
    """Runs an activity; its errors become a sentence, a fix, and an exit code.

    Whatever we did not foresee is told in the same way. Its traceback is for those who ask for it.
    """
    verbose = is_verbose(click.get_current_context(silent=True))
    try:
        from ci_bot.machine import of_this_process

        code = activity(replace(of_this_process(), verbose=verbose))
    except (BotError, Cancelled) as error:
        code = _tell(error)
    except BrokenPipeError:
        # Whoever read the output has gone; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILED
    except Exception as error:
        if verbose:
            _crash(error)
        code = _tell(unexpected(error))
    raise SystemExit(code)


def _tell(error: BotError | Cancelled) -> int:
    """The sentence and the fix, each a line; returns the exit code."""
    where = ""
    if error.path and error.path not in error.message:
        where = f"{error.path}{f', line {error.line}' if error.line else ''}: "
    click.echo(_without_secrets(f"ci-bot: {where}{error.message}"), err=True)
    if error.hint:
        click.echo(_without_secrets(f"        {error.hint}"), err=True)
    return error.exit_code


def _tell_usage(error: click.ClickException) -> None:
    message = error.format_message()
    click.echo(_without_secrets(f"ci-bot: {message[:1].lower()}{message[1:]}"), err=True)
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "ci-bot"
    click.echo(f"        `{path} --help` shows what it takes. Nothing was touched.", err=True)


def _without_secrets(text: str) -> str:
    """`text` without what the environment holds secret; for what is said past all documents."""
    from ci_bot.bot.cage.variables import redactor_of
    from ci_bot.bot.trigger.inputs import env_name

    worker_env = os.environ.get(env_name("worker-env"), "")
    return redactor_of(os.environ, worker_env=worker_env).redact(text)


def _crash(error: BaseException | None) -> None:
    """What nobody foresaw, in Python's own words: they repeat paths, settings and values."""
    lines = traceback.format_exception(error) if error is not None else []
    sys.stderr.write(_without_secrets("".join(lines)))


def main() -> None:
    """Entry point of the console script. Wrong options are exit 2."""
    sys.excepthook = lambda _kind, error, _trace: _crash(error)
    threading.excepthook = lambda thread: _crash(thread.exc_value)
    try:
        commands.main(prog_name="ci-bot", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        _tell_usage(error)
        sys.exit(EXIT_BAD_INPUT)


if __name__ == "__main__":
    main()
