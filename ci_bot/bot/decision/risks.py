"""Making risks, and putting them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ci_bot.bot.decision.planned_work import BotFacts, TeamLimits
from ci_bot.protocol.apply_report import TableDiff
from ci_bot.protocol.plan import SEVERITIES, Finding, Severity
from ci_bot.protocol.review_report import ReviewFacts, Risk
from ci_bot.protocol.rules import RuleRegistry, RuleSpec

EVIDENCE_LENGTH = 4_000

NAMES_SHOWN = 5


def rank_severity(severity: Severity) -> int:
    """0 for a blocker, growing as the weight falls."""
    return SEVERITIES.index(severity)


def make_risk(
    spec: RuleSpec,
    evidence: str,
    clears_when: str,
    *,
    severity: Severity | None = None,
    subject: str | None = None,
    model: str | None = None,
    path: str | None = None,
    line: int | None = None,
) -> Risk:
    """A risk of a rule, with its sentence cut to what the contract holds.

    Args:
        severity: one that the rule's page names; the rule's own without it.
        subject: what of the model, the file or the plan it is about; the whole of it without one.
    """
    return Risk(
        rule=spec.id,
        severity=severity or spec.severity,
        model=model,
        path=path,
        line=line,
        subject=subject[:EVIDENCE_LENGTH] if subject else None,
        evidence=evidence[:EVIDENCE_LENGTH],
        clears_when=clears_when[:EVIDENCE_LENGTH],
    )


def make_risk_of_finding(finding: Finding) -> Risk:
    """Makes a risk of a finding; a rule without a condition clears when its finding is gone."""
    return Risk(
        **finding.model_dump(exclude={"clears_when"}),
        clears_when=finding.clears_when or "the finding no longer appears",
    )


def sort_risks(risks: Iterable[Risk]) -> list[Risk]:
    """Heaviest first; then by rule and model, so that equal facts give an equal report."""
    return sorted(
        risks,
        key=lambda item: (
            rank_severity(item.severity),
            item.rule,
            item.model or "",
            item.path or "",
            item.line or 0,
            item.subject or "",
        ),
    )


def quote_names(names: Iterable[str]) -> str:
    """`a`, `b` and 3 more: the first names in backticks, and how many are left out."""
    every = sorted(set(names))
    first = ", ".join(f"`{name}`" for name in every[:NAMES_SHOWN])
    rest = len(every) - NAMES_SHOWN
    return f"{first} and {rest} more" if rest > 0 else first


def count_noun(number: int, noun: str) -> str:
    """1 model, 2 models, 1,204 intervals."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# The bot's rules: each is entered where it is defined. `judge` runs those on a plan, and
# `judge_data_diffs` those on what an apply compared.


PlanRule = Callable[[ReviewFacts, TeamLimits, BotFacts], Iterator[Risk]]

DiffRule = Callable[[TableDiff, TeamLimits], Iterator[Risk]]

judges: RuleRegistry[PlanRule] = RuleRegistry()

"""`@judges(SPEC, ...)` stands on a function that reads a review's facts and gives these risks."""

compares: RuleRegistry[DiffRule] = RuleRegistry()

"""The same for what one table's data diff says. It is given diffs that were made."""
