"""The bot's own failures in the form in which the worker tells its own."""

from __future__ import annotations

from ci_bot.contracts.base import Failure
from ci_bot.errors import BotError
from ci_bot.secrets import Redactor


def failure_of(error: BotError, stage: str, redactor: Redactor) -> Failure:
    """`error`, which stopped the activity at `stage`, for its document, without secrets."""
    failure = Failure(
        stage=stage,
        reason_code=error.reason_code,
        exit_code=error.exit_code,
        message=error.message,
        hint=error.hint,
        path=error.path,
        line=error.line,
    )
    return redactor.document(failure)
