"""The names that a query in a trial can use: its sources with columns, types and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ci_bot.worker.duckdb_trials.value_types import UntriedError, ValueType, quote_duckdb_name

# Stands in DuckDB's text for the number of the run; another one breaks ties in another way.
MODE = "/*mode*/0"
TypedColumns = tuple[tuple[str, ValueType], ...]


@dataclass(frozen=True)
class TypedText:
    """DuckDB's text of an expression, with the type that Spark gives it.

    Attributes:
        literal: the digits or characters of what is written as a constant.
        least: for a whole number that is written as a constant, the smallest decimal for it, which
            Spark takes beside decimals.
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
    """`SELECT items FROM source`, of parts that are DuckDB's text already."""
    return " ".join(("SELECT", items, "FROM", source))


@dataclass(frozen=True)
class ScopedSource:
    """A table or query in FROM.

    Attributes:
        shared: the texts of columns that USING has made one with earlier ones, by name, in order.
        table: the source table that it is; empty for queries.
    """

    alias: str
    columns: TypedColumns
    shared: Mapping[str, str] = field(default_factory=dict)
    table: str = ""


@dataclass
class QueryScope:
    """The names that an expression may use.

    Attributes:
        aliases: what a name of the SELECT list stands for, as far as it is known.
        groups: the texts of the groups, in a SELECT with groups; None in others.
        aliases_first: whether a name means one of the SELECT list before it means a column.
        reads: the columns that were asked for, by source table.
    """

    sources: list[ScopedSource] = field(default_factory=list)
    parent: QueryScope | None = None
    aliases: dict[str, Callable[[], TypedText]] = field(default_factory=dict)
    groups: list[str] | None = None
    aliases_first: bool = False
    reads: dict[str, set[str]] = field(default_factory=dict)

    def list_sources(self) -> list[ScopedSource]:
        """The sources of this scope and of those around it."""
        return [*self.sources, *(self.parent.list_sources() if self.parent is not None else ())]

    def find_column(self, table: str, name: str) -> TypedText:
        """The column that a name means. Raises UntriedError if its table is not known."""
        if not table and self.aliases_first and name in self.aliases:
            self.aliases_first = False  # what stands in the list means columns
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
        """The columns that a star stands for, in Spark's order."""
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
        """An order of the rows that no query asks for.

        Args:
            rows: of the rows below the groups.
        """
        if self.groups is not None and not rows:
            return write_duckdb_order(self.groups)
        return write_duckdb_order(
            typed.text for _, typed in self.list_columns() if typed.kind.is_known
        )


def write_duckdb_order(texts: Iterable[str]) -> str:
    """An order by so many values, another one for each mode."""
    return f"hash({', '.join((MODE, *texts))})"


@dataclass(frozen=True)
class SourceTable:
    """A table that queries read: DuckDB's name for it, and its columns by name."""

    name: str
    columns: Mapping[str, ValueType]
