"""An apply: asks the worker for the cost of the build, and to build exactly the reviewed plan."""

from __future__ import annotations

from typing import Any, TypedDict

from typing_extensions import Unpack

import ci_bot
from ci_bot.bot.sandbox import SandboxedWorkerCancelled, SandboxedWorkerTimedOut
from ci_bot.bot.worker_client.client import WorkerClient, WorkListener
from ci_bot.bot.worker_client.failures import make_failure_of_refused_request
from ci_bot.errors import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INCOMPLETE,
    EXIT_REFUSED,
    WorkerFailed,
)
from ci_bot.protocol.apply_report import (
    BUILDING,
    ApplyDocument,
    ApplyResult,
    ApplyStep,
    EstimateDocument,
)
from ci_bot.protocol.base import Failure, PlanId, Versions
from ci_bot.protocol.cost import Price
from ci_bot.protocol.environment import EnvironmentName, UnfitEnvironmentName
from ci_bot.protocol.messages import ApplyRequest, EstimateRequest, Owner, Progress
from ci_bot.protocol.plan import Window
from ci_bot.protocol.plan_identity import GivenFlags, PlanIdentity, find_full_plan_id


def request_estimate_from_worker(client: WorkerClient, **wanted: Any) -> EstimateDocument | Failure:
    """Requests the expected cost; returns it, or why there is none.

    Args:
        wanted: The fields of `EstimateRequest` that the client does not fill in itself.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    try:
        request = client.make_request(EstimateRequest, **wanted)
    except UnfitEnvironmentName as error:
        return make_failure_of_refused_request(error, "estimate")
    return client.request_estimate(request)


class WantedWorkerApply(TypedDict, total=False):
    """The fields of `ApplyRequest` that a client does not fill in itself."""

    environment: str  # `ApplyRequest` judges it, and makes an `EnvironmentName` of it
    environment_prefix: str
    owner: Owner
    plan_id: str | None
    reviewed: PlanIdentity | None
    window: Window | None
    flags: GivenFlags
    head_branch: str | None
    base_names: list[str]
    changed_files: list[str] | None
    table_diff: bool
    executor_hour_price: Price | None
    max_executor_hours: float | None
    probe: bool
    start: str | None
    end: str | None
    pinned: bool
    claim: bool


def request_apply_from_worker(
    client: WorkerClient, **wanted: Unpack[WantedWorkerApply]
) -> ApplyDocument:
    """Applies; the document says if it failed, also if the worker was stopped or has died.

    Args:
        wanted: The fields of `ApplyRequest` that the client does not fill in itself.

    Raises:
        BadInput: the environment's name is not one, or the request does not fit the contract.
        RunCancelled: before the worker was started.
        TimedOut, WorkerFailed: the worker ended before it built anything.
    """
    plan_id = find_full_plan_id(wanted.get("plan_id"), wanted.get("reviewed"))
    try:
        request = client.make_request(ApplyRequest, **wanted)
    except UnfitEnvironmentName as error:
        failure = make_failure_of_refused_request(error, "apply")
        return make_failed_apply_document(
            failure, environment=wanted["environment"], plan_id=plan_id
        )
    last: list[ApplyStep] = []

    def on_progress(step: Progress) -> None:
        if step.phase in BUILDING:
            last[:] = [
                ApplyStep(
                    phase=step.phase,
                    message=step.message,
                    done=step.done,
                    total=step.total,
                    probe=request.probe,
                )
            ]

    client.add_listener(WorkListener(on_progress=on_progress, on_log=lambda _line: None))
    try:
        answer = client.request_apply(request)
    except (SandboxedWorkerCancelled, SandboxedWorkerTimedOut, WorkerFailed) as error:
        last_words = getattr(error, "answer", None)
        if not last and not isinstance(error, SandboxedWorkerCancelled):
            raise
        return _make_stopped_document(
            error,
            last_words if isinstance(last_words, ApplyDocument) else None,
            last[0] if last else None,
            environment=request.environment,
            plan_id=plan_id,
        )
    if isinstance(answer, ApplyDocument):
        return _add_last_apply_step(answer, last[0]) if last else answer
    return make_failed_apply_document(answer, environment=request.environment, plan_id=plan_id)


def _add_last_apply_step(document: ApplyDocument, last: ApplyStep) -> ApplyDocument:
    """Corrects the document that a worker left in case of its death: it may be one step old."""
    failure = document.failure
    if document.reason_code != "worker_ended" or failure is None:
        return document
    return document.model_copy(
        update={
            "failure": failure.model_copy(
                update={"stage": last.phase, "exit_code": EXIT_INCOMPLETE}
            ),
            "partial": [last.describe_state_left(document.environment)],
        }
    )


def _make_stopped_document(
    error: SandboxedWorkerCancelled | SandboxedWorkerTimedOut | WorkerFailed,
    last_words: ApplyDocument | None,
    last: ApplyStep | None,
    *,
    environment: EnvironmentName,
    plan_id: PlanId | None,
) -> ApplyDocument:
    """Makes the document after a worker that was stopped or has died.

    Args:
        last_words: What the worker could still report.
        last: Its last step while it was building; None: it did not begin to build.
    """
    cancelled = isinstance(error, SandboxedWorkerCancelled)
    hint = "Apply again: what is built is kept, and the rest is completed."
    if last is None:
        hint = "Nothing was built yet. Apply again."
    elif not cancelled and error.hint:
        hint = f"{error.hint} {hint}"
    failure = Failure(
        stage=last.phase if last else "apply",
        reason_code=error.reason_code,
        exit_code=error.exit_code if cancelled else EXIT_INCOMPLETE,
        message=error.message,
        hint=hint,
    )
    document = last_words or make_failed_apply_document(
        failure, environment=environment, plan_id=plan_id
    )
    return document.model_copy(
        update={
            "result": "cancelled" if cancelled else "failed",
            "reason_code": error.reason_code,
            "failure": failure,
            "plan_id": document.plan_id or plan_id,
            "partial": document.partial
            or ([last.describe_state_left(environment)] if last else []),
        }
    )


def make_failed_apply_document(
    failure: Failure, *, environment: str, plan_id: PlanId | None = None
) -> ApplyDocument:
    """Makes the document of an apply that ended before it began.

    Args:
        environment: As it was given: a refused name is in the document, too.
        plan_id: The whole id of the requested plan, if it is known.
    """
    result: ApplyResult = "failed"
    if failure.reason_code == "cancelled":
        result = "cancelled"
    elif failure.exit_code in (EXIT_REFUSED, EXIT_BAD_INPUT):
        result = "refused"
    return ApplyDocument(
        environment=environment,
        plan_id=plan_id,
        result=result,
        reason_code=failure.reason_code,
        seconds=0.0,
        timings={},
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        failure=failure,
    )


def choose_exit_code_of_worker_apply(document: ApplyDocument) -> int:
    """Returns the exit code of an apply."""
    if document.result in ("applied", "probed", "nothing_to_apply"):
        return EXIT_DONE
    if document.failure is not None:
        return document.failure.exit_code
    return EXIT_FAILED
