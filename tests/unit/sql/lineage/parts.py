"""The parts that generated queries are put together of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

NUMBER, TEXT = "number", "text"


@dataclass(frozen=True)
class Table:
    """A source or a model: its columns with what they hold, and its query where it has one."""

    name: str
    columns: dict[str, str]
    query: str = ""


SOURCES = (
    Table("s.one", {"id": NUMBER, "kind": NUMBER, "amount": NUMBER, "label": TEXT}),
    Table("s.two", {"id": NUMBER, "one_id": NUMBER, "kind": NUMBER, "weight": NUMBER}),
    Table("s.three", {"kind": NUMBER, "label": TEXT, "rank": NUMBER}),
)


class Parts:
    """Chooses the parts of one query over `tables`."""

    def __init__(self, random: Random, tables: Sequence[Table]) -> None:
        self.random = random
        # The newest are read most, so that chains get long.
        self.tables = [*tables, *tables[-3:]]
        self._count = 0

    def table(self) -> Table:
        return self.random.choice(self.tables)

    def alias(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def column(self, table: Table, kind: str | None = None) -> str | None:
        names = [name for name, holds in table.columns.items() if kind in (None, holds)]
        return self.random.choice(names) if names else None

    def number(self, *sources: tuple[str, Table]) -> str:
        """An expression over the columns of sources, by alias."""
        names = [
            f"{alias}.{name}"
            for alias, table in sources
            for name, holds in table.columns.items()
            if holds == NUMBER
        ]
        texts = [
            f"{alias}.{name}"
            for alias, table in sources
            for name, holds in table.columns.items()
            if holds == TEXT
        ]
        if not names:
            return str(self.random.randint(0, 5))
        one, two = self.random.choice(names), self.random.choice(names)
        forms = [
            one,
            one,
            f"{one} + {two}",
            f"{one} - {self.random.randint(1, 3)}",
            f"CASE WHEN {one} > {self.random.randint(0, 4)} THEN {two} ELSE 0 END",
            f"COALESCE({one}, {two})",
            f"GREATEST({one}, {two})",
            f"CAST({one} AS BIGINT)",
        ]
        if texts:
            forms.append(f"LENGTH({self.random.choice(texts)})")
        return self.random.choice(forms)

    def fresh(self, base: str, taken: Iterable[str]) -> str:
        """A column name that is not taken."""
        names = set(taken)
        return next(name for n in count() if (name := f"{base}_{n}") not in names)

    def condition(self, *sources: tuple[str, Table]) -> str:
        left = self.number(*sources)
        forms = [
            f"{left} > {self.random.randint(-1, 4)}",
            f"{left} IS NOT NULL",
            f"{left} % 2 = {self.random.randint(0, 1)}",
            f"{left} IN (1, 2, 3)",
            f"NOT {left} = {self.random.randint(0, 3)}",
            f"{left} BETWEEN 0 AND {self.random.randint(1, 5)}",
        ]
        return self.random.choice(forms)

    def items(self, *sources: tuple[str, Table], most: int = 4) -> tuple[str, dict[str, str]]:
        """Projections, with what their columns hold."""
        columns: dict[str, str] = {}
        written: list[str] = []
        for _ in range(self.random.randint(1, most)):
            alias, table = self.random.choice(sources)
            name = self.column(table)
            if name is not None and self.random.random() < 0.6:
                if name in columns:
                    continue
                columns[name] = table.columns[name]
                written.append(f"{alias}.{name}")
            else:
                name = self.fresh("c", [n for _, t in sources for n in t.columns] + [*columns])
                columns[name] = NUMBER
                written.append(f"{self.number(*sources)} AS {name}")
        return ", ".join(written), columns

    def maybe_where(self, *sources: tuple[str, Table]) -> str:
        return f" WHERE {self.condition(*sources)}" if self.random.random() < 0.5 else ""

    def order(self, alias: str, table: Table) -> str:
        """All columns: an order without ties that could be seen."""
        return ", ".join(f"{alias}.{name}" for name in table.columns)
