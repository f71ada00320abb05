"""GitHub's JSON -> our records. Pure; an answer of another shape is a failure with words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ci_bot.bot.github.port import Comment, Permission, PullRequest
from ci_bot.bot.trigger.event import GHOST, same_repository

T = TypeVar("T")


class AnswerError(Exception):
    """An answer that lacks what it must have; the text says what, in a few words."""


def pull_request(data: Any) -> PullRequest:
    """A pull request, from the answer for one or from an entry of a list (which knows less)."""
    base = need(data, "base.repo.full_name", str)
    head = maybe(data, "head.repo.full_name", str)
    return PullRequest(
        number=need(data, "number", int),
        open=need(data, "state", str) == "open",
        merged=maybe(data, "merged", bool) or maybe(data, "merged_at", str) is not None,
        draft=maybe(data, "draft", bool) or False,
        mergeable=maybe(data, "mergeable", bool),
        head_sha=need(data, "head.sha", str),
        head_ref=need(data, "head.ref", str),
        head_repository=head,
        base_sha=need(data, "base.sha", str),
        base_ref=need(data, "base.ref", str),
        merge_sha=maybe(data, "merge_commit_sha", str),
        author=maybe(data, "user.login", str) or GHOST,
        fork=not same_repository(head, base),
        url=maybe(data, "html_url", str) or "",
        default_branch=maybe(data, "base.repo.default_branch", str),
    )


def comment(data: Any) -> Comment:
    """A comment of a conversation. Its author is `ghost` where the account is gone."""
    issue = (maybe(data, "issue_url", str) or "").rpartition("/")[2]
    return Comment(
        id=need(data, "id", int),
        number=int(issue) if issue.isascii() and issue.isdigit() else None,
        body=maybe(data, "body", str) or "",
        author=maybe(data, "user.login", str) or GHOST,
        created_at=need(data, "created_at", str),
        updated_at=need(data, "updated_at", str),
        url=maybe(data, "html_url", str) or "",
        minimized=maybe(data, "minimized", dict) is not None,
    )


_ROLES: dict[str, Permission] = {
    "admin": "admin",
    "maintain": "maintain",
    "write": "write",
    "push": "write",
    "triage": "triage",
    "read": "read",
    "pull": "read",
    "none": "none",
}


def permission(data: Any) -> Permission:
    """A person's role; a custom role counts as the basic one that it is built on.

    `permission` alone would not do: it folds maintain into write and triage into read.
    https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
    """
    basic = _ROLES.get(need(data, "permission", str), "none")
    return _ROLES.get(maybe(data, "role_name", str) or "", basic)


def is_member(data: Any) -> bool:
    """Whether a membership of a team holds; one that was only offered does not."""
    return need(data, "state", str) == "active"


def entries(data: Any, path: str | None = None) -> list[Any]:
    """The list that an answer is, or that it holds at `path`."""
    if path is not None:
        return need(data, path, list)
    if not isinstance(data, list):
        raise AnswerError("is not a list")
    return data


def need(data: Any, path: str, kind: type[T]) -> T:
    """The value at a dotted path, which must be of this type."""
    value = _at(data, path)
    if not _is(value, kind):
        raise AnswerError(f"lacks `{path}`")
    return value  # type: ignore[no-any-return]  # `_is` has looked


def maybe(data: Any, path: str, kind: type[T]) -> T | None:
    """The value at a dotted path; None where it is absent or of another type."""
    value = _at(data, path)
    return value if _is(value, kind) else None


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _at(data: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data
