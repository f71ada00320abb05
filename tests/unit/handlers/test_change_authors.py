"""Whether everybody who wrote a pull request may write, by GitHub's own word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ci_bot.bot.github.port import Permission, PullCommit, PullRequest
from ci_bot.bot.handlers.pull_request_context import find_change_authors, make_change_author_finder
from ci_bot.errors import GitHubUnavailable
from tests.factories import HEAD
from tests.publishing import Memory

OLDER = "c" * 40


def commit(sha: str = HEAD, author: str | None = "ada", **more: Any) -> PullCommit:
    values: dict[str, Any] = {"sha": sha, "author": author, "committer": author, "verified": True}
    return PullCommit(**values | more)


def pull(**changes: Any) -> PullRequest:
    known = replace(Memory().pull, default_branch="main", association="COLLABORATOR")
    return replace(known, **changes)


@dataclass
class Authors(Memory):
    """GitHub with the commits of a pull request, and the role of each person."""

    pull: PullRequest = field(default_factory=pull)
    commits: Sequence[PullCommit] | None = (commit(OLDER), commit())
    roles: dict[str, Permission] = field(default_factory=lambda: {"ada": "write", "bob": "admin"})

    def get_permission(self, login: str) -> Permission:
        self._call("permission")
        return self.roles.get(login, "none")

    def list_pull_commits(self, number: int) -> list[PullCommit] | None:
        self._call("list_pull_commits")
        return None if self.commits is None else list(self.commits)


def refused(github: Authors) -> str | None:
    found = find_change_authors(github, 142, HEAD)
    assert bool(found.writers) is (found.refused_because is None)
    return found.refused_because


def test_authors__who_may_all_write__are_named() -> None:
    github = Authors(commits=(commit(OLDER), commit(committer="bob")))
    found = find_change_authors(github, 142, HEAD)
    assert found.writers == ("ada", "bob")
    assert (found.commits, found.refused_because) == (2, None)


def test_authors__in_githubs_own_pages__need_no_committer_of_their_own() -> None:
    assert refused(Authors(commits=(commit(committer="web-flow"),))) is None


@pytest.mark.parametrize("role", ["write", "maintain", "admin"])
def test_authors__with_each_role_that_writes(role: Permission) -> None:
    assert refused(Authors(roles={"ada": role})) is None


REFUSED = {
    "a fork": (Authors(pull=pull(fork=True)), "comes from a fork"),
    "Dependabot": (Authors(pull=pull(author="dependabot[bot]")), "a program is not trusted"),
    "another program": (Authors(pull=pull(author="renovate[bot]")), "a program is not trusted"),
    "a first pull request": (
        Authors(pull=pull(association="FIRST_TIME_CONTRIBUTOR")),
        "first pull request of `@ada`",
    ),
    "a relation that nobody names": (Authors(pull=pull(association=None)), "first pull request"),
    "another base": (Authors(pull=pull(base_ref="release")), "default branch"),
    "a base that nobody knows": (Authors(pull=pull(default_branch=None)), "default branch"),
    "a head that moved": (Authors(pull=pull(head_sha=OLDER)), "is not its head"),
    "other commits": (Authors(commits=(commit(), commit(OLDER))), "other commits"),
    "no commits": (Authors(commits=()), "other commits"),
    "too many commits": (Authors(commits=None), "does not list all"),
    "an unverified commit": (
        Authors(commits=(commit(OLDER, verified=False), commit())),
        "not verified commit `ccccccc`",
    ),
    "an author without account": (Authors(commits=(commit(author=None),)), "no account"),
    "a committer without account": (Authors(commits=(commit(committer=None),)), "no account"),
    "an author who may only read": (
        Authors(roles={"ada": "read"}),
        "`@ada` wrote a part of it, and may not write",
    ),
    "an older commit of somebody else": (
        Authors(commits=(commit(OLDER, "eve"), commit())),
        "`@eve` wrote a part of it, and may not write",
    ),
    "somebody else's work, committed by a writer": (
        Authors(commits=(commit(author="eve", committer="ada"),)),
        "`@eve`",
    ),
    "a program's commit": (Authors(commits=(commit(author="helper[bot]"),)), "a program"),
    "a pull request of somebody else, with a writer's commits": (
        Authors(pull=pull(author="eve")),
        "`@eve`",
    ),
    "too many people": (
        Authors(commits=(*(commit(OLDER, f"p{n}") for n in range(30)), commit())),
        "31 people",
    ),
    "GitHub that does not answer": (
        Authors(failing={"list_pull_commits": GitHubUnavailable("It is down.", hint="Wait.")}),
        "GitHub did not say who wrote it (It is down)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_authors__are_not_trusted__with_the_reason(case: str) -> None:
    github, told = REFUSED[case]
    found = refused(github)
    assert found is not None and told in found


def test_authors__are_asked_for_only_if_github_can_be_asked() -> None:
    github: Any = Authors()
    assert make_change_author_finder(None, 142, HEAD) is None
    assert make_change_author_finder(github, None, HEAD) is None
    assert make_change_author_finder(github, 142, None) is None
    assert github.calls == []
    find = make_change_author_finder(github, 142, HEAD)
    assert find is not None and find().writers == ("ada",)
