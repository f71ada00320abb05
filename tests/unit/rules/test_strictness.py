"""Whether an audit finds more than before, fewer, or nobody can tell."""

from __future__ import annotations

import random

import duckdb
import pytest
from sqlglot import exp, parse_one
from sqlmesh.core import dialect as d
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.sql.audit_promises import (
    compare_audit_arguments,
    compare_audit_queries,
    list_column_names,
)
from tests.unit.rules.world import change, seen

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
    assert compare_audit_queries(BASE + old, BASE + new, "duckdb") == verdict


@pytest.mark.parametrize(
    "new",
    [
        "SELECT * FROM t AS x WHERE x.a > 100",
        "select t.* from t where t.a > 100",
        "WITH s AS (SELECT * FROM t) SELECT * FROM s WHERE s.a > 100",
    ],
)
def test_queries__are_compared_past_their_spelling(new: str) -> None:
    assert compare_audit_queries(BASE + "a > 50", new, "duckdb") == "weaker"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SELECT * FROM t", BASE + "a IS NULL"),
        (BASE + "a IS NULL", "SELECT * FROM t"),
        (BASE + "a IS NULL", "SELECT * FROM u WHERE a IS NULL"),
        (BASE + "a IS NULL", "SELECT * FROM ("),
        (BASE + "a IS NULL", BASE + "MAP(a) IS NULL"),  # on which the parser itself fails
        ("SELECT 1 UNION SELECT 2", BASE + "a IS NULL"),
    ],
)
def test_queries__that_differ_in_more_than_a_condition_are_unknown(old: str, new: str) -> None:
    assert compare_audit_queries(old, new, "duckdb") == "unknown"


def value(text: str) -> exp.Expression:
    found = parse_one(text)
    assert isinstance(found, exp.Expression)
    return found


