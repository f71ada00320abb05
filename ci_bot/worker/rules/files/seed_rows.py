"""Which rows of a seed come, go or change, where both versions of its file are at hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmesh.core.model.seed import CsvSeedReader, CsvSettings

from ci_bot.worker.rules.files.seeds import seeds_changed, table
from ci_bot.worker.rules.inputs import RuleInputs


@dataclass(frozen=True)
class SeedRows:
    """How the rows of a seed differ.

    Attributes:
        columns: those that hold other values, in lower case, where the same rows are still there.
        added, removed: rows that the file did not have, or has no more.
    """

    columns: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0

    @property
    def sentence(self) -> str | None:
        """How the rows differ; None where there are the same ones."""
        parts = []
        if self.added:
            parts.append(f"gets {self.added:,} more row{_s(self.added)}")
        if self.removed:
            parts.append(f"loses {self.removed:,} row{_s(self.removed)}")
        return f"It {' and '.join(parts)}." if parts else None


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def compare_seed_rows(inputs: RuleInputs) -> dict[str, SeedRows]:
    """The seeds whose file changes, by fully qualified name; none whose former rows are not known.

    Prod may hold another version than the base branch: the text counts only where it has the hashes
    that prod's snapshot was built with.
    """
    found = {}
    for path, model in seeds_changed(inputs):
        old = inputs.before.get(model.fqn) if model is not None else None
        if old is None or not getattr(old, "is_seed", False):
            continue
        before, after = (table(inputs, path, model, before=side) for side in (True, False))
        if before and after and _is_content(inputs, path, old):
            rows = _difference(before, after)
            if rows is not None:
                found[model.fqn] = rows
    return found


def _is_content(inputs: RuleInputs, path: str, model: Any) -> bool:
    """Whether the file before the change is what the former seed was loaded from."""
    content = inputs.files_before(path)
    settings = model.kind.csv_settings or CsvSettings()
    try:
        text = (content or b"").decode(settings.encoding or "utf-8")
        hashes = CsvSeedReader(text, model.dialect, settings).column_hashes
    except Exception:  # pandas has many; what it cannot read is compared with nothing
        return False
    return bool(hashes == model.column_hashes)


def _difference(before: list[list[str]], after: list[list[str]]) -> SeedRows | None:
    """None where the columns of both versions cannot be told apart."""
    old, new = (_records(rows) for rows in (before, after))
    if old is None or new is None:
        return None
    common = [name for name in old.header if name in new.header]
    left, right = old.of(common), new.of(common)
    gone, come = Counter(left) - Counter(right), Counter(right) - Counter(left)
    if len(left) != len(right):
        return SeedRows((), come.total(), gone.total())
    # As many rows as before: the first that is gone became the first that is new, and so on.
    pairs = list(zip(_taken(left, gone), _taken(right, come), strict=True))
    differ = [any(one[i] != other[i] for one, other in pairs) for i in range(len(common))]
    return SeedRows(tuple(name for name, yes in zip(common, differ, strict=True) if yes))


def _taken(rows: list[tuple[str, ...]], wanted: Counter[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows that `wanted` counts, in their order in the file."""
    left = Counter(wanted)
    taken = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            taken.append(row)
    return taken


@dataclass(frozen=True)
class _Records:
    header: Mapping[str, int]
    rows: list[list[str]]

    def of(self, names: list[str]) -> list[tuple[str, ...]]:
        return [tuple(row[self.header[name]] for name in names) for row in self.rows]


def _records(rows: list[list[str]]) -> _Records | None:
    header = [name.strip().lower() for name in rows[0]]
    whole = all(len(row) == len(header) for row in rows[1:])
    return _Records(dict(zip(header, range(len(header)), strict=True)), rows[1:]) if whole else None
