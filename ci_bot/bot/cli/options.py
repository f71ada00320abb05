"""Options that several commands share: their values, and the words for a shell's completion.

A completion loads and runs nothing, because a shell asks at each press of the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click

from ci_bot.bot.actions import ActionInputs, inputs
from ci_bot.bot.cli.command_line import (
    CommandArgument,
    Function,
    OptionWordChoice,
    ParsedOptionValue,
    declare_command_option,
    declare_command_option_of_input,
)

_FORMAT_HELP = "What to print on stdout."


def _complete_model_option(given: Mapping[str, Any]) -> list[str]:
    return list_model_names_for_completion(
        [*(given.get("path") or ()), *(given.get("projects") or ())] or ["."]
    )


def _complete_rule_option(_given: Mapping[str, Any]) -> list[str]:
    from ci_bot.protocol.rules import RULES

    return list(RULES)


RULE_NAME = ParsedOptionValue(inputs.parse_text_input, complete=_complete_rule_option)
MODEL_NAME = ParsedOptionValue(inputs.parse_text_input, complete=_complete_model_option)


# Where a command works and what it prints: options that are the same in each command.


PROJECT = declare_command_option(
    "--project",
    "projects",
    type=ParsedOptionValue(inputs.parse_path_input),
    multiple=True,
    metavar="PATH",
    help="Directory of a SQLMesh project, `.` by default; repeat it for several projects on one "
    "state.",
)

GATEWAY = declare_command_option_of_input(
    "gateway",
    help="SQLMesh gateway; the project's default otherwise.",
)

PYTHON_PATH = declare_command_option(
    "--python-path",
    type=ParsedOptionValue(inputs.parse_path_input),
    multiple=True,
    metavar="DIR",
    help="Directory with Python modules of the project, as in PYTHONPATH. Repeatable.",
)

OUTPUT = declare_command_option(
    "--output",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="DIR",
    help="Write the complete report into this directory, too.",
)
# For commands whose answer is no report.
ANSWER_FORMAT = declare_command_option(
    "--format",
    "form",
    type=OptionWordChoice("terminal", "json"),
    default="terminal",
    show_default=True,
    help=_FORMAT_HELP,
)

FORMAT = declare_command_option(
    "--format",
    "form",
    type=OptionWordChoice("terminal", "markdown", "json"),
    default="terminal",
    show_default=True,
    help=_FORMAT_HELP,
)

WORKER_ENV = declare_command_option_of_input(
    "worker-env",
    default="",
    help="Names and PREFIX_* of variables, separated by spaces, as in the workflow. Here your "
    "project sees all of your variables; those that you name are hidden in every text.",
)

PREFIX = declare_command_option_of_input(
    "environment-prefix",
    help="PR environments are called PREFIX_<number of the PR>; the project's, or pr.",
)

TIMEOUT = declare_command_option_of_input(
    "timeout-minutes",
    kind="integer",
    default=ActionInputs.timeout_minutes,
    show_default=True,
    help="Time limit of the whole run.",
)

BASE_REF = declare_command_option(
    "--base-ref",
    type=ParsedOptionValue(inputs.parse_text_input),
    help="The branch that this change is to be merged into; `origin/HEAD` knows it otherwise.",
)

CLAIM = declare_command_option(
    "--claim",
    is_flag=True,
    help="It is yours although no record of this action says so, or says that it is another "
    "repository's.",
)


def add_project_argument(command: Function) -> Function:
    """Adds the project as an argument without `--project`, as in `ci-bot review .`.

    See `add_projects_to_command`.
    """
    return click.argument(
        "path",
        cls=CommandArgument,
        type=ParsedOptionValue(inputs.parse_path_input),
        nargs=-1,
        metavar="[PROJECT]...",
    )(command)


def add_project_options(command: Function) -> Function:
    """Adds the options for projects and gateway; see `add_projects_to_command`."""
    for one in (GATEWAY, PROJECT, add_project_argument):
        command = one(command)
    return command


# A command's options, as click parsed them, each of its declared type.


def add_projects_to_command(options: dict[str, Any]) -> dict[str, Any]:
    """Returns a command's options with its projects as `projects`, from both ways to name them."""
    rest = dict(options)
    named: Sequence[str] = (*rest.pop("path", ()), *rest.pop("projects"))
    return {**rest, "projects": tuple(dict.fromkeys(named)) or (".",)}


def choose_projects(found: Sequence[str]) -> Sequence[str]:
    """Asks a person at the terminal to choose one of several projects."""
    for number, project in enumerate(found, start=1):
        click.echo(f"  {number}  {project}", err=True)
    question = f"Which SQLMesh project, 1 to {len(found)}"
    number = click.prompt(question, type=click.IntRange(1, len(found)), err=True)
    return (found[number - 1],)


def declare_environment_option(
    what: str, default: str | None = None
) -> Callable[[Function], Function]:
    """Declares `--environment`, which is required if it has no default."""
    more = {"required": True} if default is None else {"default": default, "show_default": True}
    return declare_command_option(
        "--environment", type=ParsedOptionValue(inputs.parse_text_input), help=what, **more
    )


# The options of a plan, and of the limits for it.


def add_plan_options_to_command(command: Function) -> Function:
    """Adds the options of a plan, which all commands that make one share.

    See `add_plan_flags_to_command`.
    """
    for one in reversed(_PLAN):
        command = one(command)
    return command


