"""Scripted faults: which request gets which answer, and how often.

The same script drives the bare fault server (`scripted.py`) and sits in front of the stateful
stand-in (`front.py`), so a test of the whole life of a PR can inject a 502 as well.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .wire import Answer, Request

_DOCS = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"


@dataclass(frozen=True)
class Reply:
    """One scripted answer.

    `store_first` lets the real backend do the work and throws its answer away: the client sees a
    failure for a write that happened. `delay` is seconds before the first byte; `reset` closes the
    connection with RST.
    """

    status: int = 200
    json: Any = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False
    store_first: bool = False

    def answer(self) -> Answer:
        """The answer as it goes over the wire."""
        if self.body is not None:
            body, kind = self.body, "text/html; charset=utf-8"
        else:
            body = b"" if self.json is None else json.dumps(self.json).encode()
            kind = "application/json; charset=utf-8"
        headers = {"Content-Type": kind, **self.headers}
        return Answer(self.status, body, headers, delay=self.delay, reset=self.reset)


def server_error(status: int = 502, *, store_first: bool = False) -> Reply:
    """A 5xx as GitHub's edge sends it: HTML, not JSON."""
    page = f"<html><head><title>{status}</title></head><body>Unicorn!</body></html>".encode()
    return Reply(status=status, body=page, store_first=store_first)


def secondary_limit(retry_after: int | None = 1, *, status: int = 403) -> Reply:
    """The secondary rate limit, with or without `Retry-After` (seconds)."""
    message = (
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    )
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Reply(
        status=status, json={"message": message, "documentation_url": _DOCS}, headers=headers
    )


def too_many_requests(retry_after: int | None = None) -> Reply:
    """429, with or without `Retry-After` (seconds)."""
    return secondary_limit(retry_after, status=429)


def primary_limit(reset_at: int) -> Reply:
    """The hourly limit: 403 with no requests left until `reset_at` (Unix seconds)."""
    return Reply(
        status=403,
        json={"message": "API rate limit exceeded for installation.", "documentation_url": _DOCS},
        headers={
            "X-RateLimit-Limit": "1000",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(reset_at),
            "X-RateLimit-Resource": "core",
        },
    )


def forbidden(message: str = "Resource not accessible by integration") -> Reply:
    """A 403 that no retry can help."""
    return Reply(status=403, json={"message": message, "documentation_url": _DOCS, "status": "403"})


def connection_reset(*, store_first: bool = False) -> Reply:
    """The connection is reset before a byte of the answer arrives."""
    return Reply(reset=True, store_first=store_first)


def silence(seconds: float = 30.0, *, store_first: bool = False) -> Reply:
    """No answer for `seconds`, longer than the client waits. Stopping the server ends it."""
    return Reply(status=504, delay=seconds, store_first=store_first)


def broken_json(status: int = 200) -> Reply:
    """A JSON answer that was cut off in the middle."""
    headers = {"Content-Type": "application/json; charset=utf-8"}
    return Reply(status=status, body=b'[{"id": 1, "body": "cut o', headers=headers)


@dataclass
class Rule:
    """Replies for the requests that match, one each, in order; then the rule is spent.

    With `forever` the last reply is repeated. `skip` lets that many matching requests through
    first.
    """

    method: str
    pattern: re.Pattern[str]
    replies: list[Reply]
    forever: bool = False
    skip: int = 0
    when: Callable[[Request], bool] | None = None
    served: int = 0

    def matches(self, request: Request) -> bool:
        """Whether this rule speaks about the request, spent or not."""
        return (
            self.method in {"*", request.method}
            and self.pattern.fullmatch(request.path) is not None
            and (self.when is None or self.when(request))
        )


class Script:
    """An ordered list of rules. The first rule that matches and is not spent answers."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def on(
        self,
        method: str,
        path: str,
        *replies: Reply,
        forever: bool = False,
        skip: int = 0,
        when: Callable[[Request], bool] | None = None,
    ) -> Rule:
        """Add a rule. `method` may be `*`; `path` is a regular expression over the whole path."""
        if not replies:
            raise ValueError("a rule needs at least one reply")
        rule = Rule(method, re.compile(path), list(replies), forever, skip, when)
        with self._lock:
            self._rules.append(rule)
        return rule

    def take(self, request: Request) -> Reply | None:
        """The reply for this request, used up; None when no rule wants it."""
        with self._lock:
            for rule in self._rules:
                if not rule.matches(request):
                    continue
                if rule.skip:
                    rule.skip -= 1
                    return None
                if rule.served < len(rule.replies):
                    rule.served += 1
                    return rule.replies[rule.served - 1]
                if rule.forever:
                    rule.served += 1
                    return rule.replies[-1]
            return None

    def clear(self) -> None:
        """Forget all rules."""
        with self._lock:
            self._rules.clear()

    def unused(self) -> list[str]:
        """Rules with replies left: usually a test that does not test what it says."""
        with self._lock:
            return [
                f"{rule.method} {rule.pattern.pattern}: "
                f"{rule.served} of {len(rule.replies)} replies used"
                for rule in self._rules
                if rule.served < len(rule.replies)
            ]
