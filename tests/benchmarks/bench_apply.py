"""An apply of many changed models beside SQLMesh's plan and table_diff, on Spark with two slots.

    python -m tests.benchmarks.bench_apply [MODELS [TURNS]]

Half of the models are views and half small tables; each is edited before each turn, so that all are
built anew. Prints where the time of ours goes, and the comparison.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.bench_life import APPLY_GOAL, FAST_JAVA, build_prod
from tests.benchmarks.comparison import Comparison, print_table
from tests.benchmarks.timed_command import Taken, run_ci_bot, run_sqlmesh, say, time_command
from tests.projects import CONFIG, Shop, write_shop

ROWS = 1_000
WIDTH = 10


def write_models(shop: Shop, count: int, factor: int) -> None:
    """The models, with another factor in each of their queries; a layer reads the one below."""
    for number in range(count):
        layer, place = divmod(number, WIDTH)
        source = f"fleet.m{(layer - 1) * WIDTH + place:04}" if layer else "fleet.base"
        kind = "VIEW" if number % 2 else "FULL"
        shop.write(
            f"models/fleet/m{number:04}.sql",
            f"MODEL (name fleet.m{number:04}, kind {kind}, grain id);\n\n"
            "SELECT\n  CAST(s.id AS INT) AS id,\n  CAST(s.place AS INT) AS place,\n"
            f"  CAST(s.id * {factor} AS INT) AS amount,\n  CAST(s.name AS STRING) AS name\n"
            f"FROM {source} AS s\n",
        )


def write_base(shop: Shop) -> None:
    shop.write(
        "models/fleet/base.sql",
        "MODEL (name fleet.base, kind FULL, grain id);\n\n"
        "SELECT\n  CAST(r.id AS INT) AS id,\n  CAST(r.id % 10 AS INT) AS place,\n"
        "  CAST(CONCAT('name ', r.id) AS STRING) AS name\n"
        f"FROM (SELECT EXPLODE(SEQUENCE(1, {ROWS})) AS id) AS r\n",
    )


def apply_all(shop: Shop) -> Taken:
    """Our apply with its evidence; what it printed says where its time goes."""
    command = run_ci_bot("apply", "--environment", "pr_1", "--format", "json")
    return time_command(command, shop.project)


def plan_and_compare(shop: Shop) -> Taken:
    """SQLMesh's plan, and its table_diff of the same models."""
    plan = run_sqlmesh("plan", "pr_2", "--auto-apply", "--no-prompts", "--skip-tests")
    diff = run_sqlmesh("table_diff", "prod:pr_2", "-m", "fleet.m*")
    return time_command(plan, shop.project) + time_command(diff, shop.project)


def format_overhead(document: Mapping[str, object]) -> str:
    """Seconds of an apply's document by phase, those of the batches apart."""
    models = document.get("models")
    batches = sum(model["seconds"] for model in models) if isinstance(models, list) else 0.0
    return f"batches {batches:.1f} (several at a time), phases {document['timings']}"


def compare_applies(models: int, turns: int) -> Comparison:
    """Builds prod, then applies an edit of every model on both sides."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-fleet-"))
    try:
        config = CONFIG.replace(FAST_JAVA, "").replace("local[1]", "local[2]")
        shop = write_shop(home, config)
        write_base(shop)
        write_models(shop, models, 1)
        say(f"prod of {models} models: {build_prod(shop).wall:.1f} s")
        before = os.getloadavg()[0]
        left, right = [], []
        for turn in range(turns):
            write_models(shop, models, 2 * turn + 2)
            left.append(apply_all(shop))
            say(format_overhead(json.loads(left[-1].out)))
            write_models(shop, models, 2 * turn + 3)
            right.append(plan_and_compare(shop))
        return Comparison(
            f"apply and diff, {models} changed models, half of them views upon views, 30 deep",
            "plan, then table_diff",
            APPLY_GOAL,
            left,
            right,
            (before, os.getloadavg()[0]),
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    print_table(
        [compare_applies(numbers[0] if numbers else 300, numbers[1] if len(numbers) > 1 else 1)]
    )
