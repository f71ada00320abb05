"""The judge on pairs of queries: what it finds, how small, and what it leaves alone."""

from __future__ import annotations

import builtins
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import duckdb
import pytest

from ci_bot.worker.duckdb_trials import (
    DuckdbTrialVerdict,
    judge_queries_on_duckdb,
    read_duckdb_columns,
)
from ci_bot.worker.duckdb_trials.closed_session import (
    DuckdbOutOfTimeError,
    UnusableDuckdbDataError,
    open_closed_duckdb_session,
)
from ci_bot.worker.duckdb_trials.generated_rows import MOST_ROWS, DuckdbRowGenerator
from ci_bot.worker.duckdb_trials.plain_parser import parse_duckdb_plainly
from ci_bot.worker.duckdb_trials.query_constants import read_constants
from ci_bot.worker.duckdb_trials.verdict import ORDER_OF_ONE_SIDE, match_duckdb_rows
from ci_bot.worker.rules import find_project_findings
from ci_bot.worker.rules.inputs import JudgedModels
from tests.unit.rules.world import change

ORDERS = {
    "ms": "bigint",
    "id": "int",
    "customer": "int",
    "status": "string",
    "amount": "decimal(10,2)",
}
NESTED = {
    **{"until": "timestamp", "place": "struct<city:string,zip:int>", "tags": "map<string,int>"},
    "items": "array<struct<sku:string,n:int>>",
}
RATES = {"on_day": "date", "currency": "string", "rate": "decimal(12,6)"}
TABLES = {
    "raw.orders": {**ORDERS, "day": "date", "at": "timestamp", "blob": "binary", **NESTED},
    "raw.customers": {"id": "int", "country": "string"},
    "raw.rates": RATES,
    "raw.offers": RATES,
}
FROM = "FROM raw.orders AS o"


def judge(
    before: str, after: str, tables: Mapping[str, Mapping[str, str]] = TABLES, **more: Any
) -> DuckdbTrialVerdict:
    known = {name: read_duckdb_columns(columns) for name, columns in tables.items()}
    return judge_queries_on_duckdb(before, after, known, **{"seed": "plan", "seconds": 20, **more})


