"""Incremental models for tests that build them in more than one batch."""

from __future__ import annotations

MODEL = """\
MODEL (
  name {name},
  kind INCREMENTAL_BY_TIME_RANGE (time_column {column}, batch_size 2),
  start '{start}',
  cron '@daily'{more}
);

{query}
"""


def by_time(
    name: str, query: str, *, column: str = "order_date", start: str = "2024-01-01", more: str = ""
) -> str:
    """The text of a model of days, two in a batch.

    Args:
        name: With its schema.
        query: Without `;`.
        column: The time column.
        more: Another property, as in `signals (ready())`.
    """
    more = f",\n  {more}" if more else ""
    return MODEL.format(name=name, query=query, column=column, start=start, more=more)


def amount_by_day(name: str, reads: str = "shop.orders", *, more: str = "") -> str:
    """A model of the shop: what was paid on each day, by a model with those columns."""
    query = (
        f"SELECT order_date, SUM(amount) AS amount FROM {reads}\n"
        "WHERE order_date BETWEEN @start_ds AND @end_ds GROUP BY order_date"
    )
    return by_time(name, query, more=more)
