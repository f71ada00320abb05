"""Unit tests of a project that check less than before, and such that check as much or more.

The cases follow what SQLMesh's documentation says of a test: which rows, columns and CTEs are
compared, what `partial` leaves out, that a missing column is NULL, that order does not matter, and
what `vars` and `execution_time` do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.rules.shop import FILES
from tests.unit.rules.world import change, rules, seen

PATH = "tests/test_revenue.yaml"
BASE = """\
test_revenue:
  model: mart.revenue
  inputs:
    stg.orders:
      rows:
        - {customer_id: 1, amount: 2, status: open}
        - {customer_id: 2, amount: 3, status: cancelled}
  outputs:
    query:
      rows:
        - {country: DE, amount: 2}
        - {country: FR, amount: 3}
  vars:
    start: 2024-01-01
    execution_time: '2024-01-02'
    floor: 10
"""
CTES = """\
test_revenue:
  model: mart.revenue
  inputs: {stg.orders: {rows: [{customer_id: 1, amount: 2}]}}
  outputs:
    ctes:
      paid: {rows: [{amount: 2}]}
    query: {rows: [{country: DE, amount: 2}]}
"""
PARTIAL = """\
test_revenue:
  model: mart.revenue
  inputs: {stg.orders: {rows: [{customer_id: 1, amount: 2}]}}
  outputs:
    partial: true
    query: {rows: [{country: DE, amount: 2}, {country: FR}]}
"""
CSV = """\
test_revenue:
  model: mart.revenue
  inputs: {stg.orders: {rows: [{customer_id: 1, amount: 2}]}}
  outputs:
    query:
      format: csv
      rows: |
        country,amount
        DE,2
        FR,3
"""
QUERY = """\
test_revenue:
  model: mart.revenue
  inputs: {stg.orders: {rows: [{customer_id: 1, amount: 2}]}}
  outputs: {query: {query: "SELECT 'DE' AS country, 2 AS amount"}}
