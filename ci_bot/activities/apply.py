"""An apply: ask the worker to build exactly the reviewed plan."""

from __future__ import annotations

from dataclasses import dataclass, field

import ci_bot
from ci_bot.bench import Bench
from ci_bot.contracts.apply import ApplyDocument, ApplyResult
from ci_bot.contracts.base import Failure, Versions
from ci_bot.contracts.identity import PlanFlags, PlanIdentity
from ci_bot.contracts.messages import ApplyAsk, Owner
from ci_bot.contracts.plan import Window
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_DONE, EXIT_FAILED, EXIT_REFUSED


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
    """Applies, or says in the document why not."""
    answer = bench.apply(
        ApplyAsk(
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
    )
    if isinstance(answer, ApplyDocument):
        return answer
    return failed_document(answer, environment=options.environment)


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
