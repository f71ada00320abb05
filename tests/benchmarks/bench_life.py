"""Review, apply and cleanup beside SQLMesh's own commands, on one Spark project, in one run.

    python -m tests.benchmarks.bench_life [RUNS]

Prints medians of wall seconds and their ratio. Machines are shared and noisy, so the two sides
take turns, and the ratio is what counts.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ci_bot.worker.process.java import java_environment
from tests.integration.test_review import REVENUE
from tests.projects import CONFIG, Shop, write_shop

ROOT = Path(__file__).parent.parent.parent
PROD_UNTIL = "2024-01-11"
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "


def timed(command: list[str], cwd: Path, *, codes: tuple[int, ...] = (0,)) -> float:
    """Wall seconds of a command that may end with one of `codes`; its output is thrown away.

    Raises:
        RuntimeError: the command failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment |= java_environment(environment, python=sys.executable)
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode not in codes:
        raise RuntimeError(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return seconds


def ours(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ci_bot", *arguments]


def theirs(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("sqlmesh")), *arguments]


def change(shop: Shop, factor: int) -> None:
    """A breaking change of the incremental model, new in each run, so that it is really built."""
    path = shop.project / "models/orders.sql"
    text = path.read_text(encoding="utf-8")
    start = text.index("CAST(customer_id * ") + len("CAST(customer_id * ")
    end = text.index(" AS INT) AS amount")
    path.write_text(f"{text[:start]}{factor}{text[end:]}", encoding="utf-8")


def pairs(
    runs: int, one: Callable[[int], float], other: Callable[[int], float]
) -> tuple[float, float]:
    """The medians of two things that take turns."""
    left, right = [], []
    for number in range(runs):
        left.append(one(number))
        right.append(other(number))
    return statistics.median(left), statistics.median(right)


def main(runs: int) -> None:
    """Builds prod, then measures; prints one row per comparison."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-bench-"))
    try:
        # As people have it: the shop's own options make Java start faster in tests.
        shop = write_shop(home, CONFIG.replace(FAST_JAVA, ""))
        timed(
            [sys.executable, "-m", "tests.projects.build_prod", str(shop.project), PROD_UNTIL], ROOT
        )
        shop.edit(
            "models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS orders"
        )
        shop.edit("tests/test_revenue.yaml", "revenue: 15}", "revenue: 15, orders: 2}")
        project = shop.project
        rows = [
            (
                "review | plan --explain",
                0.5,
                *pairs(
                    runs,
                    lambda _: timed(
                        ours(
                            "review", "--project", ".", "--environment", "pr_1", "--format", "json"
                        ),
                        project,
                    ),
                    lambda _: timed(theirs("plan", "pr_1", "--explain"), project),
                ),
            ),
            (
                "apply + diff + verify | plan, then table_diff",
                0.5,
                *pairs(runs, lambda n: our_apply(shop, n), lambda n: their_apply(shop, n)),
            ),
            (
                "cleanup + verification | invalidate --sync",
                0.9,
                *pairs(runs, lambda n: our_cleanup(shop, n), lambda n: their_cleanup(shop, n)),
            ),
        ]
        print(f"{'work (ours | SQLMesh)':<50}{'ours s':>8}{'theirs s':>10}{'ratio':>8}{'goal':>7}")
        for name, goal, left, right in rows:
            print(f"{name:<50}{left:>8.1f}{right:>10.1f}{left / right:>8.2f}{goal:>7.2f}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def our_apply(shop: Shop, number: int) -> float:
    change(shop, 100 + 2 * number)
    return timed(ours("apply", "--project", ".", "--environment", "pr_1"), shop.project)


def their_plan(shop: Shop, number: int) -> float:
    change(shop, 101 + 2 * number)
    plan = theirs("plan", "pr_2", "--auto-apply", "--no-prompts", "--skip-tests")
    return timed(plan, shop.project)


def their_apply(shop: Shop, number: int) -> float:
    planned = their_plan(shop, number)
    models = ("-m", "shop.orders", "-m", "shop.revenue", "-m", "shop.top_customers")
    return planned + timed(theirs("table_diff", "prod:pr_2", *models), shop.project)


def our_cleanup(shop: Shop, number: int) -> float:
    """Of the environment that the last apply made, or one that is made anew first."""
    if number:
        our_apply(shop, 50 + number)
    return timed(ours("cleanup", "--project", ".", "--environment", "pr_1"), shop.project)


def their_cleanup(shop: Shop, number: int) -> float:
    if number:
        their_plan(shop, 50 + number)
    return timed(theirs("invalidate", "pr_2", "--sync"), shop.project)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
