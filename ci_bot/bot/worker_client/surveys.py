"""Surveys, for which the worker builds and removes nothing.

Whether everything is ready for the other activities, the costs and readers in Spark's event logs,
and how prod and its state differ from what GitHub knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ci_bot
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.bot.worker_client.failures import make_error_of_worker_failure
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_DONE, EXIT_FAILED, WorkerFailed
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.cleanup_report import (
    MOST_LISTED,
    DriftedModel,
    DriftReport,
    FoundEnvironment,
    UnownedEnvironment,
)
from ci_bot.protocol.cost import ExposuresDocument, LearnDocument
from ci_bot.protocol.environment import DEFAULT_PREFIX, EnvironmentName
from ci_bot.protocol.messages import (
    DoctorDocument,
    DoctorRequest,
    ExposuresRequest,
    LearnRequest,
    ListRequest,
    Owner,
)
from ci_bot.protocol.plan import ProjectCheck
from ci_bot.protocol.review_report import Report

if TYPE_CHECKING:
    from ci_bot.bot.worker_client.cleanup import AskStates, EnvironmentSweptByWorker


def request_doctor_from_worker(
    client: WorkerClient, *, owner_name: str, environment_prefix: str = DEFAULT_PREFIX
) -> DoctorDocument:
    """Requests the doctor's checks; a failure that the worker reports is a failed check, too.

    Raises:
        WorkerFailed: it gave no answer.
    """
    request = client.make_request(
        DoctorRequest,
        owner=Owner(name=owner_name),
        environment_prefix=environment_prefix,
    )
    answer = client.request_doctor(request)
    return (
        answer
        if isinstance(answer, DoctorDocument)
        else make_failed_doctor_document_for_worker(answer)
    )


def make_failed_doctor_document_for_worker(failure: Failure) -> DoctorDocument:
    """Makes the document of a worker that could check nothing."""
    check = ProjectCheck(
        name="worker",
        status="fail",
        message=failure.message[:4_000],
        fix=failure.hint[:4_000] if failure.hint else None,
    )
    return DoctorDocument(
        checks=[check],
        configured=failure.exit_code != EXIT_BAD_INPUT,
        seconds=0.0,
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
    )


def choose_exit_code_of_worker_doctor(document: DoctorDocument) -> int:
    """Returns 0 if nothing fails, 1 if something does, 2 if the configuration cannot be read."""
    if not document.configured:
        return EXIT_BAD_INPUT
    failing = any(check.status == "fail" for check in document.checks)
    return EXIT_FAILED if failing else EXIT_DONE


OTHER_SPARK = "of another version of Spark"


def request_learn_from_worker(
    client: WorkerClient, *, owner_name: str, event_logs: str, run: str | None = None
) -> LearnDocument | Failure:
    """Lets the worker read costs from the logs in the directory; returns what it found.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    request = client.make_request(
        LearnRequest, owner=Owner(name=owner_name, run=run), event_logs=event_logs
    )
    return client.request_learn(request)


