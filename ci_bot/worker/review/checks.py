"""Every check that a review can make without touching the warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ci_bot.contracts.documents.plan import AuditsCheck, Checks, ProjectCheck, TableDiffCheck
from ci_bot.worker.plan.planning import Planned
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project.checks import formatting, lint
from ci_bot.worker.project.testing.unit_tests import unit_tests, with_touched
from ci_bot.worker.words.names import Names


def run_checks(
    context: Any,
    planned: Planned | None,
    names: Names,
    repository: Path,
    clock: Clock,
    *,
    project: list[ProjectCheck],
    changed_files: list[str] | None,
) -> Checks:
    """Every check that a review can make without touching the warehouse, `project` included."""
    with clock.phase("lint"):
        linted = lint(context, names, repository)
    with clock.phase("format"):
        touched = _touched(planned, changed_files, repository)
        formatted = formatting(context, touched, repository)
    with clock.phase("tests"):
        tested = unit_tests(context, repository)
        if tested.failures:
            tested = with_touched(tested, context.models, changed_files, repository, names)
    return Checks(
        project=project,
        formatting=formatted,
        lint=linted,
        tests=tested,
        audits=audits(planned),
        table_diff=TableDiffCheck(
            status="not_run", not_run_because="The changed tables do not exist before an apply."
        ),
    )


def _touched(
    planned: Planned | None, changed_files: list[str] | None, repository: Path
) -> set[Path]:
    """The files of the diff, else those of the models that the plan changes directly."""
    if changed_files is not None:
        return {repository / name for name in changed_files}
    direct = planned.plan.directly_modified if planned else ()
    return {
        path
        for s_id in direct
        if planned
        and s_id in planned.snapshots
        and (path := planned.snapshots[s_id].node._path) is not None
    }


def audits(planned: Planned | None) -> AuditsCheck:
    """How many audits stand on the changed models; they need data, so a review cannot run them."""
    blocking = non_blocking = 0
    for snapshot in planned.changed if planned else ():
        if not snapshot.is_model:
            continue
        for audit, arguments in snapshot.model.audits_with_args:
            if _is_blocking(audit, arguments):
                blocking += 1
            else:
                non_blocking += 1
    return AuditsCheck(
        status="not_run",
        blocking=blocking,
        non_blocking=non_blocking,
        not_run_because="Audits read the data that an apply builds.",
    )


def _is_blocking(audit: Any, arguments: Any) -> bool:
    """A model can turn a blocking audit into a warning with the argument `blocking`."""
    override = arguments.get("blocking")
    return bool(audit.blocking) if override is None else str(override).lower() not in ("false", "0")
