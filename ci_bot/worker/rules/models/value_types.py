"""The types of values in a query, as far as casts and declared columns prove them.

SQLMesh takes SQLGlot's types, which are guesses for many functions of Spark. Here a type comes from
a cast, a declared column or one of few functions; any other value has no type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ci_bot.worker.sql import (
    ModelQueries,
    find_column_source,
    find_projection,
    list_known_types,
    list_outer_scopes,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_Type = exp.DataType.Type
# A value is followed through at most so many queries.
_MOST_LEVELS = 12
_KEEPING_TYPE = (
    exp.Paren, exp.Alias, exp.Max, exp.Min, exp.AnyValue, exp.First, exp.Last, exp.FirstValue,
    exp.LastValue, exp.Lag, exp.Lead, exp.Window, exp.IgnoreNulls, exp.Neg, exp.Abs, exp.Distinct,
)  # fmt: skip
_MADE: Mapping[Any, tuple[type[exp.Expr], ...]] = {
    _Type.DATE: (exp.TsOrDsToDate, exp.Date, exp.CurrentDate, exp.LastDay, exp.DateTrunc),
    _Type.TIMESTAMP: (exp.CurrentTimestamp, exp.TimestampTrunc),
    _Type.TEXT: (
        exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring,
        exp.TimeToStr, exp.RegexpReplace, exp.RegexpExtract, exp.Initcap,
    ),
    _Type.BIGINT: (exp.Count, exp.RowNumber),
    _Type.INT: (exp.Year, exp.Month, exp.Day, exp.Extract, exp.Length, exp.DateDiff),
}  # fmt: skip
_TYPE_BY_CLASS = {node: kind for kind, nodes in _MADE.items() for node in nodes}
_FLOATS = frozenset({_Type.FLOAT, _Type.DOUBLE})
_TIMES = frozenset(exp.DataType.TEMPORAL_TYPES) - {_Type.DATE}


class ValueTypes:
    """Finds the types of values in the queries of a project."""

    def __init__(self, by_table: Mapping[str, Model], queries: ModelQueries) -> None:
        self._by_table = by_table
        self._queries = queries

    def find_type(self, scope: Scope, node: exp.Expr, depth: int = 0) -> exp.DataType | None:
        """Finds the type of a value; None if nothing proves it."""
        if isinstance(node, exp.Cast | exp.TryCast):
            return node.to
        if isinstance(node, exp.Literal):
            return _read_literal_type(node)
        if isinstance(node, exp.Column):
            return self._find_column_type(scope, node, depth)
        if isinstance(node, _KEEPING_TYPE):
            inner = node.this if not isinstance(node, exp.Distinct) else node.expressions[0]
            return (
                self.find_type(scope, inner, depth) if isinstance(inner, exp.Expression) else None
            )
        if isinstance(node, exp.Coalesce):
            return self._agree(scope, [node.this, *node.expressions], depth)
        kind = _TYPE_BY_CLASS.get(type(node))
        return exp.DataType(this=kind) if kind is not None else None

    def _find_column_type(
        self, scope: Scope, column: exp.Column, depth: int
    ) -> exp.DataType | None:
        source, reader = find_column_source(scope, column), scope
        while source is None and column.table and reader.parent is not None:
            # A subquery may read the tables of the query around it.
            reader = reader.parent
            source = reader.sources.get(column.table)
        name = column.name.lower()
        if depth >= _MOST_LEVELS:
            return None
        if isinstance(source, Scope):
            return self._find_result_type(source, name, reader, depth)
        model = self._by_table.get(table_name(source)) if isinstance(source, exp.Table) else None
        if model is None:
            return None
        query = None if declares_types(model) else self._queries.query_of(model)
        if query is None:
            return (list_known_types(model) or {}).get(name)
        return self._find_result_type(query.root, name, reader, depth)

    def _find_result_type(
        self, root: Scope | None, name: str, reader: Scope, depth: int
    ) -> exp.DataType | None:
        """Finds the type of a query's result column, if all branches of a UNION agree on it."""
        found: list[exp.DataType | None] = []
        for branch in list_outer_scopes(root):
            item = find_projection(branch, name)
            if item is None or branch is reader:
                return None
            found.append(self.find_type(branch, item, depth + 1))
        return found[0] if found and all(kind == found[0] for kind in found) else None

    def _agree(self, scope: Scope, nodes: Iterable[exp.Expr], depth: int) -> exp.DataType | None:
        """Finds the type that several values share; NULL has each type."""
        kinds = [
            self.find_type(scope, node, depth) for node in nodes if not isinstance(node, exp.Null)
        ]
        return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else None


def declares_types(model: Model) -> bool:
    """Whether a model names the types of its columns, or has no query that would show them."""
    return getattr(model, "columns_to_types_", None) is not None or not model.is_sql


def name_family(kind: exp.DataType | None) -> str | None:
    """Names the types between which Spark casts in silence: text, number, date, time, boolean."""
    if kind is None:
        return None
    if kind.this in exp.DataType.TEXT_TYPES:
        return "text"
    if kind.this in exp.DataType.NUMERIC_TYPES:
        return "number"
    if kind.this == _Type.DATE:
        return "date"
    if kind.this in _TIMES:
        return "time"
    return "boolean" if kind.this == _Type.BOOLEAN else None


def is_float(kind: exp.DataType | None) -> bool:
    """Whether a type holds binary fractions, in which 0.1 has no exact value."""
    return kind is not None and kind.this in _FLOATS


def is_decimal(kind: exp.DataType | None) -> bool:
    """Whether a type is a DECIMAL."""
    return kind is not None and kind.this == _Type.DECIMAL


def _read_literal_type(node: exp.Literal) -> exp.DataType:
    if node.is_string:
        return exp.DataType(this=_Type.TEXT)
    return exp.DataType(this=_Type.INT if node.name.isdigit() else _Type.DECIMAL)
