"""Commands that review a change on a laptop. Nothing in the warehouse changes."""

from __future__ import annotations

from typing import Any, get_args

import click

from ci_bot.bot.actions import BaselineInput, inputs
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_line import (
    CommandArgument,
    ParsedValue,
    WordChoice,
    declare_command,
    declare_option,
    run_guarded,
    run_local_command,
)
from ci_bot.bot.cli.options import add_limit_options, plan_options, with_flags, with_projects


@declare_command(
    "ci-bot review",
    "ci-bot review warehouse --base-ref origin/develop --full",
    "ci-bot review --environment pr_7 --fail-on high --max-intervals 500",
)
@shared.add_project_options
@shared.declare_environment_option(
    "The environment to plan. A plan id holds for one: name `pr_7` to get that of pull request 7.",
    default="dev",
)
@declare_option(
    "--baseline",
    type=WordChoice(*get_args(BaselineInput)),
    default="auto",
    show_default=True,
    help="What to compare with: prod's recorded state, the base branch, or (`auto`) the state "
    "where it can be read.",
)
@shared.BASE_REF
@plan_options
@add_limit_options
@shared.PYTHON_PATH
@declare_option(
    "--cache-dir",
    type=ParsedValue(inputs.parse_path),
    metavar="DIR",
    help="Take unchanged files from this directory's base cache, which a sweep has written.",
)
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.OUTPUT
@shared.FORMAT
@declare_option(
    "--full", is_flag=True, help="Print the whole report, in place of 12 lines with the decision."
)
@declare_option(
    "--watch",
    is_flag=True,
    help="Stay, and review again whenever a file of the project changes; Ctrl-C ends it.",
)
@declare_option(
    "--open", "open_report", is_flag=True, help="Show the report as a page in your browser."
)
def review_command(**options: Any) -> None:
    """Explain what the project would change in prod. Changes nothing.

    PROJECT is the directory of a SQLMesh project; without it the current one.
    """
    from ci_bot.bot.laptop import LocalReview, review_locally

    given = with_projects(with_flags(options))
    run_guarded(lambda machine: review_locally(machine, LocalReview.from_options(**given)))


@declare_command(
    "ci-bot same old.sql new.sql --schema external_models.yaml",
    "ci-bot same /tmp/of_main.sql models/orders.sql   # git show main:models/orders.sql",
)
@click.argument("base", cls=CommandArgument, type=ParsedValue(inputs.parse_path))
@click.argument("head", cls=CommandArgument, type=ParsedValue(inputs.parse_path))
@declare_option(
    "--schema",
    type=ParsedValue(inputs.parse_path),
    metavar="FILE",
    help="The columns of the tables that they read, in the form of SQLMesh's external_models.yaml.",
)
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def same_command(**options: Any) -> None:
    """Say whether two queries of Spark give the same: proved and tried.

    BASE and HEAD are files with one query each, alone or below a MODEL block. Exit code 0 means
    the same, 1 that they differ, 3 that it is not known.
    """
    from ci_bot.bot.laptop import compare_locally

    run_local_command(compare_locally, options)


@declare_command("ci-bot witness marts.daily_sales", "ci-bot witness marts.daily_sales --write")
@click.argument("model", cls=CommandArgument, type=shared.MODEL_NAME)
@shared.PROJECT
@shared.GATEWAY
@shared.BASE_REF
@declare_option("--write", is_flag=True, help="Write the file into `tests`; it overwrites none.")
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def witness_command(model: str, *, write: bool, **options: Any) -> None:
    """Make a unit test that passes with your change and fails without it.

    MODEL is a model whose query is changed. The rows are generated, and SQLMesh has run the test
    on both versions.
    """
    from ci_bot.bot.laptop import LocalReview, make_witness

    review = LocalReview(**with_projects(options))
    run_guarded(lambda machine: make_witness(machine, review, model=model, write=write))
