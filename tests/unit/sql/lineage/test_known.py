"""A project whose true impact is known by how it was made: the prediction is that, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Any

import pytest
import sqlglot

from ci_bot.worker.sql.lineage.propagation import spread_changes
from ci_bot.worker.sql.lineage.sources import ChangedProject, LineageModel, ModelDefinition
from tests.unit.sql.lineage.parts import SOURCES

MODELS = 1_000
ROWS = "rows"
Truth = frozenset[tuple[str, str]]
NOTHING: Truth = frozenset()


@dataclass(frozen=True)
class Known:
    """A table, and of which columns of which sources each column and its rows are made."""

    name: str
    columns: dict[str, Truth]
    rows: Truth
    parents: tuple[str, ...] = ()
    query: str = ""


@dataclass
class Maker:
    """Makes models of patterns; what each depends on is written down beside, not computed."""

    random: Random
    tables: list[Known] = field(default_factory=list)

    def pick(self) -> Known:
        return self.random.choice(self.tables[-40:])

    def column(self, table: Known) -> str:
        return self.random.choice(list(table.columns))

    def made(self, number: int) -> Known:
        patterns: list[Callable[[str], Known]] = [
            self.copied,
            self.filtered,
            self.summed,
            self.joined,
            self.stacked,
            self.starred,
            self.ranked,
            self.asked,
            self.one_row,
            self.cut,
        ]
        return self.random.choice(patterns)(f"m.model_{number:04}")

    def copied(self, name: str) -> Known:
        t = self.pick()
        x, y = self.column(t), self.column(t)
        query = f"SELECT t.{x} AS a, t.{x} * 2 + t.{y} AS b, 1 AS c FROM {t.name} AS t"
        columns = {
            "a": t.columns[x],
            "b": t.columns[x] | t.columns[y],
            "c": NOTHING,
        }
        return Known(name, columns, t.rows, (t.name,), query)

    def filtered(self, name: str) -> Known:
        t = self.pick()
        x, y, z = self.column(t), self.column(t), self.column(t)
        query = f"SELECT t.{x} AS a, t.{y} AS b FROM {t.name} AS t WHERE t.{z} > 3"
        columns = {"a": t.columns[x], "b": t.columns[y]}
        return Known(name, columns, t.rows | t.columns[z], (t.name,), query)

    def summed(self, name: str) -> Known:
        t = self.pick()
        x, y, z = self.column(t), self.column(t), self.column(t)
        query = (
            f"WITH part AS (SELECT t.{x} AS k, t.{y} AS v, t.{z} AS unused FROM {t.name} AS t) "
            "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM part GROUP BY k"
        )
        columns = {"k": t.columns[x], "total": t.columns[y], "n": NOTHING}
        return Known(name, columns, t.rows | t.columns[x], (t.name,), query)

    def joined(self, name: str) -> Known:
        t, u = self.pick(), self.pick()
        x, y, k, q = self.column(t), self.column(u), self.column(t), self.column(u)
        how = self.random.choice(["JOIN", "LEFT JOIN"])
        query = (
            f"SELECT t.{x} AS a, u.{y} AS b FROM {t.name} AS t {how} {u.name} AS u ON t.{k} = u.{q}"
        )
        columns = {"a": t.columns[x], "b": u.columns[y]}
        rows = t.rows | u.rows | t.columns[k] | u.columns[q]
        return Known(name, columns, rows, (t.name, u.name), query)

    def stacked(self, name: str) -> Known:
        t, u = self.pick(), self.pick()
        x, y, z, w = self.column(t), self.column(t), self.column(u), self.column(u)
        kind = self.random.choice(["UNION ALL", "UNION"])
        query = f"SELECT {x} AS a, {y} AS b FROM {t.name} {kind} SELECT {z}, {w} FROM {u.name}"
        columns = {"a": t.columns[x] | u.columns[z], "b": t.columns[y] | u.columns[w]}
        rows = t.rows | u.rows
        if kind == "UNION":
            rows |= columns["a"] | columns["b"]
        return Known(name, columns, rows, (t.name, u.name), query)

    def starred(self, name: str) -> Known:
        t = self.pick()
        return Known(name, t.columns, t.rows, (t.name,), f"SELECT * FROM {t.name}")

    def ranked(self, name: str) -> Known:
        t = self.pick()
        x, y, z = self.column(t), self.column(t), self.column(t)
        query = (
            f"SELECT t.{x} AS a, RANK() OVER (PARTITION BY t.{y} ORDER BY t.{z}) AS place "
            f"FROM {t.name} AS t"
        )
        columns = {"a": t.columns[x], "place": t.columns[y] | t.columns[z]}
        return Known(name, columns, t.rows, (t.name,), query)

    def asked(self, name: str) -> Known:
        t, u = self.pick(), self.pick()
        x, y, z = self.column(t), self.column(t), self.column(u)
        query = (
            f"SELECT t.{x} AS a, (SELECT MAX(u.{z}) FROM {u.name} AS u) AS top FROM {t.name} AS t "
            f"WHERE t.{y} IN (SELECT v.{z} FROM {u.name} AS v)"
        )
        columns = {"a": t.columns[x], "top": u.columns[z] | u.rows}
        rows = t.rows | t.columns[y] | u.rows | u.columns[z]
        return Known(name, columns, rows, (t.name, u.name), query)

    def one_row(self, name: str) -> Known:
        t = self.pick()
        x = self.column(t)
        query = f"SELECT SUM(t.{x}) AS total, COUNT(*) AS n FROM {t.name} AS t"
        columns = {"total": t.columns[x] | t.rows, "n": t.rows}
        return Known(name, columns, frozenset(), (t.name,), query)

    def cut(self, name: str) -> Known:
        t = self.pick()
        x, y = self.column(t), self.column(t)
        query = f"SELECT t.{x} AS a FROM {t.name} AS t ORDER BY t.{y} LIMIT 5"
        return Known(name, {"a": t.columns[x]}, t.rows | t.columns[y], (t.name,), query)


def made_project() -> list[Known]:
    """The sources, and a thousand models over them."""
    maker = Maker(Random("known"))
    for source in SOURCES:
        columns = {name: frozenset({(source.name, name)}) for name in source.columns}
        maker.tables.append(Known(source.name, columns, frozenset({(source.name, ROWS)})))
    for number in range(MODELS):
        maker.tables.append(maker.made(number))
    return maker.tables


def predicted(tables: list[Known], changed: Truth) -> dict[str, tuple[dict[str, Truth], Truth]]:
    """What is said of each model, where these columns and rows of sources change."""
    project = ChangedProject(
        tuple(_model(table, changed) for table in tables),
        columns={table.name: tuple(table.columns) for table in tables},
    )
    found = spread_changes(project)
    names = [(part.model, part.column or ROWS) for part in found.parts.known]
    assert frozenset(names) == changed

    def told(bits: int) -> Truth:
        return frozenset(names[number] for number in found.parts.list_numbers(bits))

    return {
        table.name: (
            {c: told(found.reached[table.name].columns.get(c, 0)) for c in table.columns},
            told(found.reached[table.name].rows),
        )
        for table in tables
        if table.query
    }


def test_impact__of_all_sources__is_what_the_project_was_made_of() -> None:
    tables = made_project()
    changed = frozenset(atom for t in tables[: len(SOURCES)] for atom in t.rows).union(
        *(truth for t in tables[: len(SOURCES)] for truth in t.columns.values())
    )
    found = predicted(tables, changed)
    for table in tables[len(SOURCES) :]:
        assert found[table.name] == (table.columns, table.rows), table


@pytest.mark.parametrize(
    "changed", [(source.name, column) for source in SOURCES for column in (*source.columns, ROWS)]
)
def test_impact__of_one_column__is_what_was_made_of_it(changed: tuple[str, str]) -> None:
    tables = made_project()
    one = frozenset({changed})
    found = predicted(tables, one)
    for table in tables[len(SOURCES) :]:
        columns, rows = found[table.name]
        assert columns == {name: truth & one for name, truth in table.columns.items()}, table
        assert rows == table.rows & one, table


def _model(table: Known, changed: Truth) -> LineageModel:
    if not table.query:
        names = [column for name, column in sorted(changed) if name == table.name]
        return LineageModel(
            table.name,
            change="direct" if names else None,
            is_source=True,
            changed={name: "computed" for name in names if name != ROWS},
            beside_query="Its rows change." if ROWS in names else None,
        )
    return LineageModel(
        table.name,
        parents=tuple(sorted(set(table.parents))),
        change="indirect",
        after=partial(ModelDefinition, rendered=_tree(table.query)),
    )


@cache
def _tree(query: str) -> Any:
    return sqlglot.parse_one(query, dialect="spark")
