"""The private directories of one run, and paths that must stay inside a directory."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ci_bot.bot.cage.checkout_copy import CopyReport, copy_checkout
from ci_bot.bot.cage.scratch import held_directory
from ci_bot.bot.cage.user import Identity
from ci_bot.bot.cage.watch.deadline import Deadline
from ci_bot.contracts.messages import Workplace
from ci_bot.contracts.places import Places
from ci_bot.errors import BadInput

_LONGEST_SHOWN = 200

ON_THE_BASE_BRANCH = "(on the base branch) "


@dataclass(frozen=True)
class Workspace:
    """Directories that exist for one run; all but `repository` of a laptop are removed after it.

    Args:
        checkout: The original.
        root: Holds the others; the worker can enter it, but not list it or add to it.
        repository: What the worker takes for the checkout: a copy in the container.
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
    identity: Identity | None
    copied: CopyReport = field(default_factory=CopyReport)

    @property
    def before(self) -> Path:
        """Where the base branch's version of single files can be exported to."""
        return self.root / "before"

    def workplace(self, python_path: Sequence[Path] = (), *, own: bool = False) -> Workplace:
        """The part of it that the worker is told.

        Args:
            python_path: The project's search path.
            own: The user has typed the repository's path, so that it may be told.
        """
        return Workplace(
            repository=str(self.repository),
            cache_dir=str(self.cache_dir),
            scratch_dir=str(self.scratch_dir),
            own=own,
            python_path=[str(path) for path in python_path],
            linked_to=None if self.repository == self.checkout else str(self.checkout),
        )

    def places(self) -> Places:
        """What its directories are called in texts for people.

        On a laptop the repository is the user's own, and its path says more than a dot.
        """
        private = {} if self.identity is None else {self.repository: ""}
        return Places(
            {
                self.root: "",
                **private,
                self.overlay: "",
                self.base: ON_THE_BASE_BRANCH,
                self.before: ON_THE_BASE_BRANCH,
            }
        )

    def abandon(self) -> subprocess.Popen[bytes]:
        """Remove it without waiting, for a second signal: the process that is returned does it."""
        return subprocess.Popen(
            ["/bin/rm", "-rf", "--", str(self.root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


@contextmanager
def private_workspace(
    checkout: Path,
    *,
    parent: Path,
    identity: Identity | None,
    copy: bool,
    deadline: Deadline | None = None,
) -> Iterator[Workspace]:
    """Make the directories of a run, and remove them however it ends.

    Args:
        checkout: The repository's root.
        parent: Where the directories are made, such as the system's temporary directory.
        identity: The worker's user in the container; None keeps the current one.
        copy: Whether the worker gets a copy of the checkout (in the container) or the checkout.
        deadline: Bounds the copy, which raises TimedOut then.
    """
    with held_directory(parent) as root:
        if identity is not None:
            # The worker passes through to what is its own; nobody else gets that far.
            os.chown(root, -1, identity.gid)
            root.chmod(0o710)
        for name in ("home", "tmp", "cache", "scratch", "overlay"):
            (root / name).mkdir(mode=0o700)
            if identity is not None:
                os.chown(root / name, identity.uid, identity.gid)
        (root / "channel").mkdir(mode=0o700)
        repository = root / "repository" if copy else checkout.resolve()
        copied = (
            copy_checkout(checkout, repository, identity=identity, deadline=deadline)
            if copy
            else CopyReport()
        )
        yield Workspace(
            checkout=checkout.resolve(),
            root=root,
            repository=repository,
            base=root / "base",
            home=root / "home",
            temporary=root / "tmp",
            cache_dir=root / "cache",
            scratch_dir=root / "scratch",
            overlay=root / "overlay",
            channel=root / "channel",
            identity=identity,
            copied=copied,
        )


def inside(root: Path, relative: str, *, what: str) -> Path:
    """The real path of `relative` below `root`.

    Args:
        root: The directory that must not be left.
        relative: A path from an input, absolute or relative to `root`.
        what: What the message calls it, such as "Project path".

    Raises:
        BadInput: The path leaves `root`, through `..`, as an absolute path, or through a link.
    """
    # Not `resolve`, which raises where a link leads to itself.
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


def project_paths(root: Path, inputs: list[str]) -> list[str]:
    """The project directories of the input `project`, relative to `root`, each once.

    Raises:
        BadInput: One message for all paths that leave the repository or are no directories.
    """
    found: dict[str, None] = {}
    problems: list[str] = []
    for given in inputs:
        try:
            path = inside(root, given, what="Project path")
        except BadInput as error:
            problems.append(error.message)
            continue
        problem = directory_problem(path, given)
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


def directory_problem(path: Path, given: str) -> str | None:
    """Why a path leads to no directory, as a sentence without its full stop; None where it does.

    Args:
        given: The path as somebody has typed it.
    """
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return None
    except FileNotFoundError:
        return f"`{cut(given)}` does not exist"
    except OSError as error:
        return f"`{cut(given)}` cannot be opened: {error.strerror}"
    return f"`{cut(given)}` is not a directory"


def cut(given: str) -> str:
    """A path for a sentence."""
    return given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}…"


def search_path(root: Path, inputs: Iterable[str]) -> list[str]:
    """The directories of the input `python-path`, relative to `root`, each once.

    One that does not exist is no problem, as in PYTHONPATH: the base branch may lack it.

    Raises:
        BadInput: One message for all that leave the repository or are no directories.
    """
    found: dict[str, None] = {}
    problems: list[str] = []
    for given in inputs:
        try:
            path = inside(root, given, what="Search path")
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


def read_inside(root: Path, relative: str, *, at_most: int) -> bytes | None:
    """A regular file below `root` that somebody else wrote; None if there is none such.

    Args:
        at_most: Larger files raise BadInput, as do paths that leave `root`.
    """
    path = inside(root, relative, what="File")
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
