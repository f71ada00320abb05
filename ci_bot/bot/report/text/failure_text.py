"""A failure on a terminal: what is wrong, how to fix it, and no secret in it."""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.bot.actions import make_variable_name_of_input
from ci_bot.bot.sandbox import make_redactor_for_sandbox
from ci_bot.errors import BotError, RunCancelled


def describe_error(error: BotError | RunCancelled, environ: Mapping[str, str]) -> str:
    """The sentence and the fix, each a line."""
    where = ""
    if error.path and error.path not in error.message:
        where = f"{error.path}{f', line {error.line}' if error.line else ''}: "
    lines = [f"ci-bot: {where}{error.message}"]
    if error.hint:
        lines.append(f"        {error.hint}")
    return redact_text("\n".join(lines), environ)


def redact_text(text: str, environ: Mapping[str, str]) -> str:
    """Removes the environment's secrets from `text`, for output outside of documents."""
    worker_env = environ.get(make_variable_name_of_input("worker-env"), "")
    return make_redactor_for_sandbox(environ, worker_env=worker_env).redact(text)
