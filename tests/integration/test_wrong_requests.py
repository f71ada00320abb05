"""Requests that name what does not exist, and projects that share a state without keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.errors import BadInput
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.planning import make_plan
from ci_bot.worker.planning.make_plan import PlanRequest
from ci_bot.worker.state_store.ledger import Ledger, LedgerRow
from tests.integration.test_review import state_rows
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened
from tests.worker import Client


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path / "one")


def plan(tmp_path: Path, *projects: Path, **flags: list[str]) -> None:
    wish = PlanRequest(environment="pr_1", flags=PlanFlags.model_validate(flags))
    with opened(tmp_path, *projects) as found:
        make_plan.plan_against_prod(found.context, wish)


@pytest.mark.parametrize("flag", ["select_models", "restate_models", "allow_destructive"])
@pytest.mark.by_day(2)
def test_plan__for_a_model_that_does_not_exist__names_the_nearest(
    shop: Shop, tmp_path: Path, flag: str
) -> None:
    run_prod(shop, "2024-01-04")
    with pytest.raises(BadInput) as refused:
        plan(tmp_path, shop.project, **{flag: ["shop.order"]})
    assert refused.value.reason_code == "unknown_model"
    assert f"`{flag.replace('_models', '-model').replace('_', '-')}`" in refused.value.message
    assert "shop.order" in refused.value.message
    assert "shop.orders" in (refused.value.hint or "")


@pytest.mark.parametrize("chosen", ["shop.orders", "+shop.revenue", "shop.*"])
@pytest.mark.by_day(2)
def test_plan__for_a_model_or_a_selection_that_sqlmesh_knows__is_made(
    shop: Shop, tmp_path: Path, chosen: str
) -> None:
    run_prod(shop, "2024-01-04")
    plan(tmp_path, shop.project, select_models=[chosen])


def test_plan__for_a_selection_of_nothing__says_so(shop: Shop, tmp_path: Path) -> None:
    run_prod(shop, "2024-01-04")
    with pytest.raises(BadInput, match="tag:nobody"):
        plan(tmp_path, shop.project, select_models=["tag:nobody"])


def second_project(shop: Shop, tmp_path: Path, key: str) -> Path:
    """Another project with one model, on the same state and warehouse."""
    other = tmp_path / "two"
    (other / "models").mkdir(parents=True)
    lines = (shop.project / "config.yaml").read_text().splitlines(keepends=True)
    config = "".join(line for line in lines if not line.startswith("project:"))
    (other / "config.yaml").write_text(f"project: {key}\n{config}" if key else config)
    (other / "models" / "stock.sql").write_text(
        "MODEL (name shop.stock, kind FULL);\nSELECT CAST(1 AS INT) AS item\n"
    )
    return other


def give_key(shop: Shop, key: str) -> None:
    config = shop.project / "config.yaml"
    config.write_text(f"project: {key}\n{config.read_text()}")


@pytest.mark.parametrize(("one", "two"), [("", ""), ("shop", ""), ("shop", "shop")])
@pytest.mark.by_day(2)
def test_projects__that_share_a_state_without_keys_of_their_own__are_refused(
    shop: Shop, tmp_path: Path, one: str, two: str
) -> None:
    if one:
        give_key(shop, one)
    other = second_project(shop, tmp_path, two)
    with pytest.raises(BadInput) as refused:
        plan(tmp_path, shop.project, other)
    assert refused.value.reason_code == "project_keys"
    assert "project:" in (refused.value.hint or "")
    assert not shop.state.exists()


def test_plan__that_would_remove_another_projects_models__is_refused(
    shop: Shop, tmp_path: Path
) -> None:
    """Ran with SQLMesh alone: applying the second project's plan removed all models of the first."""
    give_key(shop, "shop")
    run_prod(shop, "2024-01-04")
    before = state_rows(shop.state)
    without_key = second_project(shop, tmp_path, "")

    with pytest.raises(BadInput) as refused:
        plan(tmp_path, without_key)

    assert refused.value.reason_code == "other_project"
    assert "4 models of another project" in refused.value.message
    assert "(shop)" in refused.value.message
    assert state_rows(shop.state) == before
    plan(tmp_path, second_project(shop, tmp_path / "with_key", "stock"))


def test_environment__of_another_repository__is_said_in_the_review(
    shop: Shop, tmp_path: Path
) -> None:
    run_prod(shop, "2024-01-04")
    owned_by_another(shop, tmp_path, "pr_7")
    shop.edit("models/revenue.sql", "AS revenue", "AS income")
    shop.edit("models/top_customers.sql", "r.revenue", "r.income")
    shop.edit("tests/test_revenue.yaml", "revenue: 15}", "income: 15}")
    worker = Client(shop.project)

    before = state_rows(shop.state)
    report = worker.review("pr_7")

    assert any("belongs to somebody/else" in note for note in report.notes)
    assert state_rows(shop.state) == before


def owned_by_another(shop: Shop, tmp_path: Path, environment: str) -> None:
    with opened(tmp_path, shop.project, write=True) as found:
        ledger = Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(found.context))
        ledger.prepare_tables()
        ledger.write_row(
            LedgerRow(
                environment=environment,
                owner="somebody/else",
                pr_number=7,
                head_sha=None,
                plan_id=None,
                phase="applied",
                gateway="duck",
                catalog="one",
                suffix_target="schema",
                created_at="2024-01-01T00:00:00Z",
                updated_at="2024-01-01T00:00:00Z",
            )
        )
