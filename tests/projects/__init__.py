"""A small SQLMesh project on Spark, written into a directory of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CONFIG = """\
gateways:
  spark:
    connection:
      type: spark
      config:
        spark.master: local[1]
        spark.app.name: shop
        spark.driver.host: 127.0.0.1
        spark.driver.bindAddress: 127.0.0.1
        spark.ui.enabled: "false"
        spark.ui.showConsoleProgress: "false"
        spark.log.level: ERROR
        spark.default.parallelism: "1"
        spark.sql.shuffle.partitions: "1"
        spark.sql.adaptive.enabled: "false"
        spark.sql.session.timeZone: UTC
        spark.sql.warehouse.dir: {warehouse}
        spark.hadoop.datanucleus.schema.autoCreateAll: "true"
        spark.hadoop.javax.jdo.option.ConnectionURL: >-
          jdbc:derby:;databaseName={metastore};create=true
        spark.driver.extraJavaOptions: >-
          -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={derby}
    state_connection:
      type: duckdb
      database: {state}

default_gateway: spark

model_defaults:
  dialect: spark
  start: 2024-01-01
  storage_format: parquet

linter:
  enabled: true
  rules:
    - ambiguousorinvalidcolumn
    - invalidselectstarexpansion
"""

FILES = {
    "seeds/customers.csv": "customer_id,name,segment\n1,Ada,retail\n2,Grace,trade\n3,Alan,retail\n",
    "models/customers.sql": """\
MODEL (
  name shop.customers,
  kind SEED (path '../seeds/customers.csv'),
  columns (customer_id INT, name STRING, segment STRING),
  grain customer_id
);
""",
    "models/orders.sql": """\
MODEL (
  name shop.orders,
  kind INCREMENTAL_BY_TIME_RANGE (time_column order_date, batch_size 5),
  start '2024-01-01',
  cron '@daily',
  grain order_id,
  owner data,
  audits (
    not_null(columns := (order_id)),
    unique_values(columns := (order_id))
  )
);

SELECT
  CAST(DATEDIFF(day, DATE '2024-01-01') * 3 + customer_id AS INT) AS order_id,
  CAST(customer_id AS INT) AS customer_id,
  CAST(day AS DATE) AS order_date,
  CAST(customer_id * 10 AS INT) AS amount
FROM shop.customers
CROSS JOIN (
  SELECT EXPLODE(SEQUENCE(CAST(@start_ds AS DATE), CAST(@end_ds AS DATE))) AS day
) AS days
WHERE
  day BETWEEN @start_ds AND @end_ds
""",
    "models/revenue.sql": """\
MODEL (
  name shop.revenue,
  kind FULL,
  grain customer_id,
  audits (not_null(columns := (customer_id)))
);

SELECT
  CAST(o.customer_id AS INT) AS customer_id,
  CAST(SUM(o.amount) AS BIGINT) AS revenue
FROM shop.orders AS o
GROUP BY
  o.customer_id
""",
    "models/top_customers.sql": """\
MODEL (
  name shop.top_customers,
  kind VIEW,
  grain customer_id
);

SELECT
  r.customer_id,
  r.revenue
FROM shop.revenue AS r
WHERE
  r.revenue > 100
""",
    "tests/test_revenue.yaml": """\
test_revenue_sums_by_customer:
  model: shop.revenue
  inputs:
    shop.orders:
      rows:
        - {order_id: 1, customer_id: 1, order_date: 2024-01-01, amount: 10}
        - {order_id: 2, customer_id: 1, order_date: 2024-01-02, amount: 5}
  outputs:
    query:
      rows:
        - {customer_id: 1, revenue: 15}
""",
}


@dataclass(frozen=True)
class Shop:
    """The project with its warehouse, metastore and state, all under `root`."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def state(self) -> Path:
        return self.root / "state.duckdb"

    @property
    def warehouse(self) -> Path:
        return self.root / "warehouse"

    def environments(self) -> set[str]:
        """What SQLMesh's state records beside prod."""
        return self._ask("SELECT name FROM sqlmesh._environments WHERE name <> 'prod'")

    def not_cleaned_up(self) -> set[str]:
        """The environments that SQLMesh's state or the ledger says are there, in whole or in part."""
        from ci_bot.worker.state_store.ledger import REMOVED

        has_ledger = self._ask(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'sqlmesh_ci_bot' "
            "AND table_name = '_environments'"
        )
        if not has_ledger:
            return self.environments()
        return self.environments() | self._ask(
            f"SELECT name FROM sqlmesh_ci_bot._environments WHERE phase NOT IN {REMOVED}"
        )

    def _ask(self, query: str) -> set[str]:
        import duckdb

        with duckdb.connect(str(self.state), read_only=True) as connection:
            return {name for (name,) in connection.execute(query).fetchall()}

    def write(self, path: str, text: str) -> Path:
        """Writes one file of the project; returns its path."""
        target = self.project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def edit(self, path: str, before: str, after: str) -> None:
        """Replaces text in a file; fails where the text is not there."""
        target = self.project / path
        text = target.read_text(encoding="utf-8")
        if before not in text:
            raise AssertionError(f"{before!r} is not in {path}")
        target.write_text(text.replace(before, after), encoding="utf-8")

    @contextmanager
    def kept(self) -> Iterator[Shop]:
        """Its files as they are now again at the end; what came beside them is gone."""
        before = {path: path.read_bytes() for path in self._files()}
        yield self
        for path in self._files():
            if path not in before:
                path.unlink()
        for path, content in before.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _files(self) -> list[Path]:
        return [path for path in self.project.rglob("*") if path.is_file()]


def write_shop(root: Path, config: str = CONFIG) -> Shop:
    """Writes the project into `root`/project. Nothing is built yet."""
    shop = Shop(root)
    shop.write(
        "config.yaml",
        config.format(
            warehouse=shop.warehouse,
            metastore=root / "metastore",
            derby=root,
            state=shop.state,
        ),
    )
    for path, text in FILES.items():
        shop.write(path, text)
    return shop
