"""Slips in new models over units, zones, flags and missing values: percents as parts of one, hours
of UTC beside local days, averages of shares, open ends of a range, late data.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.slips.improbable_expressions import ImprobableExpression
from tests.unit.rules.world import list_severities_of_new_model

STAYS = {
    "models/scans.sql": (
        "MODEL (name stg.scans, kind INCREMENTAL_BY_TIME_RANGE (time_column scanned_on, lookback 3), "
        "grain scan_id); "
        "SELECT s.scan_id, s.ticket_no, s.gate, CAST(s.scanned_at AS TIMESTAMP) AS scanned_at, "
        "CAST(FROM_UTC_TIMESTAMP(s.scanned_at, 'Europe/Rome') AS DATE) AS scanned_on "
        "FROM gates.scans AS s "
        "WHERE CAST(FROM_UTC_TIMESTAMP(s.scanned_at, 'Europe/Rome') AS DATE) "
        "BETWEEN @start_ds AND @end_ds"
    ),
    "models/visits.sql": (
        "MODEL (name core.visits, kind INCREMENTAL_BY_TIME_RANGE (time_column scanned_on, "
        "lookback 3)); SELECT s.scanned_on, COUNT(*) AS n FROM stg.scans AS s "
        "WHERE s.scanned_on BETWEEN @start_ds AND @end_ds GROUP BY s.scanned_on"
    ),
    "models/days.sql": (
        "MODEL (name stg.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day), grain day); "
        "SELECT d.day, d.on_hand, d.entries FROM shop.days AS d "
        "WHERE d.day BETWEEN @start_ds AND @end_ds"
    ),
    "models/lines.sql": (
        "MODEL (name stg.lines, kind FULL, grain (order_id, line_no), "
        "description 'refunded is NULL until somebody asks; received_on is NULL while it is open. "
        "vip is never NULL.'); "
        "SELECT l.order_id, l.line_no, l.part_no, l.qty, l.uom, l.price, l.price_per, l.currency, "
        "l.discount_pct, l.tax_pct, l.torque_nm, l.length_name, l.refunded, l.vip, l.gift, "
        "l.ordered_on, l.promised_on, l.received_on, l.started_at, l.ended_at, "
        "CAST(l.received_on IS NULL AS BOOLEAN) AS is_open FROM shop.lines AS l"
    ),
    "models/orders.sql": (
        "MODEL (name stg.orders, kind FULL, grain order_id); "
        "SELECT o.order_id, o.channel, o.ordered_on FROM shop.orders AS o"
    ),
    "models/firsts.sql": (
        "MODEL (name core.firsts, kind FULL, grain order_id); SELECT l.order_id, "
        "MIN(l.line_no) AS line_no FROM stg.lines AS l GROUP BY l.order_id"
    ),
    "models/net.sql": (
        "MODEL (name core.net, kind FULL, grain (order_id, line_no)); "
        "SELECT l.order_id, l.line_no, l.qty * (100 - l.discount_pct) / 100 AS net "
        "FROM stg.lines AS l WHERE NOT COALESCE(l.gift, FALSE)"
    ),
    "models/tiers.sql": (
        "MODEL (name hist.tiers, kind SCD_TYPE_2_BY_COLUMN (unique_key part_no, columns (tier)), "
        "grain (part_no, valid_from)); SELECT t.part_no, t.tier, t.place FROM shop.tiers AS t"
    ),
    "models/load.sql": (
        "MODEL (name mart.load, kind FULL, grain (day, slot)); "
        "WITH booked AS (SELECT l.ordered_on AS day, l.part_no AS slot, SUM(l.qty) AS persons "
        "FROM stg.lines AS l GROUP BY l.ordered_on, l.part_no) "
        "SELECT b.day, b.slot, b.persons, c.capacity, 100.0 * b.persons / c.capacity AS load_pct, "
        "b.persons / 60 AS rate_per_minute, 100.0 * b.persons / c.width AS width_pct "
        "FROM booked AS b JOIN shop.slots AS c ON c.slot = b.slot"
    ),
}
TABLES = {
    "gates.scans": {
        "scan_id": "BIGINT", "ticket_no": "STRING", "gate": "STRING", "scanned_at": "TIMESTAMP",
    },
    "shop.days": {"day": "DATE", "on_hand": "INT", "entries": "INT"},
    "shop.lines": {
        "order_id": "BIGINT", "line_no": "INT", "part_no": "STRING", "qty": "INT", "uom": "STRING",
        "price": "DECIMAL(12,4)", "price_per": "INT", "currency": "STRING",
        "discount_pct": "DECIMAL(5,2)", "tax_pct": "DECIMAL(5,2)", "torque_nm": "STRING",
        "length_name": "STRING", "refunded": "BOOLEAN", "vip": "BOOLEAN", "gift": "BOOLEAN",
        "ordered_on": "DATE", "promised_on": "DATE", "received_on": "DATE",
        "started_at": "TIMESTAMP", "ended_at": "TIMESTAMP",
    },
    "shop.orders": {"order_id": "BIGINT", "channel": "STRING", "ordered_on": "DATE"},
    "shop.tiers": {"part_no": "STRING", "tier": "STRING", "place": "STRING"},
    "shop.slots": {"slot": "STRING", "capacity": "INT", "width": "INT"},
}  # fmt: skip
IMPROBABLE = "improbable-expression"
list_severities = partial(list_severities_of_new_model, stays=STAYS, external=TABLES)
LINES = "SELECT l.order_id, l.line_no, {0} AS x FROM stg.lines AS l"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        # `core.net` takes the same column from 100.
        ("l.price * (1 - l.discount_pct)", ["high"]),
        ("l.price / (1 + COALESCE(l.discount_pct, 0))", ["high"]),
        ("l.price * (1 - l.discount_pct / 100)", []),
        ("l.price * (100 - l.discount_pct) / 100", []),
        # Nothing shows which of both this one is.
        ("l.price * (1 - l.tax_pct)", []),
        ("l.qty + 1", []),
        ("1 - l.qty", []),
        # DATEDIFF of moments counts midnights.
        ("DATEDIFF(l.ended_at, l.started_at) * 24", ["high"]),
        ("1440 * DATEDIFF(l.ended_at, l.started_at)", ["high"]),
        ("DATEDIFF(l.received_on, l.ordered_on) * 24", []),
        ("TIMESTAMPDIFF(HOUR, l.started_at, l.ended_at) * 24", []),
        ("DATEDIFF(CAST(l.ended_at AS DATE), CAST(l.started_at AS DATE)) * 8", []),
        ("DATEDIFF(l.ended_at, l.started_at)", []),
        # Numbers of the calendar and the clock begin again.
        ("MONTH(l.received_on) - MONTH(l.ordered_on)", ["high"]),
        ("HOUR(l.ended_at) - HOUR(l.started_at)", ["high"]),
        ("(YEAR(l.received_on) - YEAR(l.ordered_on)) * 12 + MONTH(l.received_on) "
         "- MONTH(l.ordered_on)", []),
        ("(YEAR(l.received_on) - YEAR(l.ordered_on)) * 12 + (MONTH(l.received_on) "
         "- MONTH(l.ordered_on))", []),
        ("MONTHS_BETWEEN(l.received_on, l.ordered_on)", []),
        ("MONTH(l.ordered_on) - 1", []),
        ("YEAR(l.received_on) - YEAR(l.ordered_on)", []),
    ],
)  # fmt: skip
def test_value__in_another_unit(item: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, LINES.format(item)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT s.scanned_on, HOUR(s.scanned_at) AS hour, COUNT(*) AS n FROM stg.scans AS s "
         "GROUP BY s.scanned_on, HOUR(s.scanned_at)", ["high"]),
        ("SELECT s.scanned_on, EXTRACT(HOUR FROM s.scanned_at) AS hour, s.scan_id "
         "FROM stg.scans AS s", ["high"]),
        ("SELECT s.scanned_on, HOUR(FROM_UTC_TIMESTAMP(s.scanned_at, 'Europe/Rome')) AS hour, "
         "s.scan_id FROM stg.scans AS s", []),
        ("SELECT HOUR(s.scanned_at) AS hour, COUNT(*) AS n FROM stg.scans AS s "
         "GROUP BY HOUR(s.scanned_at)", []),
        ("SELECT CAST(s.scanned_at AS DATE) AS day, HOUR(s.scanned_at) AS hour, s.scan_id "
         "FROM stg.scans AS s", []),
        # The hour of another moment.
        ("SELECT s.scanned_on, HOUR(l.started_at) AS hour, s.scan_id FROM stg.scans AS s "
         "JOIN stg.lines AS l ON l.order_id = s.scan_id AND l.line_no = 1", []),
    ],
)  # fmt: skip
def test_hour__of_utc_beside_a_local_day(text: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("AVG(l.load_pct)", ["high"]),
        ("ROUND(AVG(l.load_pct), 1)", ["high"]),
        ("100.0 * SUM(l.persons) / SUM(l.capacity)", []),
        ("MAX(l.load_pct)", []),
        # Divided by a constant it is the same value in another unit.
        ("AVG(l.rate_per_minute)", []),
        # What it is a share of is not shown, so nobody can weigh it.
        ("AVG(l.width_pct)", []),
        ("SUM(l.load_pct * l.capacity) / SUM(l.capacity)", []),
    ],
)
def test_average__of_shares_beside_their_totals(item: str, expected: list[str]) -> None:
    text = f"SELECT l.slot, {item} AS x FROM mart.load AS l GROUP BY l.slot"
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("MAX(l.torque_nm)", ["high"]),
        ("MIN(l.torque_nm)", ["high"]),
        ("MAX(TRY_CAST(l.torque_nm AS DECIMAL(6, 2)))", []),
        ("MAX(l.part_no)", []),
        # A name that ends with a unit is that of a number.
        ("MAX(l.length_name)", []),
        ("MAX(l.price)", []),
        ("COUNT(l.refunded)", ["high"]),
        ("COUNT(l.vip) / COUNT(*)", ["high"]),
        ("COUNT_IF(l.refunded)", []),
        # A share of those that are known.
        ("COUNT_IF(l.refunded) / COUNT(l.refunded)", []),
        ("COUNT(l.received_on)", []),
        ("COUNT(l.qty)", []),
    ],
)
def test_extreme_of_a_text_and_count_of_a_flag(item: str, expected: list[str]) -> None:
    text = f"SELECT l.order_id, {item} AS x FROM stg.lines AS l GROUP BY l.order_id"
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("NOT l.refunded", ["high"]),
        # `core.net` fills its NULL.
        ("NOT l.gift", ["high"]),
        ("NOT COALESCE(l.refunded, FALSE)", []),
        ("l.refunded IS NOT TRUE", []),
        ("l.refunded", []),
        ("NOT l.vip", []),
        # IS NULL is true or false.
        ("NOT l.is_open", []),
        ("NOT l.received_on IS NULL", []),
    ],
)
def test_flag__that_is_denied_and_may_be_missing(condition: str, expected: list[str]) -> None:
    text = f"SELECT l.order_id, l.line_no FROM stg.lines AS l WHERE {condition}"
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("l.ordered_on BETWEEN t.valid_from AND t.valid_to", ["high"]),
        ("l.ordered_on >= t.valid_from AND l.ordered_on < t.valid_to", ["high"]),
        ("l.ordered_on >= t.valid_from AND (l.ordered_on < t.valid_to OR t.valid_to IS NULL)", []),
        ("l.ordered_on >= t.valid_from "
         "AND l.ordered_on < COALESCE(t.valid_to, TIMESTAMP '9999-12-31')", []),
        ("t.valid_to IS NULL", []),
    ],
)  # fmt: skip
def test_range__with_an_open_end(condition: str, expected: list[str]) -> None:
    text = (
        "SELECT l.order_id, l.line_no, t.tier FROM stg.lines AS l "
        f"LEFT JOIN hist.tiers AS t ON t.part_no = l.part_no AND {condition}"
    )
    assert list_severities(IMPROBABLE, text) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("CASE WHEN l.received_on > l.promised_on THEN 'LATE' ELSE 'ON TIME' END", ["high"]),
        ("CASE WHEN l.received_on IS NULL THEN 'OPEN' WHEN l.received_on > l.promised_on "
         "THEN 'LATE' ELSE 'ON TIME' END", []),
        # A count of what is late, and a comparison with today: what is open belongs to ELSE.
        ("CASE WHEN l.received_on > l.promised_on THEN 1 ELSE 0 END", []),
        ("CASE WHEN l.received_on < CURRENT_DATE THEN 'CLOSED' ELSE 'OPEN' END", []),
        ("CASE WHEN l.promised_on > l.ordered_on THEN 'LATER' ELSE 'AT ONCE' END", []),
        ("CASE WHEN l.received_on > l.promised_on THEN 'LATE' END", []),
    ],
)  # fmt: skip
def test_label__of_rows_without_a_date(item: str, expected: list[str]) -> None:
    assert list_severities(IMPROBABLE, LINES.format(item)) == expected


def test_label__of_rows_that_have_the_date__is_quiet() -> None:
    item = "CASE WHEN l.received_on > l.promised_on THEN 'LATE' ELSE 'ON TIME' END"
    text = LINES.format(item) + " WHERE l.received_on >= '2025-01-01'"
    assert list_severities(IMPROBABLE, text) == []


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("LAG(s.scanned_at) OVER (ORDER BY s.scanned_at)", ["high"]),
        ("LAG(s.scanned_at) OVER (PARTITION BY s.ticket_no ORDER BY s.scanned_at, s.scan_id)", []),
        # In the order of the key every row has its place.
        ("LAG(s.scanned_at) OVER (ORDER BY s.scan_id)", []),
        ("SUM(1) OVER (ORDER BY s.scanned_at)", []),
    ],
)
def test_neighbour__of_another_thing(window: str, expected: list[str]) -> None:
    text = f"SELECT s.scan_id, s.ticket_no, {window} AS x FROM stg.scans AS s"
    assert list_severities(IMPROBABLE, text) == expected


def test_neighbour__where_no_thing_is_shown__is_quiet() -> None:
    text = (
        "SELECT s.scan_id, s.gate, LAG(s.scanned_at) OVER (ORDER BY s.scanned_at) AS x "
        "FROM stg.scans AS s"
    )
    assert list_severities(IMPROBABLE, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT l.order_id, SUM(l.qty) AS qty FROM stg.lines AS l GROUP BY l.order_id", ["high"]),
        ("SELECT SUM(ABS(l.qty)) AS qty FROM stg.lines AS l", ["high"]),
        ("SELECT l.order_id, l.uom, SUM(l.qty) AS qty FROM stg.lines AS l "
         "GROUP BY l.order_id, l.uom", []),
        # A part has one unit.
        ("SELECT l.part_no, SUM(l.qty) AS qty FROM stg.lines AS l GROUP BY l.part_no", []),
        ("SELECT l.order_id, MAX(l.uom) AS uom, SUM(l.qty) AS qty FROM stg.lines AS l "
         "GROUP BY l.order_id", []),
        ("SELECT SUM(l.qty) AS pieces FROM stg.lines AS l WHERE l.uom = 'pcs'", []),
        ("SELECT l.order_id, SUM(l.line_no) AS n FROM stg.lines AS l GROUP BY l.order_id", []),
        ("SELECT l.part_no, l.currency, SUM(l.qty * l.price) AS spend FROM stg.lines AS l "
         "GROUP BY l.part_no, l.currency", ["high"]),
        ("SELECT l.part_no, l.currency, SUM(l.qty * l.price / l.price_per) AS spend "
         "FROM stg.lines AS l GROUP BY l.part_no, l.currency", []),
        ("SELECT l.part_no, l.currency, SUM(l.qty * l.price) AS spend FROM stg.lines AS l "
         "WHERE l.price_per = 1 GROUP BY l.part_no, l.currency", []),
        ("SELECT l.part_no, l.currency, MAX(l.price) AS price FROM stg.lines AS l "
         "GROUP BY l.part_no, l.currency", []),
        ("SELECT l.part_no, AVG(l.price / l.price_per) AS price FROM stg.lines AS l "
         "GROUP BY l.part_no", ["high"]),
        ("SELECT l.part_no, SUM(l.price / 100) AS price FROM stg.lines AS l GROUP BY l.part_no",
         ["high"]),
        ("SELECT l.part_no, SUM(l.price / 1.08) AS price FROM stg.lines AS l GROUP BY l.part_no",
         []),
        ("SELECT l.part_no, l.currency, AVG(l.price / l.price_per) AS price FROM stg.lines AS l "
         "GROUP BY l.part_no, l.currency", []),
    ],
)  # fmt: skip
def test_total__of_several_units(text: str, expected: list[str]) -> None:
    assert list_severities("mixed-currencies", text) == expected


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("SELECT l.order_id, l.line_no, o.channel FROM stg.lines AS l "
         "JOIN stg.orders AS o ON o.order_id = l.order_id", "order_id", ["high"]),
        ("SELECT o.order_id, o.channel FROM stg.lines AS l "
         "LEFT JOIN stg.orders AS o ON o.order_id = l.order_id", "order_id", ["high"]),
        ("SELECT l.order_id, l.line_no, o.channel FROM stg.lines AS l "
         "JOIN stg.orders AS o ON o.order_id = l.order_id", "(order_id, line_no)", ["medium"]),
        # The join chooses one line of an order.
        ("SELECT l.order_id, l.qty FROM stg.lines AS l "
         "JOIN core.firsts AS f ON f.order_id = l.order_id AND f.line_no = l.line_no",
         "order_id", ["medium"]),
        ("SELECT l.order_id, l.qty FROM stg.lines AS l "
         "JOIN stg.orders AS o ON o.order_id = l.order_id WHERE l.line_no = 1", "order_id", ["medium"]),
    ],
)  # fmt: skip
def test_merge_key__of_rows_that_a_join_widens(text: str, key: str, expected: list[str]) -> None:
    """The grain hints that the key is unique, unless the rows contradict it."""
    kind = f"INCREMENTAL_BY_UNIQUE_KEY (unique_key {key})"
    more = f", grain {key}"
    assert list_severities("unique-key-no-audit", text, kind=kind, more=more) == expected


BY_DAY = "INCREMENTAL_BY_TIME_RANGE (time_column {0}{1})"
GATES = (
    "SELECT s.scanned_on, s.gate, COUNT(*) AS n FROM stg.scans AS s "
    "WHERE s.scanned_on BETWEEN @start_ds AND @end_ds GROUP BY s.scanned_on, s.gate"
)


@pytest.mark.parametrize(
    ("kind", "text", "more", "expected"),
    [
        (BY_DAY.format("scanned_on", ""), GATES, "", ["high"]),
        (BY_DAY.format("scanned_on", ", lookback 1"), GATES, "", ["high"]),
        (BY_DAY.format("scanned_on", ", lookback 3"), GATES, "", []),
        # All of it is computed again, or the source waits for nothing.
        ("FULL", "SELECT s.gate, COUNT(*) AS n FROM stg.scans AS s GROUP BY s.gate", "", []),
        (BY_DAY.format("day", ""), "SELECT d.day, d.entries FROM stg.days AS d "
         "WHERE d.day BETWEEN @start_ds AND @end_ds", "", []),
        # Three days are no three months.
        (BY_DAY.format("scanned_on", ""), GATES, ", cron '@monthly'", []),
    ],
)  # fmt: skip
def test_lookback__of_a_new_model_and_of_its_source(
    kind: str, text: str, more: str, expected: list[str]
) -> None:
    assert list_severities("lookback-removed", text, kind=kind, more=more) == expected


def test_lookback__that_no_reader_of_the_source_has__is_medium() -> None:
    stays = {path: text for path, text in STAYS.items() if path != "models/visits.sql"}
    found = list_severities_of_new_model(
        "lookback-removed",
        GATES,
        stays=stays,
        external=TABLES,
        kind=BY_DAY.format("scanned_on", ""),
    )
    assert found == ["medium"]


@pytest.mark.parametrize(
    ("name", "value", "kind", "expected"),
    [
        ("stock_on_hand", "SUM(d.entries)", BY_DAY.format("day", ""), ["high"]),
        ("cumulative_entries", "SUM(d.entries)", BY_DAY.format("day", ""), ["high"]),
        ("entries", "SUM(d.entries)", BY_DAY.format("day", ""), []),
        # The table has the stock of each day.
        ("on_hand", "SUM(d.on_hand)", BY_DAY.format("day", ""), []),
        ("max_on_hand", "MAX(d.entries)", BY_DAY.format("day", ""), []),
        ("handed_on", "SUM(d.entries)", BY_DAY.format("day", ""), []),
        # Machines that run.
        ("running", "SUM(d.entries)", BY_DAY.format("day", ""), []),
        ("running_total", "SUM(d.entries)", BY_DAY.format("day", ""), ["high"]),
    ],
)
def test_total__of_a_day_that_is_called_a_running_one(
    name: str, value: str, kind: str, expected: list[str]
) -> None:
    text = (
        f"SELECT d.day, {value} AS {name} FROM stg.days AS d "
        "WHERE d.day BETWEEN @start_ds AND @end_ds GROUP BY d.day"
    )
    assert list_severities("misnamed-column", text, kind=kind) == expected


def test_running_total__of_the_whole_history__is_quiet() -> None:
    text = "SELECT d.day, SUM(d.entries) AS cumulative FROM stg.days AS d GROUP BY d.day"
    assert list_severities("misnamed-column", text) == []


@pytest.mark.parametrize(
    ("order", "expected"), [("t.valid_from", ["high"]), ("t.valid_from DESC", [])]
)
def test_current_row__of_a_history(order: str, expected: list[str]) -> None:
    text = (
        "SELECT t.part_no, t.tier FROM hist.tiers AS t QUALIFY ROW_NUMBER() OVER "
        f"(PARTITION BY t.part_no ORDER BY {order}) = 1"
    )
    assert list_severities("misnamed-column", text, name="mart.current_tiers") == expected


@pytest.mark.parametrize(
    ("condition", "expected"), [("WHERE t.valid_to IS NULL", []), ("", ["high"])]
)
def test_pick__among_the_rows_that_are_valid_now(condition: str, expected: list[str]) -> None:
    """Of these, a history by key has one row of each key."""
    text = (
        f"SELECT t.place, t.tier FROM hist.tiers AS t {condition} QUALIFY ROW_NUMBER() OVER "
        "(PARTITION BY t.place ORDER BY t.part_no) = 1"
    )
    assert list_severities("nondeterministic-order", text) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("inspector_name", ["high"]),
        ("cashier_name", ["high"]),
        ("delivery_address", ["high"]),
        ("street", ["high"]),
        ("months_until_delivery", []),
        ("cost_of_shipping", []),
        ("days_since_billing", []),
        ("station_name", []),
    ],
)
def test_personal_data__by_the_names_of_columns(column: str, expected: list[str]) -> None:
    found = list_severities_of_new_model(
        "personal-data-exposed",
        f"SELECT p.person_id, p.{column} AS x FROM stg.people AS p",
        stays={
            "models/people.sql": (
                "MODEL (name stg.people, kind FULL, grain person_id); "
                f"SELECT p.person_id, p.{column} FROM hr.people AS p"
            )
        },
        external={"hr.people": {"person_id": "BIGINT", column: "STRING"}},
    )
    assert found == expected


@pytest.mark.parametrize(("key", "expected"), [("member_no", []), ("claim_id", ["high"])])
def test_personal_data__of_a_number_that_identifies_the_rows(key: str, expected: list[str]) -> None:
    """A member's number that is the key of its table is shown like any other id."""
    found = list_severities_of_new_model(
        "personal-data-exposed",
        "SELECT m.member_no, m.tier FROM stg.members AS m",
        stays={
            "models/members.sql": (
                f"MODEL (name stg.members, kind FULL, grain {key}); "
                "SELECT m.claim_id, m.member_no, m.tier FROM crm.members AS m"
            )
        },
        external={
            "crm.members": {"claim_id": "BIGINT", "member_no": "STRING", "tier": "STRING"},
        },
    )
    assert found == expected


