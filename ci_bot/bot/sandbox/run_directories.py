"""The private directories of one run, and paths that must stay inside a directory."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ci_bot.bot.sandbox.checkout_copy import SandboxedCopyReport, copy_checkout_into_sandbox
from ci_bot.bot.sandbox.deadline import SandboxDeadline
from ci_bot.bot.sandbox.launch import (
    DISK_RESERVE_BYTES,
    SandboxIdentity,
    list_disk_reserves_of_sandbox,
)
from ci_bot.errors import FULL_DISK_HINT, BadInput, BotError, WorkerFailed
from ci_bot.protocol.files import PrivateDirectories
from ci_bot.protocol.messages import Workplace

# Directories that live as long as a run; if a run was killed, the next run removes its directory.
#
# A run holds a lock on its directory, which the kernel releases when its process ends in any way.
# So nobody has to guess from a process's number whether it is still the same, and containers that
# share a temporary directory see each other's locks. A directory gets its name only when it is
# locked: if it is not locked, any run may remove it.


PREFIX = "ci-bot-run-"

_UNNAMED = ".ci-bot-new-"
_HOME = "home"
# A run must not spend its time on what others have left; the next one continues.
_MOST_SWEPT = 50
# How many runs at the same time get a name that a later run will get again.
_NUMBERED = 10

# Seconds that a run spends on the removal of one directory, and on what others have left.
_PATIENCE = 5.0
_REMOVE = ("/bin/rm", "-rf")
_HELD = ".held"
# A run of the worker writes some megabytes and some hundred files.
_LITTLE_SPACE = 512 * 1024

_FEW_FILES = 8
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def hold_private_directory_of_run(parent: Path, *, prefix: str = PREFIX) -> Iterator[Path]:
    """Makes a new directory with mode 0700 for the time inside, and removes it at the end.

    Runs that follow each other get the same path. A project may put the path of its checkout into a
    variable, which is part of SQLMesh's fingerprints, and an apply must get the plan that was
    reviewed. What killed runs of this user have left in `parent` is removed first.

    Args:
        prefix: How its name begins; must begin with `PREFIX`.

    Raises:
        WorkerFailed: it could not be removed.
    """
    remove_stale_run_directories(parent)
    path = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=parent))
    held = os.open(path, _DIRECTORY)
    with ExitStack() as ends:
        ends.callback(os.close, held)
        ends.callback(lambda: remove_tree_filled_by_sandbox(path))
        with suppress(OSError):  # on a file system without locks nobody can remove it as dead
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = _rename_run_directory_to_free(path, prefix)
        yield path


def _rename_run_directory_to_free(path: Path, prefix: str) -> Path:
    """Gives a held directory the first free name, or a random one if all names are in use.

    A directory that is not empty is never replaced by another one, so no name is used twice. An
    empty one belongs to a run that is ending and may still have to remove it.
    """
    (path / _HELD).touch(mode=0o600)
    for number in range(1, _NUMBERED + 1):
        free = path.with_name(f"{prefix}{number}")
        with suppress(OSError):
            if not os.path.lexists(free):
                return path.rename(free)
    return path.rename(path.with_name(prefix + path.name.removeprefix(_UNNAMED)))


def predict_home_of_run(parent: Path) -> Path:
    """The home of the worker in the next run; another one if a run beside it has that name."""
    return parent / f"{PREFIX}1" / _HOME


def remove_stale_run_directories(parent: Path) -> list[Path]:
    """Removes the directories of runs that were killed; returns those.

    Only this user's own, never that of a living run, and never through a link: everybody may be
    able to create something with such a name in the temporary directory.
    """
    swept: list[Path] = []
    with suppress(OSError):
        names = [entry.name for entry in os.scandir(parent) if entry.name.startswith(PREFIX)]
        end = time.monotonic() + _PATIENCE
        for name in names[:_MOST_SWEPT]:
            # Another run may be faster, or a process of that run may still write.
            with suppress(OSError, BotError):
                if _sweep_run_directory(parent / name, max(0.0, end - time.monotonic())):
                    swept.append(parent / name)
    return swept


def _sweep_run_directory(path: Path, patience: float) -> bool:
    handle = os.open(path, _DIRECTORY)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now = path.lstat()
        if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
            return False
        remove_tree_filled_by_sandbox(path, patience)
    finally:
        os.close(handle)
    return True


def remove_tree_filled_by_sandbox(root: Path, patience: float = _PATIENCE) -> None:
    """Removes a directory that the worker could fill as it liked.

    It is renamed first: as soon as its own name is free, the next run may use that, and nothing of
    the next run must be removed. A disk may need a millisecond for each directory, so a tree of
    many thousands would keep the run as long as its author wants. After `patience` a separate
    process removes the rest; if that is killed, the next run finds the new name.

    Raises:
        WorkerFailed: Something is left.
    """
    end = time.monotonic() + patience
    aside = _set_aside(root)
    try:
        for command in (_REMOVE, ["/bin/chmod", "-R", "u+rwx"], _REMOVE):
            if os.path.lexists(aside):
                _run_until(end, [*command, "--", str(aside)])
    except subprocess.TimeoutExpired:
        _start_removal(aside)
        return
    except OSError:  # a machine without these commands
        with suppress(OSError, RecursionError):
            shutil.rmtree(aside)
    except BaseException:  # a signal of the runner, which waits only for seconds
        _start_removal(aside)
        raise
    if aside.exists():
        raise WorkerFailed(
            f"The private directory {aside} could not be removed.",
            hint="Remove it by hand; it may hold a cache and files of the pull request.",
            reason_code="workspace_left",
        )


def _run_until(end: float, command: Sequence[str]) -> None:
    left = max(0.0, end - time.monotonic())
    subprocess.run(command, check=False, capture_output=True, timeout=left)


def _set_aside(root: Path) -> Path:
    """Gives a directory a name of its own, which a sweep finds; returns it.

    If that fails, it keeps its name, which no other run uses as long as the directory is there.
    """
    with suppress(OSError):
        return root.rename(root.with_name(f"{PREFIX}gone-{uuid4().hex}"))
    return root


def _start_removal(root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*_REMOVE, "--", str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def is_disk_of_sandbox_full(directory: Path) -> bool:
    """Whether the disk of a directory has no space for one more small file, or no inode."""
    try:
        facts = os.statvfs(directory)
    except OSError:
        return False
    no_inode = facts.f_files > 0 and facts.f_favail < _FEW_FILES
    return no_inode or facts.f_bavail * facts.f_frsize < _LITTLE_SPACE


_LONGEST_SHOWN = 200

ON_THE_BASE_BRANCH = "(on the base branch) "


@dataclass(frozen=True)
class SandboxWorkspace:
    """Directories that exist for one run; all are removed after it, except a laptop's `repository`.

    Attributes:
        checkout: The original.
        root: Holds the others; the worker can enter it, but not list it or add to it.
        repository: What the worker uses as the checkout: a copy in the container.
        base: Where the base branch's project can be exported to; it does not exist yet.
    """

    checkout: Path
    root: Path
    repository: Path
    base: Path
    home: Path
    temporary: Path
    cache_dir: Path
    scratch_dir: Path
    overlay: Path
    channel: Path
    identity: SandboxIdentity | None
    copied: SandboxedCopyReport = field(default_factory=SandboxedCopyReport)

    @property
    def base_directory(self) -> Path:
        """Where the base branch's version of single files can be exported to."""
        return self.root / "before"

    def make_workplace(self, python_path: Sequence[Path] = (), *, own: bool = False) -> Workplace:
        """Returns the part of it that the worker gets.

        Args:
            python_path: The project's search path.
            own: Whether the user has typed the repository's path, so that it may be shown.
        """
        return Workplace(
            repository=str(self.repository),
            cache_dir=str(self.cache_dir),
            scratch_dir=str(self.scratch_dir),
            own=own,
            python_path=[str(path) for path in python_path],
            linked_to=None if self.repository == self.checkout else str(self.checkout),
        )

    def make_private_directories(self) -> PrivateDirectories:
        """Returns what its directories are called in texts for people.

        On a laptop the repository is the user's own, and its path says more than a dot.
        """
        private = {} if self.identity is None else {self.repository: ""}
        return PrivateDirectories(
            {
                self.root: "",
                **private,
                self.overlay: "",
                self.base: ON_THE_BASE_BRANCH,
                self.base_directory: ON_THE_BASE_BRANCH,
            }
        )

    def remove_in_background(self) -> subprocess.Popen[bytes]:
        """Removes it in the background, for a second signal; returns the process that does it."""
        return _start_removal(self.root)


