"""What a run for a pull request begins with: the comment that asked, and the environment's name.

The comment is read again, because what was dispatched may not be what was written, and it is
answered if nothing came of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ci_bot.bot.actions import (
    AcceptCommand,
    ApplyCommand,
    CleanupCommand,
    EstimateCommand,
    RestateCommand,
    Settings,
    activities,
    parse_command,
)
from ci_bot.bot.github import GitHub
from ci_bot.bot.handlers.publisher import Publisher
from ci_bot.bot.handlers.review import commits_of, find_checked_out_commit
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import (
    WorkerClient,
    describe_ignored_prefix,
    make_activity_failure,
    read_environment_prefix,
)
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.environment import EnvironmentName

ReadRequest = TypeVar(
    "ReadRequest", AcceptCommand, ApplyCommand, CleanupCommand, EstimateCommand, RestateCommand
)


def read_command(
    comment_id: int, number: int, kind: type[ReadRequest], github: GitHub
) -> tuple[str, ReadRequest]:
    """Author and command of a comment; whoever started this run, it is the author who counts.

    Raises:
        Refused: it is on another pull request, was edited, or is no command of this kind.
    """
    comment = github.get_comment(comment_id)
    command = parse_command(comment.body)
    if comment.number != number or comment.was_edited or not isinstance(command, kind):
        raise RequestRefused(
            f"Comment {comment_id} is not an unedited {kind.verb} command on pull "
            f"request #{number}.",
            hint="Write the command again, as a new comment.",
            reason_code="bad_comment",
        )
    return comment.author, command


def answer_refused(error: BotError, stage: str, publisher: Publisher) -> None:
    """Says in the log and in a note of its own why nothing was done; the comment stays as it is."""
    said = make_activity_failure(error, stage, publisher.redactor)
    publisher.commands.annotate_error(f"{said.message} {said.hint or ''}".strip())
    publisher.try_note(
        notices.render_refused(said.reason_code, said.message, said.hint, publisher.template)
    )


# What this run's environment is called: by the input, or by the base branch.


def name_environment(
    chosen: activities.Activity,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
) -> Settings:
    """The settings with the prefix that holds; the publisher speaks of that environment then.

    Raises:
        BadInput: the base branch says it, and its commit is not in the checkout.
    """
    if settings.inputs.environment_prefix is not None:
        return settings
    found = read_environment_prefix(client, _find_base_commit(chosen, client))
    warning = describe_ignored_prefix(found)
    if warning is not None:
        publisher.commands.annotate_warning(warning)
    if found.prefix is None:
        return settings
    settings = replace(settings, prefix=found.prefix)
    publisher.settings = settings
    publisher.template = replace(
        publisher.template,
        environment=EnvironmentName.for_pull_request(found.prefix, publisher.number or 0),
    )
    return settings


def _find_base_commit(chosen: activities.Activity, client: WorkerClient) -> str | None:
    """The base branch's commit in the checkout, None if there is none.

    A cleanup and a sweep have the default branch checked out, unless a `pull_request` event has
    started the cleanup: that is on the merge commit still.
    """
    if isinstance(chosen, activities.Review) and not chosen.was_dispatched:
        return commits_of(chosen, None, client).base
    try:
        head, parents = client.git.read_head(), find_checked_out_commit(client)
    except BadInput:
        return None
    if isinstance(
        chosen,
        activities.Review
        | activities.Apply
        | activities.Estimate
        | activities.Accept
        | activities.Restate,
    ):
        return parents[0] if parents else None
    merged_here = len(parents) > 1 and parents[1] == getattr(chosen, "head_sha", None)
    return parents[0] if merged_here and client.git.has_commit(parents[0]) else head
