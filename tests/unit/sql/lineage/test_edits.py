"""An edit of a query: what differs in its result is within the parts that are said to change."""

from __future__ import annotations

from collections import Counter
from random import Random

import duckdb
import pytest
from sqlglot import exp

from ci_bot.worker.sql.lineage.propagation import OwnPart, list_own_changes
from ci_bot.worker.sql.lineage.sources import LineageModel, ModelDefinition
from tests.oracle.fuzzing import FULL
from tests.unit.sql.lineage.dags import dag
from tests.unit.sql.lineage.data import Warehouse, bag, source_rows
from tests.unit.sql.lineage.edits import edited, reworded
from tests.unit.sql.lineage.parts import SOURCES
from tests.unit.sql.lineage.test_data import known_types, tree

EDITS = 10_000 if FULL else 400
KNOWN = known_types(list(SOURCES))


def parts(
    before: str, after: str, known: dict[str, dict[str, str]], *, qualified: bool
) -> list[OwnPart]:
    """What the analysis says that an edit changes."""
    trees = [tree(query, known, qualified=qualified) for query in (before, after)]
    read = {
        f"{table.db}.{table.name}"
        for root in trees
        for table in root.find_all(exp.Table)
        if table.db
    }
    old, new = (ModelDefinition(rendered=root) for root in trees)
    model = LineageModel(
        "m.edited",
        parents=tuple(sorted(read)),
        change="direct",
        before=lambda: old,
        after=lambda: new,
    )
    return list_own_changes(model, {name: tuple(columns) for name, columns in known.items()})


@pytest.mark.parametrize("qualified", [True, False], ids=["qualified", "as written"])
def test_differences__hold_all_that_differs_in_data(qualified: bool) -> None:
    totals: Counter[str] = Counter()
    random = Random(f"edits {qualified}")
    warehouse = Warehouse()
    tried = 0
    try:
        while tried < EDITS // 2:
            tables = dag(random)[:4]
            warehouse.fill({table.name: source_rows(random, table) for table in SOURCES})
            query = tables[3].query
            other = edited(query, random)
            if other is None:
                continue
            try:
                old, new = warehouse.result(query), warehouse.result(other)
            except duckdb.Error:
                continue  # no query any more: nobody can build it
            tried += 1
            found = parts(query, other, KNOWN, qualified=qualified)
            assert not any(part.how == "unknown" for part in found), (query, other)
            rows = any(part.column is None and part.how != "reordered" for part in found)
            changed = {part.column for part in found}
            kept = [name for name in old[0] if name in new[0] and name not in changed]
            # An expression for many columns does not list them: then all of the result changes.
            unlisted = rows and "COLUMNS(" in query
            assert unlisted or {*old[0]} ^ {*new[0]} <= changed, (query, other)
            totals["rows changed" if rows else "rows kept"] += 1
            if not rows:
                assert bag(*old, kept) == bag(*new, kept), (query, other, found)
                totals["columns kept"] += len(kept)
    finally:
        warehouse.close()
    print(f"\n{tried} edits: {dict(sorted(totals.items()))}")
    assert totals["columns kept"] > tried / 2


@pytest.mark.parametrize("qualified", [True, False], ids=["qualified", "as written"])
def test_differences__other_names_and_turned_operands_are_none(qualified: bool) -> None:
    random = Random("reworded")
    tried = 0
    while tried < EDITS // 4:
        query = dag(random)[3].query
        other = reworded(query, random)
        if other is not None:
            tried += 1
            assert parts(query, other, KNOWN, qualified=qualified) == [], (query, other)
