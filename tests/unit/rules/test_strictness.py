"""Whether an audit finds more than before, fewer, or nobody can tell."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from ci_bot.worker.sql.audit_promises import compare_arguments, compare_queries, list_column_names

BASE = "SELECT * FROM t WHERE "


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        # An audit's query picks the wrong rows: another alternative picks more of them.
        ("a IS NULL", "a IS NULL OR b IS NULL", "stricter"),
        ("a IS NULL OR b IS NULL", "b IS NULL", "weaker"),
        ("a IS NULL AND b > 1", "a IS NULL", "stricter"),
        ("a IS NULL", "a IS NULL AND b > 1", "weaker"),
        ("(a IS NULL)", "A IS NULL", "stricter"),  # the same, and so no weaker
        ("a > 100", "a > 50", "stricter"),
        ("a > 50", "a > 100", "weaker"),
        ("a < 0", "a < 10", "stricter"),
        ("a < -5", "a < -10", "weaker"),
        ("a IS NULL OR b > 5", "a IS NULL OR b > 7", "weaker"),
        ("a > 5", "a >= 5", "unknown"),
        ("a > 5", "b > 5", "unknown"),
        ("a > 5", "a > c", "unknown"),
        ("a > 5 OR b > 5", "a > 7 OR b > 3", "unknown"),
        ("a IS NULL", "b IS NULL", "unknown"),
        ("a = 'X'", "a = 'x'", "unknown"),  # a text's case is a part of it
        ("a IS NULL OR b = 'X'", "a IS NULL OR b = 'x'", "unknown"),
        ("50 < a", "a > 100", "weaker"),
        ("a > 50 AND b IS NULL", "b IS NULL AND a > 100", "weaker"),
        ("a > 50 AND b < 9", "b < 8 AND a > 100", "weaker"),
        ("a > 50 AND b < 9", "b < 10 AND a > 100", "unknown"),
        ("a BETWEEN 1 AND 5", "a >= 1 AND a <= 5", "stricter"),
        ("NOT (a IS NULL OR b > 5)", "b <= 5 AND NOT a IS NULL", "stricter"),
    ],
)
def test_queries__by_their_conditions(old: str, new: str, verdict: str) -> None:
    assert compare_queries(BASE + old, BASE + new, "duckdb") == verdict


@pytest.mark.parametrize(
    "new",
    [
        "SELECT * FROM t AS x WHERE x.a > 100",
        "select t.* from t where t.a > 100",
        "WITH s AS (SELECT * FROM t) SELECT * FROM s WHERE s.a > 100",
    ],
)
def test_queries__are_compared_past_their_spelling(new: str) -> None:
    assert compare_queries(BASE + "a > 50", new, "duckdb") == "weaker"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SELECT * FROM t", BASE + "a IS NULL"),
        (BASE + "a IS NULL", "SELECT * FROM t"),
        (BASE + "a IS NULL", "SELECT * FROM u WHERE a IS NULL"),
        (BASE + "a IS NULL", "SELECT * FROM ("),
        ("SELECT 1 UNION SELECT 2", BASE + "a IS NULL"),
    ],
)
def test_queries__that_differ_in_more_than_a_condition_are_unknown(old: str, new: str) -> None:
    assert compare_queries(old, new, "duckdb") == "unknown"


def value(text: str) -> exp.Expression:
    found = parse_one(text)
    assert isinstance(found, exp.Expression)
    return found


@pytest.mark.parametrize(
    ("name", "old", "new", "verdict"),
    [
        ("min_v", "1", "2", "stricter"),
        ("min_v", "1", "-2", "weaker"),
        ("max_v", "10", "9", "stricter"),
        ("max_v", "10", "11", "weaker"),
        ("threshold", "100", "10", "weaker"),
        ("is_in", "('a', 'b')", "('a')", "stricter"),
        ("is_in", "('a')", "('a', 'b')", "weaker"),
        ("is_in", "('a', 'b')", "('b', 'c')", "unknown"),
        ("columns", "(a)", "(a, b)", "stricter"),
        ("columns", "(a, b)", "(b)", "weaker"),
        ("columns", "(a, b)", "(b, c)", "unknown"),
        ("columns", "a", "(a, b)", "stricter"),
        ("min_v", "1", "x", "unknown"),
        ("criteria", "1", "2", "unknown"),
    ],
)
def test_arguments__by_what_they_bound(name: str, old: str, new: str, verdict: str) -> None:
    assert compare_arguments({name: value(old)}, {name: value(new)}) == verdict


def test_arguments__that_go_different_ways_are_unknown() -> None:
    before = {"min_v": value("1"), "max_v": value("5")}
    assert compare_arguments(before, {"min_v": value("2"), "max_v": value("4")}) == "stricter"
    assert compare_arguments(before, {"min_v": value("2"), "max_v": value("6")}) == "unknown"
    assert compare_arguments(before, {"min_v": value("1")}) == "unknown"
    assert compare_arguments(before, before) == "stricter"


def test_arguments__in_another_case_are_the_same_only_if_they_are_names() -> None:
    assert compare_arguments({"column": value("Amount")}, {"column": value("amount")}) == "stricter"
    assert compare_arguments({"is_in": value("('A')")}, {"is_in": value("('a')")}) == "unknown"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ["a"]),
        ("'A'", ["a"]),
        ("('a', b)", ["a", "b"]),
        ("(A)", ["a"]),
        ("[a, 'b']", ["a", "b"]),
        ("COALESCE(a, -1)", ["a"]),
        ("(COALESCE(a, 'none'), DATE_TRUNC('DAY', t.b))", ["a", "b"]),
        ("'1'", ["1"]),
    ],
)
def test_column_names__of_keys_and_arguments(text: str, expected: list[str]) -> None:
    assert list_column_names(parse_one(text)) == expected
    assert list_column_names([parse_one(text)]) == expected
