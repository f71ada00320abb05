"""Generated pairs of queries over three tables, and what is left of one when it is made small."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from tests.query_pairs.choices import Choices
from tests.query_pairs.expressions import operator_pairs
from tests.query_pairs.pairs import Data, QueryPair, Table
from tests.query_pairs.queries import GRAMMARS, set_operation_pairs
from tests.unit.sql.pairs.bases import base as base_tree
from tests.unit.sql.pairs.misses import MISSES
from tests.unit.sql.pairs.rewriting import REWRITES

CASE_SENSITIVE = "spark, normalization_strategy=case_sensitive"
KEEPS_CASE = ("names", "resolution")
_TYPES = {
    "id": "int",
    "a": "int",
    "b": "int",
    "c": "int",
    "p": "boolean",
    "q": "boolean",
    "s": "string",
    "r": "string",
    "d": "date",
    "e": "date",
    "xs": "array<int>",
    "ys": "array<int>",
    "st": "struct<A:int,b:string>",
}
_VALUES = {
    "int": ("0", "1", "2", "3", "-1", "5", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "string": ("'x'", "'X'", "'1'", "'10'", "' x'", "''", "NULL"),
    "date": ("DATE'2024-01-31'", "DATE'2024-02-29'", "DATE'2023-12-30'", "NULL"),
    "array<int>": ("array()", "array(1, 2)", "array(2, 1, 1)", "array(3, NULL)", "NULL"),
    "struct<A:int,b:string>": ("named_struct('A', 1, 'b', 'x')", "NULL"),
}
_NARROW = {"id": "int", "a": "int", "b": "int", "k": "string"}
_SHAPES = ((24, 10, 8, 14, 9, 0), (7, 5, 3, 5, 4, 0), (0, 4, 2, 0, 3, 0), (5, 0, 0, 4, 0, 0))


def _table(name: str, types: dict[str, str]) -> Table:
    return Table(name, types, {column: _VALUES[kind] for column, kind in types.items()}, ())


# Of the trees that the proof's own tests rewrite, which DuckDB judges there.
_OF_TREES = {"k": "int", "g": "int", "v": "int", "s": "string"}
_TREES = tuple(_table(f"tree_{name}", _OF_TREES) for name in "tue")
TABLES = (_table("t", _TYPES), _table("u", _NARROW), _table("w", _NARROW), *_TREES)


def data_sets() -> Iterator[Data]:
    """One with many rows, for what goes row by row, a small one, and some with empty tables."""
    random = Random(1)
    for shape in _SHAPES:
        yield {
            table.name: tuple(_rows(random, table, count))
            for table, count in zip(TABLES, shape, strict=True)
        }


def _rows(random: Random, table: Table, count: int) -> list[str]:
    """Rows that can be told apart by their first column, but for the last one, which is a copy."""
    rows = [
        ", ".join([str(number), *(random.choice(v) for v in list(table.values.values())[1:])])
        for number in range(1, count + 1)
    ]
    return [*rows[:-1], rows[-2]] if count > 1 else rows


@dataclass(frozen=True)
class Generated:
    """A pair, and the decisions that it was made from."""

    pair: QueryPair
    grammar: Callable[[Choices], str] | None = None
    base: dict[str, int] | None = None
    head: dict[str, int] | None = None

    def smaller(self) -> Iterator[Generated]:
        """Pairs with one decision less: the first choice on both sides, or no change of it."""
        if self.grammar is None or self.base is None or self.head is None:
            return
        for name in self.base.keys() | self.head.keys():
            one, other = self.base.get(name, 0), self.head.get(name, 0)
            if one == other == 0:
                continue
            yield _made(
                self.pair.name, self.grammar, {**self.base, name: 0}, {**self.head, name: 0}
            )
            if one != other:
                yield _made(self.pair.name, self.grammar, self.base, {**self.head, name: one})


def _made(
    name: str, grammar: Callable[[Choices], str], base: dict[str, int], head: dict[str, int]
) -> Generated:
    first, second = Choices(None, dict(base)), Choices(None, dict(head))
    pair = _pair(name, grammar(first), grammar(second))
    return Generated(pair, grammar, first.taken, second.taken)


def _pair(name: str, base: str, head: str) -> QueryPair:
    """Every other pair about names is of a project that keeps their case."""
    keeps = name.startswith(KEEPS_CASE) and int(name.split()[1]) % 2 == 0
    return QueryPair(name, base, head, None, TABLES, dialect=CASE_SENSITIVE if keeps else "spark")


def generate_operator_pairs() -> Iterator[Generated]:
    """Every pair of operators, most as a value and some as a filter, and of set operations."""
    for place, (name, one, other) in enumerate(operator_pairs()):
        where = " FROM t WHERE " if place % 4 == 3 else ""
        base, head = (
            f"SELECT id{where}{text}" if where else f"SELECT id, {text} AS x FROM t"
            for text in (one, other)
        )
        yield Generated(QueryPair(f"operators {name}", base, head, None, TABLES))
    for name, base, head in set_operation_pairs():
        yield Generated(QueryPair(f"sets {name}", base, head, None, TABLES))


def generate_pairs(seed: int = 0, names: Collection[str] = ()) -> Iterator[Generated]:
    """Pairs of every grammar in turn, or of those that are named, without end."""
    while True:
        for name, grammar in GRAMMARS.items():
            seed += 1
            if names and name not in names:
                continue
            random = Random(seed)
            first = Choices(random)
            base = grammar(first)
            second = Choices(random, first.changed(random))
            head = grammar(second)
            if base != head:
                pair = _pair(f"{name} {seed}", base, head)
                yield Generated(pair, grammar, first.taken, second.taken)


def generate_tree_pairs(seed: int = 0) -> Iterator[Generated]:
    """Rewrites and near misses of the proof's own tests, each kind in turn, without end."""
    while True:
        for name, change in (*REWRITES.items(), *MISSES.items()):
            seed += 1
            before = base_tree(seed)
            after = change(before.copy(), Random(seed))
            if after is not None:
                base, head = (
                    tree.sql(dialect="spark").replace("db.", "tree_") for tree in (before, after)
                )
                yield Generated(QueryPair(f"trees {name} {seed}", base, head, None, TABLES))


def generate_mix(seed: int, count: int) -> Iterator[Generated]:
    """A quarter is operators, taken evenly from all; a tenth is trees; the rest is of grammars."""
    operators = list(generate_operator_pairs())
    wanted = min(count // 4, len(operators))
    mixed = [
        *Random(seed).sample(operators, wanted),
        *islice(generate_tree_pairs(seed), count // 10),
        *islice(generate_pairs(seed), count - wanted - count // 10),
    ]
    Random(seed).shuffle(mixed)
    yield from mixed
