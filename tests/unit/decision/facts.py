"""Review facts with nothing in them, changed through keyword arguments."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.decision import BotFacts, DecisionJudgement, TeamLimits, decide_on_review
from ci_bot.bot.decision.risks import judges
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.plan import (
    AuditsCheck,
    Backfill,
    Change,
    Checks,
    ColumnChange,
    Cost,
    Finding,
    Lineage,
    LintCheck,
    ProdPlan,
    TableDiffCheck,
    TestsCheck,
)
from ci_bot.protocol.review_report import Project, ReviewFacts, Risk
from ci_bot.protocol.rules import RULES

OWN_RULES = frozenset(spec.id for spec in judges.registered_specs)
BOT = BotFacts(changed_files=("models/stg/orders.sql",))


def checks(**parts: Any) -> Checks:
    """Everything checked, and everything well."""
    values: dict[str, Any] = {
        "lint": LintCheck(status="passed"),
        "tests": TestsCheck(status="passed", run=3),
        "audits": AuditsCheck(status="passed", blocking=2),
        "table_diff": TableDiffCheck(status="compared"),
    }
    return Checks(**values | parts)


def cost(**parts: Any) -> Cost:
    values: dict[str, Any] = {
        "intervals": 0,
        "batches": 0,
        "tables_rebuilt": 0,
        "executor_hours_low": 0.5,
        "executor_hours_mid": 1.0,
        "executor_hours_high": 2.0,
        "confidence": "high",
        "basis": "recorded runs",
    }
    return Cost(**values | parts)


def facts(**parts: Any) -> ReviewFacts:
    """A plan without changes, with all of its evidence."""
    values: dict[str, Any] = {
        "project": Project(paths=["."], gateway="spark", dialect="spark", models=10),
        "environment": "pr_7",
        "baseline": "state",
        "identity": None,
        "changes": [],
        "backfill": [],
        "work": [],
        "restatements": [],
        "statements": [],
        "prod_plan": ProdPlan(changes=0, backfill=[], would_fail=False),
        "findings": [],
        "checks": checks(),
        "cost": cost(),
        "stages": [],
        "lineage": Lineage(),
        "versions": Versions(ci_bot="0.1.0", python="3.11.9"),
        "timings": {},
    }
    # Nothing of it has been built yet, where a test does not say so.
    return ReviewFacts(**values | {"work": parts.get("backfill", [])} | parts)


def changed(model: str = "stg.orders", **parts: Any) -> Change:
    """One directly changed, non-breaking model."""
    values: dict[str, Any] = {
        "model": model,
        "change": "direct",
        "category": "non_breaking",
        "kind": "FULL",
        "path": f"models/{model.replace('.', '/')}.sql",
    }
    return Change(**values | parts)


def dropped(name: str, *readers: str) -> ColumnChange:
    return ColumnChange(name=name, before="STRING", after=None, readers=list(readers))


def built(model: str = "stg.orders", **parts: Any) -> Backfill:
    values: dict[str, Any] = {
        "model": model,
        "kind": "INCREMENTAL_BY_TIME_RANGE",
        "action": "incremental",
        "start": "2024-01-01T00:00:00Z",
        "end": "2024-03-01T00:00:00Z",
        "intervals": 60,
        "batches": 2,
        "preview": False,
        "reused_in_prod": True,
        "table": f"sqlmesh__{model}__1",
    }
    return Backfill(**values | parts)


def found(rule: str, severity: str, **parts: Any) -> Finding:
    values: dict[str, Any] = {"rule": rule, "severity": severity, "evidence": "seen"}
    return Finding(**values | parts)


def failed(message: str, stage: str = "plan", **parts: Any) -> Failure:
    values: dict[str, Any] = {
        "stage": stage,
        "reason_code": "failed",
        "exit_code": 1,
        "message": message,
    }
    return Failure(**values | parts)


def judged(
    bot: BotFacts = BOT, limits: TeamLimits | None = None, **parts: Any
) -> DecisionJudgement:
    """The judgement; a severity that a rule's page does not name fails the test."""
    judgement = decide_on_review(facts(**parts), limits=limits, bot=bot)
    own = [risk for risk in judgement.risks if risk.rule in OWN_RULES]
    unnamed = [risk for risk in own if risk.severity not in RULES[risk.rule].severities]
    if unnamed:
        raise AssertionError(unnamed)
    return judgement


def only(judgement: DecisionJudgement, rule: str) -> Risk:
    """The one risk of a rule."""
    (risk,) = [item for item in judgement.risks if item.rule == rule]
    return risk


def weights(judgement: DecisionJudgement) -> dict[str, str]:
    """Rule ids with their severities."""
    return {item.rule: item.severity for item in judgement.risks}
