"""Where each finding of a review is reported: once, in the place where it helps most."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model.headline import HeadlineView, Subject
from ci_bot.bot.report.model.risk_groups import group_risks, sort_findings_by_weight
from ci_bot.protocol.plan import Change, Severity
from ci_bot.protocol.review_report import Report, Risk
from ci_bot.protocol.rules import RULES

# A No-Go as a list of things to fix: findings of one cause are one thing.
#
# If a column is removed, its readers' queries, the linter and the unit tests fail as well. One fix
# of the column fixes them all, so they are reported together: the finding that names the cause, and
# the other rules' findings that follow from it.


_LEAK = "hardcoded-secret"
_REFUSED = "R01-plan-failed"
# They mean the failure itself, whose message is shown as SQLMesh wrote it.
_FAILURES = ("R01-load-failed", _REFUSED)
_MOST_CAUSES = 200
# How many places one entry names.
PLACES = 4
# The rules that name a cause: their finding is shown, and findings that follow are only named.
_CAUSES = (
    "forward-only-destructive",
    "R05-forward-only-destructive",
    "R04-column-dropped",
    "removed-model-read",
    "R04-model-removed",
    "column-retyped",
    "missing-column",
    *_FAILURES,
)


@dataclass(frozen=True)
class BlockerFixView:
    """One thing to fix: the finding that is shown, and the other findings that it causes."""

    shown: Risk
    also: tuple[Risk, ...] = ()

    @property
    def risks(self) -> tuple[Risk, ...]:
        return (self.shown, *self.also)

    @property
    def is_secret(self) -> bool:
        """Whether a credential has leaked; then somebody has to revoke it first."""
        return self.shown.rule == _LEAK

    @property
    def is_failure(self) -> bool:
        """Whether it says that there is no plan, and no rule knows why."""
        return self.shown.rule in _FAILURES

    @property
    def explains_failure(self) -> bool:
        """Whether it explains, in a rule's words, why there is no plan."""
        return not self.is_failure and any(risk.rule in _FAILURES for risk in self.also)

    @property
    def remedy(self) -> str:
        """How it is cleared, as a sentence; for a failure it is the hint, already a sentence."""
        text = self.shown.clears_when.rstrip(".")
        named = text[:1] == "`" and not self.is_failure
        return f"Fixed when {text}." if text[:1].islower() or named else f"{text}."

    @property
    def icon(self) -> SafeMarkdown:
        """The kind of thing, for people who see icons before they read."""
        return SafeMarkdown("🔑" if self.is_secret else "🧱")

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of all its findings, the shown finding's rule first."""
        return tuple(dict.fromkeys(risk.rule for risk in self.risks))

    @property
    def same_findings(self) -> tuple[Risk, ...]:
        """The other places where the same rule finds the same, one for each model and file."""
        found = {_get_location(risk): risk for risk in self.also if risk.rule == self.shown.rule}
        found.pop(_get_location(self.shown), None)
        return tuple(found.values())

    @property
    def follow_ups(self) -> tuple[Risk, ...]:
        """Findings of other rules that it causes, one for each file."""
        found: dict[str, Risk] = {}
        for risk in sorted(self.also, key=lambda risk: risk.line is None):
            if risk.rule != self.shown.rule:
                found.setdefault(risk.path or risk.model or "", risk)
        found.pop(self.shown.path or self.shown.model or "", None)
        return tuple(found.values())

    @property
    def shown_findings(self) -> tuple[Risk, ...]:
        """The findings that the entry names; the others are in the list below."""
        unsaid = {id(risk) for risk in self.same_findings[PLACES:]}
        return tuple(risk for risk in self.risks if id(risk) not in unsaid)


def _get_location(risk: Risk) -> tuple[str | None, str | None]:
    return risk.model, risk.path


def list_fix_views(blockers: Sequence[Risk], report: Report) -> list[BlockerFixView]:
    """Groups the blockers by cause: leaked credentials first, then the largest group."""
    groups: dict[object, list[Risk]] = {}
    causes = _BlockerCauses(report, blockers)
    for risk in blockers:
        groups.setdefault(causes.find_cause(risk), []).append(risk)
    found = [_make_fix_view(group) for group in groups.values()]
    return sorted(found, key=lambda fix: (fix.shown.rule != _LEAK, -len(fix.also)))


def _make_fix_view(group: Sequence[Risk]) -> BlockerFixView:
    order = {rule: index for index, rule in enumerate(_CAUSES)}
    first, *rest = sorted(group, key=lambda risk: order.get(risk.rule, len(order)))
    return BlockerFixView(first, tuple(rest))


