"""The commands (DESIGN 4.1). Parses, wires, and turns errors into exit codes; nothing else.

Heavy rooms are imported inside the commands, so that an event that needs nothing ends at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ci_bot import __version__
from ci_bot.contracts.environment import UnfitName, check_prefix
from ci_bot.errors import EXIT_BAD_INPUT, BotError

if TYPE_CHECKING:
    from collections.abc import Callable

_PROJECT = click.option(
    "--project",
    "projects",
    multiple=True,
    required=True,
    metavar="PATH",
    help="Directory of a SQLMesh project; repeat it for several projects on one state.",
)
_GATEWAY = click.option("--gateway", help="SQLMesh gateway; the project's default otherwise.")
_OUTPUT = click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the complete files here.",
)
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "markdown", "json"]),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
_WORKER_ENV = click.option(
    "--worker-env",
    default="",
    help="Names and PREFIX_* of variables that the project may see, separated by blanks.",
)


def _is_prefix(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        return check_prefix(value)
    except UnfitName as error:
        raise click.BadParameter(f"{error.message} {error.hint}") from None


_PREFIX = click.option(
    "--environment-prefix", default="pr", show_default=True, callback=_is_prefix, metavar="WORD"
)
_CLAIM = click.option(
    "--claim",
    is_flag=True,
    help="It is yours although no record of this action says so, or says that it is another "
    "repository's.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def commands() -> None:
    """Plan reviews, PR environments and proven cleanup for SQLMesh projects on Spark."""


@commands.command()
def run() -> None:
    """The action's entry point: GitHub's environment decides what is done."""
    from ci_bot.surroundings import of_this_process
    from ci_bot.workflow import run_workflow

    raise SystemExit(run_workflow(of_this_process()))


@commands.command()
@_PROJECT
@_GATEWAY
@click.option("--environment", default="dev", show_default=True, help="The environment to plan.")
@click.option(
    "--baseline",
    type=click.Choice(["auto", "state", "base-branch"]),
    default="auto",
    show_default=True,
    help="What prod is taken to be.",
)
@click.option("--base-ref", help="The base branch, for base-branch and for the list of changes.")
@_WORKER_ENV
@_OUTPUT
@_FORMAT
def review(**options: Any) -> None:
    """Explain what the project would change in prod. Changes nothing."""
    from ci_bot.local import review_locally

    _locally(review_locally, options)


@commands.command()
@_PROJECT
@_GATEWAY
@click.option("--environment", required=True, help="The environment to build; never prod.")
@click.option("--plan-id", help="Apply only if the plan has this id (8 digits or more).")
@click.option("--restate-model", "restate_models", multiple=True, metavar="M")
@click.option("--start", metavar="D", help="First date to build.")
@click.option("--end", metavar="D", help="Last date to build, at most as far as prod has got.")
@click.option("--min-intervals", type=click.IntRange(min=0), default=0)
@click.option("--select-model", "select_models", multiple=True, metavar="S")
@click.option("--forward-only", is_flag=True)
@click.option("--include-unmodified", is_flag=True, help="Views for unmodified models, too.")
@click.option("--allow-destructive", multiple=True, metavar="M")
@_CLAIM
@_WORKER_ENV
@_OUTPUT
@_FORMAT
def apply(**options: Any) -> None:
    """Build the environment on Spark, and show the evidence."""
    from ci_bot.local import apply_locally

    _locally(apply_locally, options)


@commands.command()
@_PROJECT
@_GATEWAY
@click.option("--environment", required=True, help="The environment to remove, such as pr_17.")
@_PREFIX
@click.option(
    "--reclaim",
    type=click.Choice(["auto", "never", "always"]),
    default="auto",
    show_default=True,
    help="What happens to the physical tables of a PR that was not merged.",
)
@click.option("--merged/--unmerged", default=None, help="How the PR ended.")
@_CLAIM
@_WORKER_ENV
@_OUTPUT
@_FORMAT
def cleanup(**options: Any) -> None:
    """Remove a PR environment, and prove that nothing is left."""
    from ci_bot.local import cleanup_locally

    _locally(cleanup_locally, options)


@commands.command()
@_PROJECT
@_GATEWAY
@_PREFIX
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option(
    "--max-deletions",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The most environments that are removed.",
)
@_WORKER_ENV
def sweep(**options: Any) -> None:
    """Remove environments whose pull request is closed. Asks GitHub, so it needs GITHUB_TOKEN."""
    from ci_bot.local_sweep import sweep_locally

    _locally(sweep_locally, options)


@commands.command()
@_PROJECT
@_GATEWAY
@_WORKER_ENV
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json"]),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
def doctor(**options: Any) -> None:
    """Look at everything that the other commands need, and change nothing."""
    from ci_bot.local_doctor import doctor_locally

    _locally(doctor_locally, options)


@commands.command()
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the demo's files here."
)
def demo(keep: Path | None) -> None:
    """The whole life of one PR on embedded Spark and state, with real data."""
    from ci_bot.demo.story import run_demo
    from ci_bot.surroundings import of_this_process

    _guarded(lambda: run_demo(of_this_process(), keep))


@commands.command()
@click.argument("document", type=click.Choice(["report", "apply", "cleanup"]))
def schema(document: str) -> None:
    """Print the JSON Schema of a file."""
    import json

    from pydantic import BaseModel

    from ci_bot.contracts.apply import ApplyDocument
    from ci_bot.contracts.base import json_schema
    from ci_bot.contracts.cleanup import CleanupDocument
    from ci_bot.contracts.report import Report

    models: dict[str, type[BaseModel]] = {
        "report": Report,
        "apply": ApplyDocument,
        "cleanup": CleanupDocument,
    }
    click.echo(json.dumps(json_schema(models[document]), indent=2))


def _locally(activity: Callable[..., int], options: dict[str, Any]) -> NoReturn:
    from ci_bot.surroundings import of_this_process

    _guarded(lambda: activity(of_this_process(), **options))


def _guarded(activity: Callable[[], int]) -> NoReturn:
    """Runs an activity; its errors become a sentence, a fix, and an exit code."""
    try:
        code = activity()
    except BotError as error:
        click.echo(f"ci-bot: {error.message}", err=True)
        if error.hint:
            click.echo(f"        {error.hint}", err=True)
        code = error.exit_code
    raise SystemExit(code)


def main() -> None:
    """Entry point of the console script. Wrong options are exit 2, as click has it."""
    try:
        commands.main(prog_name="ci-bot", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_BAD_INPUT)


if __name__ == "__main__":
    main()
