"""The sections of a review in the order in which a budget cuts them, each with what it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ci_bot.bot.comment.first_screen.picture import node_notes
from ci_bot.bot.comment.parts.budget import Share
from ci_bot.bot.comment.parts.compose import CELL_LIMIT, full_report, row, row_of
from ci_bot.bot.comment.parts.sections import Diff, Diffs, Graph, Rows, Stages
from ci_bot.bot.comment.text import markdown
from ci_bot.bot.comment.text.prose import prose
from ci_bot.bot.comment.view import ReviewView
from ci_bot.contracts.documents.plan import Backfill, Change, Lineage

_CHANGES = "| Model | Change | Category | Kind | Owner |\n|:--|:--|:--|:--|:--|"
_MINOR = "| Model | Category | Kind |\n|:--|:--|:--|"
_IMPACT = "| Changed | How | Reaches |\n|:--|:--|:--|"
_RISKS = "| Risk | Where | Evidence | Clears when |\n|:--|:--|:--|:--|"
_ASIDE = "| Finding | Where | Evidence | Why it does not count |\n|:--|:--|:--|:--|"
_FINDINGS = "| Finding | Where | Evidence |\n|:--|:--|:--|"
_LOSSES = "| Model | What goes | Still read by |\n|:--|:--|:--|"
_BACKFILL = "| Model | How | Window | Intervals | Batches | Table |\n|:--|:--|:--|--:|--:|:--|"
_RESTATEMENTS = "| Model | Window | Clears data of |\n|:--|:--|:--|"
_STATEMENTS = "| When | Change | Statement |\n|:--|:--|:--|"
_WORK = (
    "| Model | Change | What is built here | Intervals | In `prod` later |\n|:--|:--|:--|--:|:--|"
)
_GAPS = "| Model | Missing |\n|:--|:--|"
_HISTORY = "| When | Head | Plan | Decision | Run |\n|:--|:--|:--|:--|:--|"


def _work(view: ReviewView, full: markdown.SafeMarkdown) -> Rows[Backfill]:
    macro = row_of("work")

    def work(item: Backfill) -> str:
        change = view.change_of.get(item.model)
        return macro(item, change, view.links, view.later(item))

    return Rows("work", view.backfill, work, "models", full, _WORK)


def review_shares(view: ReviewView, *, complete: bool) -> list[Share]:
    """All sections; those that a reader needs least come first, because they are cut first.

    `complete` texts also keep long cells whole.
    """
    report, links = view.report, view.links
    full = full_report(view.context)
    limit = None if complete else CELL_LIMIT

    def table(name: str, items: Sequence[Any], header: str, noun: str, *args: Any) -> Rows[Any]:
        macro, *rest = args
        return Rows(name, items, row(macro, *rest), noun, full, header)

    change = row("diff_heading", links)

    def diff(item: Change) -> Diff:
        return Diff(markdown.SafeMarkdown(change(item)), item.diff or "")

    checks = report.checks
    plan = report.prod_plan
    history = list(reversed(view.context.history))

    def lines(name: str, items: Sequence[str], noun: str) -> Rows[str]:
        return Rows(name, items, lambda text: f"- {prose(text, limit)}", noun, full)

    tests = Rows(
        "tests",
        checks.tests.failures,
        row("test_failure", links, limit),
        "failed tests",
        full,
        separator="\n\n",
    )
    alters = plan.forward_only_schema_changes if plan else []
    failure = [plan.failure] if plan and plan.failure else []
    small = [
        Share(lines("notes", report.notes, "notes"), 800),
        Share(lines("basis", [report.cost.basis], "remarks"), 500),
        Share(table("gaps", view.gaps, _GAPS, "gaps", "gap"), 500),
        Share(Rows("alters", alters, row("named"), "tables", full), 500),
        Share(lines("prod_failure", failure, "lines"), 500),
        Share(
            table("statements", report.statements, _STATEMENTS, "statements", "statement", limit),
            800,
        ),
        Share(
            table("restatements", view.restatements, _RESTATEMENTS, "models", "restatement"), 800
        ),
    ]
    graph = None if view.picture else report.lineage
    shared = [
        Share(table("history", history, _HISTORY, "earlier plans", "entry", links), 1_500),
        Share(Graph("lineage", graph or Lineage(), full, node_notes(report)), 5_000),
        Share(table("metadata", view.metadata, _MINOR, "models", "minor", links), 1_000),
        Share(Diffs("diffs", [diff(item) for item in view.diffs], full), 14_000),
        Share(table("indirect", view.downstream, _MINOR, "models", "minor", links), 2_500),
        Share(table("impact", view.impact, _IMPACT, "changes", "impact"), 1_500),
        Share(table("drift", view.drift, _CHANGES, "models", "change", links), 1_500),
        Share(tests, 2_500),
        *small,
        Share(table("edited", view.edited, _CHANGES, "models", "change", links), 3_500),
        Share(table("aside", view.aside, _ASIDE, "findings", "aside", links, limit), 1_500),
        Share(table("losses", view.losses, _LOSSES, "models", "loss", links), 2_000),
    ]
    if not complete:
        below = view.findings.below
        return [
            *shared,
            Share(_work(view, full), 3_500),
            Share(table("below", below, _RISKS, "findings", "risk", links, limit), 4_000),
        ]
    blockers = [point for point in view.risks if point.risk.severity == "blocker"]
    risks = [point for point in view.risks if point.risk.severity != "blocker"]
    advice = Rows(
        "recommendations",
        view.recommendations,
        lambda text: f"1. {prose(text, limit)}",
        "recommendations",
        full,
    )
    lint = table("lint", checks.lint.findings, _FINDINGS, "findings", "finding", links, limit)
    prod = table("prod_backfill", view.prod_backfill, _BACKFILL, "models", "backfill")
    return [
        *shared,
        Share(Stages("stages", report.stages, full), 0),
        Share(lint, 0),
        Share(advice, 0),
        Share(prod, 0),
        Share(table("previews", view.previews, _BACKFILL, "models", "backfill"), 0),
        Share(table("reused", view.reused, _BACKFILL, "models", "backfill"), 0),
        Share(table("risks", risks, _RISKS, "risks", "risk", links, limit), 0),
        Share(table("blockers", blockers, _RISKS, "blockers", "risk", links, limit), 0),
    ]
