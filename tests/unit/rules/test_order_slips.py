"""Order in time in new models: the row before, the first and the last one, and dates as texts."""

from __future__ import annotations

from functools import partial

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

STAYS = {
    "models/months.sql": (
        "MODEL (name core.months, kind FULL, grain (account_id, month)); SELECT m.account_id, "
        "m.month, m.mrr FROM src.months AS m"
    ),
    "models/tickets.sql": (
        "MODEL (name stg.tickets, kind FULL, grain ticket_id); SELECT t.ticket_id, t.opened_at, "
        "t.closed_at, t.first_reply_at, t.opened_on FROM src.tickets AS t"
    ),
    "models/done.sql": (
        "MODEL (name stg.done, kind FULL, grain ticket_id, audits (NOT_NULL(columns := (closed_at)))"
        "); SELECT t.ticket_id, t.opened_at, t.closed_at FROM src.tickets AS t"
    ),
}
TABLES = {
    **EXTERNAL,
    "src.months": {"account_id": "BIGINT", "month": "DATE", "mrr": "DECIMAL(12, 2)"},
    "src.tickets": {
        "ticket_id": "BIGINT",
        "opened_at": "TIMESTAMP",
        "closed_at": "TIMESTAMP",
        "first_reply_at": "TIMESTAMP",
        "opened_on": "DATE",
    },
}
list_severities = partial(
    list_severities_of_new_model, "improbable-expression", stays=STAYS, external=TABLES
)
MONTHS = "SELECT m.account_id, m.month, {0} FROM core.months AS m"
BEFORE = (
    "WITH x AS (SELECT m.account_id, m.month, m.mrr, LAG(m.mrr) OVER (PARTITION BY m.account_id "
    "ORDER BY m.month) AS last_mrr FROM core.months AS m) SELECT x.account_id, x.month, {0} FROM x"
)
BY_ACCOUNT = "OVER (PARTITION BY m.account_id ORDER BY m.month)"
BACKWARDS = "OVER (PARTITION BY m.account_id ORDER BY m.month DESC)"
TICKETS = "SELECT t.ticket_id, {0} FROM stg.tickets AS t"
VISITS = (
    "WITH e AS (SELECT t.opened_on, t.opened_at, LAG(t.opened_at) OVER (PARTITION BY t.opened_on "
    "ORDER BY t.opened_at, t.ticket_id) AS before_at FROM stg.tickets AS t) "
    "SELECT e.opened_on, {0} FROM e GROUP BY e.opened_on"
)
GAP = "TIMESTAMPDIFF(MINUTE, e.before_at, e.opened_at) > 30"
RANGE = "SELECT t.ticket_id FROM stg.tickets AS t WHERE {0}"
SLIPS = [
    MONTHS.format(f"m.mrr / SUM(m.mrr) {BY_ACCOUNT} AS mrr_share"),
    MONTHS.format(f"ROUND(100 * m.mrr / NULLIF(SUM(m.mrr) {BY_ACCOUNT}, 0), 1) AS mrr_pct"),
    MONTHS.format(f"m.mrr - LAG(m.mrr) {BACKWARDS} AS growth"),
    MONTHS.format(f"m.mrr - COALESCE(LEAD(m.mrr) {BY_ACCOUNT}, 0) AS mrr_change"),
    MONTHS.format(f"LEAD(m.mrr) {BY_ACCOUNT} AS previous_mrr"),
    BEFORE.replace("m.month) AS", "m.month DESC) AS").format("x.mrr - x.last_mrr AS growth"),
    BEFORE.format("(x.mrr - x.last_mrr) / x.mrr AS growth_rate"),
    BEFORE.format("100 * (x.mrr - x.last_mrr) / NULLIF(x.mrr, 0) AS growth_pct"),
    VISITS.format(f"SUM(CASE WHEN {GAP} THEN 1 ELSE 0 END) AS sessions"),
    VISITS.format(f"COUNT_IF({GAP}) AS visits"),
    TICKETS.format(
        "ROW_NUMBER() OVER (PARTITION BY t.opened_on ORDER BY DATE_FORMAT(t.opened_at, "
        "'dd.MM.yyyy') DESC, t.ticket_id) AS place"
    ),
    "SELECT MAX(DATE_FORMAT(t.opened_at, 'MM/yyyy')) AS last_month FROM stg.tickets AS t",
    RANGE.format("DATE_FORMAT(t.opened_at, 'dd.MM.yyyy') >= '01.02.2024'"),
    RANGE.format("t.opened_on >= DATE '2024-01-01' AND t.opened_on < DATE '2024-12-31'"),
    RANGE.format("t.opened_at >= '2024-06-01' AND t.opened_at < '2024-06-30'"),
    TICKETS.format("HOUR(CAST(t.opened_at AS DATE)) AS opened_hour"),
    TICKETS.format("DATE_FORMAT(t.opened_on, 'HH:mm') AS opened_time"),
    TICKETS.format(
        "CASE WHEN t.closed_at - t.opened_at > INTERVAL '2' DAY THEN 0 ELSE 1 END AS in_time"
    ),
    TICKETS.format("CASE WHEN DATEDIFF(t.closed_at, t.opened_at) > 2 THEN 0 ELSE 1 END AS in_time"),
]
NEAR_MISSES = [
    MONTHS.format("m.mrr / SUM(m.mrr) OVER (PARTITION BY m.account_id) AS mrr_share"),
    MONTHS.format(f"m.mrr / SUM(m.mrr) {BY_ACCOUNT} AS share_to_date"),
    MONTHS.format(
        f"m.mrr / SUM(m.mrr) {BY_ACCOUNT[:-1]} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED "
        "FOLLOWING) AS mrr_share"
    ),
    MONTHS.format("m.mrr / SUM(m.mrr) OVER (PARTITION BY m.month ORDER BY m.month) AS mrr_share"),
    MONTHS.format(f"m.mrr - LAG(m.mrr) {BY_ACCOUNT} AS growth"),
    MONTHS.format(f"m.mrr - LEAD(m.mrr) {BACKWARDS} AS growth"),
    MONTHS.format(f"m.mrr - LEAD(m.mrr) {BY_ACCOUNT} AS change_until_next"),
    MONTHS.format(f"LEAD(m.mrr) {BACKWARDS} AS previous_mrr"),
    BEFORE.format("(x.mrr - x.last_mrr) / x.last_mrr AS growth_rate"),
    BEFORE.format("x.mrr - x.last_mrr AS growth"),
    BEFORE.format("(x.mrr - x.last_mrr) / x.mrr AS new_part"),
    VISITS.format(f"1 + SUM(CASE WHEN {GAP} THEN 1 ELSE 0 END) AS sessions"),
    VISITS.format(f"SUM(CASE WHEN e.before_at IS NULL OR {GAP} THEN 1 ELSE 0 END) AS sessions"),
    VISITS.format(f"COUNT_IF(COALESCE({GAP}, TRUE)) AS sessions"),
    VISITS.format(f"COUNT_IF({GAP}) AS long_gaps"),
    TICKETS.format(
        "ROW_NUMBER() OVER (PARTITION BY t.opened_on ORDER BY DATE_FORMAT(t.opened_at, "
        "'yyyy-MM-dd') DESC, t.ticket_id) AS place"
    ),
    "SELECT MAX(DATE_FORMAT(t.opened_at, 'yyyyMM')) AS last_month FROM stg.tickets AS t",
    TICKETS.format("DATE_FORMAT(t.opened_at, 'dd.MM.yyyy') AS shown"),
    RANGE.format("t.opened_on >= DATE '2024-01-01' AND t.opened_on < DATE '2025-01-01'"),
    RANGE.format("t.opened_on >= DATE '2024-01-15' AND t.opened_on < DATE '2024-01-31'"),
    RANGE.format("t.opened_on >= DATE '2024-01-01' AND t.opened_on <= DATE '2024-12-31'"),
    "SELECT t.ticket_id, CASE WHEN t.opened_on >= DATE '2024-01-01' AND t.opened_on < DATE "
    "'2024-01-31' THEN 'a' WHEN t.opened_on >= DATE '2024-01-31' THEN 'b' END AS period "
    "FROM stg.tickets AS t",
    TICKETS.format("HOUR(t.opened_at) AS opened_hour"),
    TICKETS.format("DATE_FORMAT(t.opened_on, 'yyyy-MM-dd HH:mm') AS shown"),
    TICKETS.format(
        "CASE WHEN t.closed_at IS NULL THEN NULL WHEN t.closed_at - t.opened_at > INTERVAL '2' DAY "
        "THEN 0 ELSE 1 END AS in_time"
    ),
    TICKETS.format(
        "CASE WHEN t.closed_at - t.opened_at > INTERVAL '2' DAY THEN 1 ELSE 0 END AS is_late"
    ),
    "SELECT t.ticket_id, CASE WHEN t.closed_at - t.opened_at > INTERVAL '2' DAY THEN 0 ELSE 1 END "
    "AS in_time FROM stg.tickets AS t WHERE NOT t.closed_at IS NULL",
    "SELECT t.ticket_id, CASE WHEN t.closed_at - t.opened_at > INTERVAL '2' DAY THEN 0 ELSE 1 END "
    "AS in_time FROM stg.done AS t",
]


@pytest.mark.parametrize("query", SLIPS)
def test_moment__in_the_place_of_another__is_found(query: str) -> None:
    assert list_severities(query) != []


@pytest.mark.parametrize("query", NEAR_MISSES)
def test_moment__that_is_meant__is_quiet(query: str) -> None:
    assert list_severities(query) == []


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("UNIX_TIMESTAMP(t.opened_at) - UNIX_TIMESTAMP(t.first_reply_at) AS reply_seconds", True),
        ("UNIX_TIMESTAMP(t.first_reply_at) - UNIX_TIMESTAMP(t.opened_at) AS reply_seconds", False),
        ("DATEDIFF(t.opened_at, t.first_reply_at) AS reply_days", True),
        ("DATEDIFF(t.first_reply_at, t.opened_at) AS reply_days", False),
    ],
)
def test_duration__that_counts_backwards(value: str, is_found: bool) -> None:
    found = list_severities_of_new_model(
        "misnamed-column", TICKETS.format(value), stays=STAYS, external=TABLES
    )
    assert bool(found) is is_found
