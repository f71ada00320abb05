"""Reports made by hand, with more in them than a real one has at a time: for tests that put hostile
text, secrets or a thousand models into every place. What a real comment looks like is in `golden`.
"""

from __future__ import annotations

from ci_bot.protocol.plan import (
    ColumnChange,
    Cost,
    EnvironmentStatement,
    Finding,
    Lineage,
    LineageNode,
    LintCheck,
    ModelRange,
    ProdPlan,
    Restatement,
    ShortWindow,
    TestFailure,
    TestsCheck,
)
from ci_bot.protocol.review_report import Report
from tests.factories import DIFF, make_backfill, make_change, make_checks, make_report, make_risk


def full_report() -> Report:
    """A report with something in every section: what goes, what fails, what is restated."""
    customers = make_change(
        "dim.customers",
        category="forward_only",
        owner="crm",
        diff=DIFF.replace("stg/orders", "dim/customers"),
        columns=[
            ColumnChange(name="segment", before="STRING", after=None, readers=["mart.churn"]),
            ColumnChange(name="birthday", before="TIMESTAMP", after="DATE"),
        ],
    )
    removed = make_change(
        "mart.legacy_ltv",
        change="removed",
        category=None,
        kind="FULL",
        readers=["mart.board", "exports.ltv_daily"],
    )
    churn = make_change("mart.churn", change="indirect", category="indirect_breaking", kind="FULL")
    preview = make_backfill(
        "dim.customers",
        preview=True,
        reused_in_prod=False,
        start="2026-08-15T00:00:00Z",
        intervals=7,
        batches=1,
    )
    full = make_backfill(
        "mart.churn",
        kind="FULL",
        action="full_refresh",
        intervals=1,
        batches=1,
        preview=True,
        reused_in_prod=False,
    )
    return make_report(
        decision="no_go",
        reasons=[
            "`R05`: `dim.customers` drops column `segment` in place, without an allow.",
            "`R04`: `mart.legacy_ltv` goes while 2 models still read it.",
        ],
        changes=[customers, removed, churn],
        backfill=[preview, full],
        work=[preview, full],
        short_window=ShortWindow(
            cause="forward_only_model",
            models=["dim.customers"],
            start="2026-08-15T00:00:00Z",
            end="2026-08-22T00:00:00Z",
        ),
        risks=[
            make_risk(
                "R05",
                severity="blocker",
                model="dim.customers",
                path="models/dim/customers.sql",
                line=8,
                evidence="forward-only change drops `segment` from the table that `prod` reads",
                clears_when="`on_destructive_change` allows it, or the drop is taken back",
            ),
            make_risk(
                "R04",
                severity="blocker",
                model="mart.legacy_ltv",
                path="models/mart/legacy_ltv.sql",
                line=None,
                evidence="model removed, still read by `mart.board` and `exports.ltv_daily`",
                clears_when="its readers are changed in the same pull request",
            ),
            make_risk(
                "R08",
                severity="high",
                evidence="restating `stg.orders` clears data of 1 other environment, `pr_131`",
                clears_when="the author of `pr_131` agrees",
            ),
        ],
        restatements=[
            Restatement(
                model="stg.orders",
                start="2026-08-01T00:00:00Z",
                end="2026-08-15T00:00:00Z",
                environments=["pr_131"],
            )
        ],
        statements=[
            EnvironmentStatement(
                when="after_all",
                sql="GRANT SELECT ON SCHEMA mart TO ROLE reporting",
                change="added",
            )
        ],
        prod_plan=ProdPlan(
            changes=3,
            backfill=[],
            forward_only_schema_changes=["dim.customers"],
            held=[
                ModelRange(
                    model="stg.orders", start="2026-01-01T00:00:00Z", end="2026-03-03T00:00:00Z"
                ),
                ModelRange(
                    model="stg.orders", start="2026-03-05T00:00:00Z", end="2026-08-15T00:00:00Z"
                ),
            ],
            gaps=[
                ModelRange(
                    model="stg.orders", start="2026-03-03T00:00:00Z", end="2026-03-05T00:00:00Z"
                )
            ],
            would_fail=True,
            failure="destructive change to `dim.customers` is not allowed",
        ),
        checks=make_checks(
            tests=TestsCheck(
                status="failed",
                run=12,
                failed=1,
                seconds=1.1,
                failures=[
                    TestFailure(
                        name="test_churn_counts_each_customer_once",
                        model="mart.churn",
                        path="tests/test_churn.yaml",
                        message="Data mismatch (rows are different)\n"
                        "  customers\n  exp act\n0   2   3",
                    )
                ],
            ),
            lint=LintCheck(
                status="warnings",
                warnings=1,
                findings=[
                    Finding(
                        rule="select-star",
                        severity="low",
                        model="mart.churn",
                        path="models/mart/churn.sql",
                        line=6,
                        evidence="`SELECT *` reads every column of `dim.customers`",
                        clears_when="the columns are named",
                    )
                ],
            ),
        ),
        lineage=Lineage(
            nodes=[
                LineageNode(model="dim.customers", change="direct"),
                LineageNode(model="mart.legacy_ltv", change="removed"),
                LineageNode(model="mart.churn", change="indirect"),
                LineageNode(model="mart.board", change=None),
                LineageNode(model="exports.ltv_daily", change=None),
            ],
            edges=[
                ("dim.customers", "mart.churn"),
                ("mart.churn", "mart.board"),
                ("mart.legacy_ltv", "mart.board"),
                ("mart.legacy_ltv", "exports.ltv_daily"),
            ],
        ),
    )


def large_report(size: int) -> Report:
    """`size` changed models in five layers, each with a diff of its own length."""
    names = [f"layer_{index % 5}.model_{index:04}" for index in range(size)]
    kinds = ["direct", "indirect", "indirect", "added", "metadata"]
    categories = {
        "direct": "breaking",
        "indirect": "indirect_breaking",
        "added": "non_breaking",
        "metadata": "metadata",
    }
    changes = []
    for index, name in enumerate(names):
        change = kinds[index % 7 % 5]
        changes.append(
            make_change(
                name,
                change=change,
                category=categories[change],
                diff=DIFF * (1 + index % 9) if change in ("direct", "added") else None,
            )
        )
    backfill = [make_backfill(name, intervals=1 + index % 964) for index, name in enumerate(names)]
    edges = [(names[index // 3], names[index]) for index in range(1, size)]
    return make_report(
        project=make_report().project.model_copy(update={"models": size + 40}),
        reasons=[f"`R12`: a macro that {size:,} models use has changed."],
        changes=changes,
        backfill=backfill,
        work=backfill,
        risks=[
            make_risk("R06", model=name, path=f"models/{name}.sql", severity=severity)
            for name, severity in zip(names, ["high", "medium", "low"] * 20, strict=False)
        ],
        stages=[
            stage.model_copy(update={"items": [f"{name} on its own line" for name in names]})
            for stage in make_report().stages
        ],
        lineage=Lineage(
            nodes=[LineageNode(model=change.model, change=change.change) for change in changes],
            edges=edges,
        ),
        cost=Cost(
            intervals=sum(item.intervals for item in backfill),
            batches=sum(item.batches for item in backfill),
            tables_rebuilt=0,
            tables=size,
            unknown=names,
            basis="no run of these models is on record yet, so only intervals are counted",
        ),
    )
