"""What an expression depends on, and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlglot import exp

from ci_bot.worker.sql.functions import field_names
from ci_bot.worker.sql.lineage_scopes import (
    ANY,
    FromEntry,
    NameScope,
    Rowset,
    Terms,
    Traced,
    at_place,
    blob,
    named,
)
from ci_bot.worker.sqlmesh_compat import EXCEPT, Tree

ReadQuery = Callable[[Any, NameScope], Rowset]

_SWAPPED = {exp.GT: "LT", exp.GTE: "LTE"}

_BOTH_SIDES = frozenset({exp.LT, exp.LTE})

_CONNECTORS = frozenset({exp.And, exp.Or})
_ANY_ORDER = _CONNECTORS | {exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.Add, exp.Mul}
# Functions that make several rows of one, where they stand among the projections.
_GENERATORS = (exp.Explode, exp.Inline, exp.Unnest, exp.UDTF, exp.Aliases)

_GENERATOR_NAMES = frozenset({"stack", "inline_outer", "json_tuple", "flatten"})


class UnreadableError(Exception):
    """A query of a kind that is not read here."""


def _by_key(value: Traced) -> int:
    return value.key


class Expressions:
    """Reads expressions; nested queries are read by `read_query`."""

    def __init__(self, terms: Terms, read_query: ReadQuery) -> None:
        self.terms = terms
        self._read_query = read_query

    def value(self, node: Any, frame: NameScope) -> Traced:  # noqa: PLR0911 - one line for each kind
        """The value of `node`, with the names of `frame`."""
        if isinstance(node, exp.Column):
            return self._column(node, frame)
        if isinstance(node, exp.Alias | exp.Paren):
            return self.value(node.this, frame)
        if isinstance(node, exp.Literal):
            return Traced(0, self.terms.key("literal", node.is_string, node.this))
        if isinstance(node, exp.Identifier):
            return Traced(0, self.terms.key("name", node.name.lower()))
        if isinstance(node, exp.Query):
            return self._subquery(node, frame)
        if isinstance(node, exp.Star):
            return self.terms.value("star", [frame.everything(), self._node(node, frame)])
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            return self.terms.value("exists", [self._read_query(node.this, frame).rows])
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return Traced(0, self.terms.key("count of rows"))
        if isinstance(node, exp.Lambda):
            bound = frozenset(name.name.lower() for name in node.expressions)
            return self._node(node, frame.inner(bound=bound))
        if isinstance(node, exp.Comprehension):
            return self._node(node, frame.inner(bound=frozenset({node.expression.name.lower()})))
        if isinstance(node, exp.Table):
            raise UnreadableError("a table inside of an expression")
        if isinstance(node, exp.TableColumn):
            return frame.resolve([node.name.lower()])
        return self._generic(node, frame)

    def _generic(self, node: Any, frame: NameScope) -> Traced:
        kind = type(node)
        if kind in _SWAPPED:
            sides = [node.expression, node.this]
            return self.terms.value(_SWAPPED[kind], [self.value(side, frame) for side in sides])
        if kind in _BOTH_SIDES:
            sides = [node.this, node.expression]
            return self.terms.value(kind.__name__, [self.value(side, frame) for side in sides])
        if kind in _ANY_ORDER:
            operands = node.flatten() if kind in _CONNECTORS else (node.this, node.expression)
            values = [self.value(operand, frame) for operand in operands]
            return self.terms.value(kind.__name__, sorted(values, key=_by_key))
        found = self._node(node, frame)
        if kind is exp.Window and node.args.get("alias") and frame.windows is not None:
            return self.terms.value("named window", [found, frame.windows])
        return found

    def _node(self, node: Any, frame: NameScope) -> Traced:
        """A node by all of its arguments, each with its name."""
        deps = 0
        parts: list[Any] = [type(node).__name__, *field_names(node)]
        for name, argument in node.args.items():
            if argument is None or argument is False or argument == []:
                continue
            values = [
                self._argument(item, frame)
                for item in (argument if isinstance(argument, list) else [argument])
            ]
            for value in values:
                deps |= value.deps
            parts.append((name, *(value.key for value in values)))
        return Traced(deps, self.terms.key(*parts))

    def _argument(self, item: Any, frame: NameScope) -> Traced:
        if isinstance(item, Tree):
            return self.value(item, frame)
        return Traced(0, self.terms.key("text", str(item)))

    def _column(self, node: Any, frame: NameScope) -> Traced:
        parts = [part.name.lower() for part in node.parts]
        if isinstance(node.this, exp.Star):
            return frame.resolve(parts[:-1])
        return frame.resolve(parts)

    def _subquery(self, node: Any, frame: NameScope) -> Traced:
        return self.terms.value("query", [self._read_query(node, frame).whole(self.terms)])


class Traits(NamedTuple):
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


def traits(node: Any) -> Traits:
    """See `Traits`; nested queries are not looked into."""
    aggregates = multiplies = spreads = False
    for found in node.walk(prune=_is_query):
        if isinstance(found, exp.AggFunc):
            aggregates = aggregates or not _in_window(found)
        elif isinstance(found, _GENERATORS):
            multiplies = True
        elif isinstance(found, exp.Columns):
            spreads = True
        elif isinstance(found, exp.Anonymous):
            multiplies = multiplies or found.name.lower() in _GENERATOR_NAMES
    mixes = aggregates and any(
        isinstance(found, exp.Column | exp.Query) for found in node.walk(prune=_takes_in)
    )
    return Traits(aggregates, mixes, multiplies, spreads)


def _is_query(node: Any) -> bool:
    return isinstance(node, exp.Query)


def _takes_in(node: Any) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Query)


def _in_window(node: Any) -> bool:
    while isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


@dataclass(frozen=True)
class _StarChanges:
    """What EXCEPT, RENAME and REPLACE do to the columns of a star."""

    left_out: set[str]
    renamed: dict[str, str]
    replaced: dict[str, Traced]

    def find(self, source: FromEntry, name: str, terms: Terms) -> Traced | None:
        """The column that the star shows as `name`, of a source that does not list its own."""
        if name == ANY:
            every = source.unlisted(ANY, terms)
            parts = [*([every] if every is not None else ()), *self.replaced.values()]
            told = (*sorted(self.left_out), *sorted(self.renamed.items()), *self.replaced)
            return terms.value("star", parts, *told) if told else every
        if name in self.replaced:
            return self.replaced[name]
        old = next((old for old, new in self.renamed.items() if new == name), name)
        if name in self.left_out or (old == name and name in self.renamed):
            return None
        return source.unlisted(old, terms)


# The projections of a SELECT: its columns, their order, and what they do to the rows.


class Projections:
    """The projections of one SELECT."""

    def __init__(self, expressions: Expressions, node: Any, frame: NameScope) -> None:
        self._terms = expressions.terms
        self._expressions = expressions
        self._frame = frame
        self.listed: list[tuple[str, Traced]] = []
        self.multiplied: list[Traced] = []
        self.ungrouped: list[Traced] = []  # what GROUP BY ALL groups by
        self.aggregated = self.spread = self._starred = False
        self._open: list[tuple[FromEntry, _StarChanges]] = []
        self._order = 0
        for position, item in enumerate(node.expressions):
            star = _star_of(item)
            if star is not None:
                self._star(item, star)
            else:
                self._one(item, position)

    def _one(self, item: Any, position: int) -> None:
        made = item.this if isinstance(item, exp.Aliases) else item
        value = self._expressions.value(made, self._frame)
        found = traits(item)
        self.aggregated = self.aggregated or found.aggregates
        self.spread = self.spread or found.spreads
        if found.multiplies:
            self.multiplied.append(value)
        if not found.aggregates or found.mixes:
            self.ungrouped.append(value)
        if isinstance(item, exp.Aliases):
            listed = [
                (name.name.lower(), at_place(self._terms, value, place))
                for place, name in enumerate(item.args["expressions"])
            ]
        else:
            listed = [(item.output_name.lower() or f"\n{position}", value)]
        for name, one in listed:
            self._put(name, one)
            if isinstance(item, exp.Alias | exp.Aliases):
                self._frame.aliases.setdefault(name, one)

    def _star(self, item: Any, star: Any) -> None:
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
            replaced[entry.alias.lower()] = self._expressions.value(entry, self._frame)
            found = traits(entry)
            self.spread = self.spread or found.aggregates or found.multiplies
        for source in sources:
            self._order |= source.relation.order
            if source.relation.missing is not None:
                self._open.append((source, _StarChanges(left_out, renamed, replaced)))
            for name in source.relation.columns:
                if name in left_out:
                    continue
                value = replaced.get(name) or source.column(name, self._terms)
                if value is not None:
                    self.ungrouped.append(value)
                    self._put(renamed.get(name, name), value)

    def _put(self, name: str, value: Traced) -> None:
        self.listed.append((name, value))

    @property
    def values(self) -> list[Traced]:
        """The columns by their places."""
        return [value for _, value in self.listed]

    def ordinal(self, item: Any, frame: NameScope) -> Traced:
        """A key of GROUP BY, which may be a projection's position."""
        if not (isinstance(item, exp.Literal) and item.is_int):
            return self._expressions.value(item, frame)
        position = int(item.this) - 1
        if self._starred or not 0 <= position < len(self.listed):
            return self._terms.value("some", self.values)
        return self.listed[position][1]

    def relation(
        self, rows: Traced, *, also: Traced | None = None, clauses: Mapping[str, int] | None = None
    ) -> Rowset:
        """The result; `also` is what every column depends on."""
        listed: Iterable[tuple[str, Traced]] = self.listed
        if also is not None:
            listed = [(n, self._terms.value("aggregate", [v, also])) for n, v in self.listed]
        columns, repeated = named(self._terms, listed)
        return Rowset(
            columns=columns,
            rows=rows,
            missing=self._missing if self._open else None,
            order=self._order,
            tables=self._tables(),
            clauses=clauses or {},
            repeated=repeated,
            unplaced=self._starred and bool(self._frame.merged),
        )

    def mixed(self, rows: Traced, more: list[Traced]) -> Rowset:
        """The result where any column may hold anything that is read."""
        parts = [self._frame.everything(), rows, *self.values, *more]
        return blob(
            self._terms, self._terms.value("mixed", parts), dict(self.listed), self._tables()
        )

    def _missing(self, name: str) -> Traced:
        found = [
            value
            for source, changes in self._open
            if (value := changes.find(source, name, self._terms)) is not None
        ]
        return self._terms.value("open", found)

    def _tables(self) -> frozenset[str]:
        return frozenset(t for source in self._frame.sources for t in source.relation.tables)


def _star_of(item: Any) -> Any:
    """The star of a projection that is one: `*` or `o.*`."""
    if isinstance(item, exp.Star):
        return item
    return item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else None
