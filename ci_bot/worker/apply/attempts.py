"""Builds a plan on Spark, and retries with a fresh plan after a failure that passes."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.utils.concurrency import NodeExecutionFailedError
from sqlmesh.utils.errors import ConflictingPlanError

from ci_bot.errors import RequestRefused
from ci_bot.protocol.apply_report import Attempt
from ci_bot.protocol.base import Failure
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply.recorder import ApplyRecorder
from ci_bot.worker.messages import (
    MessageNames,
    extract_headline_of_error,
    extract_sentence_of_error,
    find_root_cause_of_error,
    make_failure_of_error,
    name_file_in_message,
)
from ci_bot.worker.planning import BuiltPlan, make_evaluatable_plan
from ci_bot.worker.runtime import WorkerPhaseClock, spark_catalog
from ci_bot.worker.sqlmesh_compat import AroundBatch, PartOfSqlmeshPlan
from ci_bot.worker.state_store import LeaseHold, LeaseLostError, Say

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

# A race is lost once or twice; if an attempt fails three times, it has another reason.
MAX_ATTEMPTS = 3
_CONCURRENT = (
    "concurrent modification",
    "ConcurrentModificationException",
    "ConcurrentAppendException",
    "CommitFailedException",
    "CommitStateUnknownException",
    "WriteConflict",
)
# Errors on the plan's own tables and schemas. SQLMesh makes these with IF NOT EXISTS and OR
# REPLACE, and Spark replaces a view by dropping and creating it. So another run came in between.
_IN_BETWEEN = ("TABLE_OR_VIEW_NOT_FOUND", "ALREADY_EXISTS", "AlreadyExistsException")


class PlanMovedDuringApplyError(RequestRefused):
    """The plan changed between two attempts."""

    reason_code = "plan_changed"

    def __init__(self) -> None:
        super().__init__(
            "The first attempt failed, and by now the plan would be another one than the one that "
            "was asked for: prod has changed since. So it was not tried again.",
            hint="Review again, then apply the new plan id. What is built is kept; a cleanup "
            "removes it.",
        )


class ApplyAttempts:
    """The attempts of one apply; `made` lists them.

    Args:
        repository: The directory to which paths in messages are relative.
        replan: Makes the same plan again, because a failed one leaves stale intervals on its
            snapshots; raises if the new plan may not be built.
        around_batch: Entered around each batch.
    """

    def __init__(
        self,
        context: Context,
        hold: LeaseHold,
        clock: WorkerPhaseClock,
        progress: Say,
        *,
        names: MessageNames,
        repository: Path,
        replan: Callable[[], BuiltPlan],
        around_batch: AroundBatch,
    ) -> None:
        self._context = context
        self._hold = hold
        self._clock = clock
        self._progress = progress
        self._names = names
        self._repository = repository
        self._replan = replan
        self._around_batch = around_batch
        self.made: list[Attempt] = []

    def build_plan(
        self, planned: BuiltPlan, recorder: ApplyRecorder, part: PartOfSqlmeshPlan | None = None
    ) -> Failure | None:
        """Builds the plan, or a part of it; returns the failure, or None if it is built."""
        current = planned
        for number in range(1, MAX_ATTEMPTS + 1):
            begun = self._clock.now()
            try:
                with self._clock.time_phase("apply"):
                    self._evaluate_plan(current, recorder, part, alone=number > 1)
            except Exception as error:
                if self._hold.should_stop() or isinstance(error, LeaseLostError):
                    return self._hold.make_failure()
                tables = self._list_tables(current)
                why = (
                    find_reason_to_retry_apply(error, recorder, tables)
                    if number < MAX_ATTEMPTS
                    else None
                )
                self.made.append(
                    Attempt(
                        number=number,
                        result="failed",
                        error=_describe_apply_error_in_one_line(error, recorder),
                        retried_because=why,
                        seconds=self._measure_seconds_since(begun),
                    )
                )
                if why is None:
                    return self._make_failure(error, recorder)
                self._progress("apply", f"{why}; trying once more, one task at a time", None, None)
                recorder.failures.clear()
                recorder.promoting = recorder.promoted = False
                try:
                    current = self._replan()
                except Exception as refused:
                    return self._make_final_failure(refused, recorder)
            else:
                seconds = self._measure_seconds_since(begun)
                self.made.append(Attempt(number=number, result="succeeded", seconds=seconds))
                return None
        return None

    def _list_tables(self, planned: BuiltPlan) -> set[str]:
        catalog = str(self._context.default_catalog)
        tables = spark_catalog.list_physical_spark_tables(
            planned.changed_snapshots, planned.deployable, catalog
        )
        return {table.shown_name for table in tables}

    def _make_final_failure(self, error: Exception, recorder: ApplyRecorder) -> Failure:
        """Makes the failure if a retry is refused; it names the tables of the first attempt."""
        if self._hold.should_stop():
            return self._hold.make_failure()
        failure = make_failure_of_error(error, stage="compare", repository=self._repository)
        built = ", ".join(model.model for model in recorder.list_models_so_far()) or "no table"
        return failure.model_copy(
            update={
                "message": f"{failure.message} The attempt before it has built {built}, and may "
                "have made some of the views.",
            }
        )

    def _evaluate_plan(
        self,
        planned: BuiltPlan,
        recorder: ApplyRecorder,
        part: PartOfSqlmeshPlan | None,
        *,
        alone: bool,
    ) -> None:
        """Runs the plan's stages.

        Args:
            alone: One batch at a time.
        """
        # A build may take hours; the garbage collector need not scan the loaded project again and
        # again.
        gc.freeze()
        gc.enable()
        evaluator = sqlmesh_compat.make_sqlmesh_evaluator(
            self._context,
            recorder,
            recorder.on_audits,
            max_workers=1 if alone else None,
            promotion=self._hold.fence_promotion,
            fence=self._hold.fence_write,
            check=self._hold.check_lease,
            on_table_written=recorder.on_table_written,
            around_batch=self._around_batch,
            part=part,
        )
        plan = make_evaluatable_plan(planned.plan, self._context.state_reader)
        evaluator.evaluate(plan, circuit_breaker=self._hold.confirm_must_stop)

    def _measure_seconds_since(self, begun: float) -> float:
        return round(self._clock.now() - begun, 3)

    def _make_failure(self, error: Exception, recorder: ApplyRecorder) -> Failure:
        failed = recorder.failures[0] if recorder.failures else error
        node = (
            getattr(failed, "node", None) if isinstance(failed, NodeExecutionFailedError) else None
        )
        name = getattr(node, "snapshot_name", None) or getattr(node, "name", None)
        base = make_failure_of_error(
            find_root_cause_of_error(failed),
            stage="apply",
            repository=self._repository,
            hint="If the code is the cause, push a fix: its review has the new command. If not, "
            "remove the cause and apply this plan again; what is built already is kept.",
        )
        update: dict[str, object] = {"model": self._names.short_name(str(name)) if name else None}
        audit = sqlmesh_compat.find_failed_sqlmesh_audit(failed)
        if audit is not None:
            update["message"] = f"The audit `{audit.name}` cannot run: {base.message}"
            if audit.path is not None:
                update["path"] = name_file_in_message(audit.path, self._repository)
                update["line"] = _find_line_of_word_for_apply(audit.path, audit.name)
        return base.model_copy(update=update)


def _find_line_of_word_for_apply(path: Path, word: str) -> int | None:
    """Returns the first line of a file that has the word."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    return next((n for n, line in enumerate(lines, start=1) if pattern.search(line)), None)


