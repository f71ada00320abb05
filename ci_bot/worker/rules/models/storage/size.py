"""Starts and sizes: how much is computed, and from when on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.models.base import ModelRule, on_model
from ci_bot.worker.rules.observation import Observation

MANY_ROWS = 1_000_000
MAX_DEPTH = 50


@on_model
class NoStart(ModelRule):
    """An incremental model without a start begins yesterday, or where its parents begin."""

    spec = rule("no-start")

    def see(self, model: Any) -> Iterator[Observation]:
        kind = model.kind
        incremental = (
            kind.is_incremental_by_time_range
            or kind.is_incremental_by_unique_key
            or kind.is_scd_type_2
            or kind.is_incremental_by_partition
        )
        if not incremental or model.start is not None:
            return
        inherited = self._inherits(model)
        yield self.observation(
            model,
            "No `start`, neither here nor in model_defaults: the history begins where that of its "
            "parents does."
            if inherited
            else "No `start`, neither here nor in model_defaults nor above: the history begins "
            "yesterday, and everything older is never computed.",
            "the model, or model_defaults, has a `start`",
            severity="low" if inherited else None,
            anchors=("kind",),
        )

    def _inherits(self, model: Any) -> bool:
        seen: set[str] = set()
        queue = list(model.depends_on)
        while queue and len(seen) < MAX_DEPTH:
            name = queue.pop()
            if name in seen:
                continue
            seen.add(name)
            parent = self.project.get_model(name)
            if parent is None or parent.kind.is_external:
                continue
            if parent.start is not None:
                return True
            queue.extend(parent.depends_on)
        return False


@on_model
class HugeFullModel(ModelRule):
    """FULL builds everything again in every run."""

    spec = rule("huge-full-model")

    def see(self, model: Any) -> Iterator[Observation]:
        rows = self.project.row_counts.get(model.fqn)
        if model.kind.is_full and rows is not None and rows > MANY_ROWS:
            yield self.observation(
                model,
                f"{rows:,} rows are computed and written again in each run.",
                "the model is incremental, or stays below a million rows",
                anchors=("kind FULL", "kind"),
            )
