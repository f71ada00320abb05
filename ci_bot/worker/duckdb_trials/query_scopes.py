"""The names that a query in a trial can use: its sources with columns, types and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ci_bot.worker.duckdb_trials.value_types import UntriedError, ValueType, quote_duckdb_name

# In DuckDB's text this is the number of the run; another number breaks ties in another way.
MODE = "/*mode*/0"
TypedColumns = tuple[tuple[str, ValueType], ...]


@dataclass(frozen=True)
class TypedText:
    """DuckDB's text of an expression, with the type that Spark gives it.

    Attributes:
        literal: the digits or characters of a constant; None for other expressions.
        least: the smallest decimal for a constant whole number, which Spark uses beside decimals.
    """

    text: str
    kind: ValueType
    literal: str | None = None
    least: ValueType | None = None


@dataclass(frozen=True)
class WrittenRelation:
    """DuckDB's text of a query, and its columns in their order."""

    text: str
    columns: TypedColumns


def select_from_duckdb(items: str, source: str) -> str:
    """Writes `SELECT items FROM source` from parts that are already DuckDB's text."""
    return " ".join(("SELECT", items, "FROM", source))


@dataclass(frozen=True)
class ScopedSource:
    """A table or query in FROM.

    Attributes:
        shared: the texts of columns that USING has merged with earlier ones, by name, in order.
        table: the name of the source table; empty for queries.
    """

    alias: str
    columns: TypedColumns
    shared: Mapping[str, str] = field(default_factory=dict)
    table: str = ""


@dataclass
class QueryScope:
    """The names that an expression may use.

    Attributes:
        aliases: write the expressions of the SELECT list, by the names that are known so far.
        groups: the texts of the group keys; None in a SELECT without groups.
        aliases_first: whether a name first means an item of the SELECT list, and then a column.
        reads: the columns that were read, by source table.
    """

    sources: list[ScopedSource] = field(default_factory=list)
    parent: QueryScope | None = None
    aliases: dict[str, Callable[[], TypedText]] = field(default_factory=dict)
    groups: list[str] | None = None
    aliases_first: bool = False
    reads: dict[str, set[str]] = field(default_factory=dict)

    def list_sources(self) -> list[ScopedSource]:
        """Lists the sources of this scope and of those around it."""
        return [*self.sources, *(self.parent.list_sources() if self.parent is not None else ())]

    def find_column(self, table: str, name: str) -> TypedText:
        """Returns the column that a name means.

        Raises:
            UntriedError: Its table or type is not known, or several tables have it.
        """
        if not table and self.aliases_first and name in self.aliases:
            self.aliases_first = False  # names in the SELECT list mean columns
            try:
                return self.aliases[name]()
            finally:
                self.aliases_first = True
        found = [
            (source, kind)
            for source in self.sources
            if table in {"", source.alias}
            for column, kind in source.columns
            if column == name and not (table == "" and name in source.shared)
        ]
        if len(found) > 1:
            raise UntriedError(f"`{name}`, which several tables have")
        if found:
            source, kind = found[0]
            self._note_read(source, name, kind)
            made_one = [other for other in self.sources if not table and name in other.shared]
            for other in made_one:
                self._note_read(other, name, kind)
            text = f"{quote_duckdb_name(source.alias)}.{quote_duckdb_name(name)}"
            return TypedText(made_one[-1].shared[name] if made_one else text, kind)
        if not table and name in self.aliases:
            return self.aliases[name]()
        if self.parent is not None:
            return self.parent.find_column(table, name)
        raise UntriedError(
            f"the column {f'{table}.' if table else ''}{name}, whose table is not known"
        )

    def _note_read(self, source: ScopedSource, name: str, kind: ValueType) -> None:
        if not kind.is_known:
            raise UntriedError(f"a column of type {kind}")
        if source.table:
            self.reads.setdefault(source.table, set()).add(name)

    def list_columns(self, table: str = "", *, noted: bool = False) -> list[tuple[str, TypedText]]:
        """Lists the columns of a star, in Spark's order."""
        found: list[tuple[str, TypedText]] = []
        shared = dict.fromkeys(name for source in self.sources for name in source.shared)
        if not table:
            found = [(name, self.find_column("", name)) for name in shared]
        for source in self.sources:
            if table in {"", source.alias}:
                for name, kind in source.columns if noted else ():
                    self._note_read(source, name, kind)
                found += [
                    (
                        name,
                        TypedText(
                            f"{quote_duckdb_name(source.alias)}.{quote_duckdb_name(name)}", kind
                        ),
                    )
                    for name, kind in source.columns
                    if table or name not in shared
                ]
        return found

    def write_tie(self, *, rows: bool = False) -> str:
        """Writes an order of the rows that no query asks for.

        Args:
            rows: whether it orders the rows below the groups, and not the groups.
        """
        if self.groups is not None and not rows:
            return write_duckdb_order(self.groups)
        return write_duckdb_order(
            typed.text for _, typed in self.list_columns() if typed.kind.is_known
        )


def write_duckdb_order(texts: Iterable[str]) -> str:
    """Writes an order by these values, which differs in each mode."""
    return f"hash({', '.join((MODE, *texts))})"


@dataclass(frozen=True)
class SourceTable:
    """A table that queries read: its name in DuckDB, and its columns by name."""

    name: str
    columns: Mapping[str, ValueType]
