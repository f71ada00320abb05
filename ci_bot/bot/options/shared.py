"""Where a command works and what it prints: options that are the same in each command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ci_bot.bot import values
from ci_bot.bot.options.parameters import Argument, Function, Value, Word, option

PROJECT = option(
    "--project",
    "projects",
    type=Value(values.path),
    multiple=True,
    metavar="PATH",
    help="Directory of a SQLMesh project, `.` by default; repeat it for several projects on one "
    "state.",
)
GATEWAY = option(
    "--gateway", type=Value(values.text), help="SQLMesh gateway; the project's default otherwise."
)
PYTHON_PATH = option(
    "--python-path",
    type=Value(values.path),
    multiple=True,
    metavar="DIR",
    help="Directory with Python modules of the project, as in PYTHONPATH. Repeatable.",
)
OUTPUT = option(
    "--output",
    type=Value(values.path),
    metavar="DIR",
    help="Write the complete report into this directory, too.",
)
# Of commands whose answer is no report.
ANSWER_FORMAT = option(
    "--format",
    "form",
    type=Word("terminal", "json"),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
FORMAT = option(
    "--format",
    "form",
    type=Word("terminal", "markdown", "json"),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
WORKER_ENV = option(
    "--worker-env",
    type=Value(values.utf8),
    default="",
    help="Names and PREFIX_* of variables, separated by spaces, as in the workflow. Here your "
    "project sees all of your variables; those that you name are hidden in every text.",
)
PREFIX = option(
    "--environment-prefix",
    type=Value(values.environment_prefix),
    help="PR environments are called PREFIX_<number of the PR>; the project's, or pr.",
)
TIMEOUT = option(
    "--timeout-minutes",
    type=Value(values.minutes, "integer"),
    default=60,
    show_default=True,
    help="Time limit of the whole run.",
)
BASE_REF = option(
    "--base-ref",
    type=Value(values.text),
    help="The branch that this change is to be merged into; `origin/HEAD` knows it otherwise.",
)
CLAIM = option(
    "--claim",
    is_flag=True,
    help="It is yours although no record of this action says so, or says that it is another "
    "repository's.",
)


def project_argument(command: Function) -> Function:
    """A project may stand without `--project`, too, as `ci-bot review .`; see `with_projects`."""
    return click.argument(
        "path", cls=Argument, type=Value(values.path), nargs=-1, metavar="[PROJECT]..."
    )(command)


def with_projects(options: dict[str, Any]) -> dict[str, Any]:
    """A command's options with its projects as `projects`, however they were named."""
    rest = dict(options)
    named: Sequence[str] = (*rest.pop("path", ()), *rest.pop("projects"))
    return {**rest, "projects": tuple(dict.fromkeys(named)) or (".",)}


def environment(what: str, default: str | None = None) -> Callable[[Function], Function]:
    """`--environment`, which a command needs unless it has a default."""
    more = {"required": True} if default is None else {"default": default, "show_default": True}
    return option("--environment", type=Value(values.text), help=what, **more)
