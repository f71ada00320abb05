"""GitHub's answers as our records.

They are its JSON, and the artifact of another run, a zip file that somebody else's code may have
made. Pure; an answer of another form is an error with a message.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ci_bot.bot.actions import GHOST, is_same_repository_in_event
from ci_bot.bot.github.failures import (
    classify_network_error,
    make_unexpected_github_answer_error,
    make_unreachable_github_error,
)
from ci_bot.bot.github.port import (
    PER_PAGE,
    Permission,
    PullComment,
    PullCommit,
    PullRequest,
    RepositoryIssue,
)
from ci_bot.bot.github.transport import GitHubReply, GitHubTransport
from ci_bot.bot.github.urls import is_safe_github_download_url
from ci_bot.errors import GitHubUnavailable, RequestRefused

if TYPE_CHECKING:
    from ci_bot.bot.report import CheckRun

T = TypeVar("T")


class GitHubAnswerError(Exception):
    """The error for an answer that lacks a needed value; the text says in a few words which one."""


def read_pull_request_record(data: Any) -> PullRequest:
    """Reads a pull request from an answer for one, or from an entry of a list (fewer fields)."""
    base = read_field_of_github_answer(data, "base.repo.full_name", str)
    head = read_optional_field_of_github_answer(data, "head.repo.full_name", str)
    return PullRequest(
        number=read_field_of_github_answer(data, "number", int),
        open=read_field_of_github_answer(data, "state", str) == "open",
        merged=read_optional_field_of_github_answer(data, "merged", bool)
        or read_optional_field_of_github_answer(data, "merged_at", str) is not None,
        draft=read_optional_field_of_github_answer(data, "draft", bool) or False,
        mergeable=read_optional_field_of_github_answer(data, "mergeable", bool),
        head_sha=read_field_of_github_answer(data, "head.sha", str),
        head_ref=read_field_of_github_answer(data, "head.ref", str),
        head_repository=head,
        base_sha=read_field_of_github_answer(data, "base.sha", str),
        base_ref=read_field_of_github_answer(data, "base.ref", str),
        merge_sha=read_optional_field_of_github_answer(data, "merge_commit_sha", str),
        author=read_optional_field_of_github_answer(data, "user.login", str) or GHOST,
        fork=not is_same_repository_in_event(head, base),
        url=read_optional_field_of_github_answer(data, "html_url", str) or "",
        association=read_optional_field_of_github_answer(data, "author_association", str),
        default_branch=read_optional_field_of_github_answer(data, "base.repo.default_branch", str),
    )


def read_commit_record(data: Any) -> PullCommit:
    """Reads a commit from the list of a pull request's commits."""
    return PullCommit(
        sha=read_field_of_github_answer(data, "sha", str),
        author=read_optional_field_of_github_answer(data, "author.login", str),
        committer=read_optional_field_of_github_answer(data, "committer.login", str),
        verified=read_optional_field_of_github_answer(data, "commit.verification.verified", bool)
        is True,
    )


def read_comment_record(data: Any) -> PullComment:
    """Reads a comment of a conversation. Its author is `ghost` if the account is deleted."""
    issue = (read_optional_field_of_github_answer(data, "issue_url", str) or "").rpartition("/")[2]
    return PullComment(
        id=read_field_of_github_answer(data, "id", int),
        number=int(issue) if issue.isascii() and issue.isdigit() else None,
        body=read_optional_field_of_github_answer(data, "body", str) or "",
        author=read_optional_field_of_github_answer(data, "user.login", str) or GHOST,
        created_at=read_field_of_github_answer(data, "created_at", str),
        updated_at=read_field_of_github_answer(data, "updated_at", str),
        url=read_optional_field_of_github_answer(data, "html_url", str) or "",
        minimized=read_optional_field_of_github_answer(data, "minimized", dict) is not None,
        node_id=read_optional_field_of_github_answer(data, "node_id", str) or "",
    )


def read_issue_record(data: Any) -> RepositoryIssue:
    """Reads an issue, from an answer for one or from an entry of a list."""
    return RepositoryIssue(
        number=read_field_of_github_answer(data, "number", int),
        is_open=read_field_of_github_answer(data, "state", str) == "open",
        title=read_field_of_github_answer(data, "title", str),
        body=read_optional_field_of_github_answer(data, "body", str) or "",
        author=read_optional_field_of_github_answer(data, "user.login", str) or GHOST,
        url=read_optional_field_of_github_answer(data, "html_url", str) or "",
    )


def is_github_issue_a_pull_request(data: Any) -> bool:
    """Whether an entry of GitHub's list of issues is a pull request."""
    return read_optional_field_of_github_answer(data, "pull_request", dict) is not None


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


