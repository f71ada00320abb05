"""When a caged process has to end, because it fills a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.sandbox.launch import (
    SandboxFreeSpace,
    list_disk_reserves_of_sandbox,
    read_free_space_for_sandbox,
)

GIB = 1024**3


class Disk:
    """A disk that others fill, and that can stop to answer."""

    def __init__(self, free: SandboxFreeSpace) -> None:
        self.free: SandboxFreeSpace | None = free

    def read(self, _directory: Path) -> SandboxFreeSpace:
        if self.free is None:
            raise OSError("stale handle")
        return self.free


@pytest.mark.parametrize(
    ("start", "now", "used_up", "urgent"),
    [
        (SandboxFreeSpace(50 * GIB, None), SandboxFreeSpace(2 * GIB, None), False, False),
        (SandboxFreeSpace(50 * GIB, None), SandboxFreeSpace(GIB, None), False, False),
        (SandboxFreeSpace(50 * GIB, None), SandboxFreeSpace(GIB - 1, None), True, False),
        (SandboxFreeSpace(50 * GIB, None), SandboxFreeSpace(GIB // 2 - 1, None), True, True),
        # A disk that had little is no reason to do nothing: half of it may be used.
        (SandboxFreeSpace(GIB // 4, None), SandboxFreeSpace(GIB // 8, None), False, False),
        (SandboxFreeSpace(GIB // 4, None), SandboxFreeSpace(GIB // 8 - 1, None), True, False),
        (SandboxFreeSpace(0, None), SandboxFreeSpace(0, None), False, False),
        # Empty files fill a disk, too.
        (SandboxFreeSpace(50 * GIB, 1_000_000), SandboxFreeSpace(50 * GIB, 10_000), False, False),
        (SandboxFreeSpace(50 * GIB, 1_000_000), SandboxFreeSpace(50 * GIB, 9_999), True, False),
        (SandboxFreeSpace(50 * GIB, 1_000), SandboxFreeSpace(50 * GIB, 400), True, False),
    ],
)
def test_reserve__is_kept(
    tmp_path: Path, start: SandboxFreeSpace, now: SandboxFreeSpace, *, used_up: bool, urgent: bool
) -> None:
    disk = Disk(start)
    (reserve,) = list_disk_reserves_of_sandbox([tmp_path], GIB, read=disk.read)
    assert not reserve.is_used_up()

    disk.free = now

    assert reserve.is_used_up() is used_up
    assert reserve.is_used_up(share=0.5) is urgent


def test_lack__is_named_as_it_is(tmp_path: Path) -> None:
    disk = Disk(SandboxFreeSpace(50 * GIB, 1_000_000))
    (own,) = list_disk_reserves_of_sandbox([tmp_path], GIB, read=disk.read)
    (shared,) = list_disk_reserves_of_sandbox([Path("/var/tmp")], GIB, read=disk.read)
    assert own.describe_lack() == ""

    disk.free = SandboxFreeSpace(50 * GIB, 9_999)
    assert own.describe_lack() == (
        "the disk of the temporary directory had room for less than 10,000 more files"
    )
    disk.free = SandboxFreeSpace(GIB - 1, 1_000_000)
    assert shared.describe_lack() == "the disk of /var/tmp had less than 1,024 MiB left"
    disk.free = SandboxFreeSpace(3 * GIB, 1_000_000)
    assert own.describe_lack(more_bytes=GIB) == ""
    assert own.describe_lack(more_bytes=2 * GIB + 1)


def test_disk__that_does_not_answer_ends_nothing(tmp_path: Path) -> None:
    disk = Disk(SandboxFreeSpace(50 * GIB, None))
    (reserve,) = list_disk_reserves_of_sandbox([tmp_path], GIB, read=disk.read)
    disk.free = None
    assert not reserve.is_used_up()
    assert list_disk_reserves_of_sandbox([tmp_path], GIB, read=disk.read) == []


def test_reserves__are_one_for_each_disk(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    found = list_disk_reserves_of_sandbox([tmp_path, tmp_path / "below", tmp_path / "gone"], GIB)
    assert [reserve.directory for reserve in found] == [tmp_path]
    assert read_free_space_for_sandbox(tmp_path).bytes > 0
