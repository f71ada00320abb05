"""An apply of many changed models beside SQLMesh's plan and table_diff, on Spark with two slots.

    python -m tests.benchmarks.bench_apply [MODELS [RUNS]]

Half of the models are views and half small tables; each is edited before each run, so that all are
built anew. Prints wall and processor seconds of both sides, which take turns, and where the time of
ours goes. On a busy machine the processor seconds say more than the clock.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.bench_life import FAST_JAVA, PROD_UNTIL, ROOT, ours, theirs
from tests.benchmarks.taking import Taken, say, taken
from tests.projects import CONFIG, Shop, write_shop

GOAL = 0.6
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


def our_apply(shop: Shop) -> Taken:
    return taken(
        ours("apply", "--project", ".", "--environment", "pr_1", "--format", "json"), shop.project
    )


def their_apply(shop: Shop) -> tuple[Taken, Taken]:
    """SQLMesh's plan, and its table_diff of the same models."""
    plan = theirs("plan", "pr_2", "--auto-apply", "--no-prompts", "--skip-tests")
    diff = theirs("table_diff", "prod:pr_2", "-m", "fleet.m*")
    return taken(plan, shop.project), taken(diff, shop.project)


def overhead(document: Mapping[str, object]) -> str:
    """Seconds of an apply's document by phase, those of the batches apart."""
    models = document.get("models")
    batches = sum(model["seconds"] for model in models) if isinstance(models, list) else 0.0
    return f"batches {batches:.1f} (several at a time), phases {document['timings']}"


def main(models: int, runs: int) -> None:
    """Builds prod, then measures; prints one row per run and one for the medians."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-fleet-"))
    try:
        config = CONFIG.replace(FAST_JAVA, "").replace("local[1]", "local[2]")
        shop = write_shop(home, config)
        write_base(shop)
        write_models(shop, models, 1)
        build = [sys.executable, "-m", "tests.projects.build_prod", str(shop.project), PROD_UNTIL]
        say(f"prod of {models} models: {taken(build, ROOT).wall:.1f} s")
        left, right = [], []
        for number in range(runs):
            write_models(shop, models, 2 * number + 2)
            mine = our_apply(shop)
            document = json.loads(mine.out)
            say(f"ours      {mine.wall:7.1f} s, {mine.processor:7.1f} s of processors")
            say(f"          {overhead(document)}")
            write_models(shop, models, 2 * number + 3)
            plan, diff = their_apply(shop)
            for name, part in (("plan", plan), ("table_diff", diff)):
                say(f"{name:<10}{part.wall:7.1f} s, {part.processor:7.1f} s of processors")
            left.append(mine)
            right.append(plan + diff)
        wall, processor = (
            statistics.median(getattr(one, what) for one in left)
            / statistics.median(getattr(one, what) for one in right)
            for what in ("wall", "processor")
        )
        say(
            f"{models} models: {wall:.2f} of the time, {processor:.2f} of the processors' (goal {GOAL})"
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 300, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    )
