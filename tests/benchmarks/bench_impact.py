"""What the column impact costs a review of very many models, and how much of the review that is.

    python -m tests.benchmarks.bench_impact [MODELS]

The project of `bench_large` on DuckDB, compared with a base branch, in this process. Once the root
of all models is edited, once every model is. Prints the processor seconds of each phase, which a
busy machine does not lengthen as it does the wall's, and exits 1 where the impact takes more than
five.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ci_bot.protocol.messages import Owner, ReviewRequest, Workplace
from ci_bot.worker.review.review_plan import ReviewPorts, review_plan
from ci_bot.worker.runtime.process import WorkerPhaseClock
from tests.benchmarks.bench_large import write_models
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

GOAL_SECONDS = 5.0


def request_for(home: Path, base: Shop, head: Shop) -> ReviewRequest:
    """A review of `head` against `base`."""
    for name in ("cache", "scratch"):
        (home / name).mkdir()
    return ReviewRequest(
        projects=[str(head.project)],
        workplace=Workplace(
            repository=str(head.project),
            cache_dir=str(home / "cache"),
            scratch_dir=str(home / "scratch"),
        ),
        owner=Owner(name="bench"),
        environment="pr_1",
        baseline="base-branch",
        base_repository=str(base.project),
        base_projects=[str(base.project)],
        changed_files=[],
    )


def edit_root(head: Shop) -> None:
    """One column that every model reads is computed differently."""
    head.edit("models/orders.sql", "CAST(c.customer_id AS INT) AS customer_id", "7 AS customer_id")


def edit_all(head: Shop) -> None:
    """One column of each model is computed differently."""
    for path in sorted((head.project / "models").glob("layer_*/*.sql")):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace("CAST(t0.customer_id AS INT) AS c1", "t0.customer_id + 1 AS c1"),
            encoding="utf-8",
        )


def measured(models: int, edit: Callable[[Shop], None]) -> float:
    """Seconds of the impact in one review."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-impact-"))
    try:
        shops = [write_duck_shop(home / side) for side in ("base", "head")]
        for shop in shops:
            write_models(shop, models)
        edit(shops[1])
        clock = WorkerPhaseClock(now=time.process_time)
        ports = ReviewPorts(clock=clock, progress=lambda *_: None, on_spark_start=lambda: None)
        facts = review_plan(request_for(home, *shops), ports)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    answers = Counter(entry.reached for entry in facts.impact.indirect)
    parts = len(facts.impact.changed) + facts.impact.more_changed
    print(f"{edit.__doc__} {models:,} models, {parts:,} changed parts, indirect: {dict(answers)}")
    print("  " + ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in clock.phases.items()))
    print(f"  the impact's document: {len(facts.impact.to_json()):,} bytes")
    return clock.phases["impact"]


def main(models: int) -> int:
    worst = max(measured(models, edit_root), measured(models, edit_all))
    print(f"impact: at most {worst:.1f} s (goal {GOAL_SECONDS:.0f} s)")
    return int(worst > GOAL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000))
