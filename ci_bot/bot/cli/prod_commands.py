"""Commands on prod: what a deployment would make of it, what its runs cost, and who reads it."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.actions import values
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_errors import run_local_command
from ci_bot.bot.cli.options import ALLOW_DESTRUCTIVE, FORWARD_ONLY, with_projects
from ci_bot.bot.cli.parameters import ParsedValue, declare_command, declare_option


@declare_command(
    "ci-bot prod-plan",
    "ci-bot prod-plan --expect 4be1c0ffee12",
    "ci-bot prod-plan --pull-request 17 --restatements restatements.tsv",
)
@shared.add_project_options
@declare_option(
    "--expect",
    type=ParsedValue(values.prod_plan_id),
    metavar="PLAN",
    help="Refuse (exit 3) unless it is this plan: 8 digits or more of the id that a review shows "
    "for prod, or `none`.",
)
@declare_option(
    "--reviewed",
    type=ParsedValue(values.parse_path),
    metavar="FILE",
    help="The same, with the report.json of the review that shows the plan.",
)
@declare_option(
    "--pull-request",
    "pull_requests",
    type=ParsedValue(values.make_whole_number_parser(1), "integer"),
    multiple=True,
    metavar="NUMBER",
    help="Take the restatements that are recorded for this merged pull request, and refuse "
    "(exit 3) what does not hold any more. Repeatable.",
)
@declare_option(
    "--restatements",
    type=ParsedValue(values.parse_path),
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
    from ci_bot.bot.laptop import prod_plan_locally

    run_local_command(prod_plan_locally, with_projects(options))


@declare_command("ci-bot learn --event-logs /var/log/spark-events")
@shared.add_project_options
@declare_option(
    "--event-logs",
    type=ParsedValue(values.parse_text),
    required=True,
    metavar="DIR",
    help="Where prod's Spark leaves its event logs (`spark.eventLog.dir`): a path or a URL.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def learn_command(**options: Any) -> None:
    """Learn from Spark's event logs what prod's runs have cost, for estimates."""
    from ci_bot.bot.laptop import learn_locally

    run_local_command(learn_locally, with_projects(options))


@declare_command(
    "ci-bot exposures --event-logs /var/log/spark-events --output exposures.yml",
)
@shared.add_project_options
@declare_option(
    "--event-logs",
    type=ParsedValue(values.parse_text),
    required=True,
    metavar="DIR",
    help="Where the Spark of prod's readers leaves its event logs: a path or a URL.",
)
@declare_option(
    "--output",
    type=ParsedValue(values.parse_path),
    metavar="FILE",
    help="Write it there, over what this command has written before. Otherwise it is printed.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def exposures_command(**options: Any) -> None:
    """List who has read prod's views in 90 days, for `exposures` of the policy."""
    from ci_bot.bot.laptop import write_exposures

    run_local_command(write_exposures, with_projects(options))
