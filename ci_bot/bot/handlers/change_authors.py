"""Who wrote a pull request, by GitHub's own word, and whether the policy's `trust` covers them all.

A name in a commit is what its author typed, so each commit has to be verified by GitHub, and its
author and its committer have to be accounts that may write now. Whatever is not known is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ci_bot.bot.github import GitHub, PullCommit, PullRequest, may_write
from ci_bot.bot.policy import ChangeAuthors
from ci_bot.errors import BotError

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha

# GitHub's own committer of what is done in its pages; only GitHub can sign for it:
# https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification
_GITHUB_ITSELF = "web-flow"
# Relations of people who have contributed here or were invited. The others are those of a first
# pull request: https://docs.github.com/en/graphql/reference/enums#commentauthorassociation
_KNOWN_HERE = frozenset({"OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"})
# Each is a request, and a review waits for them.
_MOST_PEOPLE = 20
_MOST_SECONDS = 20.0


def make_author_finder(
    github: GitHub | None, number: int | None, head: Sha | None
) -> Callable[[], ChangeAuthors] | None:
    """Asks GitHub, when it is called, who wrote the commits up to `head`; None if it cannot."""
    if github is None or number is None or head is None:
        return None
    return partial(find_change_authors, github, number, head)


def find_change_authors(github: GitHub, number: int, head: Sha) -> ChangeAuthors:
    """The writers of a pull request, or why they are not all trusted. Nothing is raised."""
    try:
        with github.limit_waits(_MOST_SECONDS):
            return _ask_github(github, number, head)
    except BotError as error:
        reason = f"GitHub did not say who wrote it ({error.message.rstrip('.')})"
        return ChangeAuthors(refused_because=reason)


def _ask_github(github: GitHub, number: int, head: Sha) -> ChangeAuthors:
    pull = github.get_pull(number)
    refused = _refuse_pull(pull, head)
    if refused is not None:
        return ChangeAuthors(refused_because=refused)
    commits = github.list_pull_commits(number)
    if commits is None:
        return ChangeAuthors(refused_because="GitHub does not list all of its commits")
    names = {pull.author, *(name for one in commits for name in (one.author, one.committer))}
    people = sorted(name for name in names if name is not None and name != _GITHUB_ITSELF)
    refused = _refuse_commits(commits, head) or _refuse_people(people, github)
    if refused is not None:
        return ChangeAuthors(refused_because=refused)
    return ChangeAuthors(writers=tuple(people), commits=len(commits), refused_because=None)


def _refuse_people(people: Sequence[str], github: GitHub) -> str | None:
    if len(people) > _MOST_PEOPLE:
        return f"{len(people)} people wrote it, and {_MOST_PEOPLE} are asked about at most"
    for login in people:
        if _is_program(login):
            return f"`{login}` wrote a part of it, and a program is not trusted"
        if not may_write(github.get_permission(login)):
            return f"`@{login}` wrote a part of it, and may not write to this repository"
    return None


def _refuse_pull(pull: PullRequest, head: Sha) -> str | None:
    if pull.fork:
        return "it comes from a fork"
    if _is_program(pull.author):
        return f"`{pull.author}` opened it, and a program is not trusted"
    if pull.association not in _KNOWN_HERE:
        return f"it is the first pull request of `@{pull.author}` here"
    if pull.default_branch is None or pull.base_ref != pull.default_branch:
        return "it is not to be merged into the default branch"
    if pull.head_sha != head:
        return (
            f"commit `{head[:7]}` is not its head: it was pushed to, or a merge queue has made it"
        )
    return None


def _refuse_commits(commits: Sequence[PullCommit], head: Sha) -> str | None:
    if not commits or commits[-1].sha != head:
        return "GitHub lists other commits than those that are reviewed"
    for commit in commits:
        name = f"commit `{commit.sha[:7]}`"
        if not commit.verified:
            return f"GitHub has not verified {name}"
        if commit.author is None or commit.committer is None:
            return f"whoever wrote {name} is no account of GitHub"
    return None


def _is_program(login: str) -> bool:
    return login.endswith("[bot]")
