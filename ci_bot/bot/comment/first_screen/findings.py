"""Where each finding of a review is told: once, and in the place where it helps most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_bot.bot.comment.first_screen.fixes import Fix, fixes
from ci_bot.bot.comment.first_screen.headline import Headline, Subject
from ci_bot.contracts.documents.finding_groups import group_risks
from ci_bot.contracts.documents.plan import SEVERITIES, Severity
from ci_bot.contracts.documents.report import Report, Risk

# More of them is a wall of text; the rest is one fold below.
TOP_FIXES = 8
TOP_POINTS = 3

_LARGE_FILES = "large files"
_NOT_CHECKED = "R10-not-checked"
_WEIGHT = {name: index for index, name in enumerate(SEVERITIES)}
_HEAVY: tuple[Severity, ...] = ("blocker", "high", "medium")
_POINTS: dict[str, tuple[Severity, ...]] = {
    "go": (),
    "review": ("high", "medium"),
    "no_go": ("high",),
    "no_changes": ("high", "medium"),
}
# What the sentence at the top says already, of the models that it is about.
_TOLD: dict[Subject, tuple[str, ...]] = {
    "past": ("R06-breaking-rebuild", "R06-past-numbers"),
    "loss": ("R04-model-removed", "R06-breaking-rebuild", "R06-past-numbers"),
}
# What the sentence and the table say of every change; no reader has to do anything about it.
_FACTS = ("additive-change", "metadata-only")
# The message of the base branch stands at the top, with what it means.
BASE_BROKEN = "R01-base-broken"


@dataclass(frozen=True)
class Point:
    """One question: what one rule found with one weight, at one place or at many."""

    risks: tuple[Risk, ...]

    @property
    def risk(self) -> Risk:
        """The first place."""
        return self.risks[0]

    @property
    def others(self) -> tuple[Risk, ...]:
        return self.risks[1:]

    @property
    def more(self) -> int:
        """How many places there are beside the first."""
        return len(self.risks) - 1

    @property
    def said(self) -> str:
        """What is found, behind the model or the file that it is about."""
        return said_of(self.risk)

    @property
    def is_alike(self) -> bool:
        """Whether the same is said of every place."""
        return len({said_of(risk) for risk in self.risks}) == 1


def said_of(risk: Risk) -> str:
    """What is found at a place, without its name in front."""
    return risk.evidence.removeprefix(f"`{risk.model or risk.path}` ")


@dataclass(frozen=True)
class Findings:
    """The findings of one report, each in one place.

    Attributes:
        head: The sentence at the top.
    """

    report: Report
    head: Headline

    @cached_property
    def ordered(self) -> list[Risk]:
        """All of them, heaviest first."""

        def weight(risk: Risk) -> tuple[int, str, str]:
            return _WEIGHT[risk.severity], risk.rule, risk.model or ""

        return sorted(self.report.risks, key=weight)

    @cached_property
    def listed(self) -> list[Risk]:
        """All but what was not checked: that is no finding about the change."""
        return [risk for risk in self.ordered if not _is_one_word(risk)]

    @cached_property
    def fixes(self) -> list[Fix]:
        """What blocks, one entry for each cause."""
        return fixes([risk for risk in self.ordered if risk.severity == "blocker"], self.report)

    @property
    def top_fixes(self) -> list[Fix]:
        return self.fixes[:TOP_FIXES]

    @property
    def tells_failure(self) -> bool:
        """Whether one of the things to fix is why there is no plan."""
        return any(fix.explains_failure for fix in self.top_fixes)

    @property
    def tells_hint(self) -> bool:
        """Whether one of them says what the failure's hint says."""
        hint = self.report.failure.hint if self.report.failure else None
        return any(hint == risk.clears_when for fix in self.top_fixes for risk in fix.risks[:1])

    @cached_property
    def told(self) -> list[Risk]:
        """Heavy findings that are what the sentence at the top says."""
        rules = _TOLD.get(self.head.kind, ())
        return [
            risk
            for risk in self.ordered
            if risk.severity == "high"
            and risk.rule in rules
            and risk.model in self.head.models
            and not risk.weighed
        ]

    @property
    def told_rules(self) -> tuple[str, ...]:
        """Their rules, for links."""
        return tuple(dict.fromkeys(risk.rule for risk in self.told))

    @cached_property
    def points(self) -> list[Point]:
        """What to look at, one for each rule and weight."""
        weights = _POINTS[self.report.decision]
        found = [risk for risk in self.ordered if risk.severity in weights and self._is_open(risk)]
        return _grouped(found)[:TOP_POINTS]

    @cached_property
    def by_rule(self) -> list[Point]:
        """All that weighs medium or more, one for each rule and weight."""
        return _grouped([risk for risk in self.ordered if risk.severity in _HEAVY])

    @cached_property
    def below(self) -> list[Point]:
        """What neither the sentence nor the lists at the top tell whole."""
        told = {id(risk) for point in self.points if not point.more for risk in point.risks}
        told |= {id(risk) for fix in self.top_fixes for risk in fix.told}
        rest = [risk for risk in self.ordered if self._is_open(risk) and id(risk) not in told]
        return _grouped(rest)

    @cached_property
    def all(self) -> list[Point]:
        """All but what was not checked, one for each question."""
        return _grouped(self.listed)

    @cached_property
    def not_checked(self) -> list[str]:
        """What was not looked at, in a word or two each."""
        found = [risk.subject or risk.evidence for risk in self.ordered if _is_gap(risk)]
        return list(dict.fromkeys(found))

    @cached_property
    def _told(self) -> frozenset[int]:
        return frozenset(map(id, self.told))

    def _is_open(self, risk: Risk) -> bool:
        fact = risk.rule in _FACTS and not risk.weighed and risk.severity in ("low", "info")
        fact |= risk.rule == BASE_BROKEN and bool(self.report.base_failures)
        return not (fact or _is_one_word(risk) or id(risk) in self._told)


def _grouped(risks: Sequence[Risk]) -> list[Point]:
    return [Point(group) for group in group_risks(risks)]


def _is_one_word(risk: Risk) -> bool:
    """Whether the line of what was not checked says it all; it does not name files."""
    return _is_gap(risk) and risk.subject != _LARGE_FILES


def _is_gap(risk: Risk) -> bool:
    return risk.rule == _NOT_CHECKED and risk.severity == "info"