DIFFERENT = {
    "a time in milliseconds that a filter bounds": (
        f"SELECT o.id {FROM} WHERE CAST(TIMESTAMP_MILLIS(o.ms) AS DATE) <= DATE '2024-03-01'",
        f"SELECT o.id {FROM} WHERE CAST(TIMESTAMP_MILLIS(o.ms) AS DATE) < DATE '2024-03-01'",
    ),
    "blanks around a text that one filter cuts off": (
        f"SELECT o.id {FROM} WHERE TRIM(o.status) = 'paid'",
        f"SELECT o.id {FROM} WHERE o.status = 'paid'",
    ),
    "one column beside another that nobody can try": (
        f"SELECT SOUNDEX(o.status) AS s, o.amount * 2 AS a {FROM}",
        f"SELECT SOUNDEX(o.status) AS s, o.amount * 3 AS a {FROM}",
    ),
    "a total beside another that nobody can try": (
        f"SELECT MAX(SOUNDEX(o.status)) AS s, MAX(o.id) AS m {FROM}",
        f"SELECT MAX(SOUNDEX(o.status)) AS s, MIN(o.id) AS m {FROM}",
    ),
    "a number in a JSON text": (
        f"SELECT CAST(GET_JSON_OBJECT(o.status, '$.paid.cents') AS INT) AS c {FROM}",
        f"SELECT CAST(GET_JSON_OBJECT(o.status, '$.paid.cents') AS INT) + 1 AS c {FROM}",
    ),
    "a member of a JSON text": (
        f"SELECT o.id {FROM} WHERE GET_JSON_OBJECT(o.status, '$.state') = 'paid'",
        f"SELECT o.id {FROM} WHERE GET_JSON_OBJECT(o.status, '$.state') <> 'open'",
    ),
    "a field of a struct": (
        f"SELECT o.id {FROM} WHERE o.place.city = 'Rome' AND o.place.zip = 5",
        f"SELECT o.id {FROM} WHERE o.place.city = 'Rome'",
    ),
    "a field of an array's structs": (
        f"SELECT o.id, l.item.n {FROM} LATERAL VIEW EXPLODE(o.items) l AS item",
        f"SELECT o.id, l.item.n + 1 AS n {FROM} LATERAL VIEW OUTER EXPLODE(o.items) l AS item",
    ),
    "a key of a map": (
        f"SELECT o.id, o.tags['vip'] AS t {FROM}",
        f"SELECT o.id, o.tags['VIP'] AS t {FROM}",
    ),
    "a member of a JSON text that is read as a struct": (
        f"SELECT FROM_JSON(o.status, 'a STRING, b STRING').a AS v {FROM}",
        f"SELECT FROM_JSON(o.status, 'a STRING, b STRING').b AS v {FROM}",
    ),
    "an interval's part in place of its length": (
        f"SELECT EXTRACT(MINUTE FROM o.at - o.until) AS m {FROM}",
        f"SELECT TIMESTAMPDIFF(MINUTE, o.until, o.at) AS m {FROM}",
    ),
    "how long an interval is": (
        f"SELECT o.id {FROM} WHERE o.until - o.at > INTERVAL '3' HOURS",
        f"SELECT o.id {FROM} WHERE o.until - o.at >= INTERVAL '3' HOURS",
    ),
    "a bar that is an alternation": (
        f"SELECT SPLIT(o.status, '|')[0] AS s {FROM}",
        f"SELECT SPLIT(o.status, '[|]')[0] AS s {FROM}",
    ),
    "another table of rates, for days that a filter bounds": (
        f"SELECT o.id, o.amount * r.rate AS v {FROM} LEFT JOIN raw.rates AS r ON r.on_day = o.day "
        "AND r.currency = o.status WHERE o.day BETWEEN '1971-03-05' AND '1973-07-09'",
        f"SELECT o.id, o.amount * r.rate AS v {FROM} LEFT JOIN raw.offers AS r ON r.on_day = o.day "
        "AND r.currency = o.status WHERE o.day BETWEEN '1971-03-05' AND '1973-07-09'",
    ),
    "a filter's end": (
        f"SELECT o.id {FROM} WHERE o.day < DATE '2024-03-01'",
        f"SELECT o.id {FROM} WHERE o.day <= DATE '2024-03-01'",
    ),
    "a NULL that does not count": (
        f"SELECT COUNT(*) AS n {FROM}",
        f"SELECT COUNT(o.customer) AS n {FROM}",
    ),
    "rows without a partner": (
        f"SELECT o.id, c.country {FROM} LEFT JOIN raw.customers AS c ON c.id = o.customer",
        f"SELECT o.id, c.country {FROM} JOIN raw.customers AS c ON c.id = o.customer",
    ),
    "an equality that is false or NULL": (
        f"SELECT o.id <=> o.customer AS v {FROM}",
        f"SELECT o.id = o.customer OR (o.id IS NULL AND o.customer IS NULL) AS v {FROM}",
    ),
    "rows twice": (
        f"SELECT o.customer {FROM} UNION ALL SELECT c.id FROM raw.customers AS c",
        f"SELECT o.customer {FROM} UNION SELECT c.id FROM raw.customers AS c",
    ),
    "precedence": (
        f"SELECT o.id + o.customer % 2 AS x {FROM}",
        f"SELECT (o.id + o.customer) % 2 AS x {FROM}",
    ),
    "a text among others": (
        f"SELECT o.id {FROM} WHERE o.status IN ('paid', 'sent') AND o.amount > 99",
        f"SELECT o.id {FROM} WHERE o.status = 'paid' AND o.amount > 99",
    ),
    "fewer groups than all": (
        f"SELECT MAX(o.customer) AS c, o.status AS s, SUM(o.amount) AS total {FROM} GROUP BY o.customer, o.status",
        f"SELECT MAX(o.customer) AS c, o.status AS s, SUM(o.amount) AS total {FROM} GROUP BY ALL",
    ),
    "the end of a month": (
        f"SELECT ADD_MONTHS(o.day, 1) AS d {FROM}",
        f"SELECT o.day + INTERVAL '30' DAY AS d {FROM}",
    ),
    "ties": (
        f"SELECT o.id, RANK() OVER (ORDER BY o.amount) AS place {FROM}",
        f"SELECT o.id, DENSE_RANK() OVER (ORDER BY o.amount) AS place {FROM}",
    ),
}


