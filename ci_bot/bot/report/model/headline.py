"""The one sentence about this change: what happens to data that exists today."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ci_bot.bot.report.model import words
from ci_bot.bot.report.model.past_numbers import past_numbers_sentence
from ci_bot.bot.report.model.words import listed, quoted
from ci_bot.protocol.changed_rows import past_numbers_of
from ci_bot.protocol.plan import Change, ColumnChange, totals
from ci_bot.protocol.review_report import Report
from ci_bot.protocol.rules import RULES

Subject = Literal[
    "no_plan",
    "loss",
    "past",
    "retyped",
    "forward",
    "runs",
    "columns",
    "models",
    "metadata",
    "other",
]

CHANGED_IN_RUNS = RULES["changed-in-runs"].id

_HARMLESS = {"non_breaking", "indirect_non_breaking", "metadata", None}
# What a failure of each stage means to the author.
_NO_PLAN = {
    "configuration": "the configuration cannot be read",
    "load": "the project does not load",
    "state": "the state of `prod` cannot be read",
    "plan": "SQLMesh refuses it",
}


@dataclass(frozen=True)
class Headline:
    """The sentence, whose names stand between backticks.

    Attributes:
        kind: What the sentence is about.
        models: The models that it is about.
        rest: What else the pull request does, in a few words; "" where that is nothing.
    """

    kind: Subject
    sentence: str
    models: tuple[str, ...] = ()
    rest: str = ""


def headline(report: Report, *, base_name: str | None = None) -> Headline:
    """What the pull request does to the data, weightiest first."""
    return _Change(report, quoted(base_name) if base_name else "the base branch").headline()


def owner_question(owners: Sequence[str], kind: Subject) -> str:
    """Who is asked whether the data is meant to change, or to go."""
    what = "the removal" if kind == "loss" else "that"
    if not owners:
        return f"Is {what} intended?"
    return f"{words.plural(len(owners), 'Owner')} {listed(owners)}: is {what} intended?"


class _Change:
    """The parts of a report that the sentence is made of."""

    def __init__(self, report: Report, base_name: str) -> None:
        self._report = report
        self._base_name = base_name
        self._own = [change for change in report.changes if not change.from_base]
        self._past_numbers = past_numbers_of(report)
        others = [change for change in report.changes if change.from_base]
        self._elsewhere = sum(change.lies_elsewhere for change in others)
        self._drift = len(others) - self._elsewhere

    def headline(self) -> Headline:
        if self._report.failure is not None:
            why = (
                words.CUT_OFF.get(self._report.failure.reason_code)
                or _NO_PLAN.get(self._report.failure.stage)
                or "the review stopped before it"
            )
            return Headline("no_plan", f"There is no plan: {why}.")
        found = {kind: told for kind, tell in self._tellers() if (told := tell()) is not None}
        if not found:
            return Headline("other", self._nothing())
        lead, *others = found
        rest = [self._short(kind) for kind in others]
        if self._drift:
            rest.append(f"{words.count(self._drift, 'change')} of {self._base_name}")
        if self._elsewhere:
            rest.append(self._perhaps_of_another_project())
        sentence, models = found[lead]
        return Headline(lead, sentence, tuple(models), ", ".join(rest))

    def _tellers(self) -> tuple[tuple[Subject, Callable[[], tuple[str, list[str]] | None]], ...]:
        return (
            ("loss", self._loss),
            ("past", self._past),
            ("retyped", self._retyped),
            ("forward", self._forward),
            ("runs", self._runs),
            ("columns", self._columns),
            ("models", self._models),
            ("metadata", self._metadata),
        )

    def _short(self, kind: Subject) -> str:
        """A kind that is not the lead, as an amount."""
        if kind in {"past", "runs"}:
            what, models = (
                ("past numbers of", self._past_numbers.models)
                if kind == "past"
                else ("other rows in the next runs of", self._in_runs)
            )
            return f"{what} {words.count(len(models), 'model')}"
        amounts: dict[str, tuple[int, str]] = {
            "retyped": (len(self._of_columns(_is_retyped)), "retyped column"),
            "forward": (len(self._forwarded), "forward-only change"),
            "columns": (len(self._of_columns(_is_added)), "new column"),
            "models": (len(self._of("added")), "new model"),
            "metadata": (len(self._only_metadata), "metadata-only change"),
        }
        return words.count(*amounts[kind])

    def _nothing(self) -> str:
        if self._report.restatements:
            models = [item.model for item in self._report.restatements]
            are = "is" if len(models) == 1 else "are"
            return f"No model changes; {listed(models)} {are} built again in this environment."
        edited = _names(self._of("direct"))
        if edited:
            are = "is" if len(edited) == 1 else "are"
            return f"{listed(edited)} {are} built again; no column or row is defined differently."
        if self._own:
            are = "is" if len(self._own) == 1 else "are"
            return f"{words.count(len(self._own), 'model')} {are} built again; none is edited."
        return self._nothing_of_its_own()

    def _nothing_of_its_own(self) -> str:
        if self._drift:
            others = words.count(self._drift, "model")
            differ = "differs" if self._drift == 1 else "differ"
            return f"No model changes here; {others} {differ} because of {self._base_name}."
        if self._elsewhere:
            return f"No model changes here; prod has {self._perhaps_of_another_project()}."
        if any(item.change != "unchanged" for item in self._report.statements):
            return "No model changes, but the statements that run around every plan do."
        return "No model changes."

    def _perhaps_of_another_project(self) -> str:
        models = words.count(self._elsewhere, "model")
        return f"{models} that may belong to another project"

    # ------------------------------------------------------------------ what goes

    def _loss(self) -> tuple[str, list[str]] | None:
        removed, dropped = self._of("removed"), self._of_columns(_is_dropped)
        parts = []
        if removed:
            parts.append(f"the {words.plural(len(removed), 'model')} {listed(_names(removed))}")
        if dropped:
            parts.append(self._named_columns(dropped))
        if not parts:
            return None
        models = list(dict.fromkeys([*_names(removed), *(change.model for change, _ in dropped)]))
        readers = {name for change in removed for name in change.readers}
        readers |= {name for _, column in dropped for name in column.readers}
        gone = len(removed) + len(dropped)
        return f"Removes {' and '.join(parts)}{_read_by(len(readers), gone)}.", models

    # ------------------------------------------------------------------ what is computed anew

    def _past(self) -> tuple[str, list[str]] | None:
        past = self._past_numbers
        return (past_numbers_sentence(self._report), past.models) if past.changed else None

    def _retyped(self) -> tuple[str, list[str]] | None:
        found = self._of_columns(_is_retyped)
        if not found:
            return None
        change, column = found[0]
        models = list(dict.fromkeys(change.model for change, _ in found))
        if len(found) > 1:
            return f"Changes the type of {self._named_columns(found)}.", models
        before, after = quoted(column.before or "?"), quoted(column.after or "?")
        name = f"{quoted(column.name)} in {quoted(change.model)}"
        return f"Changes the type of {name} from {before} to {after}.", models

    @cached_property
    def _forwarded(self) -> list[str]:
        edited = {change.model for change in self._of("direct")}
        return sorted(edited.intersection(self._past_numbers.keeps_history))

    def _forward(self) -> tuple[str, list[str]] | None:
        if not self._forwarded:
            return None
        name = listed(self._forwarded)
        is_or_are = "changes" if len(self._forwarded) == 1 else "change"
        return (
            f"{name} {is_or_are} for new data only: history keeps the old numbers.",
            self._forwarded,
        )

    @cached_property
    def _in_runs(self) -> list[str]:
        risks = (*self._report.risks, *self._report.set_aside)
        return sorted({risk.model for risk in risks if risk.rule == CHANGED_IN_RUNS and risk.model})

    def _runs(self) -> tuple[str, list[str]] | None:
        if not self._in_runs:
            return None
        name = listed(self._in_runs)
        return (
            f"The next runs of {name} may compute other rows; nothing is built again.",
            self._in_runs,
        )

    # ------------------------------------------------------------------ what comes

    def _columns(self) -> tuple[str, list[str]] | None:
        found = self._of_columns(_is_added)
        if not found:
            return None
        models = list(dict.fromkeys(change.model for change, _ in found))
        return f"Adds {self._named_columns(found, 'to')}{self._harmless()}.", models

    def _models(self) -> tuple[str, list[str]] | None:
        added = self._of("added")
        if not added:
            return None
        names = f"the {words.plural(len(added), 'model')} {listed(_names(added))}"
        return f"Adds {names}{self._harmless()}.", _names(added)

    @property
    def _only_metadata(self) -> list[Change]:
        return [one for one in self._of("metadata") if one.model not in self._in_runs]

    def _metadata(self) -> tuple[str, list[str]] | None:
        found = self._only_metadata
        if not found:
            return None
        only = f"Changes only the metadata of {listed(_names(found))}: no data is built again."
        return only, _names(found)

    def _harmless(self) -> str:
        """What else can be said where nothing that is there changes."""
        if self._report.prod_not_found is not None:
            return ""  # what exists today is not known
        if self._report.restatements or any(c.category not in _HARMLESS for c in self._own):
            return ""
        plan = self._report.prod_plan
        if plan is not None and not plan.would_fail and not totals(plan.full_backfill).tables:
            return "; nothing that exists today changes, and `prod` has nothing to build"
        return "; nothing that exists today changes"

    # ------------------------------------------------------------------ helpers

    def _of(self, kind: str) -> list[Change]:
        return [change for change in self._own if change.change == kind]

    def _of_columns(
        self, is_it: Callable[[ColumnChange], bool]
    ) -> list[tuple[Change, ColumnChange]]:
        edited = self._of("direct")
        return [(change, column) for change in edited for column in change.columns if is_it(column)]

    @staticmethod
    def _named_columns(
        found: Sequence[tuple[Change, ColumnChange]], preposition: str = "of"
    ) -> str:
        models = list(dict.fromkeys(change.model for change, _ in found))
        columns = [column.name for _, column in found]
        noun = words.plural(len(columns), "column")
        if len(models) == 1:
            return f"the {noun} {listed(columns)} {preposition} {quoted(models[0])}"
        return f"{words.count(len(columns), 'column')} {preposition} {listed(models)}"


def _names(changes: Sequence[Change]) -> list[str]:
    return [change.model for change in changes]


def _read_by(readers: int, gone: int) -> str:
    if not readers:
        return f"; no model of the project is known to read {'it' if gone == 1 else 'them'}"
    return f", which {words.count(readers, 'model')} still {'reads' if readers == 1 else 'read'}"


def _is_dropped(column: ColumnChange) -> bool:
    return column.before is not None and column.after is None


def _is_retyped(column: ColumnChange) -> bool:
    return column.before is not None and column.after is not None


def _is_added(column: ColumnChange) -> bool:
    return column.before is None


# What a review was compared with, where that is not the prod of a state that was read.


@dataclass(frozen=True)
class BaselineNotice:
    """The first thing that a reader has to know. Names stand between backticks.

    Attributes:
        lead: What is the matter, in a few words.
        rest: The rest of that sentence, and those that follow.
        expected: Whether nothing is wrong with it, as with a first deployment.
    """

    lead: str
    rest: str
    expected: bool = False

    def text(self) -> str:
        """All of it, without emphasis."""
        return f"{self.lead}{self.rest}"


def compared_with(report: Report) -> str:
    """The output `compared-with`: `prod`, `base-branch` or `nothing`."""
    names = {"state": "prod", "base-branch": "base-branch", "empty": "nothing"}
    if report.prod_not_found is not None and report.baseline == "state":
        return "nothing"  # what other projects have there
    return names[report.baseline]


def baseline_notice(report: Report) -> BaselineNotice | None:
    """None where the review was compared with prod as its state has it."""
    missing = report.prod_not_found
    if missing is not None:
        found = f" in the state ({missing.state}): {missing.why}."
        if missing.first_deployment is not None:
            why = (
                "The base branch has no models either."
                if missing.first_deployment == "base-without-models"
                else "`baseline: state` was chosen by name, so that is taken for right."
            )
            return BaselineNotice(
                "First deployment", f": no `prod` was found{found} {why}", expected=True
            )
        so = (
            "So this compares with the base branch."
            if report.baseline == "base-branch"
            else "There is no base branch to compare with either: every model counts as new, and "
            "what this change does to existing data is not known."
        )
        return BaselineNotice("No `prod` was found", f"{found} {so} {missing.hint}")
    failure = report.state_failure
    if failure is not None:
        why = f"{failure.message} {failure.hint or ''}".strip()
        return BaselineNotice(
            "The state of `prod` was not read", f", so this compares with the base branch: {why}"
        )
    return None
