"""Queries of Spark as DuckDB's text: the clauses around their expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from ci_bot.worker.duckdb_trials.arithmetic import write_duckdb_cast
from ci_bot.worker.duckdb_trials.expressions import name_duckdb_construct
from ci_bot.worker.duckdb_trials.functions import AGGREGATE_NAMES
from ci_bot.worker.duckdb_trials.query_scopes import (
    QueryScope,
    ScopedSource,
    SourceTable,
    TypedColumns,
    TypedText,
    WrittenRelation,
    select_from_duckdb,
)
from ci_bot.worker.duckdb_trials.relations import DuckdbRelationWriter, rename_duckdb_columns
from ci_bot.worker.duckdb_trials.value_types import UntriedError, ValueType, quote_duckdb_name

_MOVED_VIEW = "ci_generated"


@dataclass(frozen=True)
class WrittenDuckdbQuery:
    """A query for DuckDB.

    Attributes:
        columns: its result columns, by name and type.
        depends_on_order: its result may depend on the order in which rows are read.
        reads: the columns that it reads of each source table.
    """

    text: str
    columns: TypedColumns
    depends_on_order: bool
    reads: Mapping[str, frozenset[str]]


def write_duckdb_query(tree: exp.Expr, tables: Mapping[str, SourceTable]) -> WrittenDuckdbQuery:
    """Writes a query for DuckDB.

    Args:
        tree: the result of `parse_duckdb_plainly`.
        tables: the source tables by name as `table_name` writes it.

    Raises:
        UntriedError: The query has a part that the judge cannot run.
    """
    writer = DuckdbQueryWriter(tables)
    try:
        found = writer.write_query(tree, QueryScope())
    except RecursionError as error:
        raise UntriedError("a query that is nested too deeply") from error
    names = [name for name, _ in found.columns]
    if len(set(names)) != len(names):
        raise UntriedError("two columns of one name")
    reads = {name: frozenset(columns) for name, columns in writer.reads.items()}
    return WrittenDuckdbQuery(found.text, found.columns, writer.expressions.depends_on_order, reads)


class DuckdbQueryWriter(DuckdbRelationWriter):
    """A writer of one query, which notes the columns that it reads."""

    def write_query(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        """Returns the text and columns of a query inside of `outer`."""
        with_ = node.args.get("with_") or node.args.get("with")
        if with_ is None:
            return self._write_body(node, outer)
        if with_.args.get("recursive"):
            raise UntriedError("WITH RECURSIVE")
        self._known.append(dict(self._known[-1]))
        try:
            texts = []
            for cte in with_.expressions:
                inner = self.write_query(cte.this, outer)
                name = cte.alias.lower()
                inner = rename_duckdb_columns(inner, cte.args["alias"].args.get("columns") or [])
                self._known[-1][name] = inner
                texts.append(f"{quote_duckdb_name(name)} AS ({inner.text})")
            body = self._write_body(node, outer)
        finally:
            self._known.pop()
        return WrittenRelation(f"WITH {', '.join(texts)} {body.text}", body.columns)

    def _write_body(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        if isinstance(node, exp.Subquery) and not node.args.get("joins"):
            inner = self.write_query(node.this, outer)
            found = WrittenRelation(select_from_duckdb("*", f"({inner.text})"), inner.columns)
            return self._end_query(found, node, outer)
        if isinstance(node, exp.SetOperation):
            return self._write_set(node, outer)
        if isinstance(node, exp.Select):
            return self._write_select(node, outer)
        if isinstance(node, exp.Values):
            return self.write_values(node, outer)
        raise UntriedError(name_duckdb_construct(node))

    def _write_set(self, node: exp.SetOperation, outer: QueryScope) -> WrittenRelation:
        if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
            raise UntriedError("a set operation by name")
        one, other = (self.write_query(side, outer) for side in (node.this, node.expression))
        if len(one.columns) != len(other.columns):
            raise UntriedError("branches with other numbers of columns")
        columns: list[tuple[str, ValueType]] = []
        for (name, first), (_, second) in zip(one.columns, other.columns, strict=True):
            kind, _ = self.expressions.unify_types([TypedText("", first), TypedText("", second)])
            columns.append((name, kind))
        word = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}[type(node)]
        kept = "" if node.args.get("distinct") else " ALL"
        left, right = (_cast_duckdb_columns(side, columns) for side in (one, other))
        text = select_from_duckdb("*", f"(({left}) {word}{kept} ({right}))")
        found = WrittenRelation(text, tuple(columns))
        return self._end_query(found, node, outer)

    # SELECT.

    def _write_select(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        for name, what in _REFUSED.items():
            if node.args.get(name):
                raise UntriedError(what)
        expressions = self.expressions
        node = _move_duckdb_generator(node)
        scope = QueryScope(parent=outer, reads=self.reads)
        sources = self.write_sources(node, scope)
        items = self._list_items(node, scope)
        scope.aliases |= {
            name: partial(expressions.write_expression, item, scope)
            for name, item in items
            if not isinstance(item, TypedText)
        }
        where, having, qualify = (node.args.get(name) for name in ("where", "having", "qualify"))
        filtered = f"WHERE {expressions.write_condition(where.this, scope)}" if where else ""
        grouping = self._write_groups(node, scope, items)
        columns: list[tuple[str, ValueType]] = []
        shown: list[str] = []
        for name, item in items:
            typed = (
                item if isinstance(item, TypedText) else expressions.write_expression(item, scope)
            )
            columns.append((name, typed.kind))
            shown.append(f"{typed.text} AS {quote_duckdb_name(name)}")
        distinct = bool(node.args.get("distinct"))
        kept = [expressions.write_condition(having.this, scope)] if having else []
        if _has_grouping_sets_in_duckdb_trial(node):
            kept.append("count(*) > 0")  # without rows Spark gives no total
        parts = [
            f"SELECT {'DISTINCT ' if distinct else ''}{', '.join(shown)}",
            sources,
            filtered,
            grouping,
            f"HAVING {' AND '.join(kept)}" if kept else "",
            f"QUALIFY {expressions.write_condition(qualify.this, scope)}" if qualify else "",
        ]
        found = WrittenRelation(" ".join(part for part in parts if part), tuple(columns))
        if distinct:
            return self._end_query(found, node, outer)
        if node.args.get("limit") is None and node.args.get("offset") is None:
            return found
        scope.aliases_first = True
        return WrittenRelation(f"{found.text} {self._write_end(node, scope)}", found.columns)

    def _list_items(
        self, node: exp.Expr, scope: QueryScope
    ) -> list[tuple[str, exp.Expr | TypedText]]:
        """Lists the SELECT list by name: expressions, and the columns of stars."""
        found: list[tuple[str, exp.Expr | TypedText]] = []
        for place, item in enumerate(node.expressions):
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                name = str(item.alias_or_name).lower() or f"_c{place}"
                found.append((name, item.unalias()))
                continue
            if any(value for name, value in star.args.items() if name != "this"):
                raise UntriedError("a star with EXCEPT or REPLACE")
            table = item.table.lower() if isinstance(item, exp.Column) else ""
            columns = scope.list_columns(table, noted=True)
            if not columns:
                raise UntriedError("a star over nothing")
            found += columns
        return found

    def _write_groups(
        self, node: exp.Expr, scope: QueryScope, items: list[tuple[str, exp.Expr | TypedText]]
    ) -> str:
        group = node.args.get("group")
        if group is None:
            parts = [item for _, item in items if not isinstance(item, TypedText)]
            having = node.args.get("having")
            if any(map(_has_aggregate_in_duckdb_trial, [*parts, *([having] if having else [])])):
                scope.groups = []
            return ""
        if group.args.get("totals"):
            raise UntriedError("totals of groups")
        if group.args.get("all"):
            return self._write_all_groups(group, scope, items)

        def write_key(key: exp.Expr) -> str:
            if isinstance(key, exp.Literal) and not key.is_string:
                _name, meant = items[int(key.name) - 1]
                if isinstance(meant, TypedText):
                    return meant.text
                key = meant
            text = self.expressions.write_expression(key, scope).text
            keys.append(text)
            return text

        def write_set(one: exp.Expr) -> str:
            inner = one.expressions if isinstance(one, exp.Tuple) else [one.unnest()]
            return f"({', '.join(map(write_key, inner))})"

        keys: list[str] = []
        plain = list(map(write_key, group.expressions))
        texts = list(plain)
        for name, word in (("rollup", "ROLLUP"), ("cube", "CUBE")):
            for one in group.args.get(name) or ():
                inner = one.expressions if isinstance(one, exp.Expression) else []
                if not inner:  # WITH ROLLUP, of all keys before it
                    texts = [f"{word} ({', '.join(plain)})"]
                else:
                    texts.append(f"{word} ({', '.join(map(write_key, inner))})")
        for one in group.args.get("grouping_sets") or ():
            sets = f"GROUPING SETS ({', '.join(map(write_set, one.expressions))})"
            texts = [sets] if group.expressions else [*texts, sets]
        scope.groups = list(dict.fromkeys(keys))
        return f"GROUP BY {', '.join(texts)}"

    def _write_all_groups(
        self, group: exp.Expr, scope: QueryScope, items: list[tuple[str, exp.Expr | TypedText]]
    ) -> str:
        """Writes GROUP BY ALL: by each result without an aggregate; a constant makes no groups."""
        if group.expressions:
            raise UntriedError("GROUP BY ALL beside other keys")
        keys: list[str] = []
        for _, item in items:
            if isinstance(item, TypedText):
                keys.append(item.text)
            elif item.find(exp.Window):
                raise UntriedError("GROUP BY ALL with a window")
            elif not _has_aggregate_in_duckdb_trial(item) and not isinstance(item, exp.Literal):
                keys.append(self.expressions.write_expression(item, scope).text)
        scope.groups = list(dict.fromkeys(keys))
        return f"GROUP BY {', '.join(scope.groups)}" if keys else ""

    def _end_query(
        self, found: WrittenRelation, node: exp.Expr, outer: QueryScope
    ) -> WrittenRelation:
        """Sorts and cuts the rows of a query by its own columns."""
        if node.args.get("limit") is None and node.args.get("offset") is None:
            return found
        scope = QueryScope([ScopedSource("q", found.columns)], parent=outer)
        end = self._write_end(node, scope)
        return WrittenRelation(select_from_duckdb("*", f"({found.text}) AS q {end}"), found.columns)

    def _write_end(self, node: exp.Expr, scope: QueryScope) -> str:
        order, ends = node.args.get("order"), []
        for name in ("limit", "offset"):
            if (end := node.args.get(name)) is not None:
                if not isinstance(end.expression, exp.Literal):
                    raise UntriedError(f"{name.upper()} of no plain number")
                ends.append(f"{name.upper()} {end.expression.name}")
        keys = [
            self.expressions.write_ordered(key, scope)
            for key in (order.expressions if order else ())
        ]
        self.expressions.depends_on_order = True
        return f"ORDER BY {', '.join([*keys, scope.write_tie()])} {' '.join(ends)}"


_REFUSED = {
    "pivots": "PIVOT",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "a sample",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "kind": "SELECT AS",
}


def _has_grouping_sets_in_duckdb_trial(node: exp.Expr) -> bool:
    group = node.args.get("group")
    return group is not None and any(
        group.args.get(name) for name in ("rollup", "cube", "grouping_sets")
    )


def _move_duckdb_generator(node: exp.Expr) -> exp.Expr:
    """Moves a generator of the SELECT list into a LATERAL VIEW, below groups and windows."""
    found = [
        (place, item.unalias() if isinstance(item, exp.Alias) else item)
        for place, item in enumerate(node.expressions)
    ]
    generators = [
        (place, call)
        for place, call in found
        if isinstance(call, exp.Anonymous)
        and str(call.this).lower().removesuffix("_outer") == "explode"
    ]
    plain = not any(node.args.get(name) for name in ("group", "having", "windows", "qualify"))
    if len(generators) != 1 or not plain or any(node.find_all(exp.Window)):
        return node
    ((place, call),) = generators
    moved = node.copy()
    name = exp.to_identifier(node.expressions[place].alias or "col", quoted=True)
    view = exp.TableAlias(this=exp.to_identifier(_MOVED_VIEW), columns=[name])
    moved.append("laterals", exp.Lateral(this=call.copy(), view=True, alias=view))
    column = exp.column(name.copy(), table=_MOVED_VIEW)
    moved.expressions[place].replace(exp.alias_(column, name.copy()))
    return moved


def _has_aggregate_in_duckdb_trial(node: exp.Expr) -> bool:
    """Whether an expression is computed from groups; windows and queries inside do not count."""
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, exp.Query):
            continue
        if isinstance(one, exp.Anonymous) and str(one.this).lower() in AGGREGATE_NAMES:
            return True
        if isinstance(one, exp.Window):
            function = one.this
            pending += list(function.iter_expressions())
            pending += [inner for inner in one.iter_expressions() if inner is not function]
            continue
        pending += list(one.iter_expressions())
    return False


def _cast_duckdb_columns(side: WrittenRelation, columns: list[tuple[str, ValueType]]) -> str:
    names = [f"c{place}" for place in range(len(columns))]
    items = ", ".join(
        f"{write_duckdb_cast(f'q.{own}', kind, wanted)} AS {quote_duckdb_name(name)}"
        for own, (_, kind), (name, wanted) in zip(names, side.columns, columns, strict=True)
    )
    return select_from_duckdb(items, f"({side.text}) AS q({', '.join(names)})")
