"""A model's query, read: for each column and for the rows, on what of which table it depends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ci_bot.worker.impact.expressions import UnreadableError
from ci_bot.worker.impact.facts import Definition, KnownColumns
from ci_bot.worker.impact.query_reading import QueryReader
from ci_bot.worker.impact.values import ANY, DOUBT, ORDER, ROWS, Atom, Rowset, Terms, Traced, blob


@dataclass(frozen=True)
class Dependencies:
    """What a model's columns and rows depend on, as bits over `atoms`."""

    atoms: list[Atom]
    columns: dict[str, int]
    rows: int
    order: int
    unlisted: int


class StoredTables:
    """The stored tables of one model as its queries name them."""

    def __init__(self, terms: Terms, known: Iterable[str], columns: KnownColumns) -> None:
        self._terms = terms
        self._known = list(known)
        self._columns = columns
        self._relations: dict[str, Rowset] = {}

    def relation(self, name: str) -> Rowset:
        """The table that a query calls `name`, with or without its catalog."""
        if name not in self._relations:
            self._relations[name] = self._read(name)
        return self._relations[name]

    def _read(self, name: str) -> Rowset:
        found = self._called(name)
        if len(found) > 1:
            deps = 0
            for table in found:
                deps |= self._terms.atom(table, DOUBT)
            value = Traced(deps, self._terms.key("table", name))
            return blob(self._terms, value, (), frozenset(found))
        return self._stored(found[0] if found else name)

    def _called(self, name: str) -> list[str]:
        if name in self._known:
            return [name]
        found = [table for table in self._known if table.endswith(f".{name}")]
        last = name.rpartition(".")[2]
        return found or [table for table in self._known if table.rpartition(".")[2] == last]

    def _stored(self, table: str) -> Rowset:
        terms, listed = self._terms, self._columns.get(table)

        def column(name: str) -> Traced:
            return Traced(terms.atom(table, name), terms.key("column", table, name))

        return Rowset(
            columns={name: column(name) for name in listed or ()},
            rows=Traced(terms.atom(table, ROWS), terms.key("rows", table)),
            missing=column if listed is None else None,
            order=terms.atom(table, ORDER),
            tables=frozenset({table}),
        )


@dataclass(frozen=True)
class Relations:
    """A definition's results: of the rendered tree, and of the written one where that was read."""

    rendered: Rowset
    written: Rowset | None


def read_definition(
    definition: Definition, terms: Terms, tables: StoredTables, *, with_written: bool
) -> Relations:
    """Reads a query.

    Args:
        with_written: also as it stands in the file, in which names may lead nowhere.

    Raises:
        UnreadableError: It is of a kind that is not known here, or too deeply nested.
    """
    try:
        rendered = QueryReader(terms, tables.relation, strict=True).read(definition.rendered)
        written = None
        if with_written and definition.written is not None:
            reader = QueryReader(terms, tables.relation, strict=False)
            written = reader.read(definition.written)
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError("it is nested too deeply") from None
    except Exception as error:  # a tree of a shape that nobody foresaw must not pass as harmless
        raise UnreadableError(f"reading it ended with {type(error).__name__}") from None
    return Relations(rendered, written)


def reading_of(relations: Relations, terms: Terms) -> Dependencies:
    """Both trees together: what one of them does not show, the other does."""
    columns: dict[str, int] = {}
    rows = order = unlisted = 0
    for relation in (relations.rendered, relations.written):
        if relation is None:
            continue
        for name, value in relation.columns.items():
            columns[name] = columns.get(name, 0) | value.deps
        rows |= relation.rows.deps
        order |= relation.order
        if relation.missing is not None:
            unlisted |= relation.missing(ANY).deps
    if relations.written is not None:
        # A macro among the projections: it stands for columns that only the rendering names.
        unnamed = 0
        for name in [name for name in columns if name.startswith("\n")]:
            unnamed |= columns.pop(name)
        named = relations.written.columns.keys()
        columns = {n: deps if n in named else deps | unnamed for n, deps in columns.items()}
    return Dependencies(terms.atoms, columns, rows, order, unlisted)
