"""The time of the run in a model whose old intervals are computed by a run of another day."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, seen

BY_TIME = "INCREMENTAL_BY_TIME_RANGE (time_column order_ts)"
BY_KEY = "INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id)"
IN_INTERVAL = "o.order_ts BETWEEN @start_ts AND @end_ts"


def told(
    kind: str,
    *,
    columns: str = "o.order_id, o.order_ts, o.amount",
    where: str = IN_INTERVAL,
    also: str = "",
    jinja: bool = False,
) -> list[tuple[str, str]]:
    query = f"SELECT {columns} FROM raw.orders AS o WHERE {where}"
    if jinja:
        query = f"JINJA_QUERY_BEGIN;\n{query}\nJINJA_END;"
    text = f"MODEL (name mart.m, dialect spark, kind {kind}{also});\n{query}"
    return [
        (item.severity, item.evidence) for item in seen(change({}, {"m.sql": text}), "current-time")
    ]


@pytest.mark.parametrize("kind", [BY_TIME, BY_KEY])
@pytest.mark.parametrize(
    "where",
    [
        f"{IN_INTERVAL} AND o.loaded_at >= @execution_ts - INTERVAL 30 DAYS",
        f"{IN_INTERVAL} AND DATEDIFF(@execution_ds, o.loaded_at) <= 30",
        f"{IN_INTERVAL} AND @execution_dt < o.loaded_at",
        f"{IN_INTERVAL} AND o.loaded_at BETWEEN @execution_ds AND @end_ds",
        f"{IN_INTERVAL} AND NOT o.loaded_at <= @execution_ts",
        f"{IN_INTERVAL} AND YEAR(o.order_ts) = YEAR(@execution_date)",
        f"{IN_INTERVAL} AND UNIX_TIMESTAMP(o.loaded_at) > @execution_epoch - 86400",
    ],
)
def test_condition__that_leaves_out_old_rows(kind: str, where: str) -> None:
    ((severity, evidence),) = told(kind, where=where)
    assert severity == "high"
    assert evidence.startswith("`@execution_")
    assert "the time of the run and not of the interval" in evidence


@pytest.mark.parametrize(
    "column",
    [
        "DATEDIFF(@execution_ds, o.order_ts) AS age",
        "COALESCE(o.loaded_at, @execution_ts) AS loaded_at",
        "CASE WHEN o.loaded_at < @execution_ts THEN 1 ELSE 0 END AS late",
    ],
)
def test_value__that_depends_on_the_run(column: str) -> None:
    ((severity, evidence),) = told(BY_TIME, columns=f"o.order_id, o.order_ts, {column}")
    assert severity == "high"
    assert f"column {column.rpartition(' ')[2]}" in evidence


@pytest.mark.parametrize("kind", [BY_TIME, BY_KEY])
@pytest.mark.parametrize(
    "where",
    [
        IN_INTERVAL,
        f"{IN_INTERVAL} AND o.loaded_at <= @execution_ts",
        f"{IN_INTERVAL} AND (@execution_ts > o.loaded_at AND o.amount > 0)",
        f"{IN_INTERVAL} AND o.loaded_at < CAST(@execution_ds AS TIMESTAMP) + INTERVAL 1 DAY",
        "o.order_ts BETWEEN @start_ts AND LEAST(@end_ts, @execution_ts)",
        f"{IN_INTERVAL} AND o.loaded_at BETWEEN @start_ts AND @execution_ts",
    ],
)
def test_condition__that_only_keeps_out_the_future(kind: str, where: str) -> None:
    assert told(kind, where=where) == []


@pytest.mark.parametrize(
    "also", ["@execution_ts", "CAST(@execution_ds AS DATE)", "UNIX_DATE(@execution_date)"]
)
def test_stamp__of_when_a_row_was_written(also: str) -> None:
    assert told(BY_KEY, columns=f"o.order_id, o.amount, {also} AS written_at") == []


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        ("FULL", ""),
        ("VIEW", ""),
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id, forward_only true)", ""),
        ("INCREMENTAL_BY_PARTITION", ", partitioned_by (order_ts)"),  # always forward-only
    ],
)
def test_models__whose_old_intervals_no_other_run_computes(kind: str, also: str) -> None:
    assert told(kind, where="o.loaded_at >= @execution_ts - INTERVAL 30 DAYS", also=also) == []


@pytest.mark.parametrize(
    ("kind", "clock", "severity"),
    [
        (
            "SCD_TYPE_2_BY_TIME (unique_key order_id, updated_at_name seen_at)",
            "@execution_ts",
            "high",
        ),
        (
            "SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [amount, seen_at])",
            "@execution_ts",
            "high",
        ),
        ("SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns *)", "@execution_ts", "high"),
        ("SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [amount])", "@execution_ts", None),
        (
            "SCD_TYPE_2_BY_TIME (unique_key order_id, updated_at_name loaded_at)",
            "@execution_ts",
            None,
        ),
        # The clock itself does the same.
        (
            "SCD_TYPE_2_BY_TIME (unique_key order_id, updated_at_name seen_at)",
            "CURRENT_TIMESTAMP()",
            "high",
        ),
        ("SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns *)", "CURRENT_TIMESTAMP()", "high"),
        (
            "SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [amount])",
            "CURRENT_TIMESTAMP()",
            "medium",
        ),
    ],
)
def test_versions__that_are_made_by_the_time_of_the_run(
    kind: str, clock: str, severity: str | None
) -> None:
    columns = f"o.order_id, o.amount, o.loaded_at, {clock} AS seen_at"
    found = told(kind, columns=columns, where="TRUE")
    assert [item for item, _ in found] == ([severity] if severity else [])
    if severity and clock.startswith("@"):
        assert "every run closes all rows and opens them again" in found[0][1]


IN_TEMPLATE = "o.order_ts BETWEEN '{{ start_ds }}' AND '{{ end_ds }}'"


@pytest.mark.parametrize(
    ("columns", "where", "place"),
    [
        ("o.order_id, o.order_ts", "o.loaded_at > DATE_SUB('{{ execution_ds }}', 30)", "WHERE"),
        ("o.order_id, o.order_ts", "UNIX_TIMESTAMP(o.loaded_at) > {{ execution_epoch }}", "WHERE"),
        ("o.order_id, o.order_ts", "o.amount > {{ execution_millis }} - o.amount", "WHERE"),
        ("o.order_ts, DATEDIFF('{{ execution_date }}', o.order_ts) AS age", "TRUE", "column age"),
        ("o.order_ts, DATEDIFF('{{ latest_ds }}', o.order_ts) AS age", "TRUE", "column age"),
        ("o.order_id, o.order_ts, '{{ execution_ts }}' AS written_at", "TRUE", None),
        ("o.order_id, o.order_ts", "o.loaded_at <= '{{ execution_ts }}'", None),
        ("o.order_id, o.order_ts", "o.loaded_at > '{{ start_ts }}'", None),
    ],
)
def test_template__that_depends_on_the_run(columns: str, where: str, place: str | None) -> None:
    condition = f"{IN_TEMPLATE} AND {where}"
    found = told(BY_TIME, columns=columns, where=condition, jinja=True)
    assert [severity for severity, _ in found] == (["high"] if place else [])
    assert all(f"(in {place})" in evidence for _, evidence in found)
    assert told("FULL", columns=columns, where=condition, jinja=True) == []


def test_latest__is_the_time_of_the_run_too() -> None:
    ((severity, evidence),) = told(BY_TIME, where=f"{IN_INTERVAL} AND o.loaded_at > @latest_ds")
    assert severity == "high"
    assert evidence.startswith("`@latest_ds`")