def find_reason_to_retry_apply(
    error: BaseException, recorder: ApplyRecorder, tables: Collection[str] = ()
) -> str | None:
    """Finds why a failure is worth a retry with a fresh plan; None if it is not.

    Two kinds of failure pass without a change: a race in the virtual layer
    (https://github.com/SQLMesh/sqlmesh/issues/5643) and two writers on one table.

    Args:
        tables: The plan's physical tables, as `schema.table`.
    """
    if isinstance(error, ConflictingPlanError):
        return None
    causes = [error, *recorder.failures]
    texts = " ".join(
        f"{extract_sentence_of_error(cause)} "
        f"{extract_sentence_of_error(find_root_cause_of_error(cause))}"
        for cause in causes
    )
    if any(sign in texts for sign in _CONCURRENT):
        return "another writer changed the same table"
    named = texts.replace("`", "")
    ours = any(
        name in named
        for table in tables
        for name in (table, f"Database {_cut_applied_table_to_schema(table)} ")
    )
    if ours and any(sign in texts for sign in _IN_BETWEEN):
        return "another run was making the same table"
    if recorder.promoting and not recorder.promoted:
        return "the virtual layer update failed"
    return None


def _cut_applied_table_to_schema(table: str) -> str:
    return table.rpartition(".")[0]


def _describe_apply_error_in_one_line(error: BaseException, recorder: ApplyRecorder) -> str:
    cause = find_root_cause_of_error(recorder.failures[0] if recorder.failures else error)
    return shorten_redacted(extract_headline_of_error(cause), 1_000)
