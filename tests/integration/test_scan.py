"""What the changed files say is reported whatever becomes of the plan, and once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci_bot.protocol.review_report import Report
from tests import nights
from tests.projects.duck import run_prod
from tests.projects.repository import Files, Repository, write_repository
from tests.worker import Client

# Put together here, so that no scanner takes this file for one with a key in it.
KEY = "sk_live_" + "4f9c2b7d1e8a6053c1d2"
LEAK: Files = {"docs/notes.md": f"# Notes\n\nUse {KEY} for now.\n"}
BROKEN_SQL: Files = {"project/models/revenue.sql": "MODEL (name shop.revenue);\nSELECT FROM (\n"}
KILLED: Files = {"project/macros/__init__.py": "import os\nos.kill(os.getpid(), 9)\n"}
FAILURES: dict[str, Files] = {
    "a model that does not parse": BROKEN_SQL,
    "a configuration that does not parse": {"project/config.yaml": "gateways: [\n"},
    "a configuration that is not valid": {
        "project/config.yaml": "gateways: 1\nmodel_defaults: 2\n"
    },
    "a worker that is killed": KILLED,
    "a worker that ends without a word": {"project/macros/__init__.py": "import os\nos._exit(0)\n"},
    "a worker that takes everything with it": {
        "project/macros/__init__.py": "import os\nos.killpg(0, 9)\n"
    },
}


def review(repository: Repository, files: Files, baseline: str = "base-branch") -> Report:
    client = Client(repository.root, projects=("project",))
    return client.review("pr_1", commits=repository.change(files), baseline=baseline)


def leaks(report: Report) -> list[tuple[str | None, int | None, str]]:
    return [
        (risk.path, risk.line, risk.severity)
        for risk in report.risks
        if risk.rule == "hardcoded-secret"
    ]


FOUND = [("docs/notes.md", 3, "blocker")]


@pytest.mark.parametrize(
    "files",
    nights.cases(FAILURES, by_day=["a model that does not parse", "a worker that is killed"]),
)
def test_leaked_key__is_told_beside_the_failure(tmp_path: Path, files: Files) -> None:
    report = review(write_repository(tmp_path), {**LEAK, **files})

    assert report.failure is not None
    assert leaks(report) == FOUND
    assert report.decision == "no_go"
    assert any("hardcoded-secret" in reason for reason in report.reasons)
    assert KEY not in report.to_json()


@pytest.mark.parametrize(
    "files", nights.cases({"broken": BROKEN_SQL, "killed": KILLED}, by_day=["killed"])
)
def test_leaked_key__against_prods_state(tmp_path: Path, files: Files) -> None:
    repository = write_repository(tmp_path)
    run_prod(repository.shop, "2024-01-11")

    report = review(repository, {**LEAK, **files}, "state")

    assert report.failure is not None
    assert leaks(report) == FOUND


@pytest.mark.night
def test_leaked_key__where_the_base_does_not_load(tmp_path: Path) -> None:
    report = review(write_repository(tmp_path, BROKEN_SQL), LEAK)

    assert report.failure is None
    assert report.base_failures
    assert report.decision == "no_go"
    assert leaks(report) == FOUND


@pytest.mark.night
def test_leaked_key__where_the_state_is_out_of_reach_and_the_base_is_taken(tmp_path: Path) -> None:
    """Two workers are asked, one after the other; the files are read once."""
    repository = write_repository(tmp_path)
    text = repository.read("project/config.yaml")
    nowhere = "state_connection:\n      type: postgres\n      host: 127.0.0.1\n      port: 1\n"
    nowhere += "      user: u\n      password: \"{{ env_var('NO_SUCH') }}\"\n      database: "
    before, _, after = text.partition("state_connection:\n      type: duckdb\n      database: ")
    repository.commit({"project/config.yaml": before + nowhere + after})

    report = review(repository, {**LEAK, **BROKEN_SQL}, "auto")

    assert report.failure is not None
    assert leaks(report) == FOUND


def test_leaked_key__of_a_plan_that_works__is_told_once(tmp_path: Path) -> None:
    repository = write_repository(tmp_path)
    text = repository.read("project/models/revenue.sql").replace("revenue\n", "earned\n", 1)

    report = review(repository, {**LEAK, "project/models/revenue.sql": f"-- {KEY}\n{text}"})

    assert report.failure is None
    assert leaks(report) == [*FOUND, ("project/models/revenue.sql", 1, "blocker")]
    leaked = next(risk for risk in report.risks if risk.path == "project/models/revenue.sql")
    assert leaked.model == "shop.revenue"
    assert "scan" in report.timings


@pytest.mark.night
def test_rules_that_know_models__are_told_once(tmp_path: Path) -> None:
    """They run in both processes; of a plan that works only what the models say counts."""
    repository = write_repository(tmp_path)
    seed = repository.read("project/seeds/customers.csv")

    report = review(repository, {"project/seeds/customers.csv": f"{seed}4,Edsger,trade,extra\n"})

    assert [risk.rule for risk in report.risks].count("seed-broken") == 1


def test_rules_that_know_models__speak_without_them_where_there_is_no_plan(tmp_path: Path) -> None:
    repository = write_repository(tmp_path)

    report = review(repository, {**BROKEN_SQL, "project/tests/test_revenue.yaml": None})

    assert report.failure is not None
    assert [risk.rule for risk in report.risks].count("unit-test-removed") == 1


def test_statement__of_a_model_whose_project_does_not_load__is_told(tmp_path: Path) -> None:
    repository = write_repository(tmp_path)
    sql = repository.read("project/models/orders.sql")
    changed = {"project/models/orders.sql": f"{sql.rstrip().rstrip(';')};\nDROP TABLE prod.keep;\n"}

    report = review(repository, {**BROKEN_SQL, **changed, "scripts/old.sql": "DROP TABLE a.b;\n"})

    assert report.failure is not None
    told = [
        (risk.rule, risk.path) for risk in report.risks if "as the file has it" in risk.evidence
    ]
    assert told == [("destructive-statement", "project/models/orders.sql")]


def test_requirements_that_cannot_be_installed__hide_nothing(tmp_path: Path) -> None:
    repository = write_repository(tmp_path)
    commits = repository.change({**LEAK, "requirements.txt": "-e .\n"})
    client = Client(repository.root, projects=("project",), requirements="requirements.txt")

    report = client.review("pr_1", commits=commits, baseline="base-branch")

    assert report.failure is not None
    assert report.failure.reason_code == "bad_requirements"
    told = {risk.rule: risk.evidence for risk in report.risks}
    assert "may have been" not in told.get("R12-code-on-load", ""), "nothing was loaded"
    assert leaks(report) == FOUND


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n"
    for before, after in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
)


def test_file_that_keeps_a_rule_from_ending__does_not_hide_the_others(tmp_path: Path) -> None:
    """A configuration that grows without end when it is read, beside a leaked key."""
    repository = write_repository(tmp_path)
    text = repository.read("project/config.yaml")

    report = review(repository, {**LEAK, "project/config.yaml": f"{text}{BOMB}"})

    told = {risk.rule: risk.severity for risk in report.risks}
    assert leaks(report) == FOUND
    assert "R10-files-not-read" not in told
    assert report.failure is not None
    assert report.failure.path == "project/config.yaml"
    assert report.decision == "no_go"


@pytest.mark.night
@pytest.mark.parametrize(
    "files", nights.cases({"broken": BROKEN_SQL, "killed": KILLED}, by_day=["broken"])
)
def test_leaked_key__on_a_laptop(tmp_path: Path, files: Files) -> None:
    repository = write_repository(tmp_path)
    commits = repository.change({**LEAK, **files})

    done = subprocess.run(
        [sys.executable, "-m", "ci_bot", "review", "--project", str(repository.shop.project),
         "--baseline", "base-branch", "--base-ref", str(commits.base), "--format", "json"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip

    report = Report.model_validate(json.loads(done.stdout), strict=False)
    assert done.returncode == 1
    assert leaks(report) == FOUND
    assert KEY not in done.stdout + done.stderr


SLEEPING: Files = {"project/macros/late.py": "import time\ntime.sleep(400)\n"}


@pytest.mark.night
def test_time_limit__strikes_in_the_worker__all_that_is_known_is_told(tmp_path: Path) -> None:
    """It is not git's fault, and who makes the load slow keeps no key out of the report."""
    repository = write_repository(tmp_path)
    client = Client(repository.root, projects=("project",))
    client.patience_seconds = 45.0

    report = client.review(
        "pr_1", commits=repository.change({**LEAK, **SLEEPING}), baseline="base-branch"
    )

    assert report.failure is not None
    assert report.failure.reason_code == "timeout"
    assert report.failure.message.startswith("The worker did not finish within 45 seconds")
    assert "its last step was `" in report.failure.message
    assert "git" not in report.failure.message
    assert leaks(report) == FOUND
    on_load = [risk for risk in report.risks if risk.rule == "R12-code-on-load"]
    assert [risk.path for risk in on_load] == ["project/macros/late.py"]
    assert "R10-files-not-read" not in {risk.rule for risk in report.risks}


def test_file__whose_name_is_no_utf_8__is_planned_and_read(tmp_path: Path) -> None:
    """The model is the pull request's, its name can be shown, and a key in it is found."""
    repository = write_repository(tmp_path)
    name = os.fsdecode(b"project/models/bad\xff.sql")
    text = f"-- {KEY}\nMODEL (name shop.odd, kind VIEW);\nSELECT 1 AS id\n"

    report = review(repository, {name: text})

    assert report.failure is None
    shown = "project/models/bad\ufffd.sql"
    assert [(c.model, c.path, c.from_base) for c in report.changes] == [("shop.odd", shown, False)]
    assert [(path, severity) for path, _, severity in leaks(report)] == [(shown, "blocker")]


@pytest.mark.parametrize("call", ["sys.exit(0)", "raise ValueError(1)"])
def test_load__that_ends_without_words__is_a_sentence(tmp_path: Path, call: str) -> None:
    repository = write_repository(tmp_path)

    report = review(repository, {"project/macros/late.py": f"import sys\n{call}\n"})

    assert report.failure is not None
    assert re.search(r"ends the process \(`sys.exit\(0\)`\)|ValueError: 1", report.failure.message)
