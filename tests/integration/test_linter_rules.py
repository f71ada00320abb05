"""ci-bot's model rules in a project's own linter: `sqlmesh lint` and SQLMesh's language server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from ci_bot.bot.policy.policy_file import FILE_NAME
from ci_bot.linter import RULES
from ci_bot.protocol.rules import RULES as PAGES
from ci_bot.worker.rules.model_rules import MODEL_RULES
from tests.conftest import missing
from tests.language_server import open_project
from tests.locked_packages import LockedPackagesMissingError

CONFIG = """\
gateways:
  duck:
    connection: {{type: duckdb}}
default_gateway: duck
model_defaults: {{dialect: duckdb, start: 2024-01-01}}
linter:
  enabled: true
  {kind}: [crossjoin, limitinmodel]
"""
MODEL = """\
MODEL (name shop.pairs, kind FULL);

-- a CROSS JOIN in a comment is none
SELECT a.x, '😀😀' AS smile FROM shop.left_side AS a CROSS JOIN shop.right_side AS b
"""
SOURCE = "MODEL (name shop.{name}, kind FULL, columns (x INT));\n\nSELECT 1 AS x\n"


def write_project(home: Path, *, kind: str = "warn_rules", policy: str | None = None) -> Path:
    """A project that uses all rules by one file, and has a model that one of them is about."""
    project = home / "project"
    for folder in ("models", "linter"):
        (project / folder).mkdir(parents=True)
    (project / "config.yaml").write_text(CONFIG.format(kind=kind))
    (project / "linter" / "plan_review.py").write_text("from ci_bot.linter import *  # noqa\n")
    (project / "models" / "pairs.sql").write_text(MODEL, encoding="utf-8")
    for name in ("left_side", "right_side"):
        (project / "models" / f"{name}.sql").write_text(SOURCE.format(name=name))
    if policy is not None:
        (project / FILE_NAME).write_text(policy)
    return project


def lint(project: Path) -> tuple[int, str]:
    """`sqlmesh lint`: the exit code, and what it prints as one line."""
    done = subprocess.run(
        [Path(sys.executable).with_name("sqlmesh"), "lint"],
        cwd=project,
        env={**os.environ, "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.returncode, " ".join(f"{done.stdout} {done.stderr}".split())


def test_rules__are_all_model_rules__each_by_its_id_without_hyphens() -> None:
    assert {kind.name for kind in RULES.values()} == {
        kind.spec.id.replace("-", "") for kind in MODEL_RULES
    }
    assert {kind.spec.id for kind in RULES.values()} <= set(PAGES)


def test_lint__warns_and_fails_with_weight_and_page(tmp_path: Path) -> None:
    code, told = lint(write_project(tmp_path))
    assert code == 0, told
    assert "`shop.right_side` is joined without a condition" in told
    column = MODEL.splitlines()[3].index("CROSS JOIN") + 3  # each smile is two units of UTF-16
    assert f"(high, line 4, column {column}) `ci-bot explain cross-join` says more." in told
    (tmp_path / "strict").mkdir()
    code, told = lint(write_project(tmp_path / "strict", kind="rules"))
    assert code != 0
    assert "ci-bot explain cross-join" in told


POLICIES = {
    "off": "severity:\n- {rule: cross-join, severity: 'off', models: shop.*, reason: wanted}\n",
    "ignored": "ignore:\n- {rule: cross-join, paths: 'models/*', reason: wanted, until: %s}\n",
    "of a tag": "severity:\n- {rule: cross-join, severity: 'off', models: 'tag:none', reason: x}\n",
    "lighter": "severity:\n- {rule: cross-join, severity: low, models: shop.pairs, reason: x}\n",
}


@pytest.mark.night
@pytest.mark.parametrize(
    ("case", "weight"), [("off", None), ("ignored", None), ("of a tag", "high"), ("lighter", "low")]
)
def test_lint__counts_what_the_policy_counts(case: str, weight: str | None, tmp_path: Path) -> None:
    from datetime import date, timedelta

    soon = (date.today() + timedelta(days=30)).isoformat()
    text = POLICIES[case] % soon if "%s" in POLICIES[case] else POLICIES[case]
    code, told = lint(write_project(tmp_path, policy=text))
    assert code == 0, told
    assert ("cross-join" in told) is (weight is not None)
    if weight is not None:
        assert f"({weight}, line 4," in told


def test_lint__repeats_the_teams_message(tmp_path: Path) -> None:
    words = "messages:\n- {rule: cross-join, models: shop.*, message: Ask Ada first.}\n"
    told = lint(write_project(tmp_path, policy=words))[1]
    assert "Your team says: Ask Ada first. `ci-bot explain cross-join`" in told


@pytest.mark.night
def test_lint__of_a_project_that_wants_some_of_them(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    config = (project / "config.yaml").read_text("utf-8")
    (project / "config.yaml").write_text(config.replace(", limitinmodel", ""))
    (project / "linter" / "plan_review.py").write_text(
        'from ci_bot.linter import RULES\n\nCrossJoin = RULES["CrossJoin"]\n'
    )
    code, told = lint(project)
    assert code == 0, told
    assert "`ci-bot explain cross-join` says more." in told


@pytest.mark.night
def test_lint__leaves_out_what_a_comment_in_the_model_ignores(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    path = project / "models" / "pairs.sql"
    comment = "-- review: ignore[cross-join] each side has one row\n"
    path.write_text(path.read_text("utf-8").replace("-- a CROSS", f"{comment}-- a CROSS"), "utf-8")
    assert "cross-join" not in lint(project)[1]


@pytest.mark.night
def test_lint__a_policy_that_cannot_be_used__is_one_sentence_with_its_line(tmp_path: Path) -> None:
    wrong = "severity:\n- {rule: cross-jon, severity: low, reason: x}\n"
    code, told = lint(write_project(tmp_path, policy=wrong))
    assert code != 0
    assert "line 2: there is no rule `cross-jon`" in told
    assert "Traceback" not in told


@pytest.mark.night
@pytest.mark.slow
def test_language_server__marks_the_words_and_links_the_page(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    try:
        with open_project(project, os.environ) as editor:
            found = editor.open_file(project / "models" / "pairs.sql")
    except LockedPackagesMissingError as error:
        missing(str(error))
    (item,) = [one for one in found if one["code"] == "crossjoin"]
    line = MODEL.splitlines()[3]
    before = line.index("CROSS JOIN")
    # Each smile is two units of UTF-16, and one letter of Python's.
    assert item["range"] == {
        "start": {"line": 3, "character": before + 2},
        "end": {"line": 3, "character": before + 2 + len("CROSS JOIN")},
    }
    assert item["severity"] == 2
    page = urlsplit(item["codeDescription"]["href"])
    assert page.fragment == "L1"
    assert Path(unquote(page.path)).read_text("utf-8").startswith("---\nid: cross-join\n")
