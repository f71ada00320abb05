"""Many models at a time: bounds, order, budget, failures and cancelling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.protocol.apply_report import TableDiff
from ci_bot.worker.data_diff.compare import (
    CANCELLED,
    FAILED,
    DiffBudget,
    DiffCandidate,
    DiffControls,
    diff_models,
    list_diffs_over_budget,
)
from ci_bot.worker.data_diff.spec import DiffedTable, DiffQueryError, DiffSpec

COLUMNS = [("id", "int"), ("v", "int")]
ANSWER = (2, 2, 0, 0, 2, 0, 0, 0, 1, 1, 1, *((0, 2, 1.5, "1", "2") * 2))


@dataclass
class Port:
    """Answers every query, after `during` has been called with the table's name."""

    during: Callable[[str], None] = lambda table: None
    read: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def open_table(self, table: str, *, few: bool = False) -> Iterator[DiffedTable]:
        yield DiffedTable(table, COLUMNS, lambda: None)

    def query_rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        table = sql.split("FROM `", 1)[1].split("`", 1)[0]
        with self.lock:
            self.read.append(table)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            self.during(table)
        finally:
            with self.lock:
                self.running -= 1
        return [(5, 6) if "SELECT COUNT(*)\nFROM" in sql else ANSWER]


def candidate(name: str, **changes: Any) -> DiffCandidate:
    keys = changes.pop("keys", ("id",))
    return DiffCandidate(DiffSpec(name, name, f"{name}_pr", keys), **changes)


def test_compare_models__answers_in_the_order_asked_and_runs_small_ones_first() -> None:
    port = Port()
    found = diff_models(
        port,
        [candidate("a", size=30), candidate("b"), candidate("c", size=10), candidate("d", rows=20)],
        controls=DiffControls(workers=1),
    )
    assert [diff.model for diff in found] == ["a", "b", "c", "d"]
    assert all(diff.compared for diff in found)
    assert port.read == ["c", "d", "a", "b"]


def test_compare_models__no_more_at_a_time_than_workers() -> None:
    # Every query waits until two run, so a plan that ran them one by one would fail here.
    both = threading.Barrier(2, timeout=20)

    def during(table: str) -> None:
        both.wait()

    port = Port(during)
    diff_models(port, [candidate(f"m{n}") for n in range(6)], controls=DiffControls(workers=2))
    assert port.most == 2


def test_compare_models__nothing_to_do() -> None:
    assert diff_models(Port(), []) == []


def test_compare_models__each_reason_by_its_model() -> None:
    def fails(table: str) -> None:
        if table == "broken":
            raise DiffQueryError("TABLE_OR_VIEW_NOT_FOUND (see the log).")

    told: list[TableDiff] = []
    found = diff_models(
        Port(fails),
        [
            candidate("new", unavailable="The model is new: prod has no table of it."),
            candidate("grainless", keys=()),
            candidate("broken"),
            candidate("fine"),
        ],
        done=told.append,
    )
    assert {diff.model: diff.skipped_because for diff in found} == {
        "new": "The model is new: prod has no table of it.",
        "grainless": "The model has no grain and no unique key of columns, so its rows cannot be paired. "
        "Prod has 5 rows of it, and this has 6.",
        "broken": "Spark could not compare it: TABLE_OR_VIEW_NOT_FOUND (see the log).",
        "fine": None,
    }
    assert [diff.model for diff in found if diff.compared] == ["fine"]
    assert sorted(diff.model for diff in told) == ["broken", "fine", "grainless", "new"]


def test_compare_models__tries_a_model_once_more_and_not_twice() -> None:
    """Another run replaces the view that both read: for a moment it is not there."""
    reads: list[str] = []
    pauses: list[None] = []

    def fails(table: str) -> None:
        reads.append(table)
        if table == "gone" or reads.count(table) == 1:
            raise DiffQueryError("TABLE_OR_VIEW_NOT_FOUND (see the log).")

    found = diff_models(
        Port(fails),
        [candidate("replaced"), candidate("gone")],
        controls=DiffControls(workers=1, again=lambda: pauses.append(None)),
    )
    assert [diff.compared for diff in found] == [True, False]
    assert found[1].skipped_because == f"{FAILED}: TABLE_OR_VIEW_NOT_FOUND (see the log)."
    assert (reads.count("replaced"), reads.count("gone"), len(pauses)) == (2, 2, 2)


