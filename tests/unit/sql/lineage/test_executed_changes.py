"""What running models on generated rows says against the column impact."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ci_bot.protocol.review_report import Impact
from ci_bot.worker.review.lineage_inputs import ReviewedModels, follow_changes_to_readers
from ci_bot.worker.rules import RuleInputs, find_missed_changes
from tests.unit.rules.world import models
from tests.unit.sql.lineage.real import NAMES, kinds_of, model

BASE = {
    "orders": model("stg.orders", "SELECT order_id, customer_id, status, amount FROM raw.orders"),
    "buyers": model("mart.buyers", "SELECT DISTINCT customer_id FROM stg.orders"),
    "totals": model("mart.totals", "SELECT SUM(amount) AS total FROM stg.orders"),
    "below": model("mart.below", "SELECT COUNT(*) AS n FROM mart.buyers"),
}
HEAD = {
    **BASE,
    "orders": model(
        "stg.orders", "SELECT order_id, customer_id, status, amount * 2 AS amount FROM raw.orders"
    ),
}


def changed_models(**more: Any) -> ReviewedModels:
    old, new = models(BASE), models(HEAD)
    changed = ReviewedModels(
        after=new,
        before={name: old[name] for name, kind in kinds_of(old, new).items() if kind == "direct"},
        kinds=kinds_of(old, new),
    )
    return replace(changed, **more)


def reached(found: Impact) -> dict[str, str]:
    return {entry.model: entry.reached for entry in found.indirect}


def follow(changed: ReviewedModels, missed: Mapping[str, str] | None = None) -> dict[str, str]:
    return reached(follow_changes_to_readers(changed, NAMES, lambda _readers: missed or {}))


def test_impact__that_execution_agrees_with__stays() -> None:
    known = {"mart.buyers": "no", "mart.totals": "yes", "mart.below": "no"}
    assert follow(changed_models()) == known
    agreeing = changed_models(executed={"stg.orders": frozenset({"amount"})})
    assert follow(agreeing) == known


@pytest.mark.parametrize("seen", ["status", None])
def test_impact__that_misses_what_an_execution_shows__is_of_all_columns(
    seen: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        found = follow(changed_models(executed={"stg.orders": frozenset({seen})}))
    assert found == {"mart.buyers": "unknown", "mart.totals": "yes", "mart.below": "unknown"}
    assert f"both versions give another {seen or 'number of rows'}" in caplog.text


def test_impact__that_a_reader_disproves__is_of_all_columns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed = changed_models()
    (edited,) = changed.before
    asked: list[str] = []

    def check(readers: Iterable[str]) -> dict[str, str]:
        asked.extend(NAMES.short_name(name) for name in readers)
        return {edited: "Run above it, mart.buyers gives another result."}

    with caplog.at_level(logging.WARNING):
        found = reached(follow_changes_to_readers(changed, NAMES, check))
    assert asked == ["mart.below", "mart.buyers"], "only those that are said to read no change"
    assert found["mart.buyers"] == found["mart.below"] == "unknown"
    assert "Run above it, mart.buyers gives another result." in caplog.text


def missed_by(reader: str) -> dict[str, str]:
    old, new = models(BASE), models(HEAD)
    kinds = kinds_of(old, new)
    direct = frozenset(name for name, kind in kinds.items() if kind == "direct")
    inputs = RuleInputs(old, new, direct=direct, names=NAMES)
    (name,) = (fqn for fqn in new if NAMES.short_name(fqn) == reader)
    return {NAMES.short_name(k): v for k, v in find_missed_changes(inputs, [name]).items()}


def test_reader__that_reads_the_change__is_found_by_running_both() -> None:
    """As if the impact had missed it: this one does not."""
    (told,) = missed_by("mart.totals").items()
    assert told == (
        "stg.orders",
        "Run above it on generated rows, mart.totals gives another result, and reads no column "
        "that is listed as changed.",
    )


@pytest.mark.parametrize("reader", ["mart.buyers", "mart.below"])
def test_reader__that_reads_no_change__disproves_nothing(reader: str) -> None:
    assert missed_by(reader) == {}
