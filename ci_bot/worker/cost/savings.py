"""What a plan saves by reading prod's tables instead of building its own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ci_bot.contracts.documents.plan import Cost
from ci_bot.worker.cost.estimate import estimate
from ci_bot.worker.cost.known import known_of
from ci_bot.worker.plan import planning
from ci_bot.worker.plan.in_words import describe
from ci_bot.worker.plan.planning import Planned
from ci_bot.worker.records.cost_ledger import CostLedger
from ci_bot.worker.words.names import Names


def with_reused(
    cost: Cost,
    planned: Planned,
    built: Collection[str],
    ledger: CostLedger,
    context: Any,
    names: Names,
) -> Cost:
    """The cost with the tables of prod that the plan needs and does not build.

    Those are of the changed models and of all that they read: in an environment of its own each of
    them would have to be built. What that costs is known where runs of them are.

    Args:
        built: The models that the plan builds, as reports name them.
    """
    needed = planning.changed_with_upstream(planned.plan)
    reused = [
        snapshot
        for snapshot in planned.snapshots.values()
        if snapshot.name in needed
        and (snapshot.name, snapshot.version) in planned.versions_in_prod
        and snapshot.is_model
        and not (snapshot.is_view or snapshot.is_symbolic or snapshot.is_seed)
        and names.of(snapshot.name) not in built
    ]
    if not reused:
        return cost
    ran = {run.model for run in ledger.runs({names.of(s.name) for s in reused})}
    asked = reused if ledger.knows_prod else [s for s in reused if names.of(s.name) in ran]
    work = describe.backfill(
        planned, planning.target_windows(planned, asked), names, reused=lambda _snapshot: True
    )
    saved = estimate(work, known_of(work, ledger, context, names)) if work else None
    return cost.model_copy(
        update={
            "reused": len(reused),
            "reused_hours": saved.executor_hours_mid if saved is not None else None,
        }
    )