def test_compare_models__over_budget_shows_the_schema_only() -> None:
    port = Port()
    found = diff_models(
        port,
        [candidate("large", rows=1_000_000), candidate("small", rows=10)],
        budget=DiffBudget(rows=100),
    )
    assert port.read == ["small"]
    assert not found[0].compared
    assert found[0].skipped_because == (
        "It has 1,000,000 rows, and of the budget for all data diffs, 100 rows, 90 were left."
    )
    assert found[1].compared


def test_over_budget__an_unknown_size_is_not_zero() -> None:
    out = list_diffs_over_budget([candidate("a"), candidate("b", size=5)], DiffBudget(size=10))
    assert list(out) == [0]
    assert out[0] == (
        "Nobody knows how many bytes it has, and the budget for all data diffs is 10 bytes."
    )


def test_over_budget__models_that_do_not_run_cost_nothing() -> None:
    candidates = [
        candidate("new", rows=100, unavailable="new"),
        candidate("grainless", rows=100, keys=()),
        candidate("fine", rows=100),
    ]
    assert list_diffs_over_budget(candidates, DiffBudget(rows=100)) == {}


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 120))
def test_over_budget__keeps_as_many_as_fit_and_drops_the_largest(
    sizes: list[int], limit: int
) -> None:
    out = list_diffs_over_budget(
        [candidate(f"m{n}", rows=s) for n, s in enumerate(sizes)], DiffBudget(rows=limit)
    )
    kept = [size for number, size in enumerate(sizes) if number not in out]
    dropped = [sizes[number] for number in out]
    assert sum(kept) <= limit
    if dropped:
        assert max(kept, default=0) <= min(dropped)
        assert sum(kept) + min(dropped) > limit


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_over_budget__both_limits_hold(sizes: list[tuple[int, int]]) -> None:
    candidates = [candidate(f"m{n}", rows=r, size=s) for n, (r, s) in enumerate(sizes)]
    out = list_diffs_over_budget(candidates, DiffBudget(rows=12, size=12))
    kept = [size for number, size in enumerate(sizes) if number not in out]
    assert sum(rows for rows, _ in kept) <= 12
    assert sum(size for _, size in kept) <= 12


def test_compare_models__cancelled_before_it_began() -> None:
    port = Port()
    found = diff_models(
        port, [candidate("a"), candidate("b")], controls=DiffControls(cancelled=lambda: True)
    )
    assert port.read == []
    assert [diff.skipped_because for diff in found] == [CANCELLED, CANCELLED]


def test_compare_models__cancel_stops_what_runs_and_keeps_what_is_done() -> None:
    cancelled, stopped = threading.Event(), threading.Event()

    def during(table: str) -> None:
        if table == "b":
            cancelled.set()
            assert stopped.wait(20)
            raise DiffQueryError("SPARK_JOB_CANCELLED (see the log).")

    port = Port(during)
    found = diff_models(
        port,
        [candidate("a", size=1), candidate("b", size=2), candidate("c", size=3)],
        controls=DiffControls(
            workers=1, cancelled=cancelled.is_set, stop=stopped.set, poll=0.01, patience=20
        ),
    )
    assert [diff.compared for diff in found] == [True, False, False]
    assert [diff.skipped_because for diff in found] == [None, CANCELLED, CANCELLED]
    assert port.read == ["a", "b"]


def test_compare_models__cancel_does_not_wait_for_a_query_that_will_not_end() -> None:
    cancelled, release = threading.Event(), threading.Event()

    def during(table: str) -> None:
        cancelled.set()
        release.wait(20)

    stops: list[str] = []
    try:
        found = diff_models(
            Port(during),
            [candidate("a")],
            controls=DiffControls(
                cancelled=cancelled.is_set,
                stop=lambda: stops.append("stop"),
                poll=0.01,
                patience=0.03,
            ),
        )
    finally:
        release.set()
    assert [diff.skipped_because for diff in found] == [CANCELLED]
    assert stops == ["stop"] * 3


def test_compare_models__a_defect_of_ours_is_not_a_skipped_model() -> None:
    def breaks(table: str) -> None:
        raise KeyError(table)

    with pytest.raises(KeyError):
        diff_models(Port(breaks), [candidate("a")])
