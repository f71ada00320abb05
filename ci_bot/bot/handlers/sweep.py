"""The nightly sweep: it finds, removes and reports what a cleanup missed, and old tables.

Every rescue is a warning, because a silent sweep would hide that cleanups do not run.
"""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.actions import activities
from ci_bot.bot.handlers.cleanup import is_news_for_cleanup_comment, notify_people_of_leftovers
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher, make_handler_publisher_for
from ci_bot.bot.report import (
    CommentMarkerFacts,
    CommentViewContext,
    RenderedText,
    render_cleanup_comment,
    render_sweep_markdown,
)
from ci_bot.bot.worker_client import (
    EnvironmentSweptByWorker,
    WorkerClient,
    WorkerSweepOptions,
    base_branch,
    describe_costs_learned_by_worker,
    make_activity_failure_of_worker,
    request_learn_from_worker,
)
from ci_bot.bot.worker_client import cleanup as cleaning
from ci_bot.errors import BotError
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment import Phase
from ci_bot.protocol.environment import parse_environment_prefix

# GitHub shows ten annotations of a step; the summary has them all.
_MOST_WARNINGS = 9
# Its cleanup did run, so the comment must not say that it did not.
_WAS_CLEANED = ("cleaning", "leftover")


class SweepHandler(Handler[activities.Sweep]):
    """Removes the environments of closed pull requests. It has no comment for a failure."""

    def run(self, activity: activities.Sweep, context: HandlerContext) -> int:
        """Removes the environments of closed pull requests; returns the exit code.

        Raises:
            BotError: the list could not be made, or GitHub did not say which pull requests are
                closed; nothing was changed.
        """
        settings, publisher = context.settings, context.publisher
        client, github = context.client, context.github
        inputs = settings.inputs
        rescued = 0

        def on_rescue(row: EnvironmentSweptByWorker) -> None:
            nonlocal rescued
            rescued += 1
            if rescued <= _MOST_WARNINGS:
                publisher.commands.annotate_warning(
                    f"{row.environment} is still there although pull request #{row.number} is "
                    f"closed; likely cause: {row.why_still_there}."
                )

        swept = cleaning.request_sweep_from_worker(
            client,
            WorkerSweepOptions(
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


def _learn_costs(event_logs: str, publisher: HandlerPublisher, client: WorkerClient) -> None:
    """Learns costs from the event logs. Only estimates need it, so a failure is just a warning."""
    runner = publisher.settings.runner
    try:
        answer = request_learn_from_worker(
            client,
            owner_name=runner.repository,
            event_logs=event_logs,
            run=str(runner.run_id),
        )
    except BotError as error:
        answer = make_activity_failure_of_worker(error, "learn", publisher.redactor)
    if isinstance(answer, Failure):
        publisher.commands.annotate_warning(
            f"Nothing was learned from the event logs: {answer.message}"
        )
    else:
        publisher.commands.annotate_notice(describe_costs_learned_by_worker(answer))


def _refresh_base_cache(directory: str, publisher: HandlerPublisher, client: WorkerClient) -> None:
    """Writes the base cache. Only the speed of reviews needs it, so a failure is just a warning."""
    runner = publisher.settings.runner
    try:
        answer = base_branch.refresh_base_cache_by_worker(
            client, directory, owner_name=runner.repository, run=str(runner.run_id)
        )
    except BotError as error:
        answer = make_activity_failure_of_worker(error, "remember", publisher.redactor)
    if isinstance(answer, Failure):
        publisher.commands.annotate_warning(f"The base cache was not written: {answer.message}")
    else:
        publisher.commands.annotate_notice(base_branch.describe_base_cache_of_worker(answer))


def publish_sweep(swept: cleaning.WorkerSweepOutcome, publisher: HandlerPublisher) -> int:
    """Publishes table and outputs, then each pull request's comment; returns the exit code."""
    report = publisher.redactor.redact_document(swept.make_report())
    context = replace(publisher.template, now=publisher.machine.format_timestamp())
    publisher.summary.append_markdown(render_sweep_markdown(report, context))
    code = cleaning.choose_exit_code_of_worker_sweep(swept)
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
    _warn_of_other_prefixes(swept, publisher)
    for row in swept.reported_environments:
        if row.number is None or row.document is None:
            continue
        if not _publish_swept_environment(
            row, row.document, make_handler_publisher_for(publisher, row.number)
        ):
            break  # GitHub does not answer any more, and each further try would wait as long
    return code


def _warn_of_other_prefixes(
    swept: cleaning.WorkerSweepOutcome, publisher: HandlerPublisher
) -> None:
    """Warns about environments with an older prefix, which no cleanup finds any more."""
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


def _set_sweep_outputs(
    swept: cleaning.WorkerSweepOutcome, publisher: HandlerPublisher, code: int
) -> None:
    """Sets the outputs without `HandlerPublisher`: a sweep has no single environment or comment."""
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


def _publish_swept_environment(
    row: EnvironmentSweptByWorker, document: CleanupDocument, publisher: HandlerPublisher
) -> bool:
    """Makes the pull request's comment a tombstone, or lets it say what is left.

    Returns:
        Whether GitHub answered.
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
    if not is_news_for_cleanup_comment(document, before):
        return True
    review = publisher.read_earlier_review()

    def render_tombstone(context: CommentViewContext, budget: int | None) -> RenderedText:
        return render_cleanup_comment(document, context, budget, review=review)

    posted = publisher.try_post(phase, CommentMarkerFacts.from_marker(before), render_tombstone)
    # If the comment said so before tonight, nobody is notified again.
    if posted and not row.is_gone and (before is None or before.phase != phase):
        notify_people_of_leftovers(row.waits, publisher)
    return True
