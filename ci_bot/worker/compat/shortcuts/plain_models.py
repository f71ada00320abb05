"""What a model's definition tells by itself, without its query being rendered."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlmesh.core.dialect import JinjaQuery
from sqlmesh.core.model.definition import SqlModel
from sqlmesh.utils.metaprogramming import ExecutableKind

from ci_bot.worker.compat.shortcuts.queries_in_files import QueryInFile


def is_pure(model: Any) -> bool:
    """Whether nothing outside of the model decides what its query is: code of the project can read
    a file or a clock, and what it gives is not known before it ran."""
    return (
        isinstance(model, SqlModel)
        and not model.kind.is_custom
        and (isinstance(model.query_, QueryInFile) or not isinstance(model.query, JinjaQuery))
        and not model.jinja_macros.root_macros
        and not model.jinja_macros.packages
        and all(item.kind == ExecutableKind.VALUE for item in model.python_env.values())
    )


def lists_columns(model: Any) -> bool:
    """Whether the query of a SQL model shows all its columns: each has a name of its own, and
    neither a star nor a macro may stand for others."""
    if isinstance(model.query_, QueryInFile):
        return model.query_.lists_columns
    if "@" in model.query_.sql or not isinstance(model.query, exp.Select):
        return False
    columns = model.query.expressions
    names = {column.output_name.lower() for column in columns}
    return bool(
        columns
        and all(type(column) in (exp.Alias, exp.Column) for column in columns)
        and len(names) == len(columns)
        and not names & {"", "*"}
    )
