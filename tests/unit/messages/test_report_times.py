"""Dates as users type them, and how reports write moments and models."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from ci_bot.errors import BadInput
from ci_bot.worker.messages import report_times
from ci_bot.worker.messages.names import MessageNames

DAY = 86_400_000
# 2024-02-01, a Thursday, half past ten.
NOW = 1_706_783_400_000
MIDNIGHT = NOW - 10 * 3_600_000 - 30 * 60_000


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (MIDNIGHT, "2024-02-01T00:00:00Z"),
        (NOW + 7, "2024-02-01T10:30:00.007000Z"),
        ("2024-02-01 12:00:00+02:00", "2024-02-01T10:00:00Z"),
        (datetime(2024, 2, 1, 5, tzinfo=timezone.utc), "2024-02-01T05:00:00Z"),
    ],
)
def test_iso__is_utc_with_a_fraction_only_where_there_is_one(moment: object, text: str) -> None:
    assert report_times.format_iso_in_message(moment) == text


def test_start_of_day__is_the_midnight_at_or_before() -> None:
    assert report_times.find_start_of_day(NOW) == MIDNIGHT
    assert report_times.find_start_of_day(MIDNIGHT) == MIDNIGHT
    assert report_times.to_milliseconds("2024-02-01") == MIDNIGHT
    assert (
        abs(report_times.read_milliseconds_now() - datetime.now(timezone.utc).timestamp() * 1000)
        < 60_000
    )


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        # A day is that whole day: from its midnight to the next.
        ("2024-02-01", MIDNIGHT, MIDNIGHT + DAY),
        ("2024-02-01 10:30:00", NOW, NOW),
        # So do words that count days: SQLMesh takes the midnight for them.
        ("1 week ago", MIDNIGHT - 7 * DAY, MIDNIGHT - 7 * DAY),
    ],
)
def test_parse__of_what_a_user_typed(text: str, start: int, end: int) -> None:
    assert report_times.parse_start(text, relative_to=NOW) == start
    assert report_times.parse_end(text, relative_to=NOW) == end


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("soon", "which is not a date"),
        ("2024-02-30T99", "which is not a date"),
        ("0201-01-01", "which is none of the years 1900 to 2200"),
        ("2201-01-01", "which is none of the years 1900 to 2200"),
    ],
)
def test_parse__of_what_is_no_date__names_the_input_and_what_to_write(text: str, why: str) -> None:
    with pytest.raises(BadInput) as start:
        report_times.parse_start(text, relative_to=NOW)
    with pytest.raises(BadInput) as end:
        report_times.parse_end(text, relative_to=NOW)
    with pytest.raises(BadInput) as preview:
        report_times.parse_start(text, relative_to=NOW, name="preview-start")

    assert why in start.value.message
    assert [str(found.value.message).split("`")[1] for found in (start, end, preview)] == [
        "start",
        "end",
        "preview-start",
    ]
    assert {found.value.reason_code for found in (start, end, preview)} == {"bad_date"}
    assert "2024-01-31" in (start.value.hint or "")


@pytest.mark.parametrize(
    ("catalog", "fqn", "shown"),
    [
        ("spark_catalog", '"spark_catalog"."shop"."orders"', "shop.orders"),
        ("spark_catalog", '"lake"."shop"."orders"', "lake.shop.orders"),
        ("spark_catalog", "spark_catalog.shop.orders", "shop.orders"),
        ("SNOW", "snow.shop.orders", "shop.orders"),
        ("lake", '"lakes"."shop"."orders"', "lakes.shop.orders"),
        (None, '"shop"."orders"', "shop.orders"),
    ],
)
def test_names__are_short_where_the_catalog_is_the_default(
    catalog: str | None, fqn: str, shown: str
) -> None:
    assert MessageNames(catalog, "spark").short_name(fqn) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("subquery of lake.shop.orders", "subquery of shop.orders"),
        (
            "`lake`.`shop`.`orders`.`id` = LAKE.shop.other.id",
            "`shop`.`orders`.`id` = shop.other.id",
        ),
        ('"lake"."shop"."orders"', '"shop"."orders"'),
        ("my.lake.orders, lakes.shop.orders", "my.lake.orders, lakes.shop.orders"),
        ("place = 'lake.shop' OR lake IS NULL", "place = 'lake.shop' OR lake IS NULL"),
    ],
)
def test_names__inside_of_a_text_are_short_too(text: str, shown: str) -> None:
    assert MessageNames("lake", "spark").shorten_in_text(text) == shown
    assert MessageNames(None, "spark").shorten_in_text(text) == text
