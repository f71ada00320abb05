"""What is refused before anything is started in the container."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.sandbox.launch import (
    ENTER,
    READ,
    WRITE,
    SandboxIdentity,
    SandboxLaunch,
    has_sandboxed_user_right,
    list_paths_open_to_sandboxed_user,
)
from ci_bot.errors import BadInput

WORKER = SandboxIdentity(uid=61_234, gid=61_234)


@pytest.fixture
def passable() -> Iterator[Path]:
    """A directory that everybody may enter; pytest's are the account's own."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def launch(tmp_path: Path, **fields: Any) -> SandboxLaunch:
    given: dict[str, Any] = {
        "python": "/usr/bin/python3",
        "variables": {"SPARK_PASSWORD": "hunter22"},
        "directory": tmp_path,
        "channel_directory": tmp_path,
        "search_path": (),
        "identity": WORKER,
        "in_container": True,
        "guarded": (),
    }
    return SandboxLaunch(**(given | fields))


def test_check__the_container_as_published(tmp_path: Path) -> None:
    launch(tmp_path).check_separation(own_uid=0)


@pytest.mark.parametrize(
    ("identity", "own_uid", "reason"),
    [
        (None, 0, "worker_is_root"),
        (SandboxIdentity(uid=0, gid=61_234), 0, "worker_is_root"),
        (SandboxIdentity(uid=61_234, gid=0), 0, "worker_is_root"),
        (WORKER, 1001, "cannot_drop_privileges"),
        (WORKER, WORKER.uid, "cannot_drop_privileges"),
    ],
)
def test_check__no_separation(
    tmp_path: Path, identity: SandboxIdentity | None, own_uid: int, reason: str
) -> None:
    with pytest.raises(BadInput) as failure:
        launch(tmp_path, identity=identity).check_separation(own_uid=own_uid)
    assert failure.value.reason_code == reason
    assert failure.value.hint


def test_check__on_a_laptop_nothing_is_asked(tmp_path: Path) -> None:
    launch(tmp_path, identity=None, in_container=False).check_separation(own_uid=0)
    launch(tmp_path, identity=None, in_container=False).check_separation(own_uid=1000)


def test_check__open_doors(tmp_path: Path, passable: Path) -> None:
    directory = passable / "run"
    directory.mkdir(mode=0o755)
    address = directory / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(address))
        address.chmod(0o660)
        launch(tmp_path, guarded=(address,)).check_separation(own_uid=0)
        address.chmod(0o666)
        with pytest.raises(BadInput, match=r"docker\.sock") as failure:
            launch(tmp_path, guarded=(address,)).check_separation(own_uid=0)
    assert failure.value.reason_code == "open_door"


def test_open_doors__files_and_their_directories(passable: Path) -> None:
    closed, loose = passable / "closed", passable / "loose"
    for directory, mode in ((closed, 0o755), (loose, 0o777)):
        directory.mkdir()
        directory.chmod(mode)
        (directory / "set_output").touch(mode=0o644)
    sticky = passable / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    (sticky / "set_output").touch(mode=0o644)
    files = [place / "set_output" for place in (closed, loose, sticky)]
    assert list_paths_open_to_sandboxed_user([*files, passable / "not there"], WORKER) == [loose]


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "allowed"),
    [
        (0o644, 0, 0, {READ}),
        (0o600, 0, 0, set()),
        (0o602, 0, 0, {WRITE}),
        (0o660, 0, WORKER.gid, {READ, WRITE}),
        (0o606, 0, WORKER.gid, set()),
        (0o711, 0, 0, {ENTER}),
        (0o000, WORKER.uid, 0, {READ, WRITE, ENTER}),
    ],
)
def test_may__mode_bits(mode: int, uid: int, gid: int, allowed: set[int]) -> None:
    status = os.stat_result((0o100000 | mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))
    assert {
        right for right in (READ, WRITE, ENTER) if has_sandboxed_user_right(status, WORKER, right)
    } == allowed


def test_launch__does_not_show_the_environment(tmp_path: Path) -> None:
    assert "hunter22" not in repr(launch(tmp_path))


def test_open_doors__behind_a_directory_that_the_worker_may_not_enter(passable: Path) -> None:
    """As files of nektos/act, writable by everybody, are made safe by a directory of root's own."""
    locked = passable / "locked"
    (locked / "inner").mkdir(parents=True, mode=0o777)
    (locked / "inner").chmod(0o777)
    file = locked / "inner" / "output"
    file.touch()
    file.chmod(0o666)
    link = passable / "link"
    link.symlink_to(file)
    locked.chmod(0o755)
    assert list_paths_open_to_sandboxed_user([file, link], WORKER) == [file, file.parent, link]
    locked.chmod(0o700)
    assert list_paths_open_to_sandboxed_user([file, link], WORKER) == []
