"""A review of two edits where very many models are in prod, beside `sqlmesh plan --explain`.

    python -m tests.benchmarks.bench_estate [MODELS [RUNS]]

Prod is built for real, on DuckDB, so that the state holds every model. One edited model is read by
nearly half of the others, directly or not, the other one by none. The CLI is timed with a cold cache
and with a warm one; a review keeps none. Prints wall seconds, their ratios, and the phases of ours.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.bench_large import write_models
from tests.benchmarks.bench_life import ours, theirs, timed
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

UNTIL = "2024-01-11"
_CAST = "CAST(t0.customer_id AS INT) AS c0"


def built(home: Path, models: int) -> Shop:
    """The project with prod built, then edited in two places."""
    shop = write_duck_shop(home)
    write_models(shop, models)
    build = ["plan", "--auto-apply", "--no-prompts", "--skip-tests", "--execution-time", UNTIL]
    subprocess.run(theirs(*build), cwd=shop.project, check=True, capture_output=True)
    files = sorted((shop.project / "models").glob("layer_*/m*.sql"))
    for path in (files[len(files) // 3], files[-1]):
        name = str(path.relative_to(shop.project))
        shop.edit(name, _CAST, _CAST.replace("customer_id", "customer_id + 1"))
    return shop


def main(models: int, runs: int) -> None:
    home = Path(tempfile.mkdtemp(prefix="ci-bot-estate-"))
    try:
        shop, out = built(home, models), home / "out"
        explain = theirs("plan", "pr_1", "--explain", "--no-prompts", "--skip-tests")
        review = ours("review", "--environment", "pr_1", "--output", str(out))
        mine, cold, warm = [], [], []
        for _ in range(runs):
            mine.append(timed(review, shop.project, codes=(0, 1)))
            shutil.rmtree(shop.project / ".cache", ignore_errors=True)
            cold.append(timed(explain, shop.project))
            warm.append(timed(explain, shop.project))
        took, first, again = (statistics.median(seconds) for seconds in (mine, cold, warm))
        print(f"{models} models in prod, 2 edited, review: {took:.1f} s")
        print(f"plan --explain, cold cache: {first:.1f} s, ratio {took / first:.2f}")
        print(f"plan --explain, warm cache: {again:.1f} s, ratio {took / again:.2f}")
        phases = json.loads((out / "report.json").read_text("utf-8"))["timings"]
        print(", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items()))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(numbers[0] if numbers else 1_000, numbers[1] if len(numbers) > 1 else 3)
