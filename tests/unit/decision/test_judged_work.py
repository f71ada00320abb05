"""What is judged is the larger of both plans, and every sentence says which one it speaks of."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.decision import TeamLimits
from ci_bot.bot.decision.risks import choose_work_to_judge
from ci_bot.protocol.plan import Backfill, Change, Cost, Lineage, ModelRange, ProdPlan
from tests.unit.decision.facts import built, changed, cost, facts, judged, only, weights

BREAKING = changed(category="breaking", kind="INCREMENTAL_BY_TIME_RANGE")
ONE_DAY: dict[str, Any] = {"start": "2026-11-21T00:00:00Z", "intervals": 1, "batches": 1}


def full(*backfill: Backfill, **parts: Any) -> ProdPlan:
    """A merge that builds this in prod."""
    return ProdPlan(changes=1, backfill=[], full_backfill=list(backfill), would_fail=False, **parts)


def table(model: str, **parts: Any) -> Backfill:
    """A FULL model's table."""
    return built(
        model,
        kind="FULL",
        action="full_refresh",
        start=None,
        end=None,
        intervals=1,
        batches=1,
        **parts,
    )


def view(model: str, **parts: Any) -> Backfill:
    return built(
        model,
        kind="VIEW",
        action="recreate_view",
        start=None,
        end=None,
        intervals=1,
        batches=1,
        **parts,
    )


def evidence(rule: str = "R06-breaking-rebuild", **parts: Any) -> str:
    return only(judged(**parts), rule).evidence


# ------------------------------------------------------------------------- which plan is judged


def test_judged__the_larger_of_both_plans_for_each_model() -> None:
    found = choose_work_to_judge(
        facts(
            changes=[BREAKING, changed("mart.a"), changed("mart.b"), changed("mart.c")],
            backfill=[built(**ONE_DAY), built("mart.a"), built("mart.b", preview=True)],
            prod_plan=full(built(intervals=1_055), built("mart.a"), built("mart.c", intervals=7)),
        )
    )

    assert {name: (one.where, one.item.intervals) for name, one in found.models.items()} == {
        "stg.orders": ("prod", 1_055),
        "mart.a": ("environment", 60),
        "mart.b": ("environment", 60),
        "mart.c": ("prod", 7),
    }
    assert [name for name, one in found.models.items() if one.is_preview_only] == ["mart.b"]


def test_judged__gaps_of_other_models_are_not_this_changes_work() -> None:
    found = choose_work_to_judge(
        facts(
            changes=[BREAKING],
            backfill=[built(**ONE_DAY)],
            prod_plan=full(built(intervals=2), built("other.model", intervals=9_000)),
        )
    )

    assert set(found.models) == {"stg.orders"}
    assert (found.total.intervals, found.where) == (2, "prod")


def test_judged__the_total_is_one_plans_and_counts_tables() -> None:
    found = choose_work_to_judge(
        facts(
            changes=[BREAKING, changed("mart.view")],
            backfill=[built(intervals=60), view("mart.view")],
            prod_plan=full(built(intervals=59), view("mart.view")),
        )
    )

    assert (found.total.intervals, found.total.tables, found.total.views) == (60, 1, 1)
    assert found.where == "environment"


# -------------------------------------------------------------------------------- R06's sentence


def test_r06__a_short_window_does_not_hide_what_prod_builds() -> None:
    text = evidence(
        changes=[BREAKING],
        backfill=[built(**ONE_DAY)],
        prod_plan=full(built(intervals=1_055)),
    )

    assert (
        "1,055 intervals since 2024-01-01 are computed again, in prod after the merge "
        "(`pr_7` gets 1)" in text
    )


def test_r06__what_the_environment_gets_too_is_not_told_of_prod_alone() -> None:
    text = evidence(
        changes=[BREAKING],
        backfill=[built(preview=True, reused_in_prod=False)],
        prod_plan=full(built()),
    )

    assert "60 intervals since 2024-01-01 are computed again; no other model" in text


def test_r06__one_interval_without_a_start() -> None:
    text = evidence(changes=[BREAKING], backfill=[built(**{**ONE_DAY, "start": None})])

    assert "1 interval is computed again" in text


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("EXTERNAL", "the registered columns of the source differ"),
        ("FULL", "the FULL model is replaced, with nothing to backfill in this plan"),
    ],
)
def test_r06__nothing_to_build(kind: str, told: str) -> None:
    reader = changed("mart.a", change="indirect", category="indirect_breaking")
    text = evidence(
        changes=[changed(category="breaking", kind=kind), reader],
        lineage=Lineage(edges=[("stg.orders", "mart.a")]),
    )

    assert told in text
    assert "1 model below gets a new version (`mart.a`), and it is not rebuilt" in text


