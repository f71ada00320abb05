"""What got another name, what moved into another model, and what was rendered otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.worker.rules.model_pair import list_renamed_models
from ci_bot.worker.sql.equivalence.blocks import KeyInterner, SourceColumn
from tests.unit.rules.world import EXTERNAL, change, seen

CUSTOMERS = "MODEL (name {0}, kind FULL);\nSELECT c.customer_id{1} AS customer_id, c.country FROM raw.customers AS c{2}"
READER = (
    "MODEL (name mart.r, kind FULL);\nSELECT x.customer_id FROM {0} AS x WHERE x.country = 'DE'"
)


def names(inputs: Any) -> list[tuple[str, str]]:
    return [
        (old.replace('"', ""), new.replace('"', "")) for old, new in list_renamed_models(inputs)
    ]


def rules_of(inputs: Any) -> set[str]:
    return {one.rule for one in seen(inputs) if one.severity not in {"info", "low"}}


def test_renamed__is_one_text_under_another_name() -> None:
    inputs = change(
        {"models/c.sql": CUSTOMERS.format("bronze.crm.c", "", "")},
        {"models/c.sql": CUSTOMERS.format("gold.crm.c", "", "")},
    )
    assert names(inputs) == [("bronze.crm.c", "gold.crm.c")]


def test_renamed__is_not_another_query_of_the_same_schema_and_table() -> None:
    inputs = change(
        {
            "models/c.sql": CUSTOMERS.format("bronze.crm.c", "", ""),
            "models/r.sql": READER.format("bronze.crm.c"),
        },
        {
            "models/c.sql": CUSTOMERS.format("gold.crm.c", " * 2", " WHERE c.country <> 'FR'"),
            "models/r.sql": READER.format("gold.crm.c"),
        },
    )
    assert names(inputs) == []
    assert not [one for one in seen(inputs, "same-result") if one.model == "mart.r"]
    # The two are compared all the same.
    assert [one.model for one in seen(inputs, "filter-changed")][:1] == ["gold.crm.c"]


def test_renamed__is_one_to_one() -> None:
    before = {
        "models/a.sql": CUSTOMERS.format("bronze.crm.c", "", ""),
        "models/b.sql": CUSTOMERS.format("silver.crm.c", " + 1", ""),
    }
    inputs = change(before, {"models/c.sql": CUSTOMERS.format("gold.crm.c", " + 1", "")})
    assert names(inputs) == [("silver.crm.c", "gold.crm.c")]


def test_renamed__follows_names_within_the_moved_models() -> None:
    before = {
        "models/c.sql": CUSTOMERS.format("bronze.crm.c", "", ""),
        "models/r.sql": READER.format("bronze.crm.c").replace("mart.r", "bronze.crm.r"),
    }
    after = {
        "models/c.sql": CUSTOMERS.format("gold.crm.c", "", ""),
        "models/r.sql": READER.format("gold.crm.c").replace("mart.r", "gold.crm.r"),
    }
    assert names(change(before, after)) == [
        ("bronze.crm.c", "gold.crm.c"), ("bronze.crm.r", "gold.crm.r"),
    ]  # fmt: skip


# ------------------------------------------------------------------ external tables become models

LATE = (
    "MODEL (name mart.late, kind FULL);\n"
    "WITH l AS (SELECT o.order_id, reason FROM raw.orders AS o "
    "INNER JOIN raw.late ON order_ref = o.order_id WHERE NOT reason IS NULL) "
    "SELECT l.order_id, {0} AS n FROM l GROUP BY l.order_id"
)
LATE_MODEL = (
    "MODEL (name raw.late, kind VIEW);\nSELECT CAST(c.customer_id AS BIGINT) AS order_ref, "
    "CAST(c.country AS STRING) AS reason FROM raw.customers AS c"
)


def test_reader__of_a_table_that_is_a_model_now_is_compared_as_it_is_written() -> None:
    late = LATE.format("COUNT(*)")
    inputs = change({"models/l.sql": late}, {"models/l.sql": late, "models/m.sql": LATE_MODEL})
    assert rules_of(inputs) & {"filter-changed", "join-changed", "grain-changed"} == set()


def test_reader__that_changes_beside_it_is_still_seen() -> None:
    inputs = change(
        {"models/l.sql": LATE.format("COUNT(*)")},
        {
            "models/l.sql": LATE.format("COUNT(*)").replace("NOT reason IS NULL", "reason = 'x'"),
            "models/m.sql": LATE_MODEL,
        },
    )
    (found,) = seen(inputs, "filter-changed")
    assert "reason = 'x'" in found.evidence


def test_reader__with_a_star_or_using_or_aggregates_by_name_is_quiet_too() -> None:
    for text in (
        "SELECT * FROM raw.late WHERE reason = 'x'",
        "SELECT o.status, SUM(amount2) AS s FROM raw.orders AS o JOIN raw.late USING (order_id) "
        "GROUP BY o.status HAVING SUM(amount2) > 1",
    ):
        reader = f"MODEL (name mart.late, kind FULL);\n{text}"
        late = LATE_MODEL.replace("AS order_ref", "AS order_id").replace(
            "AS reason", "AS reason, CAST(c.customer_id AS INT) AS amount2"
        )
        inputs = change({"models/l.sql": reader}, {"models/l.sql": reader, "models/m.sql": late})
        wrong = {"filter-changed", "join-changed", "grain-changed", "aggregate-changed"}
        assert rules_of(inputs) & wrong == set()


# ------------------------------------------------------------------ parts that move into a view

CTE = (
    "MODEL (name mart.t, kind FULL);\nWITH b AS (SELECT DISTINCT c.country, c.customer_id FROM "
    "raw.customers AS c JOIN raw.orders AS o ON o.customer_id = c.customer_id WHERE o.amount > {0}) "
    "SELECT b.country, COUNT(*) AS n FROM b GROUP BY b.country"
)
VIEW = (
    "MODEL (name mart.b, kind VIEW);\nSELECT DISTINCT c.country, c.customer_id FROM "
    "raw.customers AS c JOIN raw.orders AS o ON o.customer_id = c.customer_id WHERE o.amount > {0}"
)
OVER = (
    "MODEL (name mart.t, kind FULL);\nSELECT b.country, COUNT(*) AS n FROM mart.b AS b "
    "GROUP BY b.country"
)
TOLD = {"filter-changed", "join-changed", "distinct-changed", "grain-changed"}


def test_cte__that_becomes_a_view_changes_nothing() -> None:
    inputs = change(
        {"models/t.sql": CTE.format(0)}, {"models/t.sql": OVER, "models/b.sql": VIEW.format(0)}
    )
    assert rules_of(inputs) & TOLD == set()
    back = change(
        {"models/t.sql": OVER, "models/b.sql": VIEW.format(0)}, {"models/t.sql": CTE.format(0)}
    )
    assert rules_of(back) & TOLD == set()


def test_cte__that_becomes_a_view_with_another_condition_is_told() -> None:
    inputs = change(
        {"models/t.sql": CTE.format(0)}, {"models/t.sql": OVER, "models/b.sql": VIEW.format(9)}
    )
    assert "filter-changed" in rules_of(inputs)


def test_distinct__behind_a_group_by_of_what_is_shown_is_idle() -> None:
    text = "MODEL (name mart.t, kind FULL);\nSELECT {0} {1} FROM raw.orders AS o GROUP BY o.status"
    for shown, wanted in (("o.status, COUNT(*) AS n", []), ("COUNT(*) AS n", ["high"])):
        inputs = change(
            {"models/t.sql": text.format("DISTINCT", shown)},
            {"models/t.sql": text.format("", shown)},
        )
        assert [one.severity for one in seen(inputs, "distinct-changed")] == wanted


def test_full_join__written_as_a_union_of_two_parts_is_no_alarm() -> None:
    old = (
        "MODEL (name mart.t, kind FULL);\nSELECT COALESCE(o.customer_id, c.customer_id) AS k "
        "FROM raw.orders AS o FULL JOIN raw.customers AS c ON c.customer_id = o.customer_id"
    )
    new = (
        "MODEL (name mart.t, kind FULL);\nSELECT o.customer_id AS k FROM raw.orders AS o "
        "LEFT JOIN raw.customers AS c ON c.customer_id = o.customer_id UNION ALL "
        "SELECT c.customer_id FROM raw.customers AS c LEFT ANTI JOIN raw.orders AS o "
        "ON c.customer_id = o.customer_id"
    )
    kept = change({"models/t.sql": old}, {"models/t.sql": new})
    assert [one.severity for one in seen(kept, "union-changed")] == ["low"]
    dedups = change({"models/t.sql": old}, {"models/t.sql": new.replace("UNION ALL", "UNION")})
    assert [one.severity for one in seen(dedups, "union-changed")] == ["high"]


# ------------------------------------------------------------------------------- keys of terms


class _Names:
    """Calls columns by their names."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def column_key(self, column: SourceColumn) -> tuple[object, ...]:
        return ("column", column.name)

    def nested_key(self, nested: Any) -> tuple[object, ...]:
        raise AssertionError("no query here")


