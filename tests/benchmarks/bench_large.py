"""A review of very many models beside `sqlmesh plan --explain`, without a prod, cold caches.

    python -m tests.benchmarks.bench_large [MODELS [RUNS]]

Every model is new, as in the first review of a project. Prints wall seconds and their ratio, the
share of the rules in ours, and how large the comment is. With 5,000 models only ours is timed unless RUNS is given.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.timed_command import run_ci_bot, run_sqlmesh, time_command
from tests.projects import Shop, write_shop

FAN_IN = 3


def write_models(shop: Shop, count: int) -> None:
    """A layered project: every model reads up to three of the layer below."""
    width = max(10, int(count**0.5))
    for number in range(count):
        layer, place = divmod(number, width)
        below = [
            f"shop.m{(layer - 1) * width + (place + step) % width:05}" for step in range(FAN_IN)
        ]
        reads = below if layer else ["shop.revenue"]
        columns = ",\n  ".join(f"CAST(t0.customer_id AS INT) AS c{column}" for column in range(8))
        joins = "\n".join(
            f"LEFT JOIN {name} AS t{index} ON t0.customer_id = t{index}.customer_id"
            for index, name in enumerate(reads)
            if index
        )
        shop.write(
            f"models/layer_{layer:03}/m{number:05}.sql",
            f"MODEL (name shop.m{number:05}, kind FULL, grain customer_id);\n\n"
            f"SELECT\n  CAST(t0.customer_id AS INT) AS customer_id,\n  {columns}\n"
            f"FROM {reads[0]} AS t0\n{joins}\n",
        )


def forget(shop: Shop) -> None:
    """Neither side finds anything of an earlier run."""
    for path in (shop.project / ".cache", shop.state, shop.warehouse, shop.root / "metastore"):
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


def main(models: int, runs: int, *, beside: bool) -> None:
    home = Path(tempfile.mkdtemp(prefix="ci-bot-large-"))
    try:
        shop = write_shop(home)
        write_models(shop, models)
        left, right = [], []
        comment = home / "out"
        for _ in range(runs):
            forget(shop)
            left.append(
                time_command(
                    run_ci_bot("review", "--environment", "pr_1", "--output", str(comment)),
                    shop.project,
                    codes=(0, 1),  # 1 is a No-Go, which is an answer
                ).wall
            )
            if beside:
                forget(shop)
                right.append(
                    time_command(
                        run_sqlmesh("plan", "pr_1", "--explain", "--no-prompts", "--skip-tests"),
                        shop.project,
                    ).wall
                )
        mine = statistics.median(left)
        line = f"{models} models, review: {mine:.1f} s"
        if right:
            theirs_seconds = statistics.median(right)
            line += f", plan --explain: {theirs_seconds:.1f} s, ratio {mine / theirs_seconds:.2f}"
        print(line)
        spent = json.loads((comment / "report.json").read_text("utf-8"))["timings"]["rules"]
        print(f"rules: {spent:.1f} s, {100 * spent / left[-1]:.1f} % of the review's time")
        print(f"report.md: {(comment / 'report.md').stat().st_size:,} bytes")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    size = numbers[0] if numbers else 1_000
    main(size, numbers[1] if len(numbers) > 1 else 1, beside=size <= 1_000 or len(numbers) > 1)
