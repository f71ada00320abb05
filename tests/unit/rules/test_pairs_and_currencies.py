"""Dangers of new models that no key and no type shows by itself: rows that meet by what identifies
neither, amounts of several currencies in one sum, a NULL that is replaced beside and not here, a
partition for each customer, and a history of rows that are something else than its key.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

ACCOUNTS = (
    "MODEL (name stg.accounts, kind FULL, grain account_id); "
    "SELECT a.account_id, a.country, a.name, a.created_on FROM src.accounts AS a"
)
INVOICES = (
    "MODEL (name stg.invoices, kind FULL, grain invoice_id); SELECT i.invoice_id, i.account_id, "
    "i.currency, i.amount, i.amount_eur, i.tax, i.issued_on FROM src.invoices AS i"
)
PAYMENTS = (
    "MODEL (name stg.payments, kind FULL, grain payment_id); "
    "SELECT p.payment_id, p.invoice_id, p.amount, p.fee FROM src.payments AS p"
)
COUNTRIES = "MODEL (name ref.countries, kind FULL, grain country); SELECT c.country, c.vat FROM src.vat AS c"
STAYS = {
    "models/accounts.sql": ACCOUNTS,
    "models/invoices.sql": INVOICES,
    "models/payments.sql": PAYMENTS,
    "models/countries.sql": COUNTRIES,
}
TABLES = {
    **EXTERNAL,
    "src.accounts": {
        "account_id": "BIGINT",
        "country": "STRING",
        "name": "STRING",
        "created_on": "DATE",
    },
    "src.invoices": {
        "invoice_id": "BIGINT",
        "account_id": "BIGINT",
        "currency": "STRING",
        "amount": "DECIMAL(12, 2)",
        "amount_eur": "DECIMAL(12, 2)",
        "tax": "DECIMAL(12, 2)",
        "issued_on": "DATE",
    },
    "src.payments": {
        "payment_id": "BIGINT",
        "invoice_id": "BIGINT",
        "amount": "DECIMAL(12, 2)",
        "fee": "DECIMAL(12, 2)",
    },
    "src.vat": {"country": "STRING", "vat": "DOUBLE"},
    "src.fx": {"currency": "STRING", "day": "DATE", "rate": "DECIMAL(12, 6)"},
    "src.tickets": {
        "ticket_id": "BIGINT",
        "account_id": "BIGINT",
        "priority": "STRING",
        "opened_at": "TIMESTAMP",
    },
}


list_severities = partial(list_severities_of_new_model, stays=STAYS, external=TABLES)


# Rows that meet by what identifies neither side: each of them is there several times.


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.account_id, b.account_id AS other_id FROM stg.accounts AS a "
        "JOIN stg.accounts AS b ON a.country = b.country",
        "SELECT a.account_id, b.account_id AS other_id FROM stg.accounts AS a, stg.accounts AS b "
        "WHERE a.country = b.country",
        "SELECT i.invoice_id, p.payment_id FROM stg.invoices AS i "
        "LEFT JOIN stg.payments AS p ON i.amount = p.amount",
        "SELECT a.account_id, i.invoice_id, p.payment_id FROM stg.accounts AS a "
        "JOIN stg.invoices AS i ON i.account_id = a.account_id "
        "JOIN stg.payments AS p ON p.amount = i.amount",
        "WITH de AS (SELECT account_id, country FROM stg.accounts) "
        "SELECT x.account_id, y.account_id AS other FROM de AS x JOIN de AS y USING (country)",
    ],
)
def test_join__on_columns_that_identify_neither_side__is_high(text: str) -> None:
    assert list_severities("many-to-many-join", text) == ["high"]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        # One side is identified.
        (
            "SELECT i.invoice_id, a.country FROM stg.invoices AS i "
            "JOIN stg.accounts AS a ON i.account_id = a.account_id",
            "",
        ),
        (
            "SELECT a.account_id, c.vat FROM stg.accounts AS a "
            "JOIN ref.countries AS c ON a.country = c.country",
            "",
        ),
        # The declared grain says that the rows are pairs.
        (
            "SELECT a.account_id, b.account_id AS other_id FROM stg.accounts AS a "
            "JOIN stg.accounts AS b ON a.country = b.country",
            ", grain (account_id, other_id)",
        ),
        # An order between both sides: pairs are meant.
        (
            "SELECT a.account_id, b.account_id AS other_id FROM stg.accounts AS a "
            "JOIN stg.accounts AS b ON a.country = b.country AND a.account_id < b.account_id",
            "",
        ),
        (
            "SELECT a.account_id, b.account_id AS other_id FROM stg.accounts AS a "
            "JOIN stg.accounts AS b ON a.country = b.country WHERE a.account_id <> b.account_id",
            "",
        ),
        # Rows are made one again.
        (
            "SELECT DISTINCT a.account_id FROM stg.accounts AS a "
            "JOIN stg.accounts AS b ON a.country = b.country",
            "",
        ),
        (
            "SELECT a.account_id, COUNT(DISTINCT b.account_id) AS others FROM stg.accounts AS a "
            "JOIN stg.accounts AS b ON a.country = b.country GROUP BY a.account_id",
            "",
        ),
        # It only asks whether there is a partner.
        (
            "SELECT a.account_id FROM stg.accounts AS a "
            "LEFT SEMI JOIN stg.invoices AS i ON a.name = i.currency",
            "",
        ),
        # A table without a known key says nothing.
        (
            "SELECT i.invoice_id, f.rate FROM stg.invoices AS i "
            "JOIN src.fx AS f ON i.currency = f.currency",
            "",
        ),
        # Elements of an array belong to their row.
        (
            "SELECT a.account_id, w.word FROM stg.accounts AS a "
            "LATERAL VIEW EXPLODE(SPLIT(a.name, ' ')) w AS word",
            "",
        ),
    ],
)
def test_join__that_identifies_a_side_or_means_pairs__is_quiet(text: str, more: str) -> None:
    assert list_severities("many-to-many-join", text, more=more) == []


# Amounts of several currencies in one sum.


@pytest.mark.parametrize(
    "text",
    [
        "SELECT i.account_id, SUM(i.amount) AS revenue FROM stg.invoices AS i GROUP BY i.account_id",
        "SELECT SUM(i.amount - i.tax) AS net FROM stg.invoices AS i",
        "SELECT a.country, AVG(i.amount) AS mean_amount FROM stg.invoices AS i "
        "JOIN stg.accounts AS a ON i.account_id = a.account_id GROUP BY a.country",
        "WITH open AS (SELECT invoice_id, currency, amount FROM stg.invoices) "
        "SELECT SUM(amount) AS total FROM open",
        "SELECT i.invoice_id, SUM(i.amount) OVER (PARTITION BY i.account_id) AS billed "
        "FROM stg.invoices AS i",
    ],
)
def test_total__of_amounts_beside_a_currency__is_high(text: str) -> None:
    assert list_severities("mixed-currencies", text) == ["high"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT i.currency, SUM(i.amount) AS revenue FROM stg.invoices AS i GROUP BY i.currency",
        "SELECT i.account_id, i.currency, SUM(i.amount) AS revenue FROM stg.invoices AS i "
        "GROUP BY ALL",
        "SELECT i.account_id, i.currency AS iso, SUM(i.amount) AS revenue FROM stg.invoices AS i "
        "GROUP BY 1, 2",
        "SELECT SUM(i.amount) AS revenue FROM stg.invoices AS i WHERE i.currency = 'EUR'",
        "SELECT SUM(CASE WHEN i.currency = 'EUR' THEN i.amount ELSE 0 END) AS eur "
        "FROM stg.invoices AS i",
        "SELECT SUM(i.amount) FILTER (WHERE i.currency = 'EUR') AS eur FROM stg.invoices AS i",
        "SELECT SUM(i.amount_eur) AS revenue FROM stg.invoices AS i",
        "SELECT SUM(i.amount * f.rate) AS revenue FROM stg.invoices AS i "
        "JOIN src.fx AS f ON i.currency = f.currency AND i.issued_on = f.day",
        "SELECT SUM(p.amount) AS paid FROM stg.payments AS p",
        "SELECT i.invoice_id, SUM(i.amount) OVER (PARTITION BY i.account_id, i.currency) AS billed "
        "FROM stg.invoices AS i",
        "SELECT COUNT(i.amount) AS invoices, MAX(i.amount) AS largest FROM stg.invoices AS i "
        "WHERE i.currency IN ('EUR')",
        "SELECT i.invoice_id, SUM(i.amount) AS amount FROM stg.invoices AS i GROUP BY i.invoice_id",
    ],
)
def test_total__of_one_currency__is_quiet(text: str) -> None:
    assert list_severities("mixed-currencies", text) == []


# NULL of a missing partner, replaced in one column and not in the next.

PAID = (
    "WITH paid AS (SELECT p.invoice_id, SUM(p.amount) AS paid, SUM(p.fee) AS fees "
    "FROM stg.payments AS p GROUP BY p.invoice_id) SELECT i.invoice_id, {0} FROM stg.invoices AS i "
    "LEFT JOIN paid AS p ON i.invoice_id = p.invoice_id"
)


@pytest.mark.parametrize(
    "columns",
    [
        "COALESCE(p.paid, 0) AS paid, i.amount - p.paid AS outstanding",
        "NVL(p.paid, 0) AS paid, (p.paid / i.amount) AS share",
        "IFNULL(p.paid, 0) AS paid, i.amount - p.paid - p.fees AS outstanding",
        # A total that is missing is 0, whatever the other columns do.
        "COALESCE(p.paid, 0) AS paid, i.amount - p.fees AS other",
        "p.paid AS paid, i.amount - p.paid AS outstanding",
    ],
)
def test_arithmetic__with_a_null_that_is_no_value__is_high(columns: str) -> None:
    assert list_severities("improbable-expression", PAID.format(columns)) == ["high"]


@pytest.mark.parametrize(
    "columns",
    [
        "COALESCE(p.paid, 0) AS paid, i.amount - COALESCE(p.paid, 0) AS outstanding",
        "COALESCE(p.paid, 0) AS paid, COALESCE(i.amount - p.paid, i.amount) AS outstanding",
        "COALESCE(p.paid, 0) AS paid, "
        "CASE WHEN p.paid IS NOT NULL THEN i.amount - p.paid ELSE i.amount END AS outstanding",
        "COALESCE(p.paid, 0) AS paid, i.amount * p.fees AS other",
        "COALESCE(i.amount, 0) AS amount, i.amount - i.tax AS net",
        "COALESCE(p.paid, 0) AS paid, p.paid > 0 AS is_paid",
    ],
)
def test_arithmetic__without_such_a_null__is_quiet(columns: str) -> None:
    assert list_severities("improbable-expression", PAID.format(columns)) == []


def test_arithmetic__with_a_sum_that_leaves_out_nulls__is_quiet() -> None:
    text = (
        "SELECT i.account_id, SUM(COALESCE(p.amount, 0)) AS paid, SUM(p.amount * 2) AS twice "
        "FROM stg.payments AS q LEFT JOIN stg.invoices AS i ON i.invoice_id = q.invoice_id "
        "LEFT JOIN stg.payments AS p ON p.payment_id = q.payment_id GROUP BY i.account_id"
    )
    assert list_severities("improbable-expression", text) == []


# A partition for each customer.


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("account_id", ["high"]),
        ("issued_on", []),
        ("bucket(16, account_id)", []),
        ("currency", []),
    ],
)
def test_partition__by_what_identifies_another_model(parts: str, expected: list[str]) -> None:
    text = (
        "SELECT i.invoice_id, i.account_id, i.currency, i.issued_on, i.amount "
        "FROM stg.invoices AS i"
    )
    more = f", partitioned_by ({parts}), grain invoice_id"
    assert list_severities("partition-per-row", text, more=more) == expected


def test_partition__by_the_name_of_a_country__is_quiet() -> None:
    """`country` identifies a row of a model, and there are few of them."""
    text = "SELECT a.account_id, a.country FROM stg.accounts AS a"
    more = ", partitioned_by (country), grain account_id"
    assert list_severities("partition-per-row", text, more=more) == []


def test_partition__by_a_tenant__is_quiet() -> None:
    """A team partitions by what it has few of, although a model has a row for each."""
    tenants = (
        "MODEL (name ref.tenants, kind FULL, grain tenant_id); "
        "SELECT a.account_id AS tenant_id, a.name FROM src.accounts AS a"
    )
    found = list_severities_of_new_model(
        "partition-per-row",
        "SELECT i.invoice_id, i.account_id AS tenant_id FROM stg.invoices AS i",
        stays={**STAYS, "models/tenants.sql": tenants},
        external=TABLES,
        more=", partitioned_by (tenant_id), grain invoice_id",
    )
    assert found == []


# A history of rows that are something else than its key.

HISTORY = "SCD_TYPE_2_BY_COLUMN (unique_key {0}, columns [priority])"


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("account_id", "SELECT t.account_id, t.priority FROM src.tickets AS t", ["high"]),
        ("ticket_id", "SELECT t.ticket_id, t.priority FROM src.tickets AS t", []),
        (
            "account_id",
            "SELECT t.account_id, MAX(t.priority) AS priority FROM src.tickets AS t "
            "GROUP BY t.account_id",
            [],
        ),
        ("account_id", "SELECT a.account_id, a.name AS priority FROM src.accounts AS a", []),
    ],
)
def test_history__of_an_external_table_whose_name_says_what_a_row_is(
    key: str, text: str, expected: list[str]
) -> None:
    assert list_severities("unique-key-no-audit", text, kind=HISTORY.format(key)) == expected
