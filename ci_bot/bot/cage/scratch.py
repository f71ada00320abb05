"""Directories that live as long as a run, and that the next run removes where that one was killed.

A directory is held by a lock on itself, which the kernel gives back when its process ends, however
it ends. So nobody has to guess from a process's number whether it is still the same, and containers
that share a temporary directory see each other's locks. It gets its name only when it is locked:
whoever finds one that is not locked may remove it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ci_bot.errors import BotError, WorkerFailed

PREFIX = "ci-bot-run-"
_UNNAMED = ".ci-bot-new-"
# A run must not spend its time on what others have left; the next one goes on.
_MOST_SWEPT = 50
# Runs beside each other that get a name which a later run will get again.
_NUMBERED = 10
_HELD = ".held"
# A run of the worker writes some megabytes and some hundred files.
_LITTLE_SPACE = 512 * 1024
_FEW_FILES = 8
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def held_directory(parent: Path, *, prefix: str = PREFIX) -> Iterator[Path]:
    """A new directory with mode 0700 for the time inside, and removed at its end.

    Runs that follow each other get the same path: a project may put the place of its checkout into
    a variable, that counts in SQLMesh's fingerprints, and an apply must come to the plan that was
    reviewed. What killed runs of this user have left in `parent` is removed first.

    Args:
        prefix: How its name begins; has to begin with `PREFIX`.

    Raises:
        WorkerFailed: it could not be removed.
    """
    sweep(parent)
    path = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=parent))
    held = os.open(path, _DIRECTORY)
    with ExitStack() as ends:
        ends.callback(os.close, held)
        ends.callback(lambda: remove_tree(path))
        with suppress(OSError):  # where a file system has no locks nobody can take it for dead
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = _named(path, prefix)
        yield path


def _named(path: Path, prefix: str) -> Path:
    """Gives a held directory the first name that is free; more runs than names get one by chance.

    A directory that is not empty is never replaced by another one, so no name is taken twice.
    """
    (path / _HELD).touch(mode=0o600)
    for number in range(1, _NUMBERED + 1):
        with suppress(OSError):
            return path.rename(path.with_name(f"{prefix}{number}"))
    return path.rename(path.with_name(prefix + path.name.removeprefix(_UNNAMED)))


def sweep(parent: Path) -> list[Path]:
    """Removes the directories of runs that were killed; returns those.

    Only this user's own, never one whose run lives, and never through a link: the temporary
    directory may be everybody's, and everybody may put something of such a name there.
    """
    swept: list[Path] = []
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(parent) if entry.name.startswith(PREFIX)]
        for name in names[:_MOST_SWEPT]:
            # Somebody else may be faster, or a process of that run may still write.
            with suppress(OSError, BotError):
                if _sweep_one(parent / name):
                    swept.append(parent / name)
    return swept


def _sweep_one(path: Path) -> bool:
    handle = os.open(path, _DIRECTORY)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now = path.lstat()
        if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
            return False
        remove_tree(path)
    finally:
        os.close(handle)
    return True


def remove_tree(root: Path) -> None:
    """Remove a directory that the worker could fill as it liked.

    `shutil.rmtree` follows no links, but a tree that is thousands of levels deep stops it, and `rm`
    copes with that. Directories without rights stop both, where we are not root.

    Raises:
        WorkerFailed: Something is left.
    """
    try:
        with suppress(OSError, RecursionError):
            shutil.rmtree(root)
    finally:  # also where a signal came in between
        for command in (["/bin/rm", "-rf"], ["/bin/chmod", "-R", "u+rwx"], ["/bin/rm", "-rf"]):
            if root.exists():
                subprocess.run([*command, "--", str(root)], check=False, capture_output=True)
    if root.exists():
        raise WorkerFailed(
            f"The private directory {root} could not be removed.",
            hint="Remove it by hand; it may hold a cache and files of the pull request.",
            reason_code="workspace_left",
        )


def disk_is_full(directory: Path) -> bool:
    """Whether the disk of a directory has no space for one more small file, or no inode."""
    try:
        facts = os.statvfs(directory)
    except OSError:
        return False
    no_inode = facts.f_files > 0 and facts.f_favail < _FEW_FILES
    return no_inode or facts.f_bavail * facts.f_frsize < _LITTLE_SPACE
