"""An apply: ask the worker to build exactly the reviewed plan."""

from __future__ import annotations

from dataclasses import dataclass, field

import ci_bot
from ci_bot.activities.asking import asking
from ci_bot.bench import Bench, Listener
from ci_bot.contracts.apply import ApplyDocument, ApplyResult
from ci_bot.contracts.base import Failure, Versions
from ci_bot.contracts.identity import PlanFlags, PlanIdentity
from ci_bot.contracts.messages import ApplyAsk, Owner, Progress
from ci_bot.contracts.plan import Window
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_DONE, EXIT_FAILED, EXIT_REFUSED
from ci_bot.process.run import WorkerCancelled

# What the worker says it does from its first write on.
BUILDING = ("apply", "verify", "evidence")
PLAN_ID_DIGITS = 64


@dataclass(frozen=True, kw_only=True)
class ApplyOptions:
    """What to apply; `window` and `reviewed` come from the review that is applied."""

    environment: str
    owner: Owner
    plan_id: str | None = None
    reviewed: PlanIdentity | None = None
    window: Window | None = None
    flags: PlanFlags = field(default_factory=PlanFlags)
    start: str | None = None
    end: str | None = None
    table_diff: bool = True


def apply(bench: Bench, options: ApplyOptions) -> ApplyDocument:
    """Applies, or says in the document why not; also where the run was cancelled meanwhile.

    Raises:
        BadInput: the request cannot be put to a worker.
        Cancelled: before the worker was started.
    """
    last: list[Progress] = []

    def on_progress(step: Progress) -> None:
        if step.phase in BUILDING:
            last[:] = [step]

    bench.listen(Listener(on_progress=on_progress, on_log=lambda _line: None))
    with asking():
        ask = ApplyAsk(
            projects=bench.project_directories,
            gateway=bench.gateway,
            workplace=bench.workplace,
            owner=options.owner,
            environment=options.environment,
            plan_id=options.plan_id,
            reviewed=options.reviewed,
            window=options.window,
            flags=options.flags,
            start=options.start,
            end=options.end,
            table_diff=options.table_diff,
        )
    try:
        answer = bench.apply(ask)
    except WorkerCancelled as error:
        return cancelled_document(error, last[0] if last else None, options)
    if isinstance(answer, ApplyDocument):
        return answer
    return failed_document(answer, environment=options.environment)


def cancelled_document(
    error: WorkerCancelled, last: Progress | None, options: ApplyOptions
) -> ApplyDocument:
    """What may be partial when a run was cancelled.

    Args:
        last: The worker's last word from when it was building; None: it never came to that.
    """
    failure = Failure(
        stage="apply",
        reason_code=error.reason_code,
        exit_code=error.exit_code,
        message=error.message,
        hint="Apply again: what is built is kept, and the rest is completed."
        if last
        else "Nothing was built yet. Apply again.",
    )
    document = failed_document(failure, environment=options.environment)
    if isinstance(error.answer, ApplyDocument):
        # It could still say what it had built.
        document = error.answer.model_copy(
            update={
                "result": "cancelled",
                "reason_code": error.reason_code,
                "failure": failure,
            }
        )
    partial = document.partial
    if last is not None and not partial:
        done = f" ({last.done or 0} of {last.total} batches were done)" if last.total else ""
        partial = [
            f"{options.environment} may be half built{done}: tables may hold a part of their "
            f"data, and some of its views may be missing. The last step was: {last.message}. "
            "Applying again completes it; a cleanup removes it."
        ]
    return document.model_copy(
        update={"plan_id": document.plan_id or _whole(options), "partial": partial}
    )


def _whole(options: ApplyOptions) -> str | None:
    """The plan id that was asked for, where it was not shortened."""
    if options.plan_id is not None and len(options.plan_id) == PLAN_ID_DIGITS:
        return options.plan_id
    return options.reviewed.plan_id() if options.reviewed else None


def failed_document(failure: Failure, *, environment: str) -> ApplyDocument:
    """The document of an apply that ended before it began."""
    result: ApplyResult = "failed"
    if failure.reason_code == "cancelled":
        result = "cancelled"
    elif failure.exit_code in (EXIT_REFUSED, EXIT_BAD_INPUT):
        result = "refused"
    return ApplyDocument(
        environment=environment,
        plan_id=None,
        result=result,
        reason_code=failure.reason_code,
        seconds=0.0,
        timings={},
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        failure=failure,
    )


def exit_code(document: ApplyDocument) -> int:
    """The exit code of an apply (DESIGN 4.1)."""
    if document.result in ("applied", "nothing_to_apply"):
        return EXIT_DONE
    if document.failure is not None:
        return document.failure.exit_code
    return EXIT_FAILED
