"""What many changed files cost a review: the same repository with none and with very many changed.

    python -m tests.benchmarks.bench_changes [FILES [RUNS]]

The project is small and on DuckDB, so that the files are what is measured. They are of every kind
that a repository holds: SQL, Python, YAML, seeds, prose, and pictures. Both sides compare with the
base branch in the same checkout. Prints the medians of wall seconds and their difference, and exits
1 above ten seconds more. With TMPDIR on a file system in memory the disk is no part of it: here one
that was busy took 4 to 15 seconds to write 20,000 files, which both sides do.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.timed_command import run_ci_bot, time_command
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

GOAL_SECONDS = 10.0
KINDS = {
    "models/generated/part_{0}.sql.txt": "-- {1}\nSELECT {0} AS number FROM shop.orders\n" * 20,
    "docs/page_{0}.md": "# Page {0}\n\n" + "Some words about nothing in particular. {1}\n" * 40,
    "scripts/step_{0}.py": "import os\n\n\ndef step_{0}() -> int:\n    return {1}\n" * 10,
    "queries/query_{0}.sql": "SELECT a, b, c FROM d WHERE e = {1} AND f > {0}\n" * 20,
    "settings/service_{0}.yaml": "service:\n  name: s{0}\n  replicas: {1}\n  port: 8080\n" * 10,
    "data/table_{0}.csv": "id,name,amount\n" + "{0},word,{1}\n" * 100,
    "pictures/shot_{0}.png": "{0}{1}" * 500,
}


def git(directory: Path, *arguments: str) -> str:
    """Output of a git command in `directory`."""
    program = shutil.which("git") or "git"
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = [program, *who, "-C", str(directory), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write_files(shop: Shop, count: int, word: str) -> None:
    """`count` files whose contents hold `word`."""
    for number in range(count):
        name, text = list(KINDS.items())[number % len(KINDS)]
        shop.write(name.format(number), text.format(number, word))


def repository(home: Path, count: int) -> tuple[Shop, str, str]:
    """A checkout with `count` files beside the project; two commits to compare its head with.

    The first differs from the head in one model, the second in every file, too.
    """
    shop = write_duck_shop(home)
    git(shop.project, "init", "--quiet", "--initial-branch=main")
    commits = []
    for word in ("1", "2"):
        write_files(shop, count, word)
        git(shop.project, "add", "--all")
        git(shop.project, "commit", "--quiet", "--message", word)
        commits.append(git(shop.project, "rev-parse", "HEAD"))
    shop.edit("models/revenue.sql", "SUM(o.amount)", "MAX(o.amount)")
    git(shop.project, "commit", "--quiet", "--all", "--message", "one model")
    few, many = commits[1], commits[0]
    return shop, few, many


def seconds(shop: Shop, base: str) -> float:
    """Wall seconds of one review against a commit."""
    command = run_ci_bot(
        "review", "--project", ".", "--baseline", "base-branch", "--base-ref", base
    )
    return time_command(
        command, shop.project, codes=(0, 1)
    ).wall  # 1 is a No-Go, which is an answer


def main(count: int, runs: int) -> int:
    home = Path(tempfile.mkdtemp(prefix="ci-bot-changes-"))
    try:
        shop, few, many = repository(home, count)
        left, right = [], []
        for _ in range(runs):
            left.append(seconds(shop, few))
            right.append(seconds(shop, many))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    without, with_all = statistics.median(left), statistics.median(right)
    more = with_all - without
    print(f"one changed file   {without:7.1f} s")
    print(f"{count + 1:6,} of them     {with_all:7.1f} s")
    print(f"more               {more:7.1f} s  (goal {GOAL_SECONDS:.0f} s)")
    return int(more > GOAL_SECONDS)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 20_000, numbers[1] if len(numbers) > 1 else 1))
