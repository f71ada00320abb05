"""Two readers of SQL on the same pairs: where running both queries shows a difference, the column
impact has an own change that allows it. Neither knows of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ci_bot.worker.duckdb_trials import FoundDuckdbExample
from ci_bot.worker.sql.lineage.propagation import OwnPart, list_own_changes
from ci_bot.worker.sql.lineage.sources import LineageModel, ModelDefinition
from tests.oracle.fuzzing import FULL
from tests.query_pairs.judge import execution_of, models_of
from tests.query_pairs.pairs import QueryPair, load_pairs

# They change no value: without a failure the rows are the same, and their order has no meaning.
ORDERS_THAT_ONLY_FAIL = {
    "failing_parts.order_by_text_as_number",
    "failing_parts.order_by_sum_with_text",
    "failing_parts.sort_by_text_as_number",
    "failing_parts.cluster_by_division",
}
STEP = 1 if FULL else 12


def list_parts(pair: QueryPair) -> list[OwnPart]:
    """What the column impact says that the pair's edit changes."""
    old, new = (
        ModelDefinition(rendered=model.render_query(needs_optimization=True))
        for model in models_of(pair)
    )
    known = {table.name: tuple(table.types) for table in pair.tables}
    edited = LineageModel(
        "db.m", parents=tuple(sorted(known)), change="direct", before=lambda: old, after=lambda: new
    )
    return list_own_changes(edited, known)


def find_unexplained(example: FoundDuckdbExample, parts: Sequence[OwnPart]) -> set[str]:
    """The columns in which the results differ, and for which no part of the impact allows it."""
    if any(part.column is None and part.how != "reordered" for part in parts):
        return set()
    explained = {(part.column or "").lower() for part in parts}
    if example.differing:
        return {column.lower() for column in example.differing} - explained
    # Rows that have nothing in common, or another number of them, which takes a part about rows.
    counts = [sum(side is not None for side in sides) for sides in zip(*example.rows, strict=True)]
    return set() if parts and counts[0] == counts[1] else {"another number of rows"}


@pytest.mark.parametrize(
    "pair",
    [pair for pair in load_pairs() if pair.expected == "differs"][::STEP],
    ids=lambda pair: pair.name,
)
def test_impact__allows_what_running_the_pair_shows(pair: QueryPair) -> None:
    found = execution_of(pair)

    if found.example is not None:
        assert find_unexplained(found.example, list_parts(pair)) == set()
    else:
        assert list_parts(pair) != []


def test_impact__has_a_change_for_each_pair_that_differs() -> None:
    pairs = [pair for pair in load_pairs() if pair.expected == "differs"]

    assert {pair.name for pair in pairs if not list_parts(pair)} == ORDERS_THAT_ONLY_FAIL


@pytest.mark.parametrize("columns", ["*", "q.*"])
def test_impact__sees_the_names_that_a_struct_of_all_columns_keeps(columns: str) -> None:
    (table,) = load_pairs()[0].tables[:1]
    column = next(iter(table.types))
    base, head = (
        f"SELECT TO_JSON(STRUCT({columns})) AS v FROM (SELECT {column} AS {name} FROM {table.name}) AS q"
        for name in ("x", "y")
    )

    assert [p.column for p in list_parts(QueryPair("s", base, head, "differs", (table,)))] == ["v"]
