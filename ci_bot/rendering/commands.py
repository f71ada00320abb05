"""Shell commands for people to copy. Every name in them is quoted for the shell first."""

from __future__ import annotations

import shlex

from ci_bot.contracts.base import short
from ci_bot.contracts.report import Report
from ci_bot.rendering import words
from ci_bot.rendering.context import CommentContext


def reproduce(report: Report, context: CommentContext) -> str:
    """The same review on a laptop, of the very tree that was reviewed."""
    lines = []
    if context.pr_number is not None:
        lines.append(f"git fetch origin pull/{context.pr_number}/merge && git checkout FETCH_HEAD")
    projects = _projects(report)
    gateway = f" --gateway {_quoted(report.project.gateway)}" if report.project.gateway else ""
    baseline = "" if report.baseline == "state" else " --baseline base-branch"
    environment = f"--environment {_quoted(report.environment)}"
    lines.append(f"ci-bot review {projects}{gateway} {environment}{baseline}")
    return "\n".join(lines)


def apply(report: Report) -> str:
    """The apply of exactly this plan on a laptop."""
    projects = _projects(report)
    environment = _quoted(report.environment)
    return f"ci-bot apply {projects} --environment {environment} --plan-id {short(report.plan_id)}"


def restatement(report: Report) -> str:
    """The prod command for the models that were asked for, or with a place to fill in."""
    asked = report.identity.flags.restate_models if report.identity else []
    models = [_quoted(model) for model in asked] or ["MODEL"]
    window = report.identity.window if report.identity else None
    start = words.day(window.start) if window and window.start else "START"
    end = words.last_day(window.end) if window and window.end else "END"
    restated = " ".join(f"--restate-model {model}" for model in models)
    return f"sqlmesh plan prod {restated} --start {_quoted(start)} --end {_quoted(end)}"


def _projects(report: Report) -> str:
    options = [f"--project {_quoted(path)}" for path in report.project.paths]
    options += [f"--python-path {_quoted(path)}" for path in report.project.python_path]
    return " ".join(options)


def _quoted(text: str) -> str:
    # A name that starts with a dash would be read as an option, even in quotes.
    return shlex.quote(f"./{text}" if text.startswith("-") else text)
