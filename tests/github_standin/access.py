"""Who may do what: token permissions as GitHub checks them for apps, roles for people.

The table follows GitHub's "Permissions required for GitHub Apps"; several names mean any one of
them suffices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .shapes import error, not_found
from .state import ROLES, RepoState, Token
from .wire import READS, Answer, Request

_NEEDS: list[tuple[str, re.Pattern[str], tuple[str, ...]]] = [
    (methods, re.compile(pattern), needs)
    for methods, pattern, needs in [
        ("*", r"/issues/(comments/\d+|\d+/comments)(/.*)?", ("issues", "pull-requests")),
        ("*", r"/issues/\d+(/(labels|reactions|assignees).*)?", ("issues", "pull-requests")),
        ("*", r"/issues(/.*)?", ("issues",)),
        ("PUT", r"/pulls/\d+/merge", ("contents",)),
        ("*", r"/pulls(/.*)?", ("pull-requests",)),
        ("*", r"/actions/.*", ("actions",)),
        ("*", r"/(contents|git|branches|commits|compare|tarball|zipball)(/.*)?", ("contents",)),
        ("*", r"/check-(runs|suites)(/.*)?", ("checks",)),
        ("*", r"/statuses/.*", ("statuses",)),
        ("*", r"/deployments(/.*)?", ("deployments",)),
    ]
]
_ANYONE_WRITES = re.compile(r"/issues/(\d+/comments|comments/\d+/reactions(/\d+)?)|/forks|/pulls")
_OWN_COMMENT = re.compile(r"/issues/comments/(\d+)")


def refuse(request: Request, token: Token | None, repo: RepoState, tail: str) -> Answer | None:
    """The refusal GitHub would answer with, or None. `tail` is the path below the name."""
    write = request.method not in READS
    if token is None:
        if repo.private:
            return not_found()
        return error(401, "Requires authentication") if write else None
    if token.kind == "user":
        return _refuse_user(token, repo, tail, write=write)
    return _refuse_app(request.method, token, repo, tail, write=write)


def _refuse_app(
    method: str, token: Token, repo: RepoState, tail: str, *, write: bool
) -> Answer | None:
    refusal = error(403, "Resource not accessible by integration")
    if token.repo not in {None, repo.full_name}:
        if repo.private:
            return not_found()
        return refusal if write else None
    if not write and not repo.private:
        return None
    needs = next(
        (need for on, path, need in _NEEDS if on in {"*", method} and path.fullmatch(tail)), None
    )
    if needs is None:
        return refusal if write else None  # Metadata: readable with any token, writable with none.
    return None if any(token.may(need, write=write) for need in needs) else refusal


def _refuse_user(token: Token, repo: RepoState, tail: str, *, write: bool) -> Answer | None:
    rank = repo.rank(token.login)
    if repo.private and rank < 0:
        return not_found()
    if not write or _ANYONE_WRITES.fullmatch(tail) or _OWN_COMMENT.fullmatch(tail):
        return None  # Own comments: the route asks for the author and calls may_moderate.
    if rank >= ROLES.index("write"):
        return None
    return error(403, "Must have admin rights to Repository.")


def may_moderate(token: Token, repo: RepoState, author: str) -> bool:
    """Whether the token may edit or delete a comment by `author`."""
    if token.kind != "user":
        return True  # Its permission was checked; apps with it may edit anybody's comment.
    return author == token.login or repo.rank(token.login) >= ROLES.index("write")


def legacy_permission(role: str | None, *, private: bool) -> tuple[str, str]:
    """(`permission`, `role_name`): the old name has four values, the new one is exact."""
    if role is None:
        return ("none", "none") if private else ("read", "read")
    old: Mapping[str, str] = {"maintain": "write", "triage": "read"}
    return old.get(role, role), role
