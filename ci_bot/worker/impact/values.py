"""What the value of an expression and the content of a table depend on, as data.

Two things are known of every value. `deps`: of which columns of which stored tables it is computed,
one bit for each, so that a union is one `|`. And `key`: how it is computed, one number for each
computation; the two sides of a change share these numbers, so equal keys are equal computations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

# What of a table something can depend on besides the columns, which are names in lower case.
ROWS = "\nrows"  # which rows there are
ANY = "\nany"  # every column, where they cannot be listed
ORDER = "\norder"  # which columns there are, and in which order they stand
DOUBT = "\ndoubt"  # something that cannot be told
ANYWHERE = "\nanywhere"  # instead of a table: any that the query reads


class Atom(NamedTuple):
    """One thing that a query can depend on: a column of a table, or one of the names above."""

    table: str
    what: str


class Traced(NamedTuple):
    """An expression: its dependencies (bits over the atoms) and how it is computed."""

    deps: int
    key: int


class Terms:
    """Numbers for atoms and for computations, shared by the readings of one model."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self._bits: dict[Atom, int] = {}
        self._keys: dict[Hashable, int] = {}

    def atom(self, table: str, what: str) -> int:
        """The bit that stands for `what` of `table`."""
        atom = Atom(table, what)
        bit = self._bits.get(atom)
        if bit is None:
            bit = self._bits[atom] = 1 << len(self.atoms)
            self.atoms.append(atom)
        return bit

    def key(self, *parts: Hashable) -> int:
        """The number of the computation that consists of `parts`."""
        return self._keys.setdefault(parts, len(self._keys))

    def value(self, kind: str, values: Iterable[Traced], *more: Hashable) -> Traced:
        """A value that is made of others, in their order."""
        listed = list(values)
        deps = 0
        for value in listed:
            deps |= value.deps
        return Traced(deps, self.key(kind, *more, *(value.key for value in listed)))


@dataclass(frozen=True)
class Rowset:
    """What a table, a subquery or a CTE holds.

    Attributes:
        columns: values by column name in lower case, in their order.
        rows: which rows there are.
        missing: the value of a column that is not listed; None where all are listed.
        order: what the order of the columns depends on, where a star has put it together.
        tables: the stored tables that it reads.
        clauses: what the rows are made by, by kind of clause, to say which one differs.
        repeated: all columns with their names, where a name occurs more than once.
        unplaced: a star shows columns of USING or NATURAL; dialects put them at other places.
    """

    columns: Mapping[str, Traced]
    rows: Traced
    missing: Callable[[str], Traced] | None = None
    order: int = 0
    tables: frozenset[str] = frozenset()
    clauses: Mapping[str, int] = field(default_factory=dict)
    repeated: tuple[tuple[str, Traced], ...] = ()
    unplaced: bool = False

    def listed(self) -> tuple[tuple[str, Traced], ...]:
        """The columns by their places."""
        return self.repeated or tuple(self.columns.items())

    def column(self, name: str) -> Traced | None:
        """The listed column of that name."""
        return self.columns.get(name)

    def content(self, terms: Terms) -> Traced:
        """All columns together, in their order."""
        listed = list(self.columns.values())
        if self.missing is not None:
            listed.append(self.missing(ANY))
        found = terms.value("content", listed)
        return Traced(found.deps | self.order, found.key)

    def whole(self, terms: Terms) -> Traced:
        """All columns and which rows there are."""
        return terms.value("whole", [self.content(terms), self.rows])


def named(
    terms: Terms, listed: Iterable[tuple[str, Traced]]
) -> tuple[dict[str, Traced], tuple[tuple[str, Traced], ...]]:
    """Columns by name, and `Rowset.repeated`; a name that occurs twice may mean either."""
    pairs = tuple(listed)
    columns: dict[str, Traced] = {}
    for name, value in pairs:
        other = columns.get(name)
        columns[name] = value if other is None else terms.value("one of", [other, value])
    return columns, pairs if len(columns) < len(pairs) else ()


def blob(terms: Terms, value: Traced, names: Iterable[str], tables: frozenset[str]) -> Rowset:
    """A relation of which is only known what it is made of: any column may hold any of it."""

    def column(name: str) -> Traced:
        return Traced(value.deps, terms.key("of", name, value.key))

    return Rowset(
        columns={name: column(name) for name in names},
        rows=Traced(value.deps, terms.key("rows of", value.key)),
        missing=column,
        tables=tables,
    )
