"""`ci-bot policy`: checks a team's own policy, and explains it."""

from __future__ import annotations

from typing import Any

import click

from ci_bot.bot.actions import inputs
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_line import (
    CommandArgument,
    CommandGroup,
    ParsedValue,
    TwoLineCommand,
    add_common_options,
    declare_option,
    run_guarded,
    run_local_command,
    with_example,
)
from ci_bot.bot.cli.options import with_projects

_POLICY_EXAMPLE = "ci-bot policy check warehouse"


@click.group("policy", cls=CommandGroup, no_args_is_help=False)
@add_common_options
def policy_commands() -> None:
    """Check a team's own policy, and explain it."""


with_example(policy_commands, _POLICY_EXAMPLE, "ci-bot policy explain warehouse.orders")


@policy_commands.command("check", cls=TwoLineCommand)
@add_common_options
@click.argument("path", cls=CommandArgument, type=ParsedValue(inputs.parse_path), default=".")
def policy_check_command(path: str) -> None:
    """Read .sqlmesh-review.yaml, and print each entry. PATH is the file or its directory."""
    from ci_bot.bot.laptop import check_policy

    run_guarded(lambda machine: check_policy(machine, path=path))


with_example(policy_check_command, _POLICY_EXAMPLE)


@policy_commands.command("explain", cls=TwoLineCommand)
@add_common_options
@click.argument("model", cls=CommandArgument, type=shared.MODEL_NAME)
@shared.PROJECT
@shared.GATEWAY
@declare_option(
    "--base-ref",
    type=ParsedValue(inputs.parse_text),
    help="The branch whose policy counts; without it the file that lies there.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def policy_explain_command(**options: Any) -> None:
    """Print which entries are about MODEL, and who may accept its findings."""
    from ci_bot.bot.laptop import explain_policy

    run_local_command(explain_policy, with_projects(options))


with_example(policy_explain_command, "ci-bot policy explain shop.orders --project warehouse")
