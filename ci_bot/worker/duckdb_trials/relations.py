"""The sources in FROM as DuckDB's text: tables, joins, lateral views, lists of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from ci_bot.worker.duckdb_trials.calls import DuckdbExpressionWriter
from ci_bot.worker.duckdb_trials.expressions import name_duckdb_construct, quote_duckdb_text
from ci_bot.worker.duckdb_trials.nested import write_duckdb_map_parts
from ci_bot.worker.duckdb_trials.query_scopes import (
    QueryScope,
    ScopedSource,
    SourceTable,
    TypedText,
    WrittenRelation,
    select_from_duckdb,
)
from ci_bot.worker.duckdb_trials.value_types import (
    INT,
    MAP_PARTS,
    STRING,
    UntriedError,
    ValueType,
    quote_duckdb_name,
)
from ci_bot.worker.sql import table_name

_GENERATORS = {"explode", "posexplode", "inline"}
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
# The value of a column of USING, from the columns of the left and the right side.
_KEPT_SIDES = {
    "JOIN": "{0}",
    "LEFT JOIN": "{0}",
    "RIGHT JOIN": "{1}",
    "FULL JOIN": "coalesce({0}, {1})",
}


class DuckdbRelationWriter(ABC):
    """A writer of FROM, which notes the columns that are read of each table."""

    def __init__(self, tables: Mapping[str, SourceTable]) -> None:
        self._tables = tables
        self.expressions = DuckdbExpressionWriter(self.write_query)
        self.reads: dict[str, set[str]] = {}
        self._known: list[dict[str, WrittenRelation]] = [{}]

    @abstractmethod
    def write_query(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
        """Returns the text and columns of a query inside of `outer`."""

    def write_sources(self, node: exp.Expr, scope: QueryScope) -> str:
        first = node.args.get("from_") or node.args.get("from")
        if first is None:
            return ""
        texts = [f"FROM {self._write_source(first.this, scope)}"]
        # Spark's grammar has laterals after all joins; those of a table are written at the table.
        texts += [self._write_join(join, scope) for join in node.args.get("joins") or ()]
        texts += [self._write_lateral(view, scope) for view in node.args.get("laterals") or ()]
        return " ".join(texts)

    def _write_source(self, node: exp.Expr, scope: QueryScope) -> str:
        if node.args.get("sample") or node.args.get("version"):
            raise UntriedError("a table with a sample or a version")
        if node.args.get("pivots"):
            return self._write_pivoted_source(node, scope)
        alias = node.args.get("alias")
        columns = (alias.args.get("columns") or []) if alias is not None else []
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            text, found, name = self._write_table(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and alias is None:
            return f"({self._write_source(node.this, scope)})"
        elif isinstance(node, exp.Subquery):
            found = self.write_query(node.this, scope.parent or QueryScope())
            text, name = f"({found.text})", "q"
        elif isinstance(node, exp.Values):
            found = self.write_values(node, scope.parent or QueryScope())
            text, name = f"({found.text})", "v"
        else:
            raise UntriedError(f"{name_duckdb_construct(node)} as a table")
        if columns:
            renamed = rename_duckdb_columns(found, columns)
            text, found = f"({renamed.text})", renamed
        name = (node.alias or name).lower()
        stored = table_name(node) if isinstance(node, exp.Table) else ""
        self._add_source(
            scope,
            ScopedSource(name, found.columns, table=stored if stored in self._tables else ""),
        )
        return self._write_attached(f"{text} AS {quote_duckdb_name(name)}", node, scope)

    def _write_attached(self, text: str, node: exp.Expr, scope: QueryScope) -> str:
        """Writes a source with its own views and joins."""
        texts = [text]
        texts += [self._write_lateral(view, scope) for view in node.args.get("laterals") or ()]
        texts += [self._write_join(join, scope) for join in node.args.get("joins") or ()]
        return " ".join(texts)

    def _write_pivoted_source(self, node: exp.Expr, scope: QueryScope) -> str:
        pivots, source = node.args["pivots"], node.copy()
        pivot = pivots[0]
        for part in ("pivots", "joins", "laterals"):
            source.set(part, None)
        inner = QueryScope(parent=scope.parent, reads=scope.reads)
        text = self._write_source(source, inner)
        named = pivot.args.get("alias")
        if len(pivots) > 1 or len(pivot.args.get("fields") or ()) != 1 or (named and named.columns):
            raise UntriedError("PIVOT of several columns")
        write = self._write_unpivot if pivot.args.get("unpivot") else self._write_pivot
        found = write(pivot, text, inner)
        alias = named.name if named else node.alias or getattr(node, "name", "")
        name = (alias or "q").lower()
        self._add_source(scope, ScopedSource(name, found.columns))
        return self._write_attached(f"({found.text}) AS {quote_duckdb_name(name)}", node, scope)

    def _write_pivot(self, pivot: exp.Expr, text: str, inner: QueryScope) -> WrittenRelation:
        """Writes PIVOT: groups by columns that it does not name; NULL if a value has no rows."""
        (field,) = pivot.args["fields"]
        used = {column.name.lower() for column in pivot.find_all(exp.Column)}
        kept = [(name, typed) for name, typed in inner.list_columns(noted=True) if name not in used]
        inner.groups = [typed.text for _, typed in kept]
        columns, shown = list(kept), [typed.text for _, typed in kept]
        for value in field.expressions:
            meant = exp.NullSafeEQ(this=field.this, expression=value.unalias())
            is_there = self.expressions.write_condition(meant, inner)
            for total in pivot.expressions:
                name = value.alias_or_name
                if len(pivot.expressions) > 1:
                    if not total.alias:
                        raise UntriedError("PIVOT of totals without names")
                    name = f"{name}_{total.alias}"
                filtered = exp.Filter(this=total.unalias(), expression=exp.Where(this=meant))
                computed = self.expressions.write_expression(filtered, inner)
                columns.append((name.lower(), computed))
                shown.append(
                    f"CASE WHEN count(*) FILTER (WHERE {is_there}) > 0 THEN {computed.text} END"
                )
        items = [
            f"{one} AS {quote_duckdb_name(name)}"
            for one, (name, _) in zip(shown, columns, strict=True)
        ]
        grouping = f" GROUP BY {', '.join(inner.groups)}" if inner.groups else ""
        return WrittenRelation(
            f"{select_from_duckdb(', '.join(items), text)}{grouping}",
            tuple((name, typed.kind) for name, typed in columns),
        )

    def _write_unpivot(self, pivot: exp.Expr, text: str, inner: QueryScope) -> WrittenRelation:
        (field,), (value,) = pivot.args["fields"], pivot.expressions
        used = {column.name.lower() for column in pivot.find_all(exp.Column)}
        kept = [(name, typed) for name, typed in inner.list_columns(noted=True) if name not in used]
        parts = [
            self.expressions.write_expression(one.unalias(), inner) for one in field.expressions
        ]
        kind, texts = self.expressions.unify_types(parts)
        if not isinstance(value, exp.Identifier) or any(
            not isinstance(one.unalias(), exp.Column) for one in field.expressions
        ):
            raise UntriedError("UNPIVOT of several columns")
        names = [one.alias_or_name for one in field.expressions]
        rows = ", ".join(
            f"({quote_duckdb_text(name)}, {one})" for name, one in zip(names, texts, strict=True)
        )
        name, given = field.this.name.lower(), value.name.lower()
        columns = [(one, typed.kind) for one, typed in kept]
        items = [f"{typed.text} AS {quote_duckdb_name(one)}" for one, typed in kept]
        items += [f"ci_parts.{quote_duckdb_name(one)}" for one in (name, given)]
        parted = (
            f"(VALUES {rows}) AS ci_parts({quote_duckdb_name(name)}, {quote_duckdb_name(given)})"
        )
        end = (
            ""
            if pivot.args.get("include_nulls")
            else f" WHERE ci_parts.{quote_duckdb_name(given)} IS NOT NULL"
        )
        return WrittenRelation(
            f"{select_from_duckdb(', '.join(items), f'{text} CROSS JOIN LATERAL {parted}')}{end}",
            (*columns, (name, STRING), (given, kind)),
        )

    def _add_source(self, scope: QueryScope, source: ScopedSource) -> None:
        if any(other.alias == source.alias for other in scope.sources):
            raise UntriedError("two tables of one name")
        scope.sources.append(source)

    def _write_table(self, node: exp.Table) -> tuple[str, WrittenRelation, str]:
        name = table_name(node)
        if "." not in name and name in self._known[-1]:
            known = self._known[-1][name]
            return (
                quote_duckdb_name(name),
                WrittenRelation(select_from_duckdb("*", quote_duckdb_name(name)), known.columns),
                name,
            )
        table = self._tables.get(name)
        if table is None:
            raise UntriedError(f"{name}, whose columns are not known")
        self.reads.setdefault(name, set())
        columns = tuple(table.columns.items())
        return (
            quote_duckdb_name(table.name),
            WrittenRelation(select_from_duckdb("*", quote_duckdb_name(table.name)), columns),
            node.name.lower(),
        )

    def _write_join(self, join: exp.Join, scope: QueryScope) -> str:
        side = str(join.side or "").upper()
        kind = str(join.kind or "").upper()
        method = str(join.args.get("method") or "").upper()
        if method not in {"", "NATURAL"} or (kind, side) not in _JOINS:
            raise UntriedError(f"{' '.join(filter(None, (join.method, side, kind)))} JOIN")
        known = list(scope.sources)
        on, using = join.args.get("on"), join.args.get("using")
        word = _JOINS[kind, side]
        if isinstance(join.this, exp.Lateral):
            if not isinstance(join.this.this, exp.Subquery):
                return self._write_lateral(join.this, scope)
            if using or method or word not in {"JOIN", "CROSS JOIN", "LEFT JOIN"}:
                raise UntriedError(f"{word} LATERAL")
            text = self._write_lateral_query(join.this, scope)
        else:
            text = self._write_source(join.this, scope)
        if using or method:
            names = [name.name.lower() for name in using or ()]
            if method:
                names = _list_common_duckdb_names(known, scope.sources[len(known) :])
            return self._write_join_by_names(word, text, names, known, scope)
        if on is None:
            if word not in {"JOIN", "CROSS JOIN"}:
                raise UntriedError(f"{word} without a condition")
            return f"CROSS JOIN {text}"
        condition = self.expressions.write_condition(on, scope)
        if kind in {"SEMI", "ANTI"}:  # its columns are only known in its condition
            scope.sources[:] = known
        return f"{'JOIN' if word == 'CROSS JOIN' else word} {text} ON {condition}"

    def _write_join_by_names(
        self, word: str, text: str, names: list[str], known: list[ScopedSource], scope: QueryScope
    ) -> str:
        """Writes a join with USING: columns of one name become one, that of the kept side."""
        if word not in _KEPT_SIDES or len(scope.sources) != len(known) + 1 or not names:
            raise UntriedError(f"{word} with USING")
        conditions, shared = [], {}
        added = scope.sources[-1]
        for name in names:
            one = QueryScope(known, reads=scope.reads).find_column("", name)
            # An example shows both columns: a NATURAL JOIN compares the columns that both tables
            # have.
            other = QueryScope([added], reads=scope.reads).find_column("", name)
            if other.kind != one.kind:
                raise UntriedError("USING with columns of other types")
            conditions.append(f"{one.text} = {other.text}")
            shared[name] = _KEPT_SIDES[word].format(one.text, other.text)
        scope.sources[-1] = replace(added, shared=shared)
        return f"{word} {text} ON {' AND '.join(conditions)}"

    def _write_lateral_query(self, node: exp.Expr, scope: QueryScope) -> str:
        """Writes a query that reads the tables beside it."""
        alias = node.args.get("alias")
        if alias is None or not alias.name:
            raise UntriedError("LATERAL without a name")
        inner = self.write_query(node.this.this, scope)
        inner = rename_duckdb_columns(inner, alias.args.get("columns") or [])
        self._add_source(scope, ScopedSource(alias.name.lower(), inner.columns))
        return f"LATERAL ({inner.text}) AS {quote_duckdb_name(alias.name.lower())}"

    def _write_lateral(self, view: exp.Expr, scope: QueryScope) -> str:
        """Writes a LATERAL VIEW of an array's items."""
        call = view.this
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        outer = bool(view.args.get("outer")) or name.endswith("_outer")
        name = name.removesuffix("_outer")
        alias = view.args.get("alias")
        if name not in _GENERATORS or len(call.expressions) != 1 or alias is None:
            raise UntriedError(f"LATERAL VIEW {name_duckdb_construct(call)}")
        value = self.expressions.write_expression(call.expressions[0], scope)
        columns, texts = _list_generated_duckdb_columns(name, value)
        items = ", ".join(
            f"{text} AS {quote_duckdb_name(column)}"
            for text, (column, _) in zip(texts, columns, strict=True)
        )
        names = [one.name.lower() for one in alias.args.get("columns") or []] or [
            n for n, _ in columns
        ]
        if len(names) != len(columns):
            raise UntriedError("a LATERAL VIEW with other columns")
        table = (alias.name or "q").lower()
        kinds = tuple((new, kind) for new, (_, kind) in zip(names, columns, strict=True))
        self._add_source(scope, ScopedSource(table, kinds))
        shown = f"{quote_duckdb_name(table)}({', '.join(map(quote_duckdb_name, names))})"
        word, end = ("LEFT JOIN", " ON TRUE") if outer else ("CROSS JOIN", "")
        return f"{word} LATERAL (SELECT {items}) AS {shown}{end}"

    def write_values(self, node: exp.Expr, outer: QueryScope) -> WrittenRelation:
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
        names = ", ".join(quote_duckdb_name(name) for name, _ in columns)
        return WrittenRelation(
            select_from_duckdb("*", f"(VALUES {lines}) AS v({names})"), tuple(columns)
        )


