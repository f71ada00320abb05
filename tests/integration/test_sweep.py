"""The sweep as the nightly workflow runs it: real state, real Spark, GitHub from the stand-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ci_bot.bot.cli.environments import sweep_on_laptop
from ci_bot.bot.report.markdown import marker as markers
from tests.conftest import run_python
from tests.github_standin import events, script
from tests.github_standin.pull import Pull
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.in_process import Ran, RunnerMachine
from tests.integration.test_review import ADD_ORDERS, state_rows
from tests.one_jvm import one_jvm
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.standin, pytest.mark.own_jvm]

BOT = "github-actions[bot]"
FIRST = 41


class Night:
    """A repository with pull requests 41 to 43 on the shop, and its nightly run."""

    def __init__(self, standin: GitHubStandin, repo: Repo, shop: Shop, home: Path) -> None:
        self.standin, self.repo, self.shop = standin, repo, shop
        self.machine = RunnerMachine(
            api_url=standin.url,
            repository=repo.full_name,
            token=standin.actions_token(repo),
            home=home,
        )
        self.pulls: dict[int, Pull] = {}
        self.applied: list[int] = []
        for number in range(FIRST, FIRST + 3):
            repo.commit(f"feature-{number}", {"a": str(number)}, start="main")
            self.pulls[number] = repo.create_pull(f"feature-{number}", number=number)

    def apply(self, *numbers: int, notes: bool = False) -> None:
        """Somebody applies the pull requests' plans. `notes`: and makes a table beside the views of
        the first."""
        with one_jvm(self.shop, owner=self.repo.full_name, alone_there=False) as jvm:
            for number in numbers:
                assert jvm.apply(f"pr_{number}").result == "applied"
                self.applied.append(number)
            if notes:
                schema = f"shop__pr_{numbers[0]}"
                jvm.sql(f"CREATE TABLE {schema}.notes USING parquet AS SELECT 1 AS a")

    def sweep(self, **inputs: str) -> Ran:
        """cleanup.yml on its schedule, on the default branch's checkout."""
        event = events.schedule(repo=self.repo.full_name)
        return self.machine.run("schedule", event, workspace=self.shop.project, **inputs)

    def sql(self, *statements: str) -> list[list[list[str]]]:
        out = run_python("tests.projects.spark_sql", str(self.shop.project), *statements)
        rows: list[list[list[str]]] = json.loads(out.strip().splitlines()[-1])
        return rows

    def state(self, *statements: str) -> None:
        with duckdb.connect(str(self.shop.state)) as connection:
            for statement in statements:
                connection.execute(statement)

    def comments(self, number: int) -> list[str]:
        return [str(each["body"]) for each in self.pulls[number].comments_by(BOT)]

    def forget(self) -> None:
        """Removes whatever is left, so that the shared shop is as before."""
        with duckdb.connect(str(self.shop.state)) as connection:
            tables = ("sqlmesh._environments", "sqlmesh_ci_bot._environments")
            if self.applied:
                for table in tables:
                    connection.execute(f"DELETE FROM {table} WHERE name IN ('pr_44', 'pr_45')")
                connection.execute(
                    "UPDATE sqlmesh_ci_bot._environments SET document = "
                    f"replace(document, '{self.repo.full_name}', 'octo/shop')"
                )
        if left := self.shop.environments():
            with one_jvm(self.shop, alone_there=False) as jvm:
                for name in sorted(left):
                    jvm.cleanup(name, claim=True)


@pytest.fixture
def night(
    github_standin: GitHubStandin, github_repo: Repo, shop: Shop, tmp_path: Path
) -> Iterator[Night]:
    shop.edit("models/revenue.sql", *ADD_ORDERS)
    with duckdb.connect(str(shop.state)) as connection:
        # Other tests' environments are gone, and their tables wait for a sweep of their own.
        if connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'sqlmesh_ci_bot'"
        ).fetchall():
            connection.execute("DELETE FROM sqlmesh_ci_bot._environments")
    made = Night(github_standin, github_repo, shop, tmp_path)
    yield made
    made.forget()


