"""The dependencies of a query's values and rows, and the way in which they are computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ci_bot.worker.sql.equivalence.blocks import QuerySource

# The dependencies of an expression's value and of a table's content, as data.
#
# Every value has two facts. `deps` are the columns of stored tables from which it is computed, one
# bit for each, so a union is one `|`. `key` is the way in which it is computed, one number for each
# computation. The two sides of a change share these numbers, so equal keys are equal computations.


# The parts of a table on which something can depend, besides its columns, whose names are in lower
# case.
ROWS = "\nrows"  # which rows exist

ANY = "\nany"  # every column, if they cannot be listed

ORDER = "\norder"  # which columns exist, and their order

DOUBT = "\ndoubt"  # something unknown

ANYWHERE = "\nanywhere"  # instead of a table: any table that the query reads


class LineageAtom(NamedTuple):
    """One dependency of a query: a column of a table, or one of the names above."""

    table: str
    what: str


class TracedValue(NamedTuple):
    """An expression: its dependencies (bits over the atoms) and its computation."""

    deps: int
    key: int


class LineageTerms:
    """Numbers for atoms and for computations, shared by the readings of one model."""

    def __init__(self) -> None:
        self.atoms: list[LineageAtom] = []
        self._bits: dict[LineageAtom, int] = {}
        self._keys: dict[Hashable, int] = {}

    def find_atom_bit(self, table: str, what: str) -> int:
        """Returns the bit of `what` in `table`; makes it if it is new."""
        atom = LineageAtom(table, what)
        bit = self._bits.get(atom)
        if bit is None:
            bit = self._bits[atom] = 1 << len(self.atoms)
            self.atoms.append(atom)
        return bit

    def make_key(self, *parts: Hashable) -> int:
        """Returns the number of the computation that consists of `parts`."""
        return self._keys.setdefault(parts, len(self._keys))

    def combine_values(
        self, kind: str, values: Iterable[TracedValue], *more: Hashable
    ) -> TracedValue:
        """Combines values, in their order, into one."""
        listed = list(values)
        deps = 0
        for value in listed:
            deps |= value.deps
        return TracedValue(deps, self.make_key(kind, *more, *(value.key for value in listed)))


@dataclass(frozen=True)
class LineageRowset:
    """The content of a table, a subquery or a CTE.

    Attributes:
        columns: values by column name in lower case, in their order.
        rows: the value that decides which rows exist.
        missing: returns the value of a column that is not listed; None if all are listed.
        order: the dependencies of the columns' order, if a star has made it.
        tables: the stored tables that it reads.
        clauses: the computation of the rows by kind of clause, to say which one differs.
        repeated: all columns with their names, if a name occurs more than once.
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
        """Lists the columns by their places."""
        return self.repeated or tuple(self.columns.items())

    def trace_content(self, terms: LineageTerms) -> TracedValue:
        """Returns all columns together, in their order, as one value."""
        listed = list(self.columns.values())
        if self.missing is not None:
            listed.append(self.missing(ANY))
        found = terms.combine_values("content", listed)
        return TracedValue(found.deps | self.order, found.key)

    def trace_whole(self, terms: LineageTerms) -> TracedValue:
        """Returns all columns and the rows as one value."""
        return terms.combine_values("whole", [self.trace_content(terms), self.rows])


def map_columns_by_name(
    terms: LineageTerms, listed: Iterable[tuple[str, TracedValue]]
) -> tuple[dict[str, TracedValue], tuple[tuple[str, TracedValue], ...]]:
    """Maps names to columns; also returns `LineageRowset.repeated`.

    A name that occurs twice may mean either column.
    """
    pairs = tuple(listed)
    columns: dict[str, TracedValue] = {}
    for name, value in pairs:
        other = columns.get(name)
        columns[name] = value if other is None else terms.combine_values("one of", [other, value])
    return columns, pairs if len(columns) < len(pairs) else ()


def make_opaque_relation(
    terms: LineageTerms, value: TracedValue, names: Iterable[str], tables: frozenset[str]
) -> LineageRowset:
    """Makes a relation of which only the origin is known: any column may depend on all of it."""

    def column(name: str) -> TracedValue:
        return TracedValue(value.deps, terms.make_key("of", name, value.key))

    return LineageRowset(
        columns={name: column(name) for name in names},
        rows=TracedValue(value.deps, terms.make_key("rows of", value.key)),
        missing=column,
        tables=tables,
    )


def rename_relation(
    terms: LineageTerms, relation: LineageRowset, names: Sequence[str]
) -> LineageRowset:
    """Gives the columns of a relation other names, in their order."""
    old = relation.list_columns()
    if relation.missing is not None or relation.unplaced or len(names) > len(old):
        value = relation.trace_content(terms)
        renamed = make_opaque_relation(terms, value, (), relation.tables)
        columns = {
            name: TracedValue(value.deps, terms.make_key("at place", place, value.key))
            for place, name in enumerate(names)
        }
        return replace(renamed, columns=columns, rows=relation.rows)
    pairs = [
        (
            names[place] if place < len(names) else name,
            TracedValue(value.deps | relation.order, value.key),
        )
        for place, (name, value) in enumerate(old)
    ]
    columns, repeated = map_columns_by_name(terms, pairs)
    return replace(relation, columns=columns, repeated=repeated)


@dataclass(frozen=True)
class FromEntry:
    """One source of a SELECT; its `label` is unique, also beside another use of the same table."""

    source: QuerySource
    relation: LineageRowset
    label: int

    def find_column(self, name: str, terms: LineageTerms) -> TracedValue | None:
        found = self.relation.columns.get(name)
        return None if found is None else self.mark_value(found, terms)

    def find_unlisted(self, name: str, terms: LineageTerms) -> TracedValue | None:
        missing = self.relation.missing
        return None if missing is None else self.mark_value(missing(name), terms)

    def mark_value(self, value: TracedValue, terms: LineageTerms) -> TracedValue:
        """Marks a value as one of this entry and of no other."""
        return TracedValue(value.deps, terms.make_key("at", self.label, value.key))


def list_tables(entries: Iterable[FromEntry]) -> frozenset[str]:
    """Returns the stored tables that sources read."""
    return frozenset(table for entry in entries for table in entry.relation.tables)
