"""Drift as the nightly workflow runs it: real SQLMesh and state, GitHub from the stand-in."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlmesh.core.context import Context
from sqlmesh.core.environment import Environment

from ci_bot.protocol.cleanup_report import StateSurvey
from ci_bot.worker.cleanup.sweep import survey_state_for_sweep
from ci_bot.worker.sqlmesh_compat import unwrap_sqlmesh_state_adapter
from ci_bot.worker.state_store import ApplyRow, CostLedger
from tests.github_standin import events, script
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.in_process import Ran, RunnerMachine
from tests.projects.duck import run_prod
from tests.projects.repository import Repository, write_repository

BOT = "github-actions[bot]"
PERMISSIONS = {"contents": "read", "pull-requests": "read", "issues": "write"}


def days_ago(count: int) -> str:
    return f"{datetime.now(timezone.utc) - timedelta(days=count):%Y-%m-%d}"


class Nightly:
    """A repository whose prod was built this morning, and its drift job."""

    def __init__(
        self, standin: GitHubStandin, repo: Repo, home: Path, *, lacks: str | None = None
    ) -> None:
        self.repo = repo
        self.repository: Repository = write_repository(home / "checkout")
        for name in ("project/config.yaml", "project/models/orders.sql"):
            text = self.repository.read(name).replace("2024-01-01", days_ago(6))
            self.repository.commit({name: text})
        run_prod(self.repository.shop, days_ago(0))
        granted = {name: level for name, level in PERMISSIONS.items() if name != lacks}
        self.machine = RunnerMachine(
            api_url=standin.url,
            repository=repo.full_name,
            token=standin.actions_token(repo, granted),
            home=home / "runner",
        )

    def compare(self, **inputs: str) -> Ran:
        event = events.schedule(repo=self.repo.full_name)
        given = {"mode": "drift", "project": "project", **inputs}
        return self.machine.run("schedule", event, workspace=self.repository.root, **given)

    def issues(self) -> list[dict[str, Any]]:
        """All issues that are no pull requests, oldest first."""
        found = self.repo._do("GET", "/issues?state=all&per_page=100")
        return sorted(
            (one for one in found if "pull_request" not in one), key=lambda one: one["number"]
        )

    def change(self, old: str, new: str) -> None:
        """Somebody merges a change that nobody deploys."""
        name = "project/models/revenue.sql"
        text = self.repository.read(name)
        assert old in text
        self.repository.commit({name: text.replace(old, new)})

    def write_to_state(self, *statements: str) -> None:
        with duckdb.connect(str(self.repository.shop.state)) as connection:
            for statement in statements:
                connection.execute(statement)


REVENUE = "SUM(o.amount) AS BIGINT) AS revenue"
MORE = f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS orders"


@pytest.mark.slow
@pytest.mark.standin
def test_drift__one_issue_is_opened_edited_closed_and_opened_again(
    github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path
) -> None:
    night = Nightly(github_standin, github_repo, tmp_path)
    clean = night.compare()
    assert (clean.exit_code, clean.outputs["reason-code"]) == (0, "no_drift"), clean.stdout
    assert "No drift" in clean.summary
    assert night.issues() == []

    night.change(REVENUE, MORE)
    first = night.compare()
    assert (first.exit_code, first.outputs["reason-code"]) == (0, "drift"), first.stdout
    assert first.result["findings"] == ["undeployed"]
    (issue,) = night.issues()
    assert (issue["user"]["login"], issue["state"]) == (BOT, "open")
    assert [label["name"] for label in issue["labels"]] == ["sqlmesh-drift"]
    assert "an older version" in issue["body"] and "revenue" in issue["body"]
    mark = issue["body"].splitlines()[0]
    # Somebody else's issue with our label and our mark is not ours.
    forged = github_repo._do(
        "POST",
        "/issues",
        {"title": "x", "body": f"{mark}\nall is well", "labels": ["sqlmesh-drift"]},
        login="author",
    )

    # The same drift writes nothing, and more of it edits the issue in place.
    before = len(github_standin.writes)
    assert night.compare().outputs["reason-code"] == "drift"
    assert len(github_standin.writes) == before
    night.write_to_state("DELETE FROM sqlmesh._intervals WHERE name LIKE '%orders%'")
    more = night.compare()
    assert set(more.result["findings"]) == {"undeployed", "behind"}, more.stdout
    edited = next(one for one in night.issues() if one["number"] == issue["number"])
    assert "Intervals behind" in edited["body"] and "shop.orders" in edited["body"]
    assert len(night.issues()) == 2

    # Deployed and built: closed. Drifted again: the same issue is open again.
    run_prod(night.repository.shop, days_ago(0))
    night.change(MORE, REVENUE)
    done = night.compare()
    assert (done.exit_code, done.outputs["reason-code"]) == (0, "no_drift"), done.summary
    closed = next(one for one in night.issues() if one["number"] == issue["number"])
    assert closed["state"] == "closed" and "No drift" in closed["body"]
    night.change(REVENUE, MORE)
    assert night.compare().outputs["reason-code"] == "drift"
    again = next(one for one in night.issues() if one["number"] == issue["number"])
    assert again["state"] == "open"
    unlike = next(one for one in night.issues() if one["number"] == forged["number"])
    assert unlike["body"].endswith("all is well")


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.standin
def test_drift__without_the_right_to_write_issues__is_told_by_the_summary(
    github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path
) -> None:
    night = Nightly(github_standin, github_repo, tmp_path, lacks="issues")
    night.change(REVENUE, MORE)
    ran = night.compare()
    assert (ran.exit_code, ran.outputs["reason-code"]) == (0, "drift"), ran.stdout
    assert "Not deployed" in ran.summary
    assert night.issues() == []
    (told,) = [text for text in ran.told("warning") if "drift" in text]
    assert "issues: write" in told


@pytest.mark.slow
@pytest.mark.standin
def test_drift__of_a_branch_that_does_not_load__fails_and_is_in_the_issue(
    github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path
) -> None:
    night = Nightly(github_standin, github_repo, tmp_path)
    night.change(REVENUE, "SUM(o.amount AS BIGINT) AS revenue")
    ran = night.compare()
    assert ran.exit_code == 1, ran.stdout
    assert ran.result["findings"] == ["no_plan"]
    (issue,) = night.issues()
    assert "has no plan for prod" in issue["body"]


@pytest.mark.slow
@pytest.mark.standin
def test_drift__github_that_does_not_answer__changes_no_issue(
    github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path
) -> None:
    night = Nightly(github_standin, github_repo, tmp_path)
    night.change(REVENUE, MORE)
    github_standin.script.on("GET", r"/repos/.*/issues", script.forbidden())
    ran = night.compare()
    assert ran.exit_code == 0
    assert night.issues() == []
    assert any("could not be written" in text for text in ran.told("warning"))


def survey(repository: Repository, **options: Any) -> StateSurvey:
    context = Context(paths=[str(repository.shop.project)])
    try:
        return survey_state_for_sweep(context.state_sync, prefix="pr", **options)
    finally:
        context.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    repository = write_repository(tmp_path_factory.mktemp("survey"))
    run_prod(repository.shop, "2024-01-08")
    return repository


def at(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def test_survey__intervals_are_behind_a_day_after_they_were_due(built: Repository) -> None:
    assert survey(built, now=at("2024-01-08T12:00:00")).behind == []
    # The day of 8 January was due at midnight: within a day nobody is late.
    assert survey(built, now=at("2024-01-09T23:00:00")).behind == []
    found = survey(built, now=at("2024-01-11T01:00:00"))
    (orders,) = [item for item in found.behind if item.model == "shop.orders"]
    assert (orders.start[:10], orders.end[:10]) == ("2024-01-08", "2024-01-10")
    assert found.behind_models == len(found.behind)


def test_survey__names_what_never_ends_and_what_nobody_reads(tmp_path: Path) -> None:
    repository = write_repository(tmp_path)
    shop = repository.shop
    run_prod(shop, "2024-01-08")
    shop.edit("models/revenue.sql", REVENUE, MORE)
    run_prod_again(repository, "2024-01-08")
    context = Context(paths=[str(shop.project)])
    try:
        state: Any = context.state_sync
        prod = state.get_environment("prod")
        for name, expires in (("dev_ada", None), ("dev_bob", 1), ("dev_eve", at("2124-01-01"))):
            values = prod.dict() | {"name": name, "expiration_ts": expires}
            state.state_sync.environment_state.update_environment(Environment(**values))
        moment = at("2030-01-01")
        found = survey_state_for_sweep(state, prefix="pr", now=moment)
    finally:
        context.close()
    assert [item.environment for item in found.lasting] == ["dev_ada", "dev_bob"]
    assert found.lasting[0].expires_at is None
    # dev_ada and the others hold prod's present versions; the first one of revenue is nobody's.
    unused = {item.model.rpartition(".")[2]: item.versions for item in found.unused}
    assert unused.get("revenue") == 1
    assert found.unused_versions == sum(unused.values())


def run_prod_again(repository: Repository, until: str) -> None:
    context = Context(paths=[str(repository.shop.project)])
    try:
        builder = context.plan_builder("prod", execution_time=until, skip_tests=True)
        context.apply(builder.build())
    finally:
        context.close()


def test_survey__estimates_that_were_off_by_a_factor_of_two(built: Repository) -> None:
    now = at("2024-02-01T00:00:00")
    rows = {
        "good": (2.0, 2.5, "applied", "2024-01-20"),
        "much more": (1.0, 2.0, "applied", "2024-01-21"),
        "much less": (4.0, 1.0, "applied", "2024-01-22"),
        "too small to say": (0.01, 0.09, "applied", "2024-01-23"),
        "a probe": (1.0, 9.0, "probed", "2024-01-24"),
        "no estimate": (None, 9.0, "applied", "2024-01-25"),
        "long ago": (1.0, 9.0, "applied", "2023-11-01"),
    }
    context = Context(paths=[str(built.shop.project)])
    try:
        ledger = CostLedger(unwrap_sqlmesh_state_adapter(context.state_sync))
        ledger.prepare_tables()
        for name, (expected, used, outcome, day) in rows.items():
            values = {
                "environment": name.replace(" ", "_"),
                "plan_id": None,
                "at": f"{day}T00:00:00Z",
                "outcome": outcome,
                "expected_hours": expected,
                "allocated_hours": used,
            }
            ledger.add_apply(
                ApplyRow.model_validate_json(json.dumps(values)), forget_before="2000-01-01"
            )
    finally:
        context.close()
    found = survey(built, now=now)
    assert [item.environment for item in found.estimates] == ["much_less", "much_more"]
    assert found.applies == 4
