"""Cleanups with verification beside `sqlmesh invalidate --sync`, in turns.

    python -m tests.benchmarks.bench_cleanup [TURNS]

Prod and one environment for each side are built once and put back for each turn; who is first
changes from turn to turn.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.bench_life import Peer, apply_change, change, write_life_shop
from tests.benchmarks.comparison import Comparison, print_table
from tests.benchmarks.timed_command import Taken, run_ci_bot, run_sqlmesh, time_command

GOAL = 0.75
COMMANDS = {
    "ours": run_ci_bot("cleanup", "--project", ".", "--environment", "pr_1"),
    "theirs": run_sqlmesh("invalidate", "pr_2", "--sync"),
}


def compare_cleanups(turns: int) -> Comparison:
    """A cleanup that is verified, and SQLMesh's invalidation."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-cleanup-"))
    kept = home.with_name(f"{home.name}-kept")
    try:
        shop = write_life_shop(home)
        change(shop, 20)
        apply_change(shop, 0)
        Peer(shop, "pr_2", 1, {}).plan(0)
        shutil.copytree(home, kept)
        before = os.getloadavg()[0]
        both: dict[str, list[Taken]] = {"ours": [], "theirs": []}
        for turn in range(turns):
            for side in sorted(both, reverse=bool(turn % 2)):
                shutil.rmtree(home)
                shutil.copytree(kept, home)
                both[side].append(time_command(COMMANDS[side], shop.project))
        return Comparison(
            "cleanup with verification",
            "`sqlmesh invalidate --sync`",
            GOAL,
            both["ours"],
            both["theirs"],
            (before, os.getloadavg()[0]),
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)


if __name__ == "__main__":
    print_table([compare_cleanups(int(sys.argv[1]) if len(sys.argv) > 1 else 10)])
