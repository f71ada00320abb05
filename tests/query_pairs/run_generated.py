"""`python -m tests.query_pairs.run_generated OUT --pairs 5000` holds the product against Spark.

Pairs are generated, the product is asked for each, and those that it calls the same are run in one
session of Spark as SQLMesh renders them. OUT lists each that differs, made small.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import monotonic

from sqlglot.errors import SqlglotError
from sqlmesh.utils.errors import SQLMeshError

from tests.query_pairs.generate import (
    TABLES,
    Generated,
    data_sets,
    generate_mix,
    generate_operator_pairs,
    generate_pairs,
)
from tests.query_pairs.judge import Verdict, claim_same, models_of, rendered_text
from tests.query_pairs.on_spark import SparkJudge, open_judge
from tests.query_pairs.pairs import QueryPair

Claim = Callable[[QueryPair], Verdict]
# Spark's modes and the data sets: all rows at once are enough for what goes row by row.
_BY_ROW = (("false", "d0"), ("true", "d1"))
_BY_TABLE = (("false", "d0"), ("true", "d1"), ("false", "d2"), ("false", "d3"))
_ROW_BY_ROW = {"operators", "scalars", "filters", "functions", "names"}
# Steps that are tried to make one pair smaller.
STEPS = 300


@dataclass(frozen=True)
class Wrong:
    """A pair that is called the same and differs."""

    name: str
    how: str
    texts: tuple[str, str]
    rendered: tuple[str, str]

    def __str__(self) -> str:
        lines = [f"- {self.name}: {self.how}", *(f"  - `{text}`" for text in self.texts)]
        return "\n".join([*lines, *(f"  - runs as `{text}`" for text in self.rendered)])


@dataclass
class Findings:
    """How the pairs came out, and those that are called the same and are not.

    `failing` are those of which one side only runs: what it gives is not another result. On the
    `crashing` ones the product itself fails.
    """

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    failing: list[Wrong] = field(default_factory=list)
    crashing: list[Wrong] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items()))
        lines = [f"{self.counts.total()} pairs: {counts}", ""]
        for title, pairs in (
            ("Differ", self.wrong),
            ("The product fails", self.crashing),
            ("One side fails", self.failing),
        ):
            lines += [f"## {title} ({len(pairs)})", "", *map(str, pairs), ""]
        return "\n".join(lines)


class GeneratedRun:
    """The tables of the generator, one database for each data set, and what happens to a pair."""

    def __init__(self, judge: SparkJudge, claim: Claim = claim_same) -> None:
        self._judge, self._claim = judge, claim
        judge.set_ansi("false")
        for number, data in enumerate(data_sets()):
            judge.use_database(f"d{number}")
            judge.create_tables(TABLES, data, kept=True)

    def check(self, generated: Generated) -> str:
        """What becomes of a pair: `not parsed`, `not known`, `one text`, `same` or `not run`.

        Of what is called the same and is not: `differs: ` and how, or `fails: ` and which side; if
        the product itself fails, `crashes: ` and on what.
        """
        try:
            if self._claim(generated.pair) != "same":
                return "not known"
            base, head = _rendered(generated.pair)
        except (SqlglotError, SQLMeshError):
            return "not parsed"
        except Exception as error:  # the others are still to be checked
            return f"crashes: {type(error).__name__}"
        if base == head:
            return "one text"
        return self._compare(base, head, by_row=generated.pair.name.split()[0] in _ROW_BY_ROW)

    def _compare(self, base: str, head: str, *, by_row: bool) -> str:
        ran = False
        for mode, database in _BY_ROW if by_row else _BY_TABLE:
            self._judge.set_ansi(mode)
            self._judge.use_database(database)
            first, second = self._judge.run(base), self._judge.run(head)
            how = first.differs_from(second)
            ran = ran or not (first.error or second.error)
            if how == "error":
                return f"fails: {first.error or 'runs'}, {second.error or 'runs'}"
            if how:
                return f"differs: {how}"
        return "same" if ran else "not run"

    def shrink(self, generated: Generated, how: str) -> Generated:
        """The smallest pair that still is called the same and differs in the same way."""
        steps = STEPS
        while steps > 0:
            for smaller in generated.smaller():
                steps -= 1
                if steps < 0 or self.check(smaller) == how:
                    break
            else:
                return generated
            generated = generated if steps < 0 else smaller
        return generated

    def run(self, pairs: Iterable[Generated], *, called_same: int | None = None) -> Findings:
        """Checks the pairs, at most until so many were called the same."""
        found = Findings()
        for generated in pairs:
            answer = self.check(generated)
            kind, _, how = answer.partition(": ")
            found.counts[kind] += 1
            if how:
                small = self.shrink(generated, answer).pair
                texts = (small.base, small.head)
                wrong = Wrong(generated.pair.name, how, texts, _rendered(small))
                by_kind = {"differs": found.wrong, "crashes": found.crashing}
                by_kind.get(kind, found.failing).append(wrong)
            if called_same is not None and found.counts["same"] + found.counts["differs"] >= (
                called_same
            ):
                break
        return found


def _rendered(pair: QueryPair) -> tuple[str, str]:
    base, head = models_of(pair)
    return rendered_text(base), rendered_text(head)


def _told(pairs: Iterable[Generated], minutes: float) -> Iterator[Generated]:
    """The pairs while there is time, with a line on standard error now and then."""
    end = monotonic() + 60 * minutes
    for number, pair in enumerate(pairs):
        if monotonic() > end:
            print(f"the time is over after {number} pairs", file=sys.stderr)
            return
        if number % 250 == 249:
            print(f"{number + 1} pairs", file=sys.stderr, flush=True)
        yield pair


def main() -> None:
    """Fails where a pair is called the same and differs, or the product fails on it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30, help="after which no pair is begun")
    parser.add_argument("--operators", action="store_true", help="every pair of operators alone")
    parser.add_argument("--grammars", nargs="*", help="pairs of these alone")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    mix = generate_mix(options.seed, options.pairs)
    pairs: Iterable[Generated] = generate_operator_pairs() if options.operators else mix
    if options.grammars:
        pairs = islice(generate_pairs(options.seed, options.grammars), options.pairs)
    with tempfile.TemporaryDirectory() as directory, open_judge(Path(directory)) as judge:
        found = GeneratedRun(judge).run(_told(pairs, options.minutes))
    options.out.write_text(str(found))
    sys.stdout.write(str(found))
    sys.exit(1 if found.wrong or found.crashing else 0)


if __name__ == "__main__":
    main()
