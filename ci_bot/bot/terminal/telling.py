"""A failure on a terminal: what is wrong, how to mend it, and no secret in it."""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.bot.cage.variables import redactor_of
from ci_bot.bot.trigger.inputs import env_name
from ci_bot.errors import BotError, Cancelled


def told(error: BotError | Cancelled, environ: Mapping[str, str]) -> str:
    """The sentence and the fix, each a line."""
    where = ""
    if error.path and error.path not in error.message:
        where = f"{error.path}{f', line {error.line}' if error.line else ''}: "
    lines = [f"ci-bot: {where}{error.message}"]
    if error.hint:
        lines.append(f"        {error.hint}")
    return without_secrets("\n".join(lines), environ)


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """`text` without what the environment holds secret; for what is said past all documents."""
    worker_env = environ.get(env_name("worker-env"), "")
    return redactor_of(environ, worker_env=worker_env).redact(text)
