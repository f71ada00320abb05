"""A cleanup, of one environment or as a sweep: the worker removes it, and proves that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import ci_bot
from ci_bot.bot import report as reports
from ci_bot.bot.github import PullState
from ci_bot.bot.sandbox import SandboxedWorkerCancelled
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.bot.worker_client.failures import (
    make_activity_failure_of_worker,
    make_failure_of_refused_request,
)
from ci_bot.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_REFUSED, BotError, TimedOut, WorkerFailed
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.cleanup_report import (
    CleanupDocument,
    FoundEnvironment,
    Standing,
    SweepDocument,
    SweepReport,
    SweepRow,
    SweepTarget,
)
from ci_bot.protocol.environment import (
    EnvironmentName,
    UnfitEnvironmentName,
    parse_environment_prefix,
    read_pull_number,
)
from ci_bot.protocol.messages import CleanupRequest, ListRequest, Owner, ReclaimChoice, SweepRequest


def request_cleanup_from_worker(client: WorkerClient, **wanted: Any) -> CleanupDocument:
    """Cleans up; the document says if it failed, also if the run was cancelled meanwhile.

    Args:
        wanted: The fields of `CleanupRequest` that the client does not fill in itself.

    Raises:
        BadInput: `environment_prefix` is not one, or the request does not fit the contract.
        RunCancelled: before the worker was started.
    """
    try:
        request = client.make_request(CleanupRequest, **wanted)
    except UnfitEnvironmentName as error:
        return make_failed_cleanup_document(
            make_failure_of_refused_request(error, "cleanup"), environment=wanted["environment"]
        )
    try:
        answer = client.request_cleanup(request)
    except SandboxedWorkerCancelled as error:
        return make_document_of_cancelled_worker(error, environment=request.environment)
    if isinstance(answer, CleanupDocument):
        return answer
    return make_failed_cleanup_document(answer, environment=request.environment)


def make_document_of_cancelled_worker(
    error: SandboxedWorkerCancelled, *, environment: EnvironmentName
) -> CleanupDocument:
    """Makes the document of a cancelled cleanup from what the worker could still report."""
    document = error.answer
    if isinstance(document, CleanupDocument) and document.failure is None:
        return document  # it had ended when the signal came
    failure = Failure(
        stage="cleanup",
        reason_code=error.reason_code,
        exit_code=error.exit_code,
        message=error.message,
        hint="Run the cleanup again: it goes on from where this one was stopped.",
    )
    if isinstance(document, CleanupDocument):
        return document.model_copy(update={"result": "incomplete", "failure": failure})
    return make_failed_cleanup_document(failure, environment=environment)


def make_failed_cleanup_document(failure: Failure, *, environment: str) -> CleanupDocument:
    """Makes the document of a failed cleanup: what exists is unknown, so it counts as left.

    Args:
        environment: As it was given: a refused name is in the document, too.
    """
    return CleanupDocument(
        environment=environment,
        existed=True,
        result="refused" if failure.exit_code == EXIT_REFUSED else "incomplete",
        state_record_removed=False,
        seconds=0.0,
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        failure=failure,
    )


def choose_exit_code_of_worker_cleanup(document: CleanupDocument) -> int:
    """Returns the exit code of a cleanup."""
    if document.result in ("removed", "nothing_to_do"):
        return EXIT_DONE
    return document.failure.exit_code if document.failure else EXIT_INCOMPLETE


# The state of each environment that a sweep has found, and why it is still there. Pure.


AskStates = Callable[[Collection[int]], Mapping[int, PullState]]

_MISSED = (
    "its cleanup never ran: a merge conflict at closing time, a cancelled or failed run, a `paths` "
    "filter, or no close workflow on the default branch"
)

_CAUSES = {
    "applying": "an apply was running, or had died, when the pull request closed",
    "applied": _MISSED,
    "probed": _MISSED,
    "failed": _MISSED,
    "cleaning": "its cleanup was cut off in the middle: a cancelled run, or Spark or the state "
    "went away",
    "leftover": "its cleanup could not remove everything",
}


@dataclass(frozen=True, kw_only=True)
class WorkerSweepOptions:
    """The options of a sweep.

    Attributes:
        owner: The repository, as the ledger records it.
        max_deletions: The most environments that one sweep removes or whose tables it reclaims.
        dry_run: Report what would be removed, and remove nothing.
        run: The run that asks, for the ledger.
    """

    owner: str
    environment_prefix: str = "pr"
    reclaim: ReclaimChoice = "auto"
    max_deletions: int = 20
    dry_run: bool = False
    run: str | None = None


class _TableFieldsOfWorkerSweep(TypedDict, total=False):
    """What a row of a sweep says about tables, with the field names of `SweepRow`."""

    views_dropped: int
    tables_reclaimed: int
    bytes_reclaimed: int | None
    tables_kept: int
    tables_until: str | None


@dataclass(frozen=True, kw_only=True)
class EnvironmentSweptByWorker:
    """One environment, why it is treated as it is, and what happened to it.

    Attributes:
        number: The pull request in the name; None if there is none.
        document: The cleanup's own document; None if none was made.
        waits: Why it is still there although it should be gone; None if it is gone or may stay.
    """

    found: FoundEnvironment
    number: int | None
    standing: Standing
    merged: bool | None = None
    document: CleanupDocument | None = None
    waits: str | None = None

    @property
    def environment(self) -> str:
        return self.found.environment

    @property
    def why_still_there(self) -> str | None:
        """Why it was still there, as far as its record shows; None if it belongs there."""
        if not self.was_missed:
            return None
        return _CAUSES.get(self.found.phase or "", _MISSED)

    @property
    def was_missed(self) -> bool:
        """Whether a cleanup missed it."""
        return self.standing == "remove"

    @property
    def is_removed(self) -> bool:
        """Whether the sweep removes the environment, or tables of it."""
        return self.standing in ("remove", "tables")

    @property
    def is_gone(self) -> bool:
        return self.document is not None and self.document.result in ("removed", "nothing_to_do")

    @property
    def should_be_gone(self) -> bool:
        """Whether it should be gone and is not."""
        return self.is_removed and not self.is_gone

    def make_report_row(self) -> SweepRow:
        """Makes the row that people and the step's output get."""
        return SweepRow(
            environment=self.environment,
            pr_number=self.number,
            standing=self.standing,
            merged=self.merged,
            cause=self.why_still_there,
            result=self.document.result if self.document else None,
            waits=self.waits[:4_000] if self.waits else None,
            expires_at=self.found.expires_at,
            **self._get_table_fields(),
        )

    def _get_table_fields(self) -> _TableFieldsOfWorkerSweep:
        document = self.document
        if document is None:
            return {"tables_until": self.found.tables_due_at}
        return {
            "views_dropped": len(document.views_dropped),
            "tables_reclaimed": len(document.tables_reclaimed),
            "bytes_reclaimed": document.bytes_reclaimed,
            "tables_kept": len(document.tables_kept),
            # For a whole second it does not matter if ISO 8601 has a fraction: it sorts well
            # enough.
            "tables_until": max(
                (kept.until for kept in document.tables_kept if kept.until), default=None
            ),
        }


