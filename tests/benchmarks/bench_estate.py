"""A review of two edits where very many models are in prod, beside `sqlmesh plan --explain`.

    python -m tests.benchmarks.bench_estate [MODELS [RUNS]]

The state says of every model that prod has it; no table is built, since neither side looks at one.
One edited model is read by nearly half of the others, directly or not, the other one by none. The
CLI is timed with a cold cache and with a warm one; a review keeps none, and is timed once more with
what a run on the default branch has noted of the files (`cache: base`). Prints medians of wall
seconds and of processor seconds, which a busy machine changes less, their ratios, the most memory
that a process of ours held, on a laptop and as an action on GitHub's stand-in, and the phases of the
last review. With more than 1,000 models the CLI runs only where RUNS is given.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlmesh.core.context import Context
from sqlmesh.utils.date import to_timestamp

from ci_bot.bot.laptop.session import open_local_client
from ci_bot.bot.worker_client.base_branch import refresh_base_cache
from ci_bot.host import make_process_machine
from ci_bot.protocol.base import Failure
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project.base_branch import promote_as_prod
from tests.benchmarks.bench_large import write_models
from tests.benchmarks.bench_life import ROOT, ours, theirs
from tests.e2e.scene import Scene
from tests.github_standin.parts import locate
from tests.github_standin.standin import GitHubStandin
from tests.maven import parts_directory
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.security.forked import forked

UNTIL = "2024-01-11"
_CAST = "CAST(t0.customer_id AS INT) AS c0"
_POLL_SECONDS = 0.1
CACHE = ".ci-bot-cache"


@dataclass(frozen=True)
class Run:
    """Seconds of a command, and the most memory of its first process and of all, in MB."""

    wall: float
    processor: float
    first_mb: float
    most_mb: float


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
    state = sqlmesh_compat.make_throwaway_state(shop.state, context)
    sqlmesh_compat.give_state(context, state)
    promote_as_prod(context, state, to_timestamp(UNTIL))
    state.close()


def _note(shop: Shop) -> None:
    """What a sweep on the default branch writes."""
    os.chdir(shop.project)
    machine = make_process_machine()
    with open_local_client(machine, (".",), None, "", (), timeout_minutes=60) as client:
        found = refresh_base_cache(client, CACHE, owner_name="benchmark")
    if isinstance(found, Failure) or not found.files:
        raise RuntimeError(f"nothing was noted: {found}")


def measured(command: list[str], cwd: Path) -> Run:
    """One run of a command, which may end with 1: a No-Go is an answer.

    Raises:
        RuntimeError: the command failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=said, stderr=said)
        first = 0.0
        while True:
            # The record of a process that has ended has no memory any more.
            first = max(first, _peak_mb(process.pid))
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(_POLL_SECONDS)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            said.seek(0)
            raise RuntimeError(f"{command} failed:\n{said.read()[-4_000:].decode()}")
    return Run(seconds, used.ru_utime + used.ru_stime, first, used.ru_maxrss / 1024)


def _peak_mb(pid: int) -> float:
    text = Path("/proc", str(pid), "status").read_text("utf-8")
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return float(lines["VmHWM"].split()[0]) / 1024 if "VmHWM" in lines else 0.0


def as_action(shop: Shop, home: Path) -> float:
    """The most memory in MB that the bot holds where GitHub asks for the review of the edits."""
    parts = locate(parts_directory(os.environ))
    most = 0.0

    def watch(pid: int) -> None:
        nonlocal most
        with suppress(OSError):
            while now := _peak_mb(pid):
                most = max(most, now)
                time.sleep(_POLL_SECONDS)

    (home / "github").mkdir(parents=True)
    with GitHubStandin(parts, home / "github") as standin:
        change = Scene(standin, shop, home).open("edits", edit)
        outcome = change.review(keep=False, meanwhile=watch)
    if "report-path" not in outcome.outputs:
        raise RuntimeError(f"the action failed:\n{outcome.stdout[-4_000:]}")
    return most


def medians(runs: list[Run]) -> tuple[float, float]:
    wall = statistics.median(run.wall for run in runs)
    return wall, statistics.median(run.processor for run in runs)


def main(models: int, runs: int, *, beside: bool) -> None:
    home = Path(tempfile.mkdtemp(prefix="ci-bot-estate-"))
    try:
        shop, out = with_prod(home, models), home / "out"
        action_mb = as_action(shop, home / "action")
        edit(shop)
        forked(lambda: _note(shop), home)
        explain = theirs("plan", "pr_1", "--explain", "--no-prompts", "--skip-tests")
        review = ours("review", "--environment", "pr_1", "--output", str(out))
        mine: list[Run] = []
        known: list[Run] = []
        others: dict[str, list[Run]] = {"cold": [], "warm": []} if beside else {}
        for _ in range(runs):
            known.append(measured([*review, "--cache-dir", CACHE], shop.project))
            mine.append(measured(review, shop.project))
            shutil.rmtree(shop.project / ".cache", ignore_errors=True)
            for side in others.values():
                side.append(measured(explain, shop.project))
        reviews = {"without a cache": medians(mine), "with the base cache": medians(known)}
        print(f"{models} models in prod, 2 edited")
        for name, (wall, processor) in reviews.items():
            print(f"review {name}: wall {wall:.1f} s, processor {processor:.1f} s")
        for which, taken in others.items():
            their_wall, their_processor = medians(taken)
            print(
                f"plan --explain, {which} cache: wall {their_wall:.1f} s, processor "
                f"{their_processor:.1f} s"
            )
            for name, (wall, processor) in reviews.items():
                print(
                    f"  {name}: {wall / their_wall:.2f} of its wall time, "
                    f"{processor / their_processor:.2f} of its processor time"
                )
        print(
            f"memory: the bot {max(run.first_mb for run in mine):.0f} MB on a laptop, "
            f"{action_mb:.0f} MB as an action, "
            f"the worker {max(run.most_mb for run in mine):.0f} MB"
        )
        phases = json.loads((out / "report.json").read_text("utf-8"))["timings"]
        print(", ".join(f"{name} {seconds:.1f} s" for name, seconds in phases.items()))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    size = numbers[0] if numbers else 1_000
    times = numbers[1] if len(numbers) > 1 else 3 if size <= 1_000 else 1
    main(size, times, beside=size <= 1_000 or len(numbers) > 1)