def test_key__of_a_term_that_is_gone_is_no_other_terms_key() -> None:
    keys, called = KeyInterner(), _Names()
    # Each column is gone before the next is made, so the next may get its address.
    found = [keys.key_of_term(SourceColumn(None, f"c{n}"), called) for n in range(500)]
    assert len(set(found)) == len(found)


def test_filter__on_another_column_of_a_star_is_seen_beside_many() -> None:
    columns = {f"c{n}": "INT" for n in range(12)}
    text = (
        "MODEL (name mart.t, kind FULL);\nWITH q AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY id "
        "ORDER BY at) AS rn FROM raw.wide) SELECT q.id FROM q WHERE q.rn = 1 AND {0}"
    )
    told = [f"q.{name} = 0" for name in columns][:7]
    for place in range(7):
        other = [*told]
        other[place] = "q.c11 = 0"
        inputs = change(
            {"models/t.sql": text.format(" AND ".join(told))},
            {"models/t.sql": text.format(" AND ".join(other))},
            external=EXTERNAL,
        )
        assert seen(inputs, "filter-changed"), place


BROUGHT_TOGETHER = """MODEL (name mart.m, kind FULL);
WITH a AS (
  SELECT o.customer_id, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.customer_id
), b AS (
  SELECT c.customer_id, COUNT(*) AS n FROM raw.customers AS c GROUP BY c.customer_id
)
SELECT COALESCE(a.customer_id, b.customer_id) AS customer_id, COALESCE(a.n, 0) AS orders,
  COALESCE(b.n, 0) AS entries
FROM a FULL JOIN b ON a.customer_id = b.customer_id"""
ONE_BELOW_THE_OTHER = """MODEL (name mart.m, kind FULL);
WITH x AS (
  SELECT o.customer_id, 1 AS an_order, 0 AS an_entry FROM raw.orders AS o
  UNION{all} SELECT c.customer_id, 0, 1 FROM raw.{table} AS c
)
SELECT x.customer_id, {orders} AS orders, {entries} AS entries FROM x {group}"""


@pytest.mark.parametrize(
    ("parts", "severity"),
    [
        ({}, "low"),
        ({"all": ""}, "high"),
        ({"table": "orders"}, "high"),
        ({"group": "", "orders": "x.an_order", "entries": "x.an_entry"}, "high"),
    ],
)
def test_full_join__written_as_groups_of_a_union_is_no_alarm(
    parts: dict[str, str], severity: str
) -> None:
    usual = {
        "all": " ALL",
        "table": "customers",
        "orders": "SUM(x.an_order)",
        "entries": "SUM(x.an_entry)",
        "group": "GROUP BY x.customer_id",
    }
    after = ONE_BELOW_THE_OTHER.format(**(usual | parts))
    inputs = change({"models/m.sql": BROUGHT_TOGETHER}, {"models/m.sql": after})
    assert [item.severity for item in seen(inputs, "union-changed")] == [severity]
