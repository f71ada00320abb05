"""prod is never written: the check between planning and executing (DESIGN 1)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmesh.core.plan import stages
from sqlmesh.core.plan.stages import PlanStage

from ci_bot.errors import Refused
from ci_bot.worker import times
from ci_bot.worker.names import Names
from ci_bot.worker.planning import Planned


def check_prod_untouched(planned: Planned, found: Iterable[PlanStage], names: Names) -> None:
    """Refuses a plan that would add or remove an interval of a table version that prod references.

    Previews of forward-only changes pass: they go to a `__dev` table of their own.

    Raises:
        Refused: names the first such model and interval.
    """
    for stage in found:
        if isinstance(stage, stages.BackfillStage):
            for snapshot, intervals in stage.snapshot_to_intervals.items():
                if snapshot.is_model and intervals and planned.shares_prod_table(snapshot):
                    _refuse(names.of(snapshot.name), intervals[0][0], intervals[-1][1])
        elif isinstance(stage, stages.MigrateSchemasStage):
            for snapshot in stage.snapshots:
                if planned.shares_prod_table(snapshot):
                    raise Refused(
                        f"This plan would alter prod's table of {names.of(snapshot.name)}.",
                        hint="A PR environment never changes prod's tables. This is a defect of "
                        "the action; please report it.",
                        reason_code="would_write_prod",
                    )
    for s_id, (start, end) in planned.plan.restatements.items():
        snapshot = planned.snapshots[s_id]
        if planned.shares_prod_table(snapshot):
            _refuse(names.of(snapshot.name), start, end)


def _refuse(model: str, start: int, end: int) -> None:
    raise Refused(
        f"This plan would write {model} from {times.iso(start)} to {times.iso(end)} into the table "
        "that prod reads.",
        hint="Prod itself lacks these intervals, or the window reaches outside prod's data. Let "
        "prod catch up (`sqlmesh run`), or choose a window inside prod's data, then review again.",
        reason_code="would_write_prod",
    )
