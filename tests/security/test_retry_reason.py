"""Which failures of an apply are worth another try, and which must end it."""

from __future__ import annotations

import pytest
from sqlmesh.utils.errors import ConflictingPlanError, PlanError

from ci_bot.worker.apply.attempts import find_reason_to_retry_apply
from ci_bot.worker.apply.recorder import ApplyRecorder
from ci_bot.worker.messages.names import MessageNames


@pytest.fixture
def recorder() -> ApplyRecorder:
    return ApplyRecorder(MessageNames(None, "spark"), lambda *_words: None)


def test_another_plan_on_the_same_environment__is_never_retried(recorder: ApplyRecorder) -> None:
    # Finalizing found somebody else's plan: to go on would overwrite it.
    recorder.promoting = True
    assert (
        find_reason_to_retry_apply(ConflictingPlanError("Another plan was applied"), recorder)
        is None
    )


@pytest.mark.parametrize(
    "words", ["java.util.ConcurrentModificationException", "delta: ConcurrentAppendException"]
)
def test_two_writers_on_one_table__are_retried(recorder: ApplyRecorder, words: str) -> None:
    recorder.failures.append(RuntimeError(words))
    assert find_reason_to_retry_apply(PlanError("Plan application failed."), recorder)


def test_virtual_layer__is_retried_only_while_it_is_being_updated(
    recorder: ApplyRecorder,
) -> None:
    error = PlanError("a view could not be replaced")
    assert find_reason_to_retry_apply(error, recorder) is None
    recorder.promoting = True
    assert find_reason_to_retry_apply(error, recorder)
    recorder.promoted = True
    assert find_reason_to_retry_apply(error, recorder) is None


def test_a_query_that_is_wrong__is_not_retried(recorder: ApplyRecorder) -> None:
    recorder.failures.append(RuntimeError("UNRESOLVED_COLUMN: no such column"))
    assert find_reason_to_retry_apply(PlanError("Plan application failed."), recorder) is None


@pytest.mark.parametrize(
    "words",
    [
        "[TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create table or view `{}`.`shop__v3__80__dev`",
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `c`.`{}`.`shop__v3__80__dev` cannot be found.",
        "org.apache.hadoop.hive.metastore.api.AlreadyExistsException: Database {} already exists",
    ],
)
def test_what_another_run_makes_or_replaces__is_retried(
    recorder: ApplyRecorder, words: str
) -> None:
    """Environments share a preview, and Spark replaces a view by dropping it and making it anew."""

    def reason(schema: str) -> str | None:
        recorder.failures[:] = [RuntimeError(words.format(schema))]
        return find_reason_to_retry_apply(
            PlanError("failed"), recorder, {"sqlmesh__shop.shop__v3__80__dev"}
        )

    assert reason("sqlmesh__shop")
    assert reason("sources") is None, "that is the model's own mistake"
