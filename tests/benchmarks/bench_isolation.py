"""What the cage costs: a copy of a 200 MB repository and the start of a caged process.

    python -m tests.benchmarks.bench_isolation [--rounds 5]

Beside it, the same process without a cage, in the checkout itself. Needs root, as in the container:
without it there is no other user, and nothing is copied. Seconds are those of the fastest round,
because nothing but other work on the machine makes a round slower; processor seconds (ours and the
kernel's) stand beside them. Megabytes are what the copy takes on the disk. Exits 1 above 0.3 s or
30 MB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ci_bot.bot.sandbox.launch import SandboxIdentity, SandboxLaunch
from ci_bot.bot.sandbox.run_directories import open_sandbox_workspace
from ci_bot.bot.sandbox.worker_run import make_sandboxed_command

GOAL_SECONDS, GOAL_MEGABYTES = 0.3, 30.0
MEGABYTE = 1_000_000
WORKER = SandboxIdentity(uid=61_999, gid=61_999)
# Python of the system: a virtual environment may lie where another user cannot go.
PYTHON = "/usr/bin/python3"
NOTHING = "pass\n"


def write_repository(root: Path) -> int:
    """2,000 models, 120 data files and a history; returns the bytes."""
    for number in range(2_000):
        path = root / f"models{number % 40}" / f"model_{number}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(2_000) * 2)
    for number in range(120):
        path = root / "data" / f"part_{number}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(1_024) * 1_500)
    (root / ".git" / "objects").mkdir(parents=True)
    (root / ".git" / "objects" / "pack").write_bytes(os.urandom(1_024) * 20_000)
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def processor() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def without_cage(checkout: Path, script: Path) -> tuple[float, float]:
    started, used = time.perf_counter(), processor()
    subprocess.run([PYTHON, "-I", str(script)], cwd=checkout, check=True)
    return time.perf_counter() - started, processor() - used


def with_cage(checkout: Path, ground: Path, script: Path) -> tuple[float, float, float]:
    """Seconds in all, processor seconds, and megabytes of the copy."""
    started, used = time.perf_counter(), processor()
    with open_sandbox_workspace(checkout, parent=ground, identity=WORKER, copy=True) as workspace:
        launch = SandboxLaunch(
            python=PYTHON,
            variables={},
            directory=workspace.repository,
            channel_directory=workspace.channel,
            search_path=(),
            identity=WORKER,
        )
        subprocess.run(
            make_sandboxed_command(launch, [], script=script),
            cwd=workspace.repository,
            user=WORKER.uid,
            group=WORKER.gid,
            extra_groups=[],
            check=True,
        )
        asked, used = time.perf_counter() - started, processor() - used
        size = sum(
            path.lstat().st_blocks * 512
            for path in workspace.root.rglob("*")
            if not path.is_symlink()
        )
        removal, used_before = time.perf_counter(), processor()
    seconds = asked + time.perf_counter() - removal
    return seconds, used + processor() - used_before, size / MEGABYTE


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args(arguments).rounds
    if os.geteuid() != 0:
        print("not measured: to change users needs root")
        return 2
    with tempfile.TemporaryDirectory(prefix="ci-bot-bench-") as name:
        ground = Path(name)
        ground.chmod(0o755)
        checkout, script = ground / "checkout", ground / "nothing.py"
        script.write_text(NOTHING, "utf-8")
        total = write_repository(checkout)
        plain = [without_cage(checkout, script) for _ in range(rounds)]
        caged_runs = [with_cage(checkout, ground, script) for _ in range(rounds)]
    before, before_cpu = (min(column) for column in zip(*plain, strict=True))
    seconds, cpu, size = (min(column) for column in zip(*caged_runs, strict=True))
    cost = seconds - before
    lines = [
        f"repository       {total / MEGABYTE:6.0f} MB",
        f"without a cage   {before:6.3f} s  ({before_cpu:.2f} s of processor)",
        f"with the cage    {seconds:6.3f} s  ({cpu:.2f} s of processor)",
        f"cost             {cost:6.3f} s  ({cpu - before_cpu:.2f} s of processor), {size:.1f} MB",
        f"goal             {GOAL_SECONDS:6.3f} s, {GOAL_MEGABYTES:.0f} MB",
    ]
    print("\n".join(lines))
    return int(cost > GOAL_SECONDS or size > GOAL_MEGABYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
