"""The commands. Parses and wires; nothing else.

They stand in the order in which people need them. Heavy packages are imported inside the commands,
so that an event that needs nothing ends at once.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from ci_bot import __version__
from ci_bot.bot.actions import BaselineInput, ReclaimInput, values
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_errors import print_crash, run_guarded, run_local_command, tell_usage
from ci_bot.bot.cli.options import (
    ALLOW_DESTRUCTIVE,
    FORWARD_ONLY,
    CommandArgument,
    CommandGroup,
    ParsedValue,
    TwoLineCommand,
    WordChoice,
    budget_options,
    common_options,
    declare_option,
    limit_options,
    plan_options,
    with_example,
    with_flags,
    with_projects,
)
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, BadInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from ci_bot.host import Machine

_POLICY_EXAMPLE = "ci-bot policy check warehouse"


@click.group(
    cls=CommandGroup,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__)
@click.pass_context
@common_options
def command_group(context: click.Context) -> None:
    """Plan reviews, PR environments and proven cleanup for SQLMesh projects on Spark.

    On a laptop begin with `ci-bot review` in the directory of your project: it changes nothing.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _declare_command(*examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command, with lines that show how it is used."""

    def make(function: Callable[..., None]) -> click.Command:
        made = command_group.command(cls=TwoLineCommand)(common_options(function))
        return with_example(made, *examples)

    return make


@_declare_command(
    "ci-bot init",
    "ci-bot init --level full --project warehouse",
    "ci-bot init --upgrade --dry-run",
)
@shared.project_argument
@declare_option(
    "--project",
    "projects",
    type=ParsedValue(values.parse_path),
    multiple=True,
    metavar="PATH",
    help="Directory of a SQLMesh project; looked for otherwise. Repeatable, for one state.",
)
@declare_option(
    "--level",
    type=WordChoice("review", "apply", "full"),
    help="`review` needs no secret. `apply` adds PR environments. `full` adds commands, forks, the "
    "nightly sweep and the deployment. The level of before, else review.",
)
@shared.GATEWAY
@declare_option(
    "--action",
    type=ParsedValue(values.action_release),
    metavar="OWNER/NAME@COMMIT",
    help="The release that the workflows name; the one that is installed otherwise.",
)
@declare_option("--upgrade", is_flag=True, help="Move pins to this release, in edited files, too.")
@declare_option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@declare_option(
    "--output",
    type=ParsedValue(values.parse_path),
    metavar="DIR",
    help="Write into this directory in place of the repository.",
)
def init(**options: Any) -> None:
    """Write the workflows that this repository needs, and say what is left to do.

    The project is read and not loaded. Files that somebody has edited stay as they are.
    """
    from ci_bot.bot.setup import SetupOptions, set_up_repository

    given = {**options, "projects": (*options["path"], *options["projects"])}
    del given["path"]
    choose = shared.choose_projects if sys.stdin is not None and sys.stdin.isatty() else None
    run_guarded(lambda machine: set_up_repository(machine, SetupOptions(**given), choose))


@_declare_command(
    "ci-bot review",
    "ci-bot review warehouse --base-ref origin/develop --full",
    "ci-bot review --environment pr_7 --fail-on high --max-intervals 500",
)
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
@shared.environment_option(
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
@limit_options
@shared.PYTHON_PATH
@declare_option(
    "--cache-dir",
    type=ParsedValue(values.parse_path),
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


@_declare_command("ci-bot explain", "ci-bot explain R06-breaking-rebuild")
@click.argument("rule", cls=CommandArgument, type=shared.RULE_NAME, required=False)
def explain_command(rule: str | None) -> None:
    """Print the page of a rule, or the list of all rules.

    The page says what the rule sees, why it matters and how to clear it.
    """
    from ci_bot.bot.cli.explain import print_rule_page as explain_rule

    run_guarded(lambda machine: explain_rule(machine, rule))


@_declare_command("ci-bot doctor --project warehouse")
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def doctor_command(**options: Any) -> None:
    """Look at what the other commands need. Changes nothing."""
    from ci_bot.bot.laptop import doctor_locally

    run_local_command(doctor_locally, with_projects(options))


@_declare_command(
    "ci-bot same old.sql new.sql --schema external_models.yaml",
    "ci-bot same /tmp/of_main.sql models/orders.sql   # git show main:models/orders.sql",
)
@click.argument("base", cls=CommandArgument, type=ParsedValue(values.parse_path))
@click.argument("head", cls=CommandArgument, type=ParsedValue(values.parse_path))
@declare_option(
    "--schema",
    type=ParsedValue(values.parse_path),
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


@_declare_command("ci-bot witness marts.daily_sales", "ci-bot witness marts.daily_sales --write")
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

    asked = LocalReview(**with_projects(options))
    run_guarded(lambda machine: make_witness(machine, asked, model=model, write=write))


@_declare_command("ci-bot estimate --environment pr_7")
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
@shared.environment_option("The environment that would be built.", default="dev")
@plan_options
@budget_options
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def estimate_command(**options: Any) -> None:
    """Say what building the environment will cost. Asks Spark, and writes nothing."""
    from ci_bot.bot.laptop import estimate_locally

    run_local_command(estimate_locally, with_projects(with_flags(options)))


@_declare_command("ci-bot apply --environment pr_7 --plan-id 9f3c21aa01bc")
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
@shared.environment_option("The environment to build; never prod.")
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
@budget_options
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


@_declare_command(
    "ci-bot prod-plan",
    "ci-bot prod-plan --expect 4be1c0ffee12",
    "ci-bot prod-plan --pull-request 17 --restatements restatements.tsv",
)
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
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
    type=ParsedValue(values.whole_number(1), "integer"),
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
def prod_plan(**options: Any) -> None:
    """Show what a deployment would make of prod. Changes nothing, and deploys nothing."""
    from ci_bot.bot.laptop import prod_plan_locally

    run_local_command(prod_plan_locally, with_projects(options))


@_declare_command("ci-bot cleanup --environment pr_7 --merged")
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
@shared.environment_option("The environment to remove, such as pr_17.")
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


@_declare_command("GITHUB_TOKEN=$(gh auth token) ci-bot sweep --dry-run")
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
@shared.PREFIX
@declare_option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@declare_option(
    "--max-deletions",
    type=ParsedValue(values.whole_number(1), "integer"),
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


@_declare_command("ci-bot learn --event-logs /var/log/spark-events")
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
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


@_declare_command(
    "ci-bot exposures --event-logs /var/log/spark-events --output exposures.yml",
)
@shared.project_argument
@shared.PROJECT
@shared.GATEWAY
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


@command_group.group("policy", cls=CommandGroup, no_args_is_help=False)
@common_options
def policy_commands() -> None:
    """Check a team's own policy, and explain it."""


with_example(policy_commands, _POLICY_EXAMPLE, "ci-bot policy explain warehouse.orders")


@policy_commands.command("check", cls=TwoLineCommand)
@common_options
@click.argument("path", cls=CommandArgument, type=ParsedValue(values.parse_path), default=".")
def policy_check_command(path: str) -> None:
    """Read .sqlmesh-review.yaml, and print each entry. PATH is the file or its directory."""
    from ci_bot.bot.laptop import check_policy

    run_guarded(lambda machine: check_policy(machine, path=path))


with_example(policy_check_command, _POLICY_EXAMPLE)


@policy_commands.command("explain", cls=TwoLineCommand)
@common_options
@click.argument("model", cls=CommandArgument, type=shared.MODEL_NAME)
@shared.PROJECT
@shared.GATEWAY
@declare_option(
    "--base-ref",
    type=ParsedValue(values.parse_text),
    help="The branch whose policy counts; without it the file that lies there.",
)
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
def explain_model(**options: Any) -> None:
    """Print which entries are about MODEL, and who may accept its findings."""
    from ci_bot.bot.laptop import explain_policy

    run_local_command(explain_policy, with_projects(options))


with_example(explain_model, "ci-bot policy explain shop.orders --project warehouse")


@_declare_command("ci-bot demo --keep /tmp/demo")
@declare_option(
    "--keep",
    type=ParsedValue(values.parse_path),
    metavar="DIR",
    help="Keep the demo's files in this new directory.",
)
def demo_command(keep: str | None) -> None:
    """Show the life of one PR on embedded Spark, with real data."""
    from ci_bot.bot.laptop import run_demo

    run_guarded(lambda machine: run_demo(machine, Path(keep) if keep else None))


@_declare_command("ci-bot schema report > report.schema.json")
@click.argument(
    "document", cls=CommandArgument, type=WordChoice("report", "apply", "cleanup", "policy")
)
def schema_command(document: str) -> None:
    """Print the JSON Schema of a file."""
    import json

    from pydantic import BaseModel

    if document == "policy":
        from ci_bot.bot.policy import policy_schema

        click.echo(json.dumps(policy_schema(), indent=2))
        return

    from ci_bot.protocol.apply_report import ApplyDocument
    from ci_bot.protocol.base import json_schema
    from ci_bot.protocol.cleanup_report import CleanupDocument
    from ci_bot.protocol.review_report import Report

    models: dict[str, type[BaseModel]] = {
        "report": Report,
        "apply": ApplyDocument,
        "cleanup": CleanupDocument,
    }
    click.echo(json.dumps(json_schema(models[document]), indent=2))


@_declare_command("ci-bot run   # in a workflow: `uses:` of the action does it")
def run_command() -> None:
    """Run as the GitHub Action; GitHub's variables say what to do."""
    from ci_bot.bot.actions import keep_secrets
    from ci_bot.bot.handlers import CREDENTIALS, run_workflow

    def begin(machine: Machine) -> int:
        if "GITHUB_EVENT_NAME" not in os.environ and "GITHUB_ACTIONS" not in os.environ:
            raise BadInput(
                "`ci-bot run` is for GitHub Actions, and this is no run of a workflow.",
                hint="Here, use `ci-bot review`.",
                reason_code="bad_input",
            )
        # Before anything is started, and before anything of a project is read.
        keep_secrets(os.environ, CREDENTIALS)
        return run_workflow(machine)

    run_guarded(begin)


def main() -> None:
    """Entry point of the console script. Wrong options are exit 2."""
    sys.excepthook = lambda _kind, error, _trace: print_crash(error)
    threading.excepthook = lambda thread: print_crash(thread.exc_value)
    try:
        command_group.main(prog_name="ci-bot", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except click.ClickException as error:
        tell_usage(error)
        sys.exit(EXIT_BAD_INPUT)


if __name__ == "__main__":
    main()
