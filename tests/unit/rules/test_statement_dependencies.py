"""Models that statements, audits and code read, and that SQLMesh waits for by `depends_on` alone."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, seen

RULE = "statement-dependency-missing"
QUERY = "SELECT o.order_id FROM raw.orders AS o"
CACHED = "CACHE TABLE known AS SELECT customer_id FROM raw.customers"


def model(*parts: str, depends_on: str | None = None, audits: str = "") -> str:
    listed = f", depends_on ({depends_on})" if depends_on else ""
    checked = f", audits ({audits})" if audits else ""
    return f"MODEL (name mart.heavy, kind FULL{listed}{checked});\n" + ";\n".join(parts)


def list_findings(before: str | None, after: str, audits: str = "") -> list[tuple[str, str | None]]:
    files = {} if before is None else {"models/heavy.sql": before}
    inputs = change(files, {"models/heavy.sql": after}, audits_before=audits, audits_after=audits)
    return [(one.severity, one.subject) for one in seen(inputs, RULE)]


@pytest.mark.parametrize(
    "parts",
    [
        (CACHED, QUERY),
        ("CREATE TEMPORARY VIEW v AS SELECT * FROM raw.customers", QUERY),
        (QUERY, "INSERT INTO log.heavy SELECT COUNT(*) FROM raw.customers"),
        (
            QUERY,
            "DELETE FROM @this_model WHERE order_id IN (SELECT customer_id FROM raw.customers)",
        ),
        (
            QUERY,
            "MERGE INTO log.heavy AS t USING raw.customers AS s ON t.id = s.customer_id "
            "WHEN NOT MATCHED THEN INSERT *",
        ),
        (
            "JINJA_STATEMENT_BEGIN;\nCACHE TABLE known AS SELECT * FROM {{ 'raw' }}.customers;\n"
            "JINJA_END",
            QUERY,
        ),
        (
            QUERY,
            "ON_VIRTUAL_UPDATE_BEGIN;\nCREATE OR REPLACE VIEW r.v AS SELECT * FROM raw.customers;\n"
            "ON_VIRTUAL_UPDATE_END",
        ),
    ],
)
def test_lost_dependency__that_a_statement_reads_is_found(parts: tuple[str, ...]) -> None:
    before, after = model(*parts, depends_on="raw.customers"), model(*parts)
    assert list_findings(before, after) == [("high", "raw.customers")]
    assert list_findings(after, before) == [], "it comes back"


def test_lost_dependency__that_a_macro_of_sqlmesh_builds_the_name_of_is_found() -> None:
    parts = ("CACHE TABLE known AS SELECT customer_id FROM @{place}.customers", QUERY)
    before = model("@DEF(place, raw)", *parts, depends_on="raw.customers")
    assert list_findings(before, model("@DEF(place, raw)", *parts)) == [("high", "raw.customers")]


def test_lost_dependency__that_an_audit_reads_is_found() -> None:
    audit = (
        "AUDIT (name known_orders);\nSELECT t.order_id FROM @this_model AS t\n"
        "WHERE NOT EXISTS (SELECT 1 FROM raw.customers AS c WHERE c.customer_id = t.order_id)"
    )
    before = model(QUERY, depends_on="raw.customers", audits="known_orders")
    after = model(QUERY, audits="known_orders")
    assert list_findings(before, after, audits=audit) == [("high", "raw.customers")]


def test_lost_dependency__that_nothing_is_seen_to_read_is_a_note() -> None:
    assert list_findings(model(QUERY, depends_on="raw.customers"), model(QUERY)) == [
        ("medium", "raw.customers")
    ]


def test_lost_dependency__that_the_query_read_itself_is_none() -> None:
    joined = f"{QUERY} JOIN raw.customers AS c ON c.customer_id = o.customer_id"
    before = model(joined, depends_on="raw.customers, raw.orders")
    assert list_findings(before, model(QUERY, depends_on="raw.orders")) == []


def test_new_statement__reads_what_the_model_does_not_wait_for() -> None:
    assert list_findings(model(QUERY), model(CACHED, QUERY)) == [("high", "raw.customers")]
    assert list_findings(None, model(CACHED, QUERY)) == [("high", "raw.customers")]
    assert list_findings(None, model(CACHED, QUERY, depends_on="raw.customers")) == []


@pytest.mark.parametrize(
    "statement",
    [
        "CACHE TABLE known AS SELECT order_id FROM raw.orders",
        "REFRESH TABLE raw.customers",
        "MSCK REPAIR TABLE raw.customers",
        "OPTIMIZE raw.customers",
        "ANALYZE TABLE raw.customers COMPUTE STATISTICS",
        "GRANT SELECT ON TABLE raw.customers TO finance",
        "CACHE TABLE known AS SELECT 1 AS one FROM elsewhere.customers",
        "INSERT INTO raw.customers SELECT order_id FROM raw.orders",
    ],
)
def test_new_statement__that_reads_nothing_else_is_none(statement: str) -> None:
    assert list_findings(model(QUERY), model(statement, QUERY)) == []


def test_standing_statement__is_not_this_changes_doing() -> None:
    assert list_findings(model(CACHED, QUERY), model(CACHED, f"{QUERY} WHERE o.amount > 0")) == []
