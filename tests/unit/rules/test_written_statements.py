"""Statements that a change writes into files, judged where nothing of it was loaded."""

from __future__ import annotations

import pytest

from ci_bot.worker.rules.run_rules import find_statement_findings
from tests.unit.rules.world import files

HEAD = "MODEL (name shop.a, kind FULL, dialect spark);\nSELECT 1 AS x;\n"
INSERT = "INSERT INTO shop.orders SELECT 1;\n"
DROP = "DROP TABLE shop.orders;\n"


def told(path: str, before: str | None, after: str | None) -> list[tuple[str, str, int | None]]:
    inputs = files({path: before}, {path: after})
    return [(item.rule, item.severity, item.line) for item in find_statement_findings(inputs)]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (HEAD, HEAD + INSERT, [("destructive-statement", "blocker", 3)]),
        (None, HEAD + INSERT, [("destructive-statement", "blocker", 3)]),
        (HEAD + INSERT, f"{HEAD}\n{INSERT}", []),  # moved
        (HEAD + INSERT, HEAD + INSERT + INSERT, [("destructive-statement", "blocker", 3)]),
        (HEAD + INSERT, HEAD + DROP, [("destructive-statement", "blocker", 3)]),
        (HEAD, HEAD + "ADD JAR /x.jar;\n", [("code-in-sql", "blocker", 3)]),
        (HEAD + DROP, HEAD, []),
        (HEAD + DROP, None, []),
    ],
)
def test_model__counts_each_statement_that_is_new(
    before: str | None, after: str | None, found: list[tuple[str, str, int | None]]
) -> None:
    assert told("models/a.sql", before, after) == found


def test_configuration__counts_too() -> None:
    after = "gateways: {}\nbefore_all:\n  - DROP TABLE shop.orders\n"
    assert told("config.yaml", "gateways: {}\n", after) == [("destructive-statement", "blocker", 3)]


def test_other_files__are_no_statements() -> None:
    assert told("docs/how.md", None, DROP) == []


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("s3_base_location", []),
        ("location", [("destructive-statement", "blocker", 1)]),
        ("write.location-provider.impl", [("destructive-statement", "blocker", 1)]),
    ],
)
def test_property__that_gives_each_table_its_own_directory__is_plain(
    key: str, found: list[tuple[str, str, int | None]]
) -> None:
    """SQLMesh's `s3_base_location` for Athena: it appends schema and physical table itself."""
    after = HEAD.replace("dialect spark", f"physical_properties ('{key}' = 's3://lake/x/')")
    assert told("models/a.sql", HEAD, after) == found
