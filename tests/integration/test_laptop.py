"""`ci-bot review` on a laptop: without options, with those of the action, again and again."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.cli.local_review import LaptopReview, review_on_laptop
from ci_bot.errors import BadInput
from ci_bot.host import Machine, make_process_machine
from ci_bot.protocol.review_report import Report
from tests.conftest import REPOSITORY
from tests.github_standin import events
from tests.github_standin.event_parts import PullFacts
from tests.github_standin.repo import Repo
from tests.github_standin.standin import GitHubStandin
from tests.in_process import RunnerMachine
from tests.projects.duck import run_prod
from tests.projects.repository import Repository, write_repository

ORDERS = "project/models/orders.sql"
KEY = "sk_live_" + "51HyJ0kLq2XnV8dRt4Zw7Bc9"


def doubled(repository: Repository) -> dict[str, str]:
    return {ORDERS: repository.read(ORDERS).replace("customer_id * 10", "customer_id * 20")}


@pytest.fixture
def team(tmp_path: Path) -> Repository:
    """The shop with prod built, on its main branch, which origin has as well."""
    repository = write_repository(tmp_path / "repository")
    run_prod(repository.shop, "2024-01-10")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    repository.git("checkout", "-q", "-b", "work")
    return repository


def laptop(directory: Path) -> tuple[Machine, io.StringIO, io.StringIO]:
    out, log = io.StringIO(), io.StringIO()
    return replace(make_process_machine(), directory=directory, out=out, log=log), out, log


def review(directory: Path, **asked: Any) -> tuple[int, Report, str]:
    machine, out, log = laptop(directory)
    code = review_on_laptop(machine, LaptopReview(form="json", **asked))
    return code, Report.model_validate_json(out.getvalue()), log.getvalue()


def rules(report: Report) -> set[str]:
    return {risk.rule for risk in report.risks}


# --- the base that nobody names -------------------------------------------------------------------


def test_review__needs_no_option(team: Repository) -> None:
    base = team.git("rev-parse", "HEAD")
    head = team.commit(doubled(team))

    code, report, log = review(team.shop.project)

    assert (code, report.decision, report.baseline) == (0, "review", "state")
    assert (report.base_sha, report.head_sha) == (base, head)
    assert f"base: changes since `origin/main` ({base[:7]})\n" in log


def test_review__looks_at_what_is_not_committed_yet(team: Repository) -> None:
    team.commit(doubled(team))
    (team.shop.project / "keys.yaml").write_text(f"key: {KEY}\n")

    code, report, log = review(team.shop.project)

    assert (code, report.decision) == (1, "no_go")
    leaks = [risk.path for risk in report.risks if risk.rule == "hardcoded-secret"]
    assert leaks == ["project/keys.yaml"]
    assert "and of files that are not committed yet" in log
    assert KEY not in report.to_json()


@pytest.mark.night
def test_review__takes_nothing_of_what_main_has_got_meanwhile(team: Repository) -> None:
    """What others have merged since is no change of this branch, and was not taken back by it."""
    left = team.git("rev-parse", "HEAD")
    team.git("checkout", "-q", "main")
    team.commit({"project/models/leak.sql": f"-- {KEY}\n"})
    team.git("update-ref", "refs/remotes/origin/main", "main")
    team.git("checkout", "-q", "work")
    team.commit(doubled(team))

    _, report, _ = review(team.shop.project)

    assert report.base_sha == left
    assert "hardcoded-secret" not in rules(report)


def test_review__without_a_base__says_what_it_cannot_see(team: Repository) -> None:
    for ref in ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/heads/main"):
        team.git("update-ref", "--no-deref", "-d", ref)
    team.commit(doubled(team))

    _, report, log = review(team.shop.project)

    assert report.base_sha is None
    assert "base: no base branch is known, so rules on changed files are not run\n" in log
    with pytest.raises(
        BadInput, match="this clone has no `origin/HEAD`, `main` or `master`"
    ) as caught:
        review(team.shop.project, baseline="base-branch")
    assert "`--base-ref main`" in str(caught.value.hint)


def test_review__outside_of_git__says_what_it_cannot_see(tmp_path: Path) -> None:
    shop = write_repository(tmp_path / "repository").shop
    (tmp_path / "repository" / ".git").rename(tmp_path / "elsewhere")

    _, report, log = review(shop.project)

    assert report.head_sha is None
    assert "base: there is no git repository with a commit here" in log


@pytest.mark.night
def test_review__in_the_middle_of_a_merge__says_so(team: Repository) -> None:
    team.commit({"project/a.csv": "work"})
    team.git("checkout", "-q", "main")
    team.commit({"project/a.csv": "main"})
    with pytest.raises(subprocess.CalledProcessError):
        team.git("merge", "-q", "work")

    _, _, log = review(team.shop.project)

    assert "what is not committed yet could not be read" in log or "not committed yet" in log


# --- the options of the action --------------------------------------------------------------------

SAME: dict[str, tuple[dict[str, str], list[str]]] = {
    "nothing": ({}, []),
    "a window of previews": (
        {"start": "2024-01-03", "end": "2024-01-06", "forward_only": "true"}
        | {"preview_start": "2024-01-05", "preview_min_intervals": "3"},
        [
            *("--start", "2024-01-03", "--end", "2024-01-06", "--forward-only"),
            *("--preview-start", "2024-01-05", "--preview-min-intervals", "3"),
        ],
    ),
    "a selection": (
        {"select_model": "shop.orders+\nshop.customers", "include_unmodified": "true"}
        | {"restate_model": "shop.revenue", "min_intervals": "2"}
        | {"allow_destructive": "shop.orders"},
        [
            *("--select-model", "shop.orders+", "--select-model", "shop.customers"),
            *("--include-unmodified", "--restate-model", "shop.revenue", "--min-intervals", "2"),
            *("--allow-destructive", "shop.orders"),
        ],
    ),
    "limits": (
        {"max_intervals": "1", "max_executor_hours": "2", "executor_hour_price": "0.4"}
        | {"fail_on": "high", "skip_backfill": "true"},
        [
            *("--max-intervals", "1", "--max-executor-hours", "2"),
            *("--executor-hour-price", "0.4", "--fail-on", "high", "--skip-backfill"),
        ],
    ),
}


# The others are its siblings.
EVERY_TIME = "a selection"


@pytest.mark.standin
@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        EVERY_TIME,
        *(pytest.param(name, marks=pytest.mark.night) for name in SAME.keys() - {EVERY_TIME}),
    ],
)
def test_review__has_the_plan_and_the_findings_of_the_action(
    team: Repository, github_standin: GitHubStandin, github_repo: Repo, tmp_path: Path, case: str
) -> None:
    inputs, options = SAME[case]
    base = team.git("rev-parse", "HEAD")
    head = team.commit(doubled(team))
    team.git("checkout", "-q", "main")
    team.git("merge", "-q", "--no-ff", "-m", "merge", "work")
    merge = team.git("rev-parse", "HEAD")
    facts = PullFacts(
        repo=github_repo.full_name,
        head_repo=github_repo.full_name,
        head_ref="work",
        head_sha=head,
        base_sha=base,
        merge_sha=merge,
    )
    runner = RunnerMachine(
        api_url=github_standin.url,
        repository=github_repo.full_name,
        token=github_standin.actions_token(github_repo),
        home=tmp_path / "runner",
    )
    event = events.pull_request("opened", facts)
    ran = runner.run("pull_request", event, workspace=team.root, project="project", **inputs)
    path = team.root / ran.outputs["report-path"] / "report.json"
    action = Report.model_validate_json(path.read_text("utf-8"))
    team.git("checkout", "-q", "work")

    done = ci_bot("review", "project", "--environment=pr_7", *options, directory=team.root)

    here = Report.model_validate_json(done.stdout)
    assert here.plan_id == action.plan_id is not None
    assert here.identity == action.identity
    assert (here.decision, rules(here)) == (action.decision, rules(action))
    assert done.returncode == ran.exit_code
    assert here.cost == action.cost


def ci_bot(*arguments: str, directory: Path, form: str = "json") -> Any:
    return subprocess.run(
        [sys.executable, "-m", "ci_bot", *arguments, "--format", form],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )


# --- what it prints -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["markdown", "json"])
@pytest.mark.parametrize("option", ["full", "watch"])
def test_terminal_options__are_for_a_terminal(tmp_path: Path, form: str, option: str) -> None:
    machine, _, _ = laptop(tmp_path)
    asked = LaptopReview(**{"form": form, option: True})
    with pytest.raises(BadInput, match=f"`--{option}` is for a terminal") as caught:
        review_on_laptop(machine, asked)
    assert caught.value.exit_code == 2


@pytest.mark.night
def test_short__writes_the_complete_files_all_the_same(team: Repository, tmp_path: Path) -> None:
    team.commit(doubled(team))
    machine, out, _ = laptop(team.shop.project)
    asked = LaptopReview(output=str(tmp_path / "out"), fail_on="high")
    assert review_on_laptop(machine, asked) == 1
    assert len(out.getvalue().splitlines()) <= 12
    assert json.loads((tmp_path / "out/report.json").read_text("utf-8"))["decision"] == "review"
    assert "R06-breaking-rebuild" in (tmp_path / "out/report.md").read_text("utf-8")


# --- again and again ------------------------------------------------------------------------------


@pytest.mark.night
def test_watch__reviews_again_after_a_change_and_ends_with_ctrl_c(team: Repository) -> None:
    """The real process: what is broken in between is told, and ends nothing."""
    watching = subprocess.Popen(
        [sys.executable, "-u", "-m", "ci_bot", "review", "--watch"],
        cwd=team.shop.project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    told: list[str] = []

    def until(pattern: str) -> str:
        begin = len(told)
        for line in watching.stdout or ():
            told.append(line)
            if re.search(pattern, line):
                return "".join(told[begin:])
        raise AssertionError("".join(told))

    try:
        assert "No model changes" in until("^watch: watching")
        config = team.read("project/config.yaml")
        team.shop.write("config.yaml", "gateways: [")
        assert "ci-bot: The SQLMesh configuration" in until("^watch: watching")
        team.shop.write("config.yaml", config)
        until("^watch: watching")
        (team.root / ORDERS).write_text(doubled(team)[ORDERS])
        told_then = until("^watch: watching")
        assert "since the last round: new finding: R06-breaking-rebuild on shop.orders" in told_then
        watching.send_signal(signal.SIGINT)
        rest = until("^watch: ended")
        assert watching.wait(20) == 130
        assert "Traceback" not in rest
    finally:
        watching.kill()
        watching.wait()
        if watching.stdout:
            watching.stdout.close()


def test_watch__whose_first_review_cannot_be_made__ends(tmp_path: Path) -> None:
    machine, _, log = laptop(tmp_path)
    with pytest.raises(BadInput, match=r"config\.yaml or config\.py"):
        review_on_laptop(machine, LaptopReview(watch=True))
    assert "watch: watching" not in log.getvalue()
