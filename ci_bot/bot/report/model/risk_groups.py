"""Findings of one rule with one weight, grouped into one finding with a list of places.

So a reader gets one question once. Comment, page, terminal, decision and JSON use these groups. The
single findings stay in the report: a policy weighs them, an owner accepts them, and a data diff
clears them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ci_bot.protocol.plan import SEVERITIES
from ci_bot.protocol.review_report import FindingGroup, FoundAt, Risk

# Two leaked keys are two things to revoke, and two gaps are two things that nobody has checked.
EACH_ALONE = frozenset(
    {
        "checkout-incomplete",
        "hardcoded-secret",
        "R10-files-not-read",
        "R10-fork",
        "R10-not-checked",
        "R10-not-listed",
        "R10-prod-not-found",
        "rule-crashed",
    }
)


def sort_findings_by_weight(risks: Iterable[Risk]) -> list[Risk]:
    """Sorts findings, the heaviest first, then by rule and model."""
    return sorted(
        risks, key=lambda risk: (SEVERITIES.index(risk.severity), risk.rule, risk.model or "")
    )


def group_risks(risks: Iterable[Risk]) -> list[tuple[Risk, ...]]:
    """Groups findings by rule, weight and reason of that weight, in the order of the first ones."""
    groups: dict[object, list[Risk]] = {}
    for risk in risks:
        groups.setdefault(_make_risk_group_key(risk), []).append(risk)
    return [tuple(group) for group in groups.values()]


def group_findings(risks: Iterable[Risk]) -> list[FindingGroup]:
    """Returns the same groups as documents."""
    return [_make_finding_group(group) for group in group_risks(risks)]


def _make_risk_group_key(risk: Risk) -> object:
    weighed = risk.weighed.model_dump_json() if risk.weighed else None
    alone = risk.rule in EACH_ALONE
    place = (risk.model, risk.path, risk.line, risk.subject) if alone else None
    return risk.severity, risk.rule, weighed, risk.message, place


def _make_finding_group(group: tuple[Risk, ...]) -> FindingGroup:
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
