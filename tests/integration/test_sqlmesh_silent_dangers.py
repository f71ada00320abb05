"""What SQLMesh does, without a word, in the cases that rules warn of: held on DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlmesh import Context

CONFIG = """
gateways: {{g: {{connection: {{type: duckdb, database: '{root}/w.db'}}}}}}
model_defaults: {{dialect: duckdb, start: '2024-01-01'}}
{more}
"""
Project = Callable[..., Context]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Writes files (None deletes one) and opens the project that they make."""

    def opened(more: str = "", **files: str) -> Context:
        (tmp_path / "config.yaml").write_text(CONFIG.format(root=tmp_path, more=more))
        for name, text in files.items():
            path = tmp_path / ("tests" if name.startswith("test_") else "models")
            path.mkdir(exist_ok=True)
            suffix = ".yaml" if name.startswith("test_") else ".sql"
            (path / f"{name}{suffix}").write_text(text)
        return Context(paths=[str(tmp_path)])

    return opened


def deploy(context: Context, **more: Any) -> None:
    context.plan("prod", auto_apply=True, no_prompts=True, skip_tests=True, **more)


def rows(context: Context, query: str) -> list[tuple[Any, ...]]:
    return list(context.engine_adapter.fetchall(query))


@pytest.mark.parametrize("invalidate", [True, False])
def test_history__closes_what_the_window_no_longer_delivers(
    project: Project, invalidate: bool
) -> None:
    context = project(
        h=f"""
        MODEL (name m.h, kind SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name updated_at,
          invalidate_hard_deletes {invalidate}), cron '@daily');
        SELECT id, updated_at FROM raw.c WHERE updated_at >= @execution_ts::TIMESTAMP - INTERVAL 7 DAY
        """
    )
    context.engine_adapter.execute("CREATE SCHEMA raw")
    context.engine_adapter.execute(
        "CREATE TABLE raw.c AS SELECT 1 AS id, TIMESTAMP '2024-01-03' AS updated_at"
    )
    deploy(context, execution_time="2024-01-05")
    context.run(execution_time="2024-02-05")
    assert rows(context, "SELECT valid_to IS NOT NULL FROM m.h") == [(invalidate,)]


def test_history__with_a_null_in_its_key_stores_the_row_once_more_each_run(
    project: Project,
) -> None:
    context = project(
        k="""
        MODEL (name m.k, kind SCD_TYPE_2_BY_COLUMN (unique_key (id, part), columns (v)),
          cron '@daily');
        SELECT id::INT AS id, part::VARCHAR AS part, 1::INT AS v FROM raw.k
        """
    )
    context.engine_adapter.execute("CREATE SCHEMA raw")
    context.engine_adapter.execute("CREATE TABLE raw.k AS SELECT 1 AS id, NULL::VARCHAR AS part")
    deploy(context, execution_time="2024-01-05")
    context.run(execution_time="2024-01-07")
    assert rows(context, "SELECT COUNT(*) > 1 FROM m.k") == [(True,)]


LOG = """
    MODEL (name m.l, kind INCREMENTAL_BY_TIME_RANGE (time_column d, forward_only {0},
      on_additive_change {1}), cron '@daily');
    SELECT d::DATE AS d, 1::INT AS a{2} FROM raw.l WHERE d BETWEEN @start_ds AND @end_ds
"""


@pytest.mark.parametrize(
    ("forward_only", "additive", "arrives"),
    [("true", "ignore", False), ("true", "allow", True), ("false", "ignore", True)],
)
def test_column__that_is_ignored_never_arrives_in_a_table_that_is_altered(
    project: Project, forward_only: str, additive: str, arrives: bool
) -> None:
    context = project(l=LOG.format(forward_only, additive, ""))
    context.engine_adapter.execute("CREATE SCHEMA raw")
    context.engine_adapter.execute(
        "CREATE TABLE raw.l AS SELECT DATE '2024-01-01' + i::INT AS d FROM range(9) AS t(i)"
    )
    deploy(context, execution_time="2024-01-04")
    context = project(l=LOG.format(forward_only, additive, ", 2::INT AS b"))
    deploy(context, execution_time="2024-01-04")
    context.run(execution_time="2024-01-06")
    assert ("b" in context.engine_adapter.columns("m.l")) is arrives


TEST = """
test_m:
  model: m.m
  outputs: {query: {rows: [{a: 2}]}}
"""


def test_unit_tests__that_a_pattern_matches_are_not_run(project: Project) -> None:
    files = {"m": "MODEL (name m.m, kind FULL); SELECT 1::INT AS a", "test_m": TEST}
    assert not project(**files).test().wasSuccessful()
    hidden = project("ignore_patterns: ['tests/*.yaml']", **files).test()
    assert (hidden.testsRun, hidden.wasSuccessful()) == (0, True)
