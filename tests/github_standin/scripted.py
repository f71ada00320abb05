"""A loopback GitHub for retry tests: comments in memory, and a script of faults in front of them.

Needs no npm part. It knows issue comments, `viewer{login}`, and whatever `serve` is given;
everything else is 404.
"""

from __future__ import annotations

import itertools
import re
import ssl
import threading
from typing import Any

from . import shapes
from .script import Script
from .wire import Answer, Exchange, LoopbackServer, Request, json_answer

_COMMENTS = re.compile(r"/repos/([^/]+/[^/]+)/issues/(\d+)/comments")
_COMMENT = re.compile(r"/repos/([^/]+/[^/]+)/issues/comments/(\d+)")


class MemoryGitHub:
    """Issue comments of any repository and any number; the author is always `login`."""

    def __init__(self, login: str = shapes.ACTIONS_BOT) -> None:
        self.login = login
        self.url = ""
        self._comments: dict[int, tuple[str, int, dict[str, Any]]] = {}
        self._fixed: dict[tuple[str, str], Answer] = {}
        self._numbers = itertools.count(1_000_000_001)
        self._lock = threading.Lock()

    def serve(self, method: str, path: str, payload: Any, status: int = 200) -> None:
        """Answer `method path` with this JSON from now on."""
        self._fixed[method, path] = json_answer(status, payload)

    def add_comment(self, repo: str, issue: int, body: str, login: str | None = None) -> int:
        """Store a comment without a request; returns its id."""
        with self._lock:
            number = next(self._numbers)
            made = shapes.comment(
                self.url, repo, issue, number, login=login or self.login, body=body
            )
            self._comments[number] = (repo, issue, made)
        return number

    def comments(self, repo: str, issue: int) -> list[dict[str, Any]]:
        """All comments on one issue, oldest first."""
        with self._lock:
            return [c for r, i, c in self._comments.values() if (r, i) == (repo, issue)]

    def answer(self, request: Request) -> Answer:
        """Serve one request without faults."""
        if fixed := self._fixed.get((request.method, request.path)):
            return fixed
        if request.path == "/graphql" and b"viewer" in request.body:
            return json_answer(200, {"data": {"viewer": {"login": self.login}}})
        if found := _COMMENTS.fullmatch(request.path):
            return self._collection(request, found[1], int(found[2]))
        if found := _COMMENT.fullmatch(request.path):
            return self._one(request, found[1], int(found[2]))
        return shapes.not_found()

    def _collection(self, request: Request, repo: str, issue: int) -> Answer:
        if request.method == "GET":
            return shapes.paged(self.url + request.path, request.query, self.comments(repo, issue))
        if request.method == "POST":
            number = self.add_comment(repo, issue, request.json["body"])
            return json_answer(201, self._comments[number][2])
        return shapes.not_found()

    def _one(self, request: Request, repo: str, number: int) -> Answer:
        held = self._comments.get(number)
        if held is None or held[0] != repo:
            return shapes.not_found()
        if request.method == "PATCH":
            held[2].update(body=request.json["body"], updated_at=shapes.now())
        elif request.method == "DELETE":
            del self._comments[number]
            return Answer(204)
        return json_answer(200, held[2])


class ScriptedServer:
    """`MemoryGitHub` behind a `Script`, on a loopback port. A context manager; each request is
    logged.
    """

    def __init__(
        self, login: str = shapes.ACTIONS_BOT, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.github = MemoryGitHub(login)
        self.script = Script()
        self._server = LoopbackServer(self._handle, tls)
        self.github.url = self._server.url

    @property
    def url(self) -> str:
        """Base URL for the client."""
        return self._server.url

    @property
    def requests(self) -> list[Exchange]:
        """Everything that was asked, in order, with the answers."""
        return self._server.log

    @property
    def writes(self) -> list[Exchange]:
        """The requests that could change something."""
        return [exchange for exchange in self.requests if exchange.is_write]

    def _handle(self, exchange: Exchange) -> Answer:
        reply = self.script.take(exchange.request)
        if reply is None:
            return self.github.answer(exchange.request)
        exchange.scripted = True
        if reply.store_first:
            self.github.answer(exchange.request)
        return reply.answer()

    def __enter__(self) -> ScriptedServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