def request_exposures_from_worker(
    client: WorkerClient, *, owner_name: str, event_logs: str
) -> ExposuresDocument | Failure:
    """Lists who has read prod's tables, according to the logs in the directory.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    request = client.make_request(
        ExposuresRequest, owner=Owner(name=owner_name), event_logs=event_logs
    )
    return client.request_exposures(request)


def describe_costs_learned_by_worker(document: LearnDocument) -> str:
    """Describes what was learned, and which logs were of no use."""
    useless = {
        "of other applications": document.foreign,
        OTHER_SPARK: document.other_version,
        "not readable": document.unreadable,
        "cut": document.cut,
    }
    left = ", ".join(f"{count:,} {what}" for what, count in useless.items() if count)
    return (
        f"Event logs: {document.read:,} of {document.logs:,} were new and are about "
        f"{document.writes:,} writes into {document.tables:,} tables"
        + (f" ({left})." if left else ".")
    )


# A review plans prod and an environment; this one is only compared with prod and never made.
_BESIDE = EnvironmentName("drift")
_NO_OWNER = {
    "remove": "its pull request is closed, and no cleanup has removed it",
    "not_recorded": "it is called like a pull request's, and this action did not make it",
    "odd_record": "its name and its record disagree",
    "other_prefix": "its pull request is closed, and it was made under another prefix",
}


@dataclass(frozen=True, kw_only=True)
class WorkerDriftOptions:
    """The options of a drift run.

    Attributes:
        owner: The repository, as the ledger records it.
        environment_prefix: Of pull requests' environments.
        run: The run that asks, for the ledger.
    """

    owner: str
    environment_prefix: str
    run: str | None = None


def request_drift_from_worker(
    client: WorkerClient, options: WorkerDriftOptions, ask_states: AskStates, *, planned_at: str
) -> DriftReport:
    """Compares prod with what is checked out, and environments with their pull requests.

    Args:
        ask_states: Returns the states of pull requests by their numbers; called once.
        planned_at: The time of the run, for the report.

    Raises:
        BotError: the state cannot be read, or GitHub did not answer.
    """
    # A review loads more than the other surveys need.
    from ci_bot.bot.worker_client.review import request_review_or_report_failure
    from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits, WorkerReviewOptions

    owner = Owner(name=options.owner, run=options.run)
    listed = client.request_environments(
        client.make_request(
            ListRequest, owner=owner, environment_prefix=options.environment_prefix, survey=True
        )
    )
    if isinstance(listed, Failure):
        raise make_error_of_worker_failure(listed)
    if listed.survey is None:
        raise WorkerFailed(
            "The worker has not described the state.",
            hint="Run it again; if it stays, report it with the log of this run.",
        )
    report = request_review_or_report_failure(
        client,
        WorkerReviewOptions(
            environment=_BESIDE,
            owner=owner,
            # No commit: the project counts as it is checked out, and no files count as changed.
            commits=RequestedReviewCommits(),
            baseline="state",
            python_path=tuple(client.python_path),
        ),
        planned_at=planned_at,
    )
    ours = [item for item in listed.environments if item.owner in (None, options.owner)]
    missing, plan = report.prod_not_found, report.prod_plan
    changes = [] if missing is not None else report.changes
    return DriftReport(
        commit=client.git.read_head(),
        planned_at=planned_at,
        environments=list(_list_unowned_environments(ours, options, ask_states))[:MOST_LISTED],
        survey=listed.survey,
        plan_id=plan.plan_id if plan is not None and missing is None else None,
        models=[
            DriftedModel(model=change.model, change=change.change)
            for change in sorted(changes, key=lambda one: (one.change, one.model))[:MOST_LISTED]
        ],
        changed_models=len(changes),
        other_changes=sum(item.change != "unchanged" for item in report.statements),
        prod_missing=missing.describe_absence() if missing is not None else None,
        failure=_find_drift_failure(report),
    )


def _find_drift_failure(report: Report) -> Failure | None:
    """Finds why the default branch cannot be planned, or why SQLMesh refuses to plan prod."""
    plan = report.prod_plan
    if report.failure is not None or plan is None or not plan.would_fail:
        return report.failure
    return Failure(
        stage="plan",
        reason_code="failed",
        exit_code=1,
        message=f"SQLMesh refuses to plan prod: {plan.failure}",
    )


def _list_unowned_environments(
    found: Iterable[FoundEnvironment], options: WorkerDriftOptions, ask_states: AskStates
) -> Iterator[UnownedEnvironment]:
    from ci_bot.bot.worker_client.cleanup import (
        WorkerSweepOptions,
        judge_environments_for_worker_sweep,
    )

    rows: list[EnvironmentSweptByWorker] = judge_environments_for_worker_sweep(
        found,
        WorkerSweepOptions(owner=options.owner, environment_prefix=options.environment_prefix),
        ask_states,
    )
    for row in rows:
        why = _NO_OWNER.get(row.standing)
        if why is not None:
            yield UnownedEnvironment(environment=row.environment, pr_number=row.number, why=why)
