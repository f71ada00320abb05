"""Cleanups with verification beside `sqlmesh invalidate --sync`, in pairs.

    python -m tests.benchmarks.bench_cleanup [PAIRS]

Prod and one environment for each side are built once and put back for each pair; who is first
changes from pair to pair. Prints wall and processor seconds of both, and the ratios of the medians.
On a busy machine the processor seconds say more than the clock.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.bench_life import (
    FAST_JAVA,
    PROD_UNTIL,
    ROOT,
    Peer,
    change,
    our_apply,
    ours,
    theirs,
)
from tests.benchmarks.taking import Taken, say, taken
from tests.projects import CONFIG, write_shop

GOAL = 0.9
OURS = ours("cleanup", "--project", ".", "--environment", "pr_1")
THEIRS = theirs("invalidate", "pr_2", "--sync")


def main(pairs: int) -> None:
    """Builds, then measures; prints one row per pair and one for the medians."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-cleanup-"))
    kept = home.with_name(f"{home.name}-kept")
    try:
        shop = write_shop(home, CONFIG.replace(FAST_JAVA, ""))
        taken(
            [sys.executable, "-m", "tests.projects.build_prod", str(shop.project), PROD_UNTIL], ROOT
        )
        change(shop, 20)
        our_apply(shop, 0)
        Peer(shop, "pr_2", 1, {}).plan(0)
        shutil.copytree(home, kept)
        both: dict[str, list[Taken]] = {"ours": [], "theirs": []}
        for number in range(pairs):
            for side in sorted(both, reverse=bool(number % 2)):
                shutil.rmtree(home)
                shutil.copytree(kept, home)
                both[side].append(taken(OURS if side == "ours" else THEIRS, shop.project))
            say(f"pair {number + 1:>2}: {_shown(both['ours'][-1])} | {_shown(both['theirs'][-1])}")
        mine, other = _median(both["ours"]), _median(both["theirs"])
        say(
            f"median : {_shown(mine)} | {_shown(other)}; {mine.wall / other.wall:.2f} of the time, "
            f"{mine.processor / other.processor:.2f} of the processors' (goal {GOAL})"
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)


def _median(found: list[Taken]) -> Taken:
    return Taken(
        statistics.median(one.wall for one in found),
        statistics.median(one.processor for one in found),
    )


def _shown(one: Taken) -> str:
    return f"{one.wall:6.1f} s, {one.processor:5.1f} s of processors"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
