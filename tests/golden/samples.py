"""The sample comments beside this file, one function each.

After a wanted change of the templates: `python -m tests.golden.samples`, then read the git diff.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci_bot.bot.comment.context import (
    CommentContext,
    Condition,
    DisplayProgress,
    Refusal,
    Rendered,
    Staleness,
)
from ci_bot.bot.comment.outcome import render_apply, render_cleanup
from ci_bot.bot.comment.report import render_planning, render_review
from ci_bot.bot.decision import BotFacts, judge
from ci_bot.bot.worker_calls.review.reviewing import Commits, ReviewOptions, unplanned_facts
from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.plan import (
    ColumnChange,
    Cost,
    EnvironmentStatement,
    Finding,
    Gap,
    Lineage,
    LineageNode,
    LintCheck,
    ProdPlan,
    Restatement,
    ShortWindow,
    TestFailure,
    TestsCheck,
)
from ci_bot.contracts.documents.plan_identity import PlanDifference
from ci_bot.contracts.documents.report import Report
from ci_bot.contracts.lineage.impact import ChangedPart, Impact, IndirectModel, ReachedModel
from ci_bot.contracts.messages import Owner
from tests.factories import (
    DIFF,
    make_apply,
    make_backfill,
    make_change,
    make_checks,
    make_cleanup,
    make_context,
    make_marker,
    make_report,
    make_risk,
)

HERE = Path(__file__).parent
NEXT_PLAN = "5c0de4b7e21f" + "0" * 52
NEW_HEAD = "b2c3d4e" + "0" * 33


def small_change() -> Rendered:
    """A breaking change of one staging model, with a rebuild to agree on."""
    return render_review(small_report(), history_context())


def small_report() -> Report:
    return make_report(
        reasons=["`R06`: 964 daily intervals of `stg.orders` and all that reads it are rebuilt."],
        risks=[
            make_risk(
                "R06",
                evidence="full-history rebuild of 964 intervals, and 2 models downstream follow",
                clears_when="the owner of the model agrees to the rebuild",
            ),
            make_risk(
                "missing-grain",
                severity="medium",
                model="mart.order_sources",
                path="models/mart/order_sources.sql",
                line=3,
                evidence="no `grain`, so its data cannot be compared with `prod`",
                clears_when="the model names its grain",
            ),
            make_risk(
                "R10",
                severity="info",
                model=None,
                path=None,
                line=None,
                evidence="no cost history for 3 models",
                clears_when="an apply has measured them",
            ),
        ],
        cost=Cost(
            intervals=1929,
            batches=46,
            tables_rebuilt=1,
            tables=3,
            unknown=["mart.daily_sales", "mart.revenue"],
            executor_hours_low=22.0,
            executor_hours_mid=38.0,
            executor_hours_high=61.0,
            price=14.2,
            confidence="medium",
            basis="5 earlier runs of `stg.orders`, scaled by intervals",
        ),
        notes=["`models/stg/_old.sql` is not a model file and was not loaded."],
    )


def history_context() -> CommentContext:
    entries = [
        {
            "at": "2026-08-21T09:02:11Z",
            "head": "77aa31c" + "0" * 33,
            "plan": "41ab77de90c2" + "0" * 52,
            "decision": "no_go",
            "run": "8790.1",
        }
    ]
    return make_context(marker=make_marker(history=entries))


def destructive_change() -> Rendered:
    """A removed model and a dropped column that others still read."""
    blocked = (
        Condition(label="write access", met=True),
        Condition(label="plan matches the head", met=True),
        Condition(label="no blocker", met=False),
    )
    return render_review(destructive_report(), make_context(conditions=blocked))


def destructive_report() -> Report:
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
            gaps=[
                Gap(model="stg.orders", start="2026-03-03T00:00:00Z", end="2026-03-05T00:00:00Z")
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
        impact=Impact(
            changed=[
                ChangedPart(
                    model="dim.customers",
                    column="segment",
                    how="dropped",
                    reached=[ReachedModel(model="mart.churn", columns=["segment"], rows=True)],
                ),
                ChangedPart(
                    model="mart.board",
                    column=None,
                    how="unknown",
                    why="It is a Python model: what it reads is not known.",
                ),
            ],
            indirect=[
                IndirectModel(
                    model="mart.churn", reached="yes", why="Reads `segment` of `dim.customers`."
                )
            ],
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


def thousand_models() -> Rendered:
    """1,000 changed models, as in a first review without prod or a change of a root macro."""
    return render_review(large_report(1_000), make_context())


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


def failed_plan() -> Rendered:
    """The project does not load; the reader gets the place and the way out."""
    report = make_report(
        plan_id=None,
        appliable=False,
        decision="no_go",
        reasons=["`R01`: the project does not load."],
        changes=[],
        backfill=[],
        work=[],
        prod_plan=None,
        risks=[],
        stages=[],
        lineage=Lineage(),
        checks=make_checks(
            lint=LintCheck(status="not_run"),
            tests=TestsCheck(status="not_run", not_run_because="the project does not load"),
        ),
        failure=Failure(
            stage="load",
            reason_code="model_does_not_parse",
            exit_code=1,
            message="Failed to parse the query of 'stg.orders'.\n\n"
            "Expected table name but got <Token token_type: WHERE>\n"
            "  FROM WHERE order_date BETWEEN @start_date AND @end_date\n"
            "       ~~~~~",
            hint="Name the table in the `FROM` clause, then push; `sqlmesh lint` shows the same.",
            model="stg.orders",
            path="models/stg/orders.sql",
            line=16,
        ),
    )
    return render_review(report, make_context(phase="plan_failed"))


def base_broken() -> Rendered:
    """The base branch does not load, and this pull request is not why: nobody is blamed."""
    failure = Failure(
        stage="load",
        reason_code="failed",
        exit_code=1,
        message="Failed to load model from file 'models/stg/orders.sql':\n\n"
        "  Expected table name but got <Token token_type: WHERE>. Line 16, Col: 12.\n"
        "    FROM WHERE order_date BETWEEN @start_date AND @end_date",
        hint="Correct it and push; `sqlmesh info` shows the same locally.",
        path="models/stg/orders.sql",
        line=16,
    )
    options = ReviewOptions(
        environment="pr_17", owner=Owner(name="acme/shop"), commits=Commits(), baseline="state"
    )
    facts = unplanned_facts([failure], options, projects=["."], gateway="spark")
    judged = judge(facts, bot=BotFacts(changed_files=("models/stg/customers.sql",)))
    report = make_report(
        plan_id=None,
        appliable=False,
        not_appliable_because="The base branch does not load.",
        baseline="base-branch",
        decision=judged.decision,
        reasons=list(judged.reasons),
        risks=list(judged.risks),
        **{
            name: getattr(facts, name)
            for name in (
                "project",
                "changes",
                "backfill",
                "work",
                "restatements",
                "statements",
                "prod_plan",
                "checks",
                "cost",
                "stages",
                "lineage",
                "base_failures",
            )
        },
    )
    return render_review(report, make_context(phase="planned"))


def no_changes() -> Rendered:
    """Only an owner changed; the comment explains why new data is no change."""
    meta = make_change("stg.orders", change="metadata", category="metadata", owner="sales")
    report = make_report(
        decision="no_changes",
        reasons=["No model's version differs from the one in `prod`."],
        changes=[meta],
        backfill=[],
        work=[],
        risks=[],
        stages=[],
        lineage=Lineage(),
        prod_plan=ProdPlan(changes=0, backfill=[], would_fail=False),
    )
    return render_review(report, make_context(phase="no_changes"))


def planning() -> Rendered:
    """A push while an earlier review stands."""
    context = make_context(phase="planning", new_head=NEW_HEAD)
    return render_planning(context, review=small_report())


def stale() -> Rendered:
    """The base branch moved below a reviewed plan."""
    context = make_context(
        phase="stale",
        staleness=Staleness(branch="main", commits=3, touching=1),
        conditions=(
            Condition(label="write access", met=True),
            Condition(label="base unchanged", met=False),
        ),
    )
    return render_review(small_report(), context)


def applying() -> Rendered:
    """Half way through."""
    progress = DisplayProgress(
        done=19, total=46, seconds_left=3_240.0, message="backfilling `mart.daily_sales`"
    )
    return render_apply(
        None, make_context(phase="applying", progress=progress), review=small_report()
    )


def applied() -> Rendered:
    """Built, audited and compared; one column differs as it should."""
    return render_apply(make_apply(), make_context(phase="applied"), review=small_report())


def apply_failed() -> Rendered:
    """A blocking audit stopped the backfill."""
    document = make_apply(
        result="failed",
        audits={"passed": 1, "failed": 0, "blocking_failed": 1, "not_run": 4},
        models=[
            make_apply()
            .models[0]
            .model_copy(update={"audits": [_failed_audit()], "intervals": 31, "batches": 1})
        ],
        views=[],
        table_diff=[],
        partial=["`sqlmesh__stg.stg__orders__2817364` holds 31 of 964 intervals"],
        failure=Failure(
            stage="apply",
            reason_code="audit_failed",
            exit_code=1,
            message="The blocking audit not_null on stg.orders found 214 rows.",
            hint="Look at `order_id` in the first batch, correct the model, and push.",
            model="stg.orders",
        ),
        seconds=251.0,
    )
    return render_apply(document, make_context(phase="apply_failed"), review=small_report())


def _failed_audit() -> dict[str, object]:
    return {"audit": "not_null", "blocking": True, "status": "failed", "failed_rows": 214}


def refused() -> Rendered:
    """Somebody pushed between the review and the command."""
    document = make_apply(
        result="refused",
        reason_code="plan_changed",
        models=[],
        views=[],
        table_diff=[],
        audits={"passed": 0},
        estimate=None,
        difference=PlanDifference(
            snapshots_changed=["stg.orders", "mart.revenue"],
            snapshots_added=["mart.order_sources_v2"],
            fields_changed=["statements"],
        ),
        seconds=3.1,
    )
    context = make_context(
        phase="refused",
        refusal=Refusal(
            reason_code="plan_changed",
            message="Plan `9f3c21aa01bc` was reviewed, but the branch now gives another plan.",
            hint="Run the review again and read it; to build what the branch gives now, comment:",
            next_plan=NEXT_PLAN,
        ),
    )
    return render_apply(document, context, review=small_report())


def cancelled() -> Rendered:
    """Stopped by a person in the middle of a backfill; the worker had no time for an answer."""
    context = make_context(phase="cancelled", progress=DisplayProgress(done=19, total=46))
    return render_apply(None, context, review=small_report())


def closed() -> Rendered:
    """The tombstone after a merge."""
    return render_cleanup(
        make_cleanup(), make_context(phase="closed", merged=True), review=small_report()
    )


def cleanup_failed() -> Rendered:
    """Somebody's own table stands in our schema."""
    document = make_cleanup(
        result="incomplete",
        schemas_dropped=["spark_catalog.stg__pr_142"],
        leftovers=[
            {
                "object": "spark_catalog.mart__pr_142",
                "why": "the schema holds an object that this environment did not make",
            }
        ],
        foreign=["spark_catalog.mart__pr_142.scratch_maria"],
        tables_kept=[],
    )
    context = make_context(phase="cleanup_failed", apply_workflow="sqlmesh.yml")
    return render_cleanup(document, context, review=small_report())


SAMPLES: dict[str, Callable[[], Rendered]] = {
    function.__name__: function
    for function in (
        small_change,
        destructive_change,
        thousand_models,
        failed_plan,
        base_broken,
        no_changes,
        planning,
        stale,
        applying,
        applied,
        apply_failed,
        refused,
        cancelled,
        closed,
        cleanup_failed,
    )
}


def write_all() -> None:
    """Writes every sample beside this file."""
    for name, sample in SAMPLES.items():
        (HERE / f"{name}.md").write_text(sample().text, encoding="utf-8")


if __name__ == "__main__":
    write_all()
