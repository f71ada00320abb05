"""Columns of new models whose name says another thing than their formula."""

from __future__ import annotations

from functools import partial
from time import process_time

import pytest

from tests.unit.rules.world import EXTERNAL, list_severities_of_new_model

STAYS = {
    "models/trips.sql": (
        "MODEL (name stg.trips, kind FULL, grain (trip_id)); "
        "SELECT CAST(t.trip_id AS BIGINT) AS trip_id, CAST(t.rider_id AS BIGINT) AS rider_id, "
        "CAST(t.city AS STRING) AS city, CAST(t.day AS DATE) AS day, "
        "CAST(t.ended_at AS TIMESTAMP) AS ended_at, CAST(t.paid_at AS TIMESTAMP) AS paid_at, "
        "CAST(t.distance AS DOUBLE) AS distance, CAST(t.weight_kg AS DOUBLE) AS weight_kg, "
        "CAST(t.fare AS DOUBLE) AS fare, CAST(t.tax AS DOUBLE) AS tax, "
        "t.fare_cents, t.cents_per_kwh, t.kwh, t.minutes, t.seconds, t.power_w FROM src.trips AS t"
    )
}
TABLES = {
    **EXTERNAL,
    "src.trips": {
        "trip_id": "BIGINT", "rider_id": "BIGINT", "city": "STRING", "day": "DATE",
        "ended_at": "TIMESTAMP", "paid_at": "TIMESTAMP", "distance": "DOUBLE",
        "weight_kg": "DOUBLE", "fare": "DOUBLE", "tax": "DOUBLE", "fare_cents": "BIGINT",
        "cents_per_kwh": "INT", "kwh": "DOUBLE", "minutes": "INT", "seconds": "INT",
        "power_w": "DOUBLE",
    },
}  # fmt: skip
list_severities = partial(
    list_severities_of_new_model, "misnamed-column", stays=STAYS, external=TABLES
)
ROWS = "SELECT t.trip_id, {0} FROM stg.trips AS t"
CITIES = "SELECT t.city, {0} FROM stg.trips AS t GROUP BY t.city"
MONTHS = (
    "WITH m AS (SELECT DATE_TRUNC('MONTH', t.day) AS month, SUM(t.fare) AS fare FROM stg.trips AS t "
    "GROUP BY DATE_TRUNC('MONTH', t.day)) SELECT m.month, {0} FROM m"
)
ORDERED = "OVER (ORDER BY m.month)"


@pytest.mark.parametrize(
    "query",
    [
        ROWS.format("t.ended_at IS NULL AS is_ended"),
        ROWS.format("t.ended_at IS NOT NULL AS is_active"),
        ROWS.format("t.paid_at IS NULL AS paid"),
        ROWS.format("CASE WHEN t.ended_at IS NULL THEN TRUE ELSE FALSE END AS is_closed"),
        ROWS.format("CASE WHEN NOT t.ended_at IS NULL THEN 0 ELSE 1 END AS has_ended"),
        ROWS.format("IF(t.ended_at IS NULL, 'closed', 'open') AS state"),
        ROWS.format("CASE WHEN t.ended_at IS NOT NULL THEN 'active' ELSE 'ended' END AS state"),
        CITIES.format("COUNT_IF(t.ended_at IS NULL) AS ended"),
        CITIES.format("SUM(CASE WHEN t.ended_at IS NULL THEN 1 ELSE 0 END) AS ended_trips"),
        CITIES.format("COUNT(CASE WHEN t.ended_at IS NOT NULL THEN 1 END) AS open_trips"),
    ],
)
def test_flag__of_the_reverse(query: str) -> None:
    assert list_severities(query) != []


@pytest.mark.parametrize(
    "query",
    [
        ROWS.format("t.ended_at IS NOT NULL AS is_ended"),
        ROWS.format("t.ended_at IS NULL AS is_active"),
        ROWS.format("t.ended_at IS NULL AS not_ended"),
        ROWS.format("t.ended_at IS NULL AS is_new"),
        ROWS.format("t.city IS NULL AS is_closed"),
        ROWS.format("IF(t.ended_at IS NULL, 'open', 'closed') AS state"),
        ROWS.format("CASE WHEN t.ended_at IS NULL THEN 'on the way' ELSE 'there' END AS state"),
        CITIES.format("COUNT_IF(t.ended_at IS NULL) AS open_trips"),
        CITIES.format("SUM(CASE WHEN t.ended_at IS NULL THEN 0 ELSE 1 END) AS ended_trips"),
    ],
)
def test_flag__that_is_what_its_name_says(query: str) -> None:
    assert list_severities(query) == []


