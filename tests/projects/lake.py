"""A small project on Iceberg tables, with the kinds of model that plain Parquet cannot hold.

`python -m tests.projects.lake PROJECT UNTIL` builds its prod in a JVM of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.runtime import java
from tests.projects import CONFIG, Shop

FILES = {
    "seeds/people.csv": "id,name,segment\n1,Ada,retail\n2,Grace,trade\n3,Alan,retail\n",
    "models/people.sql": """\
MODEL (
  name lake.people,
  kind SEED (path '../seeds/people.csv'),
  columns (id INT, name STRING, segment STRING),
  grain id
);
""",
    "models/latest.sql": """\
MODEL (
  name lake.latest,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id),
  start '2024-01-10',
  cron '@daily',
  grain id,
  audits (not_null(columns := (id)))
);

SELECT
  CAST(p.id AS INT) AS id,
  CAST(p.name AS STRING) AS name,
  CAST(p.id * 10 AS INT) AS credit
FROM lake.people AS p
""",
    "models/past.sql": """\
MODEL (
  name lake.past,
  kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [segment]),
  start '2024-01-10',
  cron '@daily',
  grain id
);

SELECT
  CAST(p.id AS INT) AS id,
  CAST(p.segment AS STRING) AS segment
FROM lake.people AS p
""",
    "models/totals.sql": """\
MODEL (
  name lake.totals,
  kind FULL,
  grain segment
);

SELECT
  CAST(p.segment AS STRING) AS segment,
  CAST(SUM(l.credit) AS BIGINT) AS credit
FROM lake.past AS p
JOIN lake.latest AS l
  ON l.id = p.id
WHERE
  p.valid_to IS NULL
GROUP BY
  p.segment
""",
    "models/rich.sql": """\
MODEL (
  name lake.rich,
  kind VIEW,
  grain segment
);

SELECT
  t.segment,
  t.credit
FROM lake.totals AS t
WHERE
  t.credit > 20
""",
}


def write_lake(root: Path, spark: Mapping[str, str], table_format: str = "iceberg") -> Shop:
    """Writes the project into `root`/project, with these settings of Spark beside the shop's.

    Nothing is built yet.
    """
    shop = Shop(root)
    config = CONFIG.format(
        warehouse=shop.warehouse, metastore=root / "metastore", derby=root, state=shop.state
    )
    settings = "".join(f'        {name}: "{value}"\n' for name, value in spark.items())
    config = config.replace("        spark.master", f"{settings}        spark.master", 1)
    config = config.replace("storage_format: parquet", f"table_format: {table_format}")
    shop.write("config.yaml", config)
    for path, text in FILES.items():
        shop.write(path, text)
    return shop


def build_prod(project: Path, until: str) -> None:
    """Plans and applies prod as of `until`, through the worker's adapter.

    SQLMesh by itself cannot fill these tables in Iceberg's own catalogs: it takes Spark's refusal
    of SHOW TABLE EXTENDED for "no such table", writes SEED and FULL models with CREATE TABLE IF NOT
    EXISTS, and leaves them empty (`compat.ListingSqlmeshSparkAdapter`).
    """
    os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
    set_console(NoopConsole())
    configs = sqlmesh_compat.read_sqlmesh_configs([project])
    sqlmesh_compat.let_sqlmesh_start_spark_late(configs, lambda: None)
    context = Context(config=configs, paths=[str(project)])
    context.apply(context.plan_builder("prod", execution_time=until, skip_tests=True).build())
    context.close()


if __name__ == "__main__":
    build_prod(Path(sys.argv[1]), sys.argv[2])
