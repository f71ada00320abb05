"""A pull request is closed: the job removes its environment, and proves that it is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ci_bot.bot.actions import ActionSettings, CleanupCommand, activities
from ci_bot.bot.github import GitHub, may_write_on_github, require_github
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.handlers.pull_request_context import make_owner_of_run, read_command_for_handler
from ci_bot.bot.report import (
    SENTENCES,
    CommentMarkerFacts,
    CommentViewContext,
    RenderedText,
    notices,
    render_cleanup_comment,
)
from ci_bot.bot.worker_client import WorkerClient, make_activity_failure_of_worker
from ci_bot.bot.worker_client import cleanup as cleaning
from ci_bot.errors import EXIT_DONE, BotError, RequestRefused
from ci_bot.protocol.base import Sha
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment import Marker, Phase
from ci_bot.protocol.environment import EnvironmentName, parse_environment_prefix

_AFTER_AN_APPLY: tuple[Phase, ...] = (
    "applying",
    "applied",
    "apply_failed",
    "cancelled",
    "cleanup_failed",
)


class CleanupHandler(Handler[activities.Cleanup]):
    """Removes the environment of a pull request."""

    def run(self, activity: activities.Cleanup, context: HandlerContext) -> int:
        """Removes the environment, unless the pull request is open again; returns the exit code.

        Raises:
            BadInput: a person started it, and there is no token to ask who that is.
            RequestRefused: the pull request is open, and the person who asks has no write access.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.optional_github
        merged = activity.merged
        if activity.was_dispatched:
            github = require_github(github)
            pull = github.get_pull(activity.number)
            merged = pull.merged if not pull.open else None
            if pull.open:
                _check_who_asks(activity, github)
        elif github is not None and _is_pull_request_open_again(activity.number, github):
            return _leave_environment_of_reopened_pull(activity, publisher)
        return handle_removal_of_environment(
            settings,
            publisher,
            client,
            number=activity.number,
            head_sha=activity.head_sha,
            merged=merged,
        )

    def report_failure(
        self, error: BotError, activity: activities.Cleanup, context: HandlerContext
    ) -> int:
        return report_cleanup_failure(error, activity, context.publisher)


def handle_removal_of_environment(
    settings: ActionSettings,
    publisher: HandlerPublisher,
    client: WorkerClient,
    *,
    number: int,
    head_sha: Sha | None,
    merged: bool | None,
) -> int:
    """Removes the environment of a pull request that may lose it; returns the exit code.

    Args:
        merged: Whether it was merged; None if it is open or if that is not known.
    """
    marker = publisher.try_read_marker()
    publisher.template = replace(publisher.template, merged=merged)
    documents = [
        _request_cleanup(
            client,
            environment=EnvironmentName.for_pull_request(prefix, number),
            environment_prefix=prefix,
            owner=make_owner_of_run(settings, number, head_sha),
            reclaim=settings.inputs.reclaim,
            merged=merged,
            expected=is_cleanup_expected_by_comment(marker),
        )
        for prefix in _list_prefixes_of_pull_request(settings, marker, number)
    ]
    return max(publish_cleanup(document, publisher) for document in _select_documents(documents))


def is_cleanup_expected_by_comment(marker: Marker | None) -> bool:
    """Whether the comment mentions an apply, so that the cleanup probably has something to remove.

    Most pull requests are reviewed and never applied. The comment decides only how early Spark is
    started.
    """
    return marker is not None and marker.phase in _AFTER_AN_APPLY


def _list_prefixes_of_pull_request(
    settings: ActionSettings, marker: Marker | None, number: int
) -> list[str]:
    """Lists the prefixes that this environment's name may have: the prefix may have changed.

    The comment names the environment of the last plan. That proves nothing: the worker removes what
    the ledger records for this repository, under any name.
    """
    earlier = parse_environment_prefix(marker.env, number) if marker is not None else None
    return list(dict.fromkeys(prefix for prefix in (earlier, settings.prefix) if prefix))


def _select_documents(documents: list[CleanupDocument]) -> list[CleanupDocument]:
    """Returns the last document, and earlier ones (names from the comment) that removed something.

    If an earlier one did and the last found nothing, it leaves out the last.
    """
    *earlier, own = documents
    found = [
        item
        for item in earlier
        if item.result in ("removed", "incomplete")
        and (item.failure is None or item.failure != own.failure)
    ]
    return found if found and own.result == "nothing_to_do" else [*found, own]


