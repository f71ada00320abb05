"""Commands on a PR environment: estimate its cost, build it, remove it, remove forgotten ones."""

from __future__ import annotations

from typing import Any, get_args

from ci_bot.bot.actions import ReclaimInput, values
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_errors import run_local_command
from ci_bot.bot.cli.options import add_budget_options, plan_options, with_flags, with_projects
from ci_bot.bot.cli.parameters import ParsedValue, WordChoice, declare_command, declare_option


@declare_command("ci-bot estimate --environment pr_7")
@shared.add_project_options
@shared.declare_environment_option("The environment that would be built.", default="dev")
@plan_options
@add_budget_options
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def estimate_command(**options: Any) -> None:
    """Say what building the environment will cost. Asks Spark, and writes nothing."""
    from ci_bot.bot.laptop import estimate_locally

    run_local_command(estimate_locally, with_projects(with_flags(options)))


@declare_command("ci-bot apply --environment pr_7 --plan-id 9f3c21aa01bc")
@shared.add_project_options
@shared.declare_environment_option("The environment to build; never prod.")
@declare_option(
    "--plan-id",
    type=ParsedValue(values.plan_id),
    help="Apply only if the plan has this id (8 digits or more), as a review shows it.",
)
@plan_options
@declare_option(
    "--table-diff/--no-table-diff",
    default=True,
    show_default=True,
    help="Compare the data with prod's once it is built.",
)
@declare_option(
    "--probe",
    is_flag=True,
    help="Build the newest batch of each model that allows it, say what the whole plan will cost "
    "by that, and stop. An apply of the plan reuses it.",
)
@add_budget_options
@shared.PYTHON_PATH
@shared.CLAIM
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.OUTPUT
@shared.FORMAT
def apply_command(**options: Any) -> None:
    """Build the environment on Spark, and show the evidence."""
    from ci_bot.bot.laptop import apply_locally

    run_local_command(apply_locally, with_projects(with_flags(options)))


@declare_command("ci-bot cleanup --environment pr_7 --merged")
@shared.add_project_options
@shared.declare_environment_option("The environment to remove, such as pr_17.")
@shared.PREFIX
@declare_option(
    "--reclaim",
    type=WordChoice(*get_args(ReclaimInput)),
    default="auto",
    show_default=True,
    help="Whether to drop the physical tables that only this environment has made: after a close "
    "without merge (`auto`), `never`, or `always`.",
)
@declare_option(
    "--merged/--unmerged",
    default=None,
    help="How the pull request ended. Without either nobody knows, and tables stay.",
)
@shared.PYTHON_PATH
@shared.CLAIM
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.OUTPUT
@shared.FORMAT
def cleanup_command(**options: Any) -> None:
    """Remove a PR environment, and prove that nothing is left."""
    from ci_bot.bot.laptop import cleanup_locally

    run_local_command(cleanup_locally, with_projects(options))


@declare_command("GITHUB_TOKEN=$(gh auth token) ci-bot sweep --dry-run")
@shared.add_project_options
@shared.PREFIX
@declare_option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@declare_option(
    "--max-deletions",
    type=ParsedValue(values.make_whole_number_parser(1), "integer"),
    default=20,
    show_default=True,
    help="The most environments that are removed.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def sweep_command(**options: Any) -> None:
    """Remove environments whose pull request is closed. Asks GitHub, so it needs GITHUB_TOKEN."""
    from ci_bot.bot.laptop import sweep_locally

    run_local_command(sweep_locally, with_projects(options))
