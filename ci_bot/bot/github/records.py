"""GitHub's JSON -> our records. Pure; an answer of another shape is a failure with words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ci_bot.bot.actions import GHOST, same_repository
from ci_bot.bot.github.failures import unexpected
from ci_bot.bot.github.port import PER_PAGE, Comment, Permission, PullRequest
from ci_bot.bot.github.transport import Reply, Transport

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


# One record, or the records of all pages, from GitHub's REST API.


Parsed = TypeVar("Parsed")

_MOST_PAGES = 300

_NEXT = re.compile(r'<[^>]*>\s*;[^,]*\brel="?next"?', re.IGNORECASE)


class Rest:
    """Requests through a transport, with their answers read into records."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def one(
        self,
        verb: str,
        path: str,
        read: Callable[[Any], Parsed],
        doing: str,
        needs: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        resend: bool = True,
    ) -> Parsed:
        reply = self.transport.call(
            verb, path, doing=doing, needs=needs, query=query, body=body, resend=resend
        )
        return _read(reply, read, doing)

    def page(
        self,
        path: str,
        read: Callable[[Any], Parsed],
        doing: str,
        needs: str,
        query: Mapping[str, str | int],
    ) -> tuple[list[Parsed], bool]:
        """The records of one page, and whether there is a next one.

        Only whether the Link header names a next page is believed; the URL in it is not followed.
        """
        reply = self.transport.call("GET", path, doing=doing, needs=needs, query=query)
        records = _read(reply, lambda data: [read(entry) for entry in entries(data)], doing)
        return records, bool(_NEXT.search(reply.headers.get("link", "")))

    def pages(
        self,
        path: str,
        read: Callable[[Any], Parsed],
        doing: str,
        needs: str,
        query: Mapping[str, str | int] | None = None,
        *,
        first_page: int = 1,
    ) -> Iterator[Parsed]:
        before: list[Parsed] = []
        for page in range(first_page, first_page + _MOST_PAGES):
            asked = {**(query or {}), "per_page": PER_PAGE, "page": page}
            records, more = self.page(path, read, doing, needs, asked)
            if records and records == before:
                raise unexpected(doing, "is the same page again and again")
            yield from records
            if not more:
                return
            before = records
        raise unexpected(doing, f"has more than {_MOST_PAGES} pages")


def _read(reply: Reply, read: Callable[[Any], Parsed], doing: str) -> Parsed:
    try:
        return read(reply.data)
    except AnswerError as odd:
        raise unexpected(doing, str(odd)) from None
