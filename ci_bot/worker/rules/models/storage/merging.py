"""Tables that SQLMesh merges into, and that Spark cannot merge into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci_bot.contracts.rules import rule
from ci_bot.worker.project.merge_support import why_no_merge
from ci_bot.worker.rules.models.base import ModelRule, on_model
from ci_bot.worker.rules.observation import Observation


@on_model
class MergeUnsupported(ModelRule):
    """The first batch replaces the table; the second one is a MERGE."""

    spec = rule("merge-unsupported")

    def see(self, model: Any) -> Iterator[Observation]:
        why = why_no_merge(model, self.project.gateways)
        if why is not None:
            yield self.observation(
                model,
                f"SQLMesh merges into this model, and {why}. The first batch replaces the table "
                "and works; each later one fails, also the next run of prod.",
                "the model, or model_defaults, names a `table_format` that takes a MERGE (iceberg) "
                "or `storage_format delta`, or the kind is another one",
                anchors=("INCREMENTAL_BY_UNIQUE_KEY", "kind"),
            )
