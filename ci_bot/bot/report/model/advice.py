"""What to do next about a project, most pressing first: the recommendations of a validation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import get_args

from ci_bot.bot.report import words
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.bot.report.model.risk_groups import group_risks
from ci_bot.protocol.plan import TESTS_HINT
from ci_bot.protocol.plan_identity import GivenFlags, PlanOption, Switch
from ci_bot.protocol.review_report import Report

# Nobody reads a longer list, and the risks have a table of their own.
_MAX_RISKS = 5


def list_recommendations(report: Report) -> list[str]:
    """Returns a sentence for each thing to fix, the most useful first.

    First comes what makes every later step fail, then what stops the decision, then what is only
    worth doing.
    """
    checks = report.checks
    failing = [check for check in checks.project if check.status == "fail"]
    advice = [f"{check.message} {check.fix or ''}".strip() for check in failing]
    newly = checks.tests.failed - checks.tests.failed_before
    if newly:
        advice.append(
            f"Make the failing unit tests pass ({newly} of {checks.tests.run}); {TESTS_HINT}"
        )
    if checks.lint.errors:
        advice.append(
            f"Clear the linter's errors ({checks.lint.errors}); `sqlmesh lint` lists them."
        )
    pressing = [
        risk
        for severity in ("blocker", "high")
        for risk in report.risks
        if risk.severity == severity
    ]
    for risk, *others in group_risks(pressing)[:_MAX_RISKS]:
        about = f"{risk.rule} on {risk.model}" if risk.model else risk.rule
        more = f" and {len(others):,} more" if others else ""
        advice.append(f"{about}{more} clears when: {risk.clears_when}")
    advice += [
        f"{check.message.rstrip('.')}. {check.fix or ''}".strip()
        for check in checks.project
        if check.status == "warn"
    ]
    if checks.formatting.files:
        advice.append(
            f"Run `sqlmesh format`: it would change {', '.join(checks.formatting.files[:5])}."
        )
    if checks.lint.warnings:
        advice.append(f"Look at the linter's warnings ({checks.lint.warnings}).")
    if checks.lint.status == "off":
        advice.append("Switch the project's linter on, so that `sqlmesh plan` checks the same.")
    return advice


# Shell commands for people to copy. Every name in them is quoted for the shell first.


_SWITCHES = get_args(Switch)


def describe_reproduction(report: Report, context: CommentViewContext) -> str:
    """Returns the shell lines that repeat this review in a clone on a laptop, of the same tree."""
    lines = []
    base = report.base_sha
    if context.pr_number is not None:
        # The merge commit is what was reviewed, and its first parent is the base branch.
        side = "merge" if report.merge_sha else "head"
        lines.append(f"git fetch origin pull/{context.pr_number}/{side} && git checkout FETCH_HEAD")
        base = "HEAD^1" if report.merge_sha else base
    baseline = " --baseline base-branch" if report.baseline == "base-branch" else ""
    against = f" --base-ref {_quote_for_shell(base)}" if base else ""
    project = report.project
    places = format_project_options(project.paths, project.python_path, project.gateway)
    lines.append(
        f"ci-bot review {places} --environment {_quote_for_shell(report.environment)}"
        f"{baseline}{against}{_format_plan_inputs(report.options)}"
    )
    return "\n".join(lines)


def make_restatement_command(report: Report) -> str:
    """Returns the command for prod: for the restated models, or with a place to fill in."""
    restated = report.identity.flags.restate_models if report.identity else []
    models = [_quote_for_shell(model) for model in restated] or ["MODEL"]
    window = report.identity.window if report.identity else None
    start = words.format_day(window.start) if window and window.start else "START"
    end = words.format_last_day(window.end) if window and window.end else "END"
    selected = " ".join(f"--restate-model {model}" for model in models)
    return (
        f"sqlmesh plan prod {selected} --start {_quote_for_shell(start)} --end "
        f"{_quote_for_shell(end)}"
    )


def format_project_options(
    projects: Sequence[str], python_path: Sequence[str], gateway: str | None
) -> str:
    """Formats the projects as options of `ci-bot`."""
    found = [f"--project {_quote_for_shell(path)}" for path in projects]
    found += [f"--python-path {_quote_for_shell(path)}" for path in python_path]
    found += [f"--gateway {_quote_for_shell(gateway)}"] if gateway else []
    return " ".join(found)


def format_plan_flags(given: GivenFlags, start: str | None, end: str | None) -> str:
    """Formats the options of a plan as a laptop was given them, each after a blank."""
    named_options: list[tuple[str, object]] = []
    for field, value in given:
        # A list is an option that was repeated; the option has the name of one value (singular).
        values = value if isinstance(value, list) else [value]
        named_options += [
            (field.replace("_models", "_model").replace("_", "-"), item) for item in values
        ]
    named_options += [("start", start), ("end", end)]
    return "".join(
        f" {_format_command_option(name, value)}"
        for name, value in named_options
        if value is not None
    )


def _format_plan_inputs(options: Sequence[PlanOption]) -> str:
    """Formats the inputs of a plan; what the project sets, a laptop reads from the project."""
    given = [option for option in options if option.source != "project"]
    switches = {"true": True, "false": False}
    return "".join(
        f" {_format_command_option(o.name, switches[o.value] if o.name in _SWITCHES else o.value)}"
        for o in given
    )


def _format_command_option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"--{'' if value else 'no-'}{name}"
    return f"--{name} {_quote_for_shell(str(value))}"


def _quote_for_shell(text: str) -> str:
    # A name that starts with a dash would be read as an option, even in quotes.
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
