"""The files of a team's policy, and those with comments for it: of a commit, or of a laptop."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

from ci_bot.bot.cage.git.repository import Git
from ci_bot.bot.policy.known_rules import known_rules
from ci_bot.bot.policy.policy import Policy
from ci_bot.bot.policy.policy_file import FILE_NAME, MOST_BYTES, read_policy, unfit
from ci_bot.bot.worker_calls.review.changed_files import Changes
from ci_bot.contracts.files import LARGEST_FILE_BYTES

# A path, and the text on either side; None where that side has no such file.
TwoTexts = tuple[str, str | None, str | None]
_MARK = b"review:"


def paths_of(projects: Iterable[str]) -> list[str]:
    """Where the policies of some projects are, relative to the repository."""
    return list(dict.fromkeys(posixpath.normpath(f"{path}/{FILE_NAME}") for path in projects))


def file_content(path: Path, at_most: int = MOST_BYTES) -> bytes | None:
    """A file's first bytes, as many as it may have and one more; None where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(at_most + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        told = f"it cannot be read ({error.strerror})"
        raise unfit(path.name, [(1, told)]) from error


def contents_of(git: Git, commit: str, paths: Sequence[str]) -> list[bytes | None]:
    """The same of a commit's files."""
    with git.objects.files_of(commit, at_most=MOST_BYTES) as read:
        return [read(path) for path in paths]


def policy_of(paths: Sequence[str], contents: Sequence[bytes | None], today: date) -> Policy:
    """The policy of the files that are there.

    Raises:
        UnfitPolicy: one of them cannot be used.
    """
    rules = known_rules()
    return Policy(
        tuple(
            read_policy(content, path=path, rules=rules, today=today)
            for path, content in zip(paths, contents, strict=True)
            if content is not None
        )
    )


def is_sql(path: str) -> bool:
    """Whether a file may hold a model in SQL."""
    return path.lower().endswith(".sql")


def both_sides(git: Git, changed: Changes) -> Iterator[TwoTexts]:
    """The changed SQL files that may have a comment for the review."""
    for file in changed.contents(git, lambda item: is_sql(item.path)):
        if _MARK in (file.before or b"") + (file.after or b""):
            yield file.path, text_of(file.before), text_of(file.after)


def as_they_are(git: Git, commit: str, paths: Sequence[str]) -> Iterator[TwoTexts]:
    """The same for files that do not change."""
    if not paths:
        return
    with git.objects.files_of(commit, at_most=LARGEST_FILE_BYTES) as read:
        for path in paths:
            content = read(path)
            if content is not None and _MARK in content:
                yield path, text_of(content), text_of(content)


def text_of(content: bytes | None) -> str | None:
    """A file's content as text; what is no UTF-8 is replaced."""
    return None if content is None else content.decode("utf-8", "replace")
