"""The names in a SELECT: of its sources, of the sources around it, and of its own results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    DerivedTable,
    QueryBlock,
    QuerySource,
    SourceColumn,
    Term,
    TermOperation,
    make_leaf,
)

Ctes: TypeAlias = "Mapping[str, QueryRead | None]"


@dataclass(eq=False)
class FromItem:
    """The meaning of an alias in FROM.

    Attributes:
        source: the source of its columns, if they are not columns of `block`.
        block: a query whose results are read directly; its alias is gone.
        names: the known columns, by place.
        is_open: it may have more columns than `names`.
        known_as: the names that can qualify a column of it.
        describe: describes what is read, for people.
        query: the query that is read; None for stored tables and other sources.
        is_hidden: whether other parts of the SELECT cannot name its columns.
        by_place: `source` names its columns by their place.
    """

    source: QuerySource | None = None
    block: QueryBlock | None = None
    names: Sequence[str] = ()
    is_open: bool = True
    known_as: frozenset[str] = frozenset()
    describe: Callable[[], str] = lambda: ""
    query: QueryRead | None = None
    is_hidden: bool = False
    by_place: bool = False

    @cached_property
    def read_target(self) -> str:
        """The description of this entry, made once."""
        return self.describe()

    def list_results(self) -> Sequence[str]:
        """Lists the columns that `*` means; `*` itself means unknown ones."""
        block = self.source.block if isinstance(self.source, DerivedTable) else self.block
        if block is not None and block.outputs:
            return list(block.outputs)
        return (*self.names, "*") if self.is_open else self.names

    def find_column(self, name: str) -> Term | None:
        """Returns the column called `name`; None if there is none."""
        if self.block is not None:
            return self.block.find_output(name)
        if self.source is None or not (self.is_open or name in self.names):
            return None
        has_place = self.by_place and name in self.names
        return SourceColumn(self.source, str(self.names.index(name)) if has_place else name)

    def find_place(self, place: int) -> Term | None:
        """Returns the known column at a place."""
        if self.by_place and self.source is not None:
            return SourceColumn(self.source, str(place))
        return self.find_column(self.names[place])

    def find_all(self) -> Term:
        """Returns all columns together, as one term."""
        if self.source is None:
            return make_leaf("all of", self.read_target)
        return SourceColumn(self.source, "*")

    def find_all_named(self) -> Term:
        """Returns all columns together, with their names: a struct of them keeps these."""
        return TermOperation(f"columns:{','.join(self.names)}", (self.find_all(),))


class QueryRead(NamedTuple):
    """A query in FROM or WITH, with the names that it can use.

    Attributes:
        ctes: the queries in WITH that it can read; None for a query that is being read.
        names: new names of its first columns; empty if there are none.
        outer: the SELECT whose columns it can use.
        reads_itself: it is recursive.
    """

    query: exp.Expr
    ctes: Ctes
    names: tuple[str, ...] = ()
    outer: SelectFrame | None = None
    reads_itself: bool = False


class NamedResult(NamedTuple):
    """A result with the name that other clauses use; `term` is None until it is needed."""

    item: exp.Expr
    term: Term | None

    def is_column(self, name: str) -> bool:
        """Whether the result is the column of the same name."""
        return isinstance(self.item, exp.Column) and self.item.name.lower() == name


@dataclass(eq=False)
class SelectFrame:
    """The names of one SELECT.

    Attributes:
        ctes: see `QueryRead`.
        outer: the SELECT around a subquery, whose columns can be used, too.
        results: results by the names that other clauses can use.
        merged: columns of USING and NATURAL, which belong to both sides.
        is_mixed: any column may depend on everything that is read.
        equal: pairs of columns; a join made the second one equal to the first, or NULL.
    """

    ctes: Ctes
    outer: SelectFrame | None = None
    items: dict[str, FromItem] = field(default_factory=dict)
    results: dict[str, NamedResult] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    is_mixed: bool = False
    equal: set[tuple[tuple[int, str], tuple[int, str]]] = field(default_factory=set)

    def iterate_visible(self) -> Iterator[FromItem]:
        """Yields the sources whose columns the SELECT shows."""
        return (item for item in self.items.values() if not item.is_hidden)

    def find_item(self, qualifier: str) -> FromItem | None:
        """Finds the source that a qualifier means, here or in a SELECT around this one.

        None if there is none.
        """
        for item in self.items.values():
            if qualifier in item.known_as:
                return item
        return self.outer.find_item(qualifier) if self.outer is not None else None

    def resolve_qualified(self, parts: Sequence[str]) -> tuple[Term | None, int]:
        """Finds the column that the longest qualifier in `parts` means, and the place of its name.

        (None, 0) if there is none.
        """
        for place in range(len(parts) - 1, 0, -1):
            item = self.find_item(".".join(parts[:place]))
            found = item.find_column(parts[place]) if item is not None else None
            if found is not None:
                return found, place
        return None, 0

    def resolve_unqualified(self, name: str) -> tuple[Term | None, bool]:
        """Finds all columns that a bare name may mean, and whether it can only mean this one."""
        seen = list(self.iterate_visible())
        listed = [item for item in seen if name in item.names]
        open_ones = [item for item in seen if item.is_open and name not in item.names]
        if listed and name not in self.merged:
            is_sure = len(listed) == 1 and not open_ones
            return _join_candidates([item.find_column(name) for item in listed]), is_sure
        candidates = [item.find_column(name) for item in (*listed, *open_ones)]
        is_sure = len(open_ones) == 1 and not listed and self.outer is None
        if not listed:
            rows = [item.find_all_named() for item in self.items.values() if name in item.known_as]
            candidates += rows[:1]
            if self.outer is not None:
                around, is_sure = self.outer.resolve_unqualified(name)
                candidates.append(around)
                is_sure = is_sure and len(candidates) == 1
                result = self.outer.results.get(name)
                if result is not None and not result.is_column(name):
                    candidates.append(result.term)
                    is_sure = False
        return _join_candidates(candidates), is_sure

    def is_listed(self, name: str) -> bool:
        """Whether a source is known to have a column of this name."""
        return any(name in item.names for item in self.iterate_visible())

    def make_equal(self, kept: SourceColumn, other: SourceColumn) -> None:
        """Notes that in each row `other` equals `kept`, or is NULL because there is no match."""
        self.equal.add((_column_position(kept), _column_position(other)))

    def adds_nothing(self, kept: Term, other: Term) -> bool:
        """Whether COALESCE(kept, other) gives the same as `kept`."""
        if not isinstance(kept, SourceColumn) or not isinstance(other, SourceColumn):
            return False
        return (_column_position(kept), _column_position(other)) in self.equal


def _join_candidates(candidates: Sequence[Term | None]) -> Term | None:
    found = tuple(one for one in candidates if one is not None)
    return TermOperation("one of", found) if found[1:] else next(iter(found), None)


def _column_position(column: SourceColumn) -> tuple[int, str]:
    return id(column.source), column.name
