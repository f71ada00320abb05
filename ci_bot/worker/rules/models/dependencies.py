"""What a Python model reads, against what it says that it reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.models.base import ModelRule, on_model
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.sql.python_code import trees
from ci_bot.worker.rules.sql.queries import plain

# Methods of SQLMesh's ExecutionContext and of the Spark session behind it.
_BY_NAME = frozenset({"resolve_table", "table"})
_BY_QUERY = frozenset({"fetchdf", "fetch_pyspark_df", "sql", "fetchall", "fetchone"})
_READS = re.compile(r"\b(?:FROM|JOIN)\s+([`\"\w.]+)", re.IGNORECASE)


@on_model
class PythonDependencyMissing(ModelRule):
    """SQLMesh waits for, rebuilds after and resolves what a model says that it depends on."""

    spec = rule("python-dependency-missing")

    def see(self, model: Any) -> Iterator[Observation]:
        if not model.is_python:
            return
        known = {plain(name) for name in model.depends_on} | {plain(model.fqn)}
        missing = {
            self.project.called(found.fqn): text
            for tree in trees(model)
            for text in _read(tree)
            if (found := self.project.by_table.get(plain(text))) is not None
            and plain(found.fqn) not in known
        }
        if missing:
            yield self.observation(
                model,
                f"The code reads {names(missing)}, which `depends_on` does not name: SQLMesh does "
                "not wait for it, and does not compute this model again when it changes.",
                "`depends_on` names every model that the code reads, or is left out where the "
                "code names them as text in `context.resolve_table`",
                subject=sorted(missing),
                anchors=("depends_on", *missing.values()),
            )


def _read(tree: ast.AST) -> Iterator[str]:
    """Names of tables that stand in the code as text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        first = node.args[0] if node.args else None
        if node.func.attr in _BY_NAME:
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value
        elif node.func.attr in _BY_QUERY and first is not None:
            for part in ast.walk(first):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield from _READS.findall(part.value)