def judge_environments_for_worker_sweep(
    found: Iterable[FoundEnvironment], options: WorkerSweepOptions, ask_states: AskStates
) -> list[EnvironmentSweptByWorker]:
    """Judges each environment; asks GitHub once, and only about those that may be removed."""
    rows = [_judge_environment_before_sweep(item, options) for item in found]
    candidates = [row for row in rows if row.is_removed or row.standing == "other_prefix"]
    numbers = {row.number for row in candidates if row.number is not None}
    states = ask_states(numbers) if numbers else {}
    return [_judge_environment_by_pull_state(row, states) for row in rows]


def _judge_environment_before_sweep(
    found: FoundEnvironment, options: WorkerSweepOptions
) -> EnvironmentSweptByWorker:
    """Judges by ledger and name; `remove` and `tables` still depend on GitHub's answer."""
    number = read_pull_number(found.environment, options.environment_prefix)
    standing: Standing = "remove"
    recorded = found.pr_number or 0
    if (
        number is None
        and found.owner is not None
        and parse_environment_prefix(found.environment, recorded)
    ):
        standing, number = "other_prefix", recorded
    elif number is None:
        standing = "odd_record"
    elif found.owner is None:
        standing = "not_recorded"
    elif found.pr_number is not None and found.pr_number != number:
        standing = "odd_record"
    elif found.pinned:
        standing = "pinned"
    elif found.tables_due_at is not None:
        standing = "tables" if found.tables_due else "grace"
    return EnvironmentSweptByWorker(found=found, number=number, standing=standing)


