"""Facts about SQLMesh's models and about SQL trees that versions spell differently, or that a type
checker does not see.

`model.is_sql` and `kind.is_scd_type_2` are plain booleans, so a type checker does not learn from
them which fields exist. (`_Model.is_sql`, `ModelKindMixin.is_scd_type_2` and related ones)

SQL trees of the parser (sqlglot) differ between the versions that SQLMesh versions need. Reading a
clause by a name that the parser does not use is no error: the clause is just absent, and a rule
would see a query that reads nothing. So only this module writes these names.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from sqlglot import exp, parse_one
from sqlglot.optimizer.annotate_types import annotate_types

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, ModelKind, PythonModel, SeedModel, SqlModel
    from sqlmesh.core.model.kind import (
        IncrementalByTimeRangeKind,
        IncrementalByUniqueKeyKind,
        IncrementalUnmanagedKind,
        SCDType2ByColumnKind,
        SCDType2ByTimeKind,
        ViewKind,
    )


def is_sql_model(model: Model) -> TypeGuard[SqlModel]:
    """Whether a model is a query, which has `query` and its statements."""
    return bool(model.is_sql)


def is_python_model(model: Model) -> TypeGuard[PythonModel]:
    """Whether a model is a function, which `entrypoint` names."""
    return bool(model.is_python)


def is_seed_model(model: Model) -> TypeGuard[SeedModel]:
    """Whether a model is a file of rows."""
    return bool(model.is_seed)


def is_scd_type_2(kind: ModelKind) -> TypeGuard[SCDType2ByColumnKind | SCDType2ByTimeKind]:
    """Whether each key has a row for every version, with the times between which it is valid."""
    return bool(kind.is_scd_type_2)


def is_scd_type_2_by_column(kind: ModelKind) -> TypeGuard[SCDType2ByColumnKind]:
    """Whether a version ends if one of the watched columns changes."""
    return bool(kind.is_scd_type_2_by_column)


def is_view_kind(kind: ModelKind) -> TypeGuard[ViewKind]:
    """Whether a model is a view, which may be materialized."""
    return bool(kind.is_view)


def is_incremental_by_time_range(kind: ModelKind) -> TypeGuard[IncrementalByTimeRangeKind]:
    """Whether a run replaces the rows of its interval, by a time column."""
    return bool(kind.is_incremental_by_time_range)


def is_incremental_by_unique_key(kind: ModelKind) -> TypeGuard[IncrementalByUniqueKeyKind]:
    """Whether a run merges its rows into the table, by a key."""
    return bool(kind.is_incremental_by_unique_key)


def is_incremental_unmanaged(kind: ModelKind) -> TypeGuard[IncrementalUnmanagedKind]:
    """Whether a run adds rows, or replaces partitions, by the query alone."""
    return bool(kind.is_incremental_unmanaged)


def find_argument_name_in_sqlglot(kind: type[Any], name: str) -> str:
    """Finds the parser's name of an argument that is a Python keyword: with an underscore since
    sqlglot 28, without one before. (`arg_types`)

    Raises:
        KeyError: the parser knows neither name; another release of sqlglot has renamed it.
    """
    for spelled in (f"{name}_", name):
        if spelled in kind.arg_types:
            return spelled
    raise KeyError(f"{kind.__name__}.{name}")


def find_known_classes_of_sqlglot(names: str) -> tuple[type, ...]:
    """Finds tree classes by their names, separated by blanks, without those that the installed
    parser lacks. The parser reads a function without a class as an unknown one (`exp.Anonymous`).
    """
    found = (getattr(exp, name, None) for name in names.split())
    return tuple(one for one in found if one is not None)


FROM = find_argument_name_in_sqlglot(exp.Select, "from")
WITH = find_argument_name_in_sqlglot(exp.Select, "with")
EXCEPT = find_argument_name_in_sqlglot(exp.Star, "except")
# The base of every tree; sqlglot 30 has parts of trees that are not an `Expression`.
Tree: type[Any] = getattr(exp, "Expr", exp.Expression)


# The tables of a query that is plain enough to find them without its scopes.


def list_tables_of_plain_query(query: Any) -> list[exp.Table] | None:
    """Lists the tables that a query reads, without its CTEs.

    Returns:
        None if that needs the query's scopes: an odd source, a WITH inside of the query, a name
        that could mean a table or a CTE, or one that is given twice.
    """
    ctes = {cte.alias.lower(): place for place, cte in enumerate(query.ctes)}
    found: list[exp.Table] = []
    seen: set[tuple[int, str]] = set()
    for node in query.walk():
        if isinstance(node, exp.Table | exp.Subquery):
            select = _find_select_of_source(node)
            source = id(select), node.alias_or_name.lower()
            # Versions of the parser differ in how they read a name that is given twice.
            if select is not None and source in seen:
                return None
            seen.add(source)
        if isinstance(node, exp.Table):
            place = ctes.get(node.name.lower())
            if place is None:
                found.append(node)
            if (
                select is None
                or not _is_table_just_named(node)
                or (place is not None and not _means_cte(node, query.ctes, place))
            ):
                return None
        elif isinstance(node, exp.With) and node.parent is not query:
            return None
    return found


def _find_select_of_source(node: Any) -> Any | None:
    """Finds the SELECT that reads a table or a query in its FROM or in a JOIN; None: none does."""
    above = node.parent if isinstance(node.parent, exp.From | exp.Join) else None
    return above.parent if above and isinstance(above.parent, exp.Select) else None


def _is_table_just_named(table: exp.Table) -> bool:
    given = {name: value for name, value in table.args.items() if value not in (None, [], False)}
    return given.keys() <= {"this", "db", "catalog", "alias"} and all(
        isinstance(given[name], exp.Identifier) for name in given.keys() - {"alias"}
    )


def _means_cte(table: exp.Table, ctes: Sequence[exp.CTE], place: int) -> bool:
    """Whether a table with the name of a CTE surely means it: it is spelled the same and comes
    after it.
    """
    if table.this != ctes[place].args["alias"].this:
        return False
    inside = table.find_ancestor(exp.CTE)
    return inside is None or any(cte is inside for cte in ctes[place + 1 :])


# Column types as the parser computes them, in which its releases differ.


_DECIMAL = exp.DataType.Type.DECIMAL


def read_column_types_of_sqlmesh(model: Model) -> Mapping[str, exp.DataType] | None:
    """Reads the types of a model's columns by name, as far as they can be known.

    Before sqlglot 28 the parser forgets the digits of a computed decimal: it calls `amount * 2`
    DECIMAL, which means (10, 0) if somebody writes it. Such a column is UNKNOWN here, unless the
    model itself writes DECIMAL somewhere. (`TypeAnnotator._maybe_coerce`)

    Returns:
        None if SQLMesh cannot list the columns (`Model.columns_to_types`).

    Raises:
        Exception: whatever the rendering of the project's macros raises.
    """
    types: Mapping[str, Any] | None = model.columns_to_types
    if types is None or sqlglot_keeps_digits():
        return types
    computed = [name for name, kind in types.items() if _is_bare_decimal(kind)]
    if not computed or _sqlmesh_model_writes_bare_decimal(model):
        return types
    return {**types, **dict.fromkeys(computed, exp.DataType.build("UNKNOWN"))}


@functools.cache
def sqlglot_keeps_digits() -> bool:
    """Whether the installed parser keeps the digits of a computed decimal."""
    product: Any = annotate_types(parse_one("CAST(a AS DECIMAL(10, 2)) * 2"))
    return bool(product.type.expressions)


def _is_bare_decimal(kind: exp.DataType) -> bool:
    return bool(kind.this == _DECIMAL and not kind.expressions)


def _sqlmesh_model_writes_bare_decimal(model: Model) -> bool:
    """Whether a model may write a DECIMAL without digits: in a cast, in declared columns, or in
    code that is not SQL.
    """
    if getattr(model, "columns_to_types_", None) or not model.is_sql:
        return True
    query = model.render_query()
    return query is not None and any(_is_bare_decimal(cast.to) for cast in query.find_all(exp.Cast))