KEPT = {
    "in another place of a query that differs": (
        f"SELECT SOUNDEX(o.status) AS s, o.id AS a {FROM} WHERE o.id > 1",
        f"SELECT SOUNDEX(o.status) AS s, o.id AS a {FROM} WHERE o.id > 2",
    ),
    "by another source of the same name": (
        "SELECT SOUNDEX(q.s) AS s, q.n AS n FROM (SELECT o.status AS s, 1 AS n FROM raw.orders AS o) AS q",
        "SELECT SOUNDEX(q.s) AS s, q.n AS n FROM (SELECT c.country AS s, 1 AS n FROM raw.customers AS c) AS q",
    ),
    "as a key of groups by its name": (
        f"SELECT SOUNDEX(o.status) AS s, MAX(o.id) AS m {FROM} GROUP BY s",
        f"SELECT SOUNDEX(o.status) AS s, MIN(o.id) AS m {FROM} GROUP BY s",
    ),
    "as a key of groups by its place": (
        f"SELECT SOUNDEX(o.status) AS s, MAX(o.id) AS m {FROM} GROUP BY 1",
        f"SELECT SOUNDEX(o.status) AS s, MIN(o.id) AS m {FROM} GROUP BY 1",
    ),
    "of distinct rows": (
        f"SELECT DISTINCT SOUNDEX(o.status) AS s, o.id AS m {FROM}",
        f"SELECT DISTINCT SOUNDEX(o.status) AS s, o.id + 1 AS m {FROM}",
    ),
    "where all results say what is grouped": (
        f"SELECT SOUNDEX(o.status) AS s, MAX(o.id) AS m {FROM} GROUP BY ALL",
        f"SELECT SOUNDEX(o.status) AS s, MIN(o.id) AS m {FROM} GROUP BY ALL",
    ),
    "where it alone makes one row of all": (
        f"SELECT MAX(SOUNDEX(o.status)) AS s, 1 AS m {FROM}",
        f"SELECT MAX(SOUNDEX(o.status)) AS s, 2 AS m {FROM}",
    ),
    "where a function that nobody knows may make one row of all": (
        f"SELECT longest_of(o.status) AS s, 1 AS m {FROM}",
        f"SELECT longest_of(o.status) AS s, 2 AS m {FROM}",
    ),
    "of the first rows": (
        f"SELECT SOUNDEX(o.status) AS s, o.amount AS m {FROM} LIMIT 1",
        f"SELECT SOUNDEX(o.status) AS s, o.amount * 2 AS m {FROM} LIMIT 1",
    ),
    "beside rows that a column makes": (
        f"SELECT SOUNDEX(o.status) AS s, EXPLODE(ARRAY(o.id, 1)) AS m {FROM}",
        f"SELECT SOUNDEX(o.status) AS s, EXPLODE(ARRAY(o.id, 2)) AS m {FROM}",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_equal_column__that_nobody_can_try__is_left_out_nowhere_else(name: str) -> None:
    assert judge(*KEPT[name]).verdict == "not_tried"


@pytest.mark.parametrize("name", DIFFERENT)
def test_judge__finds_what_differs_and_shows_it_small(name: str) -> None:
    found = judge(*DIFFERENT[name])

    assert found.verdict == "differs"
    assert found.example is not None
    assert found.example.rows
    assert sum(len(table.rows) for table in found.example.tables) <= 3


ALIKE = {
    "conditions in another order": (
        f"SELECT o.id {FROM} WHERE o.amount > 5 AND o.status = 'paid'",
        f"SELECT q.id FROM (SELECT o.id, o.amount {FROM} WHERE o.status = 'paid') AS q WHERE q.amount > 5",
    ),
    "a total in another order": (
        f"SELECT o.customer, SUM(o.amount) AS total {FROM} GROUP BY o.customer",
        "WITH t AS (SELECT customer, amount FROM raw.orders) "
        "SELECT t.customer, SUM(t.amount) AS total FROM t GROUP BY t.customer",
    ),
    "groups by all": (
        f"SELECT o.customer, o.status AS s, 1 AS one, SUM(o.amount) AS total {FROM} GROUP BY o.customer, o.status",
        f"SELECT o.customer, o.status AS s, 1 AS one, SUM(o.amount) AS total {FROM} GROUP BY ALL",
    ),
    "groups by all of nothing": (
        f"SELECT SUM(o.amount) + 1 AS total {FROM}",
        f"SELECT SUM(o.amount) + 1 AS total {FROM} GROUP BY ALL",
    ),
    # Spark may give any of the rows that tie, before the change and after it.
    "the first of rows that tie": (
        f"SELECT o.id, ROW_NUMBER() OVER (PARTITION BY o.customer ORDER BY o.day) AS n {FROM}",
        "SELECT q.id, ROW_NUMBER() OVER (PARTITION BY q.customer ORDER BY q.day) AS n "
        f"FROM (SELECT o.id, o.customer, o.day {FROM}) AS q",
    ),
    "a cut without an order": (
        f"SELECT o.id {FROM} LIMIT 2",
        f"SELECT q.id FROM (SELECT o.id, o.status {FROM}) AS q LIMIT 2",
    ),
    "a list without an order": (
        f"SELECT o.customer, COLLECT_LIST(o.id) AS ids {FROM} GROUP BY o.customer",
        "SELECT q.customer, COLLECT_LIST(q.id) AS ids "
        f"FROM (SELECT o.customer, o.id, o.amount {FROM}) AS q GROUP BY q.customer",
    ),
    "the time of the run": (
        f"SELECT o.id, CURRENT_TIMESTAMP() AS t {FROM}",
        f"SELECT o.id, NOW() AS t {FROM}",
    ),
}


RARE = (
    "WITH tiers AS (SELECT f.tier, f.start, LEAD(f.start) OVER (PARTITION BY f.tier "
    "ORDER BY f.start) AS end FROM ref.tiers AS f), months AS (SELECT d.id, SUM(d.net) AS net "
    "FROM raw.days AS d GROUP BY d.id) SELECT m.id FROM months AS m "
    "JOIN raw.shops AS k ON k.id = m.id AND k.valid_to IS NULL "
    "JOIN tiers AS t ON t.tier = k.tier AND m.net >= t.start AND {end} WHERE m.net > 0"
)
RARE_TABLES = {
    "ref.tiers": {"tier": "string", "start": "decimal(10,2)"},
    "raw.days": {"id": "bigint", "day": "date", "net": "decimal(10,2)"},
    "raw.shops": {"id": "bigint", "tier": "string", "valid_to": "date"},
}


@pytest.mark.parametrize("seed", ["0", "1", "4", "7"])
def test_judge__makes_rows_that_pass_through_joins_and_conditions(seed: str) -> None:
    open_end = RARE.format(end="m.net < COALESCE(t.end, 99999)")

    found = judge(open_end, RARE.format(end="m.net < t.end"), RARE_TABLES, seed=seed)

    assert found.verdict == "differs"


@pytest.mark.parametrize("seed", ["0", "1", "4", "7"])
def test_judge__makes_large_groups(seed: str) -> None:
    groups = f"SELECT o.status, o.day, {{0}}(o.id) AS n {FROM} GROUP BY o.status, o.day HAVING COUNT(*) > 4"

    assert judge(groups.format("MAX"), groups.format("MIN"), seed=seed).verdict == "differs"


def test_judge__calls_nothing_alike_whose_order_decides_on_one_side_only() -> None:
    """In a small session the first row is another one than on a cluster."""
    by_time = f"SELECT o.customer, MIN_BY(o.amount, o.at) AS v {FROM} GROUP BY o.customer"
    by_time = by_time.replace(" GROUP", " WHERE o.at IS NOT NULL GROUP")
    first = by_time.replace("MIN_BY(o.amount, o.at)", "FIRST(o.amount)")

    for pair in ((by_time, first), (first, by_time)):
        found = judge(*pair)
        assert (found.verdict, found.reason) == ("not_tried", ORDER_OF_ONE_SIDE)
    assert judge(first, f"{first} HAVING COUNT(*) > 0").verdict == "alike"


def test_judge__runs_nested_arithmetic_of_decimals_in_its_time() -> None:
    tax = f"SELECT o.id, BROUND(o.amount * o.rate * 0.0005, 2) / o.rate AS tax {FROM}"
    tables = {"raw.orders": {**ORDERS, "rate": "decimal(18,6)"}}

    found = judge(tax, f"{tax} WHERE o.id > 0 OR o.id <= 0 OR o.id IS NULL", tables, seconds=3)

    assert (found.verdict, found.data_sets > 40) == ("alike", True)


@pytest.mark.parametrize("seed", ["0", "1", "4", "7"])
def test_judge__tries_rows_whose_order_is_clear(seed: str) -> None:
    """Among rows of one place the value before is chance, and no example."""
    lag = f"SELECT o.id, LAG(o.customer){{nulls}} OVER (ORDER BY o.id) AS v {FROM}"

    found = judge(lag.format(nulls=""), lag.format(nulls=" IGNORE NULLS"), seed=seed)

    assert found.verdict == "differs"


@pytest.mark.parametrize("seed", ["1", "2", "3", "5"])
def test_judge__tries_many_rows_and_combinations_of_values(seed: str) -> None:
    """Eight rows hold no group of nine, and seldom a small value beside one that is missing."""
    group = f"SELECT SUM(o.id) AS s {FROM} GROUP BY o.status"
    found = judge(group, f"{group} HAVING COUNT(*) < 9", seed=seed)
    assert found.verdict == "differs"
    assert found.example is not None
    assert len(found.example.tables[0].rows) == 9

    combined = judge(
        f"SELECT o.id {FROM} WHERE o.id NOT BETWEEN o.customer AND 2",
        f"SELECT o.id {FROM} WHERE NOT (o.id >= COALESCE(o.customer, 0) AND o.id <= 2)",
        seed=seed,
    )
    assert combined.verdict == "differs"
    assert combined.example is not None
    assert len(combined.example.tables[0].rows) == 1


@pytest.mark.parametrize("name", ALIKE)
def test_judge__tells_nothing_apart_that_is_the_same_or_chance(name: str) -> None:
    found = judge(*ALIKE[name])

    assert found.verdict == "alike"
    assert found.data_sets >= 10
    assert found.example is None


UNTRIED = {
    "uuid()": f"SELECT UUID() AS x {FROM}",
    "rand()": f"SELECT RAND() AS x {FROM}",
    "GROUP BY ALL with a window": f"SELECT o.id AS x, COUNT(*) OVER () AS n {FROM} GROUP BY ALL",
    "my_udf()": f"SELECT MY_UDF(o.id) AS x {FROM}",
    "binary": f"SELECT o.blob AS x {FROM}",
    "whose columns are not known": "SELECT n.x FROM raw.unknown AS n",
    "a cast from double to string": f"SELECT CAST(CAST(o.id AS DOUBLE) AS STRING) AS x {FROM}",
    "date_format() with 'GGGG'": f"SELECT DATE_FORMAT(o.day, 'GGGG') AS x {FROM}",
    "TABLESAMPLE": f"SELECT o.id AS x {FROM} TABLESAMPLE (10 PERCENT)",
    "rows that no generated data let through": f"SELECT o.id AS x {FROM} WHERE 1 = 2",
    "no column": f"SELECT o.id AS y {FROM}",
    "characters": f"SELECT o.id AS x {FROM} WHERE o.status <> '{'x' * 10_000_000}'",
    "nested too deeply": f"SELECT {'(' * 3_000}o.id{')' * 3_000} AS x {FROM}",
}


@pytest.mark.parametrize("why", UNTRIED)
def test_judge__names_what_it_does_not_try(why: str) -> None:
    plain = f"SELECT o.id AS x {FROM}" if "no generated" not in why else UNTRIED[why]

    found = judge(plain, UNTRIED[why])

    assert found.verdict == "not_tried"
    assert found.reason
    if why not in {"TABLESAMPLE", "no column", "nested too deeply"}:
        assert why in found.reason


def test_judge__shows_the_same_example_for_the_same_seed() -> None:
    pair = DIFFERENT["rows without a partner"]

    assert judge(*pair) == judge(*pair)


def test_judge__ends_where_a_query_does_not() -> None:
    huge = " CROSS JOIN ".join(f"raw.orders AS o{place}" for place in range(40))
    before = f"SELECT COUNT(*) AS n FROM {huge} WHERE o1.id > 0 OR o2.id > 0"
    started = time.monotonic()

    found = judge(before, before.replace("> 0", ">= 0"), seconds=1)

    assert time.monotonic() - started < 10
    assert found.verdict == "not_tried"


def test_judge__holds_no_product_of_a_milliard_rows() -> None:
    """Each data set is left out whose result is as large; the others are compared."""
    huge = ", ".join(f"raw.orders AS o{place}" for place in range(10))
    before = f"SELECT o1.id FROM {huge}"
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    found = judge(before, before.replace("o1.id", "o1.id + 0 AS id"), seconds=1)

    assert found.verdict in ("alike", "not_tried")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 600_000


def test_judge__does_not_read_ten_megabytes() -> None:
    before = "SELECT id FROM raw.orders WHERE id IN (0" + ", 12345678" * 1_000_000 + ")"
    started = time.monotonic()

    found = judge(before, f"{before} AND id > 1")

    assert (found.verdict, found.reason) == ("not_tried", "a text of 10,000,041 characters")
    assert time.monotonic() - started < 5


def test_session__reaches_neither_files_nor_the_network_nor_this_process(tmp_path: Any) -> None:
    secret = [(1,)]  # a name that a table could have
    (tmp_path / "x.csv").write_text("a\n1\n")
    with open_closed_duckdb_session(5) as session:
        for text in (
            f"SELECT * FROM '{tmp_path}/x.csv'",
            f"SELECT * FROM read_csv('{tmp_path}/x.csv')",
            f"COPY (SELECT 1) TO '{tmp_path}/y.csv'",
            f"ATTACH '{tmp_path}/z.db'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '10GB'",
            "SELECT * FROM secret",
        ):
            with pytest.raises(UnusableDuckdbDataError):
                session.run_query(text)
    assert secret
    assert [file.name for file in tmp_path.iterdir()] == ["x.csv"]


def test_session__is_interrupted_in_time() -> None:
    with open_closed_duckdb_session(0.3) as session, pytest.raises(DuckdbOutOfTimeError):
        session.run_query("SELECT max(md5(CAST(range AS VARCHAR))) FROM range(100000000000)")


@pytest.mark.parametrize("version", ["0.9.2", "2.0.0"])
def test_judge__does_not_try_with_another_duckdb(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb, "__version__", version)

    found = judge(*DIFFERENT["precedence"])

    assert (found.verdict, version in found.reason) == ("not_tried", True)


def test_judge__does_not_try_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)

    assert judge(*DIFFERENT["precedence"]).reason == "DuckDB, which is not installed"


def test_rows__are_few_and_take_the_values_that_queries_compare_with() -> None:
    tree = parse_duckdb_plainly(
        f"SELECT o.id {FROM} WHERE o.status = 'paid' AND o.id > 40 AND o.day < '2024-03-01'"
    )
    columns = {"raw.orders": read_duckdb_columns({"id": "int", "status": "string", "day": "date"})}
    rows = DuckdbRowGenerator(columns, read_constants([tree]), "seed")
    made = [rows.make_data()["raw.orders"] for _ in range(100)]
    cells: Sequence[set[Any]] = [set(column) for column in zip(*chain(*made), strict=True)]

    assert {len(one) for one in made} >= {0, 1, 2, 3}
    assert max(map(len, made)) <= MOST_ROWS
    assert {39, 40, 41, None} <= cells[0]
    assert {"paid", "", None} <= cells[1]
    assert {"2024-02-29", "2024-03-01", "2024-03-02"} <= set(map(str, cells[2]))


# One seed may draw none of the few rows that tell; without these values none of them does.
SEEDS = ("1", "2", "3", "4", "5", "6")
RARE_VALUES = {
    "a whole number that a double does not hold": ("o.ms", "CAST(CAST(o.ms AS DOUBLE) AS BIGINT)"),
    "an array that has an item twice": ("SIZE(o.tags)", "SIZE(ARRAY_DISTINCT(o.tags))"),
    "an array without a value of its own kind": (
        "NOT ARRAY_CONTAINS(o.tags, 'u')",
        "SIZE(FILTER(o.tags, t -> t = 'u')) = 0",
    ),
    "a struct that holds only NULL": (
        "o.place IS NULL",
        "o.place.city IS NULL AND o.place.zip IS NULL",
    ),
    "a text with something before the sought one": ("o.s LIKE '%ai%'", "o.s LIKE 'ai%'"),
    "a time in summer, in another zone": (
        "FROM_UTC_TIMESTAMP(o.at, 'Europe/Berlin')",
        "o.at + INTERVAL '1' HOUR",
    ),
    "a text that is a blank": ("TRIM(o.s) = ''", "o.s = ''"),
}


@pytest.mark.parametrize("name", RARE_VALUES)
def test_judge__tries_values_that_are_rare(name: str) -> None:
    columns = {"ms": "bigint", "tags": "array<string>", "s": "string", "at": "timestamp"}
    tables = {"raw.orders": {**columns, "place": "struct<city:string,zip:int>"}}
    before, after = (f"SELECT {expression} AS v {FROM}" for expression in RARE_VALUES[name])

    verdicts = [judge(before, after, tables, seed=seed).verdict for seed in SEEDS]

    assert verdicts.count("differs") > len(SEEDS) // 2, verdicts


def test_constants__name_the_columns_that_may_hold_values_near_the_end_of_their_type() -> None:
    def far(text: str) -> frozenset[str]:
        return read_constants([parse_duckdb_plainly(text)]).far_columns

    assert far(f"SELECT o.id + 1 AS n, SUM(o.ms) OVER () AS m {FROM}") == {"id", "ms"}
    assert far(f"SELECT REPEAT(o.status, o.id) AS n, o.ms {FROM}") == {"ms"}
    assert far(f"SELECT SPACE(x.k) AS n FROM (SELECT o.id * 2 AS k, o.ms {FROM}) AS x") == {"ms"}
    assert far(f"SELECT SPACE((SELECT MAX(o.id) {FROM})) AS n, o.ms {FROM}") == {"ms"}


def test_match_rows__puts_rows_side_by_side_that_are_most_alike() -> None:
    before = [("a", 1), ("b", 2), ("c", 3)]
    after = [("b", 2), ("a", 9), ("d", 8)]

    assert match_duckdb_rows(before, after) == (
        (("b", 2), ("b", 2)),
        (("a", 1), ("a", 9)),
        (("c", 3), None),
        (None, ("d", 8)),
    )


def test_judged_models__are_run_once_and_within_a_budget_of_numbers_and_time() -> None:
    asked: list[tuple[float, int]] = []
    now = [0.0]

    def run(seconds: float, data_sets: int) -> DuckdbTrialVerdict:
        asked.append((seconds, data_sets))
        now[0] += 0.5
        return DuckdbTrialVerdict("alike", 1)

    judged = JudgedModels(seconds=10, seconds_for_a_model=2, clock=lambda: now[0])
    verdicts = [judged.judge_once(f"m{number}", run) for number in (*range(40), 0)]

    assert len(asked) == 20  # the time is over
    assert asked[0] == (2, 60)
    assert asked[-1] == (0.5, 15)
    assert verdicts[-1] == verdicts[0]
    assert {one.reason for one in verdicts[20:40]} == {"more time than a review has for it"}


def test_models__whose_own_files_are_edited_are_run_before_those_that_a_macro_changes() -> None:
    text = "MODEL (name mart.{0}, kind FULL);\nSELECT o.order_id FROM raw.orders AS o"
    before = {f"models/{name}.sql": text.format(name) for name in "az"}
    after = {path: f"{text} WHERE o.amount > 1" for path, text in before.items()}
    inputs = replace(change(before, after), changed_files=("models/z.sql",))
    find_project_findings(inputs)
    assert [name.split(".")[-1] for name in inputs.judged_models.found] == ['"z"', '"a"']
