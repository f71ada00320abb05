"""How much more a table that is computed whole will read than it did in an earlier run. Pure.

Such a table is one interval, however much lies in the tables that it reads. In the environment of
a pull request these hold a window, of another length each time, and in prod they hold years. What
they held in a run is the sum of the intervals that the ledger has of their version up to then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_bot.contracts.documents.plan import Backfill
from ci_bot.worker.records.cost_ledger import RunRow


@dataclass(frozen=True)
class Upstream:
    """What lies above the models of a plan.

    Attributes:
        planned: The plan's tables, by their models.
        rows: The ledger's runs of these models.
        tables: By model, the models whose tables it reads, those behind views included.
    """

    planned: Mapping[str, Backfill]
    rows: Sequence[RunRow]
    tables: Mapping[str, frozenset[str]]

    def growth(self, run: RunRow) -> float:
        """By what factor a model will read more than in `run`; 1.0 where nothing tells.

        Only where the plan builds, and the run's own apply has built, a table that it reads. What
        it read of others stays: the bytes that it read beyond those that were written then.
        """
        item = self.planned.get(run.model)
        if item is None or item.action != "full_refresh":
            return 1.0
        above = self.tables.get(run.model, frozenset())
        apply = self._applies[run.environment, run.at]
        built = [apply[model] for model in sorted(above & apply.keys())]
        ratios = {row.model: ratio for row in built if (ratio := self._ratio(row)) is not None}
        if not ratios:
            return 1.0
        written = {row.model: row.counters.output_bytes if row.counters else 0 for row in built}
        total = sum(written[model] for model in ratios)
        if not total:
            return sum(ratios.values()) / len(ratios) if ratios.keys() == above else 1.0
        changed = sum(written[model] * ratio for model, ratio in ratios.items()) / total
        read = run.counters.input_bytes if run.counters else 0
        share = 1.0 if ratios.keys() == above else min(1.0, total / read) if read else 0.0
        return 1.0 + share * (changed - 1.0)

    def _ratio(self, row: RunRow) -> float | None:
        """Of a table that an apply has built: what it will hold, in terms of what it held then."""
        item = self.planned.get(row.model)
        if item is None:
            return None
        if item.action == "full_refresh":
            return self.growth(row)
        held = self._held(row.model, row.version, until=row.at)
        # A table's name ends with its version.
        versions = {other.version for other in self._models[row.model]}
        there = sum(self._held(row.model, one) for one in versions if one in item.table.split("__"))
        return (item.intervals + there) / held if held else None

    def _held(self, model: str, version: str, *, until: str | None = None) -> int:
        return sum(
            row.intervals
            for row in self._models[model]
            if row.version == version and (until is None or row.at <= until)
        )

    @cached_property
    def _applies(self) -> Mapping[tuple[str, str], Mapping[str, RunRow]]:
        found: dict[tuple[str, str], dict[str, RunRow]] = {}
        for row in self.rows:
            found.setdefault((row.environment, row.at), {})[row.model] = row
        return found

    @cached_property
    def _models(self) -> Mapping[str, Sequence[RunRow]]:
        found: dict[str, list[RunRow]] = {}
        for row in self.rows:
            found.setdefault(row.model, []).append(row)
        return found
