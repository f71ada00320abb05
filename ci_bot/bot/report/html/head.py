"""The first screen: the decision, why, what is built, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ci_bot.bot.report import words
from ci_bot.bot.report.html.builds import describe_cost_in_html, describe_work_in_html_row
from ci_bot.bot.report.html.evidence import describe_lint_in_html_head
from ci_bot.bot.report.html.findings import describe_location
from ci_bot.bot.report.model.apply_evidence import ApplyView
from ci_bot.bot.report.model.build_table import describe_restated_models
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.bot.report.model.finding_groups import BlockerFixView
from ci_bot.bot.report.model.headline import make_baseline_notice_view
from ci_bot.bot.report.model.sentences import BASELINES, SENTENCES
from ci_bot.bot.report.model.view import ReviewView
from ci_bot.bot.report.words import MARKS, describe_tests
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import name_what_does_not_load, shorten_plan_id
from ci_bot.protocol.review_report import Report

_RESULTS = {
    "nothing_to_apply": ("no_changes", "⚪", "Nothing to apply"),
    "failed": ("no_go", "❌", "Apply failed"),
    "refused": ("no_go", "⛔", "Apply refused"),
    "cancelled": ("no_changes", "⏹️", "Apply cancelled"),
}
MOST_POINTS = 6
_OTHERS = 4


@dataclass(frozen=True)
class HtmlHeadPoint:
    """A point to fix or to check, and the rule that found it."""

    text: str
    rule: str | None = None


@dataclass(frozen=True, kw_only=True)
class HtmlPageHead:
    """The texts that the template prints. They are untrusted; text between backticks is code.

    Attributes:
        tone: a decision's name, which gives the colour.
        more: how many further points there are.
        facts: rows of a label and a sentence.
    """

    tone: str
    icon: str
    word: str
    reviewed: str
    project: str
    environment: str
    number: int | None
    sentence: str
    asked: str
    said: str
    points: Sequence[HtmlHeadPoint]
    more: int
    facts: Sequence[tuple[str, str]]
    checks: Sequence[str]
    warnings: Sequence[str]
    next: str
    command: str
    meta: Sequence[str]
    run_url: str | None
    title: str


def make_html_page_head(
    report: Report | None, context: CommentViewContext, applied: ApplyDocument | None = None
) -> HtmlPageHead:
    """Makes the first screen of a review, of an apply, or of an apply with the review before it.

    Raises:
        ValueError: there is neither a review nor an apply.
    """
    if report is None and applied is None:
        raise ValueError("a page shows a review, an apply, or both")
    view = ReviewView(report, context) if report is not None else None
    evidence = ApplyView(applied) if applied is not None else None
    tone, icon, word = _describe_build_of_apply(evidence) if evidence else _describe_decision(view)
    reviewed = ""
    if report is not None and applied is not None:
        reviewed = f"The review said: {words.DECISIONS[report.decision]}"
    points = _list_evidence_points(evidence) if evidence else _list_points_of_page_head(view)
    following, command = _describe_next_step(view, context, applied)
    return HtmlPageHead(
        tone=tone,
        icon=icon,
        word=word,
        reviewed=reviewed,
        project=context.project,
        environment=context.environment,
        number=context.pr_number,
        sentence=_make_headline_of_page(view, evidence),
        asked=_describe_applied_decision(applied) if applied else view.asked_people if view else "",
        said="" if applied else _describe_no_plan(report),
        points=points[:MOST_POINTS],
        more=max(len(points) - MOST_POINTS, 0),
        facts=[*_list_applied_facts(evidence), *_list_facts_of_page_head(report)],
        checks=_list_checks_of_page_head(report),
        warnings=_list_warnings(report, context),
        next=following,
        command=command,
        meta=_list_plan_and_commits_of_head(report, context, applied),
        run_url=context.run_url,
        title=f"{word} · {context.project} → {context.environment}".replace("`", ""),
    )


def _describe_decision(view: ReviewView | None) -> tuple[str, str, str]:
    if view is None:
        return "no_changes", "", ""
    decision = view.report.decision
    fixes = len(view.findings.fixes)
    more = f" · {words.format_count(fixes, 'thing')} to fix" if fixes else ""
    return decision, words.DECISION_ICONS[decision], f"{words.DECISIONS[decision]}{more}"


def _describe_build_of_apply(view: ApplyView) -> tuple[str, str, str]:
    if view.doc.result != "applied":
        return _RESULTS[view.doc.result]
    word = f"Built in `{view.doc.environment}` · {view.heading}"
    if not view.is_clean:
        return "review", "🟡", word
    return ("no_changes", "⚪", word) if view.data == "nothing" else ("go", "✅", word)


def _make_headline_of_page(view: ReviewView | None, evidence: ApplyView | None) -> str:
    if evidence is not None:
        failure = evidence.doc.failure
        if failure is not None:
            return failure.message
        sentence = evidence.sentence
        return f"{sentence}." if sentence else ""
    if view is None or view.report.base_failures:
        return ""
    rest = f" Also: {view.head.rest}." if view.head.rest else ""
    return f"{view.head.sentence}{rest}"


def _describe_applied_decision(applied: ApplyDocument) -> str:
    verdict = applied.verdict
    if verdict is None:
        return ""
    reasons = " ".join(verdict.reasons[:2]) if verdict.decision in ("review", "no_go") else ""
    decided = f"{SENTENCES.decision_with_data} {words.DECISIONS[verdict.decision]}"
    return f"{decided}: {reasons}" if reasons else f"{decided}."


def _list_points_of_page_head(view: ReviewView | None) -> list[HtmlHeadPoint]:
    """Lists what to fix, and what to check."""
    if view is None:
        return []
    found = [
        HtmlHeadPoint(
            f"{fix.icon} `{describe_location(fix.shown)}`: {_describe_fix(fix)}",
            fix.shown.rule,
        )
        for fix in view.findings.fixes
    ]
    for point in view.findings.points:
        more = f" and {point.more_places:,} more" if point.more_places else ""
        text = f"`{describe_location(point.risk)}`{more}: {point.sentence}"
        found.append(HtmlHeadPoint(text, point.risk.rule))
    return found


def _describe_fix(fix: BlockerFixView) -> str:
    """Says what is wrong, how to fix it, and what fails because of it, in a comment's words."""
    revoke = f"{SENTENCES.revoke_now} {SENTENCES.revoke_rest}"
    how = revoke if fix.is_secret else fix.remedy
    what = SENTENCES.message_below if fix.is_failure else fix.shown.evidence
    broken = list(dict.fromkeys(other.path or describe_location(other) for other in fix.follow_ups))
    others = ", ".join(f"`{name}`" for name in broken[:_OTHERS])
    more = words.and_more(broken, _OTHERS)
    return f"{what} {how}" + (f" {SENTENCES.fails_because} {others}{more}." if others else "")