@pytest.mark.parametrize(
    "query",
    [
        ROWS.format("NTILE(4) OVER (ORDER BY t.fare, t.trip_id) AS decile"),
        ROWS.format("NTILE(10) OVER (ORDER BY t.fare, t.trip_id) AS fare_quartile"),
        CITIES.format("RANK() OVER (ORDER BY SUM(t.fare)) AS top_rank"),
        MONTHS.format(f"LAG(m.fare) {ORDERED} AS fare_last_year"),
        MONTHS.format(f"LAG(m.fare, 1) {ORDERED} AS fare_year_ago"),
        MONTHS.format(f"m.fare / LAG(m.fare) {ORDERED} AS growth_rate"),
        MONTHS.format(f"ROUND(100 * (m.fare / NULLIF(LAG(m.fare) {ORDERED}, 0)), 1) AS change_pct"),
    ],
)
def test_window__that_is_another_one_than_its_name_says(query: str) -> None:
    assert list_severities(query) != []


@pytest.mark.parametrize(
    "query",
    [
        ROWS.format("NTILE(10) OVER (ORDER BY t.fare, t.trip_id) AS decile"),
        ROWS.format("NTILE(4) OVER (ORDER BY t.fare, t.trip_id) AS price_class"),
        CITIES.format("RANK() OVER (ORDER BY SUM(t.fare) DESC) AS top_rank"),
        CITIES.format("RANK() OVER (ORDER BY SUM(t.fare)) AS cheapest_rank"),
        MONTHS.format(f"LAG(m.fare, 12) {ORDERED} AS fare_last_year"),
        MONTHS.format(f"LAG(m.fare) {ORDERED} AS fare_last_month"),
        MONTHS.format(f"m.fare / LAG(m.fare) {ORDERED} - 1 AS growth_rate"),
        MONTHS.format(f"m.fare / LAG(m.fare) {ORDERED} AS growth_factor"),
        "WITH y AS (SELECT YEAR(t.day) AS year, SUM(t.fare) AS fare FROM stg.trips AS t "
        "GROUP BY YEAR(t.day)) SELECT y.year, LAG(y.fare) OVER (ORDER BY y.year) AS fare_last_year "
        "FROM y",
    ],
)
def test_window__that_is_the_one_of_its_name(query: str) -> None:
    assert list_severities(query) == []


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("SUM(CASE WHEN t.day >= DATE_SUB(CURRENT_DATE(), 7) THEN t.fare END) AS fare_30d", True),
        ("COUNT_IF(t.day > CURRENT_DATE() - INTERVAL '30' DAYS) AS trips_last_7_days", True),
        ("SUM(IF(t.day >= DATE_ADD(CURRENT_DATE(), -28), t.fare, 0)) AS fare_90_days", True),
        ("SUM(CASE WHEN t.day > DATE_SUB(CURRENT_DATE(), 30) THEN t.fare END) AS fare_30d", False),
        ("SUM(CASE WHEN t.day >= DATE_SUB(CURRENT_DATE(), 29) THEN t.fare END) AS fare_30d", False),
        ("SUM(CASE WHEN t.day >= DATE_SUB(CURRENT_DATE(), 7) THEN t.fare END) AS fare_new", False),
        ("SUM(CASE WHEN t.fare > 7 THEN t.fare END) AS fare_30d", False),
    ],
)
def test_days__of_a_condition_and_of_the_name(value: str, is_found: bool) -> None:
    assert bool(list_severities(CITIES.format(value))) == is_found


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("CONCAT(YEAR(t.day), '-Q', MONTH(t.day)) AS quarter", True),
        ("'Q' || MONTH(t.day) AS quarter", True),
        ("CONCAT('Q', CAST(QUARTER(t.day) AS STRING)) AS quarter", False),
        ("CONCAT(YEAR(t.day), '-M', MONTH(t.day)) AS month", False),
    ],
)
def test_quarter__with_the_number_of_a_month(value: str, is_found: bool) -> None:
    assert bool(list_severities(ROWS.format(value))) == is_found


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        (ROWS.format("t.fare / NULLIF(t.tax, 0) AS tax_rate"), True),
        (ROWS.format("ROUND(100 * t.fare / t.tax, 1) AS tax_pct"), True),
        (CITIES.format("COUNT(*) / SUM(t.fare) AS fare_per_trip"), True),
        (CITIES.format("SUM(t.distance) / SUM(t.fare) AS fare_per_km"), True),
        (ROWS.format("t.tax / t.fare AS tax_rate"), False),
        (ROWS.format("t.tax / (t.fare + t.tax) AS tax_rate"), False),
        (CITIES.format("SUM(t.fare) / SUM(t.distance) AS fare_per_km"), False),
        (CITIES.format("SUM(t.fare) / COUNT(*) AS fare_per_trip"), False),
        (CITIES.format("COUNT(t.paid_at) / COUNT(t.ended_at) AS paid_share"), False),
    ],
)
def test_share__that_is_turned(query: str, is_found: bool) -> None:
    assert bool(list_severities(query)) == is_found


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("SUM(t.distance) / 1.609 AS distance_km", True),
        ("AVG(t.distance * 1.609) AS avg_miles", True),
        ("MAX(t.weight_kg / 2.2046) AS max_lbs", True),
        ("MAX(t.weight_kg * 1000) AS max_g", False),
        ("MAX(t.weight_kg / 1000) AS max_g", True),
        ("SUM(t.distance) * 1.609 AS distance_km", False),
        ("SUM(t.distance) / 1.609344 AS miles", False),
        ("MAX(t.weight_kg * 2.2046) AS max_lbs", False),
        ("SUM(t.fare) / 1000 AS fare_k", False),
        ("SUM(t.fare / 1000) AS fare_m", False),
    ],
)
def test_unit__by_the_wrong_way(value: str, is_found: bool) -> None:
    assert bool(list_severities(CITIES.format(value))) == is_found


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        (CITIES.format("COUNT(t.rider_id) AS riders"), True),
        (CITIES.format("COUNT(t.rider_id) AS rider_count"), True),
        (CITIES.format("COUNT(DISTINCT t.rider_id) AS riders"), False),
        (CITIES.format("COUNT(t.trip_id) AS trips"), False),
        (CITIES.format("COUNT(t.rider_id) AS trips_with_rider"), False),
    ],
)
def test_count__of_rows_that_is_called_one_of_things(query: str, is_found: bool) -> None:
    assert bool(list_severities(query)) == is_found


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ("SUM(t.fare_cents) AS fare_eur", True),
        ("SUM(t.kwh * t.cents_per_kwh + t.fare_cents) AS costs_usd", True),
        ("SUM(t.kwh) / NULLIF(SUM(t.minutes), 0) AS avg_kw", True),
        ("SUM(t.distance) / SUM(t.seconds) AS avg_kmh", True),
        ("SUM(t.distance) / SUM(t.minutes) AS km_per_hour", True),
        ("SUM(t.power_w) AS energy_wh", True),
        ("SUM(t.fare_cents) / 100 AS fare_eur", False),
        ("SUM(t.fare_cents) AS fare_cents", False),
        ("SUM(t.fare_cents) AS fare_eur_cents", False),
        ("60 * SUM(t.kwh) / NULLIF(SUM(t.minutes), 0) AS avg_kw", False),
        ("SUM(t.distance) / SUM(t.minutes) AS km_per_minute", False),
        ("SUM(t.power_w) / 60 AS energy_wh", False),
        ("SUM(t.power_w * t.minutes / 60) AS energy_wh", False),
        ("MAX(t.power_w) AS peak_w", False),
    ],
)
def test_measure__that_is_another_one(value: str, is_found: bool) -> None:
    assert bool(list_severities(CITIES.format(value))) == is_found


@pytest.mark.parametrize(
    "value",
    [
        "SUM(t.seconds) / 1e999999999 AS hours",
        "SUM(t.seconds) / {} AS hours",
        "SUM(CASE WHEN t.day >= DATE_SUB(CURRENT_DATE(), {}) THEN t.fare END) AS fare_30d",
        "SUM(CASE WHEN t.day > CURRENT_DATE() - INTERVAL '{}' DAY THEN t.fare END) AS fare_30d",
        "SUM(CASE WHEN t.day > CURRENT_DATE() - 7 THEN t.fare END) AS fare_{}d",
    ],
)
def test_number__of_any_length_takes_no_time(value: str) -> None:
    query = CITIES.format(value.format("9" * 5_000))
    began = process_time()

    list_severities(query)
    list_severities_of_new_model("improbable-expression", query, stays=STAYS, external=TABLES)

    assert process_time() - began < 5
