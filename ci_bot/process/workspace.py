"""The private directories of one run, and paths that must stay inside a directory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ci_bot.contracts.messages import Workplace
from ci_bot.errors import BadInput, WorkerFailed
from ci_bot.process.checkout import CopyReport, copy_checkout
from ci_bot.process.identity import Identity


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

    def workplace(self) -> Workplace:
        """The part of it that the worker is told."""
        return Workplace(
            repository=str(self.repository),
            cache_dir=str(self.cache_dir),
            scratch_dir=str(self.scratch_dir),
            linked_to=None if self.repository == self.checkout else str(self.checkout),
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
    checkout: Path, *, parent: Path, identity: Identity | None, copy: bool
) -> Iterator[Workspace]:
    """Make the directories of a run, and remove them however it ends.

    Args:
        checkout: The repository's root.
        parent: Where the directories are made, such as the system's temporary directory.
        identity: The worker's user in the container; None keeps the current one.
        copy: Whether the worker gets a copy of the checkout (in the container) or the checkout.
    """
    root = Path(tempfile.mkdtemp(prefix="ci-bot-", dir=parent))
    try:
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
        copied = copy_checkout(checkout, repository, identity=identity) if copy else CopyReport()
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
    finally:
        remove_tree(root)


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


def inside(root: Path, relative: str, *, what: str) -> Path:
    """The real path of `relative` below `root`.

    Args:
        root: The directory that must not be left.
        relative: A path from an input, absolute or relative to `root`.
        what: What the message calls it, such as "Project path".

    Raises:
        BadInput: The path leaves `root`, through `..`, as an absolute path, or through a link.
    """
    top = root.resolve()
    if "\0" in relative or not relative.strip():
        raise BadInput(f"{what} {relative!r} is not a path.", reason_code="bad_path")
    path = (top / relative).resolve()
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
        if path.is_dir():
            found[os.path.relpath(path, root.resolve())] = None
        else:
            problems.append(f"Project path `{given}` is not a directory of the repository.")
    if problems:
        raise BadInput(
            " ".join(problems),
            hint="Input `project` names directories relative to the repository's root.",
            reason_code="bad_project_path",
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
