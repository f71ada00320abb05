"""Acceptances in the ledger, on the databases that teams have it in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlmesh.core.config.connection import DuckDBConnectionConfig

from ci_bot.protocol.review_report import Acceptance
from ci_bot.worker.state_store.ledger import Ledger
from ci_bot.worker.state_store.ledger_schema import SCHEMA
from tests.integration.test_lease import database
from tests.lease_process import connection

__all__ = ["database"]

REPOSITORY = "octo/shop"


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    config: Any = DuckDBConnectionConfig(database=":memory:")
    if request.param == "postgres":
        config = connection(request.getfixturevalue("database"))
    adapter = config.create_engine_adapter()
    adapter.drop_schema(SCHEMA, ignore_if_not_exists=True, cascade=True)
    yield Ledger(adapter)
    adapter.close()


def acceptance(**more: Any) -> Acceptance:
    values: dict[str, Any] = {
        "rule": "join-changed",
        "model": "mart.a",
        "fingerprint": "a-b-c",
        "severity": "high",
        "subjects": ["", 'it\'s "quoted" \\ and ✓'],
        "by": "alice",
        "at": "2026-11-22T10:00:00Z",
        "reason": "it's -- one; row",
        "comment_id": 99,
    }
    return Acceptance(**values | more)


def accept(ledger: Ledger, item: Acceptance, *, pull: int = 7, before: str = "2026-01") -> None:
    ledger.prepare_tables()
    ledger.write_acceptance(REPOSITORY, pull, item, forget_before=before)


def test_acceptances__without_a_ledger_are_none(ledger: Ledger) -> None:
    assert ledger.list_acceptances(REPOSITORY, 7) == []


def test_acceptances__come_back_as_they_were_oldest_first(ledger: Ledger) -> None:
    second = acceptance(rule="filter-changed", at="2026-11-22T11:00:00Z")
    accept(ledger, second)
    accept(ledger, acceptance())
    assert ledger.list_acceptances(REPOSITORY, 7) == [acceptance(), second]


def test_acceptances__are_those_of_their_pull_request(ledger: Ledger) -> None:
    accept(ledger, acceptance())
    assert ledger.list_acceptances(REPOSITORY, 8) == []
    assert ledger.list_acceptances("octo/other", 7) == []


def test_acceptance__takes_the_place_of_the_one_before_it(ledger: Ledger) -> None:
    accept(ledger, acceptance())
    accept(ledger, acceptance(), pull=8)
    again = acceptance(fingerprint="d-e-f", at="2026-11-23T10:00:00Z")
    accept(ledger, again)
    assert ledger.list_acceptances(REPOSITORY, 7) == [again]
    assert ledger.list_acceptances(REPOSITORY, 8) == [acceptance()]


def test_acceptance__of_another_owner_stays_beside_it(ledger: Ledger) -> None:
    accept(ledger, acceptance(subjects=["One"]))
    accept(ledger, acceptance(subjects=["Two"], by="bob", at="2026-11-22T11:00:00Z"))
    assert [item.by for item in ledger.list_acceptances(REPOSITORY, 7)] == ["alice", "bob"]


def test_acceptances__that_are_old_are_forgotten(ledger: Ledger) -> None:
    accept(ledger, acceptance(at="2025-12-31T10:00:00Z"), pull=6)
    accept(ledger, acceptance(), before="2026-01-01T00:00:00Z")
    assert ledger.list_acceptances(REPOSITORY, 6) == []


def test_ledger__of_an_older_version_gets_the_table(ledger: Ledger) -> None:
    accept(ledger, acceptance())
    adapter: Any = ledger._adapter
    adapter.drop_table(f"{SCHEMA}._acceptances")
    assert ledger.list_acceptances(REPOSITORY, 7) == []
    accept(ledger, acceptance())
    assert ledger.list_acceptances(REPOSITORY, 7) == [acceptance()]
