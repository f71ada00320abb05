"""What git may cost: one process for many files, bounded memory, and never more time than is left."""

from __future__ import annotations

import os
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from ci_bot.bot.sandbox.deadline import SandboxDeadline
from ci_bot.bot.sandbox.git_repository import MOST_CHANGED_FILES, GitRepository
from ci_bot.errors import BadInput, TimedOut
from tests.checkout import GIT, Repository

MEGABYTE = 1_000_000


@pytest.fixture
def repository(ground: Path) -> Repository:
    made = Repository(ground / "checkout")
    made.commit(models__a_sql="SELECT 1", models__b_sql="SELECT 2", README="x")
    return made


def program(ground: Path, script: str) -> str:
    """A program in place of git."""
    path = ground / "git-in-place"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def counting(ground: Path) -> tuple[str, Callable[[], int]]:
    """git, and how often it was started so far."""
    log = ground / "started"
    log.write_text("")
    wrapper = program(ground, f'echo x >>"{log}"\nexec "{GIT}" "$@"')
    return wrapper, lambda: len(log.read_text().splitlines())


def private(ground: Path) -> Path:
    path = ground / "private"
    path.mkdir(exist_ok=True)
    return path


def test_processes__do_not_grow_with_the_files(repository: Repository, ground: Path) -> None:
    counts = []
    for number in (3, 300):
        before = repository.git("rev-parse", "HEAD")
        after = repository.commit(
            **{f"models__m{n}_sql": f"SELECT {number}" for n in range(number)}
        )
        wrapper, started = counting(ground)
        (ground / str(number)).mkdir()
        reads = GitRepository(repository.root, private=ground / str(number), executable=wrapper)
        changed = reads.changed_files(before, after)
        found = [blob for file in changed for blob in (file.before, file.after) if blob]
        assert len(reads.objects.read_sizes(blob.id for blob in found)) <= len(found)
        with reads.objects.open_contents(at_most=MEGABYTE) as read:
            texts = [read(blob.id) for blob in found]
        assert len(texts) >= number
        assert None not in texts
        paths = {file.path: file.after for file in changed if file.after}
        reads.exports.export_blobs(paths, ground / str(number) / "after", identity=None)
        counts.append(started())
    assert counts[0] == counts[1] <= 8


def test_contents__are_those_of_the_commit_whatever_the_name(repository: Repository) -> None:
    before = repository.git("rev-parse", "HEAD")
    odd = [b"new\nline.sql", b'quo"te.sql', b"-option.sql", b"latin\xe9.sql", "ü.sql".encode()]
    for number, name in enumerate(odd):
        (repository.root / os.fsdecode(name)).write_bytes(b"\0\r\n%d" % number)
    (repository.root / "link").symlink_to("README")
    after = repository.commit()
    reads = GitRepository(repository.root, private=private(repository.root.parent))
    changed = reads.changed_files(before, after)
    with reads.objects.open_contents(at_most=100) as read:
        found = sorted(read(file.after.id) or b"" for file in changed if file.after)
    assert found == [*(b"\0\r\n%d" % number for number in range(len(odd))), b"README"]
    assert [file.after.mode for file in changed if file.after and file.path == "link"] == ["120000"]


def test_contents__of_a_submodule_and_of_what_is_missing__are_none(
    repository: Repository, ground: Path
) -> None:
    before = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},vendor")
    repository.git("commit", "-qm", "submodule")
    reads = GitRepository(repository.root, private=private(ground))
    (vendor,) = reads.changed_files(before, repository.git("rev-parse", "HEAD"))
    assert (vendor.path, vendor.before, vendor.after) == ("vendor", None, None)
    with reads.objects.open_contents(at_most=100) as read:
        assert read("b" * 40) is None
        assert read(repository.git("rev-parse", "HEAD:README")) == b"x", "it still answers"
    assert reads.objects.read_sizes(["b" * 40]) == {}


def test_contents__that_are_too_large__are_neither_given_nor_held(
    repository: Repository, ground: Path
) -> None:
    (repository.root / "large").write_bytes(b"0" * 50 * MEGABYTE)
    repository.commit()
    large, small = (repository.git("rev-parse", f"HEAD:{name}") for name in ("large", "README"))
    reads = GitRepository(repository.root, private=private(ground))
    assert reads.objects.read_sizes([large, small]) == {large: 50 * MEGABYTE, small: 1}
    tracemalloc.start()
    try:
        with reads.objects.open_contents(at_most=MEGABYTE) as read:
            assert read(large) is None
            assert read(small) == b"x"
        assert tracemalloc.get_traced_memory()[1] < 3 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_files__of_a_commit_are_found_by_path(repository: Repository, ground: Path) -> None:
    names = ["a b.sql", "ü/é.sql", 'quo"te', "x missing", "-x", "empty", ":x", "0" * 40 + " blob 1"]
    for name in names:
        (repository.root / name).parent.mkdir(exist_ok=True)
        (repository.root / name).write_text("" if name == "empty" else name)
    (repository.root / "link").symlink_to("/etc/passwd")
    (repository.root / "large").write_bytes(b"0" * 1_000)
    commit = repository.commit()
    for name in names:
        (repository.root / name).write_text("not committed")
    reads = GitRepository(repository.root, private=private(ground))
    with reads.objects.open_commit_files(commit, at_most=100) as read:
        for name in names:
            assert read(name) == (b"" if name == "empty" else name.encode()), name
        assert read("link") == b"/etc/passwd"
        assert read("large") == b"0" * 101
        for gone in (
            "none",
            "models",
            "models/a.sql/x",
            "README\nREADME",
            "README\0",
            "",
            ".",
            "./README",
            "../README",
            "/README",
            "y blob 3",
            "y missing",
        ):
            assert read(gone) is None, gone
        assert read("README") == b"x", "it still answers"
    with reads.objects.open_commit_files(commit[::-1], at_most=100) as read:
        assert read("README") is None


