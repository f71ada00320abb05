"""What a project writes for SQLMesh's own CI bot reaches the plan, and nothing that it does not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core.plan.stages import BackfillStage

from ci_bot.errors import BadInput
from ci_bot.protocol.plan import Backfill, ProdPlan, Window
from ci_bot.protocol.plan_identity import GivenFlags, PlanIdentity
from ci_bot.worker.cost.plan_estimate import predict_plan_cost
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import describe_plan, make_plan, prod_plan, whole_work
from ci_bot.worker.planning.identity import identify_plan
from ci_bot.worker.planning.make_plan import BuiltPlan, PlanRequest, name_plan_category
from ci_bot.worker.planning.plan_options import PlanOptions, resolve_plan_options
from ci_bot.worker.project.checks import read_plan_settings_of_project
from tests.github_standin.local_git import LocalGit
from tests.projects import Shop
from tests.projects.forward import DOUBLED, write_forward_shop
from tests.projects.opened import opened
from tests.worker import client

# An expression that changes is neither surely breaking nor surely not, so a mode that asks, asks.
SEMI = "{sql: semi, python: semi, seed: semi, external: semi}"
FULL = "{sql: full, python: full, seed: full, external: full}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return write_forward_shop(tmp_path_factory.mktemp("bundled"))


@pytest.fixture
def shop(built: Shop, tmp_path: Path) -> Shop:
    """A copy of project and state, with a change of the orders that needs all of their history."""
    copy = Shop(tmp_path / "shop")
    shutil.copytree(built.root, copy.root)
    copy.edit("config.yaml", str(built.root), str(copy.root))
    copy.edit(*DOUBLED)
    return copy


def configure(shop: Shop, text: str) -> None:
    config = shop.project / "config.yaml"
    config.write_text(f"{config.read_text()}\n{text}\n")


def not_forward_only(shop: Shop) -> None:
    shop.edit("models/country_sales.sql", ", forward_only true", "")


@dataclass(frozen=True)
class Seen:
    context: Any
    planned: BuiltPlan
    options: PlanOptions

    @property
    def names(self) -> MessageNames:
        return MessageNames(self.context.default_catalog, self.context.default_dialect)

    @property
    def built(self) -> dict[str, Backfill]:
        found = whole_work.list_planned_environment_build(self.planned)
        rows = describe_plan.list_planned_backfill(
            self.planned, found, self.names, reused=lambda _: True
        )
        return {row.model: row for row in rows}

    @property
    def categories(self) -> dict[str, str]:
        changed = self.planned.changed_snapshots
        return {
            self.names.short_name(snapshot.name): name_plan_category(snapshot)
            for snapshot in changed
        }

    @property
    def views(self) -> set[str]:
        promoted = self.planned.plan.environment.promoted_snapshots
        return {self.names.short_name(info.name) for info in promoted}

    @property
    def executed(self) -> set[str]:
        """The models that an apply would fill."""
        return {
            self.names.short_name(snapshot.name)
            for stage in make_plan.build_stages_of_plan(self.context, self.planned)
            if isinstance(stage, BackfillStage)
            for snapshot in stage.snapshot_to_intervals
        }

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
    def identity(self) -> PlanIdentity:
        return identify_plan(
            self.context, self.planned, state_schema_version=1, repository=Path("/nowhere")
        )


@contextmanager
def plan(
    shop: Shop,
    scratch: Path,
    *,
    branch: str | None = None,
    start: str | None = None,
    window: Window | None = None,
    **given: Any,
) -> Iterator[Seen]:
    """As the worker makes it for a review, and with a window as for an apply."""
    scratch.mkdir(exist_ok=True)
    with opened(scratch, shop.project, write=True) as found:
        options = resolve_plan_options(
            GivenFlags(**given),
            read_plan_settings_of_project(found.context.configs),
            start=start,
            head_branch=branch,
        )
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest.from_options("pr_7", options, window=window)
        )
        assert planned is not None
        yield Seen(found.context, planned, options)


@pytest.mark.night
def test_start__of_the_project_is_where_the_plan_begins(shop: Shop, tmp_path: Path) -> None:
    not_forward_only(shop)
    configure(shop, "cicd_bot:\n  type: github\n  default_pr_start: 1 week ago")

    with plan(shop, tmp_path / "scratch") as seen:
        # A week before the end of prod's data, whatever day it is today.
        assert seen.built["shop.orders"].start == "2024-11-24T00:00:00Z"
        assert seen.built["shop.orders"].intervals == 7
    with plan(shop, tmp_path / "other", start="2024-11-30") as seen:
        assert seen.built["shop.orders"].intervals == 1, "the input wins"


def test_start__after_the_end_of_prods_data_is_told_with_its_key(
    shop: Shop, tmp_path: Path
) -> None:
    configure(shop, "cicd_bot: {type: github, default_pr_start: 2025-06-01}")

    with (
        pytest.raises(BadInput, match=r"`cicd_bot.default_pr_start` \(2025-06-01T") as refused,
        plan(shop, tmp_path / "scratch"),
    ):
        pass

    assert "input `start`, which wins" in (refused.value.hint or "")


def test_min_intervals__of_the_project(shop: Shop, tmp_path: Path) -> None:
    not_forward_only(shop)
    configure(shop, "cicd_bot: {type: github, pr_min_intervals: 5}")

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.built["shop.orders"].intervals == 5
    with plan(shop, tmp_path / "other", min_intervals=0) as seen:
        assert seen.built["shop.orders"].intervals == 335, "an explicit 0 is not nothing said"


@pytest.mark.night
def test_previews__begin_where_the_project_says(shop: Shop, tmp_path: Path) -> None:
    configure(shop, "cicd_bot: {type: github, default_pr_preview_start: 3 days ago}")

    with plan(shop, tmp_path / "scratch") as seen:
        preview = seen.built["shop.country_sales"]
        assert (preview.preview, preview.start) == (True, "2024-11-28T00:00:00Z")
    with plan(shop, tmp_path / "other", preview_start="2024-11-20") as seen:
        assert seen.built["shop.country_sales"].start == "2024-11-20T00:00:00Z"


def test_previews__have_as_many_intervals_as_the_project_says(shop: Shop, tmp_path: Path) -> None:
    configure(shop, "cicd_bot: {type: github, pr_preview_min_intervals: 4}")

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.built["shop.country_sales"].intervals == 4
    with plan(shop, tmp_path / "other", preview_min_intervals=2) as seen:
        assert seen.built["shop.country_sales"].intervals == 2


def test_backfill__that_the_project_skips_is_none(shop: Shop, tmp_path: Path) -> None:
    configure(shop, "cicd_bot: {type: github, skip_pr_backfill: true}")

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.built == {}
        assert describe_plan.list_remaining_work_of_plan(seen.planned, seen.names) == []
        assert seen.identity.flags.skip_backfill
        assert seen.executed == set()
    with plan(shop, tmp_path / "other", skip_backfill=False) as seen:
        assert "shop.orders" in seen.built
        assert "shop.orders" in seen.executed


@pytest.mark.night
def test_unmodified_models__get_views_where_the_project_says_so(shop: Shop, tmp_path: Path) -> None:
    with plan(shop, tmp_path / "plain") as seen:
        few = seen.views
    configure(shop, "cicd_bot: {type: github, pr_include_unmodified: true}")

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.views > few
        assert "shop.raw" in seen.views
        # Of the models that did not change nothing is built.
        assert "shop.raw" not in seen.built
    with plan(shop, tmp_path / "other", include_unmodified=False) as seen:
        assert seen.views == few


def test_unmodified_models__of_plan_are_covered_by_the_plan_id(shop: Shop, tmp_path: Path) -> None:
    """Before, the plan held them, and neither the id nor the limits of the backfill knew."""
    configure(shop, "plan: {include_unmodified: true}")

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.identity.flags.include_unmodified
        assert {"raw" in item.model for item in seen.identity.snapshots} == {True, False}


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("text", "category"),
    [
        (f"plan: {{auto_categorize_changes: {SEMI}}}", "uncategorized"),
        (
            f"plan: {{auto_categorize_changes: {SEMI}}}\n"
            f"cicd_bot: {{type: github, auto_categorize_changes: {FULL}}}",
            "breaking",
        ),
        (f"cicd_bot: {{type: github, auto_categorize_changes: {SEMI}}}", "uncategorized"),
        # What the bot's section inherits is the project's own setting.
        (
            f"plan: {{auto_categorize_changes: {SEMI}}}\ncicd_bot: {{type: github}}",
            "uncategorized",
        ),
    ],
)
def test_categories__are_those_of_the_bot_if_it_says(
    shop: Shop, tmp_path: Path, text: str, category: str
) -> None:
    configure(shop, text)

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.categories["shop.orders"] == category
        # Prod is planned with the same categories, so it fails where they are missing.
        assert seen.prod.would_fail is (category == "uncategorized")


@pytest.mark.parametrize(
    ("branch", "given", "forward_only"),
    [
        ("orders-fo", {}, True),
        ("orders", {}, False),
        ("orders-forward-only", {}, False),
        (None, {}, False),
        ("orders-fo", {"forward_only": False}, False),
    ],
)
@pytest.mark.by_day(3)
def test_branch__whose_name_ends_so_is_planned_forward_only(
    shop: Shop, tmp_path: Path, branch: str | None, given: dict[str, Any], forward_only: bool
) -> None:
    configure(shop, "cicd_bot: {type: github, forward_only_branch_suffix: -fo}")

    with plan(shop, tmp_path / "scratch", branch=branch, **given) as seen:
        assert seen.planned.plan.forward_only is forward_only
        assert seen.identity.flags.forward_only is forward_only
        # Forward-only, a merge builds nothing of prod's history anew.
        assert bool(seen.prod.full_backfill) is not forward_only


@pytest.mark.night
def test_forward_only__false_overrides_a_project_that_says_true(shop: Shop, tmp_path: Path) -> None:
    configure(shop, "plan: {forward_only: true}")

    with plan(shop, tmp_path / "scratch") as seen:
        assert (seen.planned.plan.forward_only, seen.identity.flags.forward_only) == (True, True)
    with plan(shop, tmp_path / "other", forward_only=False) as seen:
        assert (seen.planned.plan.forward_only, seen.identity.flags.forward_only) == (False, False)
        assert seen.categories["shop.orders"] == "breaking"
        assert {row.model for row in seen.prod.full_backfill} >= {"shop.orders"}


@pytest.mark.night
def test_section__that_says_nothing_of_plans_changes_nothing(shop: Shop, tmp_path: Path) -> None:
    """That bot builds no data, previews from yesterday and knows `-forward-only` by default."""
    with plan(shop, tmp_path / "plain", branch="x-forward-only") as seen:
        plain = seen.identity.plan_id()
    configure(shop, "cicd_bot: {type: github, run_on_deploy_to_prod: true}")

    with plan(shop, tmp_path / "scratch", branch="x-forward-only") as seen:
        assert seen.identity.plan_id() == plain
        assert seen.options.said == ()


def test_apply__of_a_reviewed_window_is_the_same_plan(shop: Shop, tmp_path: Path) -> None:
    configure(
        shop,
        "cicd_bot: {type: github, default_pr_start: 2 weeks ago, pr_preview_min_intervals: 3, "
        "default_pr_preview_start: yesterday, pr_include_unmodified: true}",
    )
    with plan(shop, tmp_path / "review", branch="b") as seen:
        reviewed = seen.identity

    with plan(shop, tmp_path / "apply", branch="b", window=reviewed.window) as seen:
        assert seen.identity.plan_id() == reviewed.plan_id()


def test_config_py__is_honoured_in_the_plan(shop: Shop, tmp_path: Path) -> None:
    (shop.project / "config.yaml").unlink()
    shop.write(
        "config.py",
        "from sqlmesh.core.config import Config, DuckDBConnectionConfig, GatewayConfig, "
        "ModelDefaultsConfig\n"
        "from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig\n"
        "config = Config(\n"
        "    gateways={'duck': GatewayConfig(\n"
        f"        connection=DuckDBConnectionConfig(database='{shop.warehouse}.duckdb'),\n"
        f"        state_connection=DuckDBConnectionConfig(database='{shop.state}'),\n"
        "    )},\n"
        "    default_gateway='duck',\n"
        "    model_defaults=ModelDefaultsConfig(dialect='duckdb', start='2024-01-01'),\n"
        "    cicd_bot=GithubCICDBotConfig(skip_pr_backfill=True),\n"
        ")\n",
    )

    with plan(shop, tmp_path / "scratch") as seen:
        assert seen.identity.flags.skip_backfill
        assert [option.key for option in seen.options.said] == ["cicd_bot.skip_pr_backfill"]


def test_review__says_which_options_hold_and_who_said_them(shop: Shop) -> None:
    configure(
        shop,
        "cicd_bot: {type: github, skip_pr_backfill: true, default_pr_start: 1 week ago}",
    )

    report = client(shop).review("pr_7", flags=GivenFlags(include_unmodified=True))

    assert report.failure is None
    assert {(o.name, o.value, o.source, o.key) for o in report.options} == {
        ("include-unmodified", "true", "input", None),
        ("skip-backfill", "true", "project", "cicd_bot.skip_pr_backfill"),
        ("start", "1 week ago", "project", "cicd_bot.default_pr_start"),
    }
    assert report.backfill == []
    assert report.identity is not None
    assert report.identity.window.start == "2024-11-24T00:00:00Z"
    assert report.cost.tables == 0


@pytest.mark.night
def test_review__of_no_change_is_none_whatever_the_project_includes(shop: Shop) -> None:
    path, before, after = DOUBLED
    shop.edit(path, after, before)
    configure(shop, "cicd_bot: {type: github, pr_include_unmodified: true}")

    report = client(shop).review("pr_7")

    assert report.failure is None
    assert (report.decision, report.changes, report.backfill) == ("no_changes", [], [])


@pytest.mark.night
def test_git__on_a_laptop_is_asked_itself(shop: Shop) -> None:
    """There the branches are, and what is not committed counts, as with plain `sqlmesh`."""
    git = LocalGit(shop.project)
    git.commit({}, "The shop")
    git("checkout", "-q", "-b", "feature")
    shop.edit("models/top_customers.sql", "total > 5", "total > 6")

    report = client(shop).review("pr_7", flags=GivenFlags(select_models=["git:main"]))

    assert report.failure is None
    assert {change.model for change in report.changes} == {"shop.top_customers"}
