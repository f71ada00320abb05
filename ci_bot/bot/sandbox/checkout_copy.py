"""The worker's own copy of the checkout: quick, small, and without links that lead out.

Not copied at all: `.git` (the worker needs no history, and `.git/config` may hold credentials),
`.cache` (SQLMesh's entries are pickles, and loading one runs code), byte code, and installed
packages. Symbolic links that leave the checkout are left out and reported.

Copied: files that are small enough to be code, up to a budget. Other files, and directories that
hold no code at all, are linked to the original, if the worker can read but not change them there.
So a repository of hundreds of megabytes takes no more time and space than its models. Databases are
always copied, because they are opened for writing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_bot.bot.sandbox.deadline import SandboxDeadline, make_endless_sandbox_deadline
from ci_bot.bot.sandbox.launch import (
    ENTER,
    MIB,
    READ,
    WRITE,
    SandboxDiskReserve,
    SandboxIdentity,
    has_sandboxed_user_right,
)
from ci_bot.errors import FULL_DISK_HINT, BadInput

DURING_EXPORT = "while the base branch was exported"

SKIPPED_NAMES = frozenset(
    {".git", ".cache", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache", ".tox"}
)
SKIPPED_SUFFIXES = (".pyc", ".pyo")
DATABASE_SUFFIXES = (".db", ".duckdb", ".wal", ".sqlite", ".sqlite3")
CODE_SUFFIXES = (".sql", ".py", ".yaml", ".yml", ".toml", ".env", ".txt", ".jinja", ".j2")
LINK_FROM_BYTES = 64 * 1024
# A link costs as much as two or three small copies, so it pays for a directory with so many files.
LINK_FROM_FILES = 16
CODE_BUDGET_BYTES = 20 * 1024 * 1024
OTHER_BUDGET_BYTES = 4 * 1024 * 1024
_CHUNK = 1024 * 1024
_COPYING = "while the checkout was copied"


@dataclass
class SandboxedCopyReport:
    """What was copied of a checkout; paths are relative to it."""

    files: int = 0
    copied_bytes: int = 0
    code_bytes: int = 0
    linked: int = 0
    dropped_links: list[str] = field(default_factory=list)


@dataclass
class _DirectoryCopiedIntoSandbox:
    """One directory of the checkout; the last three fields include everything below it.

    `reachable`: the worker can walk to it. `plain`: it holds no code and no links, and the worker
    can read but not change it.
    """

    path: str
    parent: int
    reachable: bool
    names: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    plain: bool = False
    files: int = 0
    size: int = 0

    def is_linked(self) -> bool:
        worth_it = self.size > LINK_FROM_BYTES or self.files > LINK_FROM_FILES
        return self.plain and worth_it


def copy_checkout_into_sandbox(
    source: Path,
    target: Path,
    *,
    identity: SandboxIdentity | None,
    deadline: SandboxDeadline | None = None,
    disks: Sequence[SandboxDiskReserve] = (),
) -> SandboxedCopyReport:
    """Copies the tree at `source` to the new directory `target`, which `identity` will own.

    Directories and files get mode 0700 and 0600 (0700 if the file was executable). Without an
    identity nothing is linked.

    Args:
        disks: What the copy may not use up: a sparse file is copied with its full size.

    Raises:
        TimedOut: the deadline passed.
        BadInput: there is no room for a file.
    """
    root = os.path.realpath(source)
    report = SandboxedCopyReport()
    deadline = deadline or make_endless_sandbox_deadline()
    directories = _survey_directories_for_sandbox(root, identity, deadline)
    done: set[int] = set()
    for number, directory in enumerate(directories):
        # Strings, because thousands of Path objects would cost as much time as the copy.
        there = f"{target}{directory.path[len(root) :]}"
        if directory.parent in done:
            done.add(number)
        elif number and directory.is_linked():
            os.symlink(directory.path, there)
            done.add(number)
            report.files += directory.files
            report.linked += 1
        else:
            os.mkdir(there, 0o700)
            _give_ownership_to_sandboxed_user(there, identity)
            for name in directory.links:
                _copy_link_into_sandbox(root, f"{directory.path}/{name}", f"{there}/{name}", report)
            for name in directory.names:
                deadline.check_time(_COPYING)
                _copy_file_into_sandbox(
                    directory, name, f"{there}/{name}", identity, report, deadline, disks
                )
    return report


def seal_tree_for_sandbox(
    root: Path, *, identity: SandboxIdentity | None, deadline: SandboxDeadline | None = None
) -> list[str]:
    """Gives our tree to `identity` and drops its links that lead out; returns the links' paths."""
    dropped: list[str] = []
    deadline = deadline or make_endless_sandbox_deadline()
    top = os.path.realpath(root)
    for directory, names, files in os.walk(top):
        deadline.check_time(DURING_EXPORT)
        _give_ownership_to_sandboxed_user(directory, identity)
        for name in [*names, *files]:
            path = Path(directory, name)
            if path.is_symlink():
                if not _does_link_stay_in_sandbox(top, str(path)):
                    path.unlink()
                    dropped.append(str(path.relative_to(top)))
            elif name in files:
                _give_ownership_to_sandboxed_user(str(path), identity)
    return sorted(dropped)


