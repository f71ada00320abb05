"""What a pull request's environment is called when the project says it, from review to cleanup."""

from __future__ import annotations

import pytest

from tests.e2e.scene import Change, Scene
from tests.e2e.test_closed_meanwhile import add_column
from tests.e2e.test_life import environments, schemas
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def name_environments(scene: Scene, name: str) -> None:
    """Somebody writes on main what environments of pull requests are called."""
    scene.git("checkout", "-q", "main")
    config = scene.files.project / "config.yaml"
    kept = config.read_text("utf-8").partition("\ncicd_bot:")[0]
    config.write_text(f"{kept}\ncicd_bot:\n  type: github\n  pr_environment_name: {name}\n")
    scene.git.commit({}, f"Environments are called {name}")
    scene.push("main")


def rename_and_add(shop: Shop) -> None:
    """A pull request that also wants another name for its environment."""
    shop.edit("config.yaml", "pr_environment_name: Shop-PR", "pr_environment_name: mine")
    add_column("orders_of_named")(shop)


def reviewed(change: Change) -> str:
    outcome = change.review("opened")
    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["environment"] == "shop_pr_61"
    assert change.marker().env == "shop_pr_61"
    return outcome.outputs["plan-id"]


@pytest.mark.night
def test_name__of_the_base_branch_holds_until_the_environment_is_gone(scene: Scene) -> None:
    name_environments(scene, "Shop-PR")
    change = scene.open("named", rename_and_add, number=61)
    plan = reviewed(change)

    applied = change.dispatch({"plan-id": plan[:12]})

    assert applied.exit_code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert applied.outputs["environment"] == "shop_pr_61"
    assert "shop_pr_61" in environments(scene.shop)
    assert "shop__shop_pr_61" in schemas(scene.shop)

    # Meanwhile main has another name for those to come.
    name_environments(scene, "renamed")
    change.close()
    removed = change.closed()

    assert removed.exit_code == 0, f"{removed.stdout}\n{removed.stderr}"
    assert removed.outputs["reason-code"] == "removed"
    assert removed.outputs["environment"] == "shop_pr_61"
    assert removed.document("cleanup")["schemas_dropped"] == ["shop__shop_pr_61"]
    assert "`shop_pr_61` is removed" in change.sticky()
    assert "shop_pr_61" not in environments(scene.shop)
    assert "shop__shop_pr_61" not in schemas(scene.shop)


@pytest.mark.night
def test_name__of_the_input_wins(scene: Scene) -> None:
    name_environments(scene, "Shop-PR")
    change = scene.open("by-input", add_column("orders_of_input"), number=62)

    outcome = change.review("opened", inputs={"environment-prefix": "ci"})

    assert outcome.outputs["environment"] == "ci_62"
    assert change.marker().env == "ci_62"


@pytest.mark.night
def test_name__that_a_template_makes_is_told_and_not_used(scene: Scene) -> None:
    name_environments(scene, "\"{{ env_var('TEAM', 'shop') }}\"")
    change = scene.open("templated", add_column("orders_of_template"), number=63)

    outcome = change.review("opened")

    assert outcome.outputs["environment"] == "pr_63"
    assert any(
        "`cicd_bot.pr_environment_name` is made by a template" in told
        and "`environment-prefix`" in told
        for told in outcome.annotations("warning")
    )


@pytest.mark.night
def test_selection__by_git_needs_no_git(scene: Scene) -> None:
    """The checkout has two commits and no branch; the bot knows what the pull request changes."""
    change = scene.open("selected", add_column("orders_of_selected"), number=64)
    selected = {"select-model": "git:main"}
    outcome = change.review("opened", inputs=selected)

    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    report = outcome.document("report")
    assert {item["model"] for item in report["changes"]} == {
        "shop.revenue",
        "shop.top_customers",
    }
    assert {item["model"] for item in report["backfill"]} == {"shop.revenue"}

    applied = change.dispatch({"plan-id": outcome.outputs["plan-id"][:12], **selected})

    assert applied.exit_code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert applied.outputs["reason-code"] == "applied"
    other = change.dispatch({"plan-id": outcome.outputs["plan-id"][:12], "select-model": "git:dev"})
    assert other.exit_code == 2
    assert any("`git:main`" in told for told in other.errors)
    change.close()
    assert change.closed().exit_code == 0
