"""The laptop has what the action has, its help shows how each command is used, and in which order."""

from __future__ import annotations

import shlex

import click
import pytest

from ci_bot.bot.actions.inputs import ActionInputs
from ci_bot.bot.cli import commands
from ci_bot.bot.cli.local_review import LaptopReview
from ci_bot.bot.cli.options import add_plan_flags_to_command, add_projects_to_command

# What an input has no option for, and why.
OF_A_WORKFLOW = {
    "github-token": "a review asks GitHub nothing",
    "mode": "the command says it",
    "requirements": "the interpreter that ci-bot is installed in has the project's packages",
    "environment-prefix": "`--environment` is the whole name",
    "pr-number": "`--environment pr_7`",
    "event-logs": "`ci-bot learn` reads them",
    "cache": "`--cache-dir` says it",
    "comment-id": "nobody comments",
    "comment": "there is none",
    "override-reason": "an apply on a laptop is asked for by the person who may do it",
    "plan-id": "of an apply",
    "diff-tolerance": "of an apply",
    "table-diff": "of an apply",
    "reclaim": "of a cleanup",
    "max-deletions": "of a sweep",
}


def options(command: click.Command) -> set[str]:
    return {option for param in command.params for option in param.opts}


def every() -> dict[str, click.Command]:
    """All commands, also those of a group, by what is typed."""
    found: dict[str, click.Command] = {}
    for name, command in commands.command_group.commands.items():
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {below}": one for below, one in command.commands.items()}
    return found


def test_review__has_every_input_that_a_laptop_can_have() -> None:
    known = options(commands.command_group.commands["review"])
    missing = {name for name in ActionInputs.list_names() if f"--{name}" not in known}
    assert missing == set(OF_A_WORKFLOW)


def test_review__its_options_are_what_is_asked_for() -> None:
    """Each reaches the review, and none has another default than its field."""
    context = commands.command_group.commands["review"].make_context("review", [])
    given = add_projects_to_command(add_plan_flags_to_command(context.params))
    assert LaptopReview(**given) == LaptopReview()


def test_commands__stand_in_the_order_of_use() -> None:
    listed = commands.command_group.list_commands(click.Context(commands.command_group))
    assert listed == [
        *(
            "init",
            "review",
            "explain",
            "doctor",
            "same",
            "witness",
            "estimate",
            "apply",
            "prod-plan",
            "cleanup",
            "sweep",
        ),
        "learn",
        "exposures",
        *("policy", "demo", "schema", "run"),
    ]


@pytest.mark.parametrize("name", every())
def test_help__ends_with_an_example_that_can_be_typed(name: str) -> None:
    command = every()[name]
    epilog = (command.epilog or "").splitlines()
    assert epilog[:2] == ["\b", "Example:"], f"{name} has no example"
    for line in epilog[2:]:
        words = shlex.split(line.partition(" > ")[0], comments=True)
        words = words[words.index("ci-bot") + 1 :]
        typed = max((one for one in every() if words[: len(one.split())] == one.split()), key=len)
        assert typed.startswith(name)
        every()[typed].make_context(typed, words[len(typed.split()) :])


@pytest.mark.parametrize("name", every())
def test_help__lists_each_command_and_option_in_whole_sentences(name: str) -> None:
    command = every()[name]
    told = command.get_short_help_str(limit=75)
    assert told.endswith("."), told
    assert not told.endswith("..."), told
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, f"{name} {param.name}"
            assert param.help.rstrip().endswith("."), f"{name} {param.name}: {param.help}"
