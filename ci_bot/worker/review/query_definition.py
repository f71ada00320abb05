"""A model's query and the settings that decide its rows, as inputs of the column impact."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import nodes
from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.worker import sqlmesh_compat as compat
from ci_bot.worker.sql import (
    JINJA_PARSER,
    RUN_DATES,
    ModelDefinition,
    list_jinja_macros,
    plain_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SqlModel

# Names whose rendering differs between a run and loading the project.
OF_THE_RUN = re.compile(
    RUN_DATES + r"|\bruntime_stage\b|\bis_incremental\b|\bengine_adapter\b|\blocals\b",
    re.IGNORECASE,
)

_JINJA_BRANCH = re.compile(r"\{%-?\s*(if|for)\b")
_IS_INCREMENTAL = "is_incremental"
_OWN_IS_INCREMENTAL = re.compile(r"\bmacro\s+is_incremental\b")
# Objects of dbt and SQLMesh whose content differs between a run and loading the project.
_OBJECTS_OF_THE_RUN = frozenset({
    "builtins", "context", "deployability_index", "flags", "graph", "invocation_args_dict",
    "invocation_id", "load_relation", "load_result", "model_instance", "modules", "run_query",
    "run_started_at", "schemas", "snapshot", "snapshots", "statement", "store_result",
    "table_mapping", "this_env", "views",
})  # fmt: skip


def read_definition_for_impact(node: Model) -> ModelDefinition:
    """Reads the query of a model as it was rendered when the project was loaded."""
    if not compat.is_sql_model(node):
        return ModelDefinition(opaque="It has no SQL query.")
    try:
        rendered = node.render_query()
        written = node.query
    except Exception as error:  # a macro of the project may raise anything
        return ModelDefinition(opaque=f"Its query cannot be rendered ({type(error).__name__}).")
    if not isinstance(rendered, exp.Query):
        return ModelDefinition(opaque="Its query can be rendered only by a run.")
    text = node.query_.sql
    is_tree = isinstance(written, exp.Query) and not isinstance(written, d.JinjaQuery)
    code = "" if "@" not in text and is_tree else _join_macro_code(node)
    hides = ("@" in text or not is_tree) and OF_THE_RUN.search(f"{text}\n{code}") is not None
    incremental = None
    if not is_tree:
        macros = list_jinja_macros(node)
        hides = hides or _JINJA_BRANCH.search(text) is not None
        hides = hides or any(_IS_INCREMENTAL in macro for macro in macros)
        if hides and isinstance(written, d.JinjaQuery):
            incremental = _render_incremental(node, code, macros)
    shown = incremental is not None or (is_tree and _is_plain(code))
    return ModelDefinition(
        rendered=rendered,
        written=written if is_tree else None,
        incremental=incremental,
        has_star="*" in text and (not is_tree or _has_star(written)),
        hides=hides,
        text=f"{text}\n{code}" if hides and not shown else None,
    )


def _render_incremental(node: SqlModel, code: str, macros: Sequence[str]) -> exp.Query | None:
    """Renders the query as in an incremental run; None if that does not show all of it.

    Two renderings show all of it if `is_incremental()` decides every branch of the template, and if
    neither the template nor its macros read anything else that only a run knows.
    """
    text = str(node.query.name)
    if "@" in text or not _is_plain(code):
        return None
    if any(_OWN_IS_INCREMENTAL.search(macro) for macro in macros):
        return None  # it may ask for something else than dbt's
    try:
        template = JINJA_PARSER.parse(text)
        used = {name for part in (text, *macros) for name in _iterate_template_names(part)}
        if any(name in _OBJECTS_OF_THE_RUN or _is_known_only_in_run(name) for name in used):
            return None
        branches = template.find_all((nodes.If, nodes.CondExpr))
        if template.find(nodes.For) is not None or not all(map(_is_of_earlier_runs, branches)):
            return None
        found = compat.render_sqlmesh_model_on_earlier_runs(node)
    except Exception:  # a template or a macro of the project may raise anything
        return None
    return found if isinstance(found, exp.Query) else None


def _iterate_template_names(text: str) -> Iterator[str]:
    """Yields the names and attributes that a template uses."""
    tree = JINJA_PARSER.parse(text)
    yield from (found.name for found in tree.find_all(nodes.Name))
    yield from (found.attr for found in tree.find_all(nodes.Getattr))


def _is_known_only_in_run(name: str) -> bool:
    return name != _IS_INCREMENTAL and OF_THE_RUN.search(name) is not None


def _is_of_earlier_runs(branch: Any) -> bool:
    """Whether a branch's condition is just `is_incremental()` or `not is_incremental()`."""
    test = branch.test
    while isinstance(test, nodes.Not):
        test = test.node
    return (
        isinstance(test, nodes.Call)
        and isinstance(test.node, nodes.Name)
        and test.node.name == _IS_INCREMENTAL
    )


def _is_plain(code: str) -> bool:
    """Whether macros depend on their arguments only, so that the file's tree shows their result."""
    return OF_THE_RUN.search(code) is None


def _join_macro_code(node: Model) -> str:
    """Joins the code of the macros that a query can call."""
    called = [item.payload for item in node.python_env.values() if item.payload]
    return "\n".join([*called, *(item.sql() for item in getattr(node, "macro_definitions", ()))])


def _has_star(query: exp.Expr) -> bool:
    return any(
        isinstance(star.parent, exp.Select | exp.Column) for star in query.find_all(exp.Star)
    )


def list_deciding_columns(node: Model) -> frozenset[str] | None:
    """Lists the columns by which a model kind chooses the rows it keeps; None: any column may."""
    kind = node.kind
    if compat.is_incremental_by_time_range(kind):
        return _list_columns_in(kind.time_column.column)
    if compat.is_incremental_by_unique_key(kind):
        free = kind.when_matched is None and kind.merge_filter is None
        return _list_columns_in(*kind.unique_key) if free else None
    if kind.is_incremental_by_partition or kind.is_incremental_unmanaged:
        return _list_columns_in(*node.partitioned_by)
    if kind.is_full or kind.is_view or kind.is_embedded or kind.is_seed or kind.is_external:
        return frozenset()
    return None


def _list_columns_in(*expressions: Any) -> frozenset[str]:
    return frozenset(
        column.name.lower() for item in expressions for column in item.find_all(exp.Column)
    )


def list_parents_in_statements(node: Model) -> Iterator[str]:
    """Yields parents that the statements around the query name."""
    statements = list_own_statements(node) if not node.is_seed and not node.kind.is_external else []
    text = "\n".join(statements)
    if "@" in text or "{{" in text:
        text = f"{text}\n{_join_macro_code(node)}"
    for parent in node.depends_on if text else ():
        name = plain_name(parent)
        if re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", text, re.IGNORECASE):
            yield name


def list_own_statements(node: Model) -> list[str]:
    """Lists the statements before and after a model's query; a macro's definition is none."""
    listed = [*(node.pre_statements_ or ()), *(node.post_statements_ or ())]
    return [item.sql for item in listed if not isinstance(item.parse(node.dialect), d.MacroDef)]
