"""Directories of runs: held while the run lives, removed by the next one where it was killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ci_bot.bot.sandbox.launch import SandboxIdentity
from ci_bot.bot.sandbox.run_directories import (
    PREFIX,
    hold_private_directory_of_run,
    open_sandbox_workspace,
    remove_stale_run_directories,
)
from tests.conftest import REPOSITORY

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")

HOLDER = """
import sys, time
from pathlib import Path
from ci_bot.bot.sandbox.run_directories import hold_private_directory_of_run
with hold_private_directory_of_run(Path(sys.argv[1])) as path:
    (path / "cache").mkdir()
    (path / "cache" / "entry").write_text("x")
    print(path, flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(parent: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with a directory of its own in `parent`; ends when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def left(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


def test_directory__is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    with hold_private_directory_of_run(tmp_path) as path:
        assert path.name.startswith(PREFIX)
        assert path.stat().st_mode & 0o777 == 0o700
        (path / "file").write_text("x")
    assert left(tmp_path) == []


def test_directory__of_the_next_run__has_the_same_path(tmp_path: Path) -> None:
    with hold_private_directory_of_run(tmp_path) as first:
        pass
    with (
        hold_private_directory_of_run(tmp_path) as second,
        hold_private_directory_of_run(tmp_path) as beside,
    ):
        assert second == first
        assert beside != first
    with ExitStack() as many:
        paths = {many.enter_context(hold_private_directory_of_run(tmp_path)) for _ in range(15)}
        assert len(paths) == 15


def test_directory__whose_name_somebody_holds__gets_another(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}1").symlink_to(tmp_path)
    (tmp_path / f"{PREFIX}2").write_text("x")
    with hold_private_directory_of_run(tmp_path) as path:
        assert path.name == f"{PREFIX}3"


def test_directory__of_a_killed_run__is_swept_by_the_next(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, path):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (path / "cache" / "entry").exists(), "nobody has removed it yet"
        with open_sandbox_workspace(tmp_path, parent=tmp_path, identity=None, copy=False) as space:
            assert left(tmp_path) == [space.root.name]
    assert left(tmp_path) == []


def test_directory__of_a_run_that_lives__is_left_alone(tmp_path: Path) -> None:
    with holder(tmp_path) as (process, path):
        assert remove_stale_run_directories(tmp_path) == []
        with hold_private_directory_of_run(tmp_path):
            assert (path / "cache" / "entry").exists()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait() == 0
    assert left(tmp_path) == []


def test_directory__of_this_very_process__is_left_alone(tmp_path: Path) -> None:
    with hold_private_directory_of_run(tmp_path) as path:
        assert remove_stale_run_directories(tmp_path) == []
        assert path.exists()


def test_two_sweeps_at_once__disturb_nobody(tmp_path: Path) -> None:
    """A directory gets its name when it is locked, so there is no moment in which it looks dead."""
    seen: list[Path] = []
    stop = threading.Event()

    def sweeping() -> None:
        while not stop.is_set():
            seen.extend(remove_stale_run_directories(tmp_path))

    threads = [threading.Thread(target=sweeping) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            with hold_private_directory_of_run(tmp_path) as path:
                (path / "file").write_text("x")
                assert (path / "file").read_text() == "x"
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert seen == []
    assert left(tmp_path) == []


def test_what_only_looks_like_one__is_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "deep").mkdir(parents=True)
    (victim / "deep" / "file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(victim)
    (tmp_path / f"{PREFIX}loop").symlink_to(f"{PREFIX}loop")
    (tmp_path / f"{PREFIX}file").write_text("x")
    os.mkfifo(tmp_path / f"{PREFIX}pipe")
    (tmp_path / "ci-bot-abcdefgh").mkdir()
    before = left(tmp_path)
    with hold_private_directory_of_run(tmp_path):
        pass
    assert left(tmp_path) == before
    assert (victim / "deep" / "file").read_text() == "x"


def test_what_a_killed_run_left__may_hold_links_out_and_closed_directories(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("x")
    dead = tmp_path / f"{PREFIX}dead"
    (dead / "closed").mkdir(parents=True)
    (dead / "out").symlink_to(victim)
    (dead / "closed" / "file").write_text("x")
    (dead / "closed").chmod(0o000)
    assert remove_stale_run_directories(tmp_path) == [dead]
    assert left(tmp_path) == ["victim"]
    assert (victim / "file").exists()


@as_root
def test_directory__of_another_user__is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / f"{PREFIX}other"
    other.mkdir()
    os.chown(other, 1001, 1001)
    assert remove_stale_run_directories(tmp_path) == []
    assert other.exists()


@as_root
def test_directory__of_the_container_with_the_workers_group__is_swept(tmp_path: Path) -> None:
    worker = SandboxIdentity(uid=61_234, gid=61_234)
    space = open_sandbox_workspace(tmp_path, parent=tmp_path, identity=worker, copy=False)
    root = space.__enter__().root
    handle = os.open(root, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert remove_stale_run_directories(tmp_path) == []
    finally:
        os.close(handle)
        space.__exit__(None, None, None)
    dead = tmp_path / f"{PREFIX}dead"
    (dead / "home").mkdir(parents=True)
    os.chown(dead / "home", worker.uid, worker.gid)
    os.chown(dead, -1, worker.gid)
    assert remove_stale_run_directories(tmp_path) == [dead]


def test_sweep__of_nowhere__is_nothing(tmp_path: Path) -> None:
    assert remove_stale_run_directories(tmp_path / "not-there") == []


def test_runs__beside_each_other__keep_their_directories(tmp_path: Path) -> None:
    """One that ends gives its name back while others look for a free one."""
    lost: list[Path] = []

    def run_often() -> None:
        for _ in range(40):
            with hold_private_directory_of_run(tmp_path) as directory:
                mine = directory / "mine"
                try:
                    mine.mkdir()
                    time.sleep(0.002)
                    (mine / "file").touch()
                except OSError:
                    lost.append(directory)

    runs = [threading.Thread(target=run_often) for _ in range(6)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()

    assert not lost
    assert not list(tmp_path.iterdir())
