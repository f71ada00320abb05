"""The text of the query. That it counts right is shown on Spark, in tests/integration."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlglot import exp

from ci_bot.worker.data_diff.column_comparison import lay_out_diff_columns, list_diff_measures
from ci_bot.worker.data_diff.query import (
    COUNTS,
    DiffQuery,
    build_diff_query,
    quote_name_of_diffed_table,
)
from ci_bot.worker.data_diff.spec import DiffQueryError
from ci_bot.worker.runtime.spark_catalog import quote_spark_identifier

NAMES = st.text(
    alphabet=st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("`'\";-.* "),
    min_size=1,
    max_size=8,
)


def query(columns: list[tuple[str, str]], keys: list[str], **options: object) -> DiffQuery:
    given = {"prod": "`p`", "pr": "`q`", "decimals": 3, "rows_per_key": 32} | options
    return build_diff_query(lay_out_diff_columns(columns, columns, keys), **given)


@given(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
def test_build__any_name_is_one_identifier(names: list[str]) -> None:
    assume(len({name.lower() for name in names}) == len(names))
    sql = query([(name, "int") for name in names], names[:1]).sql

    (statement,) = sqlglot.parse(sql, dialect="spark")

    assert isinstance(statement, exp.Select)
    used = {column.name for column in statement.find_all(exp.Column) if column.table == "src"}
    assert used == set(names)
    assert {table.name for table in statement.find_all(exp.Table)} == {
        "p",
        "q",
        "ci_bot_diff_prod",
        "ci_bot_diff_pr",
        "ci_bot_diff_pairs",
    }


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_quote_table_name__quoted_parts_stay_what_they_are(parts: list[str]) -> None:
    text = ".".join(quote_spark_identifier(part) for part in parts)
    assert quote_name_of_diffed_table(text) == text


def test_quote_table_name__quotes_what_came_without() -> None:
    assert quote_name_of_diffed_table("db.t") == "`db`.`t`"
    assert quote_name_of_diffed_table("spark_catalog.`my db`.t") == "`spark_catalog`.`my db`.`t`"


@pytest.mark.parametrize(
    "text",
    ["", "a b c", "t; DROP TABLE x", "t) SELECT", "`a", "a.", ".a", "a..b", "``", "a`b`", "a\n"],
)
def test_quote_table_name__refuses_what_is_no_name(text: str) -> None:
    with pytest.raises(DiffQueryError, match="is not the name of a table"):
        quote_name_of_diffed_table(text)


def test_build__one_row_of_counts_matches_and_profiles() -> None:
    built = query([("id", "int"), ("a", "string"), ("gap", "interval"), ("b", "date")], ["id"])
    statement = sqlglot.parse_one(built.sql, dialect="spark")
    assert [column.shown_name for column in built.columns] == ["a", "b"]
    profiles = 2 * sum(
        len(list_diff_measures(column.kind, distinct=True))
        for column in built.columns
        if column.kind
    )
    assert len(statement.expressions) == len(COUNTS) + 2 + profiles
    for item in statement.expressions:
        assert isinstance(item.unnest(), (exp.Coalesce, exp.Filter, exp.Cast))


def test_build__counts_no_distinct_values_where_that_is_not_asked_for() -> None:
    columns = [("id", "int"), ("a", "string"), ("b", "int"), ("c", "date")]
    assert query(columns, ["id"]).sql.count("APPROX_COUNT_DISTINCT") == 6
    assert "DISTINCT" not in query(columns, ["id"], distinct=False).sql


def test_build__reads_each_table_once() -> None:
    sql = query([("id", "int"), ("a", "string")], ["id"]).sql
    assert sql.count("`p` AS src") == 1
    assert sql.count("`q` AS src") == 1


def test_build__conditions_apply_to_their_own_side() -> None:
    sql = query([("id", "int")], ["id"], conditions=("src.`id` > 1", "src.`id` > 2")).sql
    assert "`p` AS src\nWHERE src.`id` > 1)" in sql
    assert "`q` AS src\nWHERE src.`id` > 2)" in sql


def test_build__a_composite_key_is_sorted_by_its_hash_and_joined_by_all_of_it() -> None:
    sql = query([("a", "int"), ("b", "date"), ("v", "int")], ["a", "b"]).sql
    assert "XXHASH64(src.`a`, src.`b`) AS h" in sql
    assert "NAMED_STRUCT('p0', src.`a`, 'p1', src.`b`) AS k" in sql
    assert "ON a.h = b.h AND a.k = b.k" in sql
    assert "PARTITION BY h, k ORDER BY h, k" in sql


def test_build__types_that_differ_meet_in_the_wider_one() -> None:
    layout = lay_out_diff_columns(
        [("id", "int"), ("v", "int")], [("id", "bigint"), ("v", "double")], ["id"]
    )
    sql = build_diff_query(layout, prod="`p`", pr="`q`", decimals=2, rows_per_key=1).sql
    assert "CAST(src.`id` AS bigint) AS k" in sql
    assert "CAST(src.`v` AS double) AS v0" in sql
    assert "DECIMAL(38, 2)" in sql
