"""The record of a plan's execution: batches, audits, failures and progress."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlmesh.core.console import NoopConsole
from sqlmesh.core.snapshot import Snapshot

from ci_bot.protocol.apply_report import AppliedModel, AuditTotals, ModelAudit
from ci_bot.protocol.base import LINE_LENGTH
from ci_bot.protocol.plan import Backfill, BackfillAction
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import describe_plan
from ci_bot.worker.sqlmesh_compat import AuditOutcome, SqlmeshAuditQuery

ReportBatch = Callable[[str, int, int], None]
AuditStatus = Literal["passed", "failed", "skipped"]


@dataclass
class AppliedModelRecord:
    """The batches of one model, as they finish.

    Attributes:
        done: Batches that SQLMesh has recorded.
        filled: Their intervals.
        written: Whether its table was written, also by a batch whose audits then failed.
    """

    table: str
    batches: int
    intervals: int
    action: BackfillAction | None = None
    done: int = 0
    filled: int = 0
    written: bool = False
    seconds: float = 0.0
    audits: dict[str, ModelAudit] = field(default_factory=dict)
    questions: dict[str, SqlmeshAuditQuery] = field(default_factory=dict)


class ApplyRecorder(NoopConsole):
    """SQLMesh's console, turned into records and progress lines; several threads call it."""

    def __init__(self, names: MessageNames, progress: ReportBatch) -> None:
        super().__init__()
        self._names = names
        self._progress = progress
        self._lock = threading.Lock()
        self.models: dict[str, AppliedModelRecord] = {}
        self.failures: list[BaseException] = []
        self.promoting = False
        self.promoted = False
        self._views_begun = False
        # Changed audits run on existing data; then nothing is built.
        self._audits_only = False
        self._total = 0
        self._done = 0

    def expect_model(self, item: Backfill) -> None:
        """Announces a model that will be built, counted as the review counts it."""
        self.models.setdefault(
            item.model, AppliedModelRecord(item.table, item.batches, item.intervals, item.action)
        )

    def start_evaluation_progress(
        self,
        batched_intervals: dict[Snapshot, Any],
        *args: Any,
        audit_only: bool = False,
        **kwargs: Any,
    ) -> None:
        with self._lock:
            # Views are replaced and do not count; see `protocol.plan.Work`.
            self._total = sum(
                len(batches)
                for snapshot, batches in batched_intervals.items()
                if not snapshot.is_view
            )
            self._done = 0
            self._audits_only = audit_only
            for snapshot, batches in batched_intervals.items():
                record = self.models.get(self._names.short_name(snapshot.name))
                if record is not None and not audit_only:
                    # A second attempt gets only the batches that the first one left.
                    record.batches = record.done + len(batches)

    def update_snapshot_evaluation_progress(
        self,
        snapshot: Snapshot,
        interval: Any,
        batch_idx: int,
        duration_ms: int | None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # SQLMesh also calls this for a batch that raised; it then has no duration.
        if duration_ms is None:
            return
        name = self._names.short_name(snapshot.name)
        with self._lock:
            self._done += not snapshot.is_view
            record = self.models.get(name)
            part = ""
            if record is not None and not self._audits_only:
                record.done += 1
                record.filled += (
                    describe_plan.count_planned_intervals(snapshot, [interval])
                    if snapshot.is_incremental
                    else 1
                )
                record.seconds += duration_ms / 1000
                part = f" {record.done}/{record.batches}" if record.batches > 1 else ""
            done, total = self._done, self._total
        self._progress(f"{name}{part} in {duration_ms / 1000:.1f}s", done, total)

    def on_table_written(self, snapshot: Snapshot) -> None:
        """Records that a batch is in its table. Its audits come next, and may stop it."""
        with self._lock:
            record = self.models.get(self._names.short_name(snapshot.name))
            if record is not None and not self._audits_only:
                record.written = True

    def log_failed_models(self, errors: Sequence[BaseException]) -> None:
        self.failures.extend(errors)

    def start_promotion_progress(self, *args: Any, **kwargs: Any) -> None:
        self.promoting = self._views_begun = True
        self._progress("updating the virtual layer", self._done, self._total)

    def stop_promotion_progress(self, success: bool = True) -> None:
        self.promoted = success

    def on_audits(self, snapshot: Snapshot, outcomes: Sequence[AuditOutcome]) -> None:
        """Adds the audits of one batch; a failure in any batch is a failure of the audit."""
        with self._lock:
            record = self.models.setdefault(
                self._names.short_name(snapshot.name),
                AppliedModelRecord(
                    table=self._names.short_name(snapshot.name), batches=0, intervals=0
                ),
            )
            seen: Counter[str] = Counter()
            for outcome in outcomes:
                # A model can name an audit twice, with different arguments; they keep their order.
                seen[outcome.audit] += 1
                key = f"{outcome.audit} {seen[outcome.audit]}"
                record.audits[key] = _merge_audit_of_apply(record.audits.get(key), outcome)
                if outcome.question is not None:
                    record.questions[key] = outcome.question.cover_both(record.questions.get(key))

    def list_failed_audits(self) -> list[tuple[str, str, SqlmeshAuditQuery]]:
        """Lists model, key and query of each failed audit."""
        with self._lock:
            return [
                (name, key, record.questions[key])
                for name, record in self.models.items()
                for key, audit in record.audits.items()
                if audit.status == "failed" and key in record.questions
            ]

    def record_prod_answer(self, model: str, key: str, rows: int | None, why: str | None) -> None:
        """Records how many rows the same audit finds in prod, or why that is not known."""
        with self._lock:
            audits = self.models[model].audits
            audits[key] = audits[key].model_copy(
                update={"prod_rows": rows, "prod_unknown_because": why}
            )

    def list_applied_models(self, rows: Mapping[str, int]) -> list[AppliedModel]:
        """Lists the models that were built, slowest first. Call it after the build."""
        return self._merge_rows(
            {name: (record.intervals, record.batches) for name, record in self.models.items()}, rows
        )

    def list_models_so_far(self) -> list[AppliedModel]:
        """Lists the models that are partly built or audited so far, with counts."""
        with self._lock:
            return self._merge_rows(
                {
                    name: (record.filled, record.done)
                    for name, record in self.models.items()
                    if record.done or record.written or record.audits
                },
                {},
            )

    @property
    def has_built(self) -> bool:
        """Whether an attempt has filled a table, or begun to make the environment's views."""
        with self._lock:
            return self._views_begun or any(
                record.done or record.written for record in self.models.values()
            )

    def _merge_rows(
        self, counts: Mapping[str, tuple[int, int]], rows: Mapping[str, int]
    ) -> list[AppliedModel]:
        found = [
            AppliedModel(
                model=name,
                table=self.models[name].table,
                action=self.models[name].action,
                intervals=intervals,
                batches=batches,
                seconds=round(self.models[name].seconds, 3),
                rows=rows.get(name),
                audits=sorted(self.models[name].audits.values(), key=lambda audit: audit.audit),
            )
            for name, (intervals, batches) in counts.items()
        ]
        return sorted(found, key=lambda model: (-model.seconds, model.model))

    def count_audits_by_result(self, expected: int) -> AuditTotals:
        """Counts audits over all models.

        An expected audit that never ran counts as `not_run`, not as passed.
        """
        with self._lock:
            audits = [audit for record in self.models.values() for audit in record.audits.values()]
        passed = sum(audit.status == "passed" for audit in audits)
        failed = [audit for audit in audits if audit.status == "failed"]
        return AuditTotals(
            passed=passed,
            failed=len(failed),
            blocking_failed=sum(audit.blocking for audit in failed),
            not_run=max(0, expected - passed - len(failed)),
        )


def make_apply_recorder(
    work: Iterable[Backfill], names: MessageNames, progress: ReportBatch
) -> ApplyRecorder:
    """Makes a recorder that expects the models of `work`."""
    recorder = ApplyRecorder(names, progress)
    for item in work:
        recorder.expect_model(item)
    return recorder


def _merge_audit_of_apply(before: ModelAudit | None, outcome: AuditOutcome) -> ModelAudit:
    rows = outcome.failed_rows
    if before is not None and before.failed_rows is not None:
        rows = (rows or 0) + before.failed_rows
    status: AuditStatus = "skipped" if rows is None else "failed" if rows else "passed"
    query = before.query if before is not None else None
    if query is None and outcome.failed_rows:
        query = _write_query_of_failed_audit(outcome)
    return ModelAudit(
        audit=outcome.audit,
        blocking=outcome.blocking,
        status=status,
        failed_rows=rows,
        query=query,
    )


def _write_query_of_failed_audit(outcome: AuditOutcome) -> str | None:
    """Writes the query of an audit so that people can run it; None if it is too long to show."""
    if outcome.query is None:
        return None
    text = outcome.query.sql(dialect="spark", pretty=True)
    return text if len(text) <= LINE_LENGTH else None
