"""What is spared for want of a next run changes nothing that a plan says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import sqlmesh.core.constants
from sqlmesh.core.context import Context
from sqlmesh.core.model.cache import OptimizedQueryCache
from sqlmesh.core.snapshot import SnapshotChangeCategory
from sqlmesh.utils import cron
from sqlmesh.utils.date import to_datetime

from ci_bot.worker import sqlmesh_compat
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.security.forked import forked

plain_cron: Any = cron.croniter


# Parts of queries that have empty arguments as they are parsed, and none after a way through a file.
EMPTY = {
    "window": "ROW_NUMBER() OVER (ORDER BY c.customer_id) AS part",
    "call": "PI() AS part",
    "unknown": "VERSION() AS part",
    "array": "[] AS part",
    "cast": "CAST(c.customer_id AS INT) AS part",
    "case": "CASE WHEN c.customer_id > 1 THEN 1 END AS part",
}
MODEL = """\
MODEL (name shop.{}, kind FULL);

WITH c AS (SELECT DISTINCT customer_id FROM shop.customers)
SELECT {} FROM c ORDER BY 1 LIMIT 3
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A changed sum, and models with a column more."""
    shop = write_duck_shop(tmp_path)
    for name, part in EMPTY.items():
        shop.write(f"models/{name}.sql", MODEL.format(name, part))
    forked(lambda: run_prod(shop, "2024-01-05"), tmp_path)
    shop.edit("models/revenue.sql", "SUM(o.amount)", "MAX(o.amount)")
    for name in EMPTY:
        shop.edit(f"models/{name}.sql", "AS part", "AS part, 1 AS more")
    return shop


def plan_of(shop: Shop, cache: Path, *, spared: bool, loaded_again: bool, forks: int) -> Any:
    """What a plan says, and how many files the cache holds after it."""
    if spared:
        sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=loaded_again)
    sqlmesh.core.constants.MAX_FORK_WORKERS = forks
    configs = sqlmesh_compat.read_sqlmesh_configs([shop.project])
    sqlmesh_compat.prepare_sqlmesh_configs(configs, cache)
    context = Context(paths=[str(shop.project)], config=configs)
    try:
        plan = context.plan_builder("pr_1", execution_time="2024-01-05", skip_tests=True).build()
        snapshots = {
            snapshot.name: (
                snapshot.fingerprint.to_identifier(),
                str(snapshot.change_category),
                snapshot.node.columns_to_types and sorted(snapshot.node.columns_to_types),
                str(snapshot.node.render_query()) if snapshot.node.is_sql else None,
            )
            for snapshot in plan.snapshots.values()
        }
        missing = {str(m.snapshot_id): m.intervals for m in plan.missing_intervals}
        stored = [
            context.state_reader.get_snapshots([info.snapshot_id])[info.snapshot_id]
            for info in context.state_reader.get_environment("prod").snapshots
        ]
        queries = sorted(str(one.node.render_query()) for one in stored if one.node.is_sql)
    finally:
        context.close()
    files = sum(len(names) for _, _, names in os.walk(cache))
    return (snapshots, missing, queries), files


@pytest.mark.by_day(1)
@pytest.mark.parametrize("forks", [1, 2])
def test_plan__is_the_same_and_no_file_is_written(tmp_path: Path, shop: Shop, forks: int) -> None:
    def planned(name: str, **options: Any) -> Any:
        (tmp_path / name).mkdir()
        return forked(lambda: plan_of(shop, tmp_path / name, forks=forks, **options), tmp_path)

    plain, plain_files = planned("plain", spared=False, loaded_again=False)
    once, files = planned("once", spared=True, loaded_again=False)
    twice, kept = planned("twice", spared=True, loaded_again=True)
    warm, _ = forked(
        lambda: plan_of(shop, tmp_path / "twice", spared=True, loaded_again=False, forks=forks),
        tmp_path,
    )
    assert once == twice == warm == plain
    categories = {name.split('"')[-2]: category for name, (_, category, *_) in plain[0].items()}
    assert {categories[name] for name in EMPTY} == {str(SnapshotChangeCategory.NON_BREAKING)}
    assert categories["revenue"] == str(SnapshotChangeCategory.BREAKING)
    if hasattr(OptimizedQueryCache, "get_or_create_entry"):
        assert files == 0
    assert files < plain_files
    assert 0 < kept < plain_files, "models and queries, and no snapshots"


def test_crons__have_the_same_moments(tmp_path: Path) -> None:
    starts = [to_datetime(f"2024-0{month}-28 23:0{month}:01") for month in range(1, 7)]
    lines = [
        "@daily",
        "@hourly",
        "*/5 * * * *",
        "0 0 1 * *",
        "0 0 1 1 *",
        "7 3 * * 1-5",
        "0 0 29 2 *",
    ]

    def steps() -> list[tuple[float, float]]:
        sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=False)
        made: Any = cron
        return [
            (made.croniter(line, at).get_next(), made.croniter(line, at).get_prev())
            for _ in range(2)
            for line in lines
            for at in starts
        ]

    plain = [
        (plain_cron(line, at).get_next(), plain_cron(line, at).get_prev())
        for _ in range(2)
        for line in lines
        for at in starts
    ]
    assert forked(steps, tmp_path) == plain
