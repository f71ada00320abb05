"""A pull request is closed: its environment is removed before the job ends, and that is proven. And
the nightly sweep: it finds, removes and reports what a cleanup missed, and old tables.

Every rescue is a warning, because a sweep that is silent hides that cleanups do not run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ci_bot.bot.actions import CleanupCommand, Settings, activities
from ci_bot.bot.github import GitHub, may_write, require_github
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import Publisher, make_publisher_for
from ci_bot.bot.handlers.pull_request_context import read_command
from ci_bot.bot.report import (
    SENTENCES,
    CommentContext,
    MarkerFacts,
    RenderedText,
    notices,
    render_cleanup,
    render_sweep,
)
from ci_bot.bot.worker_client import (
    SweepOptions,
    SweptEnvironment,
    WorkerClient,
    base_branch,
    describe_learned,
    make_activity_failure,
    make_owner,
    request_learn,
)
from ci_bot.bot.worker_client import cleanup as cleaning
from ci_bot.errors import EXIT_DONE, BotError, RequestRefused
from ci_bot.protocol.base import Failure, Sha
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


def clean_up_pull_request(
    activity: activities.Cleanup,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    github: GitHub | None,
) -> int:
    """Removes the environment, unless the pull request is open again; returns the exit code.

    Raises:
        BadInput: somebody has started it by hand, and there is no token to ask who that is.
        Refused: the pull request is open, and who asks may not write.
    """
    merged = activity.merged
    if activity.was_dispatched:
        github = require_github(github)
        pull = github.get_pull(activity.number)
        merged = pull.merged if not pull.open else None
        if pull.open:
            _check_person(activity, github)
    elif github is not None and _is_open_again(activity.number, github):
        return _leave_environment(activity, publisher)
    return remove_environment_of(
        settings,
        publisher,
        client,
        number=activity.number,
        head_sha=activity.head_sha,
        merged=merged,
    )


def remove_environment_of(
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    *,
    number: int,
    head_sha: Sha | None,
    merged: bool | None,
) -> int:
    """Removes the environment of a pull request that may lose it; returns the exit code.

    Args:
        merged: Whether it was merged; None if it is open or nobody knows.
    """
    marker = publisher.try_read_marker()
    publisher.template = replace(publisher.template, merged=merged)
    documents = [
        _request_cleanup(
            client,
            environment=EnvironmentName.for_pull_request(prefix, number),
            environment_prefix=prefix,
            owner=make_owner(
                settings.runner.repository,
                number=number,
                head_sha=head_sha,
                run=str(settings.runner.run_id),
            ),
            reclaim=settings.inputs.reclaim,
            merged=merged,
            expected=is_expected(marker),
        )
        for prefix in _list_prefixes(settings, marker, number)
    ]
    return max(
        publish_cleanup(document, publisher) for document in _select_shown_documents(documents)
    )


def is_expected(marker: Marker | None) -> bool:
    """Whether the comment speaks of an apply, so that there will be something to remove.

    Most pull requests are reviewed and never applied. What the comment says decides only
    how early Spark is started.
    """
    return marker is not None and marker.phase in _AFTER_AN_APPLY


def _list_prefixes(settings: Settings, marker: Marker | None, number: int) -> list[str]:
    """What this pull request's environment may be called: the prefix can be another one by now.

    The comment names the one that was planned last. That proves nothing: the worker removes what
    the ledger records for this repository, whatever it is called.
    """
    earlier = parse_environment_prefix(marker.env, number) if marker is not None else None
    return list(dict.fromkeys(prefix for prefix in (earlier, settings.prefix) if prefix))


def _select_shown_documents(documents: list[CleanupDocument]) -> list[CleanupDocument]:
    """The last is what had to be done; of a name from the comment only what became of something."""
    *earlier, own = documents
    found = [
        item
        for item in earlier
        if item.result in ("removed", "incomplete")
        and (item.failure is None or item.failure != own.failure)
    ]
    return found if found and own.result == "nothing_to_do" else [*found, own]


def report_cleanup_failure(
    error: BotError, activity: activities.Cleanup, publisher: Publisher
) -> int:
    """Reports a cleanup that ended before the worker was asked; returns the exit code."""
    publisher.try_read_marker()
    publisher.template = replace(publisher.template, merged=activity.merged)
    document = cleaning.make_failed_document(
        make_activity_failure(error, "start", publisher.redactor),
        environment=publisher.environment,
    )
    if isinstance(error, RequestRefused):
        # The environment is as it was, so the comment about it still holds.
        publisher.sticky = None
    return publish_cleanup(document, publisher)


def _is_open_again(number: int, github: GitHub) -> bool:
    """Whether a pull request that was closed has been reopened since: this run may be a late one.

    Where GitHub does not answer, the event is proof enough that it was closed.
    """
    try:
        return github.get_pull(number).open
    except BotError:
        return False


def _leave_environment(activity: activities.Cleanup, publisher: Publisher) -> int:
    """A reopened pull request keeps its environment, which may be newer than the closing."""
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


def _check_person(activity: activities.Cleanup, github: GitHub) -> None:
    """The environment of an open pull request is removed only for somebody who may write."""
    by = activity.requested_by or ""
    if activity.comment_id is not None:
        # The command's own job started this run, and that is nobody who has a permission.
        by, _ = read_command(activity.comment_id, activity.number, CleanupCommand, github)
    if not by or not may_write(github.get_permission(by)):
        raise RequestRefused(
            f"Pull request #{activity.number} is open, and @{by or 'nobody'} may not write here.",
            hint="Close the pull request, or ask somebody with write access.",
            reason_code="permission",
        )


def _request_cleanup(client: WorkerClient, **wanted: Any) -> CleanupDocument:
    try:
        return cleaning.request_cleanup(client, **wanted)
    except BotError as error:
        return cleaning.make_failed_document(
            make_activity_failure(error, "cleanup", client.redactor),
            environment=wanted["environment"],
        )


def publish_cleanup(document: CleanupDocument, publisher: Publisher) -> int:
    """Files, summary and outputs, then the tombstone."""
    publisher.template = replace(publisher.template, environment=document.environment)
    done = document.result in ("removed", "nothing_to_do")
    phase: Phase = "closed" if done else "cleanup_failed"
    before = publisher.read_marker()
    review = publisher.read_earlier_review()

    def render_tombstone(context: CommentContext, budget: int | None) -> RenderedText:
        return render_cleanup(document, context, budget, review=review)

    code = cleaning.choose_cleanup_exit_code(document)
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
            is_news(document, before)
            and publisher.try_post(phase, MarkerFacts.from_marker(before), render_tombstone)
        ),
    )
    if not done:
        why = document.failure.message if document.failure else None
        notify_of_leftovers(why, publisher)
    return code


def is_news(document: CleanupDocument, before: Marker | None) -> bool:
    """Whether the comment has to change.

    A pull request that never had an environment or a comment needs no tombstone, and one that has
    its tombstone keeps it: it lists what was removed, and a second cleanup found nothing.
    """
    if document.result != "nothing_to_do":
        return True
    return before is not None and before.phase != "closed"


def notify_of_leftovers(why: str | None, publisher: Publisher) -> None:
    """Notifies people that something is left; `why` is a sentence, if anybody knows it."""
    text = notices.cleanup_failed(
        why or f"{SENTENCES.cleanup_incomplete.capitalize()}.",
        replace(publisher.template, phase="cleanup_failed"),
        comment_url=publisher.comment_url,
    )
    publisher.try_news(text)


class CleanupHandler(Handler[activities.Cleanup]):
    """Removes the environment of a pull request."""

    def run(self, activity: activities.Cleanup, context: HandlerContext) -> int:
        return clean_up_pull_request(
            activity, context.settings, context.publisher, context.client, context.optional_github
        )

    def report_failure(
        self, error: BotError, activity: activities.Cleanup, context: HandlerContext
    ) -> int:
        return report_cleanup_failure(error, activity, context.publisher)


# GitHub shows ten annotations of a step; the summary has them all.
_MOST_WARNINGS = 9
# Its cleanup did run, so the comment must not say that it never did.
_WAS_CLEANED = ("cleaning", "leftover")


def sweep_closed_pull_requests(
    settings: Settings, publisher: Publisher, client: WorkerClient, github: GitHub
) -> int:
    """Removes the environments of closed pull requests; returns the exit code.

    Raises:
        BotError: the list could not be made, or GitHub did not say which are closed; nothing was
            touched.
    """
    inputs = settings.inputs
    rescued = 0

    def on_rescue(row: SweptEnvironment) -> None:
        nonlocal rescued
        rescued += 1
        if rescued <= _MOST_WARNINGS:
            publisher.commands.annotate_warning(
                f"{row.environment} is still there although pull request #{row.number} is closed; "
                f"likely cause: {row.why_still_there}."
            )

    swept = cleaning.request_sweep(
        client,
        SweepOptions(
            owner=settings.runner.repository,
            environment_prefix=settings.prefix,
            reclaim=inputs.reclaim,
            max_deletions=inputs.max_deletions,
            run=str(settings.runner.run_id),
        ),
        github.pull_states,
        on_rescue,
    )
    code = publish_sweep(swept, publisher)
    if inputs.event_logs is not None:
        _learn_costs(inputs.event_logs, publisher, client)
    if inputs.cache == "base":
        _refresh_base_cache(inputs.cache_dir, publisher, client)
    return code


def _learn_costs(event_logs: str, publisher: Publisher, client: WorkerClient) -> None:
    """Estimates are better with it, and nothing else depends on it: so a failure is a warning."""
    runner = publisher.settings.runner
    try:
        answer = request_learn(
            client,
            owner_name=runner.repository,
            event_logs=event_logs,
            run=str(runner.run_id),
        )
    except BotError as error:
        answer = make_activity_failure(error, "learn", publisher.redactor)
    if isinstance(answer, Failure):
        publisher.commands.annotate_warning(
            f"Nothing was learned from the event logs: {answer.message}"
        )
    else:
        publisher.commands.annotate_notice(describe_learned(answer))


def _refresh_base_cache(directory: str, publisher: Publisher, client: WorkerClient) -> None:
    """Reviews are quicker with it, and nothing else depends on it: so a failure is a warning."""
    runner = publisher.settings.runner
    try:
        answer = base_branch.refresh_base_cache(
            client, directory, owner_name=runner.repository, run=str(runner.run_id)
        )
    except BotError as error:
        answer = make_activity_failure(error, "remember", publisher.redactor)
    if isinstance(answer, Failure):
        publisher.commands.annotate_warning(f"The base cache was not written: {answer.message}")
    else:
        publisher.commands.annotate_notice(base_branch.describe_base_cache(answer))


def publish_sweep(swept: cleaning.SweepOutcome, publisher: Publisher) -> int:
    """The table and the outputs first, then each pull request's comment."""
    report = publisher.redactor.redact_document(swept.make_report())
    context = replace(publisher.template, now=publisher.machine.format_timestamp())
    publisher.summary.append_markdown(render_sweep(report, context))
    code = cleaning.sweep_exit_code(swept)
    left = swept.leftover_environments
    if swept.failure is not None:
        publisher.annotate_failure(swept.failure)
    elif left:
        names = ", ".join(row.environment for row in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""  # noqa: PLR2004 - those of the line above
        publisher.commands.annotate_error(
            f"The sweep could not remove {names}{more}; the summary says why."
        )
    _set_sweep_outputs(swept, publisher, code)
    unknown = [row.environment for row in swept.rows if row.standing == "unknown"]
    if unknown:
        publisher.commands.annotate_warning(
            "GitHub does not say whether the pull requests of these environments are open, so they "
            f"stay: {', '.join(unknown[:20])}."
        )
    _tell_of_other_prefixes(swept, publisher)
    for row in swept.reported_environments:
        if row.number is None or row.document is None:
            continue
        if not _show_swept_environment(
            row, row.document, make_publisher_for(publisher, row.number)
        ):
            break  # GitHub does not answer any more, and each further try would wait as long
    return code


def _tell_of_other_prefixes(swept: cleaning.SweepOutcome, publisher: Publisher) -> None:
    """What was made before the prefix was another one is found by no cleanup any more."""
    by_prefix: dict[str, list[str]] = {}
    for row in swept.rows:
        if row.standing == "other_prefix":
            prefix = parse_environment_prefix(row.environment, row.number or 0) or ""
            by_prefix.setdefault(prefix, []).append(row.environment)
    for prefix, names in by_prefix.items():
        publisher.commands.annotate_warning(
            f"These environments of closed pull requests were made under another prefix than "
            f"`{publisher.settings.prefix}`: {', '.join(names[:20])}. A sweep with "
            f"`environment-prefix: {prefix}` removes them."
        )


def _set_sweep_outputs(swept: cleaning.SweepOutcome, publisher: Publisher, code: int) -> None:
    """Not through `Publisher`: a sweep is about no single environment and has no comment."""
    reason = (
        swept.failure.reason_code
        if swept.failure
        else "left"
        if swept.leftover_environments
        else "swept"
    )
    publisher.outputs.set_output("reason-code", reason)
    publisher.outputs.set_json(
        "result",
        {
            "schema_version": 1,
            "activity": "sweep",
            "rescued": [row.environment for row in swept.missed_environments],
            "removed": [row.environment for row in swept.missed_environments if row.is_gone],
            "left": [row.environment for row in swept.leftover_environments],
            "tables_reclaimed": sum(
                len(row.document.tables_reclaimed)
                for row in swept.reported_environments
                if row.document
            ),
            "exit_code": code,
        },
    )


def _show_swept_environment(
    row: SweptEnvironment, document: CleanupDocument, publisher: Publisher
) -> bool:
    """The pull request's comment becomes a tombstone, or says what is left.

    Returns:
        Whether GitHub could be asked.
    """
    phase: Phase = "closed" if row.is_gone else "cleanup_failed"
    publisher.template = replace(
        publisher.template,
        merged=row.merged,
        rescued=row.was_missed and row.is_gone and row.found.phase not in _WAS_CLEANED,
    )
    before = publisher.try_read_marker()
    if publisher.sticky is None:
        return False
    if not is_news(document, before):
        return True
    review = publisher.read_earlier_review()

    def render_tombstone(context: CommentContext, budget: int | None) -> RenderedText:
        return render_cleanup(document, context, budget, review=review)

    posted = publisher.try_post(phase, MarkerFacts.from_marker(before), render_tombstone)
    # The comment may have said so before tonight; then nobody is notified again.
    if posted and not row.is_gone and (before is None or before.phase != phase):
        notify_of_leftovers(row.waits, publisher)
    return True


class SweepHandler(Handler[activities.Sweep]):
    """Removes the environments of closed pull requests. It has no comment for a failure."""

    def run(self, activity: activities.Sweep, context: HandlerContext) -> int:
        return sweep_closed_pull_requests(
            context.settings, context.publisher, context.client, context.github
        )
