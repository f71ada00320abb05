"""One question is asked once: what one rule finds with one weight is one finding with a list.

Comment, page, terminal, decision and JSON group by this. The single findings stay in the report:
a policy weighs them, an owner accepts them, and a data diff clears them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ci_bot.contracts.documents.report import FindingGroup, FoundAt, Risk
from ci_bot.contracts.rules import RULES

# A note on one file each: two leaked keys are two things to revoke, two gaps two things unknown.
_EACH_ALONE = frozenset({"hardcoded-secret"})


def group_risks(risks: Iterable[Risk]) -> list[tuple[Risk, ...]]:
    """Findings of one rule, weight and reason for that weight, in the order of the first ones."""
    groups: dict[object, list[Risk]] = {}
    for risk in risks:
        groups.setdefault(_question(risk), []).append(risk)
    return [tuple(group) for group in groups.values()]


def group_findings(risks: Iterable[Risk]) -> list[FindingGroup]:
    """The same as documents."""
    return [_document(group) for group in group_risks(risks)]


def _question(risk: Risk) -> object:
    weighed = risk.weighed.model_dump_json() if risk.weighed else None
    is_gap = risk.rule in RULES and RULES[risk.rule].scope == "evidence"
    alone = risk.rule in _EACH_ALONE or is_gap
    place = (risk.model, risk.path, risk.line, risk.subject) if alone else None
    return risk.severity, risk.rule, weighed, place


def _document(group: tuple[Risk, ...]) -> FindingGroup:
    first = group[0]
    return FindingGroup(
        rule=first.rule,
        severity=first.severity,
        clears_when=first.clears_when,
        weighed=first.weighed,
        places=[
            FoundAt(
                model=risk.model,
                path=risk.path,
                line=risk.line,
                subject=risk.subject,
                evidence=risk.evidence,
            )
            for risk in group
        ],
    )
