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
        new: The tables that the plan makes anew, by their models: what they will hold is what the
            plan and the ledger's applies put into them. It is not so of prod's tables, which
            SQLMesh's own runs fill, and of previews, of which one version can have several.
        rows: The ledger's runs of the models of the plan.
        tables: By model that is computed whole, the models whose tables it reads, those behind
            views included.
    """

    new: Mapping[str, Backfill]
    rows: Sequence[RunRow]
    tables: Mapping[str, frozenset[str]]

    def growth(self, run: RunRow) -> float:
        """By what factor a model will read more than in `run`; 1.0 where nothing tells.

        Only where the plan makes, and the run's own apply has built, a table that it reads. What it
        read of others stays: the bytes that it read beyond those that were written then.
        """
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
        item = self.new.get(row.model)
        if item is None:
            return None
        if row.model in self.tables:
            return self.growth(row)
        runs = self._models[row.model]
        same = [run for run in runs if run.version == row.version]
        if any(run.environment != row.environment for run in same):
            return None  # each of them may have had a preview of its own
        then = sum(run.intervals for run in same if run.at <= row.at)
        # A table's name ends with its version.
        version = item.table.rpartition("__")[2].strip('`"')
        there = sum(run.intervals for run in runs if run.version == version)
        return (item.intervals + there) / then if then else None

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
