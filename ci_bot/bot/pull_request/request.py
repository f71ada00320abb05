"""The comment that asked for a run.

It is read again, because what was dispatched may not be what was written, and it is answered where
nothing came of it.
"""

from __future__ import annotations

from typing import TypeVar

from ci_bot.bot.comment import reply
from ci_bot.bot.github.port import GitHub
from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.bot.trigger.comment_command import (
    AcceptCommand,
    ApplyCommand,
    CleanupCommand,
    EstimateCommand,
    parse_command,
)
from ci_bot.bot.worker_calls.failures import failure_of
from ci_bot.errors import BotError, Refused

ReadRequest = TypeVar("ReadRequest", AcceptCommand, ApplyCommand, CleanupCommand, EstimateCommand)


def read_command(
    comment_id: int, number: int, kind: type[ReadRequest], github: GitHub
) -> tuple[str, ReadRequest]:
    """Author and command of a comment; whoever started this run, it is the author who counts.

    Raises:
        Refused: it is on another pull request, was edited, or is no command of this kind.
    """
    comment = github.get_comment(comment_id)
    command = parse_command(comment.body)
    if comment.number != number or comment.edited or not isinstance(command, kind):
        raise Refused(
            f"Comment {comment_id} is not an unedited {kind.verb} command on pull "
            f"request #{number}.",
            hint="Write the command again, as a new comment.",
            reason_code="bad_comment",
        )
    return comment.author, command


def answer_refused(error: BotError, stage: str, publisher: Publisher) -> None:
    """Says in the log and in a note of its own why nothing was done; the comment stays as it is."""
    said = failure_of(error, stage, publisher.redactor)
    publisher.commands.error(f"{said.message} {said.hint or ''}".strip())
    publisher.try_note(reply.refused(said.reason_code, said.message, said.hint, publisher.template))
