"""Intervals that both sides have, and their condition in SQL."""

from __future__ import annotations

import itertools

import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from ci_bot.worker.data_diff.spec import (
    Interval,
    find_covering_diff_window,
    intersect_diff_intervals,
    merge_diff_intervals,
    parse_diffed_spark_type,
    render_diff_interval_condition,
    render_diff_text_literal,
)

DAY = 86_400_000
JANUARY = 1_704_067_200_000  # 2024-01-01
MOMENTS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda two: (min(two), max(two))),
    max_size=6,
)


def moments(intervals: list[Interval]) -> set[int]:
    return {moment for start, end in intervals for moment in range(start, end)}


@given(MOMENTS)
def test_merged__same_moments_in_order_with_gaps_between(intervals: list[Interval]) -> None:
    found = merge_diff_intervals(intervals)
    assert moments(found) == moments(intervals)
    assert all(start < end for start, end in found)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(found))


@given(MOMENTS, MOMENTS)
def test_shared__the_moments_of_both(prod: list[Interval], pr: list[Interval]) -> None:
    assert moments(intersect_diff_intervals(prod, pr)) == moments(prod) & moments(pr)


def test_span__from_first_start_to_last_end() -> None:
    window = find_covering_diff_window(
        "ds", [(JANUARY + 5 * DAY, JANUARY + 6 * DAY), (JANUARY, JANUARY + DAY)]
    )
    assert window is not None
    assert (window.column, window.start, window.end) == (
        "ds",
        "2024-01-01T00:00:00Z",
        "2024-01-07T00:00:00Z",
    )
    assert find_covering_diff_window("ds", []) is None
    assert find_covering_diff_window("ds", [(JANUARY, JANUARY)]) is None


def test_condition__each_type_in_its_own_words() -> None:
    day = [(JANUARY, JANUARY + DAY)]

    def of(kind: str, form: str = "%Y-%m-%d") -> str | None:
        return render_diff_interval_condition("c", parse_diffed_spark_type(kind), day, form)

    assert of("date") == "(c >= DATE '2024-01-01' AND c < DATE '2024-01-02')"
    assert of("timestamp") == (
        "(c >= TIMESTAMP '2024-01-01 00:00:00.000000+00:00' "
        "AND c < TIMESTAMP '2024-01-02 00:00:00.000000+00:00')"
    )
    assert of("timestamp_ntz") == (
        "(c >= TIMESTAMP_NTZ '2024-01-01 00:00:00.000000' "
        "AND c < TIMESTAMP_NTZ '2024-01-02 00:00:00.000000')"
    )
    assert of("string") == "(c >= '2024-01-01' AND c < '2024-01-02')"
    assert of("varchar(10)", "%Y%m%d") == "(c >= '20240101' AND c < '20240102')"
    assert of("int", "%Y%m%d") == "(c >= 20240101 AND c < 20240102)"
    assert of("int") is None
    assert of("boolean") is None
    assert of("array<date>") is None


def test_condition__a_gap_stays_a_gap() -> None:
    found = render_diff_interval_condition(
        "c",
        parse_diffed_spark_type("date"),
        [(JANUARY, JANUARY + DAY), (JANUARY + 2 * DAY, JANUARY + 3 * DAY)],
        "",
    )
    assert found == (
        "(c >= DATE '2024-01-01' AND c < DATE '2024-01-02') OR "
        "(c >= DATE '2024-01-03' AND c < DATE '2024-01-04')"
    )


def test_condition__hours_on_a_date_take_the_midnights_within() -> None:
    hours = [(JANUARY + DAY // 2, JANUARY + DAY + DAY // 2)]
    assert render_diff_interval_condition("c", parse_diffed_spark_type("date"), hours, "") == (
        "(c >= DATE '2024-01-02' AND c < DATE '2024-01-03')"
    )


def test_condition__nothing_for_no_interval() -> None:
    assert render_diff_interval_condition("c", parse_diffed_spark_type("date"), [], "") is None


@given(st.text(max_size=12))
def test_literal__is_one_literal_of_that_text(text: str) -> None:
    (found,) = sqlglot.parse(f"SELECT {render_diff_text_literal(text)}", dialect="spark")
    assert found is not None
    (item,) = found.expressions
    assert isinstance(item, exp.Literal)
    assert item.is_string
    # sqlglot reads \\n and friends as Spark does; the text itself must come back.
    assert item.this == text
