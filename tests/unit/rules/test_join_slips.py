"""Joins of new models that run without an error: counts of partners that are not there, EXPLODE that
drops rows, keys of two things, rows that are partners of themselves, texts that never meet.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.slips.improbable_expressions import ImprobableExpression
from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

STAYS = {
    "models/accounts.sql": (
        "MODEL (name stg.accounts, kind FULL, grain account_id); SELECT a.account_id, a.parent_id, "
        "a.country, a.seats, a.fee FROM src.accounts AS a"
    ),
    "models/invoices.sql": (
        "MODEL (name stg.invoices, kind FULL, grain invoice_id); SELECT i.invoice_id, "
        "i.account_id, i.amount, i.seller_id, i.issued_on FROM src.invoices AS i"
    ),
    "models/payments.sql": (
        "MODEL (name stg.payments, kind FULL, grain payment_id); SELECT p.payment_id, "
        "p.invoice_id, p.order_id, p.parent_payment_id, p.paid, p.paid_on FROM src.payments AS p"
    ),
    "models/sellers.sql": (
        "MODEL (name stg.sellers, kind FULL, grain seller_id); "
        "SELECT s.account_id AS seller_id, s.country FROM src.accounts AS s"
    ),
    "models/events.sql": (
        "MODEL (name stg.events, kind FULL, grain event_id); SELECT e.event_id, e.account_id, "
        "e.features, e.seconds, SPLIT(e.words, ',') AS tokens FROM src.events AS e"
    ),
    "models/orders.sql": (
        "MODEL (name stg.orders, kind FULL, grain order_id); "
        "SELECT o.order_id, o.country FROM src.orders AS o"
    ),
    "models/days.sql": (
        "MODEL (name stg.days, kind FULL, grain day); SELECT c.day, c.month FROM src.days AS c"
    ),
    "models/months.sql": (
        "MODEL (name stg.months, kind FULL, grain month); SELECT c.month, c.price FROM src.days AS c"
    ),
    "models/lines.sql": (
        "MODEL (name stg.lines, kind FULL, grain (order_id, product_id)); "
        "SELECT l.order_id, l.product_id, l.quantity FROM src.lines AS l"
    ),
}
TABLES = {
    **EXTERNAL,
    "src.accounts": {
        "account_id": "BIGINT",
        "parent_id": "BIGINT",
        "country": "STRING",
        "seats": "INT",
        "fee": "DECIMAL(12, 2)",
    },
    "src.invoices": {
        "invoice_id": "BIGINT",
        "account_id": "BIGINT",
        "seller_id": "BIGINT",
        "amount": "DECIMAL(12, 2)",
        "issued_on": "DATE",
    },
    "src.payments": {
        "payment_id": "BIGINT",
        "invoice_id": "BIGINT",
        "order_id": "BIGINT",
        "parent_payment_id": "BIGINT",
        "paid": "DECIMAL(12, 2)",
        "paid_on": "DATE",
    },
    "src.events": {
        "event_id": "BIGINT",
        "account_id": "BIGINT",
        "features": "ARRAY<STRING>",
        "seconds": "INT",
        "words": "STRING",
    },
    "src.orders": {"order_id": "BIGINT", "country": "STRING"},
    "src.days": {"day": "DATE", "month": "DATE", "price": "INT"},
    "src.lines": {"order_id": "BIGINT", "product_id": "BIGINT", "quantity": "INT"},
    "src.tickets": {
        "ticket_id": "BIGINT",
        "account_id": "BIGINT",
        "status": "STRING",
        "opened_on": "DATE",
    },
}
RULE = "improbable-expression"
list_severities = partial(list_severities_of_new_model, RULE, stays=STAYS, external=TABLES)

TICKETS = "src.tickets AS t ON t.account_id = a.account_id"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.account_id, COUNT(*) AS tickets FROM stg.accounts AS a LEFT JOIN {TICKETS} "
        "GROUP BY a.account_id",
        f"SELECT a.account_id, CAST(COUNT(1) AS INT) AS n FROM stg.accounts AS a "
        f"LEFT OUTER JOIN {TICKETS} GROUP BY 1",
        f"SELECT a.account_id, COUNT(a.account_id) AS tickets FROM stg.accounts AS a "
        f"LEFT JOIN {TICKETS} GROUP BY a.account_id",
        f"SELECT a.account_id, a.country, COALESCE(COUNT(*), 0) AS tickets FROM stg.accounts AS a "
        f"LEFT JOIN {TICKETS} AND t.status = 'open' GROUP BY ALL",
        "WITH open AS (SELECT t.account_id, t.ticket_id FROM src.tickets AS t), counted AS ("
        "SELECT a.account_id, COUNT(*) AS n FROM stg.accounts AS a LEFT JOIN open AS o "
        "USING (account_id) GROUP BY a.account_id) SELECT c.account_id, c.n FROM counted AS c",
        "WITH days AS (SELECT EXPLODE(SEQUENCE(DATE '2024-01-01', DATE '2024-06-01')) AS day) "
        "SELECT d.day, COUNT(*) AS tickets FROM days AS d LEFT JOIN src.tickets AS t "
        "ON t.opened_on = d.day GROUP BY d.day",
    ],
)
def test_count__of_a_row_without_a_partner__is_high(query: str) -> None:
    assert list_severities(query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.account_id, COUNT(t.ticket_id) AS tickets FROM stg.accounts AS a "
        f"LEFT JOIN {TICKETS} GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(*) AS tickets FROM stg.accounts AS a JOIN {TICKETS} "
        "GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT_IF(t.status = 'open') AS n FROM stg.accounts AS a "
        f"LEFT JOIN {TICKETS} GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(*) FILTER (WHERE t.status = 'open') AS n "
        f"FROM stg.accounts AS a LEFT JOIN {TICKETS} GROUP BY a.account_id",
        f"SELECT a.account_id, CASE WHEN MAX(t.ticket_id) IS NULL THEN 0 ELSE COUNT(*) END AS n "
        f"FROM stg.accounts AS a LEFT JOIN {TICKETS} GROUP BY a.account_id",
        # Each ticket is counted, and it may have no account.
        "SELECT a.country, COUNT(*) AS tickets FROM src.tickets AS t LEFT JOIN stg.accounts AS a "
        "ON t.account_id = a.account_id GROUP BY a.country",
        f"SELECT a.account_id, t.status, COUNT(*) AS n FROM stg.accounts AS a LEFT JOIN {TICKETS} "
        "GROUP BY a.account_id, t.status",
        # The inner join gives the rows that are counted.
        "SELECT a.account_id, COUNT(*) AS tickets FROM stg.accounts AS a "
        f"JOIN {TICKETS} LEFT JOIN src.lines AS l ON l.order_id = t.ticket_id "
        "GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(*) AS n FROM stg.accounts AS a LEFT JOIN {TICKETS} "
        "WHERE t.ticket_id IS NOT NULL GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(*) AS n FROM stg.accounts AS a LEFT JOIN {TICKETS} "
        "GROUP BY a.account_id HAVING COUNT(t.ticket_id) > 0",
        f"SELECT a.account_id, COUNT(*) AS n FROM stg.accounts AS a LEFT ANTI JOIN {TICKETS} "
        "GROUP BY a.account_id",
        f"SELECT a.country, COUNT(*) AS n FROM stg.accounts AS a LEFT JOIN {TICKETS} "
        "GROUP BY a.country",
    ],
)
def test_count__of_rows_that_are_there__is_quiet(query: str) -> None:
    assert list_severities(query) == []


VIEW = "stg.events AS e LATERAL VIEW EXPLODE(e.features) f AS feature"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events, COUNT(DISTINCT f.feature) "
        f"AS features FROM {VIEW} GROUP BY e.account_id",
        f"SELECT COUNT(DISTINCT e.event_id) AS events, COUNT(f.feature) AS features FROM {VIEW}",
        "SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events, COUNT(DISTINCT f.feature) AS n "
        "FROM stg.events AS e LATERAL VIEW POSEXPLODE(e.features) f AS place, feature "
        "GROUP BY e.account_id",
        "SELECT x.account_id, COUNT(DISTINCT x.event_id) AS events, COUNT(DISTINCT x.feature) AS n "
        "FROM (SELECT e.account_id, e.event_id, EXPLODE(e.features) AS feature FROM stg.events AS e"
        ") AS x GROUP BY x.account_id",
        "WITH x AS (SELECT e.account_id, e.seconds, EXPLODE(e.features) AS feature "
        "FROM stg.events AS e) SELECT x.account_id, SUM(x.seconds) AS seconds, "
        "COUNT(DISTINCT x.feature) AS n FROM x GROUP BY x.account_id",
    ],
)
def test_explode__that_drops_rows_which_are_counted__is_high(query: str) -> None:
    assert list_severities(query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events, COUNT(DISTINCT f.feature) "
        "AS features FROM stg.events AS e LATERAL VIEW OUTER EXPLODE(e.features) f AS feature "
        "GROUP BY e.account_id",
        "SELECT x.account_id, COUNT(DISTINCT x.event_id) AS events, COUNT(DISTINCT x.feature) AS n "
        "FROM (SELECT e.account_id, e.event_id, EXPLODE_OUTER(e.features) AS feature "
        "FROM stg.events AS e) AS x GROUP BY x.account_id",
        # Only the elements are counted.
        f"SELECT e.account_id, COUNT(DISTINCT f.feature) AS n FROM {VIEW} GROUP BY e.account_id",
        # Events of each feature.
        f"SELECT f.feature, COUNT(DISTINCT e.event_id) AS events, MAX(f.feature) AS m FROM {VIEW} "
        "GROUP BY f.feature",
        f"SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events, COUNT(f.feature) AS n "
        f"FROM {VIEW} WHERE f.feature LIKE 'beta%' GROUP BY e.account_id",
        f"SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events, COUNT(f.feature) AS n "
        f"FROM {VIEW} WHERE SIZE(e.features) > 0 GROUP BY e.account_id",
        f"SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events_with_features, "
        f"COUNT(f.feature) AS n FROM {VIEW} GROUP BY e.account_id",
        # A part for each element.
        "WITH x AS (SELECT e.account_id, e.seconds, SIZE(e.features) AS n, EXPLODE(e.features) AS "
        "feature FROM stg.events AS e) SELECT x.account_id, SUM(x.seconds / x.n) AS seconds, "
        "COUNT(DISTINCT x.feature) AS f FROM x GROUP BY x.account_id",
        # SPLIT gives one element at least.
        "SELECT e.account_id, COUNT(DISTINCT e.event_id) AS events, COUNT(f.token) AS n "
        "FROM stg.events AS e LATERAL VIEW EXPLODE(e.tokens) f AS token GROUP BY e.account_id",
    ],
)
def test_explode__that_gives_what_is_counted__is_quiet(query: str) -> None:
    assert list_severities(query) == []


PAID = "SELECT p.payment_id, p.paid, i.amount FROM stg.payments AS p {0}"


@pytest.mark.parametrize(
    "join",
    [
        "JOIN stg.invoices AS i ON p.payment_id = i.invoice_id",
        "LEFT JOIN stg.invoices AS i ON i.invoice_id = p.payment_id AND p.paid > 0",
        "JOIN stg.invoices AS i ON p.invoice_id = i.account_id",
        "JOIN (SELECT x.invoice_id, SUM(x.amount) AS amount FROM stg.invoices AS x "
        "GROUP BY x.invoice_id) AS i ON p.payment_id = i.invoice_id",
        "JOIN src.invoices AS i ON p.payment_id = i.invoice_id",
        "JOIN stg.invoices AS i ON p.order_id = i.invoice_id",
    ],
)
def test_join__of_keys_of_two_things__is_high(join: str) -> None:
    assert list_severities(PAID.format(join)) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        PAID.format("JOIN stg.invoices AS i ON p.invoice_id = i.invoice_id"),
        PAID.format(
            "JOIN stg.invoices AS i ON p.invoice_id = i.invoice_id AND p.payment_id <> i.account_id"
        ),
        # A part of the pair is right.
        PAID.format(
            "JOIN stg.invoices AS i ON p.invoice_id = i.invoice_id AND p.payment_id = i.account_id"
        ),
        "SELECT p.payment_id FROM stg.payments AS p JOIN stg.payments AS q "
        "ON p.parent_payment_id = q.payment_id",
        # A month has the key of its first day.
        "SELECT d.day, m.price FROM stg.days AS d JOIN stg.months AS m ON d.day = m.month",
        # Another role: who sells has an account, and who buys, too.
        "SELECT i.invoice_id, a.country FROM stg.invoices AS i JOIN stg.accounts AS a "
        "ON i.seller_id = a.account_id",
        "SELECT a.account_id, s.country FROM stg.accounts AS a JOIN stg.sellers AS s "
        "ON a.account_id = s.seller_id",
        "SELECT a.account_id, i.amount FROM stg.accounts AS a JOIN stg.invoices AS i "
        "ON a.account_id = i.seller_id",
    ],
)
def test_join__of_keys_of_one_thing__is_quiet(query: str) -> None:
    assert list_severities(query) == []


TWINS = "stg.accounts AS a JOIN stg.accounts AS b ON a.parent_id = b.parent_id"
BASKETS = "stg.lines AS a JOIN stg.lines AS b ON a.order_id = b.order_id"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.account_id, COUNT(*) AS siblings FROM {TWINS} GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(DISTINCT b.account_id) AS other_accounts FROM {TWINS} "
        "GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(*) AS matches FROM {TWINS} GROUP BY a.account_id",
        f"SELECT a.account_id, COUNT(b.account_id) AS siblings FROM {TWINS} "
        "WHERE a.parent_id IS NOT NULL GROUP BY a.account_id",
        "WITH x AS (SELECT a.account_id, a.parent_id FROM stg.accounts AS a) SELECT a.account_id, "
        "COUNT(*) AS siblings FROM x AS a JOIN x AS b ON a.parent_id = b.parent_id "
        "GROUP BY a.account_id",
        f"SELECT a.product_id, b.product_id AS other_id, COUNT(*) AS orders FROM {BASKETS} "
        "GROUP BY a.product_id, b.product_id",
    ],
)
def test_self_join__that_counts_a_row_as_its_partner__is_high(query: str) -> None:
    assert "high" in list_severities(query)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT a.account_id, COUNT(*) AS siblings FROM {TWINS} AND a.account_id <> b.account_id "
        "GROUP BY a.account_id",
        f"SELECT a.product_id, b.product_id AS other_id, COUNT(*) AS orders FROM {BASKETS} "
        "AND a.product_id < b.product_id GROUP BY a.product_id, b.product_id",
        f"SELECT a.product_id, b.product_id AS other_id, COUNT(*) AS orders FROM {BASKETS} "
        "WHERE NOT a.product_id = b.product_id GROUP BY a.product_id, b.product_id",
        # The size of the group has the row itself.
        f"SELECT a.account_id, COUNT(*) AS group_size FROM {TWINS} GROUP BY a.account_id",
        # Two roles.
        f"SELECT a.account_id, COUNT(*) AS others FROM {TWINS} AND b.country = 'DE' "
        "GROUP BY a.account_id",
        "SELECT a.account_id, COUNT(*) AS others FROM stg.accounts AS a JOIN stg.accounts AS b "
        "ON a.account_id = b.account_id GROUP BY a.account_id",
        "SELECT a.account_id, COUNT(b.account_id) AS others FROM stg.accounts AS a "
        "JOIN stg.accounts AS b ON a.account_id = b.parent_id GROUP BY a.account_id",
    ],
)
def test_self_join__that_tells_the_rows_apart__is_quiet(query: str) -> None:
    assert list_severities(query) == []


BALANCE = (
    "WITH billed AS (SELECT i.account_id, SUM(i.amount) AS billed FROM stg.invoices AS i "
    "GROUP BY i.account_id), paid AS (SELECT i.account_id, SUM(p.paid) AS total "
    "FROM stg.payments AS p JOIN src.tickets AS i ON i.ticket_id = p.invoice_id "
    "GROUP BY i.account_id) "
    "SELECT a.account_id, {0} AS balance FROM stg.accounts AS a "
    "{1} JOIN billed ON billed.account_id = a.account_id "
    "LEFT JOIN paid ON paid.account_id = a.account_id{2}"
)


@pytest.mark.parametrize(
    "query",
    [
        BALANCE.format("billed.billed - paid.total", "LEFT", ""),
        BALANCE.format("billed.billed - paid.total", "INNER", ""),
        BALANCE.format("CAST(a.fee + paid.total AS DECIMAL(12, 2))", "LEFT", ""),
        BALANCE.format("ROUND(billed.billed + a.fee - paid.total, 2)", "LEFT", ""),
        "SELECT i.invoice_id, i.amount - p.paid AS open_amount FROM stg.invoices AS i "
        "LEFT JOIN stg.payments AS p ON p.invoice_id = i.invoice_id",
    ],
)
def test_amount__that_a_missing_total_makes_null__is_high(query: str) -> None:
    assert list_severities(query) == ["high"]


@pytest.mark.parametrize(
    "query",
    [
        BALANCE.format("COALESCE(billed.billed, 0) - COALESCE(paid.total, 0)", "LEFT", ""),
        BALANCE.format("COALESCE(billed.billed - paid.total, billed.billed, 0)", "LEFT", ""),
        BALANCE.format(
            "CASE WHEN paid.total IS NOT NULL THEN billed.billed - paid.total END", "LEFT", ""
        ),
        BALANCE.format(
            "billed.billed - paid.total",
            "LEFT",
            " WHERE paid.total IS NOT NULL AND billed.billed IS NOT NULL",
        ),
        BALANCE.format("paid.total + 1", "LEFT", ""),
        BALANCE.format("billed.billed / paid.total", "LEFT", ""),
        # What one system lacks is no amount.
        BALANCE.replace("AS balance", "AS difference").format("a.fee - paid.total", "LEFT", ""),
        # What is planned, or was there before, is no part of the amount.
        BALANCE.replace("paid AS", "budget AS")
        .replace("JOIN paid ON paid", "JOIN budget ON budget")
        .format("a.fee - budget.total", "LEFT", ""),
        # The total is of the same rows, so each row has one.
        "WITH t AS (SELECT i.account_id, SUM(i.amount) AS total FROM stg.invoices AS i "
        "GROUP BY i.account_id) SELECT i.invoice_id, t.total - i.amount AS rest "
        "FROM stg.invoices AS i LEFT JOIN t ON t.account_id = i.account_id",
        # Days and other values are not known without a partner.
        "SELECT i.invoice_id, p.paid_on - i.issued_on AS gap FROM stg.invoices AS i "
        "LEFT JOIN stg.payments AS p ON p.invoice_id = i.invoice_id",
        "SELECT i.invoice_id, a.seats - i.amount AS gap FROM stg.invoices AS i "
        "LEFT JOIN stg.accounts AS a ON a.account_id = i.account_id",
    ],
)
def test_amount__with_all_of_its_parts__is_quiet(query: str) -> None:
    assert list_severities(query) == []


def _find_joined_texts(folder: Path, one: str, *codes: str) -> int:
    lines = "".join(f"{code},{place}\n" for place, code in enumerate(codes))
    (folder / "plans.csv").write_text(f"code,price\n{lines}", encoding="utf-8")
    seed = load_sql_based_model(
        parse(
            "MODEL (name ref.plans, dialect spark, kind SEED (path 'plans.csv'), "
            "columns (code STRING, price INT), grain code)"
        ),
        path=folder / "plans.sql",
    )
    reader = load_sql_based_model(
        parse(
            "MODEL (name mart.prices, dialect spark, kind FULL); SELECT a.id, p.price "
            f"FROM raw.accounts AS a JOIN ref.plans AS p ON {one}"
        ),
        path=folder / "prices.sql",
    )
    project = ProjectView({seed.fqn: seed, reader.fqn: reader})
    return len(list(ImprobableExpression(project).find_observations(reader)))


@pytest.mark.parametrize(
    "condition",
    [
        "LOWER(a.plan) = p.code",
        "p.code = LOWER(TRIM(a.plan))",
        "LOWER(a.plan) = UPPER(p.code)",
        "LOWER(a.plan) <=> p.code",
        "CASE WHEN a.big THEN 'Pro' ELSE 'Team' END = p.code",
    ],
)
def test_texts__that_never_meet_a_seed__are_found(tmp_path: Path, condition: str) -> None:
    assert _find_joined_texts(tmp_path, condition, "PRO", "TEAM") == 1


@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ("a.plan = p.code", ("PRO", "TEAM")),
        ("UPPER(a.plan) = p.code", ("PRO", "TEAM")),
        ("LOWER(a.plan) = LOWER(p.code)", ("PRO", "TEAM")),
        ("LOWER(a.plan) = p.code", ("PRO", "free")),
        ("LOWER(a.plan) = p.code", ("1a", "2a")),
        ("CASE WHEN a.big THEN 'PRO' ELSE 'small' END = p.code", ("PRO", "TEAM")),
        # The text may be of a variable of the project.
        ("CASE WHEN a.big THEN 'north' ELSE 'south' END = p.code", ("PRO", "TEAM")),
        ("UPPER(a.plan) = LOWER(a.plan) AND a.plan = p.code", ("PRO", "TEAM")),
    ],
)
def test_texts__that_may_meet_a_seed__are_quiet(
    tmp_path: Path, condition: str, codes: tuple[str, ...]
) -> None:
    assert _find_joined_texts(tmp_path, condition, *codes) == 0


OWED = (
    "SELECT i.invoice_id, COALESCE(SUM(p.paid), 0) AS {0} FROM stg.invoices AS i "
    "LEFT JOIN stg.payments AS p ON p.invoice_id = i.invoice_id{1} GROUP BY i.invoice_id"
)


@pytest.mark.parametrize(
    ("where", "is_found"),
    [
        (" WHERE p.paid_on IS NULL", True),
        (" WHERE i.amount > 0 AND p.paid_on IS NULL", True),
        (" AND p.paid_on IS NULL", False),
        (" WHERE p.invoice_id IS NULL", False),
        (" WHERE p.paid_on IS NULL OR p.paid > 0", False),
        (" WHERE i.issued_on IS NULL", False),
    ],
)
def test_left_join__with_is_null_of_what_a_partner_has(where: str, is_found: bool) -> None:
    query = OWED.format("open_amount", where)

    assert bool(list_severities(query)) == is_found
