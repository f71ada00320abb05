"""What a review is about: its commits and options, and the files in which the commits differ.

The bot reads some files itself, and rules in the worker read both sides of others. The author of
the change decides how much that is, so it is limited here, once for all of them: if a file is too
large, alone or together with the rest, nobody reads it, and the report names it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from ci_bot.bot.decision import JudgedFile, TeamLimits
from ci_bot.bot.policy import (
    FILE_NAME,
    MOST_EXPOSURE_BYTES,
    MOST_POLICY_BYTES,
    ChangeAuthors,
    Policy,
    list_rules_that_policy_may_weigh,
    make_unfit_policy,
    read_exposures_listed_by_policy,
    read_policy,
)
from ci_bot.bot.sandbox import GitBlob, GitFile, GitRepository
from ci_bot.protocol.base import Sha
from ci_bot.protocol.cost import Price
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.files import LARGEST_FILE_BYTES, MOST_BYTES, is_file_read_by_a_rule
from ci_bot.protocol.messages import BaselineChoice, Owner
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_inputs import RestatementWish


@dataclass(frozen=True, kw_only=True)
class RequestedReviewCommits:
    """The commits of a review; null if they are unknown (a laptop without a base).

    The branches are those of the pull request; a laptop asks its own git for its base. `working` is
    the tree of a laptop's files if some of them are not committed.
    """

    head: Sha | None = None
    base: Sha | None = None
    merge: Sha | None = None
    working: str | None = None
    head_branch: str | None = None
    base_branch: str | None = None

    @property
    def reviewed_commit(self) -> str | None:
        """The commit of the reviewed content: the merge commit, a laptop's files, or the head."""
        return self.merge or self.working or self.head

    def base_names(self) -> list[str]:
        """Lists how `git:` in a selection of models may call the base of the pull request."""
        if self.base_branch is None:
            return []
        names = [self.base_branch, f"origin/{self.base_branch}"]
        return [*names, self.base] if self.base else names


@dataclass(frozen=True, kw_only=True)
class WorkerReviewOptions:
    """The options of a review.

    Attributes:
        limits: Those that an input sets; for the others the policy's count.
        before_apply: Whether an apply of the same run follows.
        cache_dir: Where the base cache is; None: no cache is read.
        find_authors: Asks GitHub who wrote the change; None if GitHub cannot be asked.
        restated_by: The pull requests whose recorded restatements count; None: the owner's own.
        wish: A restatement that somebody asks for.
        no_lighter: Why the policy makes nothing lighter, as a sentence; None if it may.
    """

    environment: EnvironmentName
    owner: Owner
    commits: RequestedReviewCommits
    baseline: BaselineChoice = "auto"
    flags: GivenFlags = field(default_factory=GivenFlags)
    start: str | None = None
    end: str | None = None
    pinned: bool = False
    execution_time: str | None = None
    limits: TeamLimits = field(default_factory=TeamLimits)
    executor_hour_price: Price | None = None
    before_apply: bool = False
    conflict: bool = False
    fork: bool = False
    python_path: tuple[str, ...] = ()
    cache_dir: str | None = None
    no_lighter: str | None = None
    restated_by: tuple[int, ...] | None = None
    wish: RestatementWish | None = None
    find_authors: Callable[[], ChangeAuthors] | None = None


# Replaces bytes in a path that are not UTF-8: nobody finds that file by its name.
_REPLACED = "\ufffd"
# Matches lines that may hold a credential (most do not), and words that may be one.
_MAY_BE_SECRET = re.compile(
    rb"(?i)pass|pwd|secret|token|key|cred|auth|bearer|sig=|://[^/\s]*:|akia|asia|gh[a-z]_|xox"
)
# A word with a digit, or one so long that a machine generated it.
_WORD = re.compile(
    r"(?<![^\s\"'`:@/=,;()<>{}\[\]])(?=[^\s\"'`:@/=,;()<>{}\[\]]*\d|\w{20})"
    r"[^\s\"'`:@/=,;()<>{}\[\]]{6,200}"
)

_MOST_WORDS, _MOST_ORIGINS = 1_000, 20

_LARGEST_ORIGIN = 256 * 1024