def _judge_environment_by_pull_state(
    row: EnvironmentSweptByWorker, states: Mapping[int, PullState]
) -> EnvironmentSweptByWorker:
    if not (row.is_removed or row.standing == "other_prefix") or row.number is None:
        return row
    state = states.get(row.number, PullState(state="unknown"))
    if state.state == "closed":
        return replace(row, merged=state.merged)
    return replace(row, standing=state.state)


# A sweep: find environments whose pull request is closed, and remove them.
#
# GitHub decides what goes; ledger, state and warehouse hold it. So the bot asks the worker which
# environments there are, asks GitHub which of their pull requests are open, and lets the worker
# clean up the rest. It only touches an environment that the ledger records for this repository and
# whose pull request is closed on GitHub. If GitHub does not answer, it touches nothing. Physical
# tables of environments that were removed a day ago or earlier are removed in the same way, unless
# their pull request was reopened.


@dataclass(frozen=True, kw_only=True)
class WorkerSweepOutcome:
    """What a sweep found and did.

    Attributes:
        others: How many environments belong to other repositories on the same state.
        failure: Why some or all cleanups could not be done; what was done is in `rows`.
    """

    rows: tuple[EnvironmentSweptByWorker, ...]
    others: int
    dry_run: bool
    failure: Failure | None = None

    @property
    def missed_environments(self) -> tuple[EnvironmentSweptByWorker, ...]:
        return tuple(row for row in self.rows if row.was_missed)

    @property
    def reported_environments(self) -> tuple[EnvironmentSweptByWorker, ...]:
        """All environments that the sweep worked on, or should have worked on."""
        return tuple(row for row in self.rows if row.is_removed)

    @property
    def leftover_environments(self) -> tuple[EnvironmentSweptByWorker, ...]:
        return () if self.dry_run else tuple(row for row in self.rows if row.should_be_gone)

    def make_report(self) -> SweepReport:
        """Lists missed environments first, then tables to remove, then what may stay."""
        rows = sorted(
            self.rows, key=lambda row: (not row.was_missed, not row.is_removed, row.number or 0)
        )
        return SweepReport(
            dry_run=self.dry_run,
            rows=[row.make_report_row() for row in rows],
            others=self.others,
            failure=self.failure,
        )


