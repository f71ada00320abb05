"""What an expression depends on, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlglot import exp

from ci_bot.worker.sql.lineage.scopes import (
    ANY,
    FromEntry,
    LineageRowset,
    LineageTerms,
    NameScope,
    TracedValue,
    make_opaque_relation,
    map_columns_by_name,
    name_by_position,
)
from ci_bot.worker.sql.spark_sql import list_field_names
from ci_bot.worker.sqlmesh_compat import EXCEPT, Tree

ReadQuery = Callable[[Any, NameScope], LineageRowset]

_SWAPPED = {exp.GT: "LT", exp.GTE: "LTE"}

_BOTH_SIDES = frozenset({exp.LT, exp.LTE})

_CONNECTORS = frozenset({exp.And, exp.Or})
_ANY_ORDER = _CONNECTORS | {exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.Add, exp.Mul}
# Functions that make several rows of one, where they stand among the projections.
_GENERATORS = (exp.Explode, exp.Inline, exp.Unnest, exp.UDTF, exp.Aliases)

_GENERATOR_NAMES = frozenset({"stack", "inline_outer", "json_tuple", "flatten"})


class UnreadableError(Exception):
    """A query of a kind that is not read here."""


def _read_key_number(value: TracedValue) -> int:
    return value.key


class ExpressionReader:
    """Reads expressions; nested queries are read by `read_query`."""

    def __init__(self, terms: LineageTerms, read_query: ReadQuery) -> None:
        self.terms = terms
        self._read_query = read_query

    def trace_value(self, node: exp.Expr, frame: NameScope) -> TracedValue:  # noqa: PLR0911 - one line for each kind
        """The value of `node`, with the names of `frame`."""
        if isinstance(node, exp.Column):
            return self._trace_column(node, frame)
        if isinstance(node, exp.Alias | exp.Paren):
            return self.trace_value(node.this, frame)
        if isinstance(node, exp.Literal):
            return TracedValue(0, self.terms.computation_key("literal", node.is_string, node.this))
        if isinstance(node, exp.Identifier):
            return TracedValue(0, self.terms.computation_key("name", node.name.lower()))
        if isinstance(node, exp.Query):
            return self._trace_subquery(node, frame)
        if isinstance(node, exp.Star):
            return self.terms.combine_values(
                "star", [frame.trace_everything(), self._trace_node(node, frame)]
            )
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            return self.terms.combine_values("exists", [self._read_query(node.this, frame).rows])
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return TracedValue(0, self.terms.computation_key("count of rows"))
        if isinstance(node, exp.Lambda):
            bound = frozenset(name.name.lower() for name in node.expressions)
            return self._trace_node(node, frame.open_inner(bound=bound))
        if isinstance(node, exp.Comprehension):
            return self._trace_node(
                node, frame.open_inner(bound=frozenset({node.expression.name.lower()}))
            )
        if isinstance(node, exp.Table):
            raise UnreadableError("a table inside of an expression")
        if isinstance(node, exp.TableColumn):
            return frame.resolve_name([node.name.lower()])
        return self._trace_generic(node, frame)

    def _trace_generic(self, node: exp.Expr, frame: NameScope) -> TracedValue:
        kind = type(node)
        if kind in _SWAPPED:
            sides = [node.expression, node.this]
            return self.terms.combine_values(
                _SWAPPED[kind], [self.trace_value(side, frame) for side in sides]
            )
        if kind in _BOTH_SIDES:
            sides = [node.this, node.expression]
            return self.terms.combine_values(
                kind.__name__, [self.trace_value(side, frame) for side in sides]
            )
        if kind in _ANY_ORDER:
            operands = node.flatten() if kind in _CONNECTORS else (node.this, node.expression)
            values = [self.trace_value(operand, frame) for operand in operands]
            return self.terms.combine_values(kind.__name__, sorted(values, key=_read_key_number))
        found = self._trace_node(node, frame)
        if kind is exp.Window and node.args.get("alias") and frame.windows is not None:
            return self.terms.combine_values("named window", [found, frame.windows])
        return found

    def _trace_node(self, node: exp.Expr, frame: NameScope) -> TracedValue:
        """A node by all of its arguments, each with its name."""
        deps = 0
        parts: list[Any] = [type(node).__name__, *list_field_names(node)]
        for name, argument in node.args.items():
            if argument is None or argument is False or argument == []:
                continue
            values = [
                self._trace_argument(item, frame)
                for item in (argument if isinstance(argument, list) else [argument])
            ]
            for value in values:
                deps |= value.deps
            parts.append((name, *(value.key for value in values)))
        return TracedValue(deps, self.terms.computation_key(*parts))

    def _trace_argument(self, item: exp.Expr, frame: NameScope) -> TracedValue:
        if isinstance(item, Tree):
            return self.trace_value(item, frame)
        return TracedValue(0, self.terms.computation_key("text", str(item)))

    def _trace_column(self, node: exp.Column, frame: NameScope) -> TracedValue:
        parts = [part.name.lower() for part in node.parts]
        if isinstance(node.this, exp.Star):
            return frame.resolve_name(parts[:-1])
        return frame.resolve_name(parts)

    def _trace_subquery(self, node: exp.Expr, frame: NameScope) -> TracedValue:
        return self.terms.combine_values(
            "query", [self._read_query(node, frame).trace_whole(self.terms)]
        )


class ProjectionTraits(NamedTuple):
    """What a projection does besides computing one value of one row.

    Attributes:
        aggregates: it makes one row of many, and not as a window.
        mixes: it does, and has columns that no aggregate takes in.
        multiplies: it makes several rows of one.
        spreads: it stands for several columns, whose names it does not list.
    """

    aggregates: bool
    mixes: bool
    multiplies: bool
    spreads: bool


def find_traits(node: exp.Expr) -> ProjectionTraits:
    """See `Traits`; nested queries are not looked into."""
    aggregates = multiplies = spreads = False
    for found in node.walk(prune=_is_query):
        if isinstance(found, exp.AggFunc):
            aggregates = aggregates or not _is_in_window(found)
        elif isinstance(found, _GENERATORS):
            multiplies = True
        elif isinstance(found, exp.Columns):
            spreads = True
        elif isinstance(found, exp.Anonymous):
            multiplies = multiplies or found.name.lower() in _GENERATOR_NAMES
    mixes = aggregates and any(
        isinstance(found, exp.Column | exp.Query) for found in node.walk(prune=_takes_in)
    )
    return ProjectionTraits(aggregates, mixes, multiplies, spreads)


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def _takes_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Query)


def _is_in_window(node: exp.Expr) -> bool:
    while isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


@dataclass(frozen=True)
class _StarChanges:
    """What EXCEPT, RENAME and REPLACE do to the columns of a star."""

    left_out: set[str]
    renamed: dict[str, str]
    replaced: dict[str, TracedValue]

    def find_column(self, source: FromEntry, name: str, terms: LineageTerms) -> TracedValue | None:
        """The column that the star shows as `name`, of a source that does not list its own."""
        if name == ANY:
            every = source.find_unlisted(ANY, terms)
            parts = [*([every] if every is not None else ()), *self.replaced.values()]
            told = (*sorted(self.left_out), *sorted(self.renamed.items()), *self.replaced)
            return terms.combine_values("star", parts, *told) if told else every
        if name in self.replaced:
            return self.replaced[name]
        old = next((old for old, new in self.renamed.items() if new == name), name)
        if name in self.left_out or (old == name and name in self.renamed):
            return None
        return source.find_unlisted(old, terms)


# The projections of a SELECT: its columns, their order, and what they do to the rows.


class ProjectionList:
    """The projections of one SELECT."""

    def __init__(self, expressions: ExpressionReader, node: exp.Expr, frame: NameScope) -> None:
        self._terms = expressions.terms
        self._expressions = expressions
        self._frame = frame
        self.listed: list[tuple[str, TracedValue]] = []
        self.multiplied: list[TracedValue] = []
        self.ungrouped: list[TracedValue] = []  # what GROUP BY ALL groups by
        self.aggregated = self.spread = self._starred = False
        self._open: list[tuple[FromEntry, _StarChanges]] = []
        self._order = 0
        for position, item in enumerate(node.expressions):
            star = _find_star(item)
            if star is not None:
                self._add_star(item, star)
            else:
                self._add_item(item, position)

    def _add_item(self, item: exp.Expr, position: int) -> None:
        made = item.this if isinstance(item, exp.Aliases) else item
        value = self._expressions.trace_value(made, self._frame)
        found = find_traits(item)
        self.aggregated = self.aggregated or found.aggregates
        self.spread = self.spread or found.spreads
        if found.multiplies:
            self.multiplied.append(value)
        if not found.aggregates or found.mixes:
            self.ungrouped.append(value)
        if isinstance(item, exp.Aliases):
            listed = [
                (name.name.lower(), name_by_position(self._terms, value, place))
                for place, name in enumerate(item.args["expressions"])
            ]
        else:
            listed = [(item.output_name.lower() or f"\n{position}", value)]
        for name, one in listed:
            self._put_column(name, one)
            if isinstance(item, exp.Alias | exp.Aliases):
                self._frame.aliases.setdefault(name, one)

    def _add_star(self, item: exp.Expr, star: exp.Expr) -> None:
        self._starred = True
        sources = [source for source in self._frame.sources if not source.hidden]
        if isinstance(item, exp.Column):
            qualifier = ".".join(part.name.lower() for part in item.parts[:-1])
            named = [source for source in sources if qualifier in source.names]
            if not named:  # the fields of a struct
                self.spread = True
            sources = named
        left_out = {name.name.lower() for name in star.args.get(EXCEPT) or ()}
        renamed = {
            entry.this.name.lower(): entry.alias.lower() for entry in star.args.get("rename") or ()
        }
        replaced = {}
        for entry in star.args.get("replace") or ():
            replaced[entry.alias.lower()] = self._expressions.trace_value(entry, self._frame)
            found = find_traits(entry)
            self.spread = self.spread or found.aggregates or found.multiplies
        for source in sources:
            self._order |= source.relation.order
            if source.relation.missing is not None:
                self._open.append((source, _StarChanges(left_out, renamed, replaced)))
            for name in source.relation.columns:
                if name in left_out:
                    continue
                value = replaced.get(name) or source.find_column(name, self._terms)
                if value is not None:
                    self.ungrouped.append(value)
                    self._put_column(renamed.get(name, name), value)

    def _put_column(self, name: str, value: TracedValue) -> None:
        self.listed.append((name, value))

    @property
    def values(self) -> list[TracedValue]:
        """The columns by their places."""
        return [value for _, value in self.listed]

    def trace_ordinal(self, item: exp.Expr, frame: NameScope) -> TracedValue:
        """A key of GROUP BY, which may be a projection's position."""
        if not (isinstance(item, exp.Literal) and item.is_int):
            return self._expressions.trace_value(item, frame)
        position = int(item.this) - 1
        if self._starred or not 0 <= position < len(self.listed):
            return self._terms.combine_values("some", self.values)
        return self.listed[position][1]

    def make_relation(
        self,
        rows: TracedValue,
        *,
        also: TracedValue | None = None,
        clauses: Mapping[str, int] | None = None,
    ) -> LineageRowset:
        """The result; `also` is what every column depends on."""
        listed: Iterable[tuple[str, TracedValue]] = self.listed
        if also is not None:
            listed = [
                (n, self._terms.combine_values("aggregate", [v, also])) for n, v in self.listed
            ]
        columns, repeated = map_columns_by_name(self._terms, listed)
        return LineageRowset(
            columns=columns,
            rows=rows,
            missing=self._trace_missing if self._open else None,
            order=self._order,
            tables=self._list_tables(),
            clauses=clauses or {},
            repeated=repeated,
            unplaced=self._starred and bool(self._frame.merged),
        )

    def make_mixed_relation(self, rows: TracedValue, more: list[TracedValue]) -> LineageRowset:
        """The result where any column may hold anything that is read."""
        parts = [self._frame.trace_everything(), rows, *self.values, *more]
        return make_opaque_relation(
            self._terms,
            self._terms.combine_values("mixed", parts),
            dict(self.listed),
            self._list_tables(),
        )

    def _trace_missing(self, name: str) -> TracedValue:
        found = [
            value
            for source, changes in self._open
            if (value := changes.find_column(source, name, self._terms)) is not None
        ]
        return self._terms.combine_values("open", found)

    def _list_tables(self) -> frozenset[str]:
        return frozenset(t for source in self._frame.sources for t in source.relation.tables)


def _find_star(item: exp.Expr) -> exp.Expr | None:
    """The star of a projection that is one: `*` or `o.*`."""
    if isinstance(item, exp.Star):
        return item
    return item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else None