@dataclass(frozen=True)
class RequestedFileChanges:
    """The files in which two commits differ.

    Attributes:
        too_large: Those that some rule would read.
        copied_from: Unchanged files that hold what may be a credential in a new line.
    """

    files: tuple[GitFile, ...]
    too_large: tuple[str, ...]
    copied_from: Mapping[str, GitBlob] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files]

    def list_old_sides(self) -> dict[str, GitBlob]:
        """Returns the old side of the files that rules read, by path."""
        closed = set(self.too_large)
        return dict(self.copied_from) | {
            file.path: file.before
            for file in self.files
            if file.before is not None
            and is_file_read_by_a_rule(file.path)
            and file.path not in closed
            and _REPLACED not in file.path
        }

    def read_contents(
        self, git: GitRepository, wanted: Callable[[GitFile], bool]
    ) -> Iterator[JudgedFile]:
        """Yields both sides of the wanted files, one file at a time, without what nobody reads."""
        closed = set(self.too_large)
        with git.objects.open_contents(at_most=LARGEST_FILE_BYTES) as read:
            for file in filter(wanted, self.files):
                known = is_file_read_by_a_rule(file.path) and file.path not in closed
                yield JudgedFile(
                    path=file.path,
                    before=read(file.before.id) if known and file.before else None,
                    after=read(file.after.id) if known and file.after else None,
                    read=known,
                )


def list_file_changes(git: GitRepository, base: Sha, head: Sha) -> RequestedFileChanges:
    """Lists the pull request's own changes, with the files that are too large to be read.

    Raises:
        BadInput: the commits cannot be compared.
        TimedOut: the run has no more time.
    """
    files = tuple(git.changed_files(base, head))
    looked_at = [file for file in files if is_file_read_by_a_rule(file.path)]
    sizes = git.objects.read_sizes(
        blob.id for file in looked_at for blob in _list_sides_of_file(file)
    )
    changed = RequestedFileChanges(files, tuple(_list_too_large_files(looked_at, sizes)))
    return replace(changed, copied_from=_list_origins(git, base, changed))


def _list_origins(
    git: GitRepository, base: str, changed: RequestedFileChanges
) -> dict[str, GitBlob]:
    """Finds files of the base that do not change, with words of new lines about credentials.

    Text that was there before is no new secret. Only the rule says which word is a credential, so
    any word counts here.
    """
    words: set[str] = set()
    for file in changed.read_contents(git, lambda one: one.after is not None):
        if file.after is None or not _MAY_BE_SECRET.search(file.after):
            continue
        known = set((file.before or b"").splitlines())
        for line in file.after.splitlines():
            if line not in known and _MAY_BE_SECRET.search(line):
                words.update(_WORD.findall(line.decode("utf-8", "replace")))
        if len(words) > _MOST_WORDS:
            return {}  # a change with so many of them is checked alone
    touched = set(changed.paths)
    files = git.list_files_with(base, sorted(words), most=_MOST_ORIGINS)
    left = {
        path: blob
        for path, blob in files.items()
        if path not in touched and is_file_read_by_a_rule(path)
    }
    sizes = git.objects.read_sizes(blob.id for blob in left.values())
    return {
        path: blob
        for path, blob in left.items()
        if sizes.get(blob.id, _LARGEST_ORIGIN) < _LARGEST_ORIGIN
    }


def _list_too_large_files(files: Iterable[GitFile], sizes: dict[str, int]) -> list[str]:
    left = MOST_BYTES
    found: list[str] = []
    weighed = [(_list_sizes_of_changed_file(file, sizes), file.path) for file in files]
    for weights, path in sorted(weighed, key=lambda item: sum(item[0])):
        left -= sum(weights)
        if max(weights, default=0) > LARGEST_FILE_BYTES or left < 0:
            found.append(path)
    return sorted(found)


def _list_sizes_of_changed_file(file: GitFile, sizes: dict[str, int]) -> list[int]:
    return [sizes.get(blob.id, 0) for blob in _list_sides_of_file(file)]


def _list_sides_of_file(file: GitFile) -> list[GitBlob]:
    return [blob for blob in (file.before, file.after) if blob is not None]