def _describe_no_plan(report: Report | None) -> str:
    """Returns SQLMesh's message if there is no plan; "" if there is one."""
    failures = [report.failure, *report.base_failures] if report else []
    return next((failure.message for failure in failures if failure is not None), "")


def _list_evidence_points(evidence: ApplyView) -> list[HtmlHeadPoint]:
    """Lists what an apply shows that somebody should check."""
    verdict = evidence.doc.verdict
    cleared = verdict.cleared if verdict else []
    return [
        *(HtmlHeadPoint(f"Audit failed: {text}.") for text in evidence.blocking_audits),
        *(HtmlHeadPoint(f"Audit warns: {text}.") for text in evidence.warning_audits),
        *(
            HtmlHeadPoint(f"`{describe_location(r)}`: cleared by the data.", r.rule)
            for r in cleared
        ),
    ]


def _list_facts_of_page_head(report: Report | None) -> list[tuple[str, str]]:
    if report is None or report.failure is not None:
        return []
    found = [("Changes", _describe_changes_in_page_head(report))]
    if report.changes:
        env, plan = report.environment, report.prod_plan
        found.append(
            ("In the environment", describe_work_in_html_row(report.backfill, f"`{env}` builds"))
        )
        if plan is not None:
            after = describe_work_in_html_row(plan.full_backfill, "`prod` builds")
            if plan.would_fail:
                after = f"{SENTENCES.prod_plan_fails}: {plan.failure or ''}"
            found.append(("After the merge", after))
        later = plan.cost if plan else None
        known = later is not None and later.executor_hours_mid is not None
        prod = f"; in `prod` {describe_cost_in_html(later)}" if later is not None and known else ""
        found.append(("Executor time", f"{describe_cost_in_html(report.cost)}{prod}"))
    restated = describe_restated_models(report.prod_restatements)
    if restated:
        found.append(("After it", f"`prod` {restated}"))
    return found


