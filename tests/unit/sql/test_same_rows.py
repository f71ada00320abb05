"""Whatever is proved to give the same rows gives them: thousands of generated pairs on DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from sqlglot import exp

from tests.oracle.fuzzing import FULL
from tests.unit.sql.pairs.bases import base
from tests.unit.sql.pairs.engine import databases, forms, in_duckdb, run
from tests.unit.sql.pairs.misses import MISSES
from tests.unit.sql.pairs.rewriting import REWRITES

NIGHTLY = 24_000
USUAL = 300
RECOGNISED = 0.90
Prover = Callable[[Any, Any, bool], bool]


def proved(before: Any, after: Any, as_written: bool) -> bool:
    old, new = forms(before, after, as_written=as_written)
    return new.proves_same(old)


def rewrites(amount: int) -> Iterator[tuple[str, int, Any, Any]]:
    """Kind, seed and both queries of as many rewrites; each kind has its turn."""
    seed = 0
    while amount > 0:
        for kind, rewrite in REWRITES.items():
            before = base(seed)
            after = rewrite(before.copy(), Random(seed))
            seed += 1
            if after is not None:
                amount -= 1
                yield kind, seed - 1, before, after


def near_misses(amount: int) -> Iterator[tuple[str, int, Any, Any]]:
    """The same of near misses; some are rewritten as well, so that they look another way."""
    seed = 1_000_000
    while amount > 0:
        for kind, miss in MISSES.items():
            random = Random(seed)
            before = base(seed)
            after = miss(before.copy(), random)
            seed += 1
            for _ in range(random.choice([0, 0, 1, 2])):
                rewritten = (
                    random.choice(list(REWRITES.values()))(after.copy(), random) if after else None
                )
                after = rewritten if rewritten is not None else after
            if after is not None:
                amount -= 1
                yield kind, seed - 1, before, after


def differ(connections: list[Any], before: Any, after: Any) -> bool | None:
    """Whether the rows differ on some data; None where a query is not valid."""
    try:
        return any(run(c, in_duckdb(before)) != run(c, in_duckdb(after)) for c in connections)
    except Exception as error:
        if type(error).__module__.startswith(("duckdb", "_duckdb")):
            return None
        raise


@pytest.fixture(scope="module")
def connections() -> Iterator[list[Any]]:
    made = databases()
    yield made
    for connection in made:
        connection.close()


def test_rewrites__are_recognised(connections: list[Any]) -> None:
    met: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for kind, seed, before, after in rewrites(NIGHTLY // 3 if FULL else USUAL // 3):
        # The pairs themselves are right, or nothing here means anything.
        assert differ(connections, before, after) is False, (kind, seed)
        met[kind] += 1
        seen[kind] += proved(before, after, False)
    for kind in REWRITES:
        share = f"{seen[kind] / met[kind]:6.1%}" if met[kind] else "     -"
        print(f"{kind:24}{met[kind]:6} {share}")
    print(f"{'all':24}{met.total():6} {seen.total() / met.total():6.1%}")
    assert seen.total() >= RECOGNISED * met.total()
    assert not FULL or all(seen[kind] >= RECOGNISED * met[kind] for kind in met)


def wrong_proofs(
    connections: list[Any], amount: int, prover: Prover = proved
) -> tuple[list[tuple[str, int]], Counter[str]]:
    """The near misses that are proved and differ, and how many were tried, differ, are proved."""
    wrong: list[tuple[str, int]] = []
    count: Counter[str] = Counter()
    for kind, seed, before, after in near_misses(amount):
        other = differ(connections, before, after)
        if other is None:
            continue
        count["tried"] += 1
        count["differ"] += other
        # Where schemas are not known SQLMesh leaves a query as it is written.
        found = prover(before, after, seed % 3 == 0)
        count["proved"] += found
        if found and other:
            wrong.append((kind, seed))
    return wrong, count


def test_near_misses__are_never_proved_where_they_differ(connections: list[Any]) -> None:
    wrong, count = wrong_proofs(connections, 2 * (NIGHTLY if FULL else USUAL) // 3)
    print(f"near misses: {dict(count)}")

    assert not wrong
    # Where nearly nothing differs, nothing is tried.
    assert count["differ"] > 0.4 * count["tried"]
    assert not FULL or count["tried"] > NIGHTLY / 2


def _by_table_names(before: Any, after: Any, as_written: bool) -> bool:
    """A proof that forgets which occurrence of a table a column is of."""
    return _without_occurrences(before) == _without_occurrences(after)


def _without_occurrences(tree: Any) -> str:
    tree = tree.copy()
    for column in tree.find_all(exp.Column):
        column.set("table", None)
    for source in tree.find_all(exp.Table):
        source.set("alias", None)
    return str(tree.sql())


@pytest.mark.night
def test_mutation__a_proof_without_occurrences_is_caught(connections: list[Any]) -> None:
    wrong, _ = wrong_proofs(connections, USUAL, _by_table_names)

    assert {"other_occurrence"} <= {kind for kind, _ in wrong}
