"""dbt projects: which of them SQLMesh reads, as the documents say it, and how the others end."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import sqlmesh
from sqlmesh.utils.errors import ConfigError

from ci_bot.worker.project.configuration import find_dbt_project_failure

ROOT = Path(__file__).parents[2]
TARGETS = Path(sqlmesh.__file__).parent / "dbt" / "target.py"


def list_known_targets() -> set[str]:
    """The types of a dbt profile for which SQLMesh has a class. dbt is not installed for tests."""
    tree = ast.parse(TARGETS.read_text("utf-8"))
    load = next(
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "load"
    )
    return {
        str(value.value)
        for node in ast.walk(load)
        if isinstance(node, ast.Compare) and getattr(node.left, "id", "") == "db_type"
        for value in node.comparators
        if isinstance(value, ast.Constant)
    }


def test_documents__name_the_targets_that_sqlmesh_knows_and_spark_is_none() -> None:
    text = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
    told = re.search(r"It knows ([\w,\s]+) and (\w+)\.", text)
    assert told is not None
    assert {*re.findall(r"\w+", told[1]), told[2]} == list_known_targets()
    assert "spark" not in list_known_targets()
    assert "no dbt target for Spark" in (ROOT / "README.md").read_text("utf-8")


def test_dbt_project__with_a_spark_target__ends_with_one_sentence() -> None:
    # Raised by a frame in SQLMesh's own file, as its loader does it.
    source = "def load():\n    raise ConfigError('spark not supported.')\n"
    names = {"ConfigError": ConfigError}
    exec(compile(source, str(TARGETS), "exec"), names)  # noqa: S102 - a frame in that file
    try:
        names["load"]()  # type: ignore[call-arg]  # it is a function now
    except ConfigError as error:
        failure = find_dbt_project_failure(error)
    assert failure is not None
    assert failure.message == (
        "This is a dbt project, which has the target `spark`, and SQLMesh knows no such target of "
        "dbt's."
    )
    assert (failure.exit_code, failure.reason_code) == (2, "dbt_project")
    assert "`type: spark`" in str(failure.hint)


def test_dbt_project__another_configuration_error_is_not_called_dbts() -> None:
    assert find_dbt_project_failure(ConfigError("spark not supported.")) is None
