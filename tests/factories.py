"""Sample documents for tests: complete and plausible, changed through keyword arguments."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.report.markdown.comments import Document, render_sweep_markdown
from ci_bot.bot.report.model.context import ApplyConditionView, CommentViewContext
from ci_bot.bot.report.text.markdown_page import render_plain
from ci_bot.bot.report.text.report_text import render_terminal_text
from ci_bot.protocol.apply_report import (
    AppliedModel,
    ApplyDocument,
    AuditTotals,
    ModelAudit,
    TableDiff,
    View,
)
from ci_bot.protocol.base import Versions
from ci_bot.protocol.cleanup_report import CleanupDocument, SweepReport
from ci_bot.protocol.comment import Marker
from ci_bot.protocol.plan import (
    AuditsCheck,
    Backfill,
    Change,
    Checks,
    Cost,
    FormatCheck,
    Lineage,
    LineageNode,
    LintCheck,
    ProdPlan,
    ProjectCheck,
    Stage,
    TableDiffCheck,
    TestsCheck,
)
from ci_bot.protocol.review_report import Project, Report, Risk

HEAD = "a1b2c3d" + "0" * 33
BASE = "0f9e8d7" + "0" * 33
MERGE = "5d4c3b2" + "0" * 33
PLAN = "9f3c21aa01bc" + "0" * 52
NOW = "2026-08-22T10:14:03Z"
VERSIONS = Versions(
    ci_bot="0.1.0",
    python="3.11.9",
    sqlmesh="0.236.4",
    pyspark=None,
    state_schema=100,
    state_engine="postgres",
)


def make_change(model: str = "stg.orders", **overrides: Any) -> Change:
    """A directly modified, breaking incremental model."""
    values: dict[str, Any] = {
        "model": model,
        "change": "direct",
        "category": "breaking",
        "kind": "INCREMENTAL_BY_TIME_RANGE",
        "path": f"models/{model.replace('.', '/')}.sql",
    }
    return Change(**values | overrides)


def make_backfill(model: str = "stg.orders", **overrides: Any) -> Backfill:
    """Two and a half years of daily intervals that prod will reuse."""
    schema, _, name = model.partition(".")
    values: dict[str, Any] = {
        "model": model,
        "kind": "INCREMENTAL_BY_TIME_RANGE",
        "action": "incremental",
        "start": "2024-01-01T00:00:00Z",
        "end": "2026-08-22T00:00:00Z",
        "intervals": 964,
        "batches": 33,
        "preview": False,
        "reused_in_prod": True,
        "table": f"sqlmesh__{schema}.{schema}__{name}__2817364",
    }
    return Backfill(**values | overrides)


def make_risk(rule: str = "full-history-rebuild", **overrides: Any) -> Risk:
    """A high risk on `stg.orders`."""
    values: dict[str, Any] = {
        "rule": rule,
        "severity": "high",
        "model": "stg.orders",
        "path": "models/stg/orders.sql",
        "line": 14,
        "evidence": "the change rebuilds 964 intervals of `stg.orders`, and 2 models downstream",
        "clears_when": "the owner confirms the rebuild",
    }
    return Risk(**values | overrides)


def make_cost(**parts: Any) -> Cost:
    """An estimate of 20 seconds from one earlier run, with `parts` in place of its values."""
    values: dict[str, Any] = {
        "intervals": 4,
        "batches": 4,
        "tables_rebuilt": 0,
        "tables": 4,
        "executor_hours_low": 0.0033,
        "executor_hours_mid": 0.0055,
        "executor_hours_high": 0.0089,
        "confidence": "medium",
        "basis": "From 1 earlier run.",
    }
    return Cost(**values | parts)


def make_report(**overrides: Any) -> Report:
    """A small, appliable review with one high risk."""
    changes = [
        make_change(owner="sales", diff=DIFF),
        make_change("mart.order_sources", change="added", category="non_breaking", kind="VIEW"),
        make_change("mart.revenue", change="indirect", category="indirect_breaking", kind="FULL"),
        make_change("mart.daily_sales", change="indirect", category="indirect_breaking"),
    ]
    backfill = [
        make_backfill(),
        make_backfill("mart.daily_sales", batches=12),
        make_backfill("mart.revenue", kind="FULL", action="full_refresh", intervals=1, batches=1),
        make_backfill(
            "mart.order_sources", kind="VIEW", action="recreate_view", intervals=1, batches=1
        ),
    ]
    values: dict[str, Any] = {
        "project": Project(paths=["analytics"], gateway="spark_prod", dialect="spark", models=31),
        "environment": "pr_142",
        "head_sha": HEAD,
        "base_sha": BASE,
        "merge_sha": MERGE,
        "plan_id": PLAN,
        "identity": None,
        "appliable": True,
        "not_appliable_because": None,
        "baseline": "state",
        "planned_at": NOW,
        "decision": "review",
        "reasons": ["`full-history-rebuild`: 964 intervals of `stg.orders` are built again."],
        "changes": changes,
        "backfill": backfill,
        "work": backfill,
        "restatements": [],
        "statements": [],
        "prod_plan": ProdPlan(changes=4, backfill=[], full_backfill=backfill, would_fail=False),
        "risks": [make_risk()],
        "checks": make_checks(),
        "cost": Cost(
            intervals=1929,
            batches=46,
            tables_rebuilt=1,
            tables=3,
            unknown=["mart.daily_sales", "mart.revenue", "stg.orders"],
            confidence="unknown",
            basis="no run of these models is on record yet, so only intervals are counted",
        ),
        "stages": [
            Stage(
                stage="create",
                title="Create physical tables",
                items=[item.table for item in backfill],
            ),
            Stage(
                stage="backfill",
                title="Backfill models, readers after what they read",
                items=[f"{item.model}: {item.intervals} intervals" for item in backfill[:3]],
            ),
            Stage(
                stage="promote",
                title="Point the views of pr_142 at the new tables",
                items=[change.model for change in changes],
            ),
        ],
        "lineage": Lineage(
            nodes=[
                *(LineageNode(model=c.model, change=c.change) for c in changes),
                LineageNode(model="raw.orders", change=None),
            ],
            edges=[
                ("raw.orders", "stg.orders"),
                ("stg.orders", "mart.order_sources"),
                ("stg.orders", "mart.daily_sales"),
                ("mart.daily_sales", "mart.revenue"),
            ],
        ),
        "environment_now": None,
        "notes": [],
        "versions": VERSIONS,
        "timings": {"load": 1.4, "lint": 0.2, "tests": 0.9, "plan": 0.8},
        "failure": None,
        "cut": [],
    }
    return Report(**values | overrides)


def make_checks(**overrides: Any) -> Checks:
    """Tests and lint pass; what needs data has not run."""
    values: dict[str, Any] = {
        "project": [
            ProjectCheck(
                name="versions",
                status="ok",
                message="Python 3.11.9, SQLMesh 0.236.4, PySpark 3.5.9",
            ),
            ProjectCheck(
                name="directories",
                status="ok",
                message="models/ 31 files, seeds/ 2 files, audits/ 1 file, tests/ 12 files; "
                "nothing in macros/",
            ),
            ProjectCheck(
                name="state",
                status="warn",
                message="duckdb, schema version 100, written by SQLMesh 0.236.4; one run at a "
                "time can open it",
                fix="A state that several runs share belongs on a server such as PostgreSQL.",
            ),
        ],
        "formatting": FormatCheck(
            status="needs_format", checked=2, files=["models/mart/order_sources.sql"]
        ),
        "lint": LintCheck(status="passed"),
        "tests": TestsCheck(status="passed", run=12, seconds=0.9),
        "audits": AuditsCheck(
            status="not_run",
            blocking=7,
            non_blocking=2,
            not_run_because="audits need the data, they run with an apply",
        ),
        "table_diff": TableDiffCheck(
            status="not_run", not_run_because="there is nothing to compare before an apply"
        ),
    }
    return Checks(**values | overrides)


def make_apply(**overrides: Any) -> ApplyDocument:
    """An apply that worked: three models, one data diff over a part of the history."""
    values: dict[str, Any] = {
        "environment": "pr_142",
        "plan_id": PLAN,
        "result": "applied",
        "models": [
            AppliedModel(
                model="stg.orders",
                table="sqlmesh__stg.stg__orders__2817364",
                action="incremental",
                intervals=964,
                batches=33,
                seconds=4_420.0,
                rows=48_211_904,
                audits=[
                    ModelAudit(audit="not_null", blocking=True, status="passed", failed_rows=0),
                    ModelAudit(audit="unique_values", blocking=True, status="passed"),
                ],
            ),
            AppliedModel(
                model="mart.daily_sales",
                table="sqlmesh__mart.mart__daily_sales__99120",
                action="incremental",
                intervals=964,
                batches=12,
                seconds=1_310.0,
                rows=964,
            ),
        ],
        "views": [
            View(view="spark_catalog.stg__pr_142.orders", resolves=True),
            View(view="spark_catalog.mart__pr_142.daily_sales", resolves=True),
            View(view="spark_catalog.mart__pr_142.revenue", resolves=True),
        ],
        "audits": AuditTotals(passed=2),
        "table_diff": [
            make_table_diff(),
            TableDiff(model="mart.revenue", compared=False, skipped_because="it has no grain"),
        ],
        "estimate": Cost(intervals=1929, batches=46, tables_rebuilt=1, basis="intervals only"),
        "seconds": 6_120.0,
        "timings": {"plan": 2.1, "backfill": 5_990.0, "verify": 11.0, "diff": 94.0},
        "versions": VERSIONS,
    }
    return ApplyDocument(**values | overrides)


def make_table_diff(model: str = "stg.orders", **overrides: Any) -> TableDiff:
    """Seven days compared, a few rows differ in one column."""
    window = {"column": "order_date", "start": "2026-08-15", "end": "2026-08-22"}
    values: dict[str, Any] = {
        "model": model,
        "compared": True,
        "window": window,
        "window_of": {**window, "start": "2024-08-22"},
        "keys": ["order_id"],
        "rows_prod": 412_904,
        "rows_pr": 412_904,
        "only_prod": 0,
        "only_pr": 0,
        "matched": 412_904,
        "full_match": 409_377,
        "null_keys": 0,
        "duplicate_keys": 0,
        "columns": [
            {"name": "amount", "match_rate": 1.0},
            {"name": "channel", "match_rate": 0.991458},
        ],
    }
    return TableDiff.model_validate(values | overrides)


def make_cleanup(**overrides: Any) -> CleanupDocument:
    """An environment that is gone, its tables kept because the pull request was merged."""
    values: dict[str, Any] = {
        "environment": "pr_142",
        "existed": True,
        "result": "removed",
        "views_dropped": [
            f"spark_catalog.{name}" for name in ("stg__pr_142.orders", "mart__pr_142.daily_sales")
        ],
        "schemas_dropped": ["spark_catalog.stg__pr_142", "spark_catalog.mart__pr_142"],
        "tables_kept": [
            {
                "table": "sqlmesh__stg.stg__orders__2817364",
                "why": "the pull request was merged and prod will reuse it",
                "until": "2026-08-29T10:14:03Z",
            }
        ],
        "state_record_removed": True,
        "seconds": 8.4,
        "versions": VERSIONS,
    }
    return CleanupDocument(**values | overrides)


def make_marker(**overrides: Any) -> Marker:
    """The marker of the planned comment of pull request 142."""
    values: dict[str, Any] = {
        "key": "analytics",
        "pr": 142,
        "head": HEAD,
        "base": BASE,
        "env": "pr_142",
        "plan": PLAN,
        "phase": "planned",
        "decision": "review",
        "run_id": 8812,
        "valid_at": NOW,
    }
    return Marker(**values | overrides)


def make_context(**overrides: Any) -> CommentViewContext:
    """Pull request 142 of shop/warehouse on github.com, everything met for an apply."""
    phase = overrides.get("phase", "planned")
    values: dict[str, Any] = {
        "project": "analytics",
        "environment": "pr_142",
        "now": NOW,
        "phase": phase,
        "marker": make_marker(phase=phase),
        "repository": "shop/warehouse",
        "pr_number": 142,
        "base_name": "main",
        "run_url": "https://github.com/shop/warehouse/actions/runs/8812",
        "report_url": "https://github.com/shop/warehouse/actions/runs/8812/artifacts/77",
        "conditions": (
            ApplyConditionView(label="write access", met=True),
            ApplyConditionView(label="plan matches the head", met=True),
            ApplyConditionView(label="no blocker", met=True),
            ApplyConditionView(label="no other apply is running", met=True),
        ),
    }
    return CommentViewContext(**values | overrides)


def laptop_context(**overrides: Any) -> CommentViewContext:
    """The context of a report on a laptop: nothing leads to GitHub."""
    values: dict[str, Any] = {
        "project": "analytics",
        "environment": "pr_142",
        "now": NOW,
        "phase": "planned",
        "options": "--project analytics --gateway spark_prod",
    }
    return CommentViewContext(**values | overrides)


def on_terminal(document: Document | SweepReport, **options: Any) -> str:
    """What a terminal shows of the document."""
    if isinstance(document, SweepReport):
        return render_plain(render_sweep_markdown(document, laptop_context()), **options)
    return render_terminal_text(document, laptop_context(), **options)


DIFF = """--- models/stg/orders.sql (prod)
+++ models/stg/orders.sql (pr_142)
@@ -9,7 +9,8 @@
 SELECT
   order_id::BIGINT,
   customer_id::BIGINT,
-  amount::DECIMAL(18, 2),
+  (amount - COALESCE(discount, 0))::DECIMAL(18, 2) AS amount,
+  COALESCE(channel, 'unknown')::STRING AS channel,
   order_date::DATE
 FROM raw.orders
 WHERE order_date BETWEEN @start_date AND @end_date
"""
