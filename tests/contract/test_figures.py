"""Versions and limits that documents name are those of the code."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from ci_bot.bot.decision.judgement import MOST_RISKS
from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
from ci_bot.bot.sandbox.git_repository import MOST_CHANGED_FILES
from ci_bot.protocol.files import LARGEST_FILE_BYTES, MOST_BYTES
from ci_bot.protocol.supported_versions import SQLMESH_VERSIONS_TEXT, TRIED
from ci_bot.worker.cleanup.reclaim_rules import GRACE_MS
from ci_bot.worker.state_store.ledger_schema import KEEP_DAYS
from tests.conftest import REPOSITORY
from tests.contract.test_readme import rows, section
from tests.matrix.cells import PYSPARK_VERSIONS, VERSIONS

MIB = 1024 * 1024
PYSPARK = f"{TRIED[0]} to {TRIED[-1]}"


def read_file(path: str) -> str:
    return (REPOSITORY / path).read_text("utf-8")


def list_pythons() -> str:
    """ "3.10 to 3.13", of `requires-python`, whose upper bound is left out."""
    declared = tomllib.loads(read_file("pyproject.toml"))["project"]["requires-python"]
    first, beyond = re.findall(r"3\.(\d+)", declared)
    return f"3.{first} to 3.{int(beyond) - 1}"


def test_extra__of_spark_takes_each_version_that_was_tried() -> None:
    project = tomllib.loads(read_file("pyproject.toml"))["project"]
    (spark,) = map(Requirement, project["optional-dependencies"]["spark"])
    assert all(spark.specifier.contains(f"{version}.9") for version in TRIED)


def find_locked_version(package: str) -> str:
    (version,) = re.findall(rf"^{package}==(\S+)", read_file("requirements.lock"), re.MULTILINE)
    return str(version)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("README.md", f"SQLMesh {SQLMESH_VERSIONS_TEXT}"),
        ("README.md", f"PySpark {PYSPARK}"),
        ("README.md", f"Python {list_pythons()}"),
        ("README.md", f"images have SQLMesh {find_locked_version('sqlmesh')}"),
        ("action.yml", PYSPARK),
        ("docs/compatibility.md", SQLMESH_VERSIONS_TEXT),
        ("docs/compatibility.md", f"The image has {find_locked_version('sqlmesh')}"),
        ("docs/compatibility.md", f"installs on Linux with {list_pythons()}"),
        ("docs/compatibility.md", f"up to {MOST_CHANGED_FILES:,} changed files"),
        ("docs/compatibility.md", f"above {LARGEST_FILE_BYTES // MIB} MiB"),
        ("docs/compatibility.md", f"beyond {MOST_BYTES // MIB} MiB"),
        ("docs/compatibility.md", f"at most {COMMENT_BYTES:,} bytes"),
        ("docs/compatibility.md", f"both for {KEEP_DAYS} days"),
        ("docs/installation.md", SQLMESH_VERSIONS_TEXT),
        ("docs/installation.md", f"| `spark` | PySpark {PYSPARK},"),
        ("docs/policy.md", f"After {KEEP_DAYS} days"),
        ("docs/rules/R10-not-listed.md", f"More than {MOST_RISKS:,} findings"),
        ("docs/where-spark-runs.md", f"({PYSPARK}, pinned"),
        ("docs/troubleshooting.md", f"More than {MOST_CHANGED_FILES:,} files"),
    ],
)
def test_figure__is_that_of_the_code(page: str, text: str) -> None:
    assert text in " ".join(read_file(page).split()), f"{page} lacks {text!r}"


def test_versions__of_sqlmesh_in_the_table_are_those_that_the_matrix_runs() -> None:
    table = rows(section(read_file("docs/compatibility.md"), "Versions of SQLMesh"))
    assert tuple(row[0] for row in table) == VERSIONS
    assert {cell for row in table for cell in row[2:]} == {"works"}


def test_versions__of_pyspark_are_those_that_the_matrix_runs() -> None:
    text = section(read_file("docs/compatibility.md"), "PySpark, Python, machines")
    assert set(PYSPARK_VERSIONS) <= set(re.findall(r"\d\.\d\.\d", text))


def test_grace_period__is_the_day_that_documents_speak_of() -> None:
    assert GRACE_MS == 24 * 60 * 60 * 1000
    assert "`auto` waits a day after the cleanup" in " ".join(
        read_file("docs/compatibility.md").split()
    )