def test_r06__a_full_model_is_rebuilt_although_the_environment_only_previews_it() -> None:
    text = evidence(
        changes=[changed(category="breaking")],
        backfill=[table("stg.orders", preview=True, reused_in_prod=False)],
        prod_plan=full(table("stg.orders")),
    )

    assert "the whole table is computed again" in text
    assert "history stays" not in text


def test_r06__history_stays_where_prod_builds_nothing() -> None:
    text = evidence(
        changes=[BREAKING],
        backfill=[built(**ONE_DAY, preview=True, reused_in_prod=False)],
        prod_plan=full(),
    )

    assert "a preview of 1 interval is built in `pr_7`, and history stays" in text


@pytest.mark.parametrize(
    "plan", [None, ProdPlan(changes=1, backfill=[], would_fail=True, failure="it fails")]
)
def test_r06__says_nothing_of_history_where_prod_is_not_known(plan: ProdPlan | None) -> None:
    text = evidence(
        changes=[BREAKING],
        backfill=[built(**ONE_DAY, preview=True, reused_in_prod=False)],
        prod_plan=plan,
    )

    assert "what prod builds after the merge is not known" in text
    assert "history stays" not in text


@pytest.mark.parametrize(
    ("kind", "action", "told"),
    [
        ("INCREMENTAL_BY_UNIQUE_KEY", "incremental", "an old row whose key is loaded again"),
        ("INCREMENTAL_BY_PARTITION", "incremental", "write each partition that they load again"),
        ("SCD_TYPE_2_BY_TIME", "incremental", "a key with a later update time gets a new row"),
        ("SCD_TYPE_2_BY_COLUMN", "incremental", "where a checked column differs"),
        ("CUSTOM", "full_refresh", "is up to the custom materialization, and is not known"),
        ("MANAGED", "full_refresh", "what it does with old rows is not known"),
    ],
)
def test_r06__what_becomes_of_old_rows_is_up_to_the_kind(kind: str, action: str, told: str) -> None:
    text = evidence(
        changes=[changed(category="breaking", kind=kind)],
        backfill=[built(**ONE_DAY, kind=kind, action=action, preview=True, reused_in_prod=False)],
        prod_plan=full(),
    )

    assert told in text
    assert "history stays" not in text
    assert "computed again" not in text


@pytest.mark.parametrize(("overwrites", "told"), [(False, "history stays"), (True, "partition")])
def test_r06__a_model_that_appends_keeps_its_rows_and_one_that_overwrites_does_not(
    overwrites: bool, told: str
) -> None:
    kind = "INCREMENTAL_UNMANAGED"
    text = evidence(
        changes=[changed(category="breaking", kind=kind, insert_overwrite=overwrites)],
        backfill=[built(**ONE_DAY, kind=kind, preview=True, reused_in_prod=False)],
        prod_plan=full(),
    )

    assert told in text
    assert ("history stays" in text) is not overwrites


def test_r06__readers_whose_old_rows_can_change_are_not_among_those_that_keep_them() -> None:
    def reader(model: str, kind: str) -> Change:
        return changed(model, change="indirect", category="indirect_breaking", kind=kind)

    text = evidence(
        changes=[
            BREAKING,
            reader("mart.by_key", "INCREMENTAL_BY_UNIQUE_KEY"),
            reader("mart.by_time", "INCREMENTAL_BY_TIME_RANGE"),
        ],
        backfill=[
            built(**ONE_DAY, preview=True),
            built("mart.by_key", **ONE_DAY, kind="INCREMENTAL_BY_UNIQUE_KEY", preview=True),
            built("mart.by_time", **ONE_DAY, preview=True),
        ],
        prod_plan=full(),
        lineage=Lineage(edges=[("stg.orders", "mart.by_key"), ("stg.orders", "mart.by_time")]),
    )

    assert text.endswith(
        "and none of them is rebuilt; history stays in `mart.by_time`; old rows can change in "
        "`mart.by_key`."
    )


