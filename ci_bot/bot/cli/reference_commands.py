"""Commands that print what is documented: the page of a rule, the schema of a file."""

from __future__ import annotations

import click

from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_line import CommandArgument, WordChoice, declare_command, run_guarded


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
