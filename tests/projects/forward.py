"""A shop on DuckDB with a forward-only model below an incremental one, eleven months of history."""

from __future__ import annotations

from pathlib import Path

from tests.projects import Shop
from tests.projects.duck import CONFIG, run_prod

UNTIL = "2024-12-01"
DAYS = 335

FILES = {
    "seeds/raw.csv": "id,country,amount,ds\n1,DE,10,2024-01-01\n2,FR,20,2024-11-30\n",
    "models/raw.sql": """\
MODEL (
  name shop.raw,
  kind SEED (path '../seeds/raw.csv'),
  columns (id INT, country TEXT, amount INT, ds DATE)
);
""",
    "models/orders.sql": """\
MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds),
  start '2024-01-01',
  cron '@daily',
  grain id
);

SELECT
  CAST(id AS INT) AS id,
  CAST(country AS TEXT) AS country,
  CAST(amount AS INT) AS amount,
  CAST(ds AS DATE) AS ds
FROM shop.raw
WHERE
  ds BETWEEN @start_ds AND @end_ds
""",
    "models/country_sales.sql": """\
MODEL (
  name shop.country_sales,
  kind INCREMENTAL_BY_TIME_RANGE (time_column ds, forward_only true),
  start '2024-01-01',
  cron '@daily'
);

SELECT
  CAST(country AS TEXT) AS country,
  CAST(SUM(amount) AS BIGINT) AS sales,
  CAST(ds AS DATE) AS ds
FROM shop.orders
WHERE
  ds BETWEEN @start_ds AND @end_ds
GROUP BY
  country,
  ds
""",
    "models/customers.sql": """\
MODEL (
  name shop.customers,
  kind FULL
);

SELECT
  CAST(id AS INT) AS id,
  CAST(SUM(amount) AS BIGINT) AS total
FROM shop.orders
GROUP BY
  id
""",
    "models/segments.sql": """\
MODEL (
  name shop.segments,
  kind FULL
);

SELECT
  CAST(id AS INT) AS id,
  CAST(total > 5 AS BOOLEAN) AS big
FROM shop.customers
""",
    "models/top_customers.sql": """\
MODEL (
  name shop.top_customers,
  kind VIEW
);

SELECT
  CAST(id AS INT) AS id
FROM shop.customers
WHERE
  total > 5
""",
    "tests/test_customers.yaml": """\
test_customers:
  model: shop.customers
  inputs:
    shop.orders:
      rows:
        - {id: 1, amount: 2}
        - {id: 1, amount: 3}
  outputs:
    query:
      rows:
        - {id: 1, total: 5}
""",
}
# What the orders hold is computed differently for all of their history.
DOUBLED = ("models/orders.sql", "CAST(amount AS INT)", "CAST(amount * 2 AS INT)")


def write_forward_shop(root: Path, until: str = UNTIL) -> Shop:
    """Writes the project into `root`/project, and builds prod up to `until`."""
    shop = Shop(root)
    shop.write("config.yaml", CONFIG.format(warehouse=shop.warehouse, state=shop.state))
    for path, text in FILES.items():
        shop.write(path, text)
    run_prod(shop, until)
    return shop
