"""Shell commands for people to copy. Every name in them is quoted for the shell first."""

from __future__ import annotations

import shlex
from typing import get_args

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.text import words
from ci_bot.contracts.base import short
from ci_bot.contracts.documents.plan_options import PlanOption, Switch
from ci_bot.contracts.documents.report import Report

_SWITCHES = get_args(Switch)


def reproduce(report: Report, context: CommentContext) -> str:
    """The same review in a clone on a laptop, of the very tree that was reviewed."""
    lines = []
    base = report.base_sha
    if context.pr_number is not None:
        # The merge commit is what was reviewed, and its first parent is the base branch.
        side = "merge" if report.merge_sha else "head"
        lines.append(f"git fetch origin pull/{context.pr_number}/{side} && git checkout FETCH_HEAD")
        base = "HEAD^1" if report.merge_sha else base
    baseline = " --baseline base-branch" if report.baseline == "base-branch" else ""
    against = f" --base-ref {_quoted(base)}" if base else ""
    lines.append(
        f"ci-bot review {_project(report)} --environment {_quoted(report.environment)}"
        f"{baseline}{against}{_options(report)}"
    )
    return "\n".join(lines)


def apply(report: Report) -> str:
    """The apply of exactly this plan on a laptop."""
    environment, plan = _quoted(report.environment), short(report.plan_id)
    return (
        f"ci-bot apply {_project(report)} --environment {environment} --plan-id {plan}"
        f"{_options(report)}"
    )


def restatement(report: Report) -> str:
    """The prod command for the models that were asked for, or with a place to fill in."""
    asked = report.identity.flags.restate_models if report.identity else []
    models = [_quoted(model) for model in asked] or ["MODEL"]
    window = report.identity.window if report.identity else None
    start = words.day(window.start) if window and window.start else "START"
    end = words.last_day(window.end) if window and window.end else "END"
    restated = " ".join(f"--restate-model {model}" for model in models)
    return f"sqlmesh plan prod {restated} --start {_quoted(start)} --end {_quoted(end)}"


def _options(report: Report) -> str:
    """The inputs of the plan; what the project says, it says on a laptop as well."""
    given = [option for option in report.options if option.source != "project"]
    return "".join(f" {_option(option)}" for option in given)


def _option(option: PlanOption) -> str:
    if option.name in _SWITCHES:
        return f"--{'' if option.value == 'true' else 'no-'}{option.name}"
    return f"--{option.name} {_quoted(option.value)}"


def _project(report: Report) -> str:
    project = report.project
    options = [f"--project {_quoted(path)}" for path in project.paths]
    options += [f"--python-path {_quoted(path)}" for path in project.python_path]
    options += [f"--gateway {_quoted(project.gateway)}"] if project.gateway else []
    return " ".join(options)


def _quoted(text: str) -> str:
    # A name that starts with a dash would be read as an option, even in quotes.
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
