"""What stands for a column by its position: in GROUP BY, ORDER BY, and the branches of a union."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import EXTERNAL, change, seen

HEAD = "MODEL (name mart.m, kind FULL);\n"
# Of this table no columns are known, so that SQLMesh writes no position out.
UNKNOWN = {name: columns for name, columns in EXTERNAL.items() if name != "raw.orders"}


def found(before: str, after: str, rule: str, *, known: bool = True) -> list[str]:
    inputs = change(
        {"models/m.sql": HEAD + before},
        {"models/m.sql": HEAD + after},
        external=EXTERNAL if known else UNKNOWN,
    )
    return [item.evidence for item in seen(inputs, rule)]


TOP = "SELECT {columns} FROM raw.orders AS o ORDER BY {order} LIMIT 100"


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        # A column comes before it, moves, or goes.
        (("o.order_id, o.amount", "2 DESC"), ("o.order_id, o.customer_id, o.amount", "2 DESC")),
        (("o.order_id, o.amount", "2 DESC"), ("o.amount, o.order_id", "2 DESC")),
        (("o.status, o.order_id, o.amount", "2"), ("o.order_id, o.amount", "2")),
        # The same said with names.
        (("o.order_id, o.amount", "o.amount DESC"), ("o.order_id, o.amount", "o.order_id DESC")),
        # The other end of the order.
        (("o.order_id, o.amount", "amount DESC"), ("o.order_id, o.amount", "amount")),
        (("o.order_id, o.amount", "2, 1"), ("o.amount, o.order_id", "2, 1")),
    ],
)
def test_limit__that_keeps_rows_by_another_order(
    before: tuple[str, str], after: tuple[str, str], known: bool
) -> None:
    (evidence,) = found(
        TOP.format(columns=before[0], order=before[1]),
        TOP.format(columns=after[0], order=after[1]),
        "filter-changed",
        known=known,
    )
    assert "LIMIT" in evidence


def test_limit__says_that_a_position_means_another_column() -> None:
    (evidence,) = found(
        TOP.format(columns="o.order_id, o.amount", order="2 DESC"),
        TOP.format(columns="o.order_id, o.customer_id, o.amount", order="2 DESC"),
        "filter-changed",
    )
    assert "`2` in ORDER BY now means `customer_id`, no longer `amount`" in evidence


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The position moves along, or becomes a name.
        (("o.order_id, o.amount", "2 DESC"), ("o.order_id, o.customer_id, o.amount", "3 DESC")),
        (
            ("o.order_id, o.amount", "2 DESC"),
            ("o.order_id, o.customer_id, o.amount", "amount DESC"),
        ),
        (("o.order_id, o.amount", "2 DESC"), ("o.order_id, o.amount", "o.amount DESC")),
        # The column comes behind it, or gets another name.
        (("o.order_id, o.amount", "2 DESC"), ("o.order_id, o.amount, o.status", "2 DESC")),
        (("o.order_id, o.amount", "2 DESC"), ("o.order_id, o.amount AS total", "2 DESC")),
        # The order goes on, and NULLS stand where they stood.
        (("o.order_id, o.amount", "2 DESC"), ("o.order_id, o.amount", "2 DESC, 1")),
        (("o.order_id, o.amount", "2"), ("o.order_id, o.amount", "2 ASC NULLS FIRST")),
    ],
)
def test_limit__that_keeps_the_same_rows(
    before: tuple[str, str], after: tuple[str, str], known: bool
) -> None:
    assert (
        found(
            TOP.format(columns=before[0], order=before[1]),
            TOP.format(columns=after[0], order=after[1]),
            "filter-changed",
            known=known,
        )
        == []
    )


def test_order__without_a_limit_keeps_every_row() -> None:
    query = "SELECT {columns} FROM raw.orders AS o ORDER BY 2"
    assert (
        found(
            query.format(columns="o.order_id, o.amount"),
            query.format(columns="o.order_id, o.status, o.amount"),
            "filter-changed",
        )
        == []
    )


def test_limit__below_a_union_and_in_a_cte() -> None:
    union = (
        "SELECT o.order_id, {more}o.amount FROM raw.orders AS o UNION ALL "
        "SELECT o.customer_id, {more}o.amount FROM raw.orders AS o ORDER BY 2 DESC LIMIT 10"
    )
    inner = (
        "WITH top AS (SELECT o.order_id, {more}o.amount FROM raw.orders AS o ORDER BY 2 LIMIT 10) "
        "SELECT t.order_id FROM top AS t"
    )
    for query in (union, inner):
        told = found(query.format(more=""), query.format(more="o.status, "), "filter-changed")
        assert len(told) == 1, query


GROUPED = "SELECT {columns}, COUNT(*) AS n FROM raw.orders AS o GROUP BY {group}"


@pytest.mark.parametrize("known", [True, False])
def test_group__by_a_position_that_means_another_column(known: bool) -> None:
    told = found(
        GROUPED.format(columns="o.status, o.customer_id", group="1, 2"),
        GROUPED.format(columns="'shop' AS source, o.status, o.customer_id", group="1, 2"),
        "grain-changed",
        known=known,
    )
    assert len(told) == 1
    assert "`2` in GROUP BY now means `status`, no longer `customer_id`" in told[0]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("columns", "group"),
    [
        ("o.customer_id, o.status", "1, 2"),
        ("o.status, 'shop' AS source, o.customer_id", "1, 3"),
        ("o.status, o.customer_id, MAX(o.amount) AS most", "1, 2"),
        ("o.status AS state, o.customer_id", "1, 2"),
        ("o.status, o.customer_id", "o.status, o.customer_id"),
    ],
)
def test_group__by_the_same_columns(columns: str, group: str, known: bool) -> None:
    told = found(
        GROUPED.format(columns="o.status, o.customer_id", group="1, 2"),
        GROUPED.format(columns=columns, group=group),
        "grain-changed",
        known=known,
    )
    assert told == []


UNION = "SELECT {left} FROM raw.orders AS o UNION ALL SELECT {right} FROM raw.customers AS c"
PAIRED = UNION.format(left="o.order_id AS id, o.status AS text", right="c.customer_id, c.email")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        # A column comes at another place of each branch, or in one branch two change places.
        ("o.order_id AS id, 'order' AS kind, o.status AS text", "c.customer_id, c.email, 'person'"),
        ("o.order_id AS id, o.status AS text", "c.email, c.customer_id"),
        ("o.status AS text, o.order_id AS id", "c.customer_id, c.email"),
    ],
)
def test_union__whose_branches_no_longer_stand_in_line(left: str, right: str, known: bool) -> None:
    told = found(PAIRED, UNION.format(left=left, right=right), "union-column-order", known=known)
    assert len(told) == 1
    assert "`text`" in told[0]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("o.order_id AS id, 'order' AS kind, o.status AS text", "c.customer_id, 'person', c.email"),
        ("o.status AS text, o.order_id AS id", "c.email, c.customer_id"),
        ("o.order_id AS id, o.status AS text", "c.customer_id, c.country"),
        ("o.order_id AS id, o.status AS words", "c.customer_id, c.email"),
        ("o.order_id AS id", "c.customer_id"),
    ],
)
def test_union__whose_branches_stand_in_line(left: str, right: str, known: bool) -> None:
    assert (
        found(PAIRED, UNION.format(left=left, right=right), "union-column-order", known=known) == []
    )


def test_union__that_shows_it_by_its_names_says_it_once() -> None:
    right = "c.email AS text, c.customer_id AS id"
    after = UNION.format(left="o.order_id AS id, o.status AS text", right=right)
    assert len(found(PAIRED, after, "union-column-order")) == 1


def test_union__of_whole_tables_whose_columns_stand_in_another_order() -> None:
    """Nobody edits the union: a table above it gets its columns in another order."""
    union = HEAD + "SELECT * FROM stg.a AS a UNION ALL SELECT * FROM stg.b AS b"
    one = "MODEL (name stg.{0}, kind FULL);\nSELECT {1} FROM raw.customers AS c"
    before = {
        "models/a.sql": one.format("a", "c.email, c.country"),
        "models/b.sql": one.format("b", "c.email, c.country"),
        "models/m.sql": union,
    }
    after = before | {"models/b.sql": one.format("b", "c.country, c.email")}
    told = seen(change(before, after), "union-column-order")
    assert [item.model for item in told] == ["mart.m"]
    assert seen(change(before, before), "union-column-order") == []
