"""Rebuilds that nobody needs: models that change only because of others, and read nothing of it."""

from __future__ import annotations

from collections.abc import Sequence

from ci_bot.contracts.documents.plan import Backfill, Cost
from ci_bot.contracts.documents.work import tables_of
from ci_bot.contracts.lineage.impact import Impact


def with_unneeded(cost: Cost, work: Sequence[Backfill], impact: Impact) -> Cost:
    """The cost with the rebuilds that the column impact proves unnecessary, named and priced.

    Only a proof counts: where it is not known whether a model reads what changed, it is needed.
    """
    untouched = {item.model for item in impact.indirect if item.reached == "no"}
    models = sorted({item.model for item in tables_of(work)} & untouched)
    hours = [item.executor_hours_mid for item in cost.models if item.model in models]
    return cost.model_copy(
        update={"unneeded": models, "unneeded_hours": round(sum(hours), 5) if hours else None}
    )