def _survey_directories_for_sandbox(
    root: str, identity: SandboxIdentity | None, deadline: SandboxDeadline
) -> list[_DirectoryCopiedIntoSandbox]:
    """Lists all directories that are copied or linked, each before those in it."""
    found: list[_DirectoryCopiedIntoSandbox] = []
    above = identity is not None and all(
        has_sandboxed_user_right(part.stat(), identity, ENTER) for part in Path(root).parents
    )
    todo = [_DirectoryCopiedIntoSandbox(root, -1, above)]
    while todo:
        deadline.check_time(_COPYING)
        directory = todo.pop()
        found.append(directory)
        if identity is not None:
            status = Path(directory.path).stat()
            directory.reachable = directory.reachable and has_sandboxed_user_right(
                status, identity, ENTER
            )
            directory.plain = directory.reachable and _may_sandbox_only_read_file(status, identity)
        for entry in sorted(os.scandir(directory.path), key=lambda entry: entry.name):
            if _is_entry_taken_into_sandbox(entry) and entry.is_dir(follow_symlinks=False):
                todo.append(
                    _DirectoryCopiedIntoSandbox(entry.path, len(found) - 1, directory.reachable)
                )
            else:
                _note_entry_of_sandboxed_copy(directory, entry, identity)
    for directory in reversed(found[1:]):
        parent = found[directory.parent]
        parent.plain = parent.plain and directory.plain
        parent.files += directory.files
        parent.size += directory.size
    return found


def _is_entry_taken_into_sandbox(entry: os.DirEntry[str]) -> bool:
    if entry.name in SKIPPED_NAMES or entry.name.endswith(SKIPPED_SUFFIXES):
        return False
    if entry.is_dir(follow_symlinks=False):
        return not os.path.exists(f"{entry.path}/pyvenv.cfg")
    return True


def _note_entry_of_sandboxed_copy(
    directory: _DirectoryCopiedIntoSandbox,
    entry: os.DirEntry[str],
    identity: SandboxIdentity | None,
) -> None:
    """Records an entry that is no directory, or that is left out."""
    taken = _is_entry_taken_into_sandbox(entry)
    if taken and entry.is_symlink():
        directory.links.append(entry.name)
    elif taken and entry.is_file():
        directory.names.append(entry.name)
        directory.files += 1
        if directory.plain and identity is not None:
            status = entry.stat()
            directory.size += status.st_size
            directory.plain = _may_sandbox_only_read_file(
                status, identity
            ) and not entry.name.endswith(CODE_SUFFIXES + DATABASE_SUFFIXES)
        return
    directory.plain = False


def _copy_file_into_sandbox(
    directory: _DirectoryCopiedIntoSandbox,
    name: str,
    target: str,
    identity: SandboxIdentity | None,
    report: SandboxedCopyReport,
    deadline: SandboxDeadline,
    disks: Sequence[SandboxDiskReserve],
) -> None:
    source = f"{directory.path}/{name}"
    reader = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(reader)
        if not stat.S_ISREG(status.st_mode):
            return
        report.files += 1
        if (
            directory.reachable
            and identity
            and _is_file_linked_into_sandbox(source, status, identity, report)
        ):
            os.symlink(source, target)
            report.linked += 1
            return
        if status.st_size > LINK_FROM_BYTES:
            _check_room_for_sandboxed_copy(target, status.st_size, disks)
        mode = 0o600 | (status.st_mode & 0o100)
        writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        try:
            for chunk in _read_chunks_of_copied_file(reader):
                deadline.check_time(_COPYING)
                os.write(writer, chunk)
                report.copied_bytes += len(chunk)
                report.code_bytes += len(chunk) * name.endswith(CODE_SUFFIXES)
            if identity is not None:
                os.fchown(writer, identity.uid, identity.gid)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def _check_room_for_sandboxed_copy(
    target: str, size: int, disks: Sequence[SandboxDiskReserve]
) -> None:
    for disk in disks:
        if disk.is_used_up(more_bytes=size):
            raise BadInput(
                f"The checkout cannot be copied: `{Path(target).name}` has {size / MIB:,.0f} MiB, "
                f"and {disk.disk_name} has too little space left for it.",
                hint=f"{FULL_DISK_HINT} A large file that the models do not need can stay out of "
                "the checkout.",
                reason_code="disk_full",
            )


def _is_file_linked_into_sandbox(
    source: str, status: os.stat_result, identity: SandboxIdentity, report: SandboxedCopyReport
) -> bool:
    if source.endswith(CODE_SUFFIXES):
        left = CODE_BUDGET_BYTES - report.code_bytes
    else:
        left = OTHER_BUDGET_BYTES - (report.copied_bytes - report.code_bytes)
    if status.st_size <= min(LINK_FROM_BYTES, left) or source.endswith(DATABASE_SUFFIXES):
        return False
    return _may_sandbox_only_read_file(status, identity)


def _may_sandbox_only_read_file(status: os.stat_result, identity: SandboxIdentity) -> bool:
    return has_sandboxed_user_right(status, identity, READ) and not has_sandboxed_user_right(
        status, identity, WRITE
    )


def _read_chunks_of_copied_file(reader: int) -> Iterator[bytes]:
    while chunk := os.read(reader, _CHUNK):
        yield chunk


def _copy_link_into_sandbox(
    root: str, source: str, target: str, report: SandboxedCopyReport
) -> None:
    if not _does_link_stay_in_sandbox(root, source):
        report.dropped_links.append(os.path.relpath(source, root))
        return
    # Relative, so that the link leads to the copy and not back to the original.
    resolved = os.path.realpath(source)
    here = os.path.realpath(os.path.dirname(source))
    os.symlink(os.path.relpath(resolved, here), target)


def _does_link_stay_in_sandbox(root: str, link: str) -> bool:
    resolved = os.path.realpath(link)
    if resolved != root and not resolved.startswith(root + os.sep):
        return False
    return not SKIPPED_NAMES & set(Path(os.path.relpath(resolved, root)).parts)


def _give_ownership_to_sandboxed_user(path: str, identity: SandboxIdentity | None) -> None:
    if identity is not None:
        os.chown(path, identity.uid, identity.gid, follow_symlinks=False)
