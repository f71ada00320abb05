"""What a review was compared with, where that is not the prod of a state that was read."""

from __future__ import annotations

from dataclasses import dataclass

from ci_bot.contracts.documents.report import Report


@dataclass(frozen=True)
class BaselineNotice:
    """The first thing that a reader has to know. Names stand between backticks.

    Attributes:
        lead: What is the matter, in a few words.
        rest: The rest of that sentence, and those that follow.
        expected: Whether nothing is wrong with it, as with a first deployment.
    """

    lead: str
    rest: str
    expected: bool = False

    def text(self) -> str:
        """All of it, without emphasis."""
        return f"{self.lead}{self.rest}"


def compared_with(report: Report) -> str:
    """The output `compared-with`: `prod`, `base-branch` or `nothing`."""
    names = {"state": "prod", "base-branch": "base-branch", "empty": "nothing"}
    if report.prod_not_found is not None and report.baseline == "state":
        return "nothing"  # what other projects have there
    return names[report.baseline]


def baseline_notice(report: Report) -> BaselineNotice | None:
    """None where the review was compared with prod as its state has it."""
    missing = report.prod_not_found
    if missing is not None:
        found = f" in the state ({missing.state}): {missing.why}."
        if missing.first_deployment is not None:
            why = (
                "The base branch has no models either."
                if missing.first_deployment == "base-without-models"
                else "`baseline: state` was chosen by name, so that is taken for right."
            )
            return BaselineNotice(
                "First deployment", f": no `prod` was found{found} {why}", expected=True
            )
        so = (
            "So this compares with the base branch."
            if report.baseline == "base-branch"
            else "There is no base branch to compare with either: every model counts as new, and "
            "what this change does to existing data is not known."
        )
        return BaselineNotice("No `prod` was found", f"{found} {so} {missing.hint}")
    failure = report.state_failure
    if failure is not None:
        why = f"{failure.message} {failure.hint or ''}".strip()
        return BaselineNotice(
            "The state of `prod` was not read", f", so this compares with the base branch: {why}"
        )
    return None
