"""A small project to change: orders and customers, and two models that read them."""

from __future__ import annotations

from ci_bot.worker.rules import RuleInputs
from tests.unit.rules.world import change

FILES = {
    "models/orders.sql": """
        MODEL (
          name stg.orders,
          kind INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 30, lookback 2),
          cron '@daily',
          grain order_id,
          audits (
            not_null(columns := (order_id, customer_id)),
            unique_values(columns := (order_id))
          )
        );

        SELECT
          CAST(o.order_id AS BIGINT) AS order_id,
          CAST(o.customer_id AS BIGINT) AS customer_id,
          CAST(o.status AS STRING) AS status,
          CAST(o.amount AS DECIMAL(10, 2)) AS amount,
          CAST(o.order_ts AS DATE) AS order_date
        FROM raw.orders AS o
        WHERE
          CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds
    """,
    "models/customers.sql": """
        MODEL (
          name stg.customers,
          kind INCREMENTAL_BY_UNIQUE_KEY (unique_key customer_id),
          cron '@daily',
          grain customer_id,
          audits (not_null(columns := (customer_id)), unique_values(columns := (customer_id)))
        );

        SELECT
          CAST(c.customer_id AS BIGINT) AS customer_id,
          LOWER(c.email) AS email,
          CAST(c.country AS STRING) AS country,
          CAST(c.updated_at AS TIMESTAMP) AS updated_at
        FROM raw.customers AS c
        WHERE
          c.updated_at BETWEEN @start_ts AND @end_ts
    """,
    "models/revenue.sql": """
        MODEL (
          name mart.revenue,
          kind FULL,
          grain country,
          audits (not_null(columns := (country)), unique_values(columns := (country)))
        );

        WITH paid AS (
          SELECT
            o.customer_id,
            SUM(o.amount) AS amount,
            COUNT(*) AS orders
          FROM stg.orders AS o
          WHERE
            o.status <> 'cancelled'
          GROUP BY
            o.customer_id
        )
        SELECT
          c.country,
          SUM(p.amount) AS amount,
          SUM(p.orders) AS orders,
          SUM(p.amount) / SUM(p.orders) AS avg_order
        FROM stg.customers AS c
        LEFT JOIN paid AS p
          ON c.customer_id = p.customer_id
        GROUP BY
          c.country
    """,
    "models/open_orders.sql": """
        MODEL (
          name mart.open_orders,
          kind VIEW,
          grain order_id,
          audits (not_null(columns := (order_id)))
        );

        SELECT
          o.order_id,
          o.customer_id,
          o.amount
        FROM stg.orders AS o
        WHERE
          o.status = 'open'
    """,
}


def edited(*edits: tuple[str, str, str], **more: object) -> RuleInputs:
    """The shop with pieces of text replaced: (file name without ending, old, new)."""
    after = dict(FILES)
    for name, old, new in edits:
        path = f"models/{name}.sql"
        if old not in after[path]:
            raise AssertionError(f"{old!r} is not in {path}")
        after[path] = after[path].replace(old, new)
    return change(FILES, after, **more)


def added(text: str, path: str = "models/new.sql", **more: object) -> RuleInputs:
    """The shop with one more model."""
    return change(FILES, {**FILES, path: text}, **more)


def without(*names: str) -> RuleInputs:
    """The shop with files taken away."""
    gone = {f"models/{name}.sql" for name in names}
    return change(FILES, {path: text for path, text in FILES.items() if path not in gone})
