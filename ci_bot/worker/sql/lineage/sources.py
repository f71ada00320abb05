"""What lineage is computed of: a project's models on both sides of a change, and what a SELECT
reads in FROM, JOIN and LATERAL, under which names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp

from ci_bot.protocol.review_report import HowChanged
from ci_bot.worker.sql.lineage.expressions import ExpressionReader, ReadQuery, UnreadableError
from ci_bot.worker.sql.lineage.scopes import (
    ANY,
    FromEntry,
    LineageRowset,
    NameScope,
    TracedValue,
    make_opaque_relation,
    map_columns_by_name,
    name_by_position,
)
from ci_bot.worker.sql.model_query import table_name
from ci_bot.worker.sqlmesh_compat import FROM, Tree

# `added` and `removed` only if a model reads it that was not edited for that.
ModelChange = Literal["added", "removed", "direct", "indirect"]
# Tables by their name as `table_name` writes it, with their columns in order; None: not known.
KnownColumns = Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class ModelDefinition:
    """The query of a model on one side.

    Attributes:
        rendered: the tree that SQLMesh would run, with the times of a load; None where `opaque`.
        written: the tree of the file, with macros; None if it is Jinja or a macro as a whole.
        incremental: the tree as a run renders it that finds what earlier runs left, if nothing else
            of times and conditions is hidden in Jinja (dbt's `is_incremental`).
        has_star: the file has a star, so the rendering shows only columns that still exist.
        hides: the rendering may have folded something away that depends on times or conditions.
        text: the file's text with its macros', for the names in it, where it hides and no other
            tree shows it, or a macro may bring other names when the model runs.
        opaque: why the query cannot be read, as a sentence.
    """

    rendered: exp.Query | None = None
    written: exp.Expr | None = None
    incremental: exp.Query | None = None
    has_star: bool = False
    hides: bool = False
    text: str | None = None
    opaque: str | None = None


@dataclass(frozen=True)
class LineageModel:
    """One model that a change touches, or that stands below such a one.

    Attributes:
        parents: names of the tables that it depends on, as far as SQLMesh knows them.
        after: its definition in the head; asked for only if something above it changes.
        before: its definition in prod, for a model that was edited.
        columns_before, columns_after: names in lower case, in their order; None: not known.
        changed: columns that change in another way than the query can tell, and how.
        same_result: it is proved that both definitions give the same, but for the columns' order.
        executed: columns of which an execution has shown that they differ; None: how many rows.
        disproved: how an execution has shown that the analysis misses a change, as a sentence.
        beside_query: what besides the query decides about its data and differs, as a sentence.
        deciding: columns by which its kind decides which rows it keeps; None: by all of them.
        read_elsewhere: parents that something else than its query reads.
        is_source: it has no query: a seed or an external model.
        opaque: why nothing can be known of what it reads, as a sentence (Python models).
    """

    name: str
    parents: tuple[str, ...] = ()
    change: ModelChange | None = None
    after: Callable[[], ModelDefinition] | None = None
    before: Callable[[], ModelDefinition] | None = None
    columns_before: tuple[str, ...] | None = None
    columns_after: tuple[str, ...] | None = None
    changed: Mapping[str, HowChanged] = field(default_factory=dict)
    same_result: bool = False
    executed: frozenset[str | None] = frozenset()
    disproved: str | None = None
    beside_query: str | None = None
    deciding: frozenset[str] | None = frozenset()
    read_elsewhere: frozenset[str] = frozenset()
    is_source: bool = False
    opaque: str | None = None


@dataclass(frozen=True)
class ChangedProject:
    """The models that the analysis looks at, every one after those that it reads.

    Attributes:
        models: changed models and everything below them, in topological order.
        columns: the columns of every table that one of them reads: of both sides together.
        shown: how people call a model.
    """

    models: tuple[LineageModel, ...]
    columns: KnownColumns = field(default_factory=dict)
    shown: Callable[[str], str] = str


StoredTable = Callable[[str], LineageRowset]

_TABLE = frozenset({"this", "db", "catalog", "alias", "joins", "laterals", "pivots", "hints"})
_JOIN = frozenset({"this", "on", "using", "hint", "side", "kind", "method"})
_IMPLICIT = frozenset({"", "INNER", "CROSS", "OUTER"})  # what conditions and a side say already
_HIDDEN = frozenset({"SEMI", "ANTI"})


class FromClause:
    """Reads the sources of a SELECT into a frame."""

    def __init__(self, expressions: ExpressionReader, read_query: ReadQuery, stored: StoredTable):
        self._expressions = expressions
        self._terms = expressions.terms
        self._read_query = read_query
        self._stored = stored

    def read_sources(self, node: exp.Expr, frame: NameScope) -> list[TracedValue]:
        """Adds what `node` reads to `frame`.

        Returns:
            What decides, besides the rows of the sources, which rows come out.
        """
        conditions: list[TracedValue] = []
        start = node.args.get(FROM)
        if start is not None:
            conditions += self._read_entry(start.this, frame)
        return conditions + self._read_more(node, frame)

    def _read_more(self, node: exp.Expr, frame: NameScope) -> list[TracedValue]:
        conditions: list[TracedValue] = []
        for join in node.args.get("joins") or ():
            conditions += self._read_join(join, frame)
        for lateral in node.args.get("laterals") or ():
            conditions += self._read_entry(lateral, frame)
        return conditions

    def _read_entry(
        self, node: exp.Expr, frame: NameScope, *, hidden: bool = False
    ) -> list[TracedValue]:
        if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            return self._read_group(node, frame, hidden=hidden)  # FROM (a JOIN b ON …)
        names, relation = (
            self._read_table(node, frame)
            if isinstance(node, exp.Table)
            else (
                frozenset({node.alias_or_name.lower()}),
                self._read_made_rows(node, frame),
            )
        )
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.columns:
            relation = self.rename_relation(relation, [name.name.lower() for name in alias.columns])
        conditions: list[TracedValue] = []
        if isinstance(node, exp.Table):
            relation = self.pivot_relation(relation, node)
        names |= {item.alias.lower() for item in node.args.get("pivots") or () if item.alias}
        frame.add_entry(names, relation, hidden=hidden)
        if isinstance(node, exp.Table):
            for name, argument in node.args.items():
                if name not in _TABLE and isinstance(argument, Tree):
                    conditions.append(self._expressions.trace_value(argument, frame))
            conditions += self._read_more(node, frame)
        return conditions

    def _read_group(self, node: exp.Expr, frame: NameScope, *, hidden: bool) -> list[TracedValue]:
        if not node.alias and not node.args.get("pivots"):
            return self._read_entry(node.this, frame, hidden=hidden) + self._read_more(node, frame)
        inside = frame.open_beside()
        conditions = self._read_entry(node.this, inside) + self._read_more(node, inside)
        whole = self._terms.combine_values(
            "group", [inside.trace_everything(), inside.trace_rows(), *conditions]
        )
        tables = _list_tables(inside.sources)
        frame.add_entry(
            frozenset({node.alias.lower()}), make_opaque_relation(self._terms, whole, (), tables)
        )
        frame.mixed = frame.mixed or bool(node.args.get("pivots"))
        return conditions

    def _read_table(
        self, node: exp.Table, frame: NameScope
    ) -> tuple[frozenset[str], LineageRowset]:
        if not isinstance(node.this, exp.Identifier):  # a function that gives a table
            value = self._expressions.trace_value(node.this, frame)
            return frozenset({node.alias_or_name.lower()}), make_opaque_relation(
                self._terms, value, (), frozenset()
            )
        name = table_name(node)
        parts = name.split(".")
        cte = frame.ctes.get(name) if len(node.parts) == 1 else None
        relation = cte if cte is not None else self._stored(name)
        if node.alias:
            return frozenset({node.alias.lower()}), relation
        return frozenset(".".join(parts[index:]) for index in range(len(parts))), relation

    def _read_made_rows(self, node: exp.Expr, frame: NameScope) -> LineageRowset:
        """A subquery, or rows that are made of values."""
        if isinstance(node, exp.Query):
            return self._read_query(node, frame.open_beside())
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Query):
            return self._read_query(node.this, frame)
        value = self._terms.combine_values(
            "made",
            [
                self._expressions.trace_value(item, frame)
                for name, argument in node.args.items()
                if name != "alias"
                for item in (argument if isinstance(argument, list) else [argument])
                if isinstance(item, Tree)
            ],
            type(node).__name__,
            bool(node.args.get("outer")),
        )
        return make_opaque_relation(self._terms, value, (), frozenset())

    def pivot_relation(self, relation: LineageRowset, node: exp.Expr) -> LineageRowset:
        """A relation under the PIVOT or UNPIVOT behind `node`: any column may hold any of it."""
        pivots = node.args.get("pivots") or ()
        if not pivots:
            return relation
        if any(item.find(exp.Query) for item in pivots):
            raise UnreadableError("a PIVOT over what a query gives")
        text = [_keep_alias_columns(item).sql(comments=False) for item in pivots]
        whole = self._terms.combine_values("pivot", [relation.trace_whole(self._terms)], *text)
        return make_opaque_relation(self._terms, whole, (), relation.tables)

    def rename_relation(self, relation: LineageRowset, names: list[str]) -> LineageRowset:
        """A relation whose columns are called otherwise, in their order."""
        old = relation.list_columns()
        if relation.missing is not None or relation.unplaced or len(names) > len(old):
            value = relation.trace_content(self._terms)
            renamed = make_opaque_relation(self._terms, value, (), relation.tables)
            columns = {
                n: name_by_position(self._terms, value, place) for place, n in enumerate(names)
            }
            return replace(renamed, columns=columns, rows=relation.rows)
        pairs = [
            (
                names[place] if place < len(names) else name,
                TracedValue(v.deps | relation.order, v.key),
            )
            for place, (name, v) in enumerate(old)
        ]
        columns, repeated = map_columns_by_name(self._terms, pairs)
        return replace(relation, columns=columns, repeated=repeated)

    def _read_join(self, join: exp.Join, frame: NameScope) -> list[TracedValue]:
        left = list(frame.sources)
        how = [str(join.args.get(part) or "").upper() for part in ("method", "side", "kind")]
        conditions = self._read_entry(join.this, frame, hidden=not _HIDDEN.isdisjoint(how))
        right = frame.sources[len(left) :]
        if how[0] == "NATURAL":
            conditions.append(self._read_natural_join(left, right, frame))
        elif how[0] == "POSITIONAL":
            frame.mixed = True
        for name in (key.name.lower() for key in join.args.get("using") or ()):
            frame.merged.add(name)
            conditions += self._trace_called(name, frame.sources)
        on = join.args.get("on")
        if on is not None and not (isinstance(on, exp.Boolean) and on.this):
            conditions.append(self._expressions.trace_value(on, frame))
        for name, argument in join.args.items():
            if name not in _JOIN and argument:
                frame.mixed = True
        return [
            self._terms.combine_values("join", conditions, *(w for w in how if w not in _IMPLICIT))
        ]

    def _read_natural_join(
        self, left: Iterable[FromEntry], right: Iterable[FromEntry], frame: NameScope
    ) -> TracedValue:
        names = [
            {name for source in side for name in source.relation.columns} for side in (left, right)
        ]
        common = names[0] & names[1]
        frame.merged |= common
        values = [
            value for name in sorted(common) for value in self._trace_called(name, frame.sources)
        ]
        for source in (*left, *right):
            if source.relation.missing is not None:
                values += [source.value_of_entry(source.relation.missing(ANY), self._terms)]
        return self._terms.combine_values("natural", values)

    def _trace_called(self, name: str, sources: Iterable[FromEntry]) -> list[TracedValue]:
        found: list[TracedValue] = []
        for source in sources:
            value = source.find_column(name, self._terms) or source.find_unlisted(name, self._terms)
            if value is not None:
                found.append(value)
        return found


def _list_tables(sources: Iterable[FromEntry]) -> frozenset[str]:
    return frozenset(table for source in sources for table in source.relation.tables)


def _keep_alias_columns(pivot: exp.Expr) -> exp.Expr:
    """A PIVOT in which only the columns of its alias are left, if it lists them."""
    copied = pivot.copy()
    alias = copied.args.get("alias")
    if alias is not None:
        alias.set("this", None)
    return copied
