"""All comparisons that have a goal, in one run of at most 40 minutes.

    python -m tests.benchmarks.bench_goals OUT.json [WORK ...]

WORK is `life`, `cleanup`, `estate` or `apply`; without one it is all of them, the shortest first.
What would begin after 40 minutes is left out, and said. Prints one table; `write_numbers` writes it
into docs/numbers.md from OUT.json.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.bench_apply import compare_applies
from tests.benchmarks.bench_cleanup import compare_cleanups
from tests.benchmarks.bench_estate import compare_estate, print_estate
from tests.benchmarks.bench_life import compare_life
from tests.benchmarks.comparison import COMPARISONS, Comparison, print_table
from tests.benchmarks.timed_command import say

LIMIT_SECONDS = 40 * 60


def _compare_estate() -> list[Comparison]:
    estate = compare_estate(1_000, 3)
    print_estate(estate)
    return estate.comparisons


WORKS: Mapping[str, Callable[[], list[Comparison]]] = {
    "cleanup": lambda: [compare_cleanups(5)],
    "estate": _compare_estate,
    "life": lambda: compare_life(3),
    "apply": lambda: [compare_applies(300, 1)],
}


def main(out: Path, works: Sequence[str]) -> None:
    started = time.monotonic()
    rows: list[Comparison] = []
    for work in works:
        if time.monotonic() - started > LIMIT_SECONDS:
            say(f"{work} is left out: {LIMIT_SECONDS // 60} minutes have passed")
            continue
        rows += WORKS[work]()
        # After each, so that a run that somebody stops leaves what it has measured.
        out.write_bytes(COMPARISONS.dump_json(rows, indent=1))
    print_table(rows)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= WORKS.keys():
        sys.exit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:] or list(WORKS))
