"""What running changed models on generated rows takes of a review.

    python -m tests.benchmarks.bench_judge [PAIRS [MODELS CHANGED]]

The same review twice, in turns: as it is, and by a copy of the package in which a review has no
time for executions. Prints the medians of the shares, by the clock and of the processors. Without
MODELS it is the example shop of four models with two edits; else the project of `bench_large`.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.benchmarks.bench_large import write_models
from tests.benchmarks.timed_command import ROOT, Taken, time_command
from tests.github_standin.local_git import LocalGit
from tests.projects import Shop, write_shop

BUDGET = "SECONDS_FOR_A_REVIEW = 20.0"
JUDGE = Path("ci_bot/worker/rules/inputs.py")


def copy_without(target: Path) -> Path:
    """A Python whose reviews have no time for executions: this one, with a copy of the package.

    Raises:
        RuntimeError: the budget stands elsewhere by now, or the package is not installed in place.
    """
    code = target / "code"
    code.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name not in ("ci_bot", ".git", ".venv"):
            (code / path.name).symlink_to(path)
    shutil.copytree(ROOT / "ci_bot", code / "ci_bot")
    text = (code / JUDGE).read_text()
    if BUDGET not in text:
        raise RuntimeError(f"{JUDGE} has no {BUDGET}")
    (code / JUDGE).write_text(text.replace(BUDGET, "SECONDS_FOR_A_REVIEW = 0.0"))
    installed = Path(sysconfig.get_paths()["purelib"])
    packages = target / installed.relative_to(sys.prefix)
    packages.mkdir(parents=True)
    for path in installed.iterdir():
        (packages / path.name).symlink_to(path)
    found = [path for path in packages.glob("*.pth") if path.read_text().strip() == str(ROOT)]
    if not found:
        raise RuntimeError("the package is not installed from this checkout")
    for path in found:
        path.unlink()
        path.write_text(str(code))
    for name in ("bin", "pyvenv.cfg"):
        (target / name).symlink_to(Path(sys.prefix, name))
    return target / "bin" / "python"


def write_change(home: Path, models: int, changed: int) -> Shop:
    """A repository whose working tree edits models of its only commit."""
    shop = write_shop(home)
    write_models(shop, models)
    git = LocalGit(shop.project)
    git("branch", "-M", "main")
    (shop.project / ".gitignore").write_text(".cache/\nlogs/\n")
    git("add", "-f", ".")
    git("commit", "-q", "-m", "The shop")
    if not models:
        shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount + 1)")
        shop.edit("models/top_customers.sql", "> 100", ">= 100")
    for path in sorted(shop.project.glob("models/layer_*/*.sql"))[:changed]:
        path.write_text(path.read_text().replace("t0.customer_id AS INT) AS c7", "7 AS INT) AS c7"))
    return shop


def review(python: Path, shop: Shop) -> Taken:
    """One review by the package that a Python has, with cold caches."""
    shutil.rmtree(shop.project / ".cache", ignore_errors=True)
    arguments = ["review", "--baseline", "base-branch", "--base-ref", "main", "--fail-on", "never"]
    return time_command([str(python), "-I", "-m", "ci_bot", *arguments], shop.project)


def main(pairs: int, models: int, changed: int) -> None:
    """Prints a line with both shares."""
    home = Path(tempfile.mkdtemp(prefix="ci-bot-judge-"))
    try:
        own, without = Path(sys.executable), copy_without(home / "without")
        shop = write_change(home, models, changed)
        sides: list[tuple[Taken, Taken]] = []
        review(own, shop), review(without, shop)  # what is read the first time
        for number in range(pairs):
            order = (own, without) if number % 2 else (without, own)
            found = {python: review(python, shop) for python in order}
            sides.append((found[own], found[without]))
        for what in ("wall", "processor"):
            shares = [1 - getattr(b, what) / getattr(a, what) for a, b in sides]
            seconds = statistics.median(getattr(a, what) for a, _ in sides)
            print(
                f"{models or 4} models, {changed or 2} changed: {what} {seconds:.1f} s, of it "
                f"{100 * statistics.median(shares):.1f} % for executions "
                f"({100 * min(shares):.1f} to {100 * max(shares):.1f})"
            )
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(numbers[0] if numbers else 5, *(numbers[1:3] if len(numbers) > 2 else (0, 0)))
