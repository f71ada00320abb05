"""The program: its commands, in the order in which people need them, and its start.

Heavy packages are imported only inside the commands, so that an event without work ends at once.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import TYPE_CHECKING

import click

from ci_bot import __version__
from ci_bot.bot.cli.command_line import (
    CommandGroup,
    add_common_command_options,
    declare_command_with_common_options,
    print_crash,
    print_usage_error,
    run_command_guarded,
)
from ci_bot.bot.cli.environment_commands import (
    apply_command,
    cleanup_command,
    estimate_command,
    exposures_command,
    learn_command,
    prod_plan_command,
    sweep_command,
)
from ci_bot.bot.cli.local_commands import (
    demo_command,
    doctor_command,
    explain_command,
    init_command,
    policy_commands,
    review_command,
    same_command,
    schema_command,
    witness_command,
)
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, BadInput

if TYPE_CHECKING:
    from ci_bot.host import Machine


@click.group(
    cls=CommandGroup,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__)
@click.pass_context
@add_common_command_options
def command_group(context: click.Context) -> None:
    """Plan reviews, PR environments and proven cleanup for SQLMesh projects on Spark.

    On a laptop begin with `ci-bot review` in the directory of your project: it changes nothing.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@declare_command_with_common_options("ci-bot run   # in a workflow: `uses:` of the action does it")
def run_command() -> None:
    """Run as the GitHub Action; GitHub's variables say what to do."""
    from ci_bot.bot.handlers import CREDENTIALS, run_action_in_workflow
    from ci_bot.bot.sandbox import keep_secrets_of_action

    def begin_workflow(machine: Machine) -> int:
        if "GITHUB_EVENT_NAME" not in os.environ and "GITHUB_ACTIONS" not in os.environ:
            raise BadInput(
                "`ci-bot run` is for GitHub Actions, and this is no run of a workflow.",
                hint="Here, use `ci-bot review`.",
                reason_code="bad_input",
            )
        # Before any program is started, and before anything of a project is read.
        keep_secrets_of_action(os.environ, CREDENTIALS)
        return run_action_in_workflow(machine, starts_early=True)

    run_command_guarded(begin_workflow)


for _command in (
    init_command,
    review_command,
    explain_command,
    doctor_command,
    same_command,
    witness_command,
    estimate_command,
    apply_command,
    prod_plan_command,
    cleanup_command,
    sweep_command,
    learn_command,
    exposures_command,
    policy_commands,
    demo_command,
    schema_command,
    run_command,
):
    command_group.add_command(_command)


_OBJECTS_BEFORE_COLLECTION = 20_000


def main() -> None:
    """Starts the console script; wrong options exit with 2."""
    # Almost nothing that imports create is garbage, but with Python's own threshold the collector
    # searches all of it several times before the worker has started.
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    sys.excepthook = lambda _kind, error, _trace: print_crash(error)
    threading.excepthook = lambda thread: print_crash(thread.exc_value)
    try:
        command_group.main(prog_name="ci-bot", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        print_usage_error(error)
        sys.exit(EXIT_BAD_INPUT)


if __name__ == "__main__":
    main()
