"""An edit of any model of a generated project: what differs below it is within the prediction."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import Any

import sqlglot
from sqlglot import exp

from ci_bot.worker.sql.lineage.propagation import ChangeSpread, spread_changes
from ci_bot.worker.sql.lineage.sources import ChangedProject, LineageModel, ModelDefinition
from tests.oracle.fuzzing import FULL
from tests.unit.sql.lineage.dags import dag
from tests.unit.sql.lineage.data import Rows, Warehouse, bag, source_rows
from tests.unit.sql.lineage.edits import edited
from tests.unit.sql.lineage.parts import SOURCES, Table
from tests.unit.sql.lineage.test_data import known_types, tree

DAGS = 4_000 if FULL else 150
Contents = dict[str, tuple[list[str], Rows]]


def definition(query: str, known: dict[str, dict[str, str]], *, qualified: bool) -> ModelDefinition:
    """As SQLMesh gives it: rendered with what is known of the tables now, and as it is written."""
    return ModelDefinition(
        rendered=tree(query, known, qualified=qualified),
        written=sqlglot.parse_one(query, dialect="duckdb"),
        has_star="*" in query,
    )


def spread_of(
    old: list[Table], new: list[Table], place: int, contents: tuple[Contents, Contents], how: bool
) -> ChangeSpread:
    """How the edit of the model at `place` spreads."""
    before, after = contents
    known = known_types(old)
    now = {**known, **{name: dict.fromkeys(found[0], "BIGINT") for name, found in after.items()}}
    columns = {name: tuple(types) for name, types in now.items()}
    columns[new[place].name] = tuple(
        dict.fromkeys((*known[old[place].name], *now[old[place].name]))
    )
    models = []
    for number, table in enumerate(new):
        if not table.query or number < place:
            continue
        sides = (old[number].query, table.query) if number == place else (table.query,)
        trees = [sqlglot.parse_one(query, dialect="duckdb") for query in sides]
        read = {f"{t.db}.{t.name}" for root in trees for t in root.find_all(exp.Table) if t.db}
        is_edited = number == place
        before_side = partial(definition, old[number].query, known, qualified=how)
        models.append(
            LineageModel(
                table.name,
                parents=tuple(sorted(read)),
                change="direct" if is_edited else "indirect",
                after=partial(definition, table.query, now, qualified=how),
                before=before_side if is_edited else None,
                columns_before=tuple(before[table.name][0]) if is_edited else None,
                columns_after=tuple(after[table.name][0]) if is_edited else None,
            )
        )
    return spread_changes(ChangedProject(tuple(models), columns=columns))


def missed(
    found: ChangeSpread, new: list[Table], before: Contents, after: Contents, totals: Counter[str]
) -> list[str]:
    """What differs and was not predicted."""
    bad = []
    queries = {table.name: table.query for table in new}
    for name, reach in found.reached.items():
        if name not in after:  # it cannot be built any more
            totals["broken"] += 1
            read = [other for other in found.reached if f"{other} " in f"{queries[name]} "]
            if not reach.any_bits and all(other in after for other in read):
                bad.append(f"{name} cannot be built")
            continue
        (listed, old), (other, now) = before[name], after[name]
        totals["models"] += 1
        totals["models reached"] += bool(reach.any_bits)
        if reach.rows:
            continue
        bad += [f"{name}.{column} comes or goes" for column in {*listed} ^ {*other}
                if not reach.columns.get(column)]  # fmt: skip
        kept = [column for column in listed if column in other and not reach.bits_of(column)]
        totals["columns kept"] += len(kept)
        if bag(listed, old, kept) != bag(other, now, kept):
            bad.append(f"{name}: all of {kept} were to stay")
        if not reach.any_bits and listed != other:
            bad.append(f"{name}: its columns were to stay")
    return bad


def tried(random: Random, warehouse: Warehouse, totals: Counter[str]) -> None:
    """One edit of one model."""
    old = dag(random)
    place = random.randrange(len(SOURCES), len(old) - 1)
    query = edited(old[place].query, random)
    if query is None:
        return
    new: list[Any] = [*old]
    new[place] = Table(old[place].name, {}, query)
    warehouse.fill({table.name: source_rows(random, table) for table in SOURCES})
    warehouse.build(old)
    before = warehouse.content(old)
    failed = warehouse.rebuild(new[place:])
    if old[place].name in failed:
        return  # no query any more
    after = warehouse.content(table for table in new if table.name not in failed)
    totals["edits"] += 1
    for how in (True, False):
        found = spread_of(old, new, place, (before, after), how)
        bad = missed(found, new, before, after, totals)
        text = "\n".join(f"{table.name}: {table.query}" for table in old)
        assert not bad, f"{bad} of {old[place].name} as {query}, qualified: {how}\n{text}"


def test_impact__of_an_edit__misses_nothing_that_differs() -> None:
    totals: Counter[str] = Counter()
    warehouse = Warehouse()
    try:
        for seed in range(DAGS):
            tried(Random(f"edit {seed}"), warehouse, totals)
    finally:
        warehouse.close()
    print(f"\n{dict(sorted(totals.items()))}")
    # Edits of all kinds were tried, and not everything was predicted.
    assert totals["broken"] > 0
    assert totals["edits"] > DAGS / 3
    assert totals["models reached"] < totals["models"]
    assert totals["columns kept"] > DAGS / 2
