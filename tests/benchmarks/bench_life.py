"""Review, apply and cleanup beside SQLMesh's own commands, on one Spark project, in one run.

    python -m tests.benchmarks.bench_life [RUNS]

Prints medians of wall seconds and their ratios. Machines are shared and noisy, so the sides take
turns, and the ratio is what counts. SQLMesh's side runs with Spark as pip installs it, and once more
with what the image's Spark has: our class-data archive, which halves the start of Java.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_bot.worker.runtime.java import find_java_environment
from tests.integration.test_review import REVENUE
from tests.projects import CONFIG, Shop, write_shop

ROOT = Path(__file__).parent.parent.parent
PROD_UNTIL = "2024-01-11"
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "


def timed(
    command: list[str],
    cwd: Path,
    *,
    codes: tuple[int, ...] = (0,),
    variables: Mapping[str, str] | None = None,
) -> float:
    """Wall seconds of a command that may end with one of `codes`; its output is thrown away.

    Raises:
        RuntimeError: the command failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(variables or {})}
    environment |= find_java_environment(environment, python=sys.executable)
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


def turns(runs: int, *sides: Callable[[int], float]) -> list[float]:
    """The medians of things that take turns."""
    taken = [[side(number) for side in sides] for number in range(runs)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


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
        (home / "no-settings").mkdir()
        by_pip = Peer(shop, "pr_2", 1, {"SPARK_CONF_DIR": str(home / "no-settings")})
        in_image = Peer(shop, "pr_3", 2, {})
        asked = ours("review", "--project", ".", "--environment", "pr_1", "--format", "json")
        rows = {
            "review | plan --explain": turns(
                runs, lambda _: timed(asked, shop.project), by_pip.explain, in_image.explain
            ),
            "apply + diff + verify | plan, then table_diff": turns(
                runs, lambda n: our_apply(shop, n), by_pip.apply, in_image.apply
            ),
            "cleanup + verification | invalidate --sync": turns(
                runs, lambda n: our_cleanup(shop, n), by_pip.cleanup, in_image.cleanup
            ),
        }
        print(
            f"{'work (ours | SQLMesh)':<47}{'ours s':>8}"
            f"{'theirs s':>10}{'ratio':>7}{'in our Spark s':>16}{'ratio':>7}"
        )
        for name, (left, right, quick) in rows.items():
            print(
                f"{name:<47}{left:>8.1f}{right:>10.1f}{left / right:>7.2f}"
                f"{quick:>16.1f}{left / quick:>7.2f}"
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def our_apply(shop: Shop, number: int) -> float:
    change(shop, 100 + 3 * number)
    return timed(ours("apply", "--project", ".", "--environment", "pr_1"), shop.project)


def our_cleanup(shop: Shop, number: int) -> float:
    """Of the environment that the last apply made, or one that is made anew first."""
    if number:
        our_apply(shop, 50 + number)
    return timed(ours("cleanup", "--project", ".", "--environment", "pr_1"), shop.project)


@dataclass(frozen=True)
class Peer:
    """SQLMesh's own commands, on an environment of their own.

    Attributes:
        turn: Which of three changes is theirs, so that nobody finds a table built.
        variables: What they run with beside the machine's.
    """

    shop: Shop
    environment: str
    turn: int
    variables: Mapping[str, str]

    def _timed(self, *command: str) -> float:
        return timed(theirs(*command), self.shop.project, variables=self.variables)

    def explain(self, number: int) -> float:
        """A plan without an apply."""
        return self._timed("plan", self.environment, "--explain")

    def plan(self, number: int) -> float:
        """A plan that is applied."""
        change(self.shop, 100 + 3 * number + self.turn)
        options = ("--auto-apply", "--no-prompts", "--skip-tests")
        return self._timed("plan", self.environment, *options)

    def apply(self, number: int) -> float:
        """The same, and what differs from prod."""
        planned = self.plan(number)
        models = ("-m", "shop.orders", "-m", "shop.revenue", "-m", "shop.top_customers")
        return planned + self._timed("table_diff", f"prod:{self.environment}", *models)

    def cleanup(self, number: int) -> float:
        """Of the environment that the last apply made, or one that is made anew first."""
        if number:
            self.plan(50 + number)
        return self._timed("invalidate", self.environment, "--sync")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
