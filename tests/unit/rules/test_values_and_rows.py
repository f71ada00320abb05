"""Slips in new models over values and rows: constants that a column never is, gaps that count as
values, rows that are there twice, keys of one side of a join.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import list_severities_of_new_model

STAYS = {
    "models/units.sql": (
        "MODEL (name stg.units, kind FULL, grain unit_id); "
        "SELECT u.unit_id, UPPER(u.component) AS component, LOWER(TRIM(u.place)) AS place, u.state, "
        "CASE WHEN u.rhesus THEN 'pos' ELSE 'neg' END AS rhesus, u.expires_on, u.made_at, u.price, "
        "u.score FROM erp.units AS u"
    ),
    "models/results.sql": (
        "MODEL (name stg.results, kind FULL, grain result_id, audits ("
        "ACCEPTED_VALUES(column := outcome, is_in := ('NEG', 'POS')), "
        "ACCEPTED_VALUES(column := lab, is_in := ('A', 'B'), blocking := false))); "
        "SELECT r.result_id, r.unit_id, r.outcome, r.lab FROM lis.results AS r"
    ),
    "models/usable.sql": (
        "MODEL (name core.usable, kind FULL, grain unit_id); "
        "SELECT u.unit_id, u.component, u.state FROM stg.units AS u "
        "JOIN (SELECT r.unit_id FROM stg.results AS r GROUP BY r.unit_id) AS t "
        "ON t.unit_id = u.unit_id WHERE u.state = 'STORED'"
    ),
    "models/issues.sql": (
        "MODEL (name stg.issues, kind FULL, grain issue_id); "
        "SELECT i.issue_id, i.order_id, i.unit_id, COALESCE(i.order_id, -1) AS order_key, i.issued_at "
        "FROM erp.issues AS i"
    ),
    "models/orders.sql": (
        "MODEL (name stg.orders, kind FULL, grain order_id); "
        "SELECT o.order_id, o.units, o.ordered_at, o.closed_at FROM erp.orders AS o"
    ),
}
TABLES = {
    "erp.units": {
        "unit_id": "BIGINT", "component": "STRING", "place": "STRING", "state": "STRING",
        "rhesus": "BOOLEAN", "expires_on": "DATE", "made_at": "TIMESTAMP", "price": "DECIMAL(9,2)",
        "score": "INT",
    },
    "lis.results": {
        "result_id": "BIGINT", "unit_id": "BIGINT", "outcome": "STRING", "lab": "STRING",
    },
    "erp.issues": {
        "issue_id": "BIGINT", "order_id": "BIGINT", "unit_id": "BIGINT", "issued_at": "TIMESTAMP",
    },
    "erp.orders": {
        "order_id": "BIGINT", "units": "INT", "ordered_at": "TIMESTAMP", "closed_at": "TIMESTAMP",
    },
}  # fmt: skip
IMPROBABLE = "improbable-expression"
list_severities = partial(list_severities_of_new_model, stays=STAYS, external=TABLES)

UNITS = "SELECT u.unit_id FROM stg.units AS u WHERE {0}"


@pytest.mark.parametrize(
    "query",
    [
        UNITS.format("u.component = 'plasma'"),
        UNITS.format("u.component IN ('PLASMA', 'Platelets')"),
        UNITS.format("u.component <> 'plasma'"),
        UNITS.format("u.place = 'Freezer 1'"),
        UNITS.format("u.rhesus = '+'"),
        UNITS.format("SUBSTRING(u.component, 1, 3) = 'Pla'"),
        UNITS.format("UPPER(u.state) = 'Stored'"),
        "SELECT u.unit_id, CASE u.component WHEN 'plasma' THEN 1 ELSE 2 END AS n FROM stg.units AS u",
        "SELECT u.unit_id, COUNT_IF(u.component = 'Plasma') AS n FROM stg.units AS u GROUP BY 1",
        "SELECT r.result_id FROM stg.results AS r WHERE r.outcome = 'NEGATIVE'",
        "SELECT r.result_id FROM stg.results AS r WHERE NOT r.outcome IN ('neg')",
        "WITH a AS (SELECT u.unit_id, u.component AS c FROM stg.units AS u) "
        "SELECT a.unit_id FROM a WHERE a.c = 'plasma'",
        UNITS.format("MONTH(u.made_at) = 0"),
        UNITS.format("HOUR(u.made_at) IN (23, 24)"),
        UNITS.format("DAYOFWEEK(u.made_at) = 0"),
        UNITS.format("WEEKDAY(u.made_at) = 7"),
        "SELECT u.unit_id, DAYOFWEEK(u.made_at) IN (6, 7) AS is_weekend FROM stg.units AS u",
    ],
)
def test_comparison__with_a_value_that_never_is__is_high(query: str) -> None:
    assert list_severities(IMPROBABLE, query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        UNITS.format("u.component = 'PLASMA'"),
        UNITS.format("u.place IN ('freezer 1', 'room-2')"),
        UNITS.format("u.state = 'stored'"),
        UNITS.format("u.rhesus = 'neg'"),
        UNITS.format("LOWER(u.component) = 'plasma'"),
        UNITS.format("u.component = '2'"),
        UNITS.format("CONCAT(u.component, '-x') = 'PLASMA-x'"),
        UNITS.format("COALESCE(u.component, 'none') <> 'none'"),
        "SELECT r.result_id FROM stg.results AS r WHERE r.outcome = 'NEG'",
        "SELECT r.result_id FROM stg.results AS r WHERE r.lab = 'C'",
        UNITS.format("DAYOFWEEK(u.made_at) IN (1, 7)"),
        UNITS.format("MONTH(u.made_at) = 12"),
        "SELECT u.unit_id, DAYOFWEEK(u.made_at) IN (1, 7) AS is_weekend FROM stg.units AS u",
        "SELECT u.unit_id, WEEKDAY(u.made_at) IN (5, 6) AS is_weekend FROM stg.units AS u",
        "WITH a AS (SELECT u.component AS c FROM stg.units AS u UNION ALL "
        "SELECT u.state AS c FROM stg.units AS u) SELECT a.c FROM a WHERE a.c = 'stored'",
    ],
)
def test_comparison__with_a_value_that_may_be__is_quiet(query: str) -> None:
    assert list_severities(IMPROBABLE, query) == []


DAYS = "SELECT o.order_id, {0} AS days FROM stg.orders AS o"
TOTAL = "SELECT u.component, {0} AS total FROM stg.units AS u GROUP BY u.component"
UNKNOWN = "COALESCE(o.closed_at, TIMESTAMP '1900-01-01 00:00:00')"


@pytest.mark.parametrize(
    "query",
    [
        DAYS.format("DATEDIFF(CURRENT_DATE, COALESCE(o.closed_at, DATE '1900-01-01'))"),
        DAYS.format("DATEDIFF(COALESCE(o.closed_at, '9999-12-31'), o.ordered_at)"),
        DAYS.format("AVG(DATEDIFF(o.ordered_at, NVL(o.closed_at, '1900-01-01')))") + " GROUP BY 1",
        DAYS.format(f"UNIX_TIMESTAMP({UNKNOWN}) - UNIX_TIMESTAMP(o.ordered_at)"),
        DAYS.format(f"TIMESTAMPDIFF(HOUR, o.ordered_at, {UNKNOWN})"),
        DAYS.format("MONTHS_BETWEEN(COALESCE(o.closed_at, '9999-12-31'), o.ordered_at)"),
        f"WITH a AS (SELECT o.order_id, o.ordered_at, {UNKNOWN} AS t FROM stg.orders AS o) "
        "SELECT a.order_id, DATEDIFF(a.t, a.ordered_at) AS days FROM a",
        TOTAL.format("AVG(COALESCE(u.score, 0))"),
        TOTAL.format("MIN(IFNULL(u.price, 0))"),
        "SELECT AVG(COALESCE(DATEDIFF(o.closed_at, o.ordered_at), 0)) AS n FROM stg.orders AS o",
        "SELECT COUNT(DISTINCT COALESCE(i.order_id, 0)) AS n FROM stg.issues AS i",
        "SELECT COUNT(DISTINCT i.order_key) AS n FROM stg.issues AS i",
    ],
)
def test_gap__that_counts_as_a_value__is_high(query: str) -> None:
    assert list_severities(IMPROBABLE, query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        DAYS.format("DATEDIFF(COALESCE(o.closed_at, CURRENT_DATE), o.ordered_at)"),
        DAYS.format("DATEDIFF(COALESCE(o.closed_at, o.ordered_at), o.ordered_at)"),
        "SELECT o.order_id FROM stg.orders AS o "
        "WHERE DATEDIFF(COALESCE(o.closed_at, DATE '9999-12-31'), o.ordered_at) > 30",
        DAYS.format(f"CASE WHEN DATEDIFF({UNKNOWN}, o.ordered_at) > 30 THEN 1 ELSE 0 END"),
        TOTAL.format("AVG(u.score)"),
        TOTAL.format("SUM(COALESCE(u.price, 0))"),
        TOTAL.format("AVG(COALESCE(u.score, 50))"),
        "SELECT AVG(COALESCE(o.units, 0)) AS n FROM stg.orders AS o",
        # Without a partner there was no stop, and its hours are 0.
        "SELECT AVG(COALESCE(u.score, 0)) AS n FROM stg.issues AS i "
        "LEFT JOIN stg.units AS u ON u.unit_id = i.unit_id",
        "SELECT COUNT(DISTINCT i.order_id) AS n FROM stg.issues AS i",
        "SELECT COUNT(DISTINCT COALESCE(i.order_id, i.issue_id)) AS n FROM stg.issues AS i",
        DAYS.format("COALESCE(o.closed_at, '9999-12-31')"),
    ],
)
def test_gap__that_stays_one__is_quiet(query: str) -> None:
    assert list_severities(IMPROBABLE, query) == []


STORED = "SELECT u.unit_id, u.component FROM stg.units AS u WHERE u.state = 'STORED'"


@pytest.mark.parametrize(
    "query",
    [
        f"{STORED} UNION ALL SELECT r.unit_id, r.component FROM core.usable AS r",
        f"SELECT r.unit_id, r.component FROM core.usable AS r UNION ALL {STORED}",
        f"{STORED} UNION ALL SELECT u.unit_id, u.component FROM stg.units AS u",
        f"{STORED} UNION ALL {STORED} AND u.place = 'room'",
        f"WITH a AS ({STORED}), b AS (SELECT r.unit_id, r.component FROM core.usable AS r), c AS "
        "(SELECT * FROM a UNION ALL SELECT * FROM b) "
        "SELECT c.component, COUNT(*) AS n FROM c GROUP BY c.component",
        "SELECT DISTINCT u.component, ROW_NUMBER() OVER (ORDER BY u.unit_id) AS n "
        "FROM stg.units AS u",
        "SELECT DISTINCT u.component, ROW_NUMBER() OVER (PARTITION BY u.component ORDER BY "
        "u.unit_id) AS n FROM stg.units AS u",
    ],
)
def test_rows__that_are_there_twice__are_high(query: str) -> None:
    assert list_severities(IMPROBABLE, query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        f"{STORED} UNION ALL SELECT u.unit_id, u.component FROM stg.units AS u "
        "WHERE u.state = 'ISSUED'",
        f"{STORED} UNION SELECT r.unit_id, r.component FROM core.usable AS r",
        "SELECT u.unit_id, 'made' AS what FROM stg.units AS u UNION ALL "
        "SELECT r.unit_id, 'usable' AS what FROM core.usable AS r",
        "SELECT u.unit_id, u.component FROM stg.units AS u UNION ALL "
        "SELECT u.unit_id, u.place AS component FROM stg.units AS u",
        "SELECT u.component, COUNT(*) AS n FROM stg.units AS u GROUP BY u.component UNION ALL "
        "SELECT 'all' AS component, COUNT(*) AS n FROM stg.units AS u",
        f"WITH c AS ({STORED} UNION ALL SELECT r.unit_id, r.component FROM core.usable AS r) "
        "SELECT DISTINCT c.unit_id FROM c",
        f"{STORED} AND u.place = 'a' UNION ALL {STORED} AND u.place = 'b'",
        f"{STORED} UNION ALL SELECT i.unit_id, 'x' AS component FROM stg.issues AS i",
        "SELECT u.component, ROW_NUMBER() OVER (ORDER BY u.component) AS n "
        "FROM (SELECT DISTINCT x.component FROM stg.units AS x) AS u",
        "SELECT DISTINCT u.component, RANK() OVER (ORDER BY u.component) AS n FROM stg.units AS u",
    ],
)
def test_rows__that_are_there_once__are_quiet(query: str) -> None:
    assert list_severities(IMPROBABLE, query) == []


SIDES = "SELECT {0}, o.units, i.issue_id FROM stg.orders AS o {1} JOIN stg.issues AS i ON "
SAME = "i.order_id = o.order_id"


@pytest.mark.parametrize(
    ("query", "head"),
    [
        (SIDES.format("o.order_id", "FULL") + SAME, ""),
        (SIDES.format("i.order_id", "FULL OUTER") + SAME, ""),
        (SIDES.format("i.order_id", "LEFT") + SAME, ", grain order_id"),
        (SIDES.format("o.order_id", "RIGHT") + SAME, ", grain (order_id, issue_id)"),
        (
            "SELECT o.units FROM stg.orders AS o JOIN stg.issues AS i "
            "ON COALESCE(o.order_id, -1) = COALESCE(i.order_id, -1)",
            "",
        ),
    ],
)
def test_key__that_rows_of_one_side_lack__is_high(query: str, head: str) -> None:
    assert list_severities(IMPROBABLE, query, more=head) == ["high"]


@pytest.mark.parametrize(
    ("query", "head"),
    [
        (SIDES.format("COALESCE(o.order_id, i.order_id) AS order_id", "FULL") + SAME, ""),
        (SIDES.format("o.order_id, i.order_id AS issued", "FULL") + SAME, ""),
        (SIDES.format("o.order_id", "FULL") + SAME + " WHERE NOT o.order_id IS NULL", ""),
        (SIDES.format("o.order_id", "LEFT") + SAME, ", grain order_id"),
        (SIDES.format("i.order_id", "LEFT") + SAME, ""),
        (SIDES.format("o.order_id", "INNER") + SAME, ", grain order_id"),
        (SIDES.format("i.unit_id", "FULL") + SAME, ""),
        (SIDES.format("o.order_id", "INNER") + "COALESCE(i.order_id, -1) = o.order_id", ""),
    ],
)
def test_key__that_all_rows_have__is_quiet(query: str, head: str) -> None:
    assert list_severities(IMPROBABLE, query, more=head) == []


VERSIONS = (
    "MODEL (name hist.orders, kind SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns (units), "
    "time_data_type TIMESTAMP)); SELECT o.order_id, o.units FROM erp.orders AS o"
)
DAILY = (
    "MODEL (name mart.daily, kind FULL, grain (day, place)); SELECT CAST(u.made_at AS DATE) AS day, "
    "u.place, COUNT(*) AS n, AVG(u.score) AS avg_score, SUM(u.price) / COUNT(*) AS mean "
    "FROM stg.units AS u GROUP BY 1, 2"
)
list_severities_beside_days = partial(
    list_severities_of_new_model,
    stays={**STAYS, "models/versions.sql": VERSIONS, "models/daily.sql": DAILY},
    external={
        **TABLES,
        "fin.rates": {"currency": "STRING", "rate_date": "DATE", "eur_rate": "DECIMAL(9,4)"},
        "fin.tariffs": {
            "line": "STRING", "rate": "DECIMAL(9,4)", "valid_from": "DATE", "valid_to": "DATE"
        },
        "fin.bills": {
            "bill_id": "BIGINT", "line": "STRING", "amount": "DECIMAL(9,2)", "currency": "STRING",
            "issued_on": "DATE", "units": "INT", "unit_price": "DECIMAL(9,2)",
        },
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT SUM(u.score DIV 1000) AS t FROM stg.units AS u", ["high"]),
        ("SELECT SUM(FLOOR(u.score / 1000)) AS t FROM stg.units AS u", ["high"]),
        ("SELECT AVG(CAST(u.score / 1000 AS INT)) AS t FROM stg.units AS u", ["high"]),
        ("SELECT SUM(u.score) DIV 1000 AS t FROM stg.units AS u", []),
        ("SELECT SUM(ROUND(u.price / 3, 2)) AS t FROM stg.units AS u", []),
        ("SELECT d.place, AVG(d.avg_score) AS a FROM mart.daily AS d GROUP BY 1", ["high"]),
        ("SELECT d.place, AVG(d.mean) AS a FROM mart.daily AS d GROUP BY 1", ["high"]),
        ("SELECT AVG(x.a) AS a FROM (SELECT u.place, AVG(u.score) AS a, COUNT(*) AS n "
         "FROM stg.units AS u GROUP BY 1) AS x", ["high"]),
        ("SELECT d.place, AVG(d.n) AS a FROM mart.daily AS d GROUP BY 1", []),
        ("SELECT SUM(d.avg_score * d.n) / SUM(d.n) AS a FROM mart.daily AS d", []),
        ("SELECT YEAR(u.made_at) AS y, WEEKOFYEAR(u.made_at) AS w FROM stg.units AS u", ["high"]),
        ("SELECT CONCAT(YEAR(u.made_at), '-W', WEEKOFYEAR(u.made_at)) AS w FROM stg.units AS u",
         ["high"]),
        ("SELECT EXTRACT(YEAR FROM u.made_at) AS y, EXTRACT(WEEK FROM u.made_at) AS w "
         "FROM stg.units AS u", ["high"]),
        ("SELECT EXTRACT(YEAROFWEEK FROM u.made_at) AS y, WEEKOFYEAR(u.made_at) AS w "
         "FROM stg.units AS u", []),
        ("SELECT YEAR(u.expires_on) AS y, WEEKOFYEAR(u.made_at) AS w FROM stg.units AS u", []),
        ("SELECT CAST(u.rhesus AS INT) AS n FROM stg.units AS u", ["high"]),
        ("SELECT CAST(r.outcome AS BIGINT) AS n FROM stg.results AS r", ["high"]),
        ("SELECT CAST(u.component AS INT) AS n FROM stg.units AS u", []),
        ("SELECT o.order_id FROM stg.orders AS o WHERE o.closed_at BETWEEN "
         "DATE_ADD(o.ordered_at, 5) AND o.ordered_at", ["high"]),
        ("SELECT o.order_id FROM stg.orders AS o WHERE o.closed_at BETWEEN o.ordered_at AND "
         "o.ordered_at - INTERVAL 5 DAYS", ["high"]),
        ("SELECT o.order_id FROM stg.orders AS o WHERE o.closed_at BETWEEN o.ordered_at AND "
         "DATE_ADD(o.ordered_at, 5)", []),
        ("SELECT o.order_id FROM stg.orders AS o WHERE o.closed_at BETWEEN "
         "DATE_ADD(o.ordered_at, -5) AND o.ordered_at", []),
    ],
)  # fmt: skip
def test_totals_weeks_and_ranges(query: str, expected: list[str]) -> None:
    assert list_severities_beside_days(IMPROBABLE, query) == expected


BILLS = "SELECT b.line, SUM(b.amount * {0}) AS t FROM fin.bills AS b JOIN {1} GROUP BY b.line"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (BILLS.format("r.eur_rate", "fin.rates AS r ON r.currency = b.currency"), ["high"]),
        (BILLS.format("t.rate", "fin.tariffs AS t ON t.line = b.line"), ["high"]),
        ("SELECT SUM(h.units) AS t FROM hist.orders AS h", ["high"]),
        ("SELECT COUNT(*) AS orders FROM hist.orders AS h WHERE h.units > 1", ["high"]),
        (BILLS.format("r.eur_rate", "fin.rates AS r ON r.currency = b.currency "
                      "AND r.rate_date = b.issued_on"), []),
        (BILLS.format("t.rate", "fin.tariffs AS t ON t.line = b.line "
                      "AND b.issued_on >= t.valid_from AND b.issued_on < t.valid_to"), []),
        ("SELECT SUM(h.units) AS t FROM hist.orders AS h WHERE h.valid_to IS NULL", []),
        ("SELECT h.order_id, COUNT(*) AS versions FROM hist.orders AS h GROUP BY 1", []),
        ("SELECT COUNT(DISTINCT h.order_id) AS orders FROM hist.orders AS h", []),
        ("SELECT b.line FROM fin.bills AS b LEFT SEMI JOIN fin.tariffs AS t ON t.line = b.line", []),
    ],
)  # fmt: skip
def test_history__of_which_all_versions_meet(query: str, expected: list[str]) -> None:
    assert list_severities_beside_days("history-join", query) == expected


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        ("SUM(b.units * b.unit_price)", ["high"]),
        ("SUM(b.unit_price * b.units)", ["high"]),
        ("SUM(b.amount * r.eur_rate)", []),
        ("SUM(b.amount / r.eur_rate)", []),
    ],
)
def test_sum__of_quantities_times_prices(total: str, expected: list[str]) -> None:
    query = (
        f"SELECT b.line, {total} AS total FROM fin.bills AS b "
        "LEFT JOIN fin.rates AS r ON r.currency = b.currency AND r.rate_date = b.issued_on GROUP BY 1"
    )
    assert list_severities_beside_days("mixed-currencies", query) == expected


SPANS = "SELECT o.order_id, {0} FROM stg.orders AS o JOIN stg.units AS u ON u.unit_id = o.order_id"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("DATEDIFF(u.made_at, o.ordered_at) AS days_to_order", ["high"]),
        ("ROUND(DATEDIFF(u.made_at, o.closed_at) / 7, 1) AS weeks_until_close", ["high"]),
        ("DATEDIFF(o.ordered_at, u.made_at) AS days_since_made", []),
        ("DATEDIFF(o.ordered_at, u.made_at) AS days_since_order", ["high"]),
        ("DATEDIFF(o.ordered_at, u.made_at) AS days_to_order", []),
        ("TIMESTAMPDIFF(HOUR, o.closed_at, u.made_at) AS hours_to_close", ["high"]),
        ("TIMESTAMPDIFF(HOUR, u.made_at, o.closed_at) AS hours_to_close", []),
        ("(UNIX_TIMESTAMP(u.made_at) - UNIX_TIMESTAMP(o.closed_at)) / 60 AS minutes_to_close",
         ["high"]),
        ("DATEDIFF(o.ordered_at, DATE '2024-05-01') AS age_days", ["high"]),
        ("DATEDIFF(DATE '2024-05-01', o.ordered_at) AS age_days", []),
        ("DATEDIFF(DATE '2024-05-01', u.expires_on) AS days_until_expiry", ["high"]),
        ("DATEDIFF(u.expires_on, DATE '2024-05-01') AS days_until_expiry", []),
        ("DATEDIFF(o.ordered_at, o.closed_at) AS days", ["high"]),
        ("u.score - u.price AS from_score", []),
    ],
)  # fmt: skip
def test_span__that_counts_backwards(item: str, expected: list[str]) -> None:
    assert list_severities("misnamed-column", SPANS.format(item)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT u.unit_id, COUNT(*) AS results FROM stg.units AS u LEFT JOIN stg.results AS r "
         "ON r.unit_id = u.unit_id GROUP BY 1", ["high"]),
        ("SELECT u.unit_id, COUNT(r.result_id) AS results FROM stg.units AS u LEFT JOIN "
         "stg.results AS r ON r.unit_id = u.unit_id GROUP BY 1", []),
        ("SELECT u.unit_id, COUNT(*) AS results FROM stg.units AS u JOIN stg.results AS r "
         "ON r.unit_id = u.unit_id GROUP BY 1", []),
        ("SELECT u.component, SUM(u.price) AS t FROM stg.units AS u LEFT JOIN stg.results AS r "
         "ON r.unit_id = u.unit_id GROUP BY 1", ["high"]),
        ("SELECT u.component, SUM(u.price) AS t FROM stg.units AS u LEFT JOIN stg.results AS r "
         "ON r.unit_id = u.unit_id WHERE r.unit_id IS NULL GROUP BY 1", []),
    ],
)  # fmt: skip
def test_count__of_rows_without_a_partner(query: str, expected: list[str]) -> None:
    assert list_severities("fan-out-total", query) == expected


def test_grain__of_rows_without_a_partner__needs_no_audit() -> None:
    query = (
        "SELECT u.unit_id FROM stg.units AS u LEFT JOIN stg.results AS r ON r.unit_id = u.unit_id"
    )
    severities = partial(list_severities, "missing-key-audit", more=", grain unit_id")

    assert "high" in severities(query)
    assert "high" not in severities(f"{query} WHERE r.unit_id IS NULL")


DEDUPED = (
    "SELECT x.unit_id, x.outcome FROM (SELECT r.unit_id, r.outcome, {0}() OVER "
    "(PARTITION BY r.unit_id ORDER BY r.lab) AS n FROM stg.results AS r) AS x WHERE x.n = {1}"
)
IN_UNITS = "SELECT u.unit_id FROM stg.units AS u WHERE {0}"
SHARES = "SELECT r.lab, COUNT(*) / SUM(COUNT(*)) OVER ({0}) AS share FROM stg.results AS r GROUP BY r.lab"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (DEDUPED.format("RANK", 1), ["high"]),
        (DEDUPED.format("DENSE_RANK", 1), ["high"]),
        (DEDUPED.format("RANK", 2), []),
        (IN_UNITS.format("u.unit_id IN (SELECT u.unit_id FROM stg.results AS r)"), ["high"]),
        (IN_UNITS.format("u.unit_id IN (SELECT unit_id FROM stg.orders)"), ["high"]),
        (IN_UNITS.format("EXISTS (SELECT 1 FROM stg.results AS r WHERE r.lab = 'A')"), ["high"]),
        (IN_UNITS.format("u.unit_id IN (SELECT r.unit_id FROM stg.results AS r)"), []),
        (IN_UNITS.format("EXISTS (SELECT 1 FROM stg.results AS r WHERE r.unit_id = u.unit_id)"), []),
        (IN_UNITS.format("EXISTS (SELECT 1 FROM stg.orders AS o WHERE o.units > 3)"), []),
        ("SELECT COALESCE(0, u.score) AS n FROM stg.units AS u", ["high"]),
        ("SELECT NULLIF(0, u.score) AS n FROM stg.units AS u", ["high"]),
        ("SELECT NULLIF(u.score, 0) AS n FROM stg.units AS u", []),
        ("SELECT u.price / COALESCE(u.score, 0) AS n FROM stg.units AS u", ["high"]),
        ("SELECT u.price / COALESCE(u.score, 1) AS n FROM stg.units AS u", []),
        ("SELECT u.price / NULLIF(COALESCE(u.score, 0), 0) AS n FROM stg.units AS u", []),
        ("SELECT MAX(CAST(u.score AS STRING)) AS n FROM stg.units AS u", ["high"]),
        ("SELECT MIN(DATE_FORMAT(u.made_at, 'dd.MM.yyyy')) AS n FROM stg.units AS u", ["high"]),
        ("SELECT CAST(MAX(u.score) AS STRING) AS n FROM stg.units AS u", []),
        ("SELECT MAX(DATE_FORMAT(u.made_at, 'yyyy-MM')) AS n FROM stg.units AS u", []),
        (IN_UNITS.format("u.expires_on < DATE '2024-02-30'"), ["high"]),
        (IN_UNITS.format("u.expires_on BETWEEN '2023-02-29' AND '2023-12-31'"), ["high"]),
        (IN_UNITS.format("u.expires_on < DATE '2024-02-29'"), []),
        (SHARES.format("PARTITION BY r.lab"), ["high"]),
        (SHARES.format(""), []),
    ],
)  # fmt: skip
def test_query__whose_parts_do_nothing(query: str, expected: list[str]) -> None:
    grain = ", grain unit_id" if query.startswith("SELECT x") else ""
    assert list_severities(IMPROBABLE, query, more=grain) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("DATEDIFF(o.closed_at, o.ordered_at) AS hours_open", ["high"]),
        ("TIMESTAMPDIFF(MINUTE, o.ordered_at, o.closed_at) AS seconds_open", ["high"]),
        ("MAX(MONTHS_BETWEEN(o.closed_at, o.ordered_at)) AS max_days_open", ["high"]),
        ("SPLIT(u.component, ',')[1] AS first_part", ["high"]),
        ("DATEDIFF(o.closed_at, o.ordered_at) * 24 AS hours_open", []),
        ("DATEDIFF(o.closed_at, o.ordered_at) AS days_open", []),
        ("TIMESTAMPDIFF(HOUR, o.ordered_at, o.closed_at) AS hours_open", []),
        ("SPLIT(u.component, ',')[0] AS first_part", []),
        ("ELEMENT_AT(SPLIT(u.component, ','), 1) AS first_part", []),
    ],
)
def test_unit_and_place__of_the_name(item: str, expected: list[str]) -> None:
    query = SPANS.format(item) + (" GROUP BY 1" if "MAX" in item else "")
    assert list_severities("misnamed-column", query) == expected


LOG = (
    "MODEL (name stg.log, kind INCREMENTAL_BY_TIME_RANGE (time_column day)); "
    "SELECT CAST(u.made_at AS DATE) AS day, u.unit_id FROM erp.units AS u "
    "WHERE CAST(u.made_at AS DATE) BETWEEN @start_ds AND @end_ds"
)
THINGS = LOG.replace("stg.log", "stg.things").replace(
    "INCREMENTAL_BY_TIME_RANGE (time_column day)", "INCREMENTAL_BY_UNIQUE_KEY (unique_key unit_id)"
)


@pytest.mark.parametrize(
    ("cron", "source", "expected"),
    [
        ("@hourly", "stg.log", ["high"]),
        ("*/5 * * * *", "stg.log", ["high"]),
        ("*/5 * * * *", "stg.things", ["high"]),
        ("@hourly", "stg.things", []),
        ("@daily", "stg.log", []),
        ("@hourly", "stg.units", []),
    ],
)
def test_full_model__that_reads_a_growing_table_often(
    cron: str, source: str, expected: list[str]
) -> None:
    stays = {**STAYS, "models/log.sql": LOG, "models/things.sql": THINGS}
    found = list_severities_of_new_model(
        "huge-full-model", f"SELECT x.unit_id FROM {source} AS x", stays=stays, external=TABLES,
        more=f", cron '{cron}'",
    )  # fmt: skip
    assert found == expected


def test_comparison__with_the_value_of_a_variable__is_quiet() -> None:
    query = UNITS.format("u.component = @what")
    assert list_severities(IMPROBABLE, f"@DEF(what, 'plasma'); {query}") == []