@contextmanager
def open_sandbox_workspace(
    checkout: Path,
    *,
    parent: Path,
    identity: SandboxIdentity | None,
    copy: bool,
    deadline: SandboxDeadline | None = None,
) -> Iterator[SandboxWorkspace]:
    """Makes the directories of a run, and removes them in whatever way it ends.

    Args:
        checkout: The repository's root.
        parent: Where the directories are made, such as the system's temporary directory.
        identity: The worker's user in the container; None keeps the current one.
        copy: Whether the worker gets a copy of the checkout (in the container) or the checkout.
        deadline: Limits the copy, which then raises TimedOut.

    Raises:
        BadInput: The disk has no room for the copy.
    """
    with hold_private_directory_of_run(parent) as root:
        if identity is not None:
            # The worker can pass through to its own directories; no other user gets that far.
            os.chown(root, -1, identity.gid)
            root.chmod(0o710)
        for name in (_HOME, "tmp", "cache", "scratch", "overlay"):
            (root / name).mkdir(mode=0o700)
            if identity is not None:
                os.chown(root / name, identity.uid, identity.gid)
        (root / "channel").mkdir(mode=0o700)
        repository = root / "repository" if copy else checkout.resolve()
        copied = SandboxedCopyReport()
        if copy:
            disks = list_disk_reserves_of_sandbox([root], DISK_RESERVE_BYTES)
            try:
                copied = copy_checkout_into_sandbox(
                    checkout, repository, identity=identity, deadline=deadline, disks=disks
                )
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                raise BadInput(
                    "The checkout cannot be copied: the disk of the temporary directory is full.",
                    hint=FULL_DISK_HINT,
                    reason_code="disk_full",
                ) from error
        yield SandboxWorkspace(
            checkout=checkout.resolve(),
            root=root,
            repository=repository,
            base=root / "base",
            home=root / _HOME,
            temporary=root / "tmp",
            cache_dir=root / "cache",
            scratch_dir=root / "scratch",
            overlay=root / "overlay",
            channel=root / "channel",
            identity=identity,
            copied=copied,
        )


