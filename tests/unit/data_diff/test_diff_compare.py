"""From Spark's answer to the contract, over a port that answers from a dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from ci_bot.protocol.apply_report import Profile
from ci_bot.worker.data_diff import column_comparison
from ci_bot.worker.data_diff.compare import diff_schemas, diff_tables
from ci_bot.worker.data_diff.spec import (
    DiffedSparkType,
    DiffedTable,
    DiffQueryError,
    DiffSpec,
    TimeWindow,
    parse_diffed_spark_type,
)

DAY = 86_400_000
JANUARY = 1_704_067_200_000  # 2024-01-01
ORDERS = [("id", "int"), ("name", "string"), ("ds", "date")]


@dataclass
class Scripted:
    """Tables by quoted name, and the one row that every query answers."""

    tables: dict[str, list[tuple[str, str]]]
    answer: tuple[Any, ...] = ()
    asked: list[str] = field(default_factory=list)

    sizes: dict[str, int | None] = field(default_factory=dict)
    few: bool = False
    looked: list[tuple[str, bool]] = field(default_factory=list)

    @contextmanager
    def open_table(self, table: str, *, few: bool = False) -> Iterator[DiffedTable]:
        self.looked.append((table, few))
        yield DiffedTable(table, self.tables[table], lambda: self.sizes.get(table))

    def query_rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        self.few = few
        return [self.answer]


def port(*answer: int) -> Scripted:
    """Answers these counts and matches, and the profiles of `name` and `ds` on both sides."""
    names, days = (1, 9, 1, 8), (0, 5, "2024-01-01", "2024-01-05", 0, 6, "2024-01-01", "2024-01-06")
    return Scripted({"`prod`.`t`": ORDERS, "`pr`.`t`": ORDERS}, (*answer, *names, *days))


def spec(**changes: Any) -> DiffSpec:
    return DiffSpec(**{"model": "m", "prod": "prod.t", "pr": "pr.t", "keys": ("id",)} | changes)


def test_compare__counts_and_rates() -> None:
    asked = port(20, 18, 4, 2, 16, 1, 0, 0, 12, 11, 16, 12)
    found = diff_tables(asked, spec())
    assert found.compared
    assert (found.rows_prod, found.rows_pr, found.only_prod, found.only_pr) == (20, 18, 4, 2)
    assert (found.matched, found.full_match, found.same) == (16, 12, 11)
    assert (found.null_keys, found.duplicate_keys) == (1, 0)
    assert [(c.name, c.match_rate) for c in found.columns] == [("name", 1.0), ("ds", 0.75)]
    assert found.keys == ["id"]
    assert found.seconds is None
    assert found.skipped_because is None
    assert len(asked.asked) == 1


@pytest.mark.parametrize(
    ("known", "sizes", "few"),
    [
        (True, (2**19, 2**19), True),
        (True, (2**19, 2**19 + 1), False),
        (True, (1, None), False),
        (False, (1, 1), False),
    ],
)
def test_compare__runs_without_preparing_where_both_sides_are_known_to_be_small(
    known: bool, sizes: tuple[int | None, int | None], few: bool
) -> None:
    asked = port(20, 18, 4, 2, 16, 1, 0, 0, 12, 11, 16, 12)
    asked.sizes = dict(zip(asked.tables, sizes, strict=True))
    assert diff_tables(asked, spec(few=known)).compared
    assert asked.few == few
    # The query is run where the tables it names were looked at.
    assert {where for _, where in asked.looked[-2:]} == {few}


def test_compare__a_column_that_differs_is_profiled_and_no_other() -> None:
    name, day = diff_tables(port(20, 18, 4, 2, 16, 1, 0, 0, 12, 12, 16, 12), spec()).columns
    assert (name.prod, name.pr) == (None, None)
    assert day.prod == Profile(nulls=0, distinct=5, min="2024-01-01", max="2024-01-05")
    assert day.pr == Profile(nulls=0, distinct=6, min="2024-01-01", max="2024-01-06")


@pytest.mark.parametrize("mean", [float("nan"), float("inf"), None])
def test_profile__a_mean_that_is_no_number_is_none(mean: float | None) -> None:
    found = column_comparison.read_diff_profile(
        DiffedSparkType("double"), (0, mean, "NaN", "NaN"), distinct=True
    )
    assert found.mean is None


@pytest.mark.parametrize("kind", ["string", "varchar(3)", "char(3)", "binary", "array<int>"])
def test_profile__no_value_of_text_is_asked_for(kind: str) -> None:
    asked = column_comparison.list_diff_measure_items(
        "v", parse_diffed_spark_type(kind), "of_pr", distinct=True
    )
    assert not any("MIN(" in item or "MAX(" in item for item in asked)


def test_compare__nothing_compared_is_no_rate() -> None:
    found = diff_tables(port(0, 5, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0), spec())
    assert [column.match_rate for column in found.columns] == [None, None]


def test_compare__one_row_in_a_billion_is_not_everything() -> None:
    rows = 1_000_000_000
    found = diff_tables(
        port(rows, rows, 0, 0, rows, 0, 0, 0, *(rows - 1,) * 2, rows, rows - 1), spec()
    )
    assert found.columns[1].match_rate is not None
    assert found.columns[1].match_rate < 1


def test_compare__crowded_keys_leave_the_columns_open() -> None:
    found = diff_tables(port(90, 80, 0, 0, 4000, 0, 3, 2, 70, 70, 50, 50), spec(rows_per_key=32))
    assert found.compared
    assert (found.matched, found.duplicate_keys, found.full_match) == (4000, 3, None)
    assert found.same is None
    # Of such a key some rows are left out, so these would be profiles of a part.
    assert [(c.match_rate, c.prod, c.pr) for c in found.columns] == [(None, None, None)] * 2
    assert found.skipped_because == (
        "Columns were not compared: 2 keys are on more than 32 rows of one side, so the key does "
        "not say which rows belong together."
    )


def test_compare__a_column_that_spark_cannot_compare_leaves_full_match_open() -> None:
    columns = [("id", "int"), ("gap", "interval")]
    asked = Scripted({"`p`": columns, "`q`": columns}, (1, 1, 0, 0, 1, 0, 0, 0, 1, 1))
    found = diff_tables(asked, spec(prod="p", pr="q"))
    assert found.full_match is None
    assert [(c.name, c.match_rate) for c in found.columns] == [("gap", None)]
    assert found.skipped_because == "Spark cannot compare these columns: gap (interval)."


def test_compare__seconds_come_from_the_clock() -> None:
    ticks = iter([10.0, 12.5])
    found = diff_tables(port(*(0,) * 12), spec(), clock=lambda: next(ticks))
    assert found.seconds == 2.5


def test_compare__without_a_key_rows_are_counted_and_not_paired() -> None:
    asked = Scripted({"`prod`.`t`": ORDERS, "`pr`.`t`": ORDERS}, (1_200, 7))
    found = diff_tables(asked, spec(keys=()))
    assert not found.compared
    assert found.skipped_because == (
        "The model has no grain and no unique key of columns, so its rows cannot be paired. "
        "Prod has 1,200 rows of it, and this has 7."
    )
    assert (found.rows_prod, found.rows_pr, found.matched) == (1_200, 7, None)
    assert asked.asked == [
        "SELECT\n  (SELECT COUNT(*)\nFROM `prod`.`t` AS src),\n"
        "  (SELECT COUNT(*)\nFROM `pr`.`t` AS src)"
    ]


def test_compare__without_a_key_rows_of_the_common_window_are_counted() -> None:
    asked = Scripted({"`prod`.`t`": ORDERS, "`pr`.`t`": ORDERS}, (3, 3))
    window = TimeWindow(
        "ds", prod=[(JANUARY, JANUARY + 30 * DAY)], pr=[(JANUARY + 20 * DAY, JANUARY + 40 * DAY)]
    )
    found = diff_tables(asked, spec(keys=(), window=window))
    assert found.window is not None
    assert found.window.start == "2024-01-21T00:00:00Z"
    assert asked.asked[0].count("src.`ds` >= DATE '2024-01-21'") == 2


def test_compare__without_a_common_window_nothing_is_counted() -> None:
    asked = port()
    window = TimeWindow("ds", prod=[(JANUARY, JANUARY + DAY)], pr=[])
    assert diff_tables(asked, spec(keys=(), window=window)).rows_prod is None
    assert asked.asked == []


def test_compare__the_window_is_on_both_sides_and_reported_with_prods() -> None:
    asked = port(*(0,) * 12)
    window = TimeWindow(
        "ds", prod=[(JANUARY, JANUARY + 30 * DAY)], pr=[(JANUARY + 20 * DAY, JANUARY + 40 * DAY)]
    )
    found = diff_tables(asked, spec(window=window))
    assert found.window is not None
    assert (found.window.start, found.window.end) == (
        "2024-01-21T00:00:00Z",
        "2024-01-31T00:00:00Z",
    )
    assert found.window_of is not None
    assert (found.window_of.start, found.window_of.end) == (
        "2024-01-01T00:00:00Z",
        "2024-01-31T00:00:00Z",
    )
    assert (
        asked.asked[0].count("(src.`ds` >= DATE '2024-01-21' AND src.`ds` < DATE '2024-01-31')")
        == 2
    )


@pytest.mark.parametrize(
    ("prod", "pr", "complete"),
    [
        ([(0, 30)], [(0, 30)], True),
        ([(0, 30)], [(0, 10), (10, 45)], True),
        ([(0, 30)], [(0, 10), (11, 30)], False),
        ([(0, 10), (20, 30)], [(0, 10), (20, 30)], True),
        ([(0, 30)], [(29, 30)], False),
    ],
)
def test_compare__complete_is_every_interval_of_prod(
    prod: list[tuple[int, int]], pr: list[tuple[int, int]], complete: bool
) -> None:
    def days(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(JANUARY + first * DAY, JANUARY + last * DAY) for first, last in ranges]

    window = TimeWindow("ds", prod=days(prod), pr=days(pr))
    assert diff_tables(port(*(0,) * 12), spec(window=window)).complete is complete
    assert diff_tables(port(*(0,) * 12), spec()).complete


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (
            TimeWindow("ds", [(JANUARY, JANUARY + DAY)], [(JANUARY + DAY, JANUARY + 2 * DAY)]),
            "Prod and the PR environment have no interval in common.",
        ),
        (TimeWindow("ds", [], []), "Prod and the PR environment have no interval in common."),
        (
            TimeWindow("day", [(0, DAY)], [(0, DAY)]),
            "The time column day is not on both sides.",
        ),
        (
            TimeWindow("id", [(0, DAY)], [(0, DAY)]),
            "The time column id is of type int, which is no time.",
        ),
    ],
)
def test_compare__no_shared_window(window: TimeWindow, sentence: str) -> None:
    asked = port()
    found = diff_tables(asked, spec(window=window))
    assert (found.compared, found.skipped_because) == (False, sentence)
    assert asked.asked == []


def test_compare__names_that_spark_would_replace_are_refused() -> None:
    columns = [("id", "int"), ("${env:HOME}", "int")]
    asked = Scripted({"`p`": columns, "`q`": columns})
    with pytest.raises(DiffQueryError, match="which Spark would replace"):
        diff_tables(asked, spec(prod="p", pr="q"))
    assert asked.asked == []


def test_compare_schema__columns_without_data() -> None:
    asked = Scripted({"`p`": ORDERS, "`q`": [("id", "bigint"), ("name", "string"), ("x", "int")]})
    found = diff_schemas(asked, spec(prod="p", pr="q"), "Too large.")
    assert (found.compared, found.skipped_because) == (False, "Too large.")
    assert (found.schema_.added, found.schema_.removed, found.schema_.changed) == (
        ["x"],
        ["ds"],
        ["id"],
    )
    assert asked.asked == []


@pytest.mark.parametrize("changes", [{"decimals": -1}, {"decimals": 38}, {"rows_per_key": 0}])
def test_spec__refuses_bounds_that_mean_nothing(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        spec(**changes)
