"""How much a change builds, in the environment and in prod, on real plans of SQLMesh."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.plan.stages import BackfillStage

from ci_bot.protocol.plan import Backfill, ProdPlan, ShortWindow, sum_planned_work
from ci_bot.protocol.plan_identity import GivenFlags, PlanFlags
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply.recorder import ApplyRecorder
from ci_bot.worker.cost.plan_estimate import predict_plan_cost
from ci_bot.worker.messages import report_times
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import describe_plan, make_plan, prod_plan, whole_work
from ci_bot.worker.planning.identity import identify_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, PlanRequest
from ci_bot.worker.planning.plan_options import resolve_plan_options
from ci_bot.worker.planning.whole_work import find_short_window_of_plan
from ci_bot.worker.project import base_branch
from ci_bot.worker.project.checks import read_plan_settings_of_project
from ci_bot.worker.project.configuration import ProjectPlace
from ci_bot.worker.runtime.process import WorkerPhaseClock
from tests.projects import Shop
from tests.projects.forward import DAYS, DOUBLED, UNTIL, write_forward_shop
from tests.projects.opened import opened

Edit = tuple[str, str, str]
MODEL_START = "  start '2024-01-01',\n"
NO_PREVIEW: Edit = (
    "config.yaml",
    "default_gateway: duck",
    "default_gateway: duck\nplan:\n  enable_preview: false",
)
NOT_FORWARD: Edit = ("models/country_sales.sql", ", forward_only true", "")
NEW_COLUMN: Edit = (
    "models/orders.sql",
    "CAST(id AS INT) AS id,",
    "CAST(id AS INT) AS id, 1 AS one,",
)
EDITS: dict[str, list[Edit]] = {
    "breaking": [DOUBLED],
    "breaking, no previews": [DOUBLED, NO_PREVIEW],
    "breaking, nothing forward-only": [DOUBLED, NOT_FORWARD],
    "new column": [NEW_COLUMN],
    "new column, no previews": [NEW_COLUMN, NO_PREVIEW],
    "forward-only model": [("models/country_sales.sql", "SUM(amount)", "SUM(amount + 1)")],
    "full model": [("models/customers.sql", "SUM(amount)", "SUM(amount * 2)")],
    "view": [("models/top_customers.sql", "total > 5", "total > 6")],
    "seed": [("seeds/raw.csv", "1,DE,10", "1,DE,11")],
    "metadata": [("models/orders.sql", "grain id", "grain id,\n  description 'orders'")],
    "earlier start": [("models/orders.sql", MODEL_START, "  start '2023-12-01',\n")],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return write_forward_shop(tmp_path_factory.mktemp("forward"))


@pytest.fixture
def shop(built: Shop, tmp_path: Path) -> Shop:
    """A copy of the project and of its state, as prod left both."""
    copy = Shop(tmp_path / "shop")
    shutil.copytree(built.root, copy.root)
    copy.edit("config.yaml", str(built.root), str(copy.root))
    return copy


def edit(shop: Shop, *edits: Edit) -> None:
    for path, before, after in edits:
        shop.edit(path, before, after)


@dataclass(frozen=True)
class Seen:
    """What the worker sees of a plan."""

    context: Any
    planned: BuiltPlan
    wish: PlanRequest

    @property
    def names(self) -> MessageNames:
        return MessageNames(self.context.default_catalog, self.context.default_dialect)

    @property
    def environment(self) -> list[Backfill]:
        return describe_plan.list_planned_backfill(
            self.planned,
            whole_work.list_planned_environment_build(self.planned),
            self.names,
            reused=lambda snapshot: True,
        )

    @property
    def left(self) -> list[Backfill]:
        return describe_plan.list_remaining_work_of_plan(self.planned, self.names)

    @property
    def prod(self) -> ProdPlan:
        return prod_plan.plan_prod(
            self.context,
            self.planned,
            self.names,
            built=whole_work.list_planned_environment_build(self.planned),
            estimate=predict_plan_cost,
        )

    @property
    def window(self) -> ShortWindow | None:
        return find_short_window_of_plan(
            self.planned,
            self.wish,
            whole_work.list_planned_environment_build(self.planned),
            self.names,
            previews=sqlmesh_compat.sqlmesh_previews_forward_only(self.context),
        )

    @property
    def plan_id(self) -> str:
        identity = identify_plan(
            self.context, self.planned, state_schema_version=1, repository=Path("/nowhere")
        )
        return identity.plan_id()

    def executed(self) -> dict[str, int]:
        """Intervals by model, of the stages that an apply would run."""
        return {
            self.names.short_name(snapshot.name): describe_plan.count_planned_intervals(
                snapshot, intervals
            )
            if snapshot.is_incremental
            else 1
            for stage in make_plan.build_stages_of_plan(self.context, self.planned)
            if isinstance(stage, BackfillStage)
            for snapshot, intervals in stage.snapshot_to_intervals.items()
            if snapshot.is_model
        }


@contextmanager
def plan(
    shop: Shop, scratch: Path, flags: GivenFlags | None = None, **dates: Any
) -> Iterator[Seen]:
    scratch.mkdir(exist_ok=True)
    with opened(scratch, shop.project, write=True) as found:
        settings = read_plan_settings_of_project(found.context.configs)
        wished = PlanRequest.from_options(
            "pr_7", resolve_plan_options(flags or GivenFlags(), settings, **dates)
        )
        planned = make_plan.plan_against_prod(found.context, wished)
        assert planned is not None
        yield Seen(found.context, planned, wished)


@contextmanager
def plan_without_state(shop: Shop, base: Path, scratch: Path) -> Iterator[Seen]:
    """As `plan`, with the project in `base` for prod, built up to the same day."""
    wished = PlanRequest(environment="pr_7", flags=PlanFlags())
    places = [
        ProjectPlace((path,), path, scratch / name, scratch, None)
        for path, name in ((base, "base"), (shop.project, "head"))
    ]
    scratch.mkdir()
    clock = WorkerPhaseClock()
    found = base_branch.open_project_on_base_branch(
        places[1],
        places[0],
        execution=report_times.to_milliseconds(UNTIL),
        clock=clock,
        on_spark_start=lambda: None,
    )
    try:
        planned = make_plan.plan_against_prod(found.context, wished)
        assert planned is not None
        yield Seen(found.context, planned, wished)
    finally:
        found.close_state()


def counts(work: list[Backfill]) -> dict[str, int]:
    return {item.model: item.intervals for item in work}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.by_day(2)
def test_first_build__is_what_sqlmesh_executes_on_a_first_apply(
    shop: Shop, tmp_path: Path, name: str
) -> None:
    edit(shop, *EDITS[name])

    with plan(shop, tmp_path / "scratch") as seen:
        planned, left = counts(seen.environment), counts(seen.left)

        assert planned == left
        assert planned == seen.executed()


@pytest.mark.parametrize("name", ["breaking", "breaking, no previews"])
def test_target_intervals__of_some_models_are_those_among_all(
    shop: Shop, tmp_path: Path, name: str
) -> None:
    # It begins where its parent begins.
    edit(shop, *EDITS[name], ("models/country_sales.sql", MODEL_START, ""))
    edit(shop, ("config.yaml", "  start: 2024-01-01\n", ""))

    with plan(shop, tmp_path / "scratch") as seen:
        every = list(seen.planned.plan_snapshots.values())
        among_all = make_plan.list_target_intervals_of_plan(seen.planned, every)
        alone = {
            snapshot.snapshot_id: make_plan.list_target_intervals_of_plan(seen.planned, [snapshot])
            for snapshot in every
        }

        assert len(among_all) > 2
        for s_id, found in alone.items():
            assert found == {key: value for key, value in among_all.items() if key == s_id}
        assert make_plan.list_target_intervals_of_plan(seen.planned, []) == {}


@pytest.mark.night
@pytest.mark.parametrize("name", ["breaking", "new column", "breaking, nothing forward-only"])
@pytest.mark.parametrize("flags", [GivenFlags(), GivenFlags(preview_start="2024-11-01")])
def test_first_build__and_the_plan_id_are_the_same_after_the_apply(
    shop: Shop, tmp_path: Path, name: str, flags: GivenFlags
) -> None:
    edit(shop, *EDITS[name])
    with plan(shop, tmp_path / "first", flags) as seen:
        before, prod_before = seen.environment, seen.prod.full_backfill
        plan_id = seen.plan_id
        set_console(NoopConsole())
        seen.context.apply(seen.planned.plan)

    with plan(shop, tmp_path / "second", flags) as again:
        assert again.plan_id == plan_id
        assert again.environment == before
        assert again.prod.full_backfill == prod_before
        assert len(again.left) < len(before)


@pytest.mark.night
@pytest.mark.parametrize("name", ["breaking", "breaking, nothing forward-only", "new column"])
def test_apply__reports_what_the_review_counted(shop: Shop, tmp_path: Path, name: str) -> None:
    batches = ("models/orders.sql", "(time_column ds)", "(time_column ds, batch_size 100)")
    edit(shop, *EDITS[name], batches)
    told: list[tuple[int, int]] = []

    with plan(shop, tmp_path / "scratch") as seen:
        reviewed = sum_planned_work(seen.environment)
        recorder = ApplyRecorder(
            seen.names, lambda message, done, total: told.append((done, total))
        )
        for item in seen.left:
            recorder.expect_model(item)
        sqlmesh_compat.make_sqlmesh_evaluator(
            seen.context, recorder, recorder.on_audits, max_workers=1, promotion=nullcontext
        ).evaluate(seen.planned.plan.to_evaluatable())

    applied = recorder.list_applied_models({})
    assert sum_planned_work(applied) == reviewed
    assert reviewed.views == 1
    assert {model.model: model.batches for model in applied}["shop.orders"] == (
        4 if "nothing" in name else 1
    )
    assert told[-1] == (reviewed.batches, reviewed.batches)


SUM_FAILS = ("models/customers.sql", "SUM(amount)", "SUM(CAST(ERROR('broken') AS INT))")
SUM_IS_REFUSED = [
    ("models/customers.sql", "SUM(amount)", "SUM(amount * 2)"),
    ("models/customers.sql", "kind FULL", "kind FULL,\n  audits (forall(criteria := (total < 0)))"),
]
LAST_BATCH_FAILS = [
    NOT_FORWARD,
    ("models/orders.sql", "(time_column ds)", "(time_column ds, batch_size 100)"),
    (
        "models/orders.sql",
        "CAST(amount AS INT)",
        "CAST(CASE WHEN ds > '2024-11-01' THEN CAST(country AS INT) ELSE amount END AS INT)",
    ),
]


@pytest.mark.night
@pytest.mark.parametrize(
    ("edits", "shown", "intervals", "batches", "has_built"),
    [
        # What raised is in no table.
        pytest.param([SUM_FAILS], [], 0, 0, False, id="one that raises"),
        pytest.param(
            LAST_BATCH_FAILS, ["shop.orders"], 300, 3, True, id="the last of four that raises"
        ),
        # SQLMesh does not record the batch, so the next apply builds it again; the table is full.
        pytest.param(
            SUM_IS_REFUSED, ["shop.customers"], 0, 0, True, id="one that its audit refuses"
        ),
    ],
)
def test_apply__counts_no_batch_that_failed(
    shop: Shop,
    tmp_path: Path,
    edits: list[Edit],
    shown: list[str],
    intervals: int,
    batches: int,
    has_built: bool,
) -> None:
    edit(shop, *edits)
    told: list[str] = []

    with plan(shop, tmp_path / "scratch") as seen:
        recorder = ApplyRecorder(seen.names, lambda message, done, total: told.append(message))
        for item in seen.left:
            recorder.expect_model(item)
        with pytest.raises(Exception, match="Plan application failed"):
            sqlmesh_compat.make_sqlmesh_evaluator(
                seen.context,
                recorder,
                recorder.on_audits,
                max_workers=1,
                promotion=nullcontext,
                on_table_written=recorder.on_table_written,
            ).evaluate(seen.planned.plan.to_evaluatable())

    so_far = recorder.list_models_so_far()
    assert [model.model for model in so_far] == shown
    work = sum_planned_work(so_far)
    assert (work.intervals, work.batches) == (intervals, batches)
    assert recorder.has_built is has_built
    assert len([message for message in told if "in " in message]) == batches


def test_apply__audits_that_changed_on_built_data_build_nothing(shop: Shop, tmp_path: Path) -> None:
    edit(
        shop,
        ("models/orders.sql", "grain id", "grain id,\n  audits (unique_values(columns := id))"),
    )

    with plan(shop, tmp_path / "scratch") as seen:
        recorder = ApplyRecorder(seen.names, lambda message, done, total: None)
        sqlmesh_compat.make_sqlmesh_evaluator(
            seen.context, recorder, recorder.on_audits, max_workers=1, promotion=nullcontext
        ).evaluate(seen.planned.plan.to_evaluatable())

    (audited,) = recorder.list_models_so_far()
    assert [audit.audit for audit in audited.audits] == ["unique_values"]
    assert (audited.model, audited.intervals, audited.batches) == ("shop.orders", 0, 0)


def test_prod__rebuilds_what_the_environment_shortens(shop: Shop, tmp_path: Path) -> None:
    edit(shop, DOUBLED)

    with plan(shop, tmp_path / "scratch") as seen:
        assert counts(seen.environment)["shop.orders"] == 1
        assert counts(seen.prod.full_backfill) == {
            "shop.orders": DAYS,
            "shop.customers": 1,
            "shop.segments": 1,
            "shop.top_customers": 1,
        }
        assert counts(seen.prod.backfill)["shop.orders"] == DAYS - 1


def test_prod__selected_models_leave_the_others_to_prod(shop: Shop, tmp_path: Path) -> None:
    edit(shop, DOUBLED, NOT_FORWARD)

    with plan(shop, tmp_path / "scratch", GivenFlags(select_models=["shop.orders"])) as seen:
        assert set(counts(seen.environment)) == {"shop.orders"}
        assert "shop.customers" in counts(seen.prod.backfill)


def test_prod__a_model_without_a_start_loses_its_history(shop: Shop, tmp_path: Path) -> None:
    edit(
        shop,
        DOUBLED,
        NOT_FORWARD,
        ("models/orders.sql", MODEL_START, ""),
        ("config.yaml", "  start: 2024-01-01\n", ""),
    )

    with plan(shop, tmp_path / "scratch") as seen:
        assert counts(seen.prod.full_backfill)["shop.orders"] == 1
        held = next(one for one in seen.prod.held if one.model == "shop.orders")
        assert (held.start[:10], held.end[:10]) == ("2024-01-01", "2024-12-01")
        assert [(gap.model, gap.start[:10], gap.end[:10]) for gap in seen.prod.lost] == [
            ("shop.orders", "2024-01-01", "2024-11-30")
        ]


def test_first_build__a_model_without_a_start_begins_where_its_parent_does(
    shop: Shop, tmp_path: Path
) -> None:
    edit(
        shop,
        NOT_FORWARD,
        ("models/country_sales.sql", "SUM(amount)", "SUM(amount + 1)"),
        ("models/country_sales.sql", MODEL_START, ""),
        ("config.yaml", "  start: 2024-01-01\n", ""),
    )

    with plan(shop, tmp_path / "scratch") as seen:
        assert counts(seen.environment) == {"shop.country_sales": DAYS} == seen.executed()


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.by_day(2)
def test_base_branch__is_judged_as_a_prod_that_is_built_up_to_the_same_day(
    shop: Shop, built: Shop, tmp_path: Path, name: str
) -> None:
    edit(shop, *EDITS[name])
    with plan(shop, tmp_path / "state") as seen:
        environment, prod, window = seen.environment, seen.prod.full_backfill, seen.window

    with plan_without_state(shop, built.project, tmp_path / "base") as seen:
        assert counts(seen.environment) == counts(environment)
        assert counts(seen.prod.full_backfill) == counts(prod)
        assert seen.window == window


@pytest.mark.parametrize(
    ("edits", "wish", "cause", "models", "start"),
    [
        ([DOUBLED], {}, "forward_only_model", ["shop.country_sales"], "2024-11-30"),
        ([DOUBLED, NOT_FORWARD], {}, None, None, None),
        ([DOUBLED, NO_PREVIEW], {}, None, None, None),
        ([DOUBLED], {"start": "2024-11-01"}, "start", [], "2024-11-01"),
        ([DOUBLED], {"start": "2024-01-01"}, None, None, None),
        ([DOUBLED, NOT_FORWARD], {"end": "2024-06-30"}, "end", [], None),
        (
            [DOUBLED, NOT_FORWARD],
            {"flags": GivenFlags(min_intervals=5)},
            "min_intervals",
            [],
            "2024-11-26",
        ),
        (
            [DOUBLED, NOT_FORWARD],
            {"flags": GivenFlags(forward_only=True)},
            "forward_only_plan",
            [],
            "2024-11-30",
        ),
        (
            [
                DOUBLED,
                NOT_FORWARD,
                (
                    "config.yaml",
                    "default_gateway: duck",
                    "default_gateway: duck\nplan:\n  forward_only: true",
                ),
            ],
            {},
            "forward_only_plan",
            [],
            "2024-11-30",
        ),
        (
            [
                (
                    "config.yaml",
                    "default_gateway: duck",
                    "default_gateway: duck\nvirtual_environment_mode: dev_only",
                ),
                DOUBLED,
            ],
            {},
            "virtual_environment_mode",
            [],
            "2024-11-30",
        ),
        (
            [
                NOT_FORWARD,
                (
                    "models/orders.sql",
                    "(time_column ds)",
                    "(time_column ds, auto_restatement_cron '@weekly')",
                ),
            ],
            {},
            "auto_restatement",
            ["shop.orders"],
            "2024-11-30",
        ),
        ([("models/customers.sql", "SUM(amount)", "SUM(amount * 2)")], {}, None, None, None),
    ],
)
@pytest.mark.by_day(4)
def test_short_window__names_what_set_it(
    shop: Shop,
    tmp_path: Path,
    edits: list[Edit],
    wish: dict[str, Any],
    cause: str | None,
    models: list[str] | None,
    start: str | None,
) -> None:
    edit(shop, *edits)

    with plan(shop, tmp_path / "scratch", **wish) as seen:
        window = seen.window

    if cause is None:
        assert window is None
    else:
        assert window is not None
        assert (window.cause, window.models) == (cause, models)
        assert (window.start and window.start[:10]) == start


@pytest.mark.night
@pytest.mark.parametrize(
    ("wish", "orders", "country_sales"),
    [
        ({}, 1, 1),
        ({"start": "2024-11-01"}, 30, 30),
        ({"flags": GivenFlags(preview_start="2024-11-01")}, 1, 30),
        ({"flags": GivenFlags(min_intervals=5)}, 5, 1),
    ],
)
def test_short_window__only_start_widens_everything(
    shop: Shop, tmp_path: Path, wish: dict[str, Any], orders: int, country_sales: int
) -> None:
    edit(shop, DOUBLED)

    with plan(shop, tmp_path / "scratch", **wish) as seen:
        found = counts(seen.environment)

    assert (found["shop.orders"], found["shop.country_sales"]) == (orders, country_sales)
