"""Other versions of SQLMesh than the one that is installed: brought by `requirements`, each with a
state of its own. All that a version must be able to do is a cell of `tests.matrix`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import sqlmesh

from ci_bot.errors import BadInput
from tests.conftest import missing
from tests.matrix.cells import ACTIVITIES, OLDEST, VERSIONS, run
from tests.matrix.installed import NotInstalledError, python_with
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.worker import Client

pytestmark = pytest.mark.own_jvm

REPOSITORY = Path(__file__).parents[2]
# The newest is what every other test runs with.
CELLS = [(version, activity) for version in VERSIONS[:-1] for activity in ACTIVITIES]


def interpreter(version: str) -> Path:
    try:
        return python_with(version)
    except NotInstalledError as error:
        missing(str(error))
        raise


def built_by(version: str, root: Path) -> Shop:
    """A shop on DuckDB with prod built by another version of SQLMesh."""
    shop = write_duck_shop(root)
    build = "from pathlib import Path; from tests.projects import Shop; "
    build += "from tests.projects.duck import run_prod; import sys; "
    build += "run_prod(Shop(Path(sys.argv[1])), '2024-01-11')"
    subprocess.run(
        [interpreter(version), "-c", build, root],
        cwd=REPOSITORY,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    return shop


@pytest.mark.slow
def test_oldest__has_the_internals_that_are_used() -> None:
    interpreter(OLDEST)
    done = run(OLDEST, ["internals"])
    assert done.passed, done.told


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.night
@pytest.mark.parametrize(("version", "activity"), CELLS, ids=" ".join)
def test_cell(version: str, activity: str, java: None) -> None:
    interpreter(version)
    done = run(version, [activity])
    assert done.passed, done.told


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("version", "schema"), [("0.227.1", 100), ("0.235.4", 101)])
def test_state__of_another_schema__names_the_version_and_what_brings_it(
    tmp_path: Path, version: str, schema: int
) -> None:
    shop = built_by(version, tmp_path)

    report = Client(shop.project).review("pr_1")

    assert report.failure is not None
    assert (report.failure.exit_code, report.failure.reason_code) == (2, "state_version")
    assert f"{version} (schema {schema})" in report.failure.message
    assert f"this run has {sqlmesh.__version__}" in report.failure.message
    assert f"`sqlmesh=={version}`" in (report.failure.hint or "")


@pytest.mark.night
def test_requirements__with_that_version__review_the_same_state(tmp_path: Path) -> None:
    shop = built_by(OLDEST, tmp_path)
    shop.write("requirements.txt", f"sqlmesh=={OLDEST}\n")
    client = Client(shop.project, requirements="requirements.txt")

    unchanged = client.review("pr_1")
    shop.edit("models/top_customers.sql", "r.revenue > 100", "r.revenue > 50")
    changed = client.review("pr_1")

    assert (unchanged.failure, unchanged.decision) == (None, "no_changes")
    assert changed.failure is None
    assert changed.versions.sqlmesh == OLDEST
    assert changed.versions.state_schema == 100
    assert [change.model for change in changed.changes] == ["shop.top_customers"]


def test_requirements__with_a_version_that_is_not_supported__install_nothing(
    tmp_path: Path,
) -> None:
    shop = write_duck_shop(tmp_path)
    shop.write("requirements.txt", "sqlmesh==0.226.0\n")
    client = Client(shop.project, requirements="requirements.txt")

    with pytest.raises(BadInput, match=r"0\.227\.1 to 0\.236") as refused:
        client.review("pr_1")

    assert (refused.value.exit_code, refused.value.reason_code) == (2, "sqlmesh_version")
    assert client.heard.log == [], "pip was not started"
    assert client.heard.progress == [], "nor the worker"
