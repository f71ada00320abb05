"""A review of two edits where very many models are in prod, beside `sqlmesh plan --explain`.

    python -m tests.benchmarks.bench_estate [MODELS [TURNS]]

The state says of every model that prod has it; no table is built, since neither side looks at one.
One edited model is read by nearly half of the others, directly or not, the other one by none. The
CLI is timed with a cold cache and with a warm one; a review keeps none, and is timed once more with
what a run on the default branch has noted of the files (`cache: base`). Prints the comparisons, the
most memory that a process of ours held, on a laptop and as an action on GitHub's stand-in, and the
phases of the last review.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlmesh.core.context import Context
from sqlmesh.utils.date import to_timestamp

from ci_bot.bot.cli.session import open_worker_client_on_laptop
from ci_bot.bot.worker_client.base_branch import refresh_base_cache_by_worker
from ci_bot.host import make_process_machine
from ci_bot.protocol.base import Failure
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project.base_branch import promote_base_project_as_prod
from tests.benchmarks.bench_large import write_models
from tests.benchmarks.comparison import Comparison, print_table
from tests.benchmarks.timed_command import (
    Taken,
    read_peak_mb,
    run_ci_bot,
    run_sqlmesh,
    say,
    time_command,
)
from tests.e2e.scene import Scene
from tests.github_standin.parts import locate
from tests.github_standin.standin import GitHubStandin
from tests.maven import parts_directory
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.security.forked import forked

UNTIL = "2024-01-11"
_CAST = "CAST(t0.customer_id AS INT) AS c0"
REVIEW_GOAL = 0.20
CACHED_GOAL = 0.15
_POLL_SECONDS = 0.1
CACHE = ".ci-bot-cache"


def with_prod(home: Path, models: int) -> Shop:
    """The project with prod in its state."""
    shop = write_duck_shop(home)
    write_models(shop, models)
    forked(lambda: _promote(shop), home)
    return shop


def edit(shop: Shop) -> None:
    """Two models compute one column otherwise: one is read by many, the other by none."""
    files = sorted((shop.project / "models").glob("layer_*/m*.sql"))
    for path in (files[len(files) // 3], files[-1]):
        name = str(path.relative_to(shop.project))
        shop.edit(name, _CAST, _CAST.replace("customer_id", "customer_id + 1"))


def _promote(shop: Shop) -> None:
    context = Context(paths=[str(shop.project)])
    state = sqlmesh_compat.make_throwaway_sqlmesh_state(shop.state, context)
    sqlmesh_compat.give_sqlmesh_state(context, state)
    promote_base_project_as_prod(context, state, to_timestamp(UNTIL))
    state.close()


def _note(shop: Shop) -> None:
    """What a sweep on the default branch writes."""
    os.chdir(shop.project)
    machine = make_process_machine()
    with open_worker_client_on_laptop(machine, (".",), None, "", (), timeout_minutes=60) as client:
        found = refresh_base_cache_by_worker(client, CACHE, owner_name="benchmark")
    if isinstance(found, Failure) or not found.files:
        raise RuntimeError(f"nothing was noted: {found}")


def as_action(shop: Shop, home: Path) -> float:
    """The most memory in MB that the bot holds where GitHub asks for the review of the edits."""
    parts = locate(parts_directory(os.environ))
    most = 0.0

    def watch(pid: int) -> None:
        nonlocal most
        with suppress(OSError):
            while now := read_peak_mb(pid):
                most = max(most, now)
                time.sleep(_POLL_SECONDS)

    (home / "github").mkdir(parents=True)
    with GitHubStandin(parts, home / "github") as standin:
        change = Scene(standin, shop, home).open("edits", edit)
        outcome = change.review(keep=False, meanwhile=watch)
    if "report-path" not in outcome.outputs:
        raise RuntimeError(f"the action failed:\n{outcome.stdout[-4_000:]}")
    return most


@dataclass(frozen=True)
class Estate:
    """What reviews of a large project took.

    Attributes:
        comparisons: Beside `plan --explain` with a cold cache and with a warm one.
        action_mb: The most memory of the bot as an action.
        bot_mb: The most memory of the bot on a laptop.
        worker_mb: The most memory of the worker.
        phases: Seconds of the last review, by phase.
    """

    comparisons: list[Comparison]
    action_mb: float
    bot_mb: float
    worker_mb: float
    phases: Mapping[str, float]


def compare_estate(models: int, turns: int) -> Estate:
    """Two edits in a project of so many models, with and without the base cache."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-estate-"))
    try:
        shop, out = with_prod(home, models), home / "out"
        action_mb = as_action(shop, home / "action")
        edit(shop)
        forked(lambda: _note(shop), home)
        explain = run_sqlmesh("plan", "pr_1", "--explain", "--no-prompts", "--skip-tests")
        review = run_ci_bot("review", "--environment", "pr_1", "--output", str(out))
        before = os.getloadavg()[0]
        sides: dict[str, list[Taken]] = {"cached": [], "own": [], "cold": [], "warm": []}
        for _ in range(turns):
            # A No-Go is an answer.
            cached = [*review, "--cache-dir", CACHE]
            sides["cached"].append(time_command(cached, shop.project, codes=(0, 1)))
            sides["own"].append(time_command(review, shop.project, codes=(0, 1)))
            shutil.rmtree(shop.project / ".cache", ignore_errors=True)
            for side in ("cold", "warm"):
                sides[side].append(time_command(explain, shop.project))
        load = (before, os.getloadavg()[0])
        work = f"review, {models:,} models in prod, 2 edited"
        rows = [
            Comparison(
                f"{work}{how}",
                f"`sqlmesh plan --explain`, {cache} cache",
                goal,
                sides[side],
                sides[cache],
                load,
            )
            for side, how, goal in (
                ("own", "", REVIEW_GOAL),
                ("cached", ", `cache: base`", CACHED_GOAL),
            )
            for cache in ("cold", "warm")
        ]
        return Estate(
            rows,
            action_mb,
            max(run.first_mb for run in sides["own"]),
            max(run.most_mb for run in sides["own"]),
            json.loads((out / "report.json").read_text("utf-8"))["timings"],
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def print_estate(estate: Estate) -> None:
    print_table(estate.comparisons)
    say(
        f"memory: the bot {estate.bot_mb:.0f} MB on a laptop, {estate.action_mb:.0f} MB as an "
        f"action, the worker {estate.worker_mb:.0f} MB"
    )
    say(", ".join(f"{name} {seconds:.1f} s" for name, seconds in estate.phases.items()))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    print_estate(
        compare_estate(numbers[0] if numbers else 1_000, numbers[1] if len(numbers) > 1 else 3)
    )
