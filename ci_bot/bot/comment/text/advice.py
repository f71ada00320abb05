"""What to do next about a project, most pressing first: the recommendations of a validation."""

from __future__ import annotations

from ci_bot.contracts.documents.finding_groups import group_risks
from ci_bot.contracts.documents.report import Report

# A longer list is read by nobody; the risks have a table of their own.
_MAX_RISKS = 5


def recommendations(report: Report) -> list[str]:
    """A sentence for each thing to mend, in the order in which it pays.

    What makes every later step fail comes first, then what stops the decision, then what is only
    worth doing.
    """
    checks = report.checks
    failing = [check for check in checks.project if check.status == "fail"]
    advice = [f"{check.message} {check.fix or ''}".strip() for check in failing]
    newly = checks.tests.failed - checks.tests.failed_before
    if newly:
        advice.append(
            f"Make the failing unit tests pass ({newly} of {checks.tests.run}); "
            "`sqlmesh test` shows what they expected."
        )
    if checks.lint.errors:
        advice.append(
            f"Clear the linter's errors ({checks.lint.errors}); `sqlmesh lint` lists them."
        )
    pressing = [
        risk
        for severity in ("blocker", "high")
        for risk in report.risks
        if risk.severity == severity
    ]
    for risk, *others in group_risks(pressing)[:_MAX_RISKS]:
        about = f"{risk.rule} on {risk.model}" if risk.model else risk.rule
        more = f" and {len(others):,} more" if others else ""
        advice.append(f"{about}{more} clears when: {risk.clears_when}")
    advice += [
        f"{check.message.rstrip('.')}. {check.fix or ''}".strip()
        for check in checks.project
        if check.status == "warn"
    ]
    if checks.formatting.files:
        advice.append(
            f"Run `sqlmesh format`: it would change {', '.join(checks.formatting.files[:5])}."
        )
    if checks.lint.warnings:
        advice.append(f"Look at the linter's warnings ({checks.lint.warnings}).")
    if checks.lint.status == "off":
        advice.append("Switch the project's linter on, so that `sqlmesh plan` checks the same.")
    return advice