def report_cleanup_failure(
    error: BotError, activity: activities.Cleanup, publisher: HandlerPublisher
) -> int:
    """Reports a cleanup that ended before the worker was asked; returns the exit code."""
    publisher.try_read_marker()
    publisher.template = replace(publisher.template, merged=activity.merged)
    document = cleaning.make_failed_cleanup_document(
        make_activity_failure_of_worker(error, "start", publisher.redactor),
        environment=publisher.environment,
    )
    if isinstance(error, RequestRefused):
        # The environment is as it was, so the comment about it is still correct.
        publisher.sticky = None
    return publish_cleanup(document, publisher)


def _is_pull_request_open_again(number: int, github: GitHub) -> bool:
    """Whether a closed pull request was reopened meanwhile: this run may be a late one.

    If GitHub does not answer, the event is proof enough that it was closed.
    """
    try:
        return github.get_pull(number).open
    except BotError:
        return False


def _leave_environment_of_reopened_pull(
    activity: activities.Cleanup, publisher: HandlerPublisher
) -> int:
    """Leaves the environment, which may be newer than the closing; returns the exit code."""
    publisher.commands.annotate_notice(
        f"Pull request #{activity.number} is open again, so {publisher.environment} stays."
    )
    publisher.set_outputs_and_post(
        {"reason-code": "reopened"},
        {
            "activity": "cleanup",
            "result": "nothing_to_do",
            "reason_code": "reopened",
            "exit_code": EXIT_DONE,
        },
        lambda: False,
    )
    return EXIT_DONE


def _check_who_asks(activity: activities.Cleanup, github: GitHub) -> None:
    """Checks that the person may write, before an open pull request's environment is removed.

    Raises:
        RequestRefused: the person may not write here.
    """
    by = activity.requested_by or ""
    if activity.comment_id is not None:
        # The command's own job started this run, and its account is no person with a permission.
        by, _ = read_command_for_handler(
            activity.comment_id, activity.number, CleanupCommand, github
        )
    if not by or not may_write_on_github(github.get_permission(by)):
        raise RequestRefused(
            f"Pull request #{activity.number} is open, and @{by or 'nobody'} may not write here.",
            hint="Close the pull request, or ask somebody with write access.",
            reason_code="permission",
        )


def _request_cleanup(client: WorkerClient, **wanted: Any) -> CleanupDocument:
    try:
        return cleaning.request_cleanup_from_worker(client, **wanted)
    except BotError as error:
        return cleaning.make_failed_cleanup_document(
            make_activity_failure_of_worker(error, "cleanup", client.redactor),
            environment=wanted["environment"],
        )


def publish_cleanup(document: CleanupDocument, publisher: HandlerPublisher) -> int:
    """Publishes files, summary and outputs, then the tombstone; returns the exit code."""
    publisher.template = replace(publisher.template, environment=document.environment)
    done = document.result in ("removed", "nothing_to_do")
    phase: Phase = "closed" if done else "cleanup_failed"
    before = publisher.read_marker()
    review = publisher.read_earlier_review()

    def render_tombstone(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_cleanup_comment(document, context, budget, review=review)

    code = cleaning.choose_exit_code_of_worker_cleanup(document)
    publisher.keep_report_files("cleanup", document, render_tombstone, phase)
    publisher.write_summary(render_tombstone, phase)
    if document.failure is not None:
        publisher.annotate_failure(document.failure)
    publisher.set_outputs_and_post(
        {"reason-code": document.failure.reason_code if document.failure else document.result},
        {
            "activity": "cleanup",
            "result": document.result,
            "existed": document.existed,
            "views_dropped": len(document.views_dropped),
            "tables_reclaimed": len(document.tables_reclaimed),
            "tables_kept": len(document.tables_kept),
            "left": len(document.leftovers) + len(document.foreign),
            "exit_code": code,
        },
        lambda: (
            is_news_for_cleanup_comment(document, before)
            and publisher.try_post(phase, CommentMarkerFacts.from_marker(before), render_tombstone)
        ),
    )
    if not done:
        why = document.failure.message if document.failure else None
        notify_people_of_leftovers(why, publisher)
    return code


def is_news_for_cleanup_comment(document: CleanupDocument, before: Marker | None) -> bool:
    """Whether the comment has to change.

    A pull request that never had an environment or a comment needs no tombstone. One that has a
    tombstone keeps it: it lists what was removed, and a second cleanup finds nothing.
    """
    if document.result != "nothing_to_do":
        return True
    return before is not None and before.phase != "closed"


def notify_people_of_leftovers(why: str | None, publisher: HandlerPublisher) -> None:
    """Notifies people that something is left; `why` is a sentence, or None if it is not known."""
    text = notices.render_cleanup_failed_notice(
        why or f"{SENTENCES.cleanup_incomplete.capitalize()}.",
        replace(publisher.template, phase="cleanup_failed"),
        comment_url=publisher.comment_url,
    )
    publisher.try_news(text)
