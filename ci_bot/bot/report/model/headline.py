"""The one sentence about this change: what happens to the data that exists today."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ci_bot.bot.report import words
from ci_bot.bot.report.model.changed_rows import read_past_numbers
from ci_bot.bot.report.model.sentences import SENTENCES, describe_past_numbers
from ci_bot.bot.report.words import list_names
from ci_bot.protocol.plan import Change, ColumnChange, sum_planned_work
from ci_bot.protocol.reasons import OF_THE_WORKER
from ci_bot.protocol.review_inputs import ProdRestatement, describe_range_of_restatement_document
from ci_bot.protocol.review_report import Report
from ci_bot.protocol.rules import RULES, quote_name

_WITH_BASE = "so this compares with the base branch"

Subject = Literal[
    "no_plan",
    "loss",
    "past",
    "retyped",
    "forward",
    "runs",
    "restated",
    "columns",
    "models",
    "metadata",
    "other",
]

CHANGED_IN_RUNS = RULES["changed-in-runs"].id

# From this many intervals on, the headline of a Go says how much prod builds; in one daily table
# this is almost three years.
_LARGE_BUILD = 1_000
_HARMLESS = {"non_breaking", "indirect_non_breaking", "metadata", None}
# What a failure in each stage means for the author.
_NO_PLAN = {
    "configuration": OF_THE_WORKER["bad_config"],
    "load": "the project does not load",
    "state": "the state of `prod` cannot be read",
    "plan": "SQLMesh refuses it",
}


@dataclass(frozen=True)
class HeadlineView:
    """The sentence; names in it are between backticks.

    Attributes:
        kind: What the sentence is about.
        models: The models that it is about.
        rest: What else the pull request does, in a few words; "" if it does nothing else.
    """

    kind: Subject
    sentence: str
    models: tuple[str, ...] = ()
    rest: str = ""


def make_headline_view(report: Report, *, base_name: str | None = None) -> HeadlineView:
    """Says what the pull request does to the data, the heaviest effect first."""
    return _HeadlineViewFacts(
        report, quote_name(base_name) if base_name else "the base branch"
    ).make_headline()


def ask_owners_in_headline_view(owners: Sequence[str], kind: Subject) -> str:
    """Asks the owners whether the change or the removal of the data is intended."""
    what = "the removal" if kind == "loss" else "that"
    if not owners:
        return f"Is {what} intended?"
    return f"{describe_owners_in_headline_view(owners)}: is {what} intended?"


def describe_owners_in_headline_view(owners: Sequence[str]) -> str:
    """Returns "Owner `a`", "Owners `a` and `b`"; "" if there are none."""
    return f"{words.pluralize(len(owners), 'Owner')} {list_names(owners)}" if owners else ""


class _HeadlineViewFacts:
    """The parts of a report from which the sentence is made."""

    def __init__(self, report: Report, base_name: str) -> None:
        self._report = report
        self._base_name = base_name
        self._own = [change for change in report.changes if not change.from_base]
        self._past_numbers = read_past_numbers(report)
        others = [change for change in report.changes if change.from_base]
        self._elsewhere = sum(change.lies_elsewhere for change in others)
        self._drift = len(others) - self._elsewhere

    def make_headline(self) -> HeadlineView:
        if self._report.failure is not None:
            why = (
                words.CUT_OFF.get(self._report.failure.reason_code)
                or _NO_PLAN.get(self._report.failure.stage)
                or "the review stopped before it"
            )
            return HeadlineView("no_plan", f"There is no plan: {why}.")
        found = {
            kind: described
            for kind, describe in self._list_describers()
            if (described := describe()) is not None
        }
        if not found:
            return HeadlineView("other", self._describe_nothing())
        lead, *others = found
        rest = [self._describe_in_short(kind) for kind in others]
        if self._drift:
            rest.append(f"{words.format_count(self._drift, 'change')} of {self._base_name}")
        if self._elsewhere:
            rest.append(self._describe_other_projects())
        sentence, models = found[lead]
        if self._report.decision == "go":
            sentence = f"{sentence.removesuffix('.')}{self._describe_large_build()}."
        return HeadlineView(lead, sentence, tuple(models), ", ".join(rest))

    def _list_describers(
        self,
    ) -> tuple[tuple[Subject, Callable[[], tuple[str, list[str]] | None]], ...]:
        return (
            ("loss", self._describe_loss),
            ("past", self._describe_past_numbers),
            ("retyped", self._describe_retyped),
            ("forward", self._describe_forward_only),
            ("runs", self._describe_runs),
            ("restated", self._describe_restated),
            ("columns", self._describe_columns),
            ("models", self._describe_models),
            ("metadata", self._describe_metadata),
        )

    def _describe_in_short(self, kind: Subject) -> str:
        """Describes a kind that is not the main one, as an amount."""
        if kind in {"past", "runs"}:
            what, models = (
                ("past numbers of", self._past_numbers.models)
                if kind == "past"
                else ("other rows in the next runs of", self._in_runs)
            )
            return f"{what} {words.format_count(len(models), 'model')}"
        amounts: dict[str, tuple[int, str]] = {
            "retyped": (
                len(self._list_column_changes(_is_column_retyped)),
                "retyped column",
            ),
            "forward": (len(self._forward_only_models), "forward-only change"),
            "restated": (len(self._planned_restatements), "restatement of `prod`"),
            "columns": (len(self._list_column_changes(_is_column_added)), "new column"),
            "models": (len(self._changes_of_kind("added")), "new model"),
            "metadata": (len(self._only_metadata), "metadata-only change"),
        }
        return words.format_count(*amounts[kind])

    def _describe_nothing(self) -> str:
        if self._report.restatements:
            models = [item.model for item in self._report.restatements]
            are = "is" if len(models) == 1 else "are"
            return f"No model changes; {list_names(models)} {are} built again in this environment."
        edited = _name_models_of_changes(self._changes_of_kind("direct"))
        if edited:
            are = "is" if len(edited) == 1 else "are"
            return (
                f"{list_names(edited)} {are} built again; no column or row is defined differently."
            )
        if self._own:
            are = "is" if len(self._own) == 1 else "are"
            return (
                f"{words.format_count(len(self._own), 'model')} {are} built again; none is edited."
            )
        return self._describe_no_own_change()

    def _describe_no_own_change(self) -> str:
        if self._drift:
            others = words.format_count(self._drift, "model")
            differ = "differs" if self._drift == 1 else "differ"
            return f"No model changes here; {others} {differ} because of {self._base_name}."
        if self._elsewhere:
            return f"No model changes here; prod has {self._describe_other_projects()}."
        if any(item.change != "unchanged" for item in self._report.statements):
            return "No model changes, but the statements that run around every plan do."
        return "No model changes."

    def _describe_other_projects(self) -> str:
        models = words.format_count(self._elsewhere, "model")
        return f"{models} that may belong to another project"

    # ------------------------------------------------------------------ what is removed

    def _describe_loss(self) -> tuple[str, list[str]] | None:
        removed = self._changes_of_kind("removed")
        dropped = self._list_column_changes(_is_column_dropped)
        parts = []
        if removed:
            parts.append(
                f"the {words.pluralize(len(removed), 'model')} "
                f"{list_names(_name_models_of_changes(removed))}"
            )
        if dropped:
            parts.append(self._quote_columns(dropped))
        if not parts:
            return None
        models = list(
            dict.fromkeys(
                [*_name_models_of_changes(removed), *(change.model for change, _ in dropped)]
            )
        )
        readers = {name for change in removed for name in change.readers}
        readers |= {name for _, column in dropped for name in column.readers}
        gone = len(removed) + len(dropped)
        return f"Removes {' and '.join(parts)}{_list_read_tables(len(readers), gone)}.", models

    # ------------------------------------------------------------------ what is computed again

    def _describe_past_numbers(self) -> tuple[str, list[str]] | None:
        past = self._past_numbers
        return (describe_past_numbers(self._report), past.models) if past.changed else None

    def _describe_retyped(self) -> tuple[str, list[str]] | None:
        found = self._list_column_changes(_is_column_retyped)
        if not found:
            return None
        change, column = found[0]
        models = list(dict.fromkeys(change.model for change, _ in found))
        if len(found) > 1:
            return f"Changes the type of {self._quote_columns(found)}.", models
        before, after = quote_name(column.before or "?"), quote_name(column.after or "?")
        name = f"{quote_name(column.name)} in {quote_name(change.model)}"
        return f"Changes the type of {name} from {before} to {after}.", models

    @cached_property
    def _forward_only_models(self) -> list[str]:
        edited = {change.model for change in self._changes_of_kind("direct")}
        return sorted(edited.intersection(self._past_numbers.keeps_history))

    def _describe_forward_only(self) -> tuple[str, list[str]] | None:
        if not self._forward_only_models:
            return None
        name = list_names(self._forward_only_models)
        is_or_are = "changes" if len(self._forward_only_models) == 1 else "change"
        return (
            f"{name} {is_or_are} for new data only: history keeps the old numbers.",
            self._forward_only_models,
        )

    @cached_property
    def _in_runs(self) -> list[str]:
        risks = (*self._report.risks, *self._report.set_aside)
        return sorted({risk.model for risk in risks if risk.rule == CHANGED_IN_RUNS and risk.model})

    def _describe_runs(self) -> tuple[str, list[str]] | None:
        if not self._in_runs:
            return None
        name = list_names(self._in_runs)
        return (
            f"The next runs of {name} may compute other rows; nothing is built again.",
            self._in_runs,
        )

    @property
    def _planned_restatements(self) -> list[ProdRestatement]:
        """What owners asked prod to build again, if a deployment will do so."""
        return [item for item in self._report.prod_restatements if item.problem is None]

    def _describe_restated(self) -> tuple[str, list[str]] | None:
        held = self._planned_restatements
        models = [item.recorded.model for item in held]
        if not models:
            return None
        if len(held) == 1:
            what = _describe_restated_model(held[0])
        else:
            what = f"{list_names(models)} again, and what reads them"
        askers = words.describe_askers(item.recorded.by for item in held)
        return f"After the merge `prod` builds {what}, as {askers}.", models

    # ------------------------------------------------------------------ what is new

    def _describe_columns(self) -> tuple[str, list[str]] | None:
        found = self._list_column_changes(_is_column_added)
        if not found:
            return None
        models = list(dict.fromkeys(change.model for change, _ in found))
        return f"Adds {self._quote_columns(found, 'to')}{self._describe_harmless()}.", models

    def _describe_models(self) -> tuple[str, list[str]] | None:
        added = self._changes_of_kind("added")
        if not added:
            return None
        models = list_names(_name_models_of_changes(added))
        names = f"the {words.pluralize(len(added), 'model')} {models}"
        return f"Adds {names}{self._describe_harmless()}.", _name_models_of_changes(added)

    @property
    def _only_metadata(self) -> list[Change]:
        return [one for one in self._changes_of_kind("metadata") if one.model not in self._in_runs]

    def _describe_metadata(self) -> tuple[str, list[str]] | None:
        found = self._only_metadata
        if not found:
            return None
        only = f"Changes only the metadata of {list_names(_name_models_of_changes(found))}"
        only += "." if self._report.prod_restatements else ": no data is built again."
        return only, _name_models_of_changes(found)

    def _describe_harmless(self) -> str:
        """Says what else is known if nothing that exists today changes; "" if that is not known."""
        if self._report.prod_not_found is not None:
            return ""  # what exists today is not known
        if self._report.restatements or any(c.category not in _HARMLESS for c in self._own):
            return ""
        if self._report.prod_restatements:
            return ""  # rows that exist today are built again
        plan = self._report.prod_plan
        if (
            plan is not None
            and not plan.would_fail
            and not sum_planned_work(plan.full_backfill).tables
        ):
            return "; nothing that exists today changes, and `prod` has nothing to build"
        return "; nothing that exists today changes"

    def _describe_large_build(self) -> str:
        """Says how much prod builds, if it is much; a reader needs to know it before the merge."""
        plan = self._report.prod_plan
        if plan is None or plan.would_fail or self._report.prod_not_found is not None:
            return ""
        intervals = sum_planned_work(plan.full_backfill).intervals
        if intervals < _LARGE_BUILD:
            return ""
        return f", but `prod` builds {words.format_count(intervals, 'interval')} after the merge"

    # ------------------------------------------------------------------ helpers

    def _changes_of_kind(self, kind: str) -> list[Change]:
        return [change for change in self._own if change.change == kind]

    def _list_column_changes(
        self, is_it: Callable[[ColumnChange], bool]
    ) -> list[tuple[Change, ColumnChange]]:
        edited = self._changes_of_kind("direct")
        return [(change, column) for change in edited for column in change.columns if is_it(column)]

    @staticmethod
    def _quote_columns(
        found: Sequence[tuple[Change, ColumnChange]], preposition: str = "of"
    ) -> str:
        models = list(dict.fromkeys(change.model for change, _ in found))
        columns = [column.name for _, column in found]
        noun = words.pluralize(len(columns), "column")
        if len(models) == 1:
            return f"the {noun} {list_names(columns)} {preposition} {quote_name(models[0])}"
        return f"{words.format_count(len(columns), 'column')} {preposition} {list_names(models)}"


def _name_models_of_changes(changes: Sequence[Change]) -> list[str]:
    return [change.model for change in changes]


def _describe_restated_model(item: ProdRestatement) -> str:
    """Says what one restatement builds again, and for which dates, to follow "prod builds"."""
    name = quote_name(item.recorded.model)
    span = describe_range_of_restatement_document(item.recorded)
    readers = len({work.model for work in item.work} - {item.recorded.model})
    reading = f"{words.format_count(readers, 'model')} that {'reads' if readers == 1 else 'read'}"
    # An external or embedded model has no table: its restatement restates what reads it.
    if all(work.model != item.recorded.model for work in item.work):
        return f"{reading} {name} again {span}"
    return f"{name} again {span}" + (f", and {reading} it" if readers else "")


def _list_read_tables(readers: int, gone: int) -> str:
    if not readers:
        return f"; {SENTENCES.known_readers} {'it' if gone == 1 else 'them'}"
    return (
        f", which {words.format_count(readers, 'model')} still "
        f"{'reads' if readers == 1 else 'read'}"
    )


def _is_column_dropped(column: ColumnChange) -> bool:
    return column.before is not None and column.after is None


def _is_column_retyped(column: ColumnChange) -> bool:
    return column.before is not None and column.after is not None


def _is_column_added(column: ColumnChange) -> bool:
    return column.before is None


# What a review was compared with, if that is not prod as its state has it.


@dataclass(frozen=True)
class BaselineNoticeView:
    """The first thing that a reader has to know; names in it are between backticks.

    Attributes:
        lead: The problem or the special case, in a few words.
        rest: The rest of that sentence, and the sentences that follow.
        advice: What to check if that is wrong; may be empty.
        expected: Whether it is no problem, for example at a first deployment.
    """

    lead: str
    rest: str
    advice: str = ""
    expected: bool = False

    def render_unmarked(self) -> str:
        """Returns all of it, without emphasis."""
        return f"{self.lead}{self.rest} {self.advice}".rstrip()

    def render_short(self) -> str:
        """Returns the problem, without advice, emphasis and backticks."""
        return f"{self.lead}{self.rest}".replace("`", "")


def describe_baseline_in_view(report: Report) -> str:
    """Returns the output `compared-with`: `prod`, `base-branch` or `nothing`."""
    names = {"state": "prod", "base-branch": "base-branch", "empty": "nothing"}
    if report.prod_not_found is not None and report.baseline == "state":
        return "nothing"  # what other projects have there
    return names[report.baseline]


def make_baseline_notice_view(report: Report) -> BaselineNoticeView | None:
    """Makes the notice; None if the review was compared with prod as its state has it."""
    missing = report.prod_not_found
    if missing is not None:
        found = f" in the state ({missing.state}): {missing.why}."
        if missing.first_deployment is not None:
            why = (
                "The base branch has no models either."
                if missing.first_deployment == "base-without-models"
                else "`baseline: state` was chosen by name, so that is taken for right."
            )
            return BaselineNoticeView(
                "First deployment", f": no `prod` was found{found} {why}", expected=True
            )
        so = (
            f"S{_WITH_BASE[1:]}."
            if report.baseline == "base-branch"
            else "There is no base branch to compare with either: every model counts as new, and "
            "what this change does to existing data is not known."
        )
        return BaselineNoticeView("No `prod` was found", f"{found} {so}", missing.hint)
    failure = report.state_failure
    if failure is not None:
        return BaselineNoticeView(
            "The state of `prod` was not read",
            f", {_WITH_BASE}: {failure.message}",
            failure.hint or "",
        )
    return None
