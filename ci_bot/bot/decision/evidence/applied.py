"""The decision after an apply: the review's, without what the data clears, with what it shows."""

from __future__ import annotations

from ci_bot.bot.decision.evidence.clearing import clear
from ci_bot.bot.decision.evidence.diffs import diff_risks
from ci_bot.bot.decision.given import Limits
from ci_bot.bot.decision.judge import decide
from ci_bot.bot.decision.risks import ordered
from ci_bot.bot.decision.rules.evidence_rules import NOT_CHECKED
from ci_bot.contracts.documents.apply import ApplyDocument, ApplyVerdict
from ci_bot.contracts.documents.finding_groups import group_findings
from ci_bot.contracts.documents.plan import Checks
from ci_bot.contracts.documents.report import Report, Risk

# What a review says to be missing because only an apply can look at it.
_NOW_CHECKED = ("audits", "data diff")


def judge_applied(
    report: Report, document: ApplyDocument, limits: Limits
) -> tuple[Report, ApplyVerdict] | None:
    """The review as it is with the evidence, and the verdict; None where this is no evidence on it.

    Args:
        report: What this run has reviewed itself. Nothing but what an apply has looked at is judged
            anew.
        limits: How much a table may differ.
    """
    if document.result != "applied" or report.failure or document.plan_id != report.plan_id:
        return None
    shown = diff_risks(document.table_diff, limits)
    counting, cleared, standing = clear(report, document.table_diff)
    missing = document.evidence_missing is not None
    kept = [item for item in counting if missing or not _is_checked_now(item)]
    risks = ordered([*kept, *shown])
    decision, reasons = decide(risks, report)
    verdict = ApplyVerdict(
        decision=decision, reasons=reasons, cleared=cleared, standing=standing, risks=shown
    )
    after = report.model_copy(
        update={
            "decision": decision,
            "reasons": reasons,
            "risks": risks,
            "findings": group_findings(risks),
            "set_aside": ordered([*report.set_aside, *cleared]),
            "checks": report.checks if missing else _checks(report.checks, document),
        }
    )
    return after, verdict


def _is_checked_now(item: Risk) -> bool:
    return item.rule == NOT_CHECKED.id and item.subject in _NOW_CHECKED and item.model is None


def _checks(checks: Checks, document: ApplyDocument) -> Checks:
    """With what the apply has run: audits where there were any, and the data diff."""
    ran = document.audits
    audits, table_diff = checks.audits, checks.table_diff
    if ran.passed or ran.failed:
        status = "failed" if ran.failed else "passed"
        audits = audits.model_copy(update={"status": status, "not_run_because": None})
    if any(diff.compared for diff in document.table_diff):
        table_diff = table_diff.model_copy(update={"status": "compared", "not_run_because": None})
    return checks.model_copy(update={"audits": audits, "table_diff": table_diff})
