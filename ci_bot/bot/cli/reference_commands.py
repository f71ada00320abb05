"""Commands that read what is written: the page of a rule, the schema of a file, a team's own
policy.
"""

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
    WordChoice,
    add_common_options,
    declare_command,
    declare_option,
    run_guarded,
    run_local_command,
    with_example,
)
from ci_bot.bot.cli.options import with_projects


@declare_command("ci-bot explain", "ci-bot explain R06-breaking-rebuild")
@click.argument("rule", cls=CommandArgument, type=shared.RULE_NAME, required=False)
def explain_command(rule: str | None) -> None:
    """Print the page of a rule, or the list of all rules.

    The page says what the rule sees, why it matters and how to clear it.
    """
    from ci_bot.bot.cli.explain import print_rule_page

    run_guarded(lambda machine: print_rule_page(machine, rule))


@declare_command("ci-bot schema report > report.schema.json")
@click.argument(
    "document", cls=CommandArgument, type=WordChoice("report", "apply", "cleanup", "policy")
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
    from ci_bot.protocol.base import make_json_schema
    from ci_bot.protocol.cleanup_report import CleanupDocument
    from ci_bot.protocol.review_report import Report

    models: dict[str, type[BaseModel]] = {
        "report": Report,
        "apply": ApplyDocument,
        "cleanup": CleanupDocument,
    }
    click.echo(json.dumps(make_json_schema(models[document]), indent=2))


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