def add_limit_options(command: Function) -> Function:
    """Adds what a team may set for its reviews; without an option its policy counts."""
    for one in reversed(_LIMITS):
        command = one(command)
    return command


def add_budget_options(command: Function) -> Function:
    """Adds only the limits about cost."""
    for one in reversed((_MAX_HOURS, _PRICE)):
        command = one(command)
    return command


def _declare_models_option(
    name: str, field: str, metavar: str, what: str
) -> Callable[[Function], Function]:
    return declare_command_option(
        f"--{name}",
        field,
        type=MODEL_NAME,
        multiple=True,
        metavar=metavar,
        help=f"{what} Repeatable.",
    )


def _declare_switch_option(name: str, what: str) -> Callable[[Function], Function]:
    """Declares a pair of switches; without either of them the project decides."""
    return declare_command_option(f"--{name}/--no-{name}", default=None, help=what)


FORWARD_ONLY = _declare_switch_option(
    "forward-only", "Plan all changes as forward-only: history keeps its old values."
)

ALLOW_DESTRUCTIVE = _declare_models_option(
    "allow-destructive",
    "allow_destructive",
    "MODEL",
    "Let this forward-only model drop or retype columns.",
)

_PLAN = (
    _declare_models_option(
        "select-model",
        "select_models",
        "SELECTION",
        "Plan only these models, in SQLMesh's syntax for selections: `+shop.orders`, `tag:daily`.",
    ),
    _declare_models_option(
        "restate-model", "restate_models", "MODEL", "Rebuild this model in the environment."
    ),
    declare_command_option_of_input(
        "start",
        metavar="DATE",
        help="First date to build; the project's otherwise.",
    ),
    declare_command_option_of_input(
        "end",
        metavar="DATE",
        help="Last date to build; at most, and otherwise, as far as prod is built.",
    ),
    declare_command_option_of_input(
        "min-intervals",
        kind="integer",
        help="Smallest number of intervals that each changed model gets.",
    ),
    declare_command_option_of_input(
        "preview-start",
        metavar="DATE",
        help="First date for previews of forward-only models.",
    ),
    declare_command_option_of_input(
        "preview-min-intervals",
        kind="integer",
        help="Smallest number of intervals in a preview of a forward-only model.",
    ),
    _declare_switch_option("skip-backfill", "Build no data: tables are made, and stay empty."),
    _declare_switch_option("include-unmodified", "Make views of unmodified models, too."),
    FORWARD_ONLY,
    ALLOW_DESTRUCTIVE,
)

_PRICE = declare_command_option_of_input(
    "executor-hour-price",
    metavar="PRICE",
    help="Price of one executor-hour with its currency, such as `0.42 EUR`, to show a cost.",
)

_MAX_HOURS = declare_command_option_of_input(
    "max-executor-hours",
    kind="number",
    help="A higher estimate than this ends it, before anything is built.",
)

_LIMITS = (
    declare_command_option(
        "--fail-on",
        type=OptionWordChoice(*get_args(inputs.FailOn)),
        help="From which finding on to exit with 1: a blocker (No-Go), high (Review, too), or "
        "never; the policy's, else blocker.",
    ),
    declare_command_option_of_input(
        "max-intervals",
        kind="integer",
        help="More intervals than this, in the environment or in prod, make it at least Review.",
    ),
    declare_command_option_of_input(
        "max-executor-hours",
        kind="number",
        help="A higher estimate than this, for the environment or for prod, makes it No-Go.",
    ),
    _PRICE,
)

_FLAGS = (
    "forward_only",
    "include_unmodified",
    "skip_backfill",
    "min_intervals",
    "preview_start",
    "preview_min_intervals",
)

_LISTS = ("select_models", "restate_models", "allow_destructive")


def add_plan_flags_to_command(options: dict[str, Any]) -> dict[str, Any]:
    """Returns a command's options with those of its plan as `flags`; `start` and `end` stay."""
    from ci_bot.protocol.plan_identity import GivenFlags

    rest = {name: value for name, value in options.items() if name not in (*_FLAGS, *_LISTS)}
    flags = {name: options[name] for name in _FLAGS}
    flags |= {name: sorted(options[name]) for name in _LISTS}
    return {**rest, "flags": GivenFlags(**flags)}


# A model's name is at the beginning of its file.
_HEAD_BYTES = 4_096
# A limit, because a shell waits for the answer.
_MOST_FILES = 5_000
_SQL = re.compile(r"\bMODEL\s*\(\s*name\s+([^\s,;()@]+)", re.IGNORECASE)
_PYTHON = re.compile(r"@model\(\s*(?:name\s*=\s*)?[\"\']([^\"\'{}@]+)[\"\']")


def list_model_names_for_completion(projects: Iterable[str]) -> list[str]:
    """Lists the models that files below these projects declare with a plain name, sorted.

    It does not find a name that a macro makes, or one that follows other properties.
    """
    found = set()
    for project in projects:
        for path in _list_model_files(Path(project)):
            name = _read_model_name(path)
            if name is not None:
                found.add(name)
    return sorted(found)


def _list_model_files(project: Path) -> Iterator[Path]:
    left = _MOST_FILES
    for folder, folders, files in os.walk(project / "models"):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for file in sorted(files):
            if file.endswith((".sql", ".py")):
                if not left:
                    return
                left -= 1
                yield Path(folder, file)


def _read_model_name(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            text = file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    hit = (_SQL if path.suffix == ".sql" else _PYTHON).search(text)
    return hit[1].replace("`", "").replace('"', "") if hit else None