def read_required_checks_of_github_rule(data: Any) -> list[str]:
    """Lists the checks that one rule of a branch requires; none if the rule is of another kind."""
    if read_field_of_github_answer(data, "type", str) != "required_status_checks":
        return []
    checks = read_field_of_github_answer(data, "parameters.required_status_checks", list)
    return [read_field_of_github_answer(check, "context", str) for check in checks]


def read_permission_record(data: Any) -> Permission:
    """Reads a person's role; a custom role counts as the basic role on which it is built.

    `permission` alone is not enough: it reports maintain as write and triage as read.
    https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
    """
    basic = _ROLES.get(read_field_of_github_answer(data, "permission", str), "none")
    return _ROLES.get(read_optional_field_of_github_answer(data, "role_name", str) or "", basic)


def list_check_annotation_batches(check: CheckRun, size: int) -> list[dict[str, object]]:
    """Makes the `output` of each request for a check, with at most `size` annotations each."""
    found = [
        {
            "path": item.path,
            "start_line": item.line,
            "end_line": item.line,
            "annotation_level": item.level,
            "title": item.title,
            "message": item.message,
        }
        for item in check.annotations
    ]
    return [
        {"title": check.title, "summary": check.summary, "annotations": found[at : at + size]}
        for at in range(0, max(len(found), 1), size)
    ]


def is_member_of_github_team(data: Any) -> bool:
    """Whether a membership of a team is active; an open invitation is not."""
    return read_field_of_github_answer(data, "state", str) == "active"


def read_entries_of_github_answer(data: Any, path: str | None = None) -> list[Any]:
    """Returns the list that an answer is, or that it has at `path`.

    Raises:
        GitHubAnswerError: there is no list.
    """
    if path is not None:
        return read_field_of_github_answer(data, path, list)
    if not isinstance(data, list):
        raise GitHubAnswerError("is not a list")
    return data


def read_field_of_github_answer(data: Any, path: str, kind: type[T]) -> T:
    """Returns the value at a dotted path, which must be of this type.

    Raises:
        GitHubAnswerError: it is absent or of another type.
    """
    value = _get_json_value_at_path(data, path)
    if not _has_json_type(value, kind):
        raise GitHubAnswerError(f"lacks `{path}`")
    return value  # type: ignore[no-any-return]  # `_is_of_kind` has checked it


def read_optional_field_of_github_answer(data: Any, path: str, kind: type[T]) -> T | None:
    """Returns the value at a dotted path; None if it is absent or of another type."""
    value = _get_json_value_at_path(data, path)
    return value if _has_json_type(value, kind) else None


