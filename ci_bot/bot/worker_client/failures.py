"""What happens to a request that cannot be made, to an unfit name, and to our own failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from ci_bot.errors import (
    EXIT_REFUSED,
    BadInput,
    BotError,
    RequestRefused,
    TimedOut,
    WorkerFailed,
    WorkIncomplete,
)
from ci_bot.protocol.base import Failure
from ci_bot.protocol.environment import UnfitEnvironmentName
from ci_bot.redaction import Redactor, quote_value

# Errors that end a request which reached the worker. Other errors come before that.
WORKER_ENDS = (TimedOut, WorkerFailed)
_MOST_PROBLEMS = 5
_KINDS = {kind.exit_code: kind for kind in (BadInput, RequestRefused, WorkIncomplete)}


@contextmanager
def check_worker_request() -> Iterator[None]:
    """Encloses the making of every request (`ReviewRequest` and the others) and of its parts.

    Raises:
        BadInput: a value does not fit the contract; one sentence names each that does not.
    """
    try:
        yield
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False)
        problems = [
            f"`{'.'.join(str(part) for part in item['loc']).replace('_', '-')}` cannot be "
            f"{quote_value(str(item['input']))}: {item['msg'][:1].lower()}{item['msg'][1:]}"
            for item in details[:_MOST_PROBLEMS]
        ]
        raise BadInput(
            f"The worker cannot be asked: {'; '.join(problems)}.",
            hint="Correct the value. Nothing was touched.",
        ) from None


def make_activity_failure_of_worker(error: BotError, stage: str, redactor: Redactor) -> Failure:
    """Makes the failure of an activity that `error` stopped at `stage`, without secrets."""
    failure = Failure(
        stage=stage,
        reason_code=error.reason_code,
        exit_code=error.exit_code,
        message=error.message,
        hint=error.hint,
        path=error.path,
        line=error.line,
    )
    return redactor.redact_document(failure)


def make_error_of_worker_failure(failure: Failure) -> BotError:
    """Makes an error of a worker's failure, with its exit code, if no document can show it."""
    return _KINDS.get(failure.exit_code, WorkerFailed)(
        failure.message,
        hint=failure.hint,
        reason_code=failure.reason_code,
        path=failure.path,
        line=failure.line,
    )


def make_failure_of_refused_request(error: UnfitEnvironmentName, stage: str) -> Failure:
    """Makes the failure for a document if a request is understood but its environment is refused.

    Raises:
        BadInput: the text, or its prefix, is no name at all.
    """
    if error.exit_code != EXIT_REFUSED:
        raise make_bad_input_of_request(error) from error
    return error.make_failure(stage)


def make_bad_input_of_request(error: UnfitEnvironmentName) -> BadInput:
    """Makes the same as an error of ours."""
    return BadInput(error.message, hint=error.hint, reason_code=error.reason_code)
