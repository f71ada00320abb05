"""A review without state, warehouse or secret sees what a review with prod's state sees.

No JVM anywhere: the Spark project is only planned, and the one with data runs on DuckDB.
"""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ci_bot.protocol.messages import Owner, ReviewRequest, Workplace
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import describe_plan, make_plan
from ci_bot.worker.planning.make_plan import PlanRequest
from ci_bot.worker.project import base_branch
from ci_bot.worker.project.configuration import (
    ProjectPlace,
    configure_projects,
    create_project_context,
)
from ci_bot.worker.project.loading import load_project
from ci_bot.worker.review.review_plan import ReviewPorts, open_for_review
from ci_bot.worker.runtime.process import WorkerPhaseClock
from tests.projects import Shop
from tests.projects.duck import run_prod
from tests.security.forked import forked
from tests.security.history import first_tree, steps, write

EXECUTION = "2024-01-21T00:00:00+00:00"


def no_spark() -> None:
    raise AssertionError("a JVM was started")


def ask(root: Path, which: str, head: Path, base: Path | None = None) -> ReviewRequest:
    """A request with private directories of its own."""
    run = Path(tempfile.mkdtemp(prefix=which, dir=root))
    for name in ("cache", "scratch"):
        (run / name).mkdir(parents=True)
    return ReviewRequest(
        projects=[str(head)],
        base_repository=str(base) if base else None,
        base_projects=[str(base)] if base else [],
        workplace=Workplace(
            repository=str(head), cache_dir=str(run / "cache"), scratch_dir=str(run / "scratch")
        ),
        owner=Owner(name="octo/shop", pr_number=7),
        environment="pr_7",
        baseline="base-branch" if base else "state",
        execution_time=EXECUTION,
    )


def ports() -> ReviewPorts:
    return ReviewPorts(
        clock=WorkerPhaseClock(), progress=lambda *_words: None, on_spark_start=no_spark
    )


def seen(root: Path, which: str, head: Path, base: Path | None = None) -> dict[str, Any]:
    """What a reader of the report learns about the models."""
    opened = open_for_review(ask(root, which, head, base), ports())
    wish = PlanRequest(environment="pr_7", flags=PlanFlags(), execution_time=EXECUTION)
    planned = make_plan.plan_against_prod(opened.context, wish)
    assert not opened.spark_started
    if planned is None:
        return {}
    names = MessageNames(opened.context.default_catalog, opened.context.default_dialect)
    changes = describe_plan.list_planned_changes(
        planned,
        names,
        repository=head,
        columns=lambda *_: [],
        is_from_base=lambda *_: False,
        also_in={},
    )
    lineage = describe_plan.make_lineage_of_plan(planned, names)
    return {
        **{change.model: change.model_dump() for change in changes},
        "nodes": sorted(map(str, lineage.nodes)),
        "edges": sorted(map(str, lineage.edges)),
    }


def place(root: Path, directory: Path) -> ProjectPlace:
    scratch = root / "promote"
    scratch.mkdir(exist_ok=True)
    return ProjectPlace(
        projects=(directory,),
        repository=directory,
        cache_dir=root / "promote-cache",
        scratch_dir=scratch,
        gateway=None,
    )


def build_spark_prod(root: Path, directory: Path) -> None:
    """The project's own state, with `directory` as prod. The data itself is not built."""
    (root / "state.duckdb").unlink(missing_ok=True)
    configs, _ = configure_projects(place(root, directory), no_spark, clock=WorkerPhaseClock())
    context = create_project_context(configs, place(root, directory))
    state = sqlmesh_compat.make_sqlmesh_state(context)
    state.migrate()
    sqlmesh_compat.give_sqlmesh_state(context, state)
    load_project(context, nullcontext(), root)
    base_branch.promote_base_project_as_prod(context, state, 1_705_795_200_000)  # EXECUTION
    context.close()


def compare(root: Path, words: str, head: Path, base: Path) -> dict[str, Any]:
    with_state = forked(lambda: seen(root, "state", head), root)
    without = forked(lambda: seen(root, "base", head, base), root)
    for name in with_state.keys() | without.keys():
        assert without.get(name) == with_state.get(name), (words, name)
    return with_state


@pytest.mark.night
@pytest.mark.slow
def test_history__on_duckdb_with_a_prod_that_grows_is_the_same_from_both(tmp_path: Path) -> None:
    # prod is built for real, change by change: it holds reused tables, forward-only versions and
    # categories of its own, of which the base branch's files know nothing.
    history = steps(first_tree(tmp_path, "duckdb"), seed=20_241, count=32)
    base, head = tmp_path / "before", tmp_path / "project"
    tree = first_tree(tmp_path, "duckdb")
    shop = Shop(write(tree, head).parent)
    forked(lambda: run_prod(shop, EXECUTION), tmp_path)
    categories: set[Any] = set()
    for words, after in history:
        write(tree, base)
        write(after, head)
        found = compare(tmp_path, words, head, base)
        categories |= {part["category"] for part in found.values() if isinstance(part, dict)}
        forked(lambda: apply_to_prod(head), tmp_path)
        tree = after
    assert {"breaking", "non_breaking", "metadata", "indirect_breaking"} <= categories


def apply_to_prod(directory: Path) -> None:
    """What the team's own deployment does after a merge."""
    from sqlmesh.core.context import Context

    context = Context(paths=[str(directory)])
    try:
        builder = context.plan_builder(
            # Without data: what a history of random changes computes is not the point.
            "prod",
            execution_time=EXECUTION,
            skip_tests=True,
            empty_backfill=True,
        )
        context.apply(builder.build())
    finally:
        context.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [4, pytest.param(8, marks=pytest.mark.night)], ids=["four", "eight"]
)
def test_history__on_spark_is_the_same_from_both_without_a_jvm(
    tmp_path: Path, changes: int
) -> None:
    tree = first_tree(tmp_path, "spark")
    base, head = tmp_path / "before", tmp_path / "project"
    for words, after in steps(tree, seed=20_242, count=changes):
        write(tree, base)
        write(after, head)
        forked(partial(build_spark_prod, tmp_path, base), tmp_path)
        compare(tmp_path, words, head, base)
        tree = after
