"""Late data that a source waits for, and a new model does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ci_bot.worker.rules.changes.model_block import LOOKBACK
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_new_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


@on_new_model(LOOKBACK)
def find_missing_lookbacks(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds a new model by time range that looks back less than a source by time range.

    SQLMesh computes the intervals of a lookback again for the source only. Its readers have
    computed them already.
    """
    if not _is_by_time_range(model) or not model.is_sql:
        return
    own = int(model.lookback or 0)
    for name in sorted(model.depends_on):
        source = inputs.after.get(name)
        if source is None or not _is_by_time_range(source):
            continue
        theirs = int(source.lookback or 0)
        if theirs > own and source.interval_unit == model.interval_unit:
            called = inputs.names.short_name(name)
            yield RuleObservation(
                LOOKBACK,
                f"`{called}` loads its last {theirs} intervals again, because its data arrive "
                f"late, and this model computes {own or 'none'} of them again: what arrives "
                "late never reaches it.",
                f"the lookback is {theirs}, or a total without late data is wanted",
                severity=None if _does_a_reader_look_back(name, theirs, inputs) else "medium",
                model=model,
                subject=(called,),
                anchors=("kind", "lookback"),
            )


def _does_a_reader_look_back(source: str, intervals: int, inputs: RuleInputs) -> bool:
    """Whether the team lets a reader of the source follow its late data."""
    readers = [one for one in inputs.after.values() if source in one.depends_on]
    return any(_is_by_time_range(one) and int(one.lookback or 0) >= intervals for one in readers)


def _is_by_time_range(model: Model) -> bool:
    return bool(model.kind.is_incremental_by_time_range)