def resolve_inside_checkout(root: Path, relative: str, *, what: str) -> Path:
    """Returns the real path of `relative` below `root`.

    Args:
        root: The directory that must not be left.
        relative: A path from an input, absolute or relative to `root`.
        what: What the message calls it, such as "Project path".

    Raises:
        BadInput: The path leaves `root`, through `..`, as an absolute path, or through a link.
    """
    # Not `resolve`, which raises if a link leads to itself.
    top = Path(os.path.realpath(root))
    if "\0" in relative or not relative.strip():
        raise BadInput(f"{what} {relative!r} is not a path.", reason_code="bad_path")
    path = Path(os.path.realpath(top / relative))
    if path != top and top not in path.parents:
        raise BadInput(
            f"{what} `{relative}` leads out of the repository.",
            hint="Give a path relative to the repository's root, without links that leave it.",
            reason_code="path_outside",
        )
    return path


def resolve_project_paths_for_sandbox(root: Path, inputs: list[str]) -> list[str]:
    """Lists the project directories of the input `project`, relative to `root`, each once.

    Raises:
        BadInput: One message for all paths that leave the repository or are no directories.
    """
    found: dict[str, None] = {}
    problems: list[str] = []
    for given in inputs:
        try:
            path = resolve_inside_checkout(root, given, what="Project path")
        except BadInput as error:
            problems.append(error.message)
            continue
        problem = describe_problem_of_sandbox_directory(path, given)
        if problem is None:
            found[os.path.relpath(path, os.path.realpath(root))] = None
        else:
            problems.append(f"Project path {problem}.")
    if problems:
        raise BadInput(
            " ".join(problems),
            hint="Input `project` names directories relative to the repository's root.",
            reason_code="bad_project_path",
        )
    return list(found)


def describe_problem_of_sandbox_directory(path: Path, given: str) -> str | None:
    """Says why a path leads to no directory, as a sentence without its full stop; None if it does.

    Args:
        given: The path as somebody has typed it.
    """
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return None
    except FileNotFoundError:
        return f"`{shorten_path_of_sandbox(given)}` does not exist"
    except OSError as error:
        return f"`{shorten_path_of_sandbox(given)}` cannot be opened: {error.strerror}"
    return f"`{shorten_path_of_sandbox(given)}` is not a directory"


def shorten_path_of_sandbox(given: str) -> str:
    """Shortens a path for a sentence."""
    return given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}…"


def list_search_path_of_sandbox(root: Path, inputs: Iterable[str]) -> list[str]:
    """Lists the directories of the input `python-path`, relative to `root`, each once.

    A directory that does not exist is no problem, as in PYTHONPATH: the base branch may lack it.

    Raises:
        BadInput: One message for all that leave the repository or are no directories.
    """
    found: dict[str, None] = {}
    problems: list[str] = []
    for given in inputs:
        try:
            path = resolve_inside_checkout(root, given, what="Search path")
        except BadInput as error:
            problems.append(error.message)
            continue
        if path.is_file():
            problems.append(f"Search path `{given}` is a file.")
        found[os.path.relpath(path, root.resolve())] = None
    if problems:
        raise BadInput(
            " ".join(problems),
            hint="Input `python-path` names directories relative to the repository's root, one "
            "per line.",
            reason_code="bad_python_path",
        )
    return list(found)


def read_file_inside_sandbox(root: Path, relative: str, *, at_most: int) -> bytes | None:
    """Reads a regular file below `root` that somebody else wrote; None if there is none.

    Args:
        at_most: Bytes; larger files raise BadInput, as do paths that leave `root`.
    """
    path = resolve_inside_checkout(root, relative, what="File")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        content = file.read(at_most + 1)
    if len(content) > at_most:
        raise BadInput(
            f"File `{relative}` is larger than {at_most} bytes.", reason_code="too_large"
        )
    return content
