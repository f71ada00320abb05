"""The exit code of a review; `fail-on` moves the line."""

from __future__ import annotations

from ci_bot.bot.values import FailOn
from ci_bot.contracts.documents.plan import Decision
from ci_bot.contracts.documents.report import Report

_FAILING: dict[FailOn, frozenset[Decision]] = {
    "blocker": frozenset({"no_go"}),
    "high": frozenset({"no_go", "review"}),
    "never": frozenset(),
}


def exit_code(decision: Decision, fail_on: FailOn = "blocker") -> int:
    """0 or 1: whether `decision` fails the check.

    `never` is for teams that read the report and let nothing but people stop a merge. A failed plan
    has an exit code of its own, which comes from its failure and not from here.
    """
    return 1 if decision in _FAILING[fail_on] else 0


_STRICTNESS: dict[Decision, int] = {"no_changes": 0, "go": 0, "review": 1, "no_go": 2}


def is_misleading(report: Report, shown: Decision | None, fail_on: FailOn | None) -> bool:
    """Whether a check that passes would deceive, because the comment goes on to show a lighter
    decision than this report's and GitHub did not take this one.

    Args:
        shown: What the comment shows.
        fail_on: What the input says; with `never` no check fails.
    """
    if shown is None or _effective(report, fail_on) == "never":
        return False
    return _STRICTNESS[shown] < _STRICTNESS[report.decision]


def _effective(report: Report, fail_on: FailOn | None) -> FailOn:
    agreed = report.policy.fail_on if report.policy else None
    return fail_on or agreed or "blocker"


def review_exit_code(report: Report, fail_on: FailOn | None) -> int:
    """How a review ends: a failed plan has its own code, else the decision's.

    Args:
        fail_on: What the input or the option says; where it says nothing the policy's counts.
    """
    if report.failure is not None:
        return report.failure.exit_code
    return exit_code(report.decision, _effective(report, fail_on))