# Calls of SQLMesh's own audits, before and after, and which is stricter.
CALLS = [
    ("accepted_range(column := n, min_v := 1)", "accepted_range(column := n, min_v := 2)"),
    ("accepted_range(column := n, min_v := -2)", "accepted_range(column := n, min_v := 1)"),
    ("accepted_range(column := n, max_v := 3)", "accepted_range(column := n, max_v := 2)"),
    (
        "accepted_range(column := n, max_v := 3)",
        "accepted_range(column := n, max_v := 3, min_v := 1)",
    ),
    (
        "accepted_range(column := n, max_v := 3)",
        "accepted_range(column := n, max_v := 3, inclusive := false)",
    ),
    (
        "string_length_between(column := s, max_v := 3)",
        "string_length_between(column := s, max_v := 1)",
    ),
    ("mean_in_range(column := n, max_v := 3)", "mean_in_range(column := n, max_v := 1)"),
    ("stddev_in_range(column := n, min_v := 0)", "stddev_in_range(column := n, min_v := 2)"),
    ("number_of_rows(threshold := 1)", "number_of_rows(threshold := 100)"),
    (
        "not_null_proportion(column := n, threshold := 0.1)",
        "not_null_proportion(column := n, threshold := 0.9)",
    ),
    ("z_score(column := n, threshold := 30)", "z_score(column := n, threshold := 1)"),
    (
        "accepted_values(column := s, is_in := ('a', 'bb'))",
        "accepted_values(column := s, is_in := ('a'))",
    ),
    (
        "not_accepted_values(column := s, is_in := ('a'))",
        "not_accepted_values(column := s, is_in := ('a', 'bb'))",
    ),
    ("forall(criteria := (n > 0))", "forall(criteria := (n > 0, n < 3))"),
    (
        "not_null(columns := (n), condition := n < 9)",
        "not_null(columns := (n, s), condition := n < 9)",
    ),
    (
        "unique_values(columns := (n), condition := n < 9)",
        "unique_values(columns := (n, s), condition := n < 9)",
    ),
    (
        "unique_combination_of_columns(columns := (n, s), condition := n < 9)",
        "unique_combination_of_columns(columns := (s), condition := n < 9)",
    ),
    (
        "match_regex_pattern_list(column := s, patterns := ('^a', '^b'))",
        "match_regex_pattern_list(column := s, patterns := ('^a'))",
    ),
    (
        "match_like_pattern_list(column := s, patterns := ('a%', 'b%'))",
        "match_like_pattern_list(column := s, patterns := ('a%'))",
    ),
    (
        "not_match_regex_pattern_list(column := s, patterns := ('^a'))",
        "not_match_regex_pattern_list(column := s, patterns := ('^a', '^b'))",
    ),
    (
        "not_match_like_pattern_list(column := s, patterns := ('a%'))",
        "not_match_like_pattern_list(column := s, patterns := ('a%', 'b%'))",
    ),
    ("not_empty_string(column := s, condition := n > 1)", "not_empty_string(column := s)"),
    (
        "not_empty_string(column := s, condition := n > 4)",
        "not_empty_string(column := s, condition := n > 0)",
    ),
]
# Both directions are possible, or it takes the data to know.
UNCLEAR = [
    (
        "accepted_values(column := s, is_in := ('a', 'bb'))",
        "accepted_values(column := s, is_in := ('bb', 'c'))",
    ),
    (
        "accepted_values(column := s, is_in := ('A'))",
        "accepted_values(column := s, is_in := ('a'))",
    ),
    ("accepted_range(column := n, min_v := 1)", "accepted_range(column := n, min_v := s)"),
    ("accepted_range(column := n, min_v := 1)", "accepted_range(column := s, min_v := 1)"),
    (
        "accepted_range(column := n, min_v := 1, max_v := 5)",
        "accepted_range(column := n, min_v := 2, max_v := 6)",
    ),
    ("forall(criteria := (n > 0))", "forall(criteria := (n > 0 OR s = 'a'))"),
    ("number_of_rows(threshold := 1, condition := n > 1)", "number_of_rows(threshold := 1)"),
    ("number_of_rows(threshold := 1)", "number_of_rows(threshold := 1, condition := n > 1)"),
    (
        "chi_square(column_a := s, column_b := n, critical_value := 1)",
        "chi_square(column_a := s, column_b := n, critical_value := 9)",
    ),
    (
        "sequential_values(column := n, interval := 1)",
        "sequential_values(column := n, interval := 2)",
    ),
]
SAME_CALLS = [
    ("not_empty_string(column := S)", "not_empty_string(column := s, condition := true)"),
    (
        "accepted_range(column := n, max_v := 3)",
        "accepted_range(column := n, max_v := 3, min_v := null, inclusive := true)",
    ),
]


def read_call(text: str) -> tuple[str, dict[str, exp.Expression]]:
    """An audit's name and arguments, as SQLMesh reads them from a MODEL block."""
    (block,) = d.parse(f"MODEL (name a.b, kind FULL, audits ({text}));")
    model = load_sql_based_model([block, parse_one("SELECT n, s FROM raw.t")], dialect="duckdb")
    ((name, arguments),) = model.audits
    return name, dict(arguments)


def compare_calls(old: str, new: str) -> str:
    name, before = read_call(old)
    return compare_audit_arguments(name, before, read_call(new)[1])


@pytest.mark.parametrize(("weaker", "stricter"), CALLS)
def test_arguments__of_sqlmeshs_audits_in_both_directions(weaker: str, stricter: str) -> None:
    assert compare_calls(weaker, stricter) == "stricter"
    assert compare_calls(stricter, weaker) == "weaker"


@pytest.mark.parametrize(("old", "new"), UNCLEAR)
def test_arguments__that_go_different_ways_are_unknown(old: str, new: str) -> None:
    assert compare_calls(old, new) == "unknown"


