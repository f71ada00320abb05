"""The failures a user can meet, each with its exit code and what to do next."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_REFUSED = 3
EXIT_INCOMPLETE = 4
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

# The meaning of each, as in docs/reference.md.
EXIT_CODES: Mapping[int, str] = {
    EXIT_DONE: "Done. For a review: Go, Review or no changes; `fail-on` moves this line.",
    EXIT_FAILED: "No-Go, or the work failed. Also a review whose report GitHub did not take, if "
    "the comment still shows a lighter decision (reason code `not_reported`; not with "
    "`fail-on: never`).",
    EXIT_BAD_INPUT: "Bad input or configuration. Nothing was touched.",
    EXIT_REFUSED: "Refused: a stale plan, a missing permission, an environment that is not ours, "
    "prod, or an environment that another run holds.",
    EXIT_INCOMPLETE: "Incomplete: something is left over, or an apply is partially done. The "
    "report lists it.",
    EXIT_INTERRUPTED: "Cancelled by SIGINT (Ctrl-C, a cancelled workflow). The report says what "
    "may be partial.",
    EXIT_TERMINATED: "Cancelled by SIGTERM. The report says what may be partial.",
}


class _ForTheUser(BaseException):
    """A failure or an end of the run, in words for the user.

    Args:
        message: One clear sentence that says what is wrong.
        hint: What to do next, as a sentence or a command.
        reason_code: A stable word for outputs and tests.
        path: The file it is about, relative to the repository.
        line: The line in that file.
    """

    exit_code = EXIT_FAILED
    reason_code = "failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        reason_code: str | None = None,
        path: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
        self.line = line
        if reason_code is not None:
            self.reason_code = reason_code


class BotError(_ForTheUser, Exception):
    """A failure. Code that handles failures may continue."""


class RunCancelled(_ForTheUser):
    """The run was asked to stop.

    Like Python's KeyboardInterrupt it is no `Exception`, so code that handles failures does not
    catch it. It passes to the end of a run, and to code that has to report something before that.
    """

    exit_code = EXIT_INTERRUPTED
    reason_code = "cancelled"


class BadInput(BotError):
    """Input or configuration is wrong; nothing was touched."""

    exit_code = EXIT_BAD_INPUT
    reason_code = "bad_input"


class RequestRefused(BotError):
    """The request is understood and refused: stale plan, permission, ownership, prod, a lock."""

    exit_code = EXIT_REFUSED
    reason_code = "refused"


class WorkIncomplete(BotError):
    """Something is left over or partially applied; the document lists it."""

    exit_code = EXIT_INCOMPLETE
    reason_code = "incomplete"


class GitHubUnavailable(BotError):
    """GitHub did not take a request within the retry budget."""

    reason_code = "github_unavailable"


class WorkerFailed(BotError):
    """The worker ended without an answer that can be trusted."""

    reason_code = "worker_failed"


class TimedOut(BotError):
    """The run did not finish in its time."""

    reason_code = "timeout"


class UnforeseenDefect(BotError):
    """Something happened that we did not foresee."""

    reason_code = "defect"


FULL_DISK_HINT = (
    "Free space there, or set TMPDIR to a directory of a disk that has some: it holds what a run "
    "writes, Spark's own temporary files among it."
)


LOG_HINT = "The log above says what happened last."


def format_exception(error: BaseException) -> str:
    """Formats an exception's traceback, with those of its causes."""
    return "".join(traceback.format_exception(error))


def make_unforeseen_error(error: BaseException) -> UnforeseenDefect:
    """Makes the failure for an exception of any kind, with its first line."""
    lines = str(error).strip().splitlines()
    description = f"{type(error).__name__}{f': {lines[0][:200]}' if lines else ''}"
    return UnforeseenDefect(
        f"Something happened that ci-bot does not know: {description}.",
        hint="This is a defect of ci-bot: please report it with its traceback, which "
        "`ci-bot --verbose` shows, and a workflow's log has in a group of its own.",
    )
