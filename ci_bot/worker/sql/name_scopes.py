"""What the names in a SELECT stand for: aliases, columns, results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ci_bot.worker.sql.algebra_blocks import (
    DerivedTable,
    QueryBlock,
    QuerySource,
    SourceColumn,
    Term,
)


@dataclass(eq=False)
class FromItem:
    """What an alias in FROM stands for.

    Attributes:
        source: whose columns are meant, where they are none of `block`.
        block: a query whose results stand for themselves; nothing is left of its alias.
        names: the columns, by place, where they are known.
        tell: says what is read, for a reader.
        query: the query behind it, and what is in WITH for that; None for what is stored.
        is_hidden: whether other parts of the SELECT cannot name its columns.
    """

    source: QuerySource | None = None
    block: QueryBlock | None = None
    names: list[str] | None = None
    tell: Callable[[], str] = lambda: ""
    query: tuple[exp.Expr, Mapping[str, CteEntry | None]] | None = None
    is_hidden: bool = False
    by_place: bool = False

    @cached_property
    def read_target(self) -> str:
        """What is read."""
        return self.tell()

    def list_results(self) -> list[str]:
        """The columns that `*` stands for; `*` itself for those of a stored table."""
        block = self.source.block if isinstance(self.source, DerivedTable) else self.block
        if block is not None:
            return list(block.outputs)
        return self.names if self.names is not None else ["*"]

    def find_column(self, name: str) -> Term | None:
        """The column called `name`; None if there is none."""
        if self.block is not None:
            return self.block.find_output(name)
        if self.source is None or (self.names is not None and name not in self.names):
            return None
        place = str(self.names.index(name)) if self.by_place and self.names is not None else name
        return SourceColumn(self.source, place)


@dataclass(frozen=True)
class CteEntry:
    """A query in WITH, and the names that it sees itself."""

    query: exp.Expr
    names: tuple[str, ...]
    around: Mapping[str, CteEntry | None]


@dataclass(eq=False)
class SelectFrame:
    """The names of one SELECT.

    Attributes:
        ctes: the queries in WITH that can be read here; None for one that is being read.
        outer: the SELECT around a subquery, whose columns can be used, too.
        results: results by name, as far as they can be named in other clauses.
        equal: pairs of columns of which a join has made the second equal to the first, or NULL.
    """

    ctes: Mapping[str, CteEntry | None]
    outer: SelectFrame | None = None
    items: dict[str, FromItem] = field(default_factory=dict)
    results: dict[str, exp.Expr] = field(default_factory=dict)
    equal: set[tuple[tuple[int, str], tuple[int, str]]] = field(default_factory=set)

    def resolve_qualified(self, alias: str, name: str, schema: str = "") -> Term | None:
        """`alias.name` or `schema.alias.name`, here or in a SELECT around this one."""
        item = self.items.get(alias)
        if item is not None:
            # Two parts before a name may be a schema and a table, or a table and a structure.
            is_meant = not schema or f".{item.read_target}".endswith(f".{schema}.{alias}")
            return item.find_column(name) if is_meant else None
        return self.outer.resolve_qualified(alias, name, schema) if self.outer is not None else None

    def resolve_unqualified(self, name: str) -> tuple[Term | None, bool]:
        """A column by its bare name, and whether it can be no other one."""
        seen = [item for item in self.items.values() if not item.is_hidden]
        sure = [item for item in seen if item.names is not None and name in item.names]
        open_ = [item for item in seen if item.names is None]
        if len(sure) == 1:
            return sure[0].find_column(name), not open_
        if sure or len(open_) > 1:
            return None, False
        if open_:
            return open_[0].find_column(name), self.outer is None
        return self.outer.resolve_unqualified(name) if self.outer is not None else (None, False)

    def make_equal(self, kept: SourceColumn, other: SourceColumn) -> None:
        """Notes that in each row `other` equals `kept`, or is NULL because there is no match."""
        self.equal.add((_column_position(kept), _column_position(other)))

    def adds_nothing(self, kept: Term, other: Term) -> bool:
        """Whether COALESCE(kept, other) is `kept`."""
        if not isinstance(kept, SourceColumn) or not isinstance(other, SourceColumn):
            return False
        return (_column_position(kept), _column_position(other)) in self.equal


def list_spellings(tree: exp.Expr | None) -> tuple[dict[str, str], bool]:
    """The names in a query by their lower case, and whether each has one spelling.

    Names are read in lower case. If a project tells capital letters from small ones, they are not
    lower case in its rendering, and a name is another one if its spelling is.
    """
    found: dict[str, str] = {}
    is_clear = True
    for identifier in tree.find_all(exp.Identifier) if tree is not None else ():
        name = str(identifier.this)
        is_clear = found.setdefault(name.lower(), name) == name and is_clear
    return found, is_clear


def is_spelled_alike(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether the names that two queries share are spelled alike in both."""
    return all(other.get(lower, name) == name for lower, name in one.items())


def _column_position(column: SourceColumn) -> tuple[int, str]:
    return id(column.source), column.name
