"""An apply's evidence, in the forms in which its readers need it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model import sentences
from ci_bot.bot.report.model.sentences import Data, DiffView
from ci_bot.bot.report.model.view import take_first_lines_of_failure
from ci_bot.protocol.apply_report import (
    AppliedModel,
    ApplyDocument,
    ColumnMatch,
    ModelAudit,
    TableDiff,
)
from ci_bot.protocol.plan import Work, select_tables, sum_planned_work
from ci_bot.protocol.plan_identity import PlanDifference


@dataclass(frozen=True)
class DiffRowView:
    """A row of the table, for one model; `rows_changed` is None if it was not compared."""

    diff: TableDiff | DiffView
    model_name: SafeMarkdown
    what_changed: SafeMarkdown | None = None
    rows_changed: SafeMarkdown | None = None


@dataclass(frozen=True)
class ColumnRowView:
    """A column's change; `share` is the share of rows in which it changed."""

    model: str
    column: ColumnMatch
    share: float | None
    how: SafeMarkdown


@dataclass(frozen=True)
class FailedModelAuditView:
    """A blocking audit that failed, and the model whose new table it checked."""

    model: AppliedModel
    audit: ModelAudit


@dataclass(frozen=True)
class ApplyView:
    """The view that the templates of an apply read."""

    doc: ApplyDocument

    @cached_property
    def compared(self) -> list[DiffView]:
        """The comparisons that were made, in the order in which they need attention.

        If two need it equally, a model that the pull request changes comes before one that only
        reads it.
        """
        order = {"suspect": 0, "differs": 1, "empty": 2, "same": 3}
        found = [DiffView(diff) for diff in self.doc.table_diff if diff.compared]
        return sorted(
            found,
            key=lambda diff: (
                order[diff.state],
                diff.direct is False,
                -(diff.changed_share or 0.0),
                diff.model,
            ),
        )

    @cached_property
    def skipped(self) -> list[TableDiff]:
        return [diff for diff in self.doc.table_diff if not diff.compared]

    @cached_property
    def differing(self) -> list[DiffView]:
        return [diff for diff in self.compared if diff.state in ("suspect", "differs")]

    @cached_property
    def data(self) -> Data:
        """What the data says, as a whole."""
        if self.doc.evidence_missing:
            return "unseen"
        if self.differing:
            return "suspect" if self.differing[0].state == "suspect" else "differs"
        same = [diff for diff in self.compared if diff.state == "same"]
        if not same:
            return "nothing"
        # If only a part of the history or of the models was compared, not all data is the same.
        whole = (
            all(diff.complete for diff in same)
            and not self.empty_comparisons
            and not self._left_out
        )
        return "same" if whole else "part"

    @property
    def _left_out(self) -> bool:
        """Whether a model was not compared although prod has data of it that may differ."""
        return any(not diff.nothing_to_compare for diff in self.skipped)

    @property
    def heading(self) -> SafeMarkdown:
        if self.data == "suspect":
            return SafeMarkdown(self.differing[0].key_fault)
        return SafeMarkdown(sentences.HEADINGS[self.data])

    @property
    def sentence(self) -> SafeMarkdown | None:
        """What the data says in one sentence; None if it says nothing."""
        if self.differing and self.data != "unseen":
            return sentences.describe_main_difference(self.differing[0])
        same = [diff for diff in self.compared if diff.state == "same"]
        return sentences.describe_all_same_in_view(same) if same else None

    @property
    def rows_of_diff(self) -> list[DiffRowView]:
        return [
            *(
                DiffRowView(
                    diff,
                    sentences.wrap_model_name_in_view(diff.model),
                    sentences.describe_changed_columns_of_diff(diff),
                    sentences.render_row_bar(diff),
                )
                for diff in self.compared
            ),
            *(
                DiffRowView(diff, sentences.wrap_model_name_in_view(diff.model))
                for diff in self.skipped
            ),
        ]

    @property
    def columns(self) -> list[ColumnRowView]:
        """Columns that differ and were profiled, in the order of their models."""
        return [
            ColumnRowView(
                diff.model,
                column,
                _get_column_share(column),
                sentences.describe_value_change(column, (diff.rows_prod or 0, diff.rows_pr or 0)),
            )
            for diff in self.differing
            for column in diff.unequal_columns
            if column.prod is not None
        ]

    @property
    def blocking_audits(self) -> list[SafeMarkdown]:
        """Those that stopped the apply, by name."""
        return sentences.list_failed_audits(self.doc.models, blocking=True)

    @property
    def warning_audits(self) -> list[SafeMarkdown]:
        return sentences.list_failed_audits(self.doc.models, blocking=False)

    @property
    def first_view(self) -> str | None:
        """The view to open first: that of the model that differs most, else the first one."""
        shown = [item.view for item in self.doc.views]
        model = next((diff.model for diff in self.compared), "").rpartition(".")[2]
        fitting = (view for view in shown if view.rpartition(".")[2].startswith(model))
        return next(fitting, None) or next(iter(shown), None)

    @property
    def as_planned(self) -> bool:
        """Whether exactly the expected work was built, and nothing failed."""
        expected, built = self.doc.estimate, self.built_work
        if expected is None or self.doc.failure is not None:
            return False
        return (built.intervals, built.batches) == (expected.intervals, expected.batches)

    @property
    def empty_comparisons(self) -> int:
        """How many comparisons had no rows on either side."""
        return sum(diff.state == "empty" for diff in self.compared)

    @property
    def coverage(self) -> tuple[int, int] | None:
        """The smallest coverage of all comparisons: the evidence goes no further than that."""
        known = [diff.coverage for diff in self.compared if diff.coverage]
        return min(known, key=lambda pair: pair[0] / pair[1], default=None)

    @cached_property
    def built_work(self) -> Work:
        """What was built, counted in the same way as in the review."""
        return sum_planned_work(self.doc.models)

    @property
    def rows(self) -> int | None:
        """The number of rows in all tables; None if it is not known for one of them."""
        counts = [model.rows for model in select_tables(self.doc.models)]
        known = [rows for rows in counts if rows is not None]
        return sum(known) if known and len(known) == len(counts) else None

    @property
    def resolving_views(self) -> int:
        return sum(view.resolves for view in self.doc.views)

    @property
    def retries(self) -> int:
        return max(len(self.doc.attempts) - 1, 0)

    @property
    def is_clean(self) -> bool:
        """Whether everything is in order, so that nobody has to judge anything.

        All views resolve, no audit failed, the data was checked, and the data diff found no
        difference.
        """
        audits = self.doc.audits
        views = self.resolving_views == len(self.doc.views)
        has_evidence = self.doc.evidence_missing is None
        calm = self.data not in ("differs", "suspect")
        return has_evidence and views and calm and not (audits.failed or audits.blocking_failed)

    @property
    def failure_head(self) -> tuple[str, int]:
        return take_first_lines_of_failure(self.doc.failure)

    @cached_property
    def failed_audit(self) -> FailedModelAuditView | None:
        """The audit that stopped the apply, or the first of several; None if no audit did."""
        found = [
            FailedModelAuditView(model, audit)
            for model in self.doc.models
            for audit in model.audits
            if audit.blocking and audit.status == "failed"
        ]
        return found[0] if found and self.doc.failure is not None else None

    @property
    def is_explained_by_audit(self) -> bool:
        """Whether SQLMesh's message says only which audits failed."""
        text, more = self.failure_head
        return self.failed_audit is not None and not more and text.startswith("Audits failed:")


def _get_column_share(column: ColumnMatch) -> float | None:
    return None if column.match_rate is None else 1 - column.match_rate


@dataclass(frozen=True)
class DifferingEntryView:
    """One kind of difference between two plans: some models, or some settings."""

    names: tuple[str, ...]
    how: Literal["added", "gone", "changed", "field"]


def list_plan_differences(difference: PlanDifference | None) -> list[DifferingEntryView]:
    """Lists the differences, those that explain the others first.

    These are a new model, a removed model, or a setting. The models that only have another version
    mostly follow from these, so they share one entry.
    """
    if difference is None:
        return []
    changed = tuple(difference.snapshots_changed)
    return [
        *(DifferingEntryView((name,), "added") for name in difference.snapshots_added),
        *(DifferingEntryView((name,), "gone") for name in difference.snapshots_gone),
        *(DifferingEntryView((name,), "field") for name in difference.fields_changed),
        *([DifferingEntryView(changed, "changed")] if changed else []),
    ]