def list_changes_of_pull_for_request(
    git: GitRepository, commits: RequestedReviewCommits
) -> RequestedFileChanges | None:
    """Lists the pull request's own changes: the base against the merge commit or laptop's files.

    Returns None if one of the commits is unknown.
    """
    new = commits.reviewed_commit
    if (
        commits.base is None
        or new is None
        or not git.has_commit(commits.base)
        or not git.has_commit(new)
    ):
        return None
    return list_file_changes(git, commits.base, new)


# The files of a team's policy, and those with comments for it: from a commit, or on a laptop.


# A path, and the text on each side; None if that side has no such file.
TwoTexts = tuple[str, str | None, str | None]

_MARK = b"review:"


def list_policy_paths(projects: Iterable[str]) -> list[str]:
    """Lists the paths of these projects' policies, relative to the repository."""
    return list(dict.fromkeys(posixpath.normpath(f"{path}/{FILE_NAME}") for path in projects))


def read_file_content_for_request(path: Path, at_most: int = MOST_POLICY_BYTES) -> bytes | None:
    """Reads a file's first bytes, at most one more than it may have; None if there is no file.

    Raises:
        UnfitPolicy: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(at_most + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        fault = f"it cannot be read ({error.strerror})"
        raise make_unfit_policy(path.name, [(1, fault)]) from error


def read_contents_for_request(
    git: GitRepository, commit: Sha, paths: Sequence[str], at_most: int = MOST_POLICY_BYTES
) -> list[bytes | None]:
    """Reads the contents of a commit's files; None for one that is missing."""
    with git.objects.open_commit_files(commit, at_most=at_most) as read:
        return [read(path) for path in paths]


ReadExposures = Callable[[Sequence[str]], Sequence[bytes | None]]


def read_committed_exposures(git: GitRepository, commit: Sha) -> ReadExposures:
    """Returns a function that reads files of exposures from a commit."""
    return lambda paths: read_contents_for_request(git, commit, paths, MOST_EXPOSURE_BYTES)


def read_exposures_below(checkout: Path) -> ReadExposures:
    """Returns a function that reads files of exposures as they are in a checkout."""
    return lambda paths: [
        read_file_content_for_request(checkout / path, MOST_EXPOSURE_BYTES) for path in paths
    ]


def parse_policies(
    paths: Sequence[str],
    contents: Sequence[bytes | None],
    today: date,
    read_exposures: ReadExposures,
) -> Policy:
    """Parses the policy of the files that exist, with the files of exposures that they name.

    Raises:
        UnfitPolicy: one of them cannot be used.
    """
    rules = list_rules_that_policy_may_weigh()
    files = tuple(
        read_policy(content, path=path, rules=rules, today=today)
        for path, content in zip(paths, contents, strict=True)
        if content is not None
    )
    return Policy(files, read_exposures_listed_by_policy(files, read_exposures))


def is_sql_file(path: str) -> bool:
    """Whether a file may hold a model in SQL."""
    return path.lower().endswith(".sql")


def read_both_sides_for_request(
    git: GitRepository, changed: RequestedFileChanges
) -> Iterator[TwoTexts]:
    """Yields the changed SQL files that may have a comment for the review."""
    for file in changed.read_contents(git, lambda item: is_sql_file(item.path)):
        if _MARK in (file.before or b"") + (file.after or b""):
            yield (
                file.path,
                decode_content_for_request(file.before),
                decode_content_for_request(file.after),
            )


def read_unchanged_texts(
    git: GitRepository, commit: Sha, paths: Sequence[str]
) -> Iterator[TwoTexts]:
    """Yields the same for files that do not change."""
    if not paths:
        return
    with git.objects.open_commit_files(commit, at_most=LARGEST_FILE_BYTES) as read:
        for path in paths:
            content = read(path)
            if content is not None and _MARK in content:
                yield path, decode_content_for_request(content), decode_content_for_request(content)


def decode_content_for_request(content: bytes | None) -> str | None:
    """Returns a file's content as text; bytes that are not UTF-8 are replaced."""
    return None if content is None else content.decode("utf-8", "replace")