def _has_json_type(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _get_json_value_at_path(data: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data


# One record, or the records of all pages, from GitHub's REST API.


Parsed = TypeVar("Parsed")

_MOST_PAGES = 300
_NEXT = re.compile(r'<[^>]*>\s*;[^,]*\brel="?next"?', re.IGNORECASE)


class GitHubRestClient:
    """Sends requests through a transport, and reads the answers into records."""

    def __init__(self, transport: GitHubTransport) -> None:
        self.transport = transport

    def request_record(
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
        reply = self.transport.send_request(
            verb, path, doing=doing, needs=needs, query=query, body=body, resend=resend
        )
        return _read_github_reply(reply, read, doing)

    def request_page(
        self,
        path: str,
        read: Callable[[Any], Parsed],
        doing: str,
        needs: str,
        query: Mapping[str, str | int],
    ) -> tuple[list[Parsed], bool]:
        """Returns the records of one page, and whether there is a next one.

        It trusts only that the Link header names a next page; it does not follow the URL in it.
        """
        reply = self.transport.send_request("GET", path, doing=doing, needs=needs, query=query)
        records = _read_github_reply(
            reply,
            lambda data: [read(entry) for entry in read_entries_of_github_answer(data)],
            doing,
        )
        return records, bool(_NEXT.search(reply.headers.get("link", "")))

    def request_pages(
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
            page_query = {**(query or {}), "per_page": PER_PAGE, "page": page}
            records, more = self.request_page(path, read, doing, needs, page_query)
            if records and records == before:
                raise make_unexpected_github_answer_error(doing, "is the same page again and again")
            yield from records
            if not more:
                return
            before = records
        raise make_unexpected_github_answer_error(doing, f"has more than {_MOST_PAGES} pages")


def _read_github_reply(reply: GitHubReply, read: Callable[[Any], Parsed], doing: str) -> Parsed:
    try:
        return read(reply.data)
    except GitHubAnswerError as odd:
        raise make_unexpected_github_answer_error(doing, str(odd)) from None


FRESH_ARTIFACT_HINT = "Run the review again; it leaves a fresh artifact."
_RUN_AGAIN = "Run the job again."
_MOST_ENTRIES = 100
# What GitHub writes. Python unpacks other kinds without a limit, whatever size `read` gets.
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_file_of_github_artifact(
    archive: bytes, name: str, *, max_bytes: int, alone: bool
) -> bytes:
    """Returns the content of the file `name` in a zip file, without writing it to a disk.

    Args:
        archive: The zip file.
        name: The member's whole name.
        max_bytes: The most bytes it may have. Reading stops there, because the size that the
            archive declares is not trusted.
        alone: Whether a second member is a reason to refuse the whole archive.

    Raises:
        RequestRefused: the archive is broken, has no such regular file, or is too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = opened.infolist()
            if len(members) > _MOST_ENTRIES or (alone and len(members) != 1):
                raise _refuse_github_artifact("holds more than the one file that it should")
            found = [member for member in members if member.filename == name]
            if len(found) != 1:
                raise _refuse_github_artifact(f"does not hold exactly one `{name}`")
            if not _is_regular_file(found[0]) or found[0].compress_type not in _COMPRESSIONS:
                raise _refuse_github_artifact(f"holds a `{name}` that is no plain file")
            with opened.open(found[0]) as stream:
                content = stream.read(max_bytes + 1)
    except RequestRefused:
        raise
    except Exception:  # the module reports damage with a dozen kinds, also EOFError and KeyError
        raise _refuse_github_artifact("cannot be unpacked") from None
    if len(content) > max_bytes:
        raise _refuse_github_artifact(f"holds a `{name}` of more than {max_bytes} bytes")
    return content


def _is_regular_file(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    return not member.is_dir() and kind in (0, stat.S_IFREG)


def _refuse_github_artifact(what: str) -> RequestRefused:
    return RequestRefused(
        f"The artifact of the other run {what}.",
        hint=FRESH_ARTIFACT_HINT,
        reason_code="artifact_refused",
    )


# The one request that leaves the API's host: it downloads an artifact from GitHub's storage.
#
# GitHub answers a download with a redirect to a signed URL on a storage host of its choice. So this
# request has no token, no cookie and no other credentials, follows no further redirect, and reads
# no more than its limit.


_CHUNK = 65_536
_OK = 200


def download_github_artifact(
    url: str,
    *,
    doing: str,
    max_bytes: int,
    timeout: float,
    monotonic: Callable[[], float],
    budget: float,
    trust: str | None = None,
) -> bytes:
    """Returns the body at a signed URL.

    Args:
        url: The address from GitHub's answer; https, or http on a loopback address.
        doing: What this is for, for error messages, to follow "could not".
        max_bytes: A longer body is refused.
        timeout: Seconds for the connection and for each wait for bytes.
        monotonic: A clock in seconds that never goes back, for `budget`.
        budget: The most seconds for all of it.
        trust: A file or directory of certificates to trust instead of the usual ones.

    Raises:
        RequestRefused: the body is too long.
        GitHubUnavailable: it did not arrive, or the URL is not safe.
        BadInput: a setting prevents it.
    """
    import requests
    from urllib3.exceptions import HTTPError

    if not is_safe_github_download_url(url):
        raise make_unexpected_github_answer_error(doing, "points to a place that is not asked")
    started = monotonic()
    body = bytearray()
    try:
        with requests.Session() as session:
            session.auth = lambda request: request  # otherwise a .netrc file could add credentials
            session.headers["Accept-Encoding"] = "identity"  # so that all bytes are counted
            with session.get(
                url, stream=True, timeout=timeout, allow_redirects=False, verify=trust or True
            ) as answer:
                if answer.status_code != _OK:
                    raise GitHubUnavailable(
                        f"The bot could not {doing}: the storage answered with status "
                        f"{answer.status_code}.",
                        hint=_RUN_AGAIN,
                    )
                for chunk in answer.iter_content(_CHUNK):
                    body += chunk
                    if len(body) > max_bytes:
                        raise RequestRefused(
                            f"The artifact is larger than {max_bytes} bytes.",
                            hint="It is not a report that this action made.",
                            reason_code="artifact_refused",
                        )
                    if monotonic() - started > budget:
                        raise GitHubUnavailable(
                            f"The bot could not {doing} within {budget:.0f} s.",
                            hint=_RUN_AGAIN,
                        )
    except (OSError, HTTPError) as error:
        why = classify_network_error(error)
        host = f"the storage at {urlsplit(url).hostname}"
        raise make_unreachable_github_error(why.kind, why.words, doing=doing, host=host) from None
    return bytes(body)
