"""The front: what clients talk to. It checks tokens, answers what emulate lacks, passes on the
rest.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .access import refuse
from .emulator import Emulator, UpstreamAnswer
from .rewrite import rewrite
from .script import Script
from .shapes import error, not_found, user_number
from .state import OWNER, RepoState, Token, World
from .wire import READS, Answer, Exchange, LoopbackServer, Request, json_answer

_REPO_PATH = re.compile(r"/repos/(?P<owner>[^/]+)/(?P<name>[^/]+)(?P<tail>/.*)?")
_KEPT = ("Link", "Location")
_HOURLY = {"user": 5000, "actions": 1000, "app": 5000}
# Answered without a token of its own, as GitHub's download hosts do: the address is the secret.
_OPEN = re.compile(r"/(zen|_downloads/.*)")


@dataclass(frozen=True)
class Call:
    """One request on its way to a route."""

    front: Front
    request: Request
    token: Token | None
    repo: RepoState | None
    args: tuple[str, ...] = ()

    @property
    def login(self) -> str:
        """The login of the token. Only for routes behind the access check."""
        return self.token.login if self.token else ""

    @property
    def state(self) -> RepoState:
        """The repository of a route below `/repos`."""
        if self.repo is None:
            raise LookupError(f"no repository in {self.request.path}")
        return self.repo

    def read(self, target: str) -> tuple[int, Any]:
        """Status and corrected JSON of a GET behind the front, with the owner's eyes."""
        answer = self.front.emulator.call("GET", target, login=OWNER)
        return answer.status, rewrite(self.front.world, answer.json)

    def pass_on(self, body: bytes | None = None) -> Answer:
        """Let emulate answer, with another body if given."""
        return self.front.pass_on(self, body)


Handler = Callable[[Call], Answer | None]


@dataclass(frozen=True)
class Route:
    """A handler for a method and a path. For `/repos/...` the pattern is matched against the part
    below the name.

    A handler that returns None leaves the request to emulate.
    """

    method: str
    pattern: re.Pattern[str]
    handler: Handler
    below_repo: bool = True


def route(method: str, pattern: str, handler: Handler, *, below_repo: bool = True) -> Route:
    """A route; groups of the pattern become `Call.args`."""
    return Route(method, re.compile(pattern), handler, below_repo)


class Front:
    """Serves on loopback. The emulator is attached after the address is known, before `start`."""

    def __init__(self, routes: list[Route]) -> None:
        self.world = World()
        self.script = Script()
        self.server = LoopbackServer(self._handle)
        self.world.url = self.server.url
        self._routes = routes
        self._emulator: Emulator | None = None
        self._used: Counter[str] = Counter()
        # emulate's own answers are atomic; ours read and write in steps.
        self._lock = threading.RLock()

    @property
    def emulator(self) -> Emulator:
        """The process behind."""
        if self._emulator is None:
            raise RuntimeError("the front has no emulator yet")
        return self._emulator

    def attach(self, emulator: Emulator) -> None:
        """Say which process answers what the front does not."""
        self._emulator = emulator

    def _handle(self, exchange: Exchange) -> Answer:
        reply = self.script.take(exchange.request)
        if reply is None:
            return self._serve(exchange)
        exchange.scripted = True
        if reply.store_first:
            self._serve(exchange)
        return reply.answer()

    def _serve(self, exchange: Exchange) -> Answer:
        request = exchange.request
        token = None
        if request.token is not None:
            token = self.world.tokens.get(request.token)
            if token is None:
                return error(401, "Bad credentials")
            exchange.label = token.label
        with self._lock:
            answer = self._dispatch(request, token)
        return self._with_limits(answer, token)

    def _dispatch(self, request: Request, token: Token | None) -> Answer:
        found = _REPO_PATH.fullmatch(request.path)
        repo, tail = None, request.path
        if found:
            repo = self.world.repos.get(f"{found['owner']}/{found['name']}")
            tail = found["tail"] or ""
            if repo is None:
                return not_found()
            refusal = refuse(request, token, repo, tail)
            if refusal is not None:
                return refusal
        elif token is None and not _OPEN.fullmatch(request.path) and request.method not in READS:
            return error(401, "Requires authentication")
        for candidate in self._routes:
            match = candidate.pattern.fullmatch(tail)
            wanted = candidate.below_repo == (repo is not None)
            if match and wanted and candidate.method in {"*", request.method}:
                call = Call(self, request, token, repo, tuple(g or "" for g in match.groups()))
                answer = candidate.handler(call)
                if answer is not None:
                    return answer
        return self.pass_on(Call(self, request, token, repo))

    def pass_on(self, call: Call, body: bytes | None = None) -> Answer:
        """emulate's answer to the call, corrected."""
        request = call.request
        login = call.token.login if call.token else None
        repo = call.repo
        if repo and login and (repo.private or request.method not in READS):
            self.admit(repo, login)
        sent = request.body if body is None else body
        answer = self.emulator.call(
            request.method,
            request.target,
            login=login,
            body=sent or None,
            headers={"Content-Type": "application/json"} if sent else None,
        )
        return self._corrected(answer)

    def admit(self, repo: RepoState, login: str) -> None:
        """Make emulate let `login` write; whether it may was decided before."""
        if login not in repo.admitted and login != repo.owner:
            target = f"/repos/{repo.full_name}/collaborators/{quote(login, safe='')}"
            self.emulator.do("PUT", target, repo.owner, {"permission": "admin"})
            repo.admitted.add(login)

    def _corrected(self, answer: UpstreamAnswer) -> Answer:
        kind = answer.headers.get("content-type", "")
        headers = {
            name: answer.headers[name.lower()] for name in _KEPT if name.lower() in answer.headers
        }
        if not answer.body or "json" not in kind:
            return Answer(
                answer.status, answer.body, headers | ({"Content-Type": kind} if kind else {})
            )
        value = rewrite(self.world, json.loads(answer.body))
        return json_answer(answer.status, value, headers)

    def _with_limits(self, answer: Answer, token: Token | None) -> Answer:
        """Add the rate limit headers that every answer of GitHub has."""
        who = token.label if token else "anonymous"
        limit = _HOURLY[token.kind] if token else 60
        self._used[who] += 1
        used = min(self._used[who], limit)
        headers = {
            "X-GitHub-Request-Id": f"{user_number(who):X}:{used:X}",
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(limit - used),
            "X-RateLimit-Used": str(used),
            "X-RateLimit-Reset": "4102444800",
            "X-RateLimit-Resource": "core",
            **answer.headers,
        }
        return Answer(answer.status, answer.body, headers, answer.delay, answer.reset)
