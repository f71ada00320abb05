"""An environment's views lie where nothing of prod's is, whatever schemas and models are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.errors import RequestRefused
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import make_plan, prod_guard
from ci_bot.worker.planning.make_plan import BuiltPlan, PlanRequest
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened

NOTES = "MODEL (name {}, kind FULL);\n\nSELECT CAST(7 AS INT) AS a\n"
TABLE_SUFFIX = "environment_suffix_target: table"


def prod(tmp_path: Path, *models: str, setting: str = "") -> Shop:
    """The shop with more models, and prod built from it; then one of them changes."""
    shop = write_duck_shop(tmp_path)
    for number, name in enumerate(models):
        shop.write(f"models/notes_{number}.sql", NOTES.format(name))
    if setting:
        config = (shop.project / "config.yaml").read_text("utf-8")
        shop.write("config.yaml", f"{config}\n{setting}\n")
    run_prod(shop, "2024-01-04")
    for number, name in enumerate(models):
        shop.write(f"models/notes_{number}.sql", NOTES.format(name).replace("7", "8"))
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount + 1)")
    return shop


def check(shop: Shop, tmp_path: Path, environment: str) -> BuiltPlan:
    with opened(tmp_path, shop.project) as found:
        wish = PlanRequest(environment=environment, flags=PlanFlags())
        planned = make_plan.plan_against_prod(found.context, wish)
        assert planned is not None
        prod_guard.check_planned_views_apart_from_prod(found.context, planned)
        return planned


@pytest.mark.parametrize(
    ("model", "environment", "setting", "taken"),
    [
        ("shop__pr_7.notes", "pr_7", "", "shop__pr_7.notes"),
        ("SHOP__PR_7.notes", "pr_7", "", "shop__pr_7.notes"),
        ("shop.revenue__pr_7", "pr_7", TABLE_SUFFIX, "shop.revenue__pr_7"),
        # The physical schema of the shop is where the views of `sqlmesh` would be.
        ("sqlmesh.notes", "shop", "", "sqlmesh__shop."),
    ],
)
@pytest.mark.by_day(2)
def test_place__that_prod_has__is_refused(
    tmp_path: Path, model: str, environment: str, setting: str, taken: str
) -> None:
    shop = prod(tmp_path, model, setting=setting)
    with pytest.raises(RequestRefused) as refused:
        check(shop, tmp_path, environment)
    assert (refused.value.reason_code, refused.value.exit_code) == ("would_write_prod", 3)
    assert taken in refused.value.message
    assert "defect" not in f"{refused.value.message}{refused.value.hint}"


@pytest.mark.parametrize(
    ("model", "environment", "setting"),
    [
        ("shop__pr_8.notes", "pr_7", ""),
        # With the suffix on the table the schema is prod's, and that is as it should be.
        ("shop.notes", "pr_7", TABLE_SUFFIX),
        ("shop.revenue__pr_8", "pr_7", TABLE_SUFFIX),
        ("shop__pr_7.notes", "pr_7", TABLE_SUFFIX),
    ],
)
@pytest.mark.by_day(2)
def test_place__of_its_own__is_taken(
    tmp_path: Path, model: str, environment: str, setting: str
) -> None:
    shop = prod(tmp_path, model, setting=setting)
    assert check(shop, tmp_path, environment).plan.environment.name == environment


def test_plan__of_prod_itself__is_refused_whoever_made_it(tmp_path: Path) -> None:
    """The last lock: what a plan is for, as SQLMesh sees it and not as it was called."""
    shop = prod(tmp_path)
    with opened(tmp_path, shop.project) as found:
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="PROD", flags=PlanFlags())
        )
        assert planned is not None
        names = MessageNames(found.context.default_catalog, found.context.default_dialect)
        with pytest.raises(RequestRefused) as refused:
            prod_guard.check_plan_leaves_prod_untouched(planned, [], names)
    assert refused.value.reason_code == "prod"
    assert "defect" not in f"{refused.value.message}{refused.value.hint}"
