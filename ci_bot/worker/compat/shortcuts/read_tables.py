"""The tables that a query without macros reads, without what rendering does beside finding them."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.model.definition import SqlModel

from ci_bot.worker.compat.shortcuts.plain_models import is_pure


def find_dependencies(model: Any) -> None:
    """Lets the model know what it depends on, as `full_depends_on` finds it.

    Half of the time that it takes to load a file SQLMesh renders the query for that: it prepares
    macros and moments, copies the tree in search of macros, and names all columns.
    """
    tables = _tables(model) if isinstance(model, SqlModel) else None
    if tables is None:
        _ = model.full_depends_on
    else:
        model._full_depends_on = tables


def _tables(model: Any) -> set[str] | None:
    """None where the query has to be rendered, and where no query is asked.

    (`_Model.full_depends_on`, `BaseExpressionRenderer._render`)
    """
    if model.depends_on_ or not model.extract_dependencies_from_query:
        return None
    if "@" in model.query_.sql or model.macro_definitions or not is_pure(model):
        return None
    if not isinstance(model.query, exp.Query):
        return None
    query = model.query.copy()
    try:
        with d.normalize_and_quote(query, model.dialect, model.default_catalog) as normalized:
            pass
        found: set[str] = d.find_tables(
            normalized, default_catalog=model.default_catalog, dialect=model.dialect
        )
    except Exception:
        return None  # rendering says what is wrong with it
    return set(found)
