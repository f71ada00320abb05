"""Commands for a person at a terminal.

They are to start with, to review a change on a laptop, to check what is set up, and to read a
rule's page, a file's schema or a team's own policy.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import click

from ci_bot.bot.actions import BaselineInput, inputs
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_line import (
    CommandArgument,
    CommandGroup,
    OptionWordChoice,
    ParsedOptionValue,
    TwoLineCommand,
    add_common_command_options,
    add_example_to_command,
    declare_command_option,
    declare_command_with_common_options,
    run_command_guarded,
    run_command_with_options,
)
from ci_bot.bot.cli.options import (
    add_limit_options,
    add_plan_flags_to_command,
    add_plan_options_to_command,
    add_projects_to_command,
)


@declare_command_with_common_options(
    "ci-bot init --level review --pull-request",
    "ci-bot init --level full --project warehouse",
    "ci-bot init --upgrade --dry-run",
)
@shared.add_project_argument
@declare_command_option(
    "--project",
    "projects",
    type=ParsedOptionValue(inputs.parse_path_input),
    multiple=True,
    metavar="PATH",
    help="Directory of a SQLMesh project; looked for otherwise. Repeatable, for one state.",
)
@declare_command_option(
    "--level",
    type=OptionWordChoice("review", "apply", "full"),
    help="`review` needs no secret. `apply` adds PR environments. `full` adds commands, forks, the "
    "nightly sweep and the deployment. The level of before, else review.",
)
@shared.GATEWAY
@declare_command_option(
    "--action",
    type=ParsedOptionValue(inputs.parse_release_name),
    metavar="OWNER/NAME@COMMIT",
    help="The release that the workflows name; the one that is installed otherwise.",
)
@declare_command_option(
    "--upgrade", is_flag=True, help="Move pins to this release, in edited files, too."
)
@declare_command_option(
    "--pull-request",
    is_flag=True,
    help="Commit the files on a branch of their own, push it, and open a pull request with `gh`.",
)
@declare_command_option(
    "--dry-run", is_flag=True, help="Say what would be written, and write nothing."
)
@declare_command_option(
    "--output",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="DIR",
    help="Write into this directory in place of the repository.",
)
def init_command(**options: Any) -> None:
    """Write the workflows that this repository needs, and say what is left to do.

    The project is read and not loaded. Files that somebody has edited stay as they are.
    """
    from ci_bot.bot.cli.setup.setup_command import SetupOptions, set_up_repository

    given = {**options, "projects": (*options["path"], *options["projects"])}
    del given["path"]
    choose = shared.choose_projects if sys.stdin is not None and sys.stdin.isatty() else None
    run_command_guarded(lambda machine: set_up_repository(machine, SetupOptions(**given), choose))


@declare_command_with_common_options("ci-bot doctor --project warehouse")
@shared.add_project_options
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def doctor_command(**options: Any) -> None:
    """Look at what the other commands need. Changes nothing."""
    from ci_bot.bot.cli.surveys import run_doctor_on_laptop

    run_command_with_options(run_doctor_on_laptop, add_projects_to_command(options))


@declare_command_with_common_options("ci-bot demo --keep /tmp/demo")
@declare_command_option(
    "--keep",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="DIR",
    help="Keep the demo's files in this new directory.",
)
def demo_command(keep: str | None) -> None:
    """Show the life of one PR on embedded Spark, with real data."""
    from ci_bot.bot.cli.demo_story import run_demo

    run_command_guarded(lambda machine: run_demo(machine, Path(keep) if keep else None))


@declare_command_with_common_options(
    "ci-bot review",
    "ci-bot review warehouse --base-ref origin/develop --full",
    "ci-bot review --environment pr_7 --fail-on high --max-intervals 500",
)
@shared.add_project_options
@shared.declare_environment_option(
    "The environment to plan. A plan id holds for one: name `pr_7` to get that of pull request 7.",
    default="dev",
)
@declare_command_option(
    "--baseline",
    type=OptionWordChoice(*get_args(BaselineInput)),
    default="auto",
    show_default=True,
    help="What to compare with: prod's recorded state, the base branch, or (`auto`) the state "
    "where it can be read.",
)
@shared.BASE_REF
@add_plan_options_to_command
@add_limit_options
@shared.PYTHON_PATH
@declare_command_option(
    "--cache-dir",
    type=ParsedOptionValue(inputs.parse_path_input),
    metavar="DIR",
    help="Take unchanged files from this directory's base cache, which a sweep has written.",
)
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.OUTPUT
@shared.FORMAT
@declare_command_option(
    "--full", is_flag=True, help="Print the whole report, in place of 12 lines with the decision."
)
@declare_command_option(
    "--watch",
    is_flag=True,
    help="Stay, and review again whenever a file of the project changes; Ctrl-C ends it.",
)
@declare_command_option(
    "--open", "open_report", is_flag=True, help="Show the report as a page in your browser."
)
def review_command(**options: Any) -> None:
    """Explain what the project would change in prod. Changes nothing.

    PROJECT is the directory of a SQLMesh project; without it the current one.
    """
    from ci_bot.bot.cli.local_review import LaptopReview, review_on_laptop

    given = add_projects_to_command(add_plan_flags_to_command(options))
    run_command_guarded(
        lambda machine: review_on_laptop(machine, LaptopReview.from_options(**given))
    )


@declare_command_with_common_options(
    "ci-bot same old.sql new.sql --schema external_models.yaml",
    "ci-bot same /tmp/of_main.sql models/orders.sql   # git show main:models/orders.sql",
)
@click.argument("base", cls=CommandArgument, type=ParsedOptionValue(inputs.parse_path_input))
@click.argument("head", cls=CommandArgument, type=ParsedOptionValue(inputs.parse_path_input))
@declare_command_option(
    "--schema",
    type=ParsedOptionValue(inputs.parse_path_input),
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
    from ci_bot.bot.cli.compared_queries import compare_queries_on_laptop

    run_command_with_options(compare_queries_on_laptop, options)


@declare_command_with_common_options(
    "ci-bot witness marts.daily_sales", "ci-bot witness marts.daily_sales --write"
)
@click.argument("model", cls=CommandArgument, type=shared.MODEL_NAME)
@shared.PROJECT
@shared.GATEWAY
@shared.BASE_REF
@declare_command_option(
    "--write", is_flag=True, help="Write the file into `tests`; it overwrites none."
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def witness_command(model: str, *, write: bool, **options: Any) -> None:
    """Make a unit test that passes with your change and fails without it.

    MODEL is a model whose query is changed. The rows are generated, and SQLMesh has run the test
    on both versions.
    """
    from ci_bot.bot.cli.compared_queries import make_witness_test_on_laptop
    from ci_bot.bot.cli.local_review import LaptopReview

    review = LaptopReview(**add_projects_to_command(options))
    run_command_guarded(
        lambda machine: make_witness_test_on_laptop(machine, review, model=model, write=write)
    )


@declare_command_with_common_options("ci-bot explain", "ci-bot explain R06-breaking-rebuild")
@click.argument("rule", cls=CommandArgument, type=shared.RULE_NAME, required=False)
def explain_command(rule: str | None) -> None:
    """Print the page of a rule, or the list of all rules.

    The page says what the rule sees, why it matters and how to clear it.
    """
    from ci_bot.bot.cli.explain import print_rule_page

    run_command_guarded(lambda machine: print_rule_page(machine, rule))


@declare_command_with_common_options("ci-bot schema report > report.schema.json")
@click.argument(
    "document", cls=CommandArgument, type=OptionWordChoice("report", "apply", "cleanup", "policy")
)
def schema_command(document: str) -> None:
    """Print the JSON Schema of a file."""
    import json

    from pydantic import BaseModel

    if document == "policy":
        from ci_bot.bot.policy import render_policy_schema

        click.echo(json.dumps(render_policy_schema(), indent=2))
        return

    from ci_bot.protocol.apply_report import ApplyDocument
    from ci_bot.protocol.base import make_json_schema_of_contract
    from ci_bot.protocol.cleanup_report import CleanupDocument
    from ci_bot.protocol.review_report import Report

    models: dict[str, type[BaseModel]] = {
        "report": Report,
        "apply": ApplyDocument,
        "cleanup": CleanupDocument,
    }
    click.echo(json.dumps(make_json_schema_of_contract(models[document]), indent=2))


_POLICY_EXAMPLE = "ci-bot policy check warehouse"


@click.group("policy", cls=CommandGroup, no_args_is_help=False)
@add_common_command_options
def policy_commands() -> None:
    """Check a team's own policy, and explain it."""


