"""How much more a table that is computed whole will read, from what the ledger has of its parents."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ci_bot.protocol.cost import Counters
from ci_bot.protocol.plan import Backfill
from ci_bot.worker.cost.plan_estimate import KnownCosts, list_past_runs_for_cost, predict_plan_cost
from ci_bot.worker.cost.prediction import UpstreamGrowthForCost
from ci_bot.worker.state_store.cost_ledger import RunRow
from tests.unit.cost.test_estimate import HOUR, work
from tests.unit.cost.test_estimate import run as run_of

TOTAL = "a.total"


def run(
    model: str, intervals: int = 1, *, read: int = 0, written: int = 0, version: str = "1",
    day: int = 1, environment: str = "pr_1",
) -> RunRow:  # fmt: skip
    counters = Counters(
        **{name: 0 for name in Counters.model_fields if Counters.model_fields[name].is_required()}
    ).model_copy(update={"input_bytes": read, "output_bytes": written})
    return run_of(model, intervals, HOUR, day).model_copy(
        update={
            "version": version,
            "counters": counters,
            "source": "counters",
            "environment": environment,
        }
    )


def planned(model: str, intervals: int, table: str = "sqlmesh__a.a__x__9") -> Backfill:
    return work(model, intervals).model_copy(update={"table": table})


def whole(model: str = TOTAL) -> Backfill:
    return work(model, 1, "full_refresh")


def growth(plan: Iterable[Backfill], rows: list[RunRow], *above: str) -> float:
    above_total = {TOTAL: frozenset(above), "a.middle": frozenset({"a.days"})}
    tables = {item.model: above_total[item.model] for item in plan if item.action == "full_refresh"}
    upstream = UpstreamGrowthForCost({item.model: item for item in plan}, rows, tables)
    return upstream.compute_input_growth(next(row for row in rows if row.model == TOTAL))


@pytest.mark.parametrize(("now", "expected"), [(48, 48 / 84), (84, 1.0), (840, 10.0)])
def test_growth__follows_the_intervals_of_the_table_above(now: int, expected: float) -> None:
    rows = [run("a.days", 84, written=100), run(TOTAL, read=90)]
    assert growth([whole(), planned("a.days", now)], rows, "a.days") == pytest.approx(expected)


def test_growth__of_two_tables_is_by_what_each_of_them_wrote() -> None:
    rows = [run("a.days", 10, written=300), run("a.months", 10, written=100), run(TOTAL, read=400)]
    plan = [whole(), planned("a.days", 20), planned("a.months", 60)]
    assert growth(plan, rows, "a.days", "a.months") == pytest.approx((300 * 2 + 100 * 6) / 400)


def test_growth__leaves_what_was_read_of_tables_that_nobody_builds() -> None:
    rows = [run("a.days", 10, written=100), run(TOTAL, read=400)]
    plan = [whole(), planned("a.days", 50)]
    assert growth(plan, rows, "a.days", "raw.prices") == pytest.approx(1 + 4 * 100 / 400)
    unread = [run("a.days", 10, written=100), run(TOTAL)]
    assert growth(plan, unread, "a.days", "raw.prices") == 1.0, "nobody counted what it read"


def test_growth__goes_through_another_table_that_is_computed_whole() -> None:
    rows = [run("a.days", 10, written=9), run("a.middle", read=9, written=9), run(TOTAL, read=9)]
    plan = [whole(), whole("a.middle"), planned("a.days", 30)]
    assert growth(plan, rows, "a.middle") == pytest.approx(3.0)


def test_growth__counts_what_earlier_applies_have_built_of_the_same_versions() -> None:
    # It held 20 when the model was built; the plan adds 5 to the 40 of the version that it builds.
    rows = [
        run("a.days", 15, written=9, day=1),
        run("a.days", 5, written=9, day=2),
        run("a.days", 40, written=9, version="9", day=3),
        run(TOTAL, read=9, day=2),
    ]
    assert growth([whole(), planned("a.days", 5)], rows, "a.days") == pytest.approx(45 / 20)


@pytest.mark.parametrize(
    "rows",
    [
        [run(TOTAL, read=9)],
        [run("a.days", 84, written=9, day=2), run(TOTAL, read=9)],
        [run("a.other", 84, written=9), run(TOTAL, read=9)],
        [
            run("a.days", 84, written=9),
            run(TOTAL, read=9),
            run("a.days", 7, written=9, day=2, environment="pr_2"),
        ],
    ],
    ids=["never built", "built by another apply", "no parent of it", "previews of two"],
)
def test_growth__is_none_where_nothing_tells(rows: list[RunRow]) -> None:
    assert growth([whole(), planned("a.days", 10)], rows, "a.days") == 1.0


def test_growth__is_not_told_by_a_table_that_others_fill_too() -> None:
    """A day of prod's own table: what else it holds is in no ledger."""
    rows = [run("a.days", 7, written=9), run(TOTAL, read=9)]
    tables = {TOTAL: frozenset({"a.days"})}
    assert (
        UpstreamGrowthForCost({TOTAL: whole()}, rows, tables).compute_input_growth(rows[1]) == 1.0
    )


def test_growth__is_of_tables_that_are_computed_whole_alone() -> None:
    rows = [run("a.days", 84, written=9), run(TOTAL, 84, read=9)]
    assert growth([work(TOTAL, 10), planned("a.days", 10)], rows, "a.days") == 1.0


def test_growth__without_counters_is_the_middle_of_the_tables() -> None:
    rows = [run_of("a.days", 10, HOUR), run_of("a.months", 10, HOUR), run_of(TOTAL, 1, HOUR)]
    plan = [whole(), planned("a.days", 20), planned("a.months", 60)]
    assert growth(plan, rows, "a.days", "a.months") == pytest.approx(4.0)
    assert growth(plan, rows, "a.days", "a.months", "raw.x") == 1.0


def test_estimate__of_a_table_that_is_computed_whole_grows_with_what_it_reads() -> None:
    rows = [run("a.days", 7, written=100), run(TOTAL, read=90)]
    plan = [whole(), planned("a.days", 70)]
    upstream = UpstreamGrowthForCost(
        {item.model: item for item in plan}, rows, {TOTAL: frozenset({"a.days"})}
    )
    cost = predict_plan_cost(
        plan,
        KnownCosts(layers={"ledger": list_past_runs_for_cost(rows, upstream.compute_input_growth)}),
    )
    hours = {item.model: item.executor_hours_mid for item in cost.models}
    assert hours == pytest.approx({"a.days": 10.0, TOTAL: 10.0}, rel=0.02)