def test_r06__readers_are_named_by_what_happens_to_each() -> None:
    text = evidence(
        changes=[
            BREAKING,
            changed("mart.full", change="indirect", category="indirect_breaking"),
            changed("mart.view", change="indirect", category="indirect_breaking"),
            changed("mart.forward", change="indirect", category="forward_only"),
        ],
        backfill=[
            built(**ONE_DAY),
            table("mart.full", preview=True),
            view("mart.view", preview=True),
            built("mart.forward", **ONE_DAY, preview=True),
        ],
        prod_plan=full(built(intervals=1_055), table("mart.full"), view("mart.view")),
        lineage=Lineage(
            edges=[
                ("stg.orders", "mart.full"),
                ("mart.full", "mart.view"),
                ("stg.orders", "mart.forward"),
            ]
        ),
    )

    assert "3 models below get a new version" in text
    assert text.endswith(", 1 table and 1 view rebuilt; history stays in `mart.forward`.")


def test_r06__no_reader_changes() -> None:
    text = evidence(changes=[BREAKING], backfill=[built()], prod_plan=full(built()))

    assert text.endswith(
        "60 intervals since 2024-01-01 are computed again; no other model is rebuilt because of it."
    )


# ------------------------------------------------------------------------------ limits and batches


@pytest.mark.parametrize(
    ("limit", "expected"), [(1_055, None), (1_054, "1,055 intervals to build in prod after")]
)
def test_interval_limit__holds_for_prod_too(limit: int, expected: str | None) -> None:
    judgement = judged(
        limits=TeamLimits(max_intervals=limit),
        changes=[BREAKING],
        backfill=[built(**ONE_DAY)],
        prod_plan=full(built(intervals=1_055)),
    )

    if expected is None:
        assert "R06-interval-limit" not in weights(judgement)
    else:
        assert expected in only(judgement, "R06-interval-limit").evidence


@pytest.mark.parametrize(
    ("merge", "later", "told"),
    [
        ([], [table("mart.a"), table("mart.b")], "2 intervals to build with prod's next run;"),
        (
            [built(intervals=60)],
            [table("mart.a")],
            "61 intervals to build in prod, after the merge and with its next run;",
        ),
        ([built(intervals=60)], [view("mart.v")], "60 intervals to build in prod after the merge;"),
    ],
)
def test_limits__say_what_prods_next_run_builds(
    merge: list[Backfill], later: list[Backfill], told: str
) -> None:
    judgement = judged(
        limits=TeamLimits(max_intervals=1, max_executor_hours=0.5),
        changes=[BREAKING, changed("mart.a"), changed("mart.b"), changed("mart.v", kind="VIEW")],
        backfill=[built(**ONE_DAY, preview=True)],
        prod_plan=full(*merge, next_run=later, cost=cost(executor_hours_mid=9.0)),
    )

    assert told in only(judgement, "R06-interval-limit").evidence
    where = told.split(" to build ")[1].rstrip(";")
    assert f"of executor time {where}" in only(judgement, "R07-over-budget").evidence


@pytest.mark.parametrize(
    ("there", "clears_when"),
    [
        (1_055, "the change rebuilds less, or `max-intervals` is raised"),
        (1, "the plan is smaller (`start`, `select-model`), or `max-intervals` is raised"),
    ],
)
def test_interval_limit__says_what_helps_where_the_work_is(there: int, clears_when: str) -> None:
    judgement = judged(
        limits=TeamLimits(max_intervals=10),
        changes=[BREAKING],
        backfill=[built()],
        prod_plan=full(built(intervals=there)),
    )

    assert only(judgement, "R06-interval-limit").clears_when == clears_when


def test_interval_limit__views_are_no_intervals() -> None:
    judgement = judged(
        limits=TeamLimits(max_intervals=60),
        changes=[BREAKING, changed("mart.view")],
        backfill=[built(), view("mart.view")],
    )

    assert "R06-interval-limit" not in weights(judgement)


def test_batches__one_job_in_prod() -> None:
    judgement = judged(
        changes=[BREAKING],
        backfill=[built(**ONE_DAY)],
        prod_plan=full(built(intervals=1_055, batches=1)),
    )

    risk = only(judgement, "batch-size-missing")
    assert (risk.severity, risk.evidence) == (
        "medium",
        "One job computes 1,055 intervals in prod after the merge.",
    )


# ------------------------------------------------------------------------------------- the budget


def hours(middle: float | None, **parts: Any) -> Cost:
    spread = {"executor_hours_low": middle, "executor_hours_high": middle}
    return cost(executor_hours_mid=middle, **spread, **parts)


