"""What a state holds of another project and cannot be used here: nobody's doing in this one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.protocol.review_report import Report, Risk
from tests.projects.history import BROKEN, Repository, sql_model
from tests.worker import Client

CONFIG = """\
project: {project}
gateways:
  main:
    connection: {{type: duckdb, database: {root}/warehouse.duckdb}}
    state_connection: {{type: duckdb, database: {root}/state.duckdb}}
model_defaults: {{dialect: duckdb, start: 2024-01-01}}
"""
MACRO = """\
from sqlmesh import macro
from library_of_beta import plus_one


@macro()
def one_more(evaluator, x):
    return plus_one(x)
"""
LIBRARY = "def plus_one(x):\n    return f'{x} + 1'\n"
README = {"README.md": "Alpha.\n"}


# Byte code beside the project's files would be taken for a change.
@patch.object(sys, "dont_write_bytecode", new=True)
def build_prod(project: Repository) -> None:
    """Plans and applies prod, which may hold another project already."""
    set_console(NoopConsole())
    context = Context(paths=[str(project.root)])
    try:
        context.apply(context.plan_builder("prod", skip_tests=True).build())
    finally:
        context.close()


@pytest.fixture
def alpha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A project whose state holds another one, beta, with a library that only prod has."""
    here = Repository(tmp_path / "alpha" / "project")
    there = Repository(tmp_path / "beta" / "project")
    here.commit(
        {
            "config.yaml": CONFIG.format(project="alpha", root=tmp_path),
            "models/good.sql": sql_model("good"),
            ".gitignore": ".cache/\n",
        }
    )
    there.commit(
        {
            "config.yaml": CONFIG.format(project="beta", root=tmp_path),
            "models/b.sql": sql_model("b", "SELECT @one_more(one) AS two FROM shop.good"),
            "macros/m.py": MACRO,
        }
    )
    library = tmp_path / "library"
    library.mkdir()
    (library / "library_of_beta.py").write_text(LIBRARY)
    build_prod(here)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(library))
        build_prod(there)
        sys.modules.pop("library_of_beta", None)
    return here


def record(alpha: Repository, old: str, new: str) -> None:
    """Writes the state's record of beta's model as another version might have written it."""
    with duckdb.connect(str(alpha.root.parent.parent / "state.duckdb")) as state:
        state.execute(
            "UPDATE sqlmesh._snapshots SET snapshot = replace(snapshot, ?, ?)"
            " WHERE name LIKE '%\"b\"'",
            [old, new],
        )


def another_python(alpha: Repository) -> None:
    record(alpha, "from library_of_beta import plus_one", "type Number = int")


def another_sqlmesh(alpha: Repository) -> None:
    record(alpha, '"node":{', '"node":{"a_later_setting":true,')


def another_parser(alpha: Repository) -> None:
    record(alpha, "SELECT @one_more(one) AS two", "SELECT (1 AS two")


def as_it_is(alpha: Repository) -> None:
    """The library is missing here."""


def reviewed(alpha: Repository, head: dict[str, str | None], baseline: str = "auto") -> Report:
    commits = alpha.pull_request({}, head)
    report: Report = Client(alpha.root).review("pr_7", commits=commits, baseline=baseline)
    return report


def finding(report: Report, rule: str) -> Risk:
    (found,) = [risk for risk in report.risks if risk.rule == rule]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("differs", "says"),
    [
        (as_it_is, "needs `library_of_beta`, which is not installed here"),
        (another_python, "invalid syntax"),
        (another_sqlmesh, "Extra inputs are not permitted"),
        (another_parser, "Expecting )"),
    ],
)
@pytest.mark.by_day(1)
def test_another_projects_model__that_does_not_load__is_named_and_blames_nobody(
    alpha: Repository, differs: Callable[[Repository], None], says: str
) -> None:
    differs(alpha)
    report = reviewed(alpha, dict(README))
    assert (report.decision, report.failure) == ("no_changes", None)
    found = finding(report, "R01-base-broken")
    assert found.severity == "medium"
    assert "`shop.b`, which the state holds for" in found.evidence
    assert says in found.evidence
    assert report.base_failures[0].model == "shop.b"
    assert not report.appliable


@pytest.mark.night
@pytest.mark.slow
def test_another_projects_model__beside_a_change_of_ones_own__is_a_review(
    alpha: Repository,
) -> None:
    change: dict[str, str | None] = {"models/good.sql": sql_model("good", "SELECT 2 AS one")}
    report = reviewed(alpha, change, baseline="state")
    assert (report.decision, report.failure) == ("review", None)
    found = finding(report, "R01-base-broken")
    assert found.severity == "high"
    assert "for the project `beta`" in found.evidence
    assert report.base_failures[0].project == "beta"
    assert "requirements" in (report.base_failures[0].hint or "")


@pytest.mark.night
@pytest.mark.slow
def test_another_projects_model__beside_a_failure_of_ones_own__is_no_excuse(
    alpha: Repository,
) -> None:
    report = reviewed(alpha, {"models/broken.sql": BROKEN})
    assert report.decision == "no_go"
    assert report.failure is not None
    assert report.failure.path == "models/broken.sql"
