"""The judge: every rule once, then one decision that names the rules that made it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ci_bot.bot import report as reports
from ci_bot.bot.actions import FailOn
from ci_bot.bot.decision import evidence_rules, plan_rules, reader_rules, work_rules
from ci_bot.bot.decision.risks import (
    BotFacts,
    TeamLimits,
    count_noun,
    judges,
    make_risk,
    make_risk_of_finding,
    rank_severity,
    sort_risks,
)
from ci_bot.bot.policy import AcceptancesByOwners, PolicyWeighing
from ci_bot.bot.report import group_findings, group_risks, judge_past_numbers
from ci_bot.protocol.plan import Decision
from ci_bot.protocol.review_report import PastNumbers, Report, ReviewFacts, Risk
from ci_bot.protocol.rules import find_rule

# A rule takes part if its module is imported.
RULE_MODULES = (evidence_rules, plan_rules, reader_rules, work_rules)
NOT_LISTED = find_rule("R10-not-listed")

# Writing one takes a millisecond for each of comment, summary and file. An honest worker gives
# fewer; a forged answer must not keep the bot busy for longer than a run may take.
MOST_RISKS = 10_000
MAX_REASONS = 8


@dataclass(frozen=True)
class DecisionJudgement:
    """The decision, the sentences that explain it, and every risk, heaviest first.

    `set_aside` are the risks that the team's policy keeps out of the decision. `past_numbers` is
    what the decision assumes about the change's effect on existing rows.
    """

    decision: Decision
    reasons: tuple[str, ...]
    risks: tuple[Risk, ...]
    set_aside: tuple[Risk, ...] = ()
    past_numbers: PastNumbers = field(default_factory=PastNumbers)


def decide_on_review(
    facts: ReviewFacts, *, limits: TeamLimits | None = None, bot: BotFacts | None = None
) -> DecisionJudgement:
    """Judges one review.

    Args:
        facts: the worker's answer, which code of the pull request may have falsified.
        limits: the limits that the team sets.
        bot: what the bot knows itself, with the team's policy.
    """
    limits, bot = limits or TeamLimits(), bot or BotFacts()
    risks = [make_risk_of_finding(finding) for finding in facts.findings]
    for judged in judges:
        risks.extend(judged(facts, limits, bot))
    weighed = bot.weighing.weigh_risks(_drop_repeated_risks(risks))
    risks = _drop_too_many_risks(sort_risks(weighed.counting))
    aside = sort_risks(weighed.set_aside)[:MOST_RISKS]
    decision, reasons = decide_by_risks(risks, facts)
    past = judge_past_numbers(facts)
    return DecisionJudgement(decision, tuple(reasons), tuple(risks), tuple(aside), past)


def _drop_repeated_risks(risks: Iterable[Risk]) -> list[Risk]:
    """Keeps one risk for each thing that a rule is about: two sources may find the same."""
    kept: dict[tuple[str | None, ...], Risk] = {}
    for item in risks:
        key = (item.rule, item.model, item.path, item.subject)
        if key not in kept or rank_severity(item.severity) < rank_severity(kept[key].severity):
            kept[key] = item
    return list(kept.values())


def _drop_too_many_risks(risks: list[Risk]) -> list[Risk]:
    """Keeps the first risks, which are the heaviest, and adds how many are left out."""
    rest = risks[MOST_RISKS:]
    if not rest:
        return risks
    evidence = (
        f"{count_noun(len(rest), 'more finding')}, none of them heavier, that are not listed."
    )
    more = make_risk(
        NOT_LISTED, evidence, "those that are listed are cleared", severity=rest[0].severity
    )
    return [*risks[:MOST_RISKS], more]


def decide_on_review_again(report: Report, acceptances: AcceptancesByOwners) -> Report:
    """Decides again after a finding was accepted; nothing else is judged again."""
    weighed = PolicyWeighing(acceptances=acceptances).weigh_risks(report.risks)
    decision, reasons = decide_by_risks(weighed.counting, report)
    return report.model_copy(
        update={
            "decision": decision,
            "reasons": reasons,
            "risks": list(weighed.counting),
            "findings": group_findings(weighed.counting),
            "set_aside": sort_risks([*report.set_aside, *weighed.set_aside]),
        }
    )


def decide_by_risks(
    risks: Sequence[Risk], facts: ReviewFacts | Report
) -> tuple[Decision, list[str]]:
    """Decides: a blocker is No-Go, a high risk Review, others Go; an empty plan is no change."""
    blockers = [item for item in risks if item.severity == "blocker"]
    if blockers:
        return "no_go", _list_decision_reasons(blockers)
    high = [item for item in risks if item.severity == "high"]
    if high:
        return "review", _list_decision_reasons(high)
    notes = [item for item in risks if item.severity in {"medium", "low"}]
    if is_empty_plan(facts):
        if facts.base_failures:
            return "no_changes", [
                "It changes no file that SQLMesh reads.",
                *_list_decision_reasons(notes),
            ]
        other = "prod" if facts.baseline == "state" else "the version that counts as prod"
        return "no_changes", [f"No model, statement or interval differs from {other}."]
    if notes:
        listed = count_noun(len(group_risks(notes)), "note")
        return "go", [f"No rule found a problem; {listed}.", *_list_decision_reasons(notes)]
    return "go", [reports.SENTENCES.no_problem]


def is_empty_plan(facts: ReviewFacts | Report) -> bool:
    """Whether the plan is empty: no models, restatements, or added or removed statements."""
    return (
        not facts.changes
        and not facts.prod_restatements
        and not facts.restatements
        and all(statement.change == "unchanged" for statement in facts.statements)
    )


def _list_decision_reasons(risks: Sequence[Risk]) -> list[str]:
    """Writes a sentence for each question: its first place, and how many more there are."""
    groups = group_risks(risks)
    first = [_describe_risk_group(group) for group in groups[:MAX_REASONS]]
    rest = len(groups) - len(first)
    return [*first, f"{rest} more of the same weight."] if rest > 0 else first


def _describe_risk_group(group: Sequence[Risk]) -> str:
    item, more = group[0], len(group) - 1
    on = f" on {item.model}" if item.model else ""
    rest = f" and {more:,} more" if more else ""
    return f"{item.rule}{on}{rest}: {item.evidence}"[:4_000]


# The exit code of a review; `fail-on` says from which decision on it fails.


_FAILING: dict[FailOn, frozenset[Decision]] = {
    "blocker": frozenset({"no_go"}),
    "high": frozenset({"no_go", "review"}),
    "never": frozenset(),
}


def choose_exit_code_of_decision(decision: Decision, fail_on: FailOn = "blocker") -> int:
    """Returns 1 if `decision` fails the check, else 0.

    `never` is for teams that read the report and let only people stop a merge. A failed plan has
    its own exit code, which comes from its failure and not from here.
    """
    return 1 if decision in _FAILING[fail_on] else 0


_STRICTNESS: dict[Decision, int] = {"no_changes": 0, "go": 0, "review": 1, "no_go": 2}


def is_decision_misleading(report: Report, shown: Decision | None, fail_on: FailOn | None) -> bool:
    """Whether a check that passes would mislead.

    That is so if GitHub did not take this report, and the comment still shows a lighter decision.

    Args:
        shown: The decision in the comment.
        fail_on: The input's value; with `never` no check fails.
    """
    if shown is None or _get_fail_on_of_decision(report, fail_on) == "never":
        return False
    return _STRICTNESS[shown] < _STRICTNESS[report.decision]


def _get_fail_on_of_decision(report: Report, fail_on: FailOn | None) -> FailOn:
    agreed = report.policy.fail_on if report.policy else None
    return fail_on or agreed or "blocker"


def choose_exit_code_of_review_decision(report: Report, fail_on: FailOn | None) -> int:
    """Returns the exit code of a review: a failed plan has its own, else the decision's.

    Args:
        fail_on: The value of the input or the option; if it is None, the policy's counts.
    """
    if report.failure is not None:
        return report.failure.exit_code
    return choose_exit_code_of_decision(report.decision, _get_fail_on_of_decision(report, fail_on))
