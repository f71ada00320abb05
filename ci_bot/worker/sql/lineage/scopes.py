"""Where a column's name leads: the sources of a SELECT, those around it, and its own aliases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

# What the value of an expression and the content of a table depend on, as data.
#
# Two things are known of every value. `deps`: of which columns of which stored tables it is
# computed, one bit for each, so that a union is one `|`. And `key`: how it is computed, one number
# for each computation; the two sides of a change share these numbers, so equal keys are equal
# computations.


# What of a table something can depend on besides the columns, which are names in lower case.
ROWS = "\nrows"  # which rows there are

ANY = "\nany"  # every column, where they cannot be listed

ORDER = "\norder"  # which columns there are, and in which order they stand

DOUBT = "\ndoubt"  # something that cannot be told

ANYWHERE = "\nanywhere"  # instead of a table: any that the query reads


class LineageAtom(NamedTuple):
    """One thing that a query can depend on: a column of a table, or one of the names above."""

    table: str
    what: str


class TracedValue(NamedTuple):
    """An expression: its dependencies (bits over the atoms) and how it is computed."""

    deps: int
    key: int


class LineageTerms:
    """Numbers for atoms and for computations, shared by the readings of one model."""

    def __init__(self) -> None:
        self.atoms: list[LineageAtom] = []
        self._bits: dict[LineageAtom, int] = {}
        self._keys: dict[Hashable, int] = {}

    def atom_bit(self, table: str, what: str) -> int:
        """The bit that stands for `what` of `table`."""
        atom = LineageAtom(table, what)
        bit = self._bits.get(atom)
        if bit is None:
            bit = self._bits[atom] = 1 << len(self.atoms)
            self.atoms.append(atom)
        return bit

    def computation_key(self, *parts: Hashable) -> int:
        """The number of the computation that consists of `parts`."""
        return self._keys.setdefault(parts, len(self._keys))

    def combine_values(
        self, kind: str, values: Iterable[TracedValue], *more: Hashable
    ) -> TracedValue:
        """A value that is made of others, in their order."""
        listed = list(values)
        deps = 0
        for value in listed:
            deps |= value.deps
        return TracedValue(
            deps, self.computation_key(kind, *more, *(value.key for value in listed))
        )


@dataclass(frozen=True)
class LineageRowset:
    """What a table, a subquery or a CTE holds.

    Attributes:
        columns: values by column name in lower case, in their order.
        rows: which rows there are.
        missing: the value of a column that is not listed; None if all are listed.
        order: what the order of the columns depends on, where a star has put it together.
        tables: the stored tables that it reads.
        clauses: what the rows are made by, by kind of clause, to say which one differs.
        repeated: all columns with their names, where a name occurs more than once.
        unplaced: a star shows columns of USING or NATURAL; dialects put them at other places.
    """

    columns: Mapping[str, TracedValue]
    rows: TracedValue
    missing: Callable[[str], TracedValue] | None = None
    order: int = 0
    tables: frozenset[str] = frozenset()
    clauses: Mapping[str, int] = field(default_factory=dict)
    repeated: tuple[tuple[str, TracedValue], ...] = ()
    unplaced: bool = False

    def list_columns(self) -> tuple[tuple[str, TracedValue], ...]:
        """The columns by their places."""
        return self.repeated or tuple(self.columns.items())

    def find_column(self, name: str) -> TracedValue | None:
        """The listed column of that name."""
        return self.columns.get(name)

    def trace_content(self, terms: LineageTerms) -> TracedValue:
        """All columns together, in their order."""
        listed = list(self.columns.values())
        if self.missing is not None:
            listed.append(self.missing(ANY))
        found = terms.combine_values("content", listed)
        return TracedValue(found.deps | self.order, found.key)

    def trace_whole(self, terms: LineageTerms) -> TracedValue:
        """All columns and which rows there are."""
        return terms.combine_values("whole", [self.trace_content(terms), self.rows])


def map_columns_by_name(
    terms: LineageTerms, listed: Iterable[tuple[str, TracedValue]]
) -> tuple[dict[str, TracedValue], tuple[tuple[str, TracedValue], ...]]:
    """Columns by name, and `Rowset.repeated`; a name that occurs twice may mean either."""
    pairs = tuple(listed)
    columns: dict[str, TracedValue] = {}
    for name, value in pairs:
        other = columns.get(name)
        columns[name] = value if other is None else terms.combine_values("one of", [other, value])
    return columns, pairs if len(columns) < len(pairs) else ()


def name_by_position(terms: LineageTerms, value: TracedValue, place: int) -> TracedValue:
    """Names a column by its position, because a list of aliases gave its name."""
    return TracedValue(value.deps, terms.computation_key("at place", place, value.key))


def make_opaque_relation(
    terms: LineageTerms, value: TracedValue, names: Iterable[str], tables: frozenset[str]
) -> LineageRowset:
    """A relation of which is only known what it is made of: any column may hold any of it."""

    def column(name: str) -> TracedValue:
        return TracedValue(value.deps, terms.computation_key("of", name, value.key))

    return LineageRowset(
        columns={name: column(name) for name in names},
        rows=TracedValue(value.deps, terms.computation_key("rows of", value.key)),
        missing=column,
        tables=tables,
    )


@dataclass(frozen=True)
class FromEntry:
    """One entry of FROM: a relation, and the names by which columns can be qualified."""

    names: frozenset[str]
    relation: LineageRowset
    label: int  # which entry it is: the tables that it reads, and the how manieth of those
    hidden: bool = False  # of a semi or anti join: no star shows it

    def find_column(self, name: str, terms: LineageTerms) -> TracedValue | None:
        found = self.relation.find_column(name)
        return None if found is None else self.value_of_entry(found, terms)

    def find_unlisted(self, name: str, terms: LineageTerms) -> TracedValue | None:
        missing = self.relation.missing
        return None if missing is None else self.value_of_entry(missing(name), terms)

    def value_of_entry(self, value: TracedValue, terms: LineageTerms) -> TracedValue:
        """A value of this entry and of no other, even of the same table."""
        return TracedValue(value.deps, terms.computation_key("at", self.label, value.key))


@dataclass
class NameScope:
    """The names that an expression of one SELECT can use.

    Attributes:
        strict: a name that leads nowhere makes everything doubtful, instead of being left out.
        merged: columns of USING and NATURAL, which belong to both sides.
        bound: names that an expression around brings, as parameters of a lambda.
        ctes: the named queries that can be read here.
        windows: the named windows of the SELECT, all together.
        mixed: any column may hold anything that is read, as after a pivot.
        behind: in a clause behind the projections, where an alias may hide a column of its name;
            among them a column hides the alias.
    """

    terms: LineageTerms
    strict: bool
    outer: NameScope | None = None
    sources: list[FromEntry] = field(default_factory=list)
    aliases: dict[str, TracedValue] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    bound: frozenset[str] = frozenset()
    ctes: Mapping[str, LineageRowset] = field(default_factory=dict)
    windows: TracedValue | None = None
    mixed: bool = False
    behind: bool = False
    _depth: int = field(init=False)  # a source of this query is none of the one around it
    _labels: Counter[frozenset[str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._depth = 0 if self.outer is None else self.outer._depth + 1

    def open_inner(
        self,
        *,
        bound: frozenset[str] = frozenset(),
        ctes: Mapping[str, LineageRowset] | None = None,
    ) -> NameScope:
        """A frame inside of this one, with the parameters of a lambda or with more CTEs."""
        known = self.ctes if ctes is None else ctes
        return NameScope(self.terms, self.strict, outer=self, bound=bound, ctes=known)

    def open_beside(self) -> NameScope:
        """A frame without the sources of this one, for a subquery in FROM."""
        return NameScope(self.terms, self.strict, outer=self.outer, ctes=self.ctes)

    def add_entry(
        self, names: frozenset[str], relation: LineageRowset, *, hidden: bool = False
    ) -> FromEntry:
        """One more entry of FROM."""
        self._labels[relation.tables] += 1
        occurrence = self._labels[relation.tables]
        label = self.terms.computation_key("source", self._depth, relation.tables, occurrence)
        source = FromEntry(names, relation, label, hidden)
        self.sources.append(source)
        return source

    def resolve_name(self, parts: Sequence[str]) -> TracedValue:
        """The value behind a name such as `amount`, `o.amount`, `shop.orders.amount` or `o.a.b`."""
        for place in range(len(parts) - 1, -1, -1):  # behind the column there are fields of it
            found = self._resolve_column(parts[:place], parts[place])
            if found is not None:
                fields = parts[place + 1 :]
                return self.terms.combine_values("field", [found], *fields) if fields else found
        # A part of a dialect's syntax, perhaps, or a name that another table was to give.
        deps = self.terms.atom_bit(ANYWHERE, DOUBT) if self.strict else 0
        return TracedValue(deps, self.terms.computation_key("name", *parts))

    def _resolve_column(self, qualifiers: Sequence[str], name: str) -> TracedValue | None:
        if not qualifiers:
            return self._resolve_plain(name)
        source = self._find_source(".".join(qualifiers))
        return None if source is None else self._resolve_in(source, name)

    def _resolve_in(self, source: FromEntry, name: str) -> TracedValue | None:
        found = source.find_column(name, self.terms)
        return found if found is not None else source.find_unlisted(name, self.terms)

    def _find_source(self, qualifier: str) -> FromEntry | None:
        frame: NameScope | None = self
        while frame is not None:
            for source in frame.sources:
                if qualifier in source.names:
                    return source
            frame = frame.outer
        return None

    def _resolve_plain(self, name: str) -> TracedValue | None:
        """A name without a qualifier: a column, else an alias, else one of an outer query's."""
        if name in self.bound:
            return TracedValue(0, self.terms.computation_key("bound", name))
        listed = [v for s in self.sources if (v := s.find_column(name, self.terms)) is not None]
        open_ones = [
            v for s in self.sources if (v := s.find_unlisted(name, self.terms)) is not None
        ]
        if listed and name not in self.merged:
            open_ones = []
        alias = self.aliases.get(name) if self.behind or not listed else None
        whole = self._resolve_row(name) if not listed else None
        candidates = [*listed, *([alias] if alias is not None else ())]
        if whole is not None:
            candidates.append(whole)
        if not listed and alias is None and self.outer is not None:
            around = self.outer._resolve_plain(name)
            if around is not None:
                candidates.append(around)
        if alias is None:
            candidates += open_ones
        if not candidates:
            return None
        return (
            candidates[0]
            if len(candidates) == 1
            else self.terms.combine_values("one of", candidates)
        )

    def _resolve_row(self, name: str) -> TracedValue | None:
        """A whole row, by the name of its source."""
        source = next((s for s in self.sources if name in s.names), None)
        return (
            None
            if source is None
            else source.value_of_entry(source.relation.trace_content(self.terms), self.terms)
        )

    def trace_everything(self) -> TracedValue:
        """All columns of all sources."""
        return self.terms.combine_values(
            "everything", [self.trace_content(s) for s in self.sources]
        )

    def trace_content(self, source: FromEntry) -> TracedValue:
        return source.value_of_entry(source.relation.trace_content(self.terms), self.terms)

    def trace_rows(self) -> TracedValue:
        """Which rows all sources hold."""
        return self.terms.combine_values(
            "sources", [s.value_of_entry(s.relation.rows, self.terms) for s in self.sources]
        )
