"""What the Jinja of a dbt model can use, with the `is_incremental` of SQLMesh's own lines.

dbt is not installed where tests run, and `sqlmesh.dbt` cannot be imported without it. So the lines
that make `is_incremental` are taken out of SQLMesh's file, and run.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import sqlmesh
from sqlmesh.core.snapshot import DeployabilityIndex


def create_builtin_globals(registry: Any, names: dict[str, Any], engine: Any) -> dict[str, Any]:
    made = {
        "snapshot": names.pop("snapshot", None),
        "jinja_globals": names,
        "deployability_index": DeployabilityIndex.all_deployable(),
    }
    exec(_lines_on_snapshots(), made)  # noqa: S102 - SQLMesh's own
    return {
        "ref": lambda name: f"db.{name}",
        "var": lambda name: None,
        "flags": {},
        "dbt": {},
        **names,
        "is_incremental": lambda: made["is_incremental"],
    }


@cache
def _lines_on_snapshots() -> CodeType:
    source = (Path(sqlmesh.__file__).parent / "dbt" / "builtin.py").read_text()
    (lines,) = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If) and "snapshot.is_incremental" in ast.unparse(node.test)
    )
    return compile(ast.Module([lines], []), "builtin.py", "exec")
