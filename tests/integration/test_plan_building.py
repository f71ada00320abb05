"""A plan is built with less work, and is the plan that SQLMesh builds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core.context import Context
from sqlmesh.core.plan import PlanBuilder
from sqlmesh.utils.dag import DAG
from sqlmesh.utils.date import to_timestamp
from sqlmesh.utils.errors import PlanError

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project import base_branch
from ci_bot.worker.sqlmesh_compat import planner
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.security.forked import forked

UNTIL = "2024-01-05"
MODELS = 40
KINDS = (
    "FULL",
    "VIEW",
    "INCREMENTAL_BY_TIME_RANGE (time_column day, forward_only true)",
    "INCREMENTAL_BY_TIME_RANGE (time_column day)",
    "INCREMENTAL_BY_UNIQUE_KEY (unique_key x)",
)


def write_models(shop: Shop, chance: random.Random) -> None:
    """Models of all kinds, each of which reads some before it."""
    for number in range(MODELS):
        kind = chance.choice(KINDS)
        span = "WHERE day BETWEEN @start_ds AND @end_ds" if "TIME_RANGE" in kind else ""
        read = chance.sample(range(number), min(number, chance.randint(1, 3)))
        tables = " UNION ALL ".join(f"SELECT x, day FROM shop.n{other:02}" for other in read)
        source = tables or "SELECT 1 AS x, CAST('2024-01-01' AS DATE) AS day"
        shop.write(
            f"models/n{number:02}.sql",
            f"MODEL (name shop.n{number:02}, kind {kind}, owner first);\n\n"
            f"SELECT CAST(q.x AS INT) AS x, CAST(q.day AS DATE) AS day\nFROM ({source}) AS q {span}",
        )


def edit(shop: Shop, chance: random.Random) -> None:
    """Edits of data, of columns and of metadata."""
    edits = (
        ("CAST(q.x AS INT)", "CAST(q.x + 1 AS INT)"),
        ("AS day\nFROM (", "AS day, CAST(1 AS INT) AS more\nFROM ("),
        ("owner first", "owner second"),
    )
    for number in chance.sample(range(MODELS), 7):
        shop.edit(f"models/n{number:02}.sql", *chance.choice(edits))


def promoted(shop: Shop) -> None:
    context = Context(paths=[str(shop.project)])
    state = sqlmesh_compat.make_throwaway_sqlmesh_state(shop.state, context)
    sqlmesh_compat.give_sqlmesh_state(context, state)
    base_branch.promote_base_project_as_prod(context, state, to_timestamp(UNTIL))
    state.close()


def planned(shop: Shop, environment: str, *, shorter: bool) -> Any:
    """What the snapshots of the plan are taken for, or why there is no plan."""
    context = Context(paths=[str(shop.project)])
    builder = context.plan_builder(environment, execution_time=UNTIL, skip_tests=True)
    try:
        plan = sqlmesh_compat.build_sqlmesh_plan(builder) if shorter else builder.build()
    except PlanError as error:
        return str(error)
    return {
        s.name: (str(s.change_category), s.is_forward_only, s.version, sorted(s.intervals))
        for s in plan.snapshots.values()
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.by_day(1)
def test_categories__are_those_of_sqlmesh(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    shop = write_duck_shop(tmp_path)
    write_models(shop, chance)
    forked(lambda: promoted(shop), tmp_path)
    edit(shop, chance)

    for environment in ("pr_1", "prod"):
        plain, shorter = (
            forked(lambda: planned(shop, environment, shorter=way), tmp_path)  # noqa: B023 - now
            for way in (False, True)
        )
        assert shorter == plain
        assert len({found[:2] for found in plain.values()}) > 3


def test_snapshots_above__are_few(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path)
    for number in range(30):
        source = f"shop.n{number - 1:02}" if number else "shop.customers"
        shop.write(
            f"models/n{number:02}.sql",
            f"MODEL (name shop.n{number:02}, kind FULL);\n\nSELECT customer_id FROM {source}",
        )

    def most() -> int:
        context = Context(paths=[str(shop.project)])
        builder = context.plan_builder("pr_1", execution_time=UNTIL, skip_tests=True)
        dag = planner._SqlmeshKindsAbove.from_builder(builder._build_dag(), builder)
        assert dag is not None, "this version looks at something else: compare, then list it"
        return max(len(dag.upstream(node)) for node in dag)

    assert forked(most, tmp_path) <= 3


def test_snapshots_above__are_all_there_where_a_version_looks_at_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(self: Any, dag: Any) -> None:
        self.something_else(dag)

    monkeypatch.setattr(PlanBuilder, "_categorize_snapshot", other)
    assert planner._SqlmeshKindsAbove.from_builder(DAG(), None) is None
