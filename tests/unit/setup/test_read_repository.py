"""What a project's code imports that the image lacks, and how it gets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.cli.setup.read_repository import list_missing_imports
from tests.setup_layouts import SPARK_ON_POSTGRES, clone, locked

MACRO = (
    "import polars as pl\nfrom sqlmesh import macro\nfrom .own import x\nimport os, shared.code\n"
)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("import polars", ["polars"]),
        ("from ibis.expr import types\nimport json", ["ibis"]),
        ("def f():\n    import polars", ["polars"]),
        ("from . import polars\nfrom .polars import x", []),
        ("import pandas.api, numpy as np, pyspark.sql", []),
        ("from shared import x", []),
        ("import polars (", []),
    ],
)
def test_imports__are_those_that_nobody_brings(text: str, missing: list[str]) -> None:
    assert list_missing_imports([text], ["shared"]) == missing


@pytest.mark.parametrize(
    ("files", "requirements"),
    [
        ({"requirements.txt": "polars\n"}, "requirements.txt"),
        ({"requirements.txt": "sqlmesh[web]\npolars\n"}, "requirements.txt"),
        ({"uv.lock": locked("polars", "1.2.3")}, ".github/sqlmesh-requirements.txt"),
        ({}, None),
    ],
)
def test_init__brings_what_models_import(
    files: dict[str, str], requirements: str | None, tmp_path: Path
) -> None:
    code = {"config.yaml": SPARK_ON_POSTGRES, "macros/m.py": MACRO, "shared/code.py": "x = 1\n"}
    repository = clone(tmp_path, {**code, **files})
    told = " ".join(repository.init().split())
    if requirements is None:
        assert "requirements:" not in repository.workflow("review")
        assert "The project imports polars, which the image does not have." in told
    else:
        assert f"requirements: {requirements}\n" in repository.workflow("review")
        assert "The project imports" not in told
    if "uv.lock" in files:
        assert "polars==1.2.3 # as uv.lock says" in repository.files()[str(requirements)]


def test_init__does_not_ask_for_what_scripts_import(tmp_path: Path) -> None:
    files = {"config.yaml": SPARK_ON_POSTGRES, "dags/daily.py": "import airflow\n"}
    assert "imports" not in clone(tmp_path, files).init()
