"""The one sentence about this change: what happens to data that exists today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ci_bot.bot.comment.first_screen.forward_only import forward_only_models
from ci_bot.bot.comment.text import words
from ci_bot.contracts.documents.plan import Change, ColumnChange
from ci_bot.contracts.documents.report import Report
from ci_bot.contracts.documents.work import totals
from ci_bot.contracts.lineage.impact import ChangedPart

Kind = Literal[
    "no_plan", "loss", "past", "retyped", "forward", "columns", "models", "metadata", "other"
]

_NAMED = 2
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

    kind: Kind
    sentence: str
    models: tuple[str, ...] = ()
    rest: str = ""


def headline(report: Report, *, base_name: str | None = None) -> Headline:
    """What the pull request does to the data, weightiest first."""
    return _Change(report, _quoted(base_name) if base_name else "the base branch").headline()


def owner_question(owners: Sequence[str]) -> str:
    """Who is asked whether the data is meant to change."""
    if not owners:
        return "Is that intended?"
    return f"{words.plural(len(owners), 'Owner')} {listed(owners)}: is that intended?"


def listed(names: Sequence[str], shown: int = _NAMED) -> str:
    """ "`a`", "`a` and `b`", "`a`, `b` and 3 more"."""
    quoted = [_quoted(name) for name in names[:shown]]
    more = len(names) - shown
    if more > 0:
        return f"{', '.join(quoted)} and {words.number(more)} more"
    return " and ".join(quoted) if len(quoted) <= _NAMED else ", ".join(quoted)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', chr(39))}`"


class _Change:
    """The parts of a report that the sentence is made of."""

    def __init__(self, report: Report, base_name: str) -> None:
        self._report = report
        self._base_name = base_name
        self._own = [change for change in report.changes if not change.from_base]
        self._drift = len(report.changes) - len(self._own)

    def headline(self) -> Headline:
        if self._report.failure is not None:
            why = _NO_PLAN.get(self._report.failure.stage, "the review stopped before it")
            return Headline("no_plan", f"There is no plan: {why}.")
        found = {kind: told for kind, tell in self._tellers() if (told := tell()) is not None}
        if not found:
            return Headline("other", self._nothing())
        lead, *others = found
        rest = [self._short(kind) for kind in others]
        if self._drift:
            rest.append(f"{words.count(self._drift, 'change')} of {self._base_name}")
        sentence, models = found[lead]
        return Headline(lead, sentence, tuple(models), ", ".join(rest))

    def _tellers(self) -> tuple[tuple[Kind, Callable[[], tuple[str, list[str]] | None]], ...]:
        return (
            ("loss", self._loss),
            ("past", self._past),
            ("retyped", self._retyped),
            ("forward", self._forward),
            ("columns", self._columns),
            ("models", self._models),
            ("metadata", self._metadata),
        )

    def _short(self, kind: Kind) -> str:
        """A kind that is not the lead, as an amount."""
        if kind == "past":
            return f"past numbers of {words.count(len(self._rebuilt), 'model')}"
        if kind == "retyped":
            return words.count(len(self._of_columns(_is_retyped)), "retyped column")
        if kind == "forward":
            return words.count(len(self._forwarded), "forward-only change")
        if kind == "columns":
            return words.count(len(self._of_columns(_is_added)), "new column")
        if kind == "models":
            return words.count(len(self._of("added")), "new model")
        return words.count(len(self._of("metadata")), "metadata-only change")

    def _nothing(self) -> str:
        if self._report.restatements:
            models = [item.model for item in self._report.restatements]
            are = "is" if len(models) == 1 else "are"
            return f"No model changes; {listed(models)} {are} built again in this environment."
        if self._own:
            are = "is" if len(self._own) == 1 else "are"
            return f"{words.count(len(self._own), 'model')} {are} built again; none is edited."
        if self._drift:
            others = words.count(self._drift, "model")
            differ = "differs" if self._drift == 1 else "differ"
            return f"No model changes here; {others} {differ} because of {self._base_name}."
        if any(item.change != "unchanged" for item in self._report.statements):
            return "No model changes, but the statements that run around every plan do."
        return "No model changes."

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
        return f"Removes {' and '.join(parts)}{_read_by(len(readers))}.", models

    # ------------------------------------------------------------------ what is computed anew

    @cached_property
    def _rebuilt(self) -> list[str]:
        """Models whose existing rows come out differently, as far as anybody can tell."""
        by_rebuild = {
            change.model
            for change in self._own
            if change.change == "direct" and change.category in ("breaking", "uncategorized")
        }
        parts = {part.model for part in self._parts if part.how in ("computed", "rows")}
        told = {part.model for part in self._report.impact.changed}
        # A breaking change of which the columns tell all is told by them.
        harmless = {model for model in by_rebuild & told if not self._may_differ(model)}
        direct = {change.model for change in self._of("direct")} - self._kept
        return sorted(((by_rebuild - harmless) | parts) & direct)

    def _may_differ(self, model: str) -> bool:
        hows = {part.how for part in self._report.impact.changed if part.model == model}
        return bool(hows & {"computed", "rows", "unknown"})

    @property
    def _parts(self) -> list[ChangedPart]:
        return list(self._report.impact.changed)

    @cached_property
    def _kept(self) -> frozenset[str]:
        return forward_only_models(self._report)

    def _past(self) -> tuple[str, list[str]] | None:
        if not self._rebuilt:
            return None
        sure = {part.model for part in self._parts if part.how in ("computed", "rows")}
        change = "Past numbers change" if set(self._rebuilt) <= sure else "Past numbers may change"
        return f"{change}: {self._what()}{self._followed(self._rebuilt)}.", self._rebuilt

    def _what(self) -> str:
        if len(self._rebuilt) > 1:
            return f"{listed(self._rebuilt)} are computed differently"
        [model] = self._rebuilt
        mine = [part for part in self._parts if part.model == model]
        columns = [part.column for part in mine if part.how == "computed" and part.column]
        history = " for all of its history" if model in self._whole_history else ""
        if columns:
            are = "is" if len(columns) == 1 else "are"
            what = f"{listed(columns)} in {_quoted(model)} {are} computed differently{history}"
            return f"{what}, with other rows" if any(p.how == "rows" for p in mine) else what
        if any(part.how == "rows" for part in mine):
            return f"{_quoted(model)} gets other rows{history}"
        if any(part.how == "unknown" for part in mine):
            return f"what changes in {_quoted(model)} cannot be told"
        return f"{_quoted(model)} is computed anew{history}"

    @cached_property
    def _whole_history(self) -> frozenset[str]:
        plan = self._report.prod_plan
        built = plan.full_backfill if plan else []
        return frozenset(item.model for item in built if item.action == "incremental")

    def _followed(self, models: Iterable[str]) -> str:
        """How many models depend on these."""
        impact, lead = self._report.impact, set(models)
        parts = [part for part in impact.changed if part.model in lead and part.how != "added"]
        known = {model.model for part in parts for model in part.reached} - lead
        more = max((part.more_models for part in parts), default=0)
        unknown = {item.model for item in impact.indirect if item.reached == "unknown"} - known
        if not impact.changed:
            known = {change.model for change in self._of("indirect")}
        number = len(known) + more
        if number == 0 and not unknown:
            return ", and no other model depends on it"
        depend = f"{words.count(number, 'model')} {'depends' if number == 1 else 'depend'} on it"
        if not unknown:
            return f", and {depend}"
        if not number:
            return f", and {words.count(len(unknown), 'model')} may depend on it"
        return f", {depend} and {words.number(len(unknown))} more may"

    def _retyped(self) -> tuple[str, list[str]] | None:
        found = self._of_columns(_is_retyped)
        if not found:
            return None
        change, column = found[0]
        models = list(dict.fromkeys(change.model for change, _ in found))
        if len(found) > 1:
            return f"Changes the type of {self._named_columns(found)}.", models
        before, after = _quoted(column.before or "?"), _quoted(column.after or "?")
        name = f"{_quoted(column.name)} in {_quoted(change.model)}"
        return f"Changes the type of {name} from {before} to {after}.", models

    @cached_property
    def _forwarded(self) -> list[str]:
        edited = {change.model for change in self._of("direct")}
        return sorted(self._kept & edited)

    def _forward(self) -> tuple[str, list[str]] | None:
        if not self._forwarded:
            return None
        name = listed(self._forwarded)
        is_or_are = "changes" if len(self._forwarded) == 1 else "change"
        return (
            f"{name} {is_or_are} for new data only: history keeps the old numbers.",
            self._forwarded,
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

    def _metadata(self) -> tuple[str, list[str]] | None:
        found = self._of("metadata")
        if not found:
            return None
        only = f"Changes only the metadata of {listed(_names(found))}: no data is built again."
        return only, _names(found)

    def _harmless(self) -> str:
        """What else can be said where nothing that is there changes."""
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
            return f"the {noun} {listed(columns)} {preposition} {_quoted(models[0])}"
        return f"{words.count(len(columns), 'column')} {preposition} {listed(models)}"


def _names(changes: Sequence[Change]) -> list[str]:
    return [change.model for change in changes]


def _read_by(readers: int) -> str:
    if not readers:
        return "; no model of the project reads it"
    return f", which {words.count(readers, 'model')} still {'reads' if readers == 1 else 'read'}"


def _is_dropped(column: ColumnChange) -> bool:
    return column.before is not None and column.after is None


def _is_retyped(column: ColumnChange) -> bool:
    return column.before is not None and column.after is not None


def _is_added(column: ColumnChange) -> bool:
    return column.before is None
