"""The files of a report: written whole or not at all, and to whom they belong."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from ci_bot.errors import BadInput, BotError
from ci_bot.protocol.base import Contract

CANNOT_WRITE = "No file can be written to"

Format = Literal["terminal", "markdown", "json"]
# The same name after a review and after an apply: an apply's page also holds the review.
PAGE = "report.html"


@dataclass(frozen=True)
class DocumentTexts:
    """The makers of a document's texts; each text is made only when it is written, and not kept.

    Attributes:
        markdown: Makes the complete document as Markdown.
        page: Makes the same as one HTML file, `report.html`, in pieces; gives None if there is
            none.
        sarif: Makes its findings as NAME.sarif; gives None if there are none.
    """

    markdown: Callable[[], str]
    page: Callable[[], Iterator[str] | None] = lambda: None
    sarif: Callable[[], str | None] = lambda: None


def write_files(directory: Path, name: str, document: Contract, texts: DocumentTexts) -> None:
    """Writes NAME.json, NAME.md and, if they exist, NAME.sarif and the page into `directory`.

    It creates the directory. Each file is complete.

    Raises:
        BotError: a file cannot be written there; `check_output` finds that before anything is done.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, parts in _list_report_files(name, document, texts):
            with (directory / file).open("wb") as opened:
                opened.writelines(parts)
    except OSError as error:
        raise _make_not_written_error(directory, error) from error


def check_output(directory: Path, *, option: str = "--output") -> None:
    """Checks, before anything is done, that files can be written there; leaves no file behind.

    Raises:
        BadInput: no file can be written there.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".ci-bot-", dir=_find_nearest_directory(directory)):
            pass
    except OSError as error:
        raise BadInput(
            f"{CANNOT_WRITE} {directory}: {_describe_os_error(error)}.",
            hint=f"Name a directory that can be written, with `{option}`.",
            reason_code="output",
        ) from error


def write_within(
    workspace: Path, folder: str, name: str, document: Contract, texts: DocumentTexts
) -> str:
    """Writes the same files into `folder` of a workspace whose content is not ours.

    It never follows or writes through what somebody has put there: it refuses a link in place of
    the folder, and it replaces files instead of opening them. The new files belong to the owner of
    the workspace, also if we run as root and the owner is not root: the next checkout runs as that
    owner and has to be able to remove them.

    Returns:
        The SHA-256 of the JSON file, in hexadecimal digits.

    Raises:
        BotError: it cannot be written there.
    """
    try:
        owner = workspace.stat()
        with suppress(FileExistsError):
            (workspace / folder).mkdir()
        place = os.open(workspace / folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            _give_to_owner(place, owner)
            written = {
                file: _replace_report_file(place, file, parts, owner)
                for file, parts in _list_report_files(name, document, texts)
            }
        finally:
            os.close(place)
    except OSError as error:
        raise _make_not_written_error(workspace / folder, error) from error
    return written[_name_document(name)]


def check_within(workspace: Path, folder: str) -> None:
    """Checks, before anything is done, that `write_within` may write there.

    Raises:
        BadInput: somebody has put something else in place of the folder, or it is not writable.
    """
    place = workspace / folder
    if os.path.lexists(place) and not stat.S_ISDIR(place.lstat().st_mode):
        raise BadInput(
            f"`{folder}` in the checkout is no directory, and the report is written to one of that "
            "name.",
            hint=f"Take `{folder}` out of the repository.",
            reason_code="output",
        )
    check_output(place)


def _find_nearest_directory(directory: Path) -> Path:
    """Returns the directory itself, or the nearest one above it that exists."""
    for path in (directory, *directory.parents):
        with suppress(FileNotFoundError, NotADirectoryError):
            path.lstat()
            return path
    return directory


def _list_report_files(
    name: str, document: Contract, texts: DocumentTexts
) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yields each file's name and content, in the order of writing; makes each only when due."""
    yield _name_document(name), chain(document.iterate_parts(indent=2), [b"\n"])
    yield f"{name}.md", [texts.markdown().encode()]
    sarif = texts.sarif()
    if sarif is not None:
        yield f"{name}.sarif", [sarif.encode()]
    page = texts.page()
    if page is not None:
        yield PAGE, map(str.encode, page)


def _name_document(name: str) -> str:
    return f"{name}.json"


def _replace_report_file(
    place: int, file: str, parts: Iterable[bytes], owner: os.stat_result
) -> str:
    """Puts a new file into the open directory `place`, and replaces any file of this name.

    Returns:
        The SHA-256 of its content, in hexadecimal digits.
    """
    written = hashlib.sha256()
    part = f".{file}.part"
    with suppress(FileNotFoundError):
        os.unlink(part, dir_fd=place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(part, flags, 0o644, dir_fd=place), "wb") as opened:
            _give_to_owner(opened.fileno(), owner)
            for content in parts:
                written.update(content)
                opened.write(content)
        os.rename(part, file, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        # The folder is uploaded as it is, so half of a file must not stay in it.
        with suppress(OSError):
            os.unlink(part, dir_fd=place)
        raise
    return written.hexdigest()


def _give_to_owner(handle: int, owner: os.stat_result) -> None:
    """Gives what we have made to the owner; what belongs to somebody else stays theirs."""
    now = os.fstat(handle)
    if os.geteuid() == 0 and now.st_uid == 0 and owner.st_uid != 0:
        os.fchown(handle, owner.st_uid, owner.st_gid)


def _make_not_written_error(directory: Path, error: OSError) -> BotError:
    return BotError(
        f"The report could not be written to {directory}: {_describe_os_error(error)}.",
        hint="What was done stays done; only its files are missing.",
        reason_code="output",
    )


def _describe_os_error(error: OSError) -> str:
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "a file is in the way"
    return error.strerror or type(error).__name__