class _BlockerCauses:
    """The causes of blockers: what disappears, as (model, name), a column or a whole model."""

    def __init__(self, report: Report, blockers: Iterable[Risk]) -> None:
        readers: dict[str, list[str]] = defaultdict(list)
        for parent, reader in report.lineage.edges:
            readers[parent].append(reader)
        self._lost = _list_lost_in_view(report, blockers)[:_MOST_CAUSES]
        self._near: dict[str | None, list[tuple[str, str]]] = defaultdict(list)
        for model, name in self._lost:
            for affected in {model, *list_reached_models(model, readers)}:
                self._near[affected].append((model, name))

    def find_cause(self, risk: Risk) -> object:
        """Returns a key that findings of one cause share.

        It is what disappears, or else the rule with its evidence (and its file, if it has no
        model).
        """
        if risk.rule == _LEAK:
            return (risk.rule, risk.evidence, risk.path)
        text = f"{risk.subject or ''} {risk.evidence}"
        for model, name in self._lost if risk.model is None else self._near[risk.model]:
            refused = risk.rule == _REFUSED and risk.model == model
            if refused or _mentions_name(text, name):
                return ("lost", model, name)
        return (risk.rule, risk.evidence, risk.path if risk.model is None else None)


def _list_lost_in_view(report: Report, blockers: Iterable[Risk]) -> list[tuple[str, str]]:
    found = [
        (change.model, column.name)
        for change in report.changes
        for column in change.columns
        if column.before and column.after is None
    ]
    found += [(c.model, c.model) for c in report.changes if c.change == "removed"]
    if report.failure is not None:
        # Without a plan there are no changes, but a rule may have seen the column.
        found += [
            (risk.model, risk.subject)
            for risk in blockers
            if risk.rule.endswith("forward-only-destructive") and risk.model and risk.subject
        ]
    return found