@pytest.mark.parametrize(
    ("column", "numbers", "expected"),
    [
        ("vat_rate", ("9", "21"), True),
        ("vat_rate", ("0.09", "0.21"), False),
        ("discount_pct", ("0", "5"), True),
        ("discount_pct", ("0.05", "1"), False),
        # 150 % is a markup.
        ("markup", ("1.5", "3"), False),
    ],
)
def test_rate__of_a_seed_with_percents(
    tmp_path: Path, column: str, numbers: tuple[str, ...], *, expected: bool
) -> None:
    lines = "".join(f"{number},{value}\n" for number, value in enumerate(numbers))
    (tmp_path / "rates.csv").write_text(f"code,{column}\n{lines}", encoding="utf-8")
    seed = load_sql_based_model(
        parse(
            "MODEL (name ref.rates, dialect spark, kind SEED (path 'rates.csv'), "
            f"columns (code INT, {column} DECIMAL(9, 4)), grain code)"
        ),
        path=tmp_path / "rates.sql",
    )
    reader = load_sql_based_model(
        parse(
            "MODEL (name mart.net, dialect spark, kind FULL); "
            f"SELECT r.code, 100 / (1 + r.{column}) AS net FROM ref.rates AS r"
        ),
        path=tmp_path / "net.sql",
    )
    project = ProjectView({seed.fqn: seed, reader.fqn: reader})
    found = list(ImprobableExpression(project).find_observations(reader))
    assert bool(found) == expected
