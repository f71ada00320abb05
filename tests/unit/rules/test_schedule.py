"""When a model runs, until when, and what it waits for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlmesh.utils.metaprogramming import Executable

from tests.unit.rules.world import change, seen

QUERY = "SELECT o.order_id, CAST(o.order_ts AS DATE) AS day FROM raw.orders AS o"
INTERVAL = f"{QUERY} WHERE CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds"
RANGE = "INCREMENTAL_BY_TIME_RANGE (time_column day)"


def weights(rule: str, before: str, after: str) -> list[str]:
    def model(block: str) -> dict[str, str]:
        query = INTERVAL if "INCREMENTAL_BY" in block else QUERY
        return {"models/m.sql": f"MODEL (name mart.m, {block});\n{query}"}

    return [found.severity for found in seen(change(model(before), model(after)), rule)]


@pytest.mark.parametrize(
    ("kind", "before", "after", "weight"),
    [
        ("FULL", "@daily", "0 6 * * *", ["low"]),
        ("FULL", "@hourly", "0 */3 * * *", ["medium"]),
        ("FULL", "@daily", "@weekly", ["high"]),
        ("FULL", "@daily", "@hourly", ["high"]),
        ("FULL", "@daily", "0 */12 * * *", ["low"]),
        ("VIEW", "@daily", "*/5 * * * *", ["low"]),
        ("VIEW (materialized true)", "@daily", "*/5 * * * *", ["high"]),
        (RANGE, "@daily", "@hourly", ["high"]),
        (RANGE, "@daily", "0 6 * * *", ["low"]),
        ("FULL", "@daily", "@daily", []),
    ],
)
def test_schedule(kind: str, before: str, after: str, weight: list[str]) -> None:
    block = f"kind {kind}, cron '{{}}'"
    assert weights("cron-changed", block.format(before), block.format(after)) == weight


def test_schedule__in_another_time_zone() -> None:
    zone = "kind FULL, cron '@daily', cron_tz 'Europe/Berlin'"
    assert weights("cron-changed", "kind FULL, cron '@daily'", zone) == ["low"]


def test_interval__of_another_length_while_the_schedule_stays() -> None:
    hours = f"kind {RANGE}, cron '@daily', interval_unit hour"
    assert weights("cron-changed", f"kind {RANGE}, cron '@daily'", hours) == ["high"]


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        ("", ", end '2024-06-30'", ["high"]),
        (", end '2024-12-31'", ", end '2024-06-30'", ["high"]),
        (", end '2024-06-30'", ", end '2024-12-31'", []),
        (", end '2024-06-30'", "", []),
        (", end '2024-06-30'", ", end '2024-06-30', owner shop", []),
    ],
)
def test_end(before: str, after: str, weight: list[str]) -> None:
    assert weights("model-end-set", f"kind FULL{before}", f"kind FULL{after}") == weight


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        ("arrived(source := 'a')", None, ["high"]),
        ("arrived(source := 'a')", "arrived(source := 'b')", ["high"]),
        ("arrived(source := 'a')", "arrived()", ["high"]),
        ("arrived(source := 'a')", "arrived(source := 'a')", []),
        (None, "arrived(source := 'a')", []),
    ],
)
def test_signals(before: str | None, after: str | None, weight: list[str]) -> None:
    def block(signal: str | None) -> str:
        return "kind FULL, owner shop" if signal is None else f"kind FULL, signals ({signal})"

    assert weights("signal-removed", block(before), f"{block(after)}, description 'x'") == weight


SIGNAL_CODE = (
    "def arrived(batch, source: str = 'a', hours=6, *, strict=False):\n    return batch[:1]"
)


@pytest.mark.parametrize(
    ("before", "after", "weight"),
    [
        ("arrived(source := 'b')", "arrived(source := 'b', hours := 6)", []),
        ("arrived(hours := 6, source := 'a')", "arrived()", []),
        ("arrived()", "arrived(strict := FALSE)", []),
        ("arrived()", "arrived(hours := 0)", ["high"]),
        ("arrived()", "arrived(strict := TRUE)", ["high"]),
    ],
)
def test_signals__with_the_defaults_of_their_code(
    before: str, after: str, weight: list[str]
) -> None:
    def model(signal: str) -> dict[str, str]:
        return {"models/m.sql": f"MODEL (name mart.m, kind FULL, signals ({signal}));\n{QUERY}"}

    inputs = change(model(before), model(after))
    code = {"arrived": Executable(payload=SIGNAL_CODE)}
    with_code = [
        {name: one.copy(update={"python_env": code}) for name, one in side.items()}
        for side in (inputs.before, inputs.after)
    ]
    found = seen(replace(inputs, before=with_code[0], after=with_code[1]), "signal-removed")
    assert [item.severity for item in found] == weight


RESTATED = (
    "MODEL (name stg.m, kind INCREMENTAL_BY_TIME_RANGE (time_column order_ts{0}));\n"
    "SELECT o.order_id, o.order_ts FROM raw.orders AS o "
    "WHERE o.order_ts BETWEEN @start_ts AND @end_ts"
)
WEEKLY = ", auto_restatement_cron '@weekly'"


@pytest.mark.parametrize(
    ("more", "less"),
    [
        (WEEKLY, ""),
        (WEEKLY, WEEKLY + ", auto_restatement_intervals 30"),
        (WEEKLY + ", auto_restatement_intervals 30", WEEKLY + ", auto_restatement_intervals 3"),
        (WEEKLY, WEEKLY.replace("weekly", "monthly")),
        (WEEKLY, ", auto_restatement_cron '0 3 1 1 *'"),
    ],
)
def test_lookback__of_an_automatic_restatement_that_covers_less(more: str, less: str) -> None:
    def find_late_data(before: str, after: str) -> list[str]:
        files = ({"m.sql": RESTATED.format(kind)} for kind in (before, after))
        return [item.severity for item in seen(change(*files), "lookback-removed")]

    assert find_late_data(more, less) == ["high"]
    assert find_late_data(less, more) == []
    assert find_late_data(more, more) == []
