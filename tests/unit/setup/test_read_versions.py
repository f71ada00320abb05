"""Versions out of lock and requirement files: each format as its program writes it."""

from __future__ import annotations

import pytest

from ci_bot.bot.cli.setup.repository_facts import (
    find_python_version,
    find_versions_for_setup,
    read_version_for_setup,
)
from tests.setup_layouts import locked


@pytest.mark.parametrize(
    ("file", "text", "version"),
    [
        ("poetry.lock", locked("sqlmesh", "0.230.1"), "0.230.1"),
        ("uv.lock", locked("sqlmesh", "0.230.1"), "0.230.1"),
        ("pdm.lock", locked("sqlmesh", "0.230.1").replace("\n", "\n"), "0.230.1"),
        ("Pipfile.lock", '{"default": {"sqlmesh": {"version": "==0.230.1"}}}', "0.230.1"),
        ("requirements.txt", "sqlmesh==0.230.1\n", "0.230.1"),
        (
            "requirements.txt",
            "SQLMesh[web,postgres] == 0.230.1 ; python_version > '3'\n",
            "0.230.1",
        ),
        ("requirements.lock", "sqlmesh==0.230.1 \\\n    --hash=sha256:0\n", "0.230.1"),
        ("dev-requirements.txt", "  sqlmesh===0.230.1 # pinned\n", "0.230.1"),
        ("pyproject.toml", 'dependencies = ["sqlmesh[postgres]==0.230.1"]', "0.230.1"),
        ("pyproject.toml", 'sqlmesh = "0.230.1"\n', "0.230.1"),
        ("pyproject.toml", 'sqlmesh = {version = "0.230.1", extras = ["web"]}\n', "0.230.1"),
        ("pyproject.toml", 'sqlmesh = "^0.230"\n', None),
        ("requirements.txt", "sqlmesh>=0.228,<0.231\n", None),
        ("requirements.txt", "sqlmesh==0.230.*\n", None),
        ("requirements.txt", "sqlmesh\n", None),
        ("requirements.txt", "sqlmesh[web]\npolars==1.0.0\n", None),
    ],
)
def test_version__of_each_format(file: str, text: str, version: str | None) -> None:
    found = read_version_for_setup("sqlmesh", file, text)
    assert found is not None
    assert found.version == version


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("requirements.txt", "# sqlmesh==0.1\nsqlmesh-extras==1.0\nmy-sqlmesh==2\n"),
        ("poetry.lock", locked("pyspark", "3.5.0")),
        ("pyproject.toml", '[tool.sqlmesh]\nname = "sqlmesh-extras==1"\n'),
        ("Pipfile.lock", "{"),
        ("Pipfile.lock", '{"default": {"sqlmesh": {"git": "x"}}}'),
    ],
)
def test_version__of_another_package_is_none(file: str, text: str) -> None:
    assert read_version_for_setup("sqlmesh", file, text) is None


def test_versions__the_lock_counts_before_what_people_write() -> None:
    found = find_versions_for_setup(
        {
            "pyproject.toml": 'dependencies = ["sqlmesh>=0.228"]',
            "requirements.txt": "sqlmesh==0.229.0\npyspark==3.5.9\n",
            "uv.lock": locked("sqlmesh", "0.230.1"),
        }
    )
    assert (found["sqlmesh"].version, found["sqlmesh"].file) == ("0.230.1", "uv.lock")
    assert found["pyspark"].file == "requirements.txt"


def test_versions__the_projects_own_file_counts_before_the_repositorys() -> None:
    texts = {"requirements.txt": "sqlmesh==0.228.0", "sales/requirements.txt": "sqlmesh==0.229.0"}
    assert find_versions_for_setup(texts)["sqlmesh"].version == "0.229.0"


def test_versions__one_version_counts_before_a_range() -> None:
    texts = {"requirements.txt": "sqlmesh>=0.228", "pyproject.toml": '"sqlmesh==0.229.0"'}
    assert find_versions_for_setup(texts)["sqlmesh"].version == "0.229.0"


@pytest.mark.parametrize(
    ("text", "version"), [("3.12.4\n", "3.12"), ("cpython-3.10", "3.10"), ("pypy\n", None)]
)
def test_python__is_that_of_its_file(text: str, version: str | None) -> None:
    assert find_python_version({"sales/.python-version": text}) == version
