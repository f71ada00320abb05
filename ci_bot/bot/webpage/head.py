"""The first screen: the decision, why, what is built, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.evidence.apply_view import ApplyView
from ci_bot.bot.comment.text import words
from ci_bot.bot.webpage.building import work_sentence
from ci_bot.bot.webpage.cost import cost_words
from ci_bot.bot.webpage.findings import by_weight, where
from ci_bot.bot.webpage.story import lint_words, tests_words
from ci_bot.contracts.base import short
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.contracts.documents.report import Report

_RESULTS = {
    "nothing_to_apply": ("no_changes", "⚪", "Nothing to apply"),
    "failed": ("no_go", "❌", "Apply failed"),
    "refused": ("no_go", "⛔", "Apply refused"),
    "cancelled": ("no_changes", "⏹️", "Apply cancelled"),
}
_BASELINES = {
    "state": "compared with `prod`",
    "base-branch": "compared with the base branch, without state",
    "empty": "with no `prod` yet: everything is new",
}
_MARKS = {"ok": "✅", "warn": "⚠️", "fail": "❌", "not_run": "⬜"}


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the template prints. Texts are untrusted; what stands between backticks is code.

    Attributes:
        tone: a decision's name, which gives the colour.
        facts: rows of a label and a sentence.
    """

    tone: str
    icon: str
    word: str
    reviewed: str
    project: str
    environment: str
    number: int | None
    reasons: Sequence[str]
    facts: Sequence[tuple[str, str]]
    checks: Sequence[str]
    warnings: Sequence[str]
    next: str
    command: str
    meta: Sequence[str]
    run_url: str | None
    title: str


def head_of(
    report: Report | None, context: CommentContext, applied: ApplyDocument | None = None
) -> Head:
    """The first screen of a review, of an apply, or of an apply with the review before it."""
    tone, icon, word = _verdict(report, applied)
    reviewed = ""
    if report is not None and applied is not None:
        reviewed = f"The review said: {words.DECISIONS[report.decision]}"
    following, command = _next(report, context, applied)
    return Head(
        tone=tone,
        icon=icon,
        word=word,
        reviewed=reviewed,
        project=context.project,
        environment=context.environment,
        number=context.pr_number,
        reasons=_reasons(report, applied),
        facts=[*_applied_facts(applied), *_facts(report)],
        checks=_checks(report),
        warnings=_warnings(report, context),
        next=following,
        command=command,
        meta=_meta(report, context, applied),
        run_url=context.run_url,
        title=f"{word} · {context.project} → {context.environment}".replace("`", ""),
    )


def _verdict(report: Report | None, applied: ApplyDocument | None) -> tuple[str, str, str]:
    if applied is not None and applied.result == "applied":
        return _built(ApplyView(applied))
    if applied is not None:
        return _RESULTS[applied.result]
    if report is None:
        raise ValueError("a page shows a review, an apply, or both")
    word = words.DECISIONS[report.decision]
    heavy: Counter[str] = Counter(risk.severity for risk in report.risks)
    for severity, noun in (("blocker", "thing to fix"), ("high", "high risk"), ("medium", "risk")):
        if heavy[severity]:
            amount = heavy[severity]
            things = f"{amount} things to fix" if noun == "thing to fix" and amount > 1 else ""
            word += f" · {things or words.count(amount, noun)}"
            break
    return report.decision, words.DECISION_ICONS[report.decision], word


def _built(view: ApplyView) -> tuple[str, str, str]:
    tone, icon = (
        ("go", "⚪" if view.data == "nothing" else "✅") if view.clean else ("review", "🟡")
    )
    return tone, icon, f"Built in `{view.doc.environment}` · {view.heading}"


def _reasons(report: Report | None, applied: ApplyDocument | None) -> list[str]:
    if applied is not None and applied.failure is not None:
        return [applied.failure.message]
    if report is None:
        return []
    if report.failure is not None and not report.reasons:
        return [report.failure.message]
    heavy = [r for r in by_weight(report.risks) if r.severity in ("blocker", "high")]
    return [f"`{where(risk)}`: {risk.evidence}" for risk in heavy] or list(report.reasons)


