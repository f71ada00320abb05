"""INSERT without columns, where the columns of its target or of its source move."""

from __future__ import annotations

import pytest

from ci_bot.protocol.plan import Finding
from tests.unit.rules.world import EXTERNAL, change, models, seen

RULE = "insert-by-position"
TO_LOG = "INSERT INTO audit.log {by_name}SELECT * FROM {table}"


def model(columns: str, *statements: str, name: str = "mart.m") -> str:
    query = f"SELECT {columns} FROM raw.orders AS o"
    return f"MODEL (name {name}, kind FULL);\n\n" + ";\n\n".join([query, *statements])


def told(before: str, after: str, *statements: str, also: str | None = None) -> list[Finding]:
    """The findings on a model whose columns change and whose statements do not."""
    more = {"models/other.sql": also} if also else {}
    return seen(
        change(
            {"models/m.sql": model(before, *statements), **more},
            {"models/m.sql": model(after, *statements), **more},
        ),
        RULE,
    )


@pytest.mark.parametrize(
    "statement",
    [
        TO_LOG.format(by_name="", table="@this_model"),
        TO_LOG.format(by_name="", table="mart.m"),
        TO_LOG.format(by_name="", table="spark_catalog.mart.m"),
        "INSERT OVERWRITE TABLE audit.log SELECT * FROM @this_model",
        "INSERT INTO audit.log TABLE mart.m",
        "INSERT INTO audit.log SELECT t.*, CURRENT_DATE() FROM @this_model AS t",
        "INSERT INTO audit.log SELECT t.* FROM mart.m AS t JOIN raw.orders AS o USING (order_id)",
        # The target is the model's own table.
        "INSERT INTO @this_model VALUES (-1, 'none')",
        "INSERT INTO @this_model SELECT -1 AS order_id, 'none' AS status",
    ],
)
@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("o.status, o.order_id", "column 1 of `mart.m` is `status` now, and was `order_id`"),
        ("o.order_id, o.amount, o.status", "`mart.m` has 3 columns, and had 2"),
        ("o.order_id", "`mart.m` has 1 column, and had 2"),
    ],
)
def test_standing_insert__meets_other_columns(statement: str, after: str, why: str) -> None:
    (finding,) = told("o.order_id, o.status", after, statement)
    assert (finding.severity, finding.model) == ("high", "mart.m")
    assert why in finding.evidence


def test_standing_insert__of_a_model_that_does_not_change() -> None:
    other = model("o.order_id", TO_LOG.format(by_name="", table="mart.m"), name="mart.other")
    (finding,) = told("o.order_id, o.status", "o.status, o.order_id", also=other)
    assert (finding.model, finding.path) == ("mart.other", "models/other.sql")
    assert finding.line is not None
    assert finding.line > 3


def test_target__that_is_external() -> None:
    text = {
        "models/m.sql": model("o.order_id", "INSERT INTO raw.customers SELECT 1, 'a', 'b', NULL")
    }
    moved = {**EXTERNAL, "raw.customers": dict(list(EXTERNAL["raw.customers"].items())[::-1])}
    inputs = change(text, text, external=moved)
    before = models(text, stored=True)
    (finding,) = seen(type(inputs)(**{**vars(inputs), "before": before}), RULE)
    assert (
        "column 1 of `raw.customers` is `updated_at` now, and was `customer_id`" in finding.evidence
    )


@pytest.mark.parametrize(
    "statement",
    [
        TO_LOG.format(by_name="BY NAME ", table="@this_model"),
        "INSERT INTO audit.log (order_id, status) SELECT order_id, status FROM @this_model",
        "INSERT INTO @this_model (order_id, status) VALUES (-1, 'none')",
        "INSERT INTO audit.log SELECT order_id, status FROM @this_model",
        "INSERT INTO audit.log SELECT COUNT(*) FROM @this_model",
        "INSERT INTO audit.log SELECT * FROM raw.orders",
        "INSERT INTO audit.log SELECT o.* FROM raw.orders AS o JOIN @this_model AS t USING (order_id)",
        "CREATE TABLE IF NOT EXISTS audit.log AS SELECT * FROM @this_model",
    ],
)
def test_statement__that_goes_by_names_or_by_other_columns(statement: str) -> None:
    assert told("o.order_id, o.status", "o.status, o.order_id", statement) == []


@pytest.mark.parametrize(
    "after",
    [
        "o.order_id, o.status",
        "o.order_id, UPPER(o.status) AS status",
        "o.order_id, o.status AS state",  # another name, and the values of before
        "o.ORDER_ID, o.Status",
    ],
)
def test_columns__that_stand_where_they_stood(after: str) -> None:
    assert told("o.order_id, o.status", after, TO_LOG.format(by_name="", table="@this_model")) == []


def test_statement__that_changes_with_its_columns() -> None:
    inputs = change(
        {
            "models/m.sql": model(
                "o.order_id, o.status", "INSERT INTO @this_model VALUES (-1, 'none')"
            )
        },
        {
            "models/m.sql": model(
                "o.status, o.order_id", "INSERT INTO @this_model VALUES ('none', -1)"
            )
        },
    )
    assert seen(inputs, RULE) == []


def test_target__that_moves_like_its_source() -> None:
    copy = model("o.{0}, o.{1}", "INSERT INTO @this_model SELECT * FROM mart.m", name="mart.copy")
    before, after = ("order_id", "status"), ("status", "order_id")
    sides = [
        {
            "models/m.sql": model("o.{}, o.{}".format(*columns)),
            "models/copy.sql": copy.format(*columns),
        }
        for columns in (before, after)
    ]
    assert seen(change(*sides), RULE) == []


def test_each_statement__is_a_finding_of_its_own() -> None:
    found = told(
        "o.order_id, o.status",
        "o.status, o.order_id",
        "INSERT INTO audit.log SELECT * FROM @this_model",
        "INSERT INTO audit.copy SELECT * FROM @this_model",
    )
    assert [finding.subject for finding in found] == [
        "INSERT INTO audit.log in post-statement",
        "INSERT INTO audit.copy in post-statement",
    ]