def test_arguments__of_an_audit_that_nobody_knows_are_unknown() -> None:
    old, new = ({"threshold": exp.Literal.number(number)} for number in (1, 9))
    assert compare_audit_arguments("somebodys_own", old, new) == "unknown"


@pytest.mark.parametrize(("old", "new"), SAME_CALLS)
def test_arguments__with_defaults_in_words_are_the_same(old: str, new: str) -> None:
    assert compare_calls(old, new) == compare_calls(new, old) == "stricter"


VALUES = [(n, s) for n in (None, -1, 0, 1, 2, 3, 5) for s in (None, "", "a", "bb", "bbbb")]


@pytest.fixture(scope="module")
def tables() -> list[duckdb.DuckDBPyConnection]:
    """Small tables of chance, some of one row, and an empty one."""
    draw, found = random.Random(7), []
    for size in (0, *([1] * 20), *([2] * 10), 3, 3, 3, 5, 8, 200):
        connection = duckdb.connect(config={"threads": 1})
        connection.execute("CREATE TABLE t (n INT, s TEXT)")
        for row in draw.choices(VALUES, k=size):
            connection.execute("INSERT INTO t VALUES (?, ?)", row)
        found.append(connection)
    return found


@pytest.mark.by_day(8)
@pytest.mark.parametrize(("weaker", "stricter"), CALLS)
def test_arguments__a_stricter_call_fails_where_the_weaker_does(
    weaker: str, stricter: str, tables: list[duckdb.DuckDBPyConnection]
) -> None:
    """SQLMesh's own queries, run: the table above is no matter of opinion."""
    failed = [_fails(table, weaker) for table in tables]
    later = [_fails(table, stricter) for table in tables]
    assert all(now for was, now in zip(failed, later, strict=True) if was)
    assert failed != later, "the data tell the two apart"


def _fails(table: duckdb.DuckDBPyConnection, call: str) -> bool:
    name, arguments = read_call(call)
    model = load_sql_based_model(
        [
            *d.parse("MODEL (name t, kind FULL, dialect duckdb);"),
            parse_one("SELECT 1 AS n, 's' AS s"),
        ],
        dialect="duckdb",
    )
    query = model.render_audit_query(BUILT_IN_AUDITS[name], **arguments)
    return bool(table.execute(query.sql(dialect="duckdb")).fetchall())


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


def find_weakened(before: str, after: str) -> list[str]:
    """The evidence of the rule for a model whose attached audits change."""
    texts = (
        f"MODEL (name stg.t, kind FULL, audits ({calls}));\nSELECT o.order_id, o.status FROM raw.orders AS o"
        for calls in (before, after)
    )
    old, new = ({"models/t.sql": text} for text in texts)
    return [finding.evidence for finding in seen(change(old, new), "weakened-audit")]


@pytest.mark.parametrize(
    ("strict", "loose"),
    [
        (
            "not_accepted_values(column := status, is_in := ('x', 'test'))",
            "not_accepted_values(column := status, is_in := ('x'))",
        ),
        (
            "z_score(column := order_id, threshold := 3)",
            "z_score(column := order_id, threshold := 30)",
        ),
        (
            "unique_combination_of_columns(columns := (status), condition := order_id > 0)",
            "unique_combination_of_columns(columns := (status, order_id), condition := order_id > 0)",
        ),
        (
            "not_null(columns := (status), blocking := true)",
            "not_null(columns := (status), blocking := false)",
        ),
        (
            "not_null_non_blocking(columns := (status), blocking := true)",
            "not_null_non_blocking(columns := (status))",
        ),
    ],
)
def test_weakened_audit__sees_one_direction_only(strict: str, loose: str) -> None:
    assert find_weakened(strict, loose)
    assert not find_weakened(loose, strict)
    assert not find_weakened(strict, strict)


def test_weakened_audit__that_stops_in_words_is_as_before() -> None:
    assert not find_weakened(
        "not_null(columns := (status))", "not_null(columns := (status), blocking := true)"
    )
