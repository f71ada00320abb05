"""Queries of Spark as DuckDB's text: what stands around their expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from ci_bot.worker.execution.arithmetic import write_cast
from ci_bot.worker.execution.calls import ExpressionWriter
from ci_bot.worker.execution.expressions import name_construct
from ci_bot.worker.execution.functions import AGGREGATE_NAMES
from ci_bot.worker.execution.scopes import (
    QueryScope,
    ScopedSource,
    SourceTable,
    TypedColumns,
    TypedText,
    WrittenRelation,
    quote_name,
    select_from,
)
from ci_bot.worker.execution.spark_types import (
    INT,
    UntriedError,
    ValueType,
)
from ci_bot.worker.sql import table_name

_GENERATORS = {"explode", "posexplode"}


@dataclass(frozen=True)
class WrittenQuery:
    """A query for DuckDB.

    Attributes:
        columns: what it gives, by name and type.
        hangs_on_order: its result may hang on the order in which rows are read.
        reads: the columns that it reads of each source table.
    """

    text: str
    columns: TypedColumns
    hangs_on_order: bool
    reads: Mapping[str, frozenset[str]]


def write_query(tree: exp.Expr, tables: Mapping[str, SourceTable]) -> WrittenQuery:
    """A query for DuckDB.

    Args:
        tree: of `parse_plain`.
        tables: by name as `table_name` writes it.

    Raises UntriedError.
    """
    writer = QueryWriter(tables)
    try:
        found = writer.write_query(tree, QueryScope())
    except RecursionError as error:
        raise UntriedError("a query that is nested too deeply") from error
    names = [name for name, _ in found.columns]
    if len(set(names)) != len(names):
        raise UntriedError("two columns of one name")
    reads = {name: frozenset(columns) for name, columns in writer.reads.items()}
    return WrittenQuery(found.text, found.columns, writer.expressions.hangs_on_order, reads)


class QueryWriter:
    """Writes one query; notes what it reads."""

    def __init__(self, tables: Mapping[str, SourceTable]) -> None:
        self._tables = tables
        self.expressions = ExpressionWriter(self.write_query)
        self.reads: dict[str, set[str]] = {}
        self._known: list[dict[str, WrittenRelation]] = [{}]

    def write_query(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        """The text and columns of a query inside of `outer`."""
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
                inner = _rename_columns(inner, cte.args["alias"].args.get("columns") or [])
                self._known[-1][name] = inner
                texts.append(f"{quote_name(name)} AS ({inner.text})")
            body = self._write_body(node, outer)
        finally:
            self._known.pop()
        return WrittenRelation(f"WITH {', '.join(texts)} {body.text}", body.columns)

    def _write_body(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        if isinstance(node, exp.Subquery) and not node.args.get("joins"):
            inner = self.write_query(node.this, outer)
            found = WrittenRelation(select_from("*", f"({inner.text})"), inner.columns)
            return self._end_query(found, node, outer)
        if isinstance(node, exp.SetOperation):
            return self._write_set(node, outer)
        if isinstance(node, exp.Select):
            return self._write_select(node, outer)
        if isinstance(node, exp.Values):
            return self._write_values(node, outer)
        raise UntriedError(name_construct(node))

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
        left, right = (_cast_columns(side, columns) for side in (one, other))
        text = select_from("*", f"(({left}) {word}{kept} ({right}))")
        found = WrittenRelation(text, tuple(columns))
        return self._end_query(found, node, outer)

    def _write_values(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        rows = [
            [
                self.expressions.write_expression(cell, outer)
                for cell in getattr(row, "expressions", None) or [row]
            ]
            for row in node.expressions
        ]
        kinds, columns = [], []
        for place, cells in enumerate(zip(*rows, strict=True), start=1):
            kind, texts = self.expressions.unify_types(cells)
            kinds.append(texts)
            columns.append((f"col{place}", kind))
        lines = ", ".join(f"({', '.join(row)})" for row in zip(*kinds, strict=True))
        names = ", ".join(quote_name(name) for name, _ in columns)
        return WrittenRelation(select_from("*", f"(VALUES {lines}) AS v({names})"), tuple(columns))

    # FROM.

    def _write_sources(self, node: exp.Expr, scope: QueryScope) -> str:
        first = node.args.get("from_") or node.args.get("from")
        if first is None:
            return ""
        texts = [f"FROM {self._write_source(first.this, scope)}"]
        # Spark's grammar takes laterals after all joins; those of a table stand at the table.
        texts += [self._write_join(join, scope) for join in node.args.get("joins") or ()]
        texts += [self._write_lateral(view, scope) for view in node.args.get("laterals") or ()]
        return " ".join(texts)

    def _write_source(self, node: exp.Expr, scope: QueryScope) -> str:
        if node.args.get("sample") or node.args.get("pivots") or node.args.get("version"):
            raise UntriedError("a table with PIVOT, a sample or a version")
        alias = node.args.get("alias")
        columns = (alias.args.get("columns") or []) if alias is not None else []
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            text, found, name = self._write_table(node)
        elif isinstance(node, exp.Subquery):
            found = self.write_query(node.this, scope.parent or QueryScope())
            text, name = f"({found.text})", "q"
        elif isinstance(node, exp.Values):
            found = self._write_values(node, scope.parent or QueryScope())
            text, name = f"({found.text})", "v"
        else:
            raise UntriedError(f"{name_construct(node)} as a table")
        if columns:
            renamed = _rename_columns(found, columns)
            text, found = f"({renamed.text})", renamed
        name = (node.alias or name).lower()
        stored = table_name(node) if isinstance(node, exp.Table) else ""
        self._add_source(
            scope,
            ScopedSource(name, found.columns, table=stored if stored in self._tables else ""),
        )
        texts = [f"{text} AS {quote_name(name)}"]
        texts += [self._write_lateral(view, scope) for view in node.args.get("laterals") or ()]
        texts += [self._write_join(join, scope) for join in node.args.get("joins") or ()]
        return " ".join(texts)

    def _add_source(self, scope: QueryScope, source: ScopedSource) -> None:
        if any(other.alias == source.alias for other in scope.sources):
            raise UntriedError("two tables of one name")
        scope.sources.append(source)

    def _write_table(self, node: exp.Table) -> tuple[str, WrittenRelation, str]:
        name = table_name(node)
        if "." not in name and name in self._known[-1]:
            known = self._known[-1][name]
            return (
                quote_name(name),
                WrittenRelation(select_from("*", quote_name(name)), known.columns),
                name,
            )
        table = self._tables.get(name)
        if table is None:
            raise UntriedError(f"{name}, whose columns are not known")
        self.reads.setdefault(name, set())
        columns = tuple(table.columns.items())
        return (
            quote_name(table.name),
            WrittenRelation(select_from("*", quote_name(table.name)), columns),
            (node.name.lower()),
        )

    def _write_join(self, join: exp.Join, scope: QueryScope) -> str:
        if isinstance(join.this, exp.Lateral):
            return self._write_lateral(join.this, scope)
        side = str(join.side or "").upper()
        kind = str(join.kind or "").upper()
        if join.args.get("method") or (kind, side) not in _JOINS:
            raise UntriedError(f"{' '.join(filter(None, (join.method, side, kind)))} JOIN")
        known = list(scope.sources)
        text = self._write_source(join.this, scope)
        on, using = join.args.get("on"), join.args.get("using")
        word = _JOINS[kind, side]
        if using:
            names = [name.name.lower() for name in using]
            if word not in {"JOIN", "LEFT JOIN"} or len(scope.sources) != len(known) + 1:
                raise UntriedError(f"{word} with USING")
            conditions = []
            added = scope.sources[-1]
            for name in names:
                one = QueryScope(known).find_column("", name)
                kind_ = dict(added.columns).get(name)
                if kind_ is None or one.kind != kind_:
                    raise UntriedError("USING with columns of other types")
                conditions.append(f"{one.text} = {quote_name(added.alias)}.{quote_name(name)}")
            scope.sources[-1] = ScopedSource(
                added.alias, added.columns, frozenset(names), added.table
            )
            return f"{word} {text} ON {' AND '.join(conditions)}"
        if on is None:
            if word not in {"JOIN", "CROSS JOIN"}:
                raise UntriedError(f"{word} without a condition")
            return f"CROSS JOIN {text}"
        condition = self.expressions.write_condition(on, scope)
        if kind in {"SEMI", "ANTI"}:  # its columns end with its condition
            scope.sources[:] = known
        return f"{'JOIN' if word == 'CROSS JOIN' else word} {text} ON {condition}"

    def _write_lateral(self, view: exp.Expr, scope: QueryScope) -> str:
        """LATERAL VIEW of an array's items."""
        call = view.this
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        outer = bool(view.args.get("outer")) or name.endswith("_outer")
        name = name.removesuffix("_outer")
        alias = view.args.get("alias")
        if name not in _GENERATORS or len(call.expressions) != 1 or alias is None:
            raise UntriedError(f"LATERAL VIEW {name_construct(call)}")
        value = self.expressions.write_expression(call.expressions[0], scope)
        if value.kind.item is None:
            raise UntriedError(f"{name}() of {value.kind}")
        columns: list[tuple[str, ValueType]] = [("col", value.kind.item)]
        items = f'unnest({value.text}) AS "col"'
        if name == "posexplode":
            columns = [("pos", INT), *columns]
            items = f'CAST(generate_subscripts({value.text}, 1) - 1 AS INTEGER) AS "pos", {items}'
        names = [one.name.lower() for one in alias.args.get("columns") or []] or [
            n for n, _ in columns
        ]
        if len(names) != len(columns):
            raise UntriedError("a LATERAL VIEW with other columns")
        table = (alias.name or "q").lower()
        kinds = tuple((new, kind) for new, (_, kind) in zip(names, columns, strict=True))
        self._add_source(scope, ScopedSource(table, kinds))
        shown = f"{quote_name(table)}({', '.join(map(quote_name, names))})"
        word, end = ("LEFT JOIN", " ON TRUE") if outer else ("CROSS JOIN", "")
        return f"{word} LATERAL (SELECT {items}) AS {shown}{end}"

    # SELECT.

    def _write_select(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        for name, what in _REFUSED.items():
            if node.args.get(name):
                raise UntriedError(what)
        expressions = self.expressions
        scope = QueryScope(parent=outer, reads=self.reads)
        sources = self._write_sources(node, scope)
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
            shown.append(f"{typed.text} AS {quote_name(name)}")
        distinct = bool(node.args.get("distinct"))
        kept = [expressions.write_condition(having.this, scope)] if having else []
        if _has_grouping_sets(node):
            kept.append("count(*) > 0")  # of no rows Spark gives no total
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
        if node.args.get("limit") is None:
            return found
        scope.aliases_first = True
        return WrittenRelation(f"{found.text} {self._write_end(node, scope)}", found.columns)

    def _list_items(
        self, node: exp.Expr, scope: QueryScope
    ) -> list[tuple[str, exp.Expr | TypedText]]:
        """The SELECT list by name: expressions, and columns that stars stand for."""
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
            if any(map(_has_aggregate, [*parts, *([having] if having else [])])):
                scope.groups = []
            return ""
        if group.args.get("all") or group.args.get("totals"):
            raise UntriedError("GROUP BY ALL")

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
                if not inner:  # WITH ROLLUP, of all that stands before it
                    texts = [f"{word} ({', '.join(plain)})"]
                else:
                    texts.append(f"{word} ({', '.join(map(write_key, inner))})")
        for one in group.args.get("grouping_sets") or ():
            sets = f"GROUPING SETS ({', '.join(map(write_set, one.expressions))})"
            texts = [sets] if group.expressions else [*texts, sets]
        scope.groups = list(dict.fromkeys(keys))
        return f"GROUP BY {', '.join(texts)}"

    def _end_query(
        self, found: WrittenRelation, node: exp.Expr, outer: QueryScope
    ) -> WrittenRelation:
        """A query whose rows are sorted and cut by its own columns."""
        if node.args.get("limit") is None and node.args.get("offset") is None:
            return found
        scope = QueryScope([ScopedSource("q", found.columns)], parent=outer)
        end = self._write_end(node, scope)
        return WrittenRelation(select_from("*", f"({found.text}) AS q {end}"), found.columns)

    def _write_end(self, node: exp.Expr, scope: QueryScope) -> str:
        order, limit = node.args.get("order"), node.args["limit"]
        count = limit.expression if limit is not None else None
        if not isinstance(count, exp.Literal) or node.args.get("offset") is not None:
            raise UntriedError("OFFSET, or LIMIT of no plain number")
        keys = [
            self.expressions.write_ordered(key, scope)
            for key in (order.expressions if order else ())
        ]
        self.expressions.hangs_on_order = True
        return f"ORDER BY {', '.join([*keys, scope.write_tie()])} LIMIT {count.name}"


_JOINS = {
    (kind, side): word
    for word, names in {
        "JOIN": [("", ""), ("INNER", "")],
        "CROSS JOIN": [("CROSS", "")],
        "LEFT JOIN": [("", "LEFT"), ("OUTER", "LEFT")],
        "RIGHT JOIN": [("", "RIGHT"), ("OUTER", "RIGHT")],
        "FULL JOIN": [("", "FULL"), ("OUTER", "FULL")],
        "SEMI JOIN": [("SEMI", ""), ("SEMI", "LEFT")],
        "ANTI JOIN": [("ANTI", ""), ("ANTI", "LEFT")],
    }.items()
    for kind, side in names
}
_REFUSED = {
    "pivots": "PIVOT",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "a sample",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "kind": "SELECT AS",
    "offset": "OFFSET",
}


def _has_grouping_sets(node: exp.Expr) -> bool:
    group = node.args.get("group")
    return group is not None and any(
        group.args.get(name) for name in ("rollup", "cube", "grouping_sets")
    )


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression is computed of groups; windows and queries inside do not count."""
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


def _rename_columns(found: WrittenRelation, names: Any) -> WrittenRelation:
    """The query with the names of an alias list."""
    if not names:
        return found
    if len(names) != len(found.columns):
        raise UntriedError("an alias list of another length")
    renamed = [name.name.lower() for name in names]
    shown = ", ".join(map(quote_name, renamed))
    columns = tuple((new, kind) for new, (_, kind) in zip(renamed, found.columns, strict=True))
    return WrittenRelation(select_from("*", f"({found.text}) AS q({shown})"), columns)


def _cast_columns(side: WrittenRelation, columns: list[tuple[str, ValueType]]) -> str:
    names = [f"c{place}" for place in range(len(columns))]
    items = ", ".join(
        f"{write_cast(f'q.{own}', kind, wanted)} AS {quote_name(name)}"
        for own, (_, kind), (name, wanted) in zip(names, side.columns, columns, strict=True)
    )
    return select_from(items, f"({side.text}) AS q({', '.join(names)})")
