"""What a doctor says to a project that SQLMesh's own CI bot has reviewed so far."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig

from ci_bot.protocol.plan import ProjectCheck
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.doctor import bundled_bot
from ci_bot.worker.project.checks import OF_A_PLAN
from ci_bot.worker.project.configuration import (
    ProjectPlace,
    configure_projects,
    create_project_context,
)
from ci_bot.worker.runtime.process import WorkerPhaseClock
from tests.integration.test_doctor import examine
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

EVERYTHING = """\
cicd_bot:
  type: github
  invalidate_environment_after_deploy: false
  enable_deploy_command: true
  merge_method: squash
  command_namespace: "#acme"
  auto_categorize_changes: {sql: full, python: semi}
  default_pr_start: 1 week ago
  default_pr_preview_start: 2024-01-05
  skip_pr_backfill: true
  pr_include_unmodified: true
  run_on_deploy_to_prod: true
  pr_environment_name: Shop
  pr_min_intervals: 3
  pr_preview_min_intervals: 2
  prod_branch_name: release
  forward_only_branch_suffix: -fo
  check_if_blocked_on_deploy_to_prod: false
users:
- username: ada
  github_username: ada-gh
  roles: [required_approver]
- username: bob
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path / "shop")


def lines(*projects: Path) -> dict[str, ProjectCheck]:
    """The doctor's lines by name, after `cicd_bot.`."""
    scratch = projects[0].parent
    place = ProjectPlace(projects, projects[0], scratch / "cache", scratch, None)
    configs, _ = configure_projects(place, lambda: None, clock=WorkerPhaseClock())
    found = list(
        bundled_bot.check_keys_of_bundled_bot(create_project_context(configs, place), projects[0])
    )
    assert all(line.fix for line in found if line.status != "ok")
    named = {line.name.removeprefix("cicd_bot."): line for line in found}
    assert len(named) == len(found), "a line is there twice"
    return named


def configure_bot(shop: Shop, text: str) -> None:
    config = shop.project / "config.yaml"
    config.write_text(f"{config.read_text()}\n{text}\n")


def test_report__has_a_line_for_every_key_that_the_bot_knows(shop: Shop) -> None:
    configure_bot(shop, EVERYTHING)

    found = lines(shop.project)

    known = sqlmesh_compat.list_known_sqlmesh_bot_settings(GithubCICDBotConfig())
    assert set(found) == {*known, "checks", "users"}
    honoured = {name for name, line in found.items() if "honoured" in line.message}
    assert honoured == {*OF_A_PLAN, "pr_environment_name"}
    assert all(found[name].status == "ok" for name in honoured)
    rest = {name for name, line in found.items() if line.status == "warn"}
    assert rest == {*known, "checks", "users"} - honoured - {"type"}
    assert "the input `skip-backfill` wins" in found["skip_pr_backfill"].message
    assert "python semi, sql full" in found["auto_categorize_changes"].message
    assert "`shop_<number>`" in found["pr_environment_name"].message
    assert "ada-gh" in found["users"].message
    assert "bob" not in found["users"].message
    assert "`/deploy`" in found["enable_deploy_command"].message
    assert "SQLMesh - Run Unit Tests" in found["checks"].message


def test_report__tells_what_that_bot_does_where_nothing_is_written(shop: Shop) -> None:
    configure_bot(shop, "cicd_bot: {type: github, run_on_deploy_to_prod: false}")

    found = lines(shop.project)

    assert {name for name, line in found.items() if "is not written" in line.message} == {
        "skip_pr_backfill",
        "default_pr_preview_start",
        "forward_only_branch_suffix",
        "pr_environment_name",
    }
    assert found["run_on_deploy_to_prod"].status == "ok"
    assert {name for name, line in found.items() if line.status == "warn"} == {"checks"}


def test_report__says_of_an_inherited_value_that_it_holds_anyway(shop: Shop) -> None:
    configure_bot(shop, "cicd_bot: {type: github, pr_include_unmodified: false}")

    assert lines(shop.project)["pr_include_unmodified"].message == "says what holds anyway"


@pytest.mark.parametrize(
    ("value", "why", "fix"),
    [
        ("\"{{ env_var('NAME', 'team') }}\"", "is made by a template", ": team,"),
        ("7up", "does not begin with a letter", "`environment-prefix`,"),
    ],
)
def test_report__of_a_name_that_cannot_be_honoured_says_what_to_set(
    shop: Shop, value: str, why: str, fix: str
) -> None:
    configure_bot(shop, f"cicd_bot: {{type: github, pr_environment_name: {value}}}")

    line = lines(shop.project)["pr_environment_name"]

    assert line.status == "warn"
    assert why in line.message
    assert "`pr_<number>`" in line.message
    assert fix in (line.fix or "")


def test_report__of_a_name_in_python_says_what_to_set(shop: Shop) -> None:
    (shop.project / "config.yaml").unlink()
    shop.write(
        "config.py",
        "from sqlmesh.core.config import Config, DuckDBConnectionConfig, GatewayConfig, "
        "ModelDefaultsConfig\n"
        "from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig\n"
        "config = Config(\n"
        "    gateways={'duck': GatewayConfig(connection=DuckDBConnectionConfig())},\n"
        "    model_defaults=ModelDefaultsConfig(dialect='duckdb'),\n"
        "    cicd_bot=GithubCICDBotConfig(pr_environment_name='Team'),\n"
        ")\n",
    )

    line = lines(shop.project)["pr_environment_name"]

    assert "Python" in line.message
    assert "`environment-prefix`: team," in (line.fix or "")


def test_report__of_several_projects_names_what_only_another_one_writes(
    shop: Shop, tmp_path: Path
) -> None:
    other = write_duck_shop(tmp_path / "other")
    for each, name in ((shop, "one"), (other, "two")):
        config = each.project / "config.yaml"
        config.write_text(f"project: {name}\n{config.read_text()}")
    configure_bot(shop, "cicd_bot: {type: github, pr_min_intervals: 2}")
    configure_bot(other, "cicd_bot: {type: github, pr_min_intervals: 2, skip_pr_backfill: true}")

    found = lines(shop.project, other.project)

    assert "`cicd_bot.skip_pr_backfill` of the project" in found["projects"].message


def test_report__of_a_project_without_the_bot_is_empty(shop: Shop) -> None:
    assert lines(shop.project) == {}


def test_doctor__prints_the_report(shop: Shop, tmp_path: Path, java: None) -> None:
    configure_bot(shop, "cicd_bot: {type: github, pr_environment_name: shop, merge_method: merge}")

    _, checks, _ = examine(shop.project, tmp_path / "home")

    assert checks["cicd_bot.pr_environment_name"]["status"] == "ok"
    assert "auto-merge" in checks["cicd_bot.merge_method"]["fix"]
