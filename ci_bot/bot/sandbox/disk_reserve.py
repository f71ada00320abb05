"""What is kept free of the disks that a caged process writes to.

There is no quota that a container could set, and the size of a tree does not count files that
were removed and are still open. So the disk itself is checked, and the process is ended before it
is full: then the bot can still write its report, and others on the machine can go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
DISK_RESERVE_BYTES = 1024 * MIB

# A disk without files and directories to spare is as full as one without bytes.
_RESERVED_FILES = 10_000
# Everybody's, so a process of another user can fill them, too; in the container nobody else does.
# Looked at, not written to.
SHARED_DIRECTORIES = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  # nosec B108


@dataclass(frozen=True)
class FreeSpace:
    """What a disk has left for a user; `files` is None if it does not count them."""

    bytes: int
    files: int | None


def read_free_space(directory: Path) -> FreeSpace:
    """Raises OSError: the disk cannot be asked."""
    facts = os.statvfs(directory)
    return FreeSpace(
        bytes=facts.f_bavail * facts.f_frsize, files=facts.f_favail if facts.f_files else None
    )


@dataclass(frozen=True)
class DiskReserve:
    """The part of one disk that has to stay free."""

    directory: Path
    least: FreeSpace
    read: Callable[[Path], FreeSpace] = read_free_space

    def is_used_up(self, *, share: float = 1.0, more_bytes: int = 0) -> bool:
        """Whether less than (this share of) the reserve is left once `more_bytes` are written."""
        return bool(self.describe_lack(share=share, more_bytes=more_bytes))

    def describe_lack(self, *, share: float = 1.0, more_bytes: int = 0) -> str:
        """What the disk lacks, as a clause in the past tense; empty if it lacks nothing."""
        try:
            left = self.read(self.directory)
        except OSError:
            return ""
        files, least = left.files, self.least.files
        if files is not None and least is not None and files < least * share:
            return f"{self.disk_name} had room for less than {least:,} more files"
        if left.bytes - more_bytes < self.least.bytes * share:
            return f"{self.disk_name} had less than {self.least.bytes / MIB:,.0f} MiB left"
        return ""

    @property
    def disk_name(self) -> str:
        """What people call it: a run's own directory has a path that nobody chose."""
        if self.directory in SHARED_DIRECTORIES:
            return f"the disk of {self.directory}"
        return "the disk of the temporary directory"


def list_disk_reserves(
    directories: Iterable[Path],
    reserved_bytes: int,
    *,
    read: Callable[[Path], FreeSpace] = read_free_space,
) -> list[DiskReserve]:
    """The reserve of each disk that holds one of the directories, by what is free now.

    Where less is free than should be, it is half of that: a small disk is no reason to do nothing.
    """
    found: dict[int, DiskReserve] = {}
    for directory in directories:
        with suppress(OSError):
            free, device = read(directory), directory.stat().st_dev
            least = FreeSpace(
                bytes=_limit_to_half(reserved_bytes, free.bytes),
                files=None if free.files is None else _limit_to_half(_RESERVED_FILES, free.files),
            )
            found.setdefault(device, DiskReserve(directory, least, read))
    return list(found.values())


def _limit_to_half(wanted: int, free: int) -> int:
    return wanted if wanted < free else free // 2
