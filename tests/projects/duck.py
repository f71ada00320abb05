"""The shop on DuckDB: for what is SQLMesh's and not Spark's, without waiting for a JVM."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from tests.projects import Shop, write_shop

CONFIG = """\
gateways:
  duck:
    connection:
      type: duckdb
      database: {warehouse}.duckdb
    state_connection:
      type: duckdb
      database: {state}

default_gateway: duck

model_defaults:
  dialect: duckdb
  start: 2024-01-01
"""

ORDERS = """\
MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 5),
  start '2024-01-01',
  cron '@daily',
  grain order_id,
  audits (not_null(columns := (order_id)))
);

SELECT
  CAST(c.customer_id AS INT) AS order_id,
  CAST(c.customer_id AS INT) AS customer_id,
  CAST(@start_ds AS DATE) AS order_date,
  CAST(c.customer_id * 10 AS INT) AS amount
FROM shop.customers AS c
"""


def write_duck_shop(root: Path) -> Shop:
    """Writes the project into `root`/project; nothing is built yet."""
    shop = write_shop(root, config=CONFIG)
    shop.write("models/orders.sql", ORDERS)
    return shop


# Byte code beside the project's files would be committed with them, as if somebody had changed it.
@patch.object(sys, "dont_write_bytecode", new=True)
def run_prod(shop: Shop, until: str) -> None:
    """Plans and applies prod, or runs it, up to `until`."""
    set_console(NoopConsole())
    context = Context(paths=[str(shop.project)])
    try:
        if context.state_reader.get_environment("prod") is None:
            context.apply(
                context.plan_builder("prod", execution_time=until, skip_tests=True).build()
            )
        else:
            context.run("prod", end=until, execution_time=until, ignore_cron=True)
    finally:
        context.close()