def request_sweep_from_worker(
    client: WorkerClient,
    options: WorkerSweepOptions,
    ask_states: AskStates,
    on_rescue: Callable[[EnvironmentSweptByWorker], None] = lambda _row: None,
) -> WorkerSweepOutcome:
    """Finds environments, asks GitHub about them, and removes those of closed pull requests.

    Args:
        ask_states: Returns the states of pull requests by their numbers; called once.
        on_rescue: Gets every environment that a cleanup missed, before anything is removed, so
            that it is reported even if the run is cancelled.

    Raises:
        BotError: the environments could not be listed, or GitHub did not answer; nothing changed.
    """
    question = client.make_request(
        ListRequest,
        owner=Owner(name=options.owner, run=options.run),
        environment_prefix=options.environment_prefix,
    )
    listed = client.request_environments(question)
    if isinstance(listed, Failure):
        raise _make_error_of_failure(listed)
    ours = [item for item in listed.environments if item.owner in (None, options.owner)]
    others = len(listed.environments) - len(ours)
    rows = judge_environments_for_worker_sweep(ours, options, ask_states)
    for row in rows:
        if row.was_missed:
            on_rescue(row)
    if options.dry_run:
        return WorkerSweepOutcome(rows=tuple(rows), others=others, dry_run=True)
    chosen, rows = _limit_removals(rows, options.max_deletions)
    if not chosen:
        return WorkerSweepOutcome(rows=tuple(rows), others=others, dry_run=False)
    documents, failure = _request_removals(client, options, chosen)
    return WorkerSweepOutcome(
        rows=tuple(_join_rows_with_documents(rows, chosen, documents, failure)),
        others=others,
        dry_run=False,
        failure=failure,
    )


def _limit_removals(
    rows: list[EnvironmentSweptByWorker], limit: int
) -> tuple[list[EnvironmentSweptByWorker], list[EnvironmentSweptByWorker]]:
    """Returns the rows to remove now, and all rows, those over the limit with why they wait.

    Environments that still exist come before tables that nobody sees, the oldest records first.
    """
    wanted = sorted(
        (row for row in rows if row.is_removed),
        key=lambda row: (not row.was_missed, row.found.updated_at or "", row.environment),
    )
    chosen = wanted[:limit]
    late = {row.environment for row in wanted[limit:]}
    why = f"one sweep removes at most {limit} (`max-deletions`); the next one goes on"
    return chosen, [replace(row, waits=why) if row.environment in late else row for row in rows]


def _request_removals(
    client: WorkerClient, options: WorkerSweepOptions, chosen: list[EnvironmentSweptByWorker]
) -> tuple[list[CleanupDocument], Failure | None]:
    """Returns the documents of the cleanups, and the failure that ended them too early, if any."""
    request = client.make_request(
        SweepRequest,
        owner=Owner(name=options.owner, run=options.run),
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
        answer: SweepDocument | Failure = client.request_sweep(request)
    except (WorkerFailed, TimedOut) as error:
        # If it ran out of time, it has reported how far it got.
        last_answer = getattr(error, "answer", None)
        cleanups = last_answer.cleanups if isinstance(last_answer, SweepDocument) else []
        return cleanups, make_activity_failure_of_worker(error, "sweep", client.redactor)
    if isinstance(answer, Failure):
        return [], answer
    return answer.cleanups, None


def _join_rows_with_documents(
    rows: list[EnvironmentSweptByWorker],
    chosen: list[EnvironmentSweptByWorker],
    documents: list[CleanupDocument],
    failure: Failure | None,
) -> list[EnvironmentSweptByWorker]:
    by_name = {document.environment: document for document in documents}
    chosen_names = {row.environment for row in chosen}
    not_reached = failure.message if failure else "The worker ended before it got here."

    def add_document(row: EnvironmentSweptByWorker) -> EnvironmentSweptByWorker:
        document = by_name.get(row.environment)
        if document is None:
            return replace(row, waits=not_reached) if row.environment in chosen_names else row
        why = document.failure.message if document.failure else reports.SENTENCES.cleanup_incomplete
        done = replace(row, document=document)
        return done if done.is_gone else replace(done, waits=why)

    return [add_document(row) for row in rows]


def choose_exit_code_of_worker_sweep(swept: WorkerSweepOutcome) -> int:
    """Returns 0 if nothing is left, 4 if something is, or the exit code of the worker's failure."""
    if swept.failure is not None:
        return swept.failure.exit_code
    return EXIT_INCOMPLETE if swept.leftover_environments else EXIT_DONE


def _make_error_of_failure(failure: Failure) -> BotError:
    error = BotError(
        failure.message,
        hint=failure.hint,
        reason_code=failure.reason_code,
        path=failure.path,
        line=failure.line,
    )
    error.exit_code = failure.exit_code
    return error
