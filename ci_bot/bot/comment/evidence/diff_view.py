"""One model's data diff as its readers ask for it. A diff of nothing is no match, and says so."""

from __future__ import annotations

from typing import Any, Literal

from ci_bot.contracts.documents.apply import ColumnMatch, TableDiff
from ci_bot.contracts.durations import days_between

DiffState = Literal["same", "empty", "suspect", "differs"]


class DiffView:
    """Fields of the contract are read through."""

    def __init__(self, diff: TableDiff) -> None:
        self._diff = diff

    def __getattr__(self, name: str) -> Any:
        return getattr(self._diff, name)

    @property
    def state(self) -> DiffState:
        """`same` needs rows on both sides, unique keys, and equality in all that prod has; a column
        that is new takes nothing away from it."""
        diff = self._diff
        if not diff.rows_prod and not diff.rows_pr:
            return "empty"
        if diff.null_keys or diff.duplicate_keys:
            return "suspect"
        counts = {diff.rows_prod, diff.rows_pr, diff.matched, diff.full_match}
        same = len(counts) == 1 and diff.only_prod == 0 and diff.only_pr == 0
        kept = not (diff.schema_.removed or diff.schema_.changed)
        return "same" if same and kept else "differs"

    @property
    def key_fault(self) -> str:
        """Why its rows cannot be paired, in a few words: a row without a key is no second one."""
        return "keys are not unique" if self._diff.duplicate_keys else "rows without a key"

    @property
    def same_schema(self) -> bool:
        schema = self._diff.schema_
        return not (schema.added or schema.removed or schema.changed)

    @property
    def unequal(self) -> list[ColumnMatch]:
        """The columns that differ somewhere, worst first."""
        return sorted(
            (column for column in self._diff.columns if column.match_rate != 1.0),
            key=lambda column: (column.match_rate or 0.0, column.name),
        )

    @property
    def changed(self) -> float | None:
        """The share of rows with the same key that differ in a column; None without such rows."""
        diff = self._diff
        if not diff.matched or diff.full_match is None:
            return None
        return (diff.matched - diff.full_match) / diff.matched

    @property
    def coverage(self) -> tuple[int, int] | None:
        """Days compared, and days that prod has; None where that is not known in days."""
        part, whole = self._diff.window, self._diff.window_of
        if part is None or whole is None:
            return None
        compared, all_days = (days_between(one.start, one.end) for one in (part, whole))
        if compared is None or not all_days:
            return None
        return round(compared), round(all_days)