add_example_to_command(policy_commands, _POLICY_EXAMPLE, "ci-bot policy explain warehouse.orders")


@policy_commands.command("check", cls=TwoLineCommand)
@add_common_command_options
@click.argument(
    "path", cls=CommandArgument, type=ParsedOptionValue(inputs.parse_path_input), default="."
)
def policy_check_command(path: str) -> None:
    """Read .sqlmesh-review.yaml, and print each entry. PATH is the file or its directory."""
    from ci_bot.bot.cli.policy_check import check_policy_on_laptop

    run_command_guarded(lambda machine: check_policy_on_laptop(machine, path=path))


add_example_to_command(policy_check_command, _POLICY_EXAMPLE)


@policy_commands.command("explain", cls=TwoLineCommand)
@add_common_command_options
@click.argument("model", cls=CommandArgument, type=shared.MODEL_NAME)
@shared.PROJECT
@shared.GATEWAY
@declare_command_option(
    "--base-ref",
    type=ParsedOptionValue(inputs.parse_text_input),
    help="The branch whose policy counts; without it the file in the directory.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def policy_explain_command(**options: Any) -> None:
    """Print which entries are about MODEL, and who may accept its findings."""
    from ci_bot.bot.cli.policy_check import explain_policy_on_laptop

    run_command_with_options(explain_policy_on_laptop, add_projects_to_command(options))


add_example_to_command(
    policy_explain_command, "ci-bot policy explain shop.orders --project warehouse"
)
