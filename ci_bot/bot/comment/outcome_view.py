"""An apply's evidence as its readers ask for it. A diff of nothing is no match, and says so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ci_bot.bot.comment.text import words
from ci_bot.bot.comment.view import FAILURE_LINES
from ci_bot.contracts.documents.apply import ApplyDocument, ColumnMatch, TableDiff
from ci_bot.contracts.documents.plan_identity import PlanDifference
from ci_bot.contracts.documents.work import Work, tables_of, totals

DiffState = Literal["same", "empty", "suspect", "differs"]


class DiffView:
    """One model's data diff. Fields of the contract are read through."""

    def __init__(self, diff: TableDiff) -> None:
        self._diff = diff

    def __getattr__(self, name: str) -> Any:
        return getattr(self._diff, name)

    @property
    def state(self) -> DiffState:
        """`same` needs rows on both sides, unique keys, and equality in everything compared."""
        diff = self._diff
        if not diff.rows_prod and not diff.rows_pr:
            return "empty"
        if diff.null_keys or diff.duplicate_keys:
            return "suspect"
        counts = {diff.rows_prod, diff.rows_pr, diff.matched, diff.full_match}
        same = len(counts) == 1 and diff.only_prod == 0 and diff.only_pr == 0
        return "same" if same and self.same_schema else "differs"

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
    def equal(self) -> float | None:
        """The share of rows with the same key that agree in everything; None without such rows."""
        diff = self._diff
        if not diff.matched or diff.full_match is None:
            return None
        return diff.full_match / diff.matched

    @property
    def coverage(self) -> tuple[int, int] | None:
        """Days compared, and days that prod has; None where that is not known in days."""
        part, whole = self._diff.window, self._diff.window_of
        if part is None or whole is None:
            return None
        compared, all_days = words.days(part.start, part.end), words.days(whole.start, whole.end)
        if compared is None or not all_days:
            return None
        return round(compared), round(all_days)


@dataclass(frozen=True)
class ApplyView:
    """What the templates of an apply read."""

    doc: ApplyDocument

    @cached_property
    def compared(self) -> list[DiffView]:
        """Comparisons that were made, those that need a look first."""
        order = {"suspect": 0, "differs": 1, "empty": 2, "same": 3}
        found = [DiffView(diff) for diff in self.doc.table_diff if diff.compared]
        return sorted(found, key=lambda diff: (order[diff.state], diff.model))

    @cached_property
    def skipped(self) -> list[TableDiff]:
        return [diff for diff in self.doc.table_diff if not diff.compared]

    @property
    def differing(self) -> int:
        return sum(diff.state in ("suspect", "differs") for diff in self.compared)

    @property
    def empty(self) -> int:
        """Comparisons of nothing with nothing."""
        return sum(diff.state == "empty" for diff in self.compared)

    @property
    def coverage(self) -> tuple[int, int] | None:
        """The smallest coverage of all comparisons, because that is how far the evidence goes."""
        known = [diff.coverage for diff in self.compared if diff.coverage]
        return min(known, key=lambda pair: pair[0] / pair[1], default=None)

    @cached_property
    def built(self) -> Work:
        """What was built, counted as the review counts it."""
        return totals(self.doc.models)

    @property
    def rows(self) -> int | None:
        """Rows in all tables; unknown as soon as one of them is."""
        counts = [model.rows for model in tables_of(self.doc.models)]
        known = [rows for rows in counts if rows is not None]
        return sum(known) if known and len(known) == len(counts) else None

    @property
    def resolving(self) -> int:
        return sum(view.resolves for view in self.doc.views)

    @property
    def retries(self) -> int:
        return max(len(self.doc.attempts) - 1, 0)

    @property
    def clean(self) -> bool:
        """Whether all views resolve, no audit failed and the data was looked at; what a data diff
        found is for people to judge."""
        audits = self.doc.audits
        views = self.resolving == len(self.doc.views)
        looked = self.doc.evidence_missing is None
        return looked and views and not (audits.failed or audits.blocking_failed)

    @property
    def failure_head(self) -> tuple[str, int]:
        failure = self.doc.failure
        lines = failure.message.strip().splitlines() if failure else []
        return "\n".join(lines[:FAILURE_LINES]), max(len(lines) - FAILURE_LINES, 0)


@dataclass(frozen=True)
class Differing:
    """One entry of the set difference between two plans."""

    name: str
    how: Literal["added", "gone", "changed", "field"]


def differences(difference: PlanDifference | None) -> list[Differing]:
    """Models first (changed, new, gone), then the settings."""
    if difference is None:
        return []
    return [
        *(Differing(name, "changed") for name in difference.snapshots_changed),
        *(Differing(name, "added") for name in difference.snapshots_added),
        *(Differing(name, "gone") for name in difference.snapshots_gone),
        *(Differing(name, "field") for name in difference.fields_changed),
    ]