def _mentions_name(text: str, name: str) -> bool:
    """Whether `name` appears in `text`, and not as a part of another name."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\.?\w)", text) is not None


def list_reached_models(model: str, readers: Mapping[str, Iterable[str]]) -> set[str]:
    """Returns all models that read a model, directly or through others."""
    found: set[str] = set()
    level = {model}
    while level:
        level = {name for above in level for name in readers.get(above, ())} - found
        found |= level
    return found


# More of them would be a wall of text; the rest is in the fold below.
TOP_FIXES = 8
TOP_POINTS = 3
_LARGE_FILES = "large files"
_NOT_CHECKED = "R10-not-checked"
_HEAVY: tuple[Severity, ...] = ("blocker", "high", "medium")

_POINTS: dict[str, tuple[Severity, ...]] = {
    "go": (),
    "review": ("high", "medium"),
    "no_go": ("high",),
    "no_changes": ("high", "medium"),
}
# What the sentence at the top already says about its models.
_IN_HEADLINE: dict[Subject, tuple[str, ...]] = {
    "past": ("R06-breaking-rebuild", "R06-past-numbers"),
    "loss": ("R04-model-removed", "R06-breaking-rebuild", "R06-past-numbers"),
}
# What the sentence and the table say about every change; no reader has to do anything.
_FACTS = ("additive-change", "metadata-only")
# The subject of its findings is a reader outside of the project.
_EXPOSURE_AFFECTED = RULES["exposure-affected"].id
# The message of the base branch is at the top, with what it means.
BASE_BROKEN = "R01-base-broken"


@dataclass(frozen=True)
class FindingPointView:
    """One question: what one rule found with one severity, at one place or at many."""

    risks: tuple[Risk, ...]

    @property
    def risk(self) -> Risk:
        """The first place."""
        return self.risks[0]

    @property
    def others(self) -> tuple[Risk, ...]:
        return self.risks[1:]

    @property
    def more_places(self) -> int:
        """The number of places beside the first."""
        return len(self.risks) - 1

    @property
    def sentence(self) -> str:
        """What was found, without the model or the file that it is about."""
        return describe_finding(self.risk)

    @property
    def other_readers(self) -> list[str]:
        """Who else reads what changes: each of them has to be asked, so all are named."""
        if self.risk.rule != _EXPOSURE_AFFECTED:
            return []
        names = [risk.subject for risk in self.risks if risk.subject != self.risk.subject]
        return list(dict.fromkeys(name for name in names if name))

    @property
    def is_alike(self) -> bool:
        """Whether the same sentence is true for every place."""
        return len({describe_finding(risk) for risk in self.risks}) == 1


def describe_finding(risk: Risk) -> str:
    """Describes a finding without its model or file in front."""
    return risk.evidence.removeprefix(f"`{risk.model or risk.path}` ")


@dataclass(frozen=True)
class ReportFindingsView:
    """The findings of one report, each in exactly one place.

    Attributes:
        head: The sentence at the top.
    """

    report: Report
    head: HeadlineView

    @cached_property
    def ordered_risks(self) -> list[Risk]:
        """All of them, heaviest first."""
        return sort_findings_by_weight(self.report.risks)

    @cached_property
    def listed_risks(self) -> list[Risk]:
        """All except what was not checked, which is no finding about the change."""
        return [risk for risk in self.ordered_risks if not _is_on_not_checked_line(risk)]

    @cached_property
    def fixes(self) -> list[BlockerFixView]:
        """The blockers, one entry for each cause."""
        return list_fix_views(
            [risk for risk in self.ordered_risks if risk.severity == "blocker"], self.report
        )

    @property
    def top_fixes(self) -> list[BlockerFixView]:
        return self.fixes[:TOP_FIXES]

    @property
    def explains_failure(self) -> bool:
        """Whether one of the things to fix explains why there is no plan."""
        return any(fix.explains_failure for fix in self.top_fixes)

    @property
    def repeats_hint(self) -> bool:
        """Whether one of them says the same as the failure's hint."""
        hint = self.report.failure.hint if self.report.failure else None
        return any(hint == risk.clears_when for fix in self.top_fixes for risk in fix.risks[:1])

    @cached_property
    def headline_findings(self) -> list[Risk]:
        """Heavy findings that the sentence at the top already says."""
        rules = _IN_HEADLINE.get(self.head.kind, ())
        return [
            risk
            for risk in self.ordered_risks
            if risk.severity == "high"
            and risk.rule in rules
            and risk.model in self.head.models
            and not risk.weighed
        ]

    @property
    def headline_rules(self) -> tuple[str, ...]:
        """The rules of these findings, for links."""
        return tuple(dict.fromkeys(risk.rule for risk in self.headline_findings))

    @cached_property
    def points(self) -> list[FindingPointView]:
        """What needs a look, one entry for each rule and severity."""
        weights = _POINTS[self.report.decision]
        found = [
            risk for risk in self.ordered_risks if risk.severity in weights and self._is_open(risk)
        ]
        return _group_finding_point_views(found)[:TOP_POINTS]

    @cached_property
    def by_rule(self) -> list[FindingPointView]:
        """All findings of severity medium or higher, one entry for each rule and severity."""
        return _group_finding_point_views(
            [risk for risk in self.ordered_risks if risk.severity in _HEAVY]
        )

    @cached_property
    def lower_points(self) -> list[FindingPointView]:
        """The findings that neither the sentence nor the lists at the top show completely."""
        shown = {id(risk) for point in self.points if not point.more_places for risk in point.risks}
        shown |= {id(risk) for fix in self.top_fixes for risk in fix.shown_findings}
        rest = [
            risk for risk in self.ordered_risks if self._is_open(risk) and id(risk) not in shown
        ]
        return _group_finding_point_views(rest)

    @cached_property
    def all_points(self) -> list[FindingPointView]:
        """All findings except what was not checked, one entry for each question."""
        return _group_finding_point_views(self.listed_risks)

    @cached_property
    def not_checked(self) -> list[str]:
        """What was not checked, in one or two words each."""
        found = [
            risk.subject or risk.evidence for risk in self.ordered_risks if _is_gap_in_view(risk)
        ]
        return list(dict.fromkeys(found))

    @cached_property
    def _headline_ids(self) -> frozenset[int]:
        return frozenset(map(id, self.headline_findings))

    def _is_open(self, risk: Risk) -> bool:
        fact = risk.rule in _FACTS and not risk.weighed and risk.severity in ("low", "info")
        fact |= risk.rule == BASE_BROKEN and bool(self.report.base_failures)
        return not (fact or _is_on_not_checked_line(risk) or id(risk) in self._headline_ids)


def _group_finding_point_views(risks: Sequence[Risk]) -> list[FindingPointView]:
    return [FindingPointView(group) for group in group_risks(risks)]


def _is_on_not_checked_line(risk: Risk) -> bool:
    """Whether the line about what was not checked says all of it; that line does not name files."""
    return _is_gap_in_view(risk) and risk.subject != _LARGE_FILES


def _is_gap_in_view(risk: Risk) -> bool:
    return risk.rule == _NOT_CHECKED and risk.severity == "info"


@dataclass(frozen=True)
class PlacedFindingView:
    """A finding at a line of a file, for places that show it there: a check, code scanning."""

    risk: Risk
    path: str
    line: int


def place_finding_views(
    risks: Iterable[Risk], changes: Iterable[Change]
) -> list[PlacedFindingView]:
    """Returns the findings that have a file, their own or their model's, each at its line.

    A finding about a whole file is at its first line: GitHub takes no other place.
    """
    files = {change.model: change.path for change in changes}
    return [
        PlacedFindingView(risk, path, max(risk.line or 1, 1) if risk.path else 1)
        for risk in risks
        if (path := risk.path or files.get(risk.model or "")) is not None
    ]
