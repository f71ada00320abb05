"""Review and apply beside SQLMesh's own commands, on one Spark project, in turns.

    python -m tests.benchmarks.bench_life [TURNS]

Machines are shared and noisy, so the ratio is what counts. SQLMesh's side runs with Spark as pip
installs it, and once more with what the image's Spark has: our class-data archive, which halves the
start of Java.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.comparison import Comparison, print_table
from tests.benchmarks.timed_command import ROOT, Taken, run_ci_bot, run_sqlmesh, time_command
from tests.integration.test_review import REVENUE
from tests.projects import CONFIG, Shop, write_shop

PROD_UNTIL = "2024-01-11"
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
REVIEW_GOAL = 0.28
APPLY_GOAL = 0.40


def change(shop: Shop, factor: int) -> None:
    """A breaking change of the incremental model, new in each run, so that it is really built."""
    path = shop.project / "models/orders.sql"
    text = path.read_text(encoding="utf-8")
    start = text.index("CAST(customer_id * ") + len("CAST(customer_id * ")
    end = text.index(" AS INT) AS amount")
    path.write_text(f"{text[:start]}{factor}{text[end:]}", encoding="utf-8")


def build_prod(shop: Shop) -> Taken:
    """SQLMesh makes prod of the project."""
    build = [sys.executable, "-m", "tests.projects.build_prod", str(shop.project), PROD_UNTIL]
    return time_command(build, ROOT)


def write_life_shop(home: Path) -> Shop:
    """A project with prod built, as people have it: the shop's own options make Java start faster
    in tests."""
    shop = write_shop(home, CONFIG.replace(FAST_JAVA, ""))
    build_prod(shop)
    return shop


def compare_life(turns: int) -> list[Comparison]:
    """A review and an apply of four models, each beside two Sparks of SQLMesh's side."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-bench-"))
    try:
        shop = write_life_shop(home)
        shop.edit(
            "models/revenue.sql", REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS orders"
        )
        shop.edit("tests/test_revenue.yaml", "revenue: 15}", "revenue: 15, orders: 2}")
        (home / "no-settings").mkdir()
        sparks = {
            "": Peer(shop, "pr_2", 1, {"SPARK_CONF_DIR": str(home / "no-settings")}),
            ", with our class-data archive": Peer(shop, "pr_3", 2, {}),
        }
        rows = []
        before = os.getloadavg()[0]
        review = run_ci_bot("review", "--project", ".", "--environment", "pr_1", "--format", "json")
        reviews = [
            (time_command(review, shop.project), *(peer.explain() for peer in sparks.values()))
            for _ in range(turns)
        ]
        load = (before, os.getloadavg()[0])
        for place, spark in enumerate(sparks, 1):
            rows.append(
                Comparison(
                    "review, 4 models",
                    f"`sqlmesh plan --explain`{spark}",
                    REVIEW_GOAL,
                    [turn[0] for turn in reviews],
                    [turn[place] for turn in reviews],
                    load,
                )
            )
        applies = [
            (apply_change(shop, turn), *(peer.apply(turn) for peer in sparks.values()))
            for turn in range(turns)
        ]
        load = (load[1], os.getloadavg()[0])
        for place, spark in enumerate(sparks, 1):
            rows.append(
                Comparison(
                    "apply, diff and verification, 4 models",
                    f"plan, then table_diff{spark}",
                    APPLY_GOAL,
                    [turn[0] for turn in applies],
                    [turn[place] for turn in applies],
                    load,
                )
            )
        return rows
    finally:
        shutil.rmtree(home, ignore_errors=True)


def apply_change(shop: Shop, turn: int) -> Taken:
    change(shop, 100 + 3 * turn)
    command = run_ci_bot("apply", "--project", ".", "--environment", "pr_1")
    return time_command(command, shop.project)


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

    def _time(self, *command: str) -> Taken:
        return time_command(run_sqlmesh(*command), self.shop.project, variables=self.variables)

    def explain(self) -> Taken:
        """A plan without an apply."""
        return self._time("plan", self.environment, "--explain")

    def plan(self, number: int) -> Taken:
        """A plan that is applied."""
        change(self.shop, 100 + 3 * number + self.turn)
        options = ("--auto-apply", "--no-prompts", "--skip-tests")
        return self._time("plan", self.environment, *options)

    def apply(self, number: int) -> Taken:
        """The same, and what differs from prod."""
        planned = self.plan(number)
        models = ("-m", "shop.orders", "-m", "shop.revenue", "-m", "shop.top_customers")
        return planned + self._time("table_diff", f"prod:{self.environment}", *models)


if __name__ == "__main__":
    print_table(compare_life(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