"""


def found(before: str, after: str | None, path: str = PATH) -> dict[str, str]:
    """The rules that speak of unit tests, with their severities."""
    inputs = change(
        FILES,
        FILES,
        other_before={PATH: before},
        other_after={path: after} if after is not None else {},
    )
    return {rule: weight for rule, weight in rules(inputs).items() if rule.startswith("unit-test")}


def told(before: str, after: str) -> str:
    inputs = change(FILES, FILES, other_before={PATH: before}, other_after={PATH: after})
    (one,) = seen(inputs, "unit-test-weakened")
    return one.evidence


AS_STRICT = {
    "another column is expected": (BASE, "country: DE, amount: 2", "country: DE, amount: 2, n: 1"),
    "another column is expected in every row": (
        BASE.replace("amount: 2}\n        - {country: FR", "amount: 2}\n        - {country: FR"),
        "{country: FR, amount: 3}",
        "{country: FR, amount: 3, n: 1}",
    ),
    "another row is expected": (
        BASE,
        "        - {country: FR, amount: 3}\n",
        "        - {country: FR, amount: 3}\n        - {country: US, amount: 9}\n",
    ),
    "another test": (
        BASE,
        "test_revenue:",
        BASE.replace("test_revenue", "test_b") + "test_revenue:",
    ),
    "another input row": (
        BASE,
        "        - {customer_id: 2, amount: 3, status: cancelled}\n",
        "        - {customer_id: 2, amount: 3, status: cancelled}\n        - {customer_id: 3}\n",
    ),
    "another input column": (BASE, "amount: 2, status: open", "amount: 2, status: open, tax: 1"),
    "another input model": (
        BASE,
        "  outputs:\n",
        "    stg.customers: {rows: [{customer_id: 1}]}\n  outputs:\n",
    ),
    "a CTE is checked too": (
        BASE,
        "    query:\n",
        "    ctes: {paid: {rows: [{amount: 2}]}}\n    query:\n",
    ),
    "partial is gone": (PARTIAL, "    partial: true\n", ""),
    "partial says false": (BASE, "  outputs:\n", "  outputs:\n    partial: false\n"),
    "a partial test compares another column": (
        PARTIAL,
        "{country: FR}",
        "{country: FR, amount: 3}",
    ),
    "rows in another order": (
        BASE,
        "        - {country: DE, amount: 2}\n        - {country: FR, amount: 3}\n",
        "        - {country: FR, amount: 3}\n        - {country: DE, amount: 2}\n",
    ),
    "columns in another order": (BASE, "country: DE, amount: 2", "amount: 2, country: DE"),
    "columns in other letters": (BASE, "country: DE", "COUNTRY: DE"),
    "a NULL that was left out is written": (
        BASE,
        "country: DE, amount: 2",
        "country: DE, amount: 2, n: null",
    ),
    "a NULL that was written is left out": (
        BASE.replace("country: DE, amount: 2", "country: DE, amount: 2, n: null"),
        ", n: null",
        "",
    ),
    "the same number as a decimal": (BASE, "country: DE, amount: 2", "country: DE, amount: 2.0"),
    "the same date in quotes": (BASE, "start: 2024-01-01", "start: '2024-01-01'"),
    "rows without the key": (
        BASE,
        "    query:\n      rows:\n        - {country: DE, amount: 2}\n        - {country: FR, amount: 3}\n",
        "    query:\n      - {country: DE, amount: 2}\n      - {country: FR, amount: 3}\n",
    ),
    "the same rows as CSV": (CSV, CSV, BASE),
    "a description": (
        BASE,
        "  model: mart.revenue\n",
        "  model: mart.revenue\n  description: why\n",
    ),
    "another name": (BASE, "test_revenue:", "test_revenue_by_country:"),
    "another name, and stricter": (
        BASE,
        BASE,
        BASE.replace("test_revenue:", "test_b:").replace("country: DE, ", "country: DE, n: 1, "),
    ),
    "time is frozen": (
        BASE.replace("    execution_time: '2024-01-02'\n", ""),
        "    floor: 10\n",
        "    floor: 10\n    execution_time: '2024-01-02'\n",
    ),
    "a variable that the model did not read is set": (
        BASE,
        "    floor: 10\n",
        "    floor: 10\n    ceiling: 99\n",
    ),
    "the types of an input": (
        BASE,
        "    stg.orders:\n",
        "    stg.orders:\n      columns: {amount: DECIMAL(10, 2)}\n",
    ),
}
WEAKER = {
    "a row is expected no more": (BASE, "        - {country: FR, amount: 3}\n", ""),
    "no row is expected": (
        BASE,
        "      rows:\n        - {country: DE, amount: 2}\n        - {country: FR, amount: 3}\n",
        "      rows: []\n",
    ),
    "one of two equal rows": (
        BASE.replace("country: FR, amount: 3", "country: DE, amount: 2"),
        "        - {country: DE, amount: 2}\n        - {country: DE, amount: 2}\n",
        "        - {country: DE, amount: 2}\n",
    ),
    "a column is expected no more": (
        BASE,
        "country: DE, amount: 2}\n        - {country: FR, amount: 3}",
        "country: DE}\n        - {country: FR}",
    ),
    "a column of one row is NULL now": (BASE, "{country: FR, amount: 3}", "{country: FR}"),
    "a value is another": (BASE, "country: DE, amount: 2", "country: DE, amount: 20"),
    "a value is NULL": (BASE, "country: DE, amount: 2", "country: DE, amount: null"),
    "a NULL is a value": (
        BASE.replace("country: DE, amount: 2", "country: DE, amount: null"),
        "country: DE, amount: null",
        "country: DE, amount: 2",
    ),
    "a value is another, and a column more": (
        BASE,
        "country: DE, amount: 2",
        "country: DE, amount: 20, n: 1",
    ),
    "partial": (BASE, "  outputs:\n", "  outputs:\n    partial: true\n"),
    "partial of one query": (BASE, "    query:\n", "    query:\n      partial: true\n"),
    "a partial test compares a column less": (PARTIAL, "country: DE, amount: 2", "country: DE"),
    "a CTE is checked no more": (CTES, "    ctes:\n      paid: {rows: [{amount: 2}]}\n", ""),
    "a CTE has another value": (CTES, "paid: {rows: [{amount: 2}]}", "paid: {rows: [{amount: 3}]}"),
    "the query is checked no more": (CTES, "    query: {rows: [{country: DE, amount: 2}]}\n", ""),
    "another expected query": (QUERY, "2 AS amount", "3 AS amount"),
    "CSV with another value": (CSV, "FR,3", "FR,4"),
    "CSV with a row less": (CSV, "        FR,3\n", ""),
    "an input row is gone": (
        BASE,
        "        - {customer_id: 2, amount: 3, status: cancelled}\n",
        "",
    ),
    "an input row is another": (BASE, "status: cancelled", "status: open"),
    "time is frozen no more": (BASE, "    execution_time: '2024-01-02'\n", ""),
    "another time": (BASE, "execution_time: '2024-01-02'", "execution_time: '2025-01-02'"),
    "another window": (BASE, "start: 2024-01-01", "start: 2020-01-01"),
    "a variable is another": (BASE, "floor: 10", "floor: 0"),
    "a variable is set no more": (BASE, "    floor: 10\n", ""),
}


@pytest.mark.parametrize("name", AS_STRICT)
def test_unit_test__as_strict_or_stricter(name: str) -> None:
    text, before, after = AS_STRICT[name]
    assert before in text

    assert found(text, text.replace(before, after)) == {}


@pytest.mark.parametrize("name", WEAKER)
def test_unit_test__weaker(name: str) -> None:
    text, before, after = WEAKER[name]
    assert before in text

    assert found(text, text.replace(before, after)) == {"unit-test-weakened": "medium"}


@pytest.mark.parametrize(
    ("after", "path"),
    [
        (None, PATH),
        ("other: {model: stg.orders}\n", PATH),
        ("".join(f"# {line}\n" for line in BASE.splitlines()), PATH),
        (BASE, "tests/revenue.yaml"),
        (BASE, "tests/test_revenue.yaml.bak"),
        (BASE, "other/test_revenue.yaml"),
        (BASE.replace("model: mart.revenue", "model: stg.orders"), PATH),
        (
            BASE.replace("test_revenue:", "test_b:").replace("amount: 3}\n  v", "amount: 9}\n  v"),
            PATH,
        ),
    ],
)
def test_unit_test__removed(after: str | None, path: str) -> None:
    assert found(BASE, after, path) == {"unit-test-removed": "high"}


def test_unit_test__a_file_that_is_no_plain_yaml_any_more_is_told() -> None:
    assert found(BASE, "{% if true %}\n" + BASE + "{% endif %}\n") == {
        "unit-test-weakened": "medium"
    }


def test_unit_test__the_same_name_in_two_files_is_two_tests() -> None:
    other = BASE.replace("mart.revenue", "stg.orders")
    inputs = change(
        FILES,
        FILES,
        other_before={"tests/test_a.yaml": BASE, "tests/test_b.yaml": other},
        other_after={"tests/test_a.yaml": BASE + "# words\n", "tests/test_b.yaml": other + "#\n"},
    )

    assert rules(inputs) == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("country: DE, amount: 2", "country: DE, amount: 20", "`amount` 20 instead of 2"),
        ("        - {country: FR, amount: 3}\n", "", "1 row less"),
        (", amount: 3}\n  vars", "}\n  vars", "`amount` NULL instead of 3"),
        ("    execution_time: '2024-01-02'\n", "", "`execution_time` is not set"),
        ("floor: 10", "floor: 0", "`floor` is 0 instead of 10"),
        ("  outputs:\n", "  outputs:\n    partial: true\n", "some columns only (partial)"),
        ("status: cancelled", "status: open", "it no longer feeds a row of `stg.orders`"),
    ],
)
def test_unit_test__says_what_is_weaker(before: str, after: str, expected: str) -> None:
    assert expected in told(BASE, BASE.replace(before, after))


REVENUE = "models/revenue.sql"
WITH_ORDERS = BASE.replace("amount: 2}\n", "amount: 2, orders: 1}\n")


def with_model(before: str, after: str, *edits: tuple[str, str]) -> dict[str, str]:
    """As `found`, with the tested model edited too."""
    model = FILES[REVENUE]
    for old, new in edits:
        assert old in model
        model = model.replace(old, new)
    inputs = change(
        FILES,
        {**FILES, REVENUE: model},
        other_before={PATH: before},
        other_after={PATH: after},
    )
    return {rule: weight for rule, weight in rules(inputs).items() if rule.startswith("unit-test")}


def test_unit_test__a_column_need_not_be_expected_of_a_model_that_lost_it() -> None:
    less = WITH_ORDERS.replace(", orders: 1", "")
    column = "          SUM(p.orders) AS orders,\n"

    assert with_model(WITH_ORDERS, less) == {"unit-test-weakened": "medium"}
    assert with_model(WITH_ORDERS, less, (column, "")) == {}


def test_unit_test__a_column_may_be_renamed_with_the_models() -> None:
    renamed = WITH_ORDERS.replace("orders: 1}", "order_count: 1}")

    assert (
        with_model(
            WITH_ORDERS,
            renamed,
            ("AS orders,\n          SUM(p.amount) /", "AS order_count,\n          SUM(p.amount) /"),
        )
        == {}
    )


def test_unit_test__a_cte_need_not_be_expected_of_a_model_that_lost_it() -> None:
    less = CTES.replace("    ctes:\n      paid: {rows: [{amount: 2}]}\n", "")

    assert (
        with_model(
            CTES, less, ("WITH paid AS", "WITH settled AS"), ("JOIN paid AS", "JOIN settled AS")
        )
        == {}
    )


def test_unit_test__a_variable_that_the_model_read_before_makes_it_run_another_way() -> None:
    read = FILES[REVENUE].replace("'cancelled'", "@VAR('excluded', 'cancelled')")
    model = {**FILES, REVENUE: read}
    after = BASE.replace("    floor: 10\n", "    floor: 10\n    excluded: none\n")
    inputs = change(model, model, other_before={PATH: BASE}, other_after={PATH: after})

    (one,) = seen(inputs, "unit-test-weakened")

    assert "the variable `excluded` is set to none now" in one.evidence


def test_unit_test__a_file_with_the_expected_rows_loses_one(tmp_path: Path) -> None:
    text = CSV[: CSV.index("      rows: |")] + "      path: tests/data/revenue.csv\n"
    (tmp_path / "tests" / "data").mkdir(parents=True)
    (tmp_path / PATH).write_text(text)
    data = "tests/data/revenue.csv"
    files = {data: "country,amount\nDE,2\n", PATH: text}
    inputs = replace(
        change(
            FILES, FILES, other_before={data: "country,amount\nDE,2\nFR,3\n"}, other_after=files
        ),
        repository=tmp_path,
        changed_files=(data,),
    )

    (one,) = seen(inputs, "unit-test-weakened")

    assert "1 row less" in one.evidence


MORE_ROWS = BASE.replace(
    "        - {customer_id: 2, amount: 3, status: cancelled}\n",
    "        - {customer_id: 2, amount: 3, status: cancelled}\n        - {customer_id: 1, amount: 5}\n",
).replace("country: DE, amount: 2", "country: DE, amount: 7")


def test_unit_test__other_values_of_more_rows_are_no_weakness_where_the_model_is_the_same() -> None:
    assert found(BASE, MORE_ROWS) == {}
    # The rows that were there have to be there still, and nothing else may be expected less.
    assert found(BASE, MORE_ROWS.replace("status: cancelled", "status: open")) != {}
    assert found(BASE, MORE_ROWS.replace("        - {country: FR, amount: 3}\n", "")) != {}
    assert found(BASE, MORE_ROWS.replace("floor: 10", "floor: 0")) != {}


def test_unit_test__other_values_of_more_rows_are_told_where_the_model_changed() -> None:
    model = FILES[REVENUE]
    changed = model.replace("SUM(p.orders)", "MAX(p.orders)")
    assert changed != model
    inputs = change(
        FILES,
        {**FILES, REVENUE: changed},
        other_before={PATH: BASE},
        other_after={PATH: MORE_ROWS},
    )
    (one,) = seen(inputs, "unit-test-weakened")

    assert one.evidence == (
        "The unit test `test_revenue` no longer checks what it did: it expects other values: "
        "`amount` 7 instead of 2, with 1 input row more."
    )