def _list_generated_duckdb_columns(
    name: str, value: TypedText
) -> tuple[list[tuple[str, ValueType]], list[str]]:
    """Lists the columns that a generator makes of an array or a map, and DuckDB's texts."""
    item = value.kind.item
    if name == "inline":
        if item is None or item.name != "struct":
            raise UntriedError(f"inline() of {value.kind}")
        return list(item.parts), [
            f"struct_extract(unnest({value.text}), {quote_duckdb_text(part)})"
            for part, _ in item.parts
        ]
    if value.kind.name == "map":
        parts = [write_duckdb_map_parts(value, part).text for part in MAP_PARTS]
        columns, texts = list(value.kind.parts), [f"unnest({part})" for part in parts]
    elif item is not None:
        columns, texts = [("col", item)], [f"unnest({value.text})"]
    else:
        raise UntriedError(f"{name}() of {value.kind}")
    if name == "posexplode":
        places = f"CAST(generate_subscripts({value.text}, 1) - 1 AS INTEGER)"
        columns, texts = [("pos", INT), *columns], [places, *texts]
    return columns, texts


def _list_common_duckdb_names(known: list[ScopedSource], added: list[ScopedSource]) -> list[str]:
    """Lists the names that both sides of a NATURAL JOIN have, in the order of the left one."""
    right = {name for source in added for name, _ in source.columns}
    names = [name for source in known for name, _ in source.columns if name in right]
    return list(dict.fromkeys(names))


def rename_duckdb_columns(found: WrittenRelation, names: Any) -> WrittenRelation:
    """Gives the columns of a query the names of an alias list."""
    if not names:
        return found
    if len(names) != len(found.columns):
        raise UntriedError("an alias list of another length")
    renamed = [name.name.lower() for name in names]
    shown = ", ".join(map(quote_duckdb_name, renamed))
    columns = tuple((new, kind) for new, (_, kind) in zip(renamed, found.columns, strict=True))
    return WrittenRelation(select_from_duckdb("*", f"({found.text}) AS q({shown})"), columns)
