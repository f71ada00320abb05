"""A whole review of many changed files: what it starts, how long it may take, and what it says."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.errors import TimedOut
from ci_bot.protocol.files import LARGEST_FILE_BYTES
from ci_bot.protocol.review_report import Report
from tests import nights
from tests.checkout import Repository
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.worker import Client

_STARTED: list[str] = []
_LISTENING: list[bool] = []


def _listen(event: str, arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen" and _LISTENING:
        _STARTED.append(str(arguments[0]))


@contextmanager
def started() -> Iterator[list[str]]:
    """The programs that this process starts meanwhile, as the interpreter itself reports them."""
    if not _STARTED and not _LISTENING:
        sys.addaudithook(_listen)
    _STARTED.clear()
    _LISTENING.append(True)
    try:
        yield _STARTED
    finally:
        _LISTENING.clear()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """The shop in a repository of its own."""
    made = Repository(write_duck_shop(tmp_path).project, new=False)
    made.commit()
    return made


def write_many(repository: Repository, count: int, word: str) -> str:
    """A commit in which `count` files of every kind hold `word`."""
    shop = Shop(repository.root.parent)
    for number in range(count):
        suffix = ("sql", "py", "yaml", "csv", "md", "txt")[number % 6]
        shop.write(f"more/f{number}.{suffix}", f"# {word}\n")
    return repository.commit()


def review(repository: Repository, base: str, head: str, **options: object) -> Report:
    client = Client(repository.root)
    return client.review("pr_1", commits=RequestedReviewCommits(base=base, head=head), **options)


@pytest.mark.night
@pytest.mark.parametrize("baseline", nights.cases(["state", "base-branch"], by_day=["state"]))
def test_review_of_300_changed_files__starts_a_handful_of_git_processes(
    repository: Repository, baseline: str
) -> None:
    counts = []
    for number in (6, 300):
        base = write_many(repository, number, f"before {number}")
        head = write_many(repository, number, f"after {number}")
        with started() as programs:
            report = review(repository, base, head, baseline=baseline)
        assert report.failure is None
        counts.append(sum(Path(program).name == "git" for program in programs))
    # The policy, its owners and the configuration of the base are read besides the files, and what
    # the checkout lacks of its commit.
    assert counts[0] == counts[1] <= 21


def test_review__names_what_is_too_large_and_takes_it_for_code(repository: Repository) -> None:
    base = write_many(repository, 1, "before")
    (repository.root / "macros").mkdir()
    (repository.root / "macros" / "m.py").write_bytes(b"# x\n" * (LARGEST_FILE_BYTES // 4 + 1))
    (repository.root / "notes.txt").write_text("password: hunter22-and-more\n" * 200_000)
    head = repository.commit()
    report = review(repository, base, head, baseline="base-branch")
    told = {risk.rule: risk.evidence for risk in report.risks}
    assert "2 changed files (`macros/m.py`, `notes.txt`)" in told["R10-not-checked"]
    assert "macros/m.py" in told["R12-code-on-load"]
    assert report.decision == "review"


def test_review__of_a_path_longer_than_a_name__is_a_report(repository: Repository) -> None:
    base = repository.git("rev-parse", "HEAD")
    deep = repository.root / "macros"
    for number in range(12):
        deep = deep / (f"{number}" + "d" * 120)
    deep.mkdir(parents=True)
    (deep / "m.py").write_text("x = 1\n")
    head = repository.commit()
    report = review(repository, base, head, baseline="base-branch")
    assert report.failure is None
    assert [risk.path for risk in report.risks if risk.rule == "R12-code-on-load"] == [
        str((deep / "m.py").relative_to(repository.root))
    ]


def test_review__out_of_time_in_git__says_so(repository: Repository) -> None:
    """Not the worker alone: a review that is still reading git at its deadline is over, too."""
    head = repository.git("rev-parse", "HEAD")
    client = Client(repository.root)
    client.patience_seconds = 0.0
    begun = time.monotonic()
    with pytest.raises(TimedOut, match="while git read the checkout"):
        client.review("pr_1", commits=RequestedReviewCommits(base=head, head=head))
    assert time.monotonic() - begun < 10