def _describe_changes_in_page_head(report: Report) -> str:
    counts: Counter[str] = Counter(
        change.change for change in report.changes if not change.from_base
    )
    drift = sum(change.from_base for change in report.changes)
    named = [f"{counts[name]:,} {word}" for name, word in words.CHANGES.items() if counts[name]]
    more = f"; {drift:,} more come from the base branch" if drift else ""
    models = words.format_count(report.project.models, "model")
    return f"{' · '.join(named) or 'none'}, out of {models}{more}"


def _list_applied_facts(view: ApplyView | None) -> list[tuple[str, str]]:
    if view is None or view.doc.result not in ("applied", "failed", "cancelled"):
        return []
    applied = view.doc
    built, audits = view.built_work, applied.audits
    rows = f", {words.format_count(view.rows, 'row')}" if view.rows is not None else ""
    found = [
        (
            "Built",
            f"{words.format_count(built.tables, 'table')}, "
            f"{words.format_count(built.intervals, 'interval')} in "
            f"{words.format_count(built.batches, 'batch')}{rows}, in "
            f"{words.duration(applied.seconds)}",
        )
    ]
    if audits.passed or audits.failed:
        soft = audits.failed - audits.blocking_failed
        warned = f" · {words.format_count(soft, 'warning')}" if soft else ""
        failed = f" · {audits.blocking_failed:,} failed" if audits.blocking_failed else ""
        found.append(("Audits", f"{audits.passed:,} passed{warned}{failed}"))
    if view.compared:
        same = sum(diff.state == "same" for diff in view.compared)
        found.append(
            (
                "Data",
                f"differs on {len(view.differing):,} of "
                f"{words.format_count(len(view.compared), 'model')}, {same:,} identical",
            )
        )
    return found


def _list_checks_of_page_head(report: Report | None) -> list[str]:
    if report is None:
        return []
    checks = (describe_tests(report.checks.tests), describe_lint_in_html_head(report.checks.lint))
    return [f"{MARKS[found.result]} {found.text}" for found in checks]


def _list_warnings(report: Report | None, context: CommentViewContext) -> list[str]:
    found = []
    notice = None if report is None else make_baseline_notice_view(report)
    if notice is not None:
        found.append(notice.render_unmarked())
    if report is not None and report.base_failures:
        found.append(
            f"{name_what_does_not_load(report.base_failures)}. "
            + (
                SENTENCES.base_is_why
                if ReviewView(report, context).is_unplanned
                else "This pull request repairs it, so every model counts as new."
            )
        )
    if context.fork:
        found.append(SENTENCES.fork_without_access)
    if context.override is not None:
        override = context.override
        found.append(
            f"A maintainer, `{override.by}`, let this plan through despite its blockers: "
            f"{override.reason}"
        )
    return found


def _describe_next_step(
    view: ReviewView | None, context: CommentViewContext, applied: ApplyDocument | None
) -> tuple[str, str]:
    if applied is not None:
        return (applied.failure.hint or "") if applied.failure else "", ""
    if view is None:
        return "", ""
    return _describe_next_of_review(view, context)


def _describe_next_of_review(view: ReviewView, context: CommentViewContext) -> tuple[str, str]:
    report = view.report
    if report.failure is not None:
        return ("" if view.findings.repeats_hint else report.failure.hint or ""), ""
    if report.decision == "no_go":
        return "Fix these and push; the comment follows.", ""
    if not report.appliable:
        why = view.why_not
        return (f"This plan can't be applied{f': {why}' if why else '.'}"), ""
    if view.already_built:
        return f"Nothing to build: `{report.environment}` {SENTENCES.holds_plan}.", ""
    do = "comment" if context.repository else "run"
    return (
        f"To see the data in `{report.environment}`, {do} {SENTENCES.prod_stays}",
        context.apply_command(report.plan_id),
    )


def _list_plan_and_commits_of_head(
    report: Report | None, context: CommentViewContext, applied: ApplyDocument | None
) -> list[str]:
    plan = report.plan_id if report else applied.plan_id if applied else None
    found = [f"plan `{shorten_plan_id(plan)}`"] if plan else []
    if report is not None:
        found += [f"head `{report.head_sha[:7]}`"] if report.head_sha else []
        found += [f"on `{report.base_sha[:7]}`"] if report.base_sha else []
        found.append(BASELINES[report.baseline])
        found.append(f"planned {words.format_clock(report.planned_at)}")
    else:
        found.append(words.format_clock(context.now))
    return found
