"""Commands on environments: a pull request's is estimated, built and removed; prod is only read."""

from __future__ import annotations

from typing import Any, get_args

from ci_bot.bot.actions import ReclaimInput, inputs
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_line import (
    OptionWordChoice,
    ParsedOptionValue,
    declare_command_option,
    declare_command_with_common_options,
    run_command_with_options,
)
from ci_bot.bot.cli.options import (
    ALLOW_DESTRUCTIVE,
    FORWARD_ONLY,
    add_budget_options,
    add_plan_flags_to_command,
    add_plan_options_to_command,
    add_projects_to_command,
)


@declare_command_with_common_options("ci-bot estimate --environment pr_7")
@shared.add_project_options
@shared.declare_environment_option("The environment that would be built.", default="dev")
@add_plan_options_to_command
@add_budget_options
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def estimate_command(**options: Any) -> None:
    """Say what building the environment will cost. Asks Spark, and writes nothing."""
    from ci_bot.bot.cli.environments import estimate_on_laptop

    run_command_with_options(
        estimate_on_laptop, add_projects_to_command(add_plan_flags_to_command(options))
    )


@declare_command_with_common_options("ci-bot apply --environment pr_7 --plan-id 9f3c21aa01bc")
@shared.add_project_options
@shared.declare_environment_option("The environment to build; never prod.")
@declare_command_option(
    "--plan-id",
    type=ParsedOptionValue(inputs.parse_plan_id),
    help="Apply only if the plan has this id (8 digits or more), as a review shows it.",
)
@add_plan_options_to_command
@declare_command_option(
    "--table-diff/--no-table-diff",
    default=True,
    show_default=True,
    help="Compare the data with prod's once it is built.",
)
@declare_command_option(
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
    from ci_bot.bot.cli.environments import apply_on_laptop

    run_command_with_options(
        apply_on_laptop, add_projects_to_command(add_plan_flags_to_command(options))
    )


@declare_command_with_common_options("ci-bot cleanup --environment pr_7 --merged")
@shared.add_project_options
@shared.declare_environment_option("The environment to remove, such as pr_17.")
@shared.PREFIX
@declare_command_option(
    "--reclaim",
    type=OptionWordChoice(*get_args(ReclaimInput)),
    default="auto",
    show_default=True,
    help="Whether to drop the physical tables that only this environment has made: after a close "
    "without merge (`auto`), `never`, or `always`.",
)
@declare_command_option(
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
    from ci_bot.bot.cli.environments import clean_up_on_laptop

    run_command_with_options(clean_up_on_laptop, add_projects_to_command(options))


@declare_command_with_common_options("GITHUB_TOKEN=$(gh auth token) ci-bot sweep --dry-run")
@shared.add_project_options
@shared.PREFIX
@declare_command_option(
    "--dry-run", is_flag=True, help="Say what would be removed, and remove nothing."
)
@declare_command_option(
    "--max-deletions",
    type=ParsedOptionValue(inputs.make_whole_number_input_parser(1), "integer"),
    default=20,
    show_default=True,
    help="The most environments that are removed.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def sweep_command(**options: Any) -> None:
    """Remove environments whose pull request is closed. Asks GitHub, so it needs GITHUB_TOKEN."""
    from ci_bot.bot.cli.environments import sweep_on_laptop

    run_command_with_options(sweep_on_laptop, add_projects_to_command(options))


@declare_command_with_common_options(
    "ci-bot prod-plan",
    "ci-bot prod-plan --expect 4be1c0ffee12",
    "ci-bot prod-plan --pull-request 17 --restatements restatements.tsv",
)
@shared.add_project_options
@declare_command_option(
    "--expect",
    type=ParsedOptionValue(inputs.parse_prod_plan_id),
    metavar="PLAN",
    help="Refuse (exit 3) unless it is this plan: 8 digits or more of the id that a review shows "
    "for prod, or `none`.",
)
@declare_command_option(
    "--reviewed",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="FILE",
    help="The same, with the report.json of the review that shows the plan.",
)
@declare_command_option(
    "--pull-request",
    "pull_requests",
    type=ParsedOptionValue(inputs.make_whole_number_input_parser(1), "integer"),
    multiple=True,
    metavar="NUMBER",
    help="Take the restatements that are recorded for this merged pull request, and refuse "
    "(exit 3) what does not hold any more. Repeatable.",
)
@declare_command_option(
    "--restatements",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="FILE",
    help="Write them to this file, one a line: model, start, end and execution time, with tabs "
    "between them.",
)
@FORWARD_ONLY
@ALLOW_DESTRUCTIVE
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def prod_plan_command(**options: Any) -> None:
    """Show what a deployment would make of prod. Changes nothing, and deploys nothing."""
    from ci_bot.bot.cli.prod_plan import plan_prod_on_laptop

    run_command_with_options(plan_prod_on_laptop, add_projects_to_command(options))


@declare_command_with_common_options("ci-bot learn --event-logs /var/log/spark-events")
@shared.add_project_options
@declare_command_option(
    "--event-logs",
    type=ParsedOptionValue(inputs.parse_text_input),
    required=True,
    metavar="DIR",
    help="Where prod's Spark leaves its event logs (`spark.eventLog.dir`): a path or a URL.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def learn_command(**options: Any) -> None:
    """Learn from Spark's event logs what prod's runs have cost, for estimates."""
    from ci_bot.bot.cli.surveys import learn_on_laptop

    run_command_with_options(learn_on_laptop, add_projects_to_command(options))


@declare_command_with_common_options(
    "ci-bot exposures --event-logs /var/log/spark-events --output exposures.yml",
)
@shared.add_project_options
@declare_command_option(
    "--event-logs",
    type=ParsedOptionValue(inputs.parse_text_input),
    required=True,
    metavar="DIR",
    help="Where the Spark of prod's readers leaves its event logs: a path or a URL.",
)
@declare_command_option(
    "--output",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="FILE",
    help="Write it there, over what this command has written before. Otherwise it is printed.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def exposures_command(**options: Any) -> None:
    """List who has read prod's views in 90 days, for `exposures` of the policy."""
    from ci_bot.bot.cli.surveys import write_exposures_on_laptop

    run_command_with_options(write_exposures_on_laptop, add_projects_to_command(options))
