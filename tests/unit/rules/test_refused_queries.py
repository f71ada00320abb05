"""A query that Spark refuses is no Go: the build would end with an error."""

from __future__ import annotations

import pytest

from tests.unit.rules.spark_refusals import REFUSED, RUNS, TABLES, UNKNOWN
from tests.unit.rules.world import list_severities_of_new_model


def list_severities(text: str, *, dialect: str = "spark", others: str = "") -> list[str]:
    """The severities of the rule's findings for a new model."""
    stays = {"models/other.sql": others} if others else {}
    return list_severities_of_new_model(
        "query-refused", text, stays=stays, external=TABLES, more=f", dialect {dialect}"
    )


@pytest.mark.parametrize("text", REFUSED)
def test_query__that_spark_refuses__is_a_blocker(text: str) -> None:
    assert list_severities(text) == ["blocker"]


@pytest.mark.parametrize("text", RUNS)
def test_query__that_spark_runs__is_quiet(text: str) -> None:
    assert list_severities(text) == []


@pytest.mark.parametrize("text", UNKNOWN)
def test_function__that_spark_does_not_have__is_high(text: str) -> None:
    assert list_severities(text) == ["high"]


def test_function__that_another_model_calls__is_quiet() -> None:
    """The project registers it: prod has it."""
    other = (
        "MODEL (name mart.other, kind FULL); SELECT to_jsonb(o.amount) AS a FROM raw.orders AS o"
    )
    assert list_severities(UNKNOWN[0], others=other) == []


def test_function__that_is_a_macro__is_no_function_of_spark() -> None:
    assert list_severities("SELECT @SAFE_ADD(o.amount, 1) AS a FROM raw.orders AS o") == []


def test_query__of_another_engine__is_quiet() -> None:
    assert list_severities(REFUSED[0], dialect="duckdb") == []
