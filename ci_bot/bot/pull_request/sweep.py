"""The nightly sweep: what a cleanup missed is found, removed and told, and so are old tables.

Every rescue is a warning, because a sweep that is silent hides that cleanups do not run.
"""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.comment import notice
from ci_bot.bot.comment.context import CommentContext, Rendered
from ci_bot.bot.comment.outcome import render_cleanup
from ci_bot.bot.comment.sweep_summary import render_sweep
from ci_bot.bot.github.port import GitHub
from ci_bot.bot.pull_request.publisher import Desk, Facts, desk_for
from ci_bot.bot.trigger.inputs import Settings
from ci_bot.bot.worker_calls import sweep as sweeping
from ci_bot.bot.worker_calls.client import Bench
from ci_bot.bot.worker_calls.sweep_rows import Row, SweepOptions
from ci_bot.contracts.documents.cleanup import CleanupDocument
from ci_bot.contracts.documents.comment import Marker, Phase

# GitHub shows ten annotations of a step; the summary has them all.
_MOST_WARNINGS = 9
# Its cleanup did run, so the comment must not say that it never did.
_WAS_CLEANED = ("cleaning", "leftover")


def sweep(settings: Settings, desk: Desk, bench: Bench, github: GitHub) -> int:
    """Removes the environments of closed pull requests; returns the exit code.

    Raises:
        BotError: the list could not be made, or GitHub did not say which are closed; nothing was
            touched.
    """
    inputs = settings.inputs
    rescued = 0

    def on_rescue(row: Row) -> None:
        nonlocal rescued
        rescued += 1
        if rescued <= _MOST_WARNINGS:
            desk.commands.warning(
                f"{row.environment} is still there although pull request #{row.number} is closed; "
                f"likely cause: {row.cause}."
            )

    swept = sweeping.sweep(
        bench,
        SweepOptions(
            owner=settings.runner.repository,
            environment_prefix=inputs.environment_prefix,
            reclaim=inputs.reclaim,
            max_deletions=inputs.max_deletions,
            run=str(settings.runner.run_id),
        ),
        github.pull_states,
        on_rescue,
    )
    return publish(swept, desk)


def publish(swept: sweeping.Swept, desk: Desk) -> int:
    """The table and the outputs first, then each pull request's comment."""
    report = desk.redactor.document(swept.report())
    context = replace(desk.template, now=desk.around.timestamp())
    desk.summary.write(render_sweep(report, context))
    code = sweeping.exit_code(swept)
    left = swept.left
    if swept.failure is not None:
        desk.fail(swept.failure)
    elif left:
        names = ", ".join(row.environment for row in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""  # noqa: PLR2004 - as above
        desk.commands.error(f"The sweep could not remove {names}{more}; the summary says why.")
    _outputs(swept, desk, code)
    unknown = [row.environment for row in swept.rows if row.standing == "unknown"]
    if unknown:
        desk.commands.warning(
            "GitHub does not say whether the pull requests of these environments are open, so they "
            f"stay: {', '.join(unknown[:20])}."
        )
    for row in swept.told:
        if row.number is None or row.document is None:
            continue
        if not _show(row, row.document, desk_for(desk, row.number)):
            break  # GitHub does not answer any more, and each further try would wait as long
    return code


def _outputs(swept: sweeping.Swept, desk: Desk, code: int) -> None:
    """Not through `conclude`: a sweep is about no single environment and has no comment."""
    reason = swept.failure.reason_code if swept.failure else "left" if swept.left else "swept"
    desk.outputs.set("reason-code", reason)
    desk.outputs.set_json(
        "result",
        {
            "schema_version": 1,
            "activity": "sweep",
            "rescued": [row.environment for row in swept.rescues],
            "removed": [row.environment for row in swept.rescues if row.gone],
            "left": [row.environment for row in swept.left],
            "tables_reclaimed": sum(
                len(row.document.tables_reclaimed) for row in swept.told if row.document
            ),
            "exit_code": code,
        },
    )


def _show(row: Row, document: CleanupDocument, desk: Desk) -> bool:
    """The pull request's comment becomes a tombstone, or says what is left.

    Returns:
        Whether GitHub could be asked.
    """
    phase: Phase = "closed" if row.gone else "cleanup_failed"
    desk.template = replace(
        desk.template,
        merged=row.merged,
        rescued=row.rescue and row.gone and row.found.phase not in _WAS_CLEANED,
    )
    before = desk.look()
    if desk.sticky is None:
        return False
    if not _is_news(document, before):
        return True
    review = desk.earlier_review()

    def render(context: CommentContext, budget: int | None) -> Rendered:
        return render_cleanup(document, context, budget, review=review)

    posted = desk.try_post(phase, Facts.of(before), render)
    # Somebody was told already, if the comment said so before tonight.
    if posted and not row.gone and (before is None or before.phase != phase):
        _tell(row, desk)
    return True


def _is_news(document: CleanupDocument, before: Marker | None) -> bool:
    return document.result != "nothing_to_do" or (before is not None and before.phase != "closed")


def _tell(row: Row, desk: Desk) -> None:
    text = notice.cleanup_failed(
        row.waits or "The cleanup is incomplete.",
        replace(desk.template, phase="cleanup_failed"),
        comment_url=desk.comment_url,
    )
    desk.try_note(text)
