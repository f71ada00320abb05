"""A sweep: find environments whose pull request is closed, and remove them.

What decides is on GitHub, what is removed is in ledger, state and warehouse. So the worker is asked
what there is, GitHub which of those pull requests are open, and the worker to clean up the rest.
Only an environment that the ledger records for this repository, and whose pull request GitHub says
is closed, is ever touched. If GitHub does not answer, nothing is. Physical tables of environments
that were removed a day ago or more go by the same way: not if their pull request was reopened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ci_bot.bot.worker_calls.client import WorkerClient, owner
from ci_bot.bot.worker_calls.sweeping.rows import (
    AskStates,
    SweepOptions,
    SweptEnvironment,
    sort_out,
)
from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.cleanup import CleanupDocument
from ci_bot.contracts.documents.sweep import SweepDocument, SweepReport, SweepTarget
from ci_bot.contracts.environment import EnvironmentName
from ci_bot.contracts.messages import ListRequest, SweepRequest
from ci_bot.errors import EXIT_DONE, EXIT_INCOMPLETE, BotError, TimedOut, WorkerFailed


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What a sweep found and did.

    Args:
        others: How many environments belong to other repositories on the same state.
        failure: Why the cleanups could not be done, or not all; what was done is in `rows`.
    """

    rows: tuple[SweptEnvironment, ...]
    others: int
    dry_run: bool
    failure: Failure | None = None

    @property
    def rescues(self) -> tuple[SweptEnvironment, ...]:
        return tuple(row for row in self.rows if row.rescue)

    @property
    def told(self) -> tuple[SweptEnvironment, ...]:
        """Everything that was worked on, or should have been."""
        return tuple(row for row in self.rows if row.goes)

    @property
    def left(self) -> tuple[SweptEnvironment, ...]:
        return () if self.dry_run else tuple(row for row in self.rows if row.left)

    def report(self) -> SweepReport:
        """The rescues first, then tables that go, then what may stay."""
        rows = sorted(self.rows, key=lambda row: (not row.rescue, not row.goes, row.number or 0))
        return SweepReport(
            dry_run=self.dry_run,
            rows=[row.report() for row in rows],
            others=self.others,
            failure=self.failure,
        )


def sweep(
    client: WorkerClient,
    options: SweepOptions,
    ask_states: AskStates,
    on_rescue: Callable[[SweptEnvironment], None] = lambda _row: None,
) -> Swept:
    """Finds, asks, and removes.

    Args:
        ask_states: Says for numbers of pull requests whether they are open; asked once.
        on_rescue: Hears of every environment that has to go, before anything is removed, so that
            it is told also where the run is cancelled.

    Raises:
        BotError: the list could not be made, or GitHub did not answer; nothing was touched.
    """
    question = client.request(
        ListRequest,
        owner=owner(options.owner, run=options.run),
        environment_prefix=options.environment_prefix,
    )
    listed = client.environments(question)
    if isinstance(listed, Failure):
        raise _error(listed)
    ours = [item for item in listed.environments if item.owner in (None, options.owner)]
    others = len(listed.environments) - len(ours)
    rows = sort_out(ours, options, ask_states)
    for row in rows:
        if row.rescue:
            on_rescue(row)
    if options.dry_run:
        return Swept(rows=tuple(rows), others=others, dry_run=True)
    chosen, rows = _within_limit(rows, options.max_deletions)
    if not chosen:
        return Swept(rows=tuple(rows), others=others, dry_run=False)
    documents, failure = _remove(client, options, chosen)
    return Swept(
        rows=tuple(_with_documents(rows, chosen, documents, failure)),
        others=others,
        dry_run=False,
        failure=failure,
    )


def _within_limit(
    rows: list[SweptEnvironment], limit: int
) -> tuple[list[SweptEnvironment], list[SweptEnvironment]]:
    """The rows to remove now, and all rows with the others waiting.

    Environments that are still there come before tables that nobody sees, the oldest records first.
    """
    wanted = sorted(
        (row for row in rows if row.goes),
        key=lambda row: (not row.rescue, row.found.updated_at or "", row.environment),
    )
    chosen = wanted[:limit]
    late = {row.environment for row in wanted[limit:]}
    why = f"one sweep removes at most {limit} (`max-deletions`); the next one goes on"
    return chosen, [replace(row, waits=why) if row.environment in late else row for row in rows]


def _remove(
    client: WorkerClient, options: SweepOptions, chosen: list[SweptEnvironment]
) -> tuple[list[CleanupDocument], Failure | None]:
    """The documents of the cleanups, and the failure that ended them before they were through."""
    request = client.request(
        SweepRequest,
        owner=owner(options.owner, run=options.run),
        environment_prefix=options.environment_prefix,
        reclaim=options.reclaim,
        targets=[
            SweepTarget(
                environment=EnvironmentName(row.environment),
                pr_number=row.number or 0,
                merged=row.merged,
            )
            for row in chosen
        ],
    )
    try:
        answer: SweepDocument | Failure = client.sweep(request)
    except (WorkerFailed, TimedOut) as error:
        # Out of time, it has told how far it got.
        told = getattr(error, "answer", None)
        cleanups = told.cleanups if isinstance(told, SweepDocument) else []
        return cleanups, client.redactor.document(_failure(error))
    if isinstance(answer, Failure):
        return [], answer
    return answer.cleanups, None


def _with_documents(
    rows: list[SweptEnvironment],
    chosen: list[SweptEnvironment],
    documents: list[CleanupDocument],
    failure: Failure | None,
) -> list[SweptEnvironment]:
    by_name = {document.environment: document for document in documents}
    asked = {row.environment for row in chosen}
    not_reached = failure.message if failure else "The worker ended before it got here."

    def told(row: SweptEnvironment) -> SweptEnvironment:
        document = by_name.get(row.environment)
        if document is None:
            return replace(row, waits=not_reached) if row.environment in asked else row
        why = document.failure.message if document.failure else "the cleanup is incomplete"
        done = replace(row, document=document)
        return done if done.gone else replace(done, waits=why)

    return [told(row) for row in rows]


def exit_code(swept: Swept) -> int:
    """0 where nothing is left, 4 where something is; a failure of the worker has its own."""
    if swept.failure is not None:
        return swept.failure.exit_code
    return EXIT_INCOMPLETE if swept.left else EXIT_DONE


def _failure(error: BotError) -> Failure:
    return Failure(
        stage="sweep",
        reason_code=error.reason_code,
        exit_code=error.exit_code,
        message=error.message,
        hint=error.hint,
    )


def _error(failure: Failure) -> BotError:
    error = BotError(
        failure.message,
        hint=failure.hint,
        reason_code=failure.reason_code,
        path=failure.path,
        line=failure.line,
    )
    error.exit_code = failure.exit_code
    return error