def _facts(report: Report | None) -> list[tuple[str, str]]:
    if report is None or report.failure is not None:
        return []
    found = [("Changes", _changes(report))]
    if report.changes:
        env, plan = report.environment, report.prod_plan
        found.append(("In the environment", work_sentence(report.backfill, f"`{env}` builds")))
        if plan is not None:
            after = work_sentence(plan.full_backfill, "`prod` builds")
            if plan.would_fail:
                after = f"The plan for `prod` would fail: {plan.failure or ''}"
            found.append(("After the merge", after))
        later = plan.cost if plan else None
        known = later is not None and later.executor_hours_mid is not None
        prod = f"; in `prod` {cost_words(later)}" if later is not None and known else ""
        found.append(("Executor time", f"{cost_words(report.cost)}{prod}"))
    return found


def _changes(report: Report) -> str:
    counts: Counter[str] = Counter(
        change.change for change in report.changes if not change.from_base
    )
    drift = sum(change.from_base for change in report.changes)
    named = [f"{counts[name]:,} {word}" for name, word in words.CHANGES.items() if counts[name]]
    more = f"; {drift:,} more come from the base branch" if drift else ""
    models = words.count(report.project.models, "model")
    return f"{' · '.join(named) or 'none'}, out of {models}{more}"


def _applied_facts(applied: ApplyDocument | None) -> list[tuple[str, str]]:
    if applied is None or applied.result not in ("applied", "failed", "cancelled"):
        return []
    view = ApplyView(applied)
    built, audits = view.built, applied.audits
    rows = f", {words.count(view.rows, 'row')}" if view.rows is not None else ""
    found = [
        (
            "Built",
            f"{words.count(built.tables, 'table')}, {words.count(built.intervals, 'interval')} in "
            f"{words.count(built.batches, 'batch')}{rows}, in {words.duration(applied.seconds)}",
        )
    ]
    if audits.passed or audits.failed:
        soft = audits.failed - audits.blocking_failed
        warned = f" · {words.count(soft, 'warning')}" if soft else ""
        failed = f" · {audits.blocking_failed:,} failed" if audits.blocking_failed else ""
        found.append(("Audits", f"{audits.passed:,} passed{warned}{failed}"))
    if view.compared:
        same = len(view.compared) - len(view.differing) - view.empty
        found.append(
            (
                "Data",
                f"differs on {len(view.differing):,} of "
                f"{words.count(len(view.compared), 'model')}, {same:,} identical",
            )
        )
    return found


def _checks(report: Report | None) -> list[str]:
    if report is None:
        return []
    said = (tests_words(report.checks.tests), lint_words(report.checks.lint))
    return [f"{_MARKS[result]} {text}" for result, text in said]


def _warnings(report: Report | None, context: CommentContext) -> list[str]:
    found = []
    if report is not None and report.state_failure is not None:
        why = report.state_failure
        found.append(
            "The state of `prod` was not read, so this compares with the base branch: "
            f"{why.message} {why.hint or ''}"
        )
    if report is not None and report.base_failures:
        found.append(f"The base branch does not load: {report.base_failures[0].message}")
    if context.fork:
        found.append(
            "This pull request comes from a fork, so the report was made without access to the "
            "warehouse or the state."
        )
    if context.override is not None:
        override = context.override
        found.append(
            f"A maintainer, `{override.by}`, let this plan through despite its blockers: "
            f"{override.reason}"
        )
    return found


def _next(
    report: Report | None, context: CommentContext, applied: ApplyDocument | None
) -> tuple[str, str]:
    if applied is not None:
        return (applied.failure.hint or "") if applied.failure else "", ""
    if report is None:
        return "", ""
    if report.failure is not None:
        return report.failure.hint or "", ""
    if not report.appliable:
        why = (report.not_appliable_because or "").strip()
        return (f"This plan cannot be applied: {why}" if why else ""), ""
    if report.decision == "no_go":
        return "Clear the blockers and push.", ""
    do = "comment" if context.repository else "run"
    return (
        f"To see the data, {do} this; nothing in `prod` changes:",
        context.apply_command(report.plan_id),
    )


def _meta(
    report: Report | None, context: CommentContext, applied: ApplyDocument | None
) -> list[str]:
    plan = report.plan_id if report else applied.plan_id if applied else None
    found = [f"plan `{short(plan)}`"] if plan else []
    if report is not None:
        found += [f"head `{report.head_sha[:7]}`"] if report.head_sha else []
        found += [f"on `{report.base_sha[:7]}`"] if report.base_sha else []
        found.append(_BASELINES[report.baseline])
        found.append(f"planned {words.clock(report.planned_at)}")
    else:
        found.append(words.clock(context.now))
    return found
