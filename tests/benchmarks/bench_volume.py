"""An apply with its data diff on TPC-H data, beside SQLMesh's `plan` and `table_diff`.

    python -m tests.benchmarks.bench_volume [SCALE_FACTOR]

Scale factor 1 (6 million order lines) is the default. The data comes from the program `tpchgen-cli`
(`pip install tpchgen-cli`); it is nobody's dependency. Prod holds the order lines and two models
above them; the change adds a column to the lines, so all three are built anew, and
compared with prod row by row. Prints wall seconds, their ratio, and what the diff saw.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_life import FAST_JAVA
from tests.benchmarks.timed_command import ROOT, run_ci_bot, run_sqlmesh, time_command
from tests.conftest import run_python
from tests.projects import CONFIG, Shop

# The last order line is shipped on 1998-12-01.
PROD_UNTIL = "1998-12-02"
CHANGED = "CAST(l.l_extendedprice * (1 - l.l_discount) AS DECIMAL(18, 4)) AS net"
MODELS = {
    "models/lines.sql": """\
MODEL (
  name tpch.lines,
  kind FULL,
  start '1998-12-01',
  grain (order_id, line),
  audits (not_null(columns := (order_id)))
);

SELECT
  CAST(l.l_orderkey AS BIGINT) AS order_id,
  CAST(l.l_linenumber AS INT) AS line,
  CAST(l.l_partkey AS BIGINT) AS part_id,
  CAST(l.l_quantity AS DECIMAL(18, 2)) AS quantity,
  CAST(l.l_extendedprice AS DECIMAL(18, 2)) AS price,
  CAST(l.l_discount AS DECIMAL(18, 2)) AS discount,
  CAST(l.l_returnflag AS STRING) AS return_flag,
  CAST(l.l_shipdate AS DATE) AS shipped
FROM raw.lineitem AS l
""",
    "models/parts.sql": """\
MODEL (name tpch.parts, kind FULL, start '1998-12-01', grain part_id);

SELECT
  l.part_id,
  CAST(SUM(l.price) AS DECIMAL(38, 2)) AS sold,
  CAST(COUNT(*) AS BIGINT) AS lines
FROM tpch.lines AS l
GROUP BY
  l.part_id
""",
    "models/returns.sql": """\
MODEL (name tpch.returns, kind VIEW, start '1998-12-01', grain return_flag);

SELECT
  l.return_flag,
  CAST(SUM(l.quantity) AS DECIMAL(38, 2)) AS quantity
FROM tpch.lines AS l
GROUP BY
  l.return_flag
""",
    "external_models.yaml": """\
- name: raw.lineitem
  columns:
    l_orderkey: bigint
    l_partkey: bigint
    l_linenumber: int
    l_quantity: decimal(15,2)
    l_extendedprice: decimal(15,2)
    l_discount: decimal(15,2)
    l_returnflag: string
    l_shipdate: date
""",
}


def generate(scale: str, directory: Path) -> Path:
    """The order lines as a Parquet file.

    Raises:
        SystemExit: the generator is not installed.
    """
    program = shutil.which("tpchgen-cli")
    if program is None:
        raise SystemExit("tpchgen-cli is not on the path; `pip install tpchgen-cli` brings it.")
    options = ["parquet", "--scale-factor", scale, "--tables", "lineitem"]
    subprocess.run([program, *options, "--output-dir", str(directory)], check=True)
    (found,) = directory.rglob("lineitem*.parquet")
    return found


def write_project(home: Path, lines: Path) -> Shop:
    """The project, with the order lines as a table of its warehouse."""
    shop = Shop(home)
    places = {"warehouse": shop.warehouse, "metastore": home / "metastore", "state": shop.state}
    memory = "spark.driver.memory: 4g\n        spark.app.name"
    config = CONFIG.replace(FAST_JAVA, "").replace("spark.app.name", memory)
    config = config.replace('partitions: "2"', 'partitions: "8"')
    shop.write("config.yaml", config.format(**places, derby=home))
    for path, text in MODELS.items():
        shop.write(path, text)
    table = f"CREATE TABLE raw.lineitem USING parquet LOCATION '{lines.parent}'"
    run_python("tests.projects.spark_sql", str(shop.project), "CREATE SCHEMA raw", table)
    return shop


def main(scale: str) -> None:
    home = Path(tempfile.mkdtemp(prefix="ci-bot-volume-"))
    try:
        shop = write_project(home, generate(scale, home / "data"))
        project = shop.project
        build = [sys.executable, "-m", "tests.projects.build_prod", str(project), PROD_UNTIL]
        print(f"prod: {time_command(build, ROOT).wall:.1f} s", flush=True)
        column = "CAST(l.l_discount AS DECIMAL(18, 2)) AS discount"
        shop.edit("models/lines.sql", column, f"{column},\n  {CHANGED}")
        out = home / "out"
        mine = time_command(
            run_ci_bot("apply", "--environment", "pr_1", "--output", str(out)), project
        ).wall
        # Another expression, so that the peer builds everything anew as well.
        shop.edit("models/lines.sql", "(1 - l.l_discount)", "(1.0 - l.l_discount)")
        plan = run_sqlmesh("plan", "pr_2", "--auto-apply", "--no-prompts", "--skip-tests")
        models = [part for name in ("lines", "parts", "returns") for part in ("-m", f"tpch.{name}")]
        built = time_command(plan, project).wall
        compared = time_command(run_sqlmesh("table_diff", "prod:pr_2", *models), project).wall
        print(f"apply + diff + verify: {mine:.1f} s; plan {built:.1f} s, then table_diff "
              f"{compared:.1f} s; ratio {mine / (built + compared):.2f}")  # fmt: skip
        tell(json.loads((out / "apply.json").read_text("utf-8")))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def tell(document: dict[str, Any]) -> None:
    """What the apply took by phase, and what its diff counted."""
    print(f"{document['result']}: {document['timings']}")
    for diff in document["table_diff"]:
        counted = {name: diff.get(name) for name in ("rows_prod", "rows_pr", "matched", "equal")}
        print(f"{diff['model']}: {counted}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "1")
