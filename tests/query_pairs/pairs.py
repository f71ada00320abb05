"""The pairs of `pairs/*.yaml`, and the data that they are run on.

A file is about one topic. It has tables, which all of its pairs read, and the pairs. Cells are
written as Spark SQL. What a pair is expected to be is for Spark to confirm, see
`tests/integration/test_query_pairs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml

PAIRS = Path(__file__).parent / "pairs"
Data = Mapping[str, tuple[str, ...]]
Answer = Literal["same", "differs"]

# Few values, so that keys meet, ties come about and NULL is everywhere.
_VALUES = {
    "int": ("0", "1", "2", "3", "-7", "NULL"),
    "string": ("'x'", "'y'", "'p'", "'q'", "'a_b'", "'paid'", "'open'", "'DE'", "''", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "double": ("0.5D", "1.5D", "-2.5D", "0D", "NULL"),
    "decimal(10,2)": ("1.50", "2.25", "0.05", "-1.25", "20.00", "NULL"),
    "date": ("DATE'2024-01-31'", "DATE'2024-02-29'", "DATE'2024-01-01'", "NULL"),
    "array<int>": ("array()", "array(1, 2)", "array(3, NULL, 1)", "array(2, 2)", "NULL"),
    "array<string>": ("array()", "array('u')", "array('v', NULL)", "NULL"),
    "map<string,int>": ("map('a', 1)", "map('a', NULL, 'b', 2)", "NULL"),
    "struct<a:int,b:string>": (
        *("named_struct('a', 1, 'b', 'z')", "named_struct('a', 2, 'b', NULL)", "NULL"),
    ),
}


@dataclass(frozen=True)
class Table:
    """Columns with their types, the values that random rows take, and rows by hand."""

    name: str
    types: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]
    rows: tuple[str, ...]

    def random_rows(self, random: Random) -> tuple[str, ...]:
        """Up to six rows, some of them twice."""
        rows = [
            ", ".join(random.choice(values) for values in self.values.values())
            for _ in range(random.randint(0, 6))
        ]
        return (*rows, *random.sample(rows, k=min(len(rows), random.choice((0, 0, 1, 2)))))


@dataclass(frozen=True)
class QueryPair:
    """Two queries over the same tables.

    `expected` is of what SQLMesh sends to Spark. Where it renders two queries alike that differ on
    Spark as they are written, `as_written` says so. With `only_in_ansi_mode`, the queries differ
    because one of them fails in that mode.
    """

    name: str
    base: str
    head: str
    expected: Answer | None
    tables: tuple[Table, ...]
    idea: str = ""
    as_written: Answer | None = None
    dialect: str = "spark"
    only_in_ansi_mode: bool = False

    @property
    def data_sets(self) -> Iterator[Data]:
        """The rows by hand, and no rows."""
        yield {table.name: table.rows for table in self.tables}
        yield {table.name: () for table in self.tables}

    def random_data_sets(self, count: int) -> Iterator[Data]:
        """The same ones at each run."""
        random = Random(self.name)
        for _ in range(count):
            yield {table.name: table.random_rows(random) for table in self.tables}


def parse_table(name: str, written: Mapping[str, Any]) -> Table:
    """A table of a file of pairs."""
    columns = {
        column: kind if isinstance(kind, dict) else {"type": kind}
        for column, kind in written["columns"].items()
    }
    return Table(
        name,
        {column: kind["type"] for column, kind in columns.items()},
        {c: tuple(kind.get("values") or _VALUES[kind["type"]]) for c, kind in columns.items()},
        tuple(written["rows"]),
    )


def parse_pairs(topic: str, written: Mapping[str, Any]) -> Iterator[QueryPair]:
    """The pairs of one file."""
    tables = tuple(parse_table(name, table) for name, table in written["tables"].items())
    for name, pair in written["pairs"].items():
        yield QueryPair(
            name=f"{topic}.{name}",
            base=pair["base"],
            head=pair["head"],
            expected=pair["expected"],
            tables=tables,
            idea=pair["idea"],
            as_written=pair.get("as_written", pair["expected"]),
            dialect=pair.get("dialect", "spark"),
            only_in_ansi_mode=pair.get("only_in_ansi_mode", False),
        )


@cache
def load_pairs() -> tuple[QueryPair, ...]:
    """All pairs, in the order of their files."""
    return tuple(
        pair
        for path in sorted(PAIRS.glob("*.yaml"))
        for pair in parse_pairs(path.stem, yaml.safe_load(path.read_text()))
    )
