"""The `sqlmesh` lines of a comment are run on the project that it is about, and do what it says.

That all other lines can be typed is in `tests/contract/test_printed_commands.py`; the lines that
reproduce a review are run in `tests/e2e/test_reproduce.py`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from ci_bot.bot.report.markdown.comments import render_markdown_text
from tests.factories import make_context
from tests.projects.duck import CONFIG, run_prod
from tests.projects.repository import Files, Repository, write_repository
from tests.worker import Client

pytestmark = pytest.mark.slow

UNTIL = "2024-01-11"
LINTER = f"{CONFIG}\nlinter:\n  enabled: true\n  rules:\n    - noselectstar\n"
_SPAN = re.compile(r"`(sqlmesh [^`]+)`")
_FENCE = re.compile(r"^```bash\n(sqlmesh [^\n]+)$", re.MULTILINE)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = write_repository(tmp_path)
    made.shop.edit("config.yaml", "model_defaults:", f"{LINTER[len(CONFIG) :]}\nmodel_defaults:")
    made.commit({}, "The linter is on")
    run_prod(made.shop, UNTIL)
    return made


def printed(repository: Repository, files: Files) -> set[str]:
    """The `sqlmesh` lines in the comment on a pull request that changes these files."""
    report = Client(repository.root, ["project"]).review(
        "pr_142", commits=repository.change(files), execution_time=f"{UNTIL}T00:00:00Z"
    )
    comment = render_markdown_text(report, make_context())
    return {*_SPAN.findall(comment), *_FENCE.findall(comment)}


def run(repository: Repository, line: str, answer: str = "") -> tuple[int, str]:
    """Exit code and output of a line, as a reader runs it in the project's directory."""
    program, *rest = shlex.split(line)
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *rest],
        cwd=repository.shop.project,
        input=answer,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.night
def test_checks__each_line_shows_what_the_comment_speaks_of(repository: Repository) -> None:
    revenue = repository.read("project/models/revenue.sql")
    top = repository.read("project/models/top_customers.sql")
    commands = printed(
        repository,
        {
            # Another result than the unit test expects, and a line that SQLMesh writes otherwise.
            "project/models/revenue.sql": revenue.replace("SUM(o.amount)", "sum(  o.amount*2)"),
            "project/models/top_customers.sql": top.replace("r.customer_id,\n  r.revenue", "r.*"),
        },
    )
    assert {"sqlmesh test", "sqlmesh lint", "sqlmesh format"} <= commands

    code, output = run(repository, "sqlmesh test")
    assert code == 1
    assert "test_revenue_sums_by_customer" in output
    code, output = run(repository, "sqlmesh lint")
    assert code == 1
    assert "noselectstar" in output
    assert run(repository, "sqlmesh format --check")[0] == 1
    assert run(repository, "sqlmesh format")[0] == 0
    assert run(repository, "sqlmesh format --check")[0] == 0


@pytest.mark.night
def test_load_failure__the_line_shows_the_same_locally(repository: Repository) -> None:
    top = repository.read("project/models/top_customers.sql")
    commands = printed(
        repository, {"project/models/top_customers.sql": top.replace("FROM shop.revenue", "FROM")}
    )
    assert "sqlmesh info" in commands

    code, output = run(repository, "sqlmesh info")

    assert code == 1
    assert "models/top_customers.sql" in output


@pytest.mark.night
def test_no_changes__the_line_rebuilds_data_that_prod_has(repository: Repository) -> None:
    (line,) = printed(repository, {"README.md": "# Warehouse\n"})
    filled = {"MODEL": "shop.orders", "START": "2024-01-03", "END": "2024-01-04"}
    for place, value in filled.items():
        assert f" {place}" in line
        line = line.replace(f" {place}", f" {value}")
    warehouse = repository.shop.warehouse.with_suffix(".duckdb")
    with duckdb.connect(str(warehouse)) as connection:
        (table,) = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() "
            "WHERE schema_name = 'sqlmesh__shop' AND table_name LIKE 'shop__orders__%'"
        ).fetchall()[0]
        before = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        connection.execute(f"DELETE FROM {table}")

    code, output = run(repository, line, answer="y\n")

    assert code == 0, output
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        after = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    assert before is not None
    assert after is not None
    assert 0 < after[0] <= before[0], "the days that were named are there again"
