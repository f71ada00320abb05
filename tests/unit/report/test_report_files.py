"""Where the report's files go: written whole, never through what somebody has planted there."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci_bot.bot.report.files import (
    DocumentTexts,
    check_output,
    check_within,
    write_files,
    write_within,
)
from ci_bot.errors import BadInput, BotError
from tests.factories import make_cleanup

FOLDER = "ci-bot-report"
DOCUMENT = make_cleanup()
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


def write(workspace: Path) -> str:
    return write_within(workspace, FOLDER, "cleanup", DOCUMENT, DocumentTexts(lambda: "# Report\n"))


def test_report__is_there_and_no_part_of_a_file_is(workspace: Path) -> None:
    digest = write(workspace)
    assert write(workspace) == digest, "a second run of the same job replaces the first's"
    folder = workspace / FOLDER
    assert sorted(path.name for path in folder.iterdir()) == ["cleanup.json", "cleanup.md"]
    content = (folder / "cleanup.json").read_bytes()
    assert content == DOCUMENT.to_bytes(indent=2) + b"\n"
    assert hashlib.sha256(content).hexdigest() == digest
    assert (folder / "cleanup.md").read_text() == "# Report\n"


def test_report__that_a_full_disk_cuts__leaves_no_part_of_a_file(workspace: Path) -> None:
    """The folder is uploaded as an artifact, with whatever lies in it."""

    def full() -> Iterator[str]:
        yield "<html>"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(BotError, match="No space left on device"):
        write_within(
            workspace, FOLDER, "cleanup", DOCUMENT, DocumentTexts(lambda: "# Report\n", full)
        )
    names = sorted(path.name for path in (workspace / FOLDER).iterdir())
    assert names == ["cleanup.json", "cleanup.md"]


def test_report__whose_folder_is_a_link__is_refused(workspace: Path, tmp_path: Path) -> None:
    """A checkout can hold a link to anywhere, and in the container we are root."""
    victim = tmp_path / "etc"
    victim.mkdir()
    (workspace / FOLDER).symlink_to(victim)
    with pytest.raises(BadInput, match="`ci-bot-report` in the checkout is no directory") as early:
        check_within(workspace, FOLDER)
    assert "Take `ci-bot-report` out of the repository" in (early.value.hint or "")
    with pytest.raises(BotError, match="could not be written"):
        write(workspace)
    assert list(victim.iterdir()) == []
    assert (workspace / FOLDER).is_symlink()


@pytest.mark.parametrize("planted", ["file", "dangling", "loop", "pipe"])
def test_report__whose_folder_is_something_else__is_refused(workspace: Path, planted: str) -> None:
    place = workspace / FOLDER
    if planted == "file":
        place.write_text("x")
    elif planted == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(FOLDER if planted == "loop" else "/not/there")
    with pytest.raises(BadInput, match="is no directory"):
        check_within(workspace, FOLDER)
    with pytest.raises(BotError, match="could not be written"):
        write(workspace)


@pytest.mark.parametrize("name", ["cleanup.json", "cleanup.md", ".cleanup.json.part"])
@pytest.mark.parametrize("hard", [False, True])
def test_report__whose_file_is_a_link__replaces_the_link(
    workspace: Path, tmp_path: Path, name: str, hard: bool
) -> None:
    victim = tmp_path / "passwd"
    victim.write_text("root")
    (workspace / FOLDER).mkdir()
    if hard:
        (workspace / FOLDER / name).hardlink_to(victim)
    else:
        (workspace / FOLDER / name).symlink_to(victim)
    check_within(workspace, FOLDER)
    write(workspace)
    assert victim.read_text() == "root"
    for path in (workspace / FOLDER).iterdir():
        assert not path.is_symlink()
        assert path.stat().st_nlink == 1


def test_report__whose_file_is_a_directory__is_told(workspace: Path) -> None:
    (workspace / FOLDER / "cleanup.json").mkdir(parents=True)
    with pytest.raises(BotError, match="could not be written") as failed:
        write(workspace)
    assert failed.value.exit_code == 1
    assert failed.value.reason_code == "output"


def test_report__that_fails_half_way__leaves_no_part_of_a_file(workspace: Path) -> None:
    """The folder is uploaded as it is."""

    def page() -> Iterator[str]:
        yield "<html>"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BotError, match="No space left on device"):
        write_within(
            workspace, FOLDER, "cleanup", DOCUMENT, DocumentTexts(lambda: "# Report\n", page)
        )
    names = sorted(path.name for path in (workspace / FOLDER).iterdir())
    assert names == ["cleanup.json", "cleanup.md"]


@as_root
def test_report__belongs_to_the_owner_of_the_workspace(workspace: Path) -> None:
    """As root's, the runner's own account could not remove it, and its next checkout would fail."""
    os.chown(workspace, 1001, 1002)
    write(workspace)
    for path in (workspace / FOLDER, *(workspace / FOLDER).iterdir()):
        assert (path.stat().st_uid, path.stat().st_gid) == (1001, 1002), path


@as_root
def test_report__of_an_older_run_as_root__is_given_back(workspace: Path) -> None:
    write(workspace)
    os.chown(workspace, 1001, 1001)
    write(workspace)
    for path in (workspace / FOLDER, *(workspace / FOLDER).iterdir()):
        assert path.stat().st_uid == 1001, path


@as_root
def test_report__leaves_other_peoples_files_theirs(workspace: Path) -> None:
    os.chown(workspace, 1001, 1001)
    (workspace / FOLDER).mkdir()
    os.chown(workspace / FOLDER, 1003, 1003)
    (workspace / FOLDER / "mine.txt").write_text("x")
    os.chown(workspace / FOLDER / "mine.txt", 1003, 1003)
    write(workspace)
    assert (workspace / FOLDER).stat().st_uid == 1003
    assert (workspace / FOLDER / "mine.txt").stat().st_uid == 1003


@as_root
def test_report__in_a_workspace_of_our_own__stays_ours(workspace: Path) -> None:
    write(workspace)
    assert (workspace / FOLDER).stat().st_uid == 0


# --- `--output`: a directory of the user's own choice -----------------------------------------------


def test_output__is_tried_without_leaving_anything(tmp_path: Path) -> None:
    check_output(tmp_path / "new" / "deep")
    assert list(tmp_path.iterdir()) == []
    write_files(tmp_path / "new" / "deep", "cleanup", DOCUMENT, DocumentTexts(lambda: "x"))
    before = sorted((tmp_path / "new" / "deep").iterdir())
    check_output(tmp_path / "new" / "deep")
    assert sorted((tmp_path / "new" / "deep").iterdir()) == before


def test_output__may_be_a_link_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    check_output(tmp_path / "link")
    write_files(tmp_path / "link", "cleanup", DOCUMENT, DocumentTexts(lambda: "x"))
    assert (tmp_path / "real" / "cleanup.json").exists()


def test_output__that_fails_at_the_end__is_no_bad_input(tmp_path: Path) -> None:
    """What was done is done: exit 2 would say that nothing was."""
    (tmp_path / "cleanup.json").mkdir()
    with pytest.raises(BotError) as failed:
        write_files(tmp_path, "cleanup", DOCUMENT, DocumentTexts(lambda: "x"))
    assert (failed.value.exit_code, failed.value.reason_code) == (1, "output")
    assert "What was done stays done" in (failed.value.hint or "")
