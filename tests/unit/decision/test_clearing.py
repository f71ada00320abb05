"""What the data diff of an apply clears, and what only looks as if it could."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ci_bot.bot.decision import TeamLimits, decide_again_after_apply
from ci_bot.protocol.apply_report import (
    ApplyDocument,
    ApplyVerdict,
    AuditTotals,
    DiffWindow,
    SchemaDifference,
    TableDiff,
)
from ci_bot.protocol.plan import Lineage, LineageNode
from ci_bot.protocol.review_report import Report, Risk, Weighed
from ci_bot.protocol.rules import RULES
from tests.factories import make_change, make_report, make_risk

REBUILD = "R06-breaking-rebuild"
PLAN = "a" * 64


def diff(model: str = "shop.orders", **parts: Any) -> TableDiff:
    """All that prod has was compared, and nothing differs."""
    values: dict[str, Any] = {
        "model": model,
        "compared": True,
        "complete": True,
        "rows_prod": 48,
        "rows_pr": 48,
        "only_prod": 0,
        "only_pr": 0,
        "matched": 48,
        "full_match": 48,
        "same": 48,
        "null_keys": 0,
        "duplicate_keys": 0,
    }
    return TableDiff(**values | parts)


def reviewed(*risks: Risk, readers: int = 1, kind: str = "FULL") -> Report:
    """A breaking change of `shop.orders`, and models that read it, each the one before."""
    names = ["shop.orders", *(f"shop.r{number}" for number in range(readers))]
    return make_report(
        risks=list(risks) or [make_risk(REBUILD, model="shop.orders", severity="high")],
        decision="review",
        plan_id=PLAN,
        changes=[
            make_change(names[0], category="breaking"),
            *(
                make_change(name, change="indirect", category="indirect_breaking", kind=kind)
                for name in names[1:]
            ),
        ],
        lineage=Lineage(
            nodes=[LineageNode(model=name, change="direct") for name in names],
            edges=list(pairwise(names)),
        ),
    )


def applied(*diffs: TableDiff, **parts: Any) -> ApplyDocument:
    values: dict[str, Any] = {
        "environment": "pr_7",
        "plan_id": PLAN,
        "result": "applied",
        "table_diff": list(diffs),
        "seconds": 1.0,
        "timings": {},
        "versions": {"ci_bot": "0", "python": "3"},
    }
    return ApplyDocument(**values | parts)


def after(report: Report, *diffs: TableDiff, **parts: Any) -> tuple[Report, ApplyVerdict]:
    found = decide_again_after_apply(report, applied(*diffs, **parts), TeamLimits())
    assert found is not None
    return found


def test_clear__a_whole_history_without_a_difference_makes_a_review_a_go() -> None:
    report, verdict = after(reviewed(), diff(), diff("shop.r0", rows_prod=2, **_all(2)))
    assert (report.decision, verdict.decision) == ("go", "go")
    (cleared,) = verdict.cleared
    assert report.set_aside == [cleared]
    assert cleared.weighed == Weighed(
        by="data_diff",
        weight="high",
        reason="Past results did not change: 0 of 50 rows differ from prod in `shop.orders` and in "
        "1 model that reads it, over all that prod has",
    )
    assert verdict.standing == []


def _all(rows: int) -> dict[str, int]:
    return dict.fromkeys(("rows_pr", "matched", "full_match", "same"), rows)


PART = DiffWindow(column="ds", start="2024-01-30T00:00:00Z", end="2024-01-31T00:00:00Z")
WHOLE = DiffWindow(column="ds", start="2024-01-01T00:00:00Z", end="2024-01-31T00:00:00Z")
GAPS: dict[str, tuple[dict[str, Any], str]] = {
    "a window": (
        {"complete": False, "window": PART, "window_of": WHOLE},
        "only 2024-01-30 to 2024-01-31 was compared, 1 of 30 days that prod has",
    ),
    "gaps within": ({"complete": False}, "only a part of it was compared"),
    "not compared": (
        {"compared": False, "skipped_because": "The model has no grain."},
        "it was not compared. The model has no grain",
    ),
    "duplicate keys": ({"duplicate_keys": 1}, "its keys do not tell all of its rows apart"),
    "null keys": ({"null_keys": 1}, "its keys do not tell all of its rows apart"),
    "empty": (
        {"rows_prod": 0, **_all(0)},
        "prod has no rows of it, so there was nothing to compare",
    ),
    "a row gone": ({"rows_pr": 47, "matched": 47}, "its rows are not the same as prod's"),
    "a row new": ({"rows_pr": 49, "only_pr": 1}, "its rows are not the same as prod's"),
    "one key for another": (
        {"matched": 47, "full_match": 47, "same": 47, "only_prod": 1, "only_pr": 1},
        "its rows are not the same as prod's",
    ),
    "a value": ({"full_match": 47, "same": 47}, "its rows are not the same as prod's"),
    "a rounded value": ({"same": 47}, "numbers in it differ by less than they are rounded to"),
    "a type that cannot be compared": (
        {"full_match": None, "same": None, "skipped_because": "Spark cannot compare g."},
        "its columns were not all compared. Spark cannot compare g",
    ),
    "a column gone": (
        {"schema": SchemaDifference(removed=["x"])},
        "columns are gone, or of another type",
    ),
    "a type": (
        {"schema": SchemaDifference(changed=["x"])},
        "columns are gone, or of another type",
    ),
}


@pytest.mark.parametrize("gap", GAPS)
def test_clear__not_by_a_diff_with_a_gap(gap: str) -> None:
    parts, why = GAPS[gap]
    report, verdict = after(reviewed(), diff(**parts), diff("shop.r0"))
    assert (report.decision, verdict.cleared) == ("review", [])
    assert [(item.rule, item.model, item.why) for item in verdict.standing] == [
        (REBUILD, "shop.orders", why)
    ]


@pytest.mark.parametrize(
    ("diffs", "why"),
    [
        ([diff()], "`shop.r0`, which reads it: it was not compared"),
        (
            [diff(), diff("shop.r0"), diff("shop.r1", complete=False)],
            "`shop.r1`, which reads it: only a part of it was compared",
        ),
    ],
)
def test_clear__every_changed_model_that_reads_it_counts(diffs: list[TableDiff], why: str) -> None:
    _, verdict = after(reviewed(readers=2), *diffs)
    assert [item.why for item in verdict.standing] == [why]


def test_clear__an_embedded_reader_has_no_table_that_could_be_compared() -> None:
    _, verdict = after(reviewed(kind="EMBEDDED"), diff())
    assert verdict.decision == "go"


def test_clear__a_new_column_takes_nothing_away() -> None:
    found = diff(schema=SchemaDifference(added=["fresh"]))
    _, verdict = after(reviewed(readers=0), found)
    assert verdict.decision == "go"


@pytest.mark.parametrize(
    "risk",
    [
        make_risk("filter-changed", model="shop.orders", severity="high"),
        make_risk(REBUILD, model="shop.orders", severity="blocker"),
        make_risk("forward-only-destructive", model="shop.orders", severity="blocker"),
        make_risk(REBUILD, model="shop.orders", severity="high").model_copy(
            update={"weighed": Weighed(by="severity", weight="blocker", reason="a policy")}
        ),
    ],
)
def test_clear__no_other_rule_and_nothing_that_blocks(risk: Risk) -> None:
    report, verdict = after(reviewed(risk, readers=0), diff())
    assert (verdict.cleared, verdict.standing, report.set_aside) == ([], [], [])
    assert verdict.decision == ("no_go" if risk.severity == "blocker" else "review")


def test_clear__nothing_that_asks_for_no_review() -> None:
    """What is lighter than high decides nothing, so there is nothing to clear."""
    light = make_risk(REBUILD, model="shop.orders", severity="medium")
    _, verdict = after(reviewed(light, readers=0), diff())
    assert (verdict.cleared, verdict.standing) == ([], [])


def test_clear__not_where_code_of_the_pull_request_ran_beside_the_comparison() -> None:
    own_code = make_risk("R12-code-on-load", severity="high")
    rebuild = make_risk(REBUILD, model="shop.orders", severity="high")
    _, verdict = after(reviewed(rebuild, own_code, readers=0), diff())
    assert (verdict.decision, verdict.cleared) == ("review", [])
    assert "(R12-code-on-load)" in verdict.standing[0].why


def test_judge_applied__the_data_can_make_a_go_a_review() -> None:
    report = reviewed(make_risk("additive-change", severity="low"), readers=0)
    _, verdict = after(report, diff(rows_pr=40, only_prod=8, matched=40, full_match=40, same=40))
    assert verdict.decision == "review"
    assert verdict.reasons == [
        "R09-rows-lost on shop.orders: 8 of 48 rows of prod (16.67%) are gone."
    ]


def test_judge_applied__what_was_not_checked_before_is_checked_now() -> None:
    missing = [
        make_risk("R10-not-checked", severity="info", subject=subject, model=None)
        for subject in ("audits", "data diff", "cost")
    ]
    missing.append(
        make_risk("R10-not-checked", severity="info", subject="data diff", model="shop.orders")
    )
    report, _ = after(reviewed(*missing, readers=0), diff(), audits=AuditTotals(passed=2))
    assert [(risk.subject, risk.model) for risk in report.risks] == [
        ("cost", None),
        ("data diff", "shop.orders"),
    ]
    assert (report.checks.audits.status, report.checks.table_diff.status) == ("passed", "compared")


@pytest.mark.parametrize(
    "parts",
    [{"result": "failed"}, {"result": "nothing_to_apply"}, {"plan_id": "b" * 64}],
)
def test_judge_applied__nothing_without_evidence_on_this_plan(parts: dict[str, Any]) -> None:
    assert decide_again_after_apply(reviewed(), applied(diff(), **parts), TeamLimits()) is None


def test_registry__what_a_proof_clears_does_not_block() -> None:
    clearable = [spec for spec in RULES.values() if spec.cleared_by]
    assert [spec.id for spec in clearable] == [REBUILD, "R06-past-numbers"]
    assert not any("blocker" in spec.severities for spec in clearable)
