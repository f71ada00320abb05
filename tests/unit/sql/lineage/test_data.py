"""No missed impact: what differs in data after a source's change is within what was predicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import sqlglot
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify

from ci_bot.worker.sql.lineage.propagation import ChangeSpread, spread_changes
from ci_bot.worker.sql.lineage.sources import ChangedProject, LineageModel, ModelDefinition
from tests.oracle.fuzzing import FULL
from tests.unit.sql.lineage.dags import dag
from tests.unit.sql.lineage.data import Rows, Warehouse, bag, source_rows, value
from tests.unit.sql.lineage.parts import NUMBER, SOURCES, Table

DAGS, CHANGES = (4_000, 4) if FULL else (150, 3)


@dataclass(frozen=True)
class Change:
    """A change of a source: of one column's values, or, where that is None, of its rows."""

    table: Table
    column: str | None

    def applied(self, rows: Rows, random: Random) -> Rows:
        if self.column is None:
            kept = [row for row in rows if random.random() < 0.7]
            return kept + source_rows(random, self.table)[: random.randint(1, 3)]
        place = list(self.table.columns).index(self.column)
        holds = self.table.columns[self.column]
        return [
            row
            if random.random() < 0.5
            else (*row[:place], value(random, holds), *row[place + 1 :])
            for row in rows
        ]


def changes() -> Iterator[Change]:
    for table in SOURCES:
        yield from (Change(table, column) for column in table.columns)
        yield Change(table, None)


def tree(query: str, known: dict[str, dict[str, str]], *, qualified: bool) -> Any:
    """A query as SQLMesh renders it, or, as where a schema is unknown, as it is written."""
    parsed = sqlglot.parse_one(query, dialect="duckdb")
    if not qualified:
        return parsed
    schema: dict[str, dict[str, dict[str, str]]] = {}
    for name, columns in known.items():
        schema.setdefault(name.partition(".")[0], {})[name.partition(".")[2]] = columns
    try:
        return qualify(parsed.copy(), dialect="duckdb", schema=schema, infer_schema=False)
    except OptimizeError:
        return parsed


def known_types(tables: list[Table]) -> dict[str, dict[str, str]]:
    """Columns with their types, as the schema of a project."""
    return {
        table.name: {
            name: "BIGINT" if holds == NUMBER else "TEXT" for name, holds in table.columns.items()
        }
        for table in tables
    }


def models_of(tables: list[Table], *, qualified: bool) -> list[LineageModel]:
    """The models of a generated project, without a change."""
    known = known_types(tables)
    models = []
    for table in tables:
        if table.query:
            root = tree(table.query, known, qualified=qualified)
            read = {f"{t.db}.{t.name}" for t in root.find_all(sqlglot.exp.Table) if t.db}
            models.append(
                LineageModel(
                    table.name,
                    parents=tuple(sorted(read)),
                    change="indirect",
                    after=partial(ModelDefinition, rendered=root),
                )
            )
    return models


def spread_of(models: list[LineageModel], tables: list[Table], change: Change) -> ChangeSpread:
    """How a change of a source spreads."""
    source = LineageModel(
        change.table.name,
        change="direct",
        is_source=True,
        changed={change.column: "computed"} if change.column is not None else {},
        beside_query=None if change.column is not None else "Its rows change.",
    )
    columns = {name: tuple(listed) for name, listed in known_types(tables).items()}
    return spread_changes(ChangedProject((source, *models), columns=columns))


def missed(
    found: ChangeSpread,
    before: dict[str, tuple[list[str], Rows]],
    after: dict[str, tuple[list[str], Rows]],
    totals: Counter[str],
) -> Iterator[str]:
    """The models that differ in what was not predicted; counts how tight the prediction is."""
    for name, (columns, old) in before.items():
        reach, new = found.reached[name], after[name][1]
        totals["unknown"] += bool(reach.any_bits & found.parts.uncertain)
        reached = [column for column in columns if reach.bits_of(column)]
        untouched = [column for column in columns if column not in reached]
        others_differ = bag(columns, old, untouched) != bag(columns, new, untouched)
        if reach.rows:
            totals["rows predicted"] += 1
            totals["rows differ"] += bag(columns, old, columns) != bag(columns, new, columns)
            totals["missed by projections alone"] += others_differ
            continue
        if others_differ:
            yield f"{name}: predicted {reached}"
        totals["not reached"] += not reached
        for column in reached:
            totals["columns predicted"] += 1
            totals["columns differ"] += bag(columns, old, [column]) != bag(columns, new, [column])


def test_impact__misses_nothing_that_differs() -> None:
    totals: Counter[str] = Counter()
    warehouse = Warehouse()
    try:
        for seed in range(DAGS):
            random = Random(seed)
            tables = dag(random)
            sides = [models_of(tables, qualified=qualified) for qualified in (True, False)]
            contents = {table.name: source_rows(random, table) for table in SOURCES}
            warehouse.fill(contents)
            warehouse.build(tables)
            before = warehouse.content(tables)
            for change in random.sample(list(changes()), CHANGES):
                found = [spread_of(models, tables, change) for models in sides]
                other = change.applied(contents[change.table.name], random)
                warehouse.fill({**contents, change.table.name: other})
                warehouse.build(tables)
                after = warehouse.content(tables)
                for how, one in zip(("qualified", "as written"), found, strict=True):
                    bad = list(missed(one, before, after, totals))
                    text = "\n".join(f"{t.name}: {t.query}" for t in tables)
                    assert not bad, f"seed {seed}, {how}, {change}: {bad}\n{text}"
    finally:
        warehouse.close()
    predicted = totals["columns predicted"] + totals["rows predicted"]
    precision = (totals["columns differ"] + totals["rows differ"]) / predicted
    print(f"\n{DAGS} DAGs, {CHANGES} changes each: {dict(sorted(totals.items()))}")
    print(f"precision: {precision:.2f} of what is predicted differs after one change of the data")
    assert precision > 0.55
    # A prediction of everything would miss nothing either.
    assert totals["not reached"] > totals["rows predicted"] / 2
    assert totals["unknown"] == 0
    # The check itself: it would find a lineage that follows projections only.
    assert totals["missed by projections alone"] > DAGS / 2