def test_sweep__rescues_what_is_closed_and_touches_nothing_else(night: Night) -> None:
    others = night.shop.environments()  # a test of an apply with GitHub down leaves one
    night.apply(41, 42, 43)
    night.pulls[41].merge()
    night.pulls[42].close()
    # On the same state: another repository's environment, and one that SQLMesh made by itself.
    copy = "INSERT INTO sqlmesh._environments SELECT * REPLACE ('{}' AS name) FROM " + (
        "sqlmesh._environments WHERE name = 'pr_43'"
    )
    night.state(
        copy.format("pr_44"),
        copy.format("pr_45"),
        "INSERT INTO sqlmesh_ci_bot._environments SELECT 'pr_44', 'acme/other', phase, "
        f"replace(replace(replace(document, '\"pr_43\"', '\"pr_44\"'), '{night.repo.full_name}', "
        "'acme/other'), '\"pr_number\":43', '\"pr_number\":44') "
        "FROM sqlmesh_ci_bot._environments WHERE name = 'pr_43'",
    )

    # Down: nothing is asked of the worker but the list, and nothing changes.
    rows = state_rows(night.shop.state)
    down = night.standin.script.on("GET", r".*/pulls", script.server_error(503), forever=True)
    failed = night.sweep()
    assert down.served > 1
    assert failed.exit_code == 1
    assert failed.result["reason_code"] == "github_unavailable"
    assert state_rows(night.shop.state) == rows
    night.standin.reset()

    # A look first, on a laptop.
    around, out = night.machine.surroundings(
        {
            "GITHUB_API_URL": night.standin.url,
            "GITHUB_REPOSITORY": night.repo.full_name,
            "GITHUB_TOKEN": night.machine.token,
        }
    )
    options: dict[str, Any] = {
        "projects": (str(night.shop.project),),
        "gateway": None,
        "environment_prefix": "pr",
        "max_deletions": 20,
        "worker_env": "",
        "python_path": (),
        "timeout_minutes": 5,
    }
    assert sweep_on_laptop(around, dry_run=True, **options) == 0
    assert "Sweep, dry run: 2 environments would be removed" in out.getvalue()
    assert night.machine.token not in out.getvalue()
    assert state_rows(night.shop.state) == rows
    assert len(night.standin.requests) <= 5
    assert night.standin.writes == []
    night.standin.reset()

    ran = night.sweep()

    assert ran.exit_code == 0, ran.stdout
    assert ran.result["removed"] == ["pr_41", "pr_42"]
    assert ran.result["left"] == []
    namespaces, rows_kept = night.sql("SHOW NAMESPACES", "SELECT COUNT(*) FROM shop__pr_43.revenue")
    assert {"shop__pr_41", "shop__pr_42"} & {row[0] for row in namespaces} == set()
    assert rows_kept == [["3"]]
    assert night.shop.environments() - others == {"pr_43", "pr_44", "pr_45"}
    assert others <= night.shop.environments()
    warned = ran.told("warning")
    assert len(warned) == 2
    assert "pr_41 is still there although pull request #41 is closed" in warned[0]
    assert "its cleanup never ran" in warned[0]
    assert "2 environments rescued" in ran.summary
    assert "not recorded by this action" in ran.summary
    assert "1 environment of other repositories" in ran.summary
    assert ran.stdout.count("starting Spark") == 1, "one JVM for all"
    pages = [each for each in night.standin.requests if each.request.path.endswith("/pulls")]
    assert len(pages) <= 5
    for number, how in ((41, "pull request merged"), (42, "closed without a merge")):
        (comment,) = night.comments(number)
        marker = markers.decode_comment_marker(comment)
        assert marker is not None
        assert (marker.phase, marker.env) == ("closed", f"pr_{number}")
        assert how in comment
        assert "found by the sweep" in comment
    assert night.comments(43) == []

    night.standin.reset()
    quiet = night.sweep()
    assert quiet.exit_code == 0
    assert "nothing was left behind" in quiet.summary
    assert quiet.told("warning") == []
    assert "starting Spark" not in quiet.stdout
    assert night.standin.writes == []


@pytest.mark.night
def test_sweep__that_cannot_finish_one_removes_the_others_and_is_exit_4(night: Night) -> None:
    night.apply(41, 42, notes=True)
    night.pulls[41].close()
    night.pulls[42].close()

    ran = night.sweep()

    assert ran.exit_code == 4
    assert ran.result["removed"] == ["pr_42"]
    assert ran.result["left"] == ["pr_41"]
    assert "pr_41" in ran.told("error")[0]
    namespaces, notes = night.sql("SHOW NAMESPACES", "SELECT a FROM shop__pr_41.notes")
    assert ["shop__pr_42"] not in namespaces
    assert notes == [["1"]]
    sticky, note = night.comments(41)
    marker = markers.decode_comment_marker(sticky)
    assert marker is not None
    assert marker.phase == "cleanup_failed"
    assert "incomplete" in note
    again = night.sweep()
    assert again.exit_code == 4
    assert len(night.comments(41)) == 2, "people are told once, not every night"
    assert "could not remove everything" in again.summary

    night.sql("DROP TABLE shop__pr_41.notes")
    assert night.sweep().exit_code == 0


def test_sweep__with_a_broken_configuration_touches_nothing(night: Night) -> None:
    night.shop.write("config.yaml", "gateways: [")
    ran = night.sweep()
    assert ran.exit_code == 2
    assert "config.yaml" in ran.told("error")[0]
    assert night.standin.requests == []
