"""Which models' existing rows come out differently, what of them, and who depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ci_bot.bot.comment.first_screen.forward_only import forward_only_models
from ci_bot.bot.comment.first_screen.spelling import listed, quoted
from ci_bot.bot.comment.text import words
from ci_bot.contracts.documents.plan import Change
from ci_bot.contracts.documents.report import Report


class PastNumbers:
    """What a report's own changes (`own`, without those of the base branch) do to existing rows.

    Attributes:
        models: Those whose rows come out differently, as far as anybody can tell.
    """

    def __init__(self, report: Report, own: Sequence[Change]) -> None:
        self._report, self._own = report, own
        self._parts = report.impact.changed

    @cached_property
    def models(self) -> list[str]:
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
        direct = {change.model for change in self._own if change.change == "direct"} - self.kept
        return sorted(((by_rebuild - harmless) | parts) & direct)

    def _may_differ(self, model: str) -> bool:
        hows = {part.how for part in self._parts if part.model == model}
        return bool(hows & {"computed", "rows", "unknown"})

    @cached_property
    def kept(self) -> frozenset[str]:
        """Models whose history stays as it is."""
        return forward_only_models(self._report)

    def sentence(self) -> str:
        """What is computed differently, and how many models depend on it."""
        sure = {part.model for part in self._parts if part.how in ("computed", "rows")}
        change = "Past numbers change" if set(self.models) <= sure else "Past numbers may change"
        return f"{change}: {self._what()}{self._followed()}."

    def _what(self) -> str:
        if len(self.models) > 1:
            return f"{listed(self.models)} are computed differently"
        [model] = self.models
        mine = [part for part in self._parts if part.model == model]
        columns = [part.column for part in mine if part.how == "computed" and part.column]
        history = " for all of its history" if model in self._whole_history else ""
        if columns:
            are = "is" if len(columns) == 1 else "are"
            what = f"{listed(columns)} in {quoted(model)} {are} computed differently{history}"
            return f"{what}, with other rows" if any(p.how == "rows" for p in mine) else what
        if any(part.how == "rows" for part in mine):
            return f"{quoted(model)} gets other rows{history}"
        if any(part.how == "unknown" for part in mine):
            return f"what changes in {quoted(model)} cannot be told"
        return f"{quoted(model)} is computed anew{history}"

    @cached_property
    def _whole_history(self) -> frozenset[str]:
        plan = self._report.prod_plan
        built = plan.full_backfill if plan else []
        return frozenset(item.model for item in built if item.action == "incremental")

    def _followed(self) -> str:
        """How many models depend on these, and how many may."""
        impact, lead = self._report.impact, set(self.models)
        parts = [part for part in self._parts if part.model in lead and part.how != "added"]
        known = {model.model for part in parts for model in part.reached} - lead
        more = max((part.more_models for part in parts), default=0)
        unknown = {item.model for item in impact.indirect if item.reached == "unknown"} - known
        if not lead <= {part.model for part in self._parts}:
            # Nobody has traced the columns; SQLMesh knows which models follow.
            known |= {change.model for change in self._own if change.change == "indirect"}
            unknown -= known
        number = len(known) + more
        depend = f"{words.count(number, 'model')} {'depends' if number == 1 else 'depend'} on it"
        if number and unknown:
            return f", {depend} and {words.number(len(unknown))} more may"
        if unknown:
            return f", and {words.count(len(unknown), 'model')} may depend on it"
        if number:
            return f", and {depend}"
        return "" if impact.more_changed else ", and no other model depends on it"
