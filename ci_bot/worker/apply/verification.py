"""After the promotion: checks the environment's views and data, and updates the ledger.

From here on nothing undoes an apply. If a check could not run, the next apply runs it, because the
ledger does not record it as done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c

from ci_bot.errors import EXIT_INCOMPLETE
from ci_bot.protocol.apply_report import Attempt, View
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply import evidence
from ci_bot.worker.apply.evidence import repeat_audits_of_apply_on_prod
from ci_bot.worker.apply.progress_report import ApplyProgressReport
from ci_bot.worker.apply.run_record import ApplyRecord
from ci_bot.worker.data_diff import SparkDiffPort
from ci_bot.worker.messages import MessageNames, extract_sentence_of_error
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.runtime import (
    SparkCatalog,
    WorkerPhaseClock,
    spark_catalog,
    write_worker_log_line,
)
from ci_bot.worker.state_store import LeaseHold

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

_SHOWN = 5


class AppliedEnvironmentVerification:
    """Collects the evidence that an environment is complete, into its report.

    Args:
        looking: The ports for Spark's queries, and the request to stop.
        count: Records the cost of building, after the rows are counted.
    """

    def __init__(
        self,
        request: ApplyRequest,
        context: Context,
        catalog: SparkCatalog,
        *,
        names: MessageNames,
        hold: LeaseHold,
        record: ApplyRecord,
        report: ApplyProgressReport,
        clock: WorkerPhaseClock,
        looking: evidence.ApplyEvidencePorts,
        count: Callable[[], None],
    ) -> None:
        self._ask = request
        self._context = context
        self._catalog = catalog
        self._names = names
        self._hold = hold
        self._record = record
        self._report = report
        self._clock = clock
        self._looking = looking
        self._count = count

    def verify_environment(self, planned: BuiltPlan, attempts: Sequence[Attempt]) -> Failure | None:
        """Verifies the environment; returns the failure, or None if all of its views resolve."""
        self._report.promoted = True
        self._record.write_end("promoted")
        port = SparkDiffPort(
            sqlmesh_compat.get_spark_session_of_sqlmesh(self._context.engine_adapter)
        )
        failure = self._verify_views(planned, port)
        if failure is None:
            with self._clock.time_phase("evidence"):
                self._report.evidence = evidence.try_collect_apply_evidence(
                    self._ask,
                    self._context,
                    planned,
                    self._names,
                    self._catalog,
                    port,
                    self._looking,
                )
                self._ask_prod()
        if self._hold.should_stop():
            return self._hold.make_failure()
        if attempts:
            self._count()
        if failure is None and self._report.evidence.missing is None:
            self._record.write_end("applied")
        return failure

    def _ask_prod(self) -> None:
        """Repeats the failed audits on prod; if that fails, the apply continues."""
        if not self._ask.table_diff or self._hold.should_stop():
            return
        try:
            prod = self._context.state_reader.get_environment(c.PROD)
            if prod is None:
                return
            there = spark_catalog.list_spark_views_of_environment(self._context, prod)
            adapter = self._context.engine_adapter
            self._report.amend_record(
                lambda recorder: repeat_audits_of_apply_on_prod(
                    recorder,
                    SparkDiffPort(sqlmesh_compat.get_spark_session_of_sqlmesh(adapter)),
                    adapter,
                    there,
                )
            )
        except Exception as error:
            write_worker_log_line(
                f"Prod was not asked the audits: {extract_sentence_of_error(error)}"
            )

    def _verify_views(self, planned: BuiltPlan, port: SparkDiffPort) -> Failure | None:
        report, environment = self._report, self._ask.environment
        try:
            with self._clock.time_phase("verify"):
                report.views = evidence.resolve_applied_views(
                    self._context, planned, self._catalog, port, self._looking
                )
        except Exception as error:
            report.evidence = evidence.ApplyEvidence(missing="its views could not be asked for")
            return Failure(
                stage="verify",
                reason_code="not_verified",
                exit_code=EXIT_INCOMPLETE,
                message=f"{environment} is built, and Spark could not be asked whether its views "
                f"resolve: {extract_sentence_of_error(error)}",
                hint="Apply again: it rebuilds nothing, and checks them.",
            )
        failure = _find_unresolved_views_of_apply(report.views)
        if failure is not None:
            report.evidence = evidence.ApplyEvidence(missing="some of its views do not resolve")
        return failure


def _find_unresolved_views_of_apply(views: list[View]) -> Failure | None:
    broken = [view.view for view in views if not view.resolves]
    if not broken:
        return None
    return Failure(
        stage="verify",
        reason_code="views_do_not_resolve",
        exit_code=EXIT_INCOMPLETE,
        message=f"{len(broken)} of the environment's views do not resolve on Spark: "
        f"{', '.join(broken[:_SHOWN])}.",
        hint="Apply again; if it stays, look at the physical tables that the views point at.",
    )