def test_budget__holds_for_prod_too() -> None:
    judgement = judged(
        limits=TeamLimits(max_executor_hours=10), cost=hours(0.01), prod_plan=full(cost=hours(14.2))
    )

    assert only(judgement, "R07-over-budget").evidence == (
        "About 14 h 12 min of executor time in prod after the merge; the limit is 10 h."
    )
    assert judgement.decision == "no_go"


def test_budget__the_known_part_of_an_estimate_is_enough_to_exceed_it() -> None:
    part = hours(11.0, tables=4, unknown=["mart.a", "mart.b", "mart.c"])

    text = only(
        judged(limits=TeamLimits(max_executor_hours=10), cost=part), "R07-over-budget"
    ).evidence

    assert text.startswith("At least 11 h of executor time in `pr_7` (3 of 4 tables have no ")


def test_budget__an_incomplete_estimate_within_it_proves_nothing() -> None:
    part = hours(20 / 3_600, tables=4, unknown=["mart.a", "mart.b", "mart.c"])

    judgement = judged(limits=TeamLimits(max_executor_hours=10), cost=part, changes=[changed()])

    text = only(judgement, "R07-not-known").evidence
    assert "is not known: at least 20 s is expected (3 of 4 tables" in text
    assert "R10-not-checked" in weights(judgement)


def test_budget__a_complete_estimate_within_it_is_silent() -> None:
    judgement = judged(
        limits=TeamLimits(max_executor_hours=10),
        cost=hours(1.0, tables=4),
        prod_plan=full(cost=hours(2.0, tables=4)),
    )

    assert weights(judgement) == {}


# ---------------------------------------------------------------- what prod loses, and metadata


def test_history_lost__is_high_and_names_the_range() -> None:
    lost = ModelRange(model="stg.orders", start="2024-01-01T00:00:00Z", end="2024-11-30T00:00:00Z")

    judgement = judged(changes=[BREAKING], backfill=[built(**ONE_DAY)], prod_plan=full(lost=[lost]))

    risk = only(judgement, "R06-history-lost")
    assert (risk.severity, risk.model, risk.path) == ("high", "stg.orders", BREAKING.path)
    assert "holds 2024-01-01 to 2024-11-30" in risk.evidence


def test_history_lost__of_the_base_branch_is_not_this_pull_requests() -> None:
    lost = ModelRange(model="stg.orders", start="2024-01-01T00:00:00Z", end="2024-11-30T00:00:00Z")

    judgement = judged(
        changes=[changed(category="breaking", from_base=True)], prod_plan=full(lost=[lost])
    )

    assert weights(judgement) == {"base-drift": "info"}


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([], True),
        (
            [
                ModelRange(
                    model="stg.orders", start="2024-02-01T00:00:00Z", end="2024-02-02T00:00:00Z"
                )
            ],
            False,
        ),
    ],
)
def test_metadata__that_makes_prod_build_more_is_told(
    gaps: list[ModelRange], expected: bool
) -> None:
    judgement = judged(
        changes=[changed(change="metadata", category="metadata")],
        prod_plan=full(built(intervals=365), gaps=gaps),
    )

    assert ("R06-metadata-backfill" in weights(judgement)) is expected
    if expected:
        told = only(judgement, "R06-metadata-backfill").evidence
        assert "prod builds 365 intervals since 2024-01-01 after the merge" in told


@pytest.mark.parametrize(
    "change",
    [
        changed(change="metadata", category="metadata", from_base=True),
        changed(change="direct", category="non_breaking"),
    ],
)
def test_metadata__of_the_base_and_changes_of_code_are_told_elsewhere(change: Change) -> None:
    judgement = judged(changes=[change], prod_plan=full(built(intervals=365)))

    assert "R06-metadata-backfill" not in weights(judgement)


def test_batches__of_what_is_built_already_are_no_question() -> None:
    jobs = [built(intervals=944, batches=1)]
    parts: dict[str, Any] = {"changes": [BREAKING], "backfill": jobs}

    assert "batch-size-missing" in weights(judged(**parts, prod_plan=full(*jobs)))
    assert "batch-size-missing" not in weights(judged(**parts, work=[], prod_plan=full(*jobs)))


def test_batches__of_what_prod_still_builds_after_an_apply() -> None:
    left = built(intervals=1_000, batches=1)
    plan = ProdPlan(changes=1, backfill=[left], full_backfill=[left], would_fail=False)
    judgement = judged(changes=[BREAKING], backfill=[built(**ONE_DAY)], work=[], prod_plan=plan)

    evidence_of = only(judgement, "batch-size-missing").evidence
    assert evidence_of == "One job computes 1,000 intervals in prod after the merge."
