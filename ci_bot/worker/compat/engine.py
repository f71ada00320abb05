"""What SQLMesh would send to an engine, without an engine."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from sqlmesh.core.engine_adapter import create_engine_adapter
from sqlmesh.core.renderer import ExpressionRenderer


@functools.cache
def _adapter(dialect: str) -> Any:
    """An adapter that makes SQL and can reach nothing: it is given no connection."""
    return create_engine_adapter(lambda: None, dialect)


def executed_text(tree: Any, dialect: str) -> str:
    """The text of a statement or query as the adapter of `dialect` executes it (`_to_sql`)."""
    text: str = _adapter(dialect)._to_sql(tree)
    return text


def table_clauses(model: Any, properties: Mapping[str, Any], dialect: str) -> str:
    """What CREATE TABLE says of a model beside name, columns and query.

    Args:
        properties: rendered; physical ones, or those of the view.
    """
    clauses = _adapter(dialect)._build_table_properties_exp(
        table_format=model.table_format,
        storage_format=model.storage_format,
        table_properties=dict(properties),
    )
    return executed_text(clauses, dialect) if clauses is not None else ""


def rendered_statement(model: Any, tree: Any, **context: Any) -> list[Any] | None:
    """One statement of a model as SQLMesh renders it (`_statement_renderer`).

    Returns:
        Trees, none where a condition leaves nothing; None where rendering must ask the engine.
    """
    rendered: list[Any] | None = model._statement_renderer(tree).render(**context)
    return rendered


def rendered_environment_statements(
    item: Any, tree: Any, dialect: str, catalog: str | None, **context: Any
) -> list[str] | None:
    """One statement of `EnvironmentStatements` as `render_statements` renders it; see above."""
    rendered = ExpressionRenderer(
        tree,
        dialect,
        [],
        jinja_macro_registry=item.jinja_macros,
        python_env=item.python_env,
        default_catalog=catalog,
        quote_identifiers=False,
        normalize_identifiers=False,
    ).render(**context)
    return None if rendered is None else [one.sql(dialect=dialect) for one in rendered]
