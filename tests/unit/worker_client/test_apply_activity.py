"""What the bot's document of an apply says where the worker was stopped, has died, or was not asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.sandbox.worker_run import SandboxedWorkerCancelled, SandboxedWorkerTimedOut
from ci_bot.bot.worker_client import apply as applying
from ci_bot.bot.worker_client.client import WorkerClient, WorkListener
from ci_bot.errors import BadInput, WorkerFailed
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ApplyRequest, Owner, Progress, Workplace
from tests.factories import PLAN, make_apply

End = Callable[[], ApplyDocument | Failure]


class Stub:
    """The client's part that an apply uses, with a worker that says something and ends somehow."""

    gateway = None
    project_directories = ["/r"]  # noqa: RUF012 - as the client gives it
    workplace = Workplace(repository="/r", cache_dir="/c", scratch_dir="/s")
    make_request = WorkerClient.make_request

    def __init__(self, end: End, *steps: tuple[str, str, int | None, int | None]) -> None:
        self._end = end
        self._steps = steps
        self._listener: WorkListener | None = None
        self.asked: list[ApplyRequest] = []

    def add_listener(self, listener: WorkListener) -> None:
        self._listener = listener

    def request_apply(self, ask: ApplyRequest) -> ApplyDocument | Failure:
        self.asked.append(ask)
        assert self._listener is not None
        for phase, message, done, total in self._steps:
            step = Progress(phase=phase, message=message, done=done, total=total)
            self._listener.on_progress(step)
        return self._end()


def apply(stub: Stub, **options: Any) -> ApplyDocument:
    given: dict[str, Any] = {
        "environment": "pr_7",
        "owner": Owner(name="octo/shop", pr_number=7),
        "plan_id": PLAN,
    }
    client: WorkerClient = stub  # type: ignore[assignment]
    return applying.request_apply_from_worker(client, **given | options)


def ends(error: Exception, answer: ApplyDocument | None = None) -> End:
    def end() -> ApplyDocument:
        if answer is not None:
            error.answer = answer  # type: ignore[attr-defined]
        raise error

    return end


CRASH = WorkerFailed("The worker was killed by signal SIGKILL.", reason_code="worker_crashed")


def test_worker_that_dies__leaves_what_progress_has_told() -> None:
    steps = [("plan", "planning again", None, None), ("apply", "shop.a in 2.0s", 3, 5)]
    document = apply(Stub(ends(CRASH), *steps))

    assert (document.result, document.reason_code) == ("failed", "worker_crashed")
    assert applying.choose_exit_code_of_worker_apply(document) == 4
    assert document.plan_id == PLAN
    (partial,) = document.partial
    assert partial.startswith("pr_7 may be half built (3 of 5 batches were done)")
    assert "The last step was: shop.a in 2.0s" in partial


@pytest.mark.parametrize("phase", ["verify", "evidence"])
def test_worker_that_dies_after_the_promotion__leaves_a_built_environment(phase: str) -> None:
    document = apply(Stub(ends(CRASH), ("apply", "building", None, None), (phase, "x", None, None)))

    assert applying.choose_exit_code_of_worker_apply(document) == 4
    assert document.partial[0].startswith("pr_7 is built and its views are made")
    assert document.failure is not None
    assert document.failure.stage == phase


def test_worker_that_dies__had_left_a_document_that_may_be_a_step_behind() -> None:
    failure = Failure(stage="apply", reason_code="worker_ended", exit_code=1, message="It ended.")
    given = {"result": "failed", "reason_code": "worker_ended", "failure": failure}
    left = make_apply(environment="pr_7", partial=["old"], **given)
    document = apply(Stub(lambda: left, ("verify", "asking Spark", None, None)))

    assert applying.choose_exit_code_of_worker_apply(document) == 4
    assert document.models == left.models
    assert document.partial[0].startswith("pr_7 is built and its views are made")


def test_worker_that_dies_before_it_builds__is_a_failure_like_any_other() -> None:
    with pytest.raises(WorkerFailed):
        apply(Stub(ends(CRASH), ("plan", "planning again", None, None)))


def test_worker_that_is_late__has_told_what_it_built() -> None:
    told = make_apply(result="cancelled", reason_code="cancelled", partial=["what is there"])
    late = SandboxedWorkerTimedOut("The worker did not finish within 60 minutes.", hint="Raise it.")
    document = apply(Stub(ends(late, told), ("apply", "shop.a in 2.0s", 3, 5)))

    assert (document.result, document.reason_code) == ("failed", "timeout")
    assert applying.choose_exit_code_of_worker_apply(document) == 4
    assert document.models == told.models
    assert document.partial == ["what is there"]
    assert document.failure is not None
    assert "Raise it. Apply again" in (document.failure.hint or "")


def test_worker_that_is_cancelled__keeps_the_code_of_its_signal() -> None:
    error = SandboxedWorkerCancelled("The run was terminated; the worker was stopped.")
    error.exit_code = 143
    document = apply(Stub(ends(error), ("apply", "shop.a in 2.0s", None, None)))

    assert (document.result, applying.choose_exit_code_of_worker_apply(document)) == (
        "cancelled",
        143,
    )
    assert document.partial[0].startswith("pr_7 may be half built: tables may hold a part")
    assert document.plan_id == PLAN


def test_failure__of_a_worker_that_never_began__names_the_plan_that_was_asked_for() -> None:
    failure = Failure(stage="plan", reason_code="held", exit_code=3, message="held")
    document = apply(Stub(lambda: failure))
    assert (document.result, document.plan_id) == ("refused", PLAN)


@pytest.mark.parametrize("environment", ["prod", "PROD", "Prod ", " prod", "pr_8", "dev"])
def test_name__that_must_not_be_built__is_refused_and_no_worker_is_asked(environment: str) -> None:
    stub = Stub(make_apply)
    document = apply(stub, environment=environment)
    assert (document.result, applying.choose_exit_code_of_worker_apply(document)) == ("refused", 3)
    assert stub.asked == []


@pytest.mark.parametrize("environment", ["", "pr 7", "a" * 300, "PR_7"])
def test_name__that_is_none__is_bad_input(environment: str) -> None:
    stub = Stub(make_apply)
    with pytest.raises(BadInput):
        apply(stub, environment=environment)
    assert stub.asked == []


def test_claim__in_a_workflow__is_refused() -> None:
    stub = Stub(make_apply)
    assert applying.choose_exit_code_of_worker_apply(apply(stub, claim=True)) == 3
    assert stub.asked == []
    assert apply(stub, claim=True, owner=Owner(name="octo/shop")).result == "applied"
    assert Path(stub.asked[0].projects[0]) == Path("/r")
