"""Partitions: on Spark they decide which rows a run replaces, and how many files there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.models.base import ModelRule, is_table, on_model
from ci_bot.worker.rules.models.keys import grain_of
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.sql.audits import column_names

# Dialects whose adapter replaces intervals with INSERT OVERWRITE, which takes whole partitions.
_OVERWRITES = frozenset({"spark", "spark2", "databricks", "hive"})
# Values that hardly ever repeat, as far as a type can tell.
_FINE = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME",
                   "DOUBLE", "FLOAT", "UUID"})  # fmt: skip


@on_model
class PartitionsWithoutTime(ModelRule):
    """A run replaces whole partitions, so they must not hold rows of other intervals."""

    spec = rule("partitions-without-time")

    def see(self, model: Any) -> Iterator[Observation]:
        if not model.kind.is_incremental_by_time_range or model.dialect not in _OVERWRITES:
            return
        time = model.time_column.column.name.lower()
        parts = list(model.partitioned_by)
        if any(column.name.lower() == time for part in parts for column in _columns(part)):
            return
        by = f"partitioned by {names(column_names(parts))}" if parts else "not partitioned"
        yield self.observation(
            model,
            f"The table is {by}, without the time column `{time}`: a run of some intervals "
            "overwrites whole partitions, and with them the rows of all other intervals.",
            f"`{time}` is among the partitions (SQLMesh adds it unless partition_by_time_column "
            "is false)",
            anchors=("partition_by_time_column", "partitioned_by"),
        )


@on_model
class PartitionPerRow(ModelRule):
    """Every partition is a directory with a file of its own."""

    spec = rule("partition-per-row")

    def see(self, model: Any) -> Iterator[Observation]:
        if not is_table(model) or not model.partitioned_by:
            return
        types = model.columns_to_types or {}
        keys = {column for grain in _keys(model) if len(grain) == 1 for column in grain}
        # SQLMesh itself partitions by the time column, whatever its type.
        time = model.time_column.column.name.lower() if model.time_column else None
        fine = []
        for part in model.partitioned_by:
            if not isinstance(part, exp.Column) or part.name.lower() == time:
                continue  # a transform, as bucket or days, is there to make it coarse
            name = part.name.lower()
            kind = types.get(part.name) or types.get(name)
            if name in keys or (kind is not None and kind.this.value in _FINE):
                fine.append(name)
        if fine:
            yield self.observation(
                model,
                f"Partitioned by {names(fine)}, which is another value in nearly every row: each "
                "of them becomes a directory with a file, for the metastore and every reader.",
                "the partitions are coarse, such as a day, and the rest is clustered or bucketed",
                subject=sorted(fine),
                anchors=("partitioned_by", *fine),
            )


def _keys(model: Any) -> list[frozenset[str]]:
    found = [frozenset(grain) for grain in grain_of(model)]
    unique = frozenset(column_names(list(model.unique_key or [])))
    return [*found, unique] if unique else found


def _columns(part: Any) -> list[Any]:
    return [part] if isinstance(part, exp.Column) else list(part.find_all(exp.Column))
