"""A No-Go as a list of things to fix: findings of one cause are one thing.

A column that goes makes its readers' queries, the linter and the unit tests fail as well. Whoever
mends the column mends them all, so they are told together: the finding that names the cause, and
the rules that it broke.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.contracts.documents.report import Report, Risk

_LEAK = "hardcoded-secret"
_REFUSED = "R01-plan-failed"
# They stand for the failure itself, whose message is shown as SQLMesh wrote it.
_FAILURES = ("R01-load-failed", _REFUSED)
_MOST_CAUSES = 200
# So many places stand in one entry.
PLACES = 4
# In a group, what says the cause is shown, and what follows from it is only named.
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
class Fix:
    """One thing to fix: the finding that is shown, and what else it is the cause of."""

    shown: Risk
    also: tuple[Risk, ...] = ()

    @property
    def risks(self) -> tuple[Risk, ...]:
        return (self.shown, *self.also)

    @property
    def is_secret(self) -> bool:
        """Whether a credential has leaked: then it is revoked before anything else is done."""
        return self.shown.rule == _LEAK

    @property
    def is_failure(self) -> bool:
        """Whether it is that there is no plan, and no rule knows why."""
        return self.shown.rule in _FAILURES

    @property
    def explains_failure(self) -> bool:
        """Whether it is why there is no plan, in a rule's words."""
        return not self.is_failure and any(risk.rule in _FAILURES for risk in self.also)

    @property
    def how(self) -> str:
        """How it is cleared, as a sentence; that of a failure is the hint, which is one already."""
        text = self.shown.clears_when.rstrip(".")
        named = text[:1] == "`" and not self.is_failure
        return f"Fixed when {text}." if text[:1].islower() or named else f"{text}."

    @property
    def icon(self) -> SafeMarkdown:
        """The kind of thing, for people who look before they read."""
        return SafeMarkdown("🔑" if self.is_secret else "🧱")

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules, that of the shown finding first."""
        return tuple(dict.fromkeys(risk.rule for risk in self.risks))

    @property
    def same(self) -> tuple[Risk, ...]:
        """Where else the same rule says the same, one for each model and file."""
        found = {_place(risk): risk for risk in self.also if risk.rule == self.shown.rule}
        found.pop(_place(self.shown), None)
        return tuple(found.values())

    @property
    def follows(self) -> tuple[Risk, ...]:
        """What other rules say because of it, one for each file."""
        found: dict[str, Risk] = {}
        for risk in sorted(self.also, key=lambda risk: risk.line is None):
            if risk.rule != self.shown.rule:
                found.setdefault(risk.path or risk.model or "", risk)
        found.pop(self.shown.path or self.shown.model or "", None)
        return tuple(found.values())

    @property
    def told(self) -> tuple[Risk, ...]:
        """The findings that the entry tells; the others are listed below."""
        unsaid = {id(risk) for risk in self.same[PLACES:]}
        return tuple(risk for risk in self.risks if id(risk) not in unsaid)


def _place(risk: Risk) -> tuple[str | None, str | None]:
    return risk.model, risk.path


def fixes(blockers: Sequence[Risk], report: Report) -> list[Fix]:
    """The blockers by cause: leaked credentials first, then in the order in which they come."""
    groups: dict[object, list[Risk]] = {}
    causes = _Causes(report, blockers)
    for risk in blockers:
        groups.setdefault(causes.of(risk), []).append(risk)
    found = [_fix(group) for group in groups.values()]
    return sorted(found, key=lambda fix: (fix.shown.rule != _LEAK, -len(fix.also)))


def _fix(group: Sequence[Risk]) -> Fix:
    order = {rule: index for index, rule in enumerate(_CAUSES)}
    first, *rest = sorted(group, key=lambda risk: order.get(risk.rule, len(order)))
    return Fix(first, tuple(rest))


class _Causes:
    """What goes, as (model, name): columns of models, and models as a whole."""

    def __init__(self, report: Report, blockers: Iterable[Risk]) -> None:
        readers: dict[str, list[str]] = defaultdict(list)
        for parent, reader in report.lineage.edges:
            readers[parent].append(reader)
        self._lost = _lost(report, blockers)[:_MOST_CAUSES]
        self._near: dict[str | None, list[tuple[str, str]]] = defaultdict(list)
        for model, name in self._lost:
            for affected in {model, *reached(model, readers)}:
                self._near[affected].append((model, name))

    def of(self, risk: Risk) -> object:
        """What makes findings one thing: what goes, or else the same words of the same rule."""
        if risk.rule == _LEAK:
            return (risk.rule, risk.evidence, risk.path)
        told = f"{risk.subject or ''} {risk.evidence}"
        for model, name in self._lost if risk.model is None else self._near[risk.model]:
            refused = risk.rule == _REFUSED and risk.model == model
            if refused or _names(told, name):
                return ("lost", model, name)
        return (risk.rule, risk.evidence, risk.path if risk.model is None else None)


def _lost(report: Report, blockers: Iterable[Risk]) -> list[tuple[str, str]]:
    found = [
        (change.model, column.name)
        for change in report.changes
        for column in change.columns
        if column.before and column.after is None
    ]
    found += [(c.model, c.model) for c in report.changes if c.change == "removed"]
    if report.failure is not None:
        # Without a plan there are no changes; a rule has seen the column all the same.
        found += [
            (risk.model, risk.subject)
            for risk in blockers
            if risk.rule.endswith("forward-only-destructive") and risk.model and risk.subject
        ]
    return found


def _names(text: str, name: str) -> bool:
    """Whether `name` stands in `text`, and not as a part of another name."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\.?\w)", text) is not None


def reached(model: str, readers: Mapping[str, Iterable[str]]) -> set[str]:
    """All that lies below a model."""
    found: set[str] = set()
    level = {model}
    while level:
        level = {name for above in level for name in readers.get(above, ())} - found
        found |= level
    return found