def with_many(repository: Repository, count: int) -> str:
    """A commit that adds so many files, all with one content; none of them is checked out."""
    blob = repository.git("rev-parse", "HEAD:README")
    lines = "".join(f"100644 {blob}\tmany/{number}.sql\n" for number in range(count))
    command = [GIT, "-C", str(repository.root), "update-index", "--index-info"]
    subprocess.run(command, input=lines.encode(), check=True)
    repository.git("commit", "--quiet", "--message", "many")
    return repository.git("rev-parse", "HEAD")


@pytest.mark.night
def test_changed_files__too_many__are_refused(repository: Repository, ground: Path) -> None:
    before = repository.git("rev-parse", "HEAD")
    reads = GitRepository(repository.root, private=private(ground))
    most = with_many(repository, MOST_CHANGED_FILES)
    assert len(reads.changed_files(before, most)) == MOST_CHANGED_FILES
    repository.git("rm", "--quiet", "--cached", "README")
    repository.git("commit", "--quiet", "--message", "one more")
    with pytest.raises(BadInput, match="More than 100,000 files differ") as refused:
        reads.changed_files(before, repository.git("rev-parse", "HEAD"))
    assert refused.value.reason_code == "too_many_files"


@pytest.mark.parametrize("broken", ["exit 1", 'printf ":100644 100644 "', "echo x | head -c 0"])
def test_changed_files__that_git_does_not_finish__are_not_taken_for_all(
    repository: Repository, ground: Path, broken: str
) -> None:
    """An empty list would mean that nothing was changed."""
    failing = program(
        ground, f'case "$*" in *diff-tree*) {broken}; exit 1;; esac\nexec "{GIT}" "$@"'
    )
    head = repository.git("rev-parse", "HEAD")
    with pytest.raises(BadInput, match="could not read the checkout"):
        GitRepository(repository.root, private=private(ground), executable=failing).changed_files(
            head, head
        )


def reading(reads: GitRepository, head: str, target: Path) -> list[Callable[[], object]]:
    def contents() -> None:
        with reads.objects.open_contents(at_most=10) as read:
            read(head)

    return [
        reads.read_head,
        lambda: reads.has_commit(head),
        lambda: reads.list_parents(head),
        lambda: reads.changed_files(head, head),
        lambda: reads.objects.read_sizes([head]),
        contents,
        lambda: reads.exports.export_commit(head, target, identity=None),
        reads.read_origin,
    ]


@pytest.mark.parametrize("step", range(8))
def test_git__that_never_ends__is_ended_by_the_deadline(
    repository: Repository, ground: Path, step: int
) -> None:
    """Whatever git is asked: waiting for it is a part of the run's time."""
    head = repository.git("rev-parse", "HEAD")
    hanging = program(ground, "echo $$ >>" + str(ground / "pids") + "\nexec sleep 60")
    deadline = SandboxDeadline(0.5, clock=time.monotonic)
    reads = GitRepository(
        repository.root, private=private(ground), executable=hanging, deadline=deadline
    )
    begun = time.monotonic()
    with pytest.raises(TimedOut, match=r"did not finish within 0\.5 seconds .* while git read"):
        reading(reads, head, ground / "target")[step]()
    assert time.monotonic() - begun < 5
    for pid in (ground / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("step", range(8))
def test_git__out_of_time__is_not_even_started(
    repository: Repository, ground: Path, step: int
) -> None:
    head = repository.git("rev-parse", "HEAD")
    wrapper, started = counting(ground)
    deadline = SandboxDeadline(0.0, clock=time.monotonic)
    reads = GitRepository(
        repository.root, private=private(ground), executable=wrapper, deadline=deadline
    )
    with pytest.raises(TimedOut):
        reading(reads, head, ground / "target")[step]()
    assert started() == 0


def test_contents__given_up_in_between__leave_no_process(
    repository: Repository, ground: Path
) -> None:
    reads = GitRepository(repository.root, private=private(ground))
    with pytest.raises(ZeroDivisionError), reads.objects.open_contents(at_most=10) as read:
        read(repository.git("rev-parse", "HEAD:README"))
        raise ZeroDivisionError
    table = subprocess.run(
        ["/bin/ps", "-o", "args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "cat-file" not in table.stdout
