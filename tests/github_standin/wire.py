"""Requests, answers and a loopback HTTP server that records both.

Every server in this package is this one with another handler. It binds 127.0.0.1 only, on a port
the kernel chooses.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire. `target` is the raw path with its query string."""

    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""

    @cached_property
    def path(self) -> str:
        """The path without query, still percent-encoded."""
        return urlsplit(self.target).path

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path, percent-decoded."""
        return tuple(unquote(part) for part in self.path.strip("/").split("/"))

    @cached_property
    def query(self) -> dict[str, str]:
        """Query parameters; the last one wins, as GitHub does it."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @cached_property
    def token(self) -> str | None:
        """The credential without its scheme, or None."""
        value = self.headers.get("authorization", "")
        scheme, _, token = value.partition(" ")
        return token.strip() if scheme.lower() in {"token", "bearer"} and token.strip() else None

    @cached_property
    def json(self) -> Any:
        """The body as JSON; None when it is empty. Raises ValueError on anything else."""
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Answer:
    """What goes back. `delay` is in seconds; `reset` drops the connection without a byte."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False

    @cached_property
    def json(self) -> Any:
        """The body as JSON; None when it is empty."""
        return json.loads(self.body) if self.body else None


def json_answer(status: int, payload: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with a JSON body and GitHub's content type."""
    return Answer(
        status=status,
        body=json.dumps(payload).encode(),
        headers={"Content-Type": "application/json; charset=utf-8", **(headers or {})},
    )


@dataclass
class Exchange:
    """A request and what was answered. `answer` is None while the request is being served.

    `label` says who asked ("actions:github-actions[bot]"), `scripted` whether a fault script
    answered.
    """

    request: Request
    answer: Answer | None = None
    label: str = "anonymous"
    scripted: bool = False

    @property
    def is_write(self) -> bool:
        """Whether the request could change something. A GraphQL query is a POST that only reads."""
        if self.request.path == "/graphql":
            return b"mutation" in self.request.body
        return self.request.method not in READS

    def __str__(self) -> str:
        status = (
            "dropped" if self.answer and self.answer.reset else getattr(self.answer, "status", "…")
        )
        return f"{self.request.method} {self.request.target} -> {status} ({self.label})"


Handler = Callable[[Exchange], Answer]


class LoopbackServer:
    """Serves `handle` in threads and keeps every exchange, in the order the requests arrived.

    With `tls` it speaks https. A handshake that fails leaves no exchange.
    """

    def __init__(self, handle: Handler, tls: ssl.SSLContext | None = None) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._log: list[Exchange] = []
        self._scheme = "https" if tls else "http"
        self._server = _Server(("127.0.0.1", 0), _handler_class(self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        """Base URL without a trailing slash."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def log(self) -> list[Exchange]:
        """A copy of all exchanges so far."""
        with self._lock:
            return list(self._log)

    def start(self) -> None:
        """Begin to serve. Connections made before this wait in the listen queue."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving, wake delayed answers and close the port."""
        self._stopping.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=5)
        self._server.server_close()

    def clear_log(self) -> None:
        """Forget the exchanges so far."""
        with self._lock:
            self._log.clear()

    def answer(self, request: Request) -> Answer:
        """Record the request, compute its answer, wait out its delay."""
        exchange = Exchange(request)
        with self._lock:
            self._log.append(exchange)
        try:
            exchange.answer = self._handle(exchange)
        except Exception as error:
            # A bug in the stand-in must show up as such in the client's test, not as a hang.
            exchange.answer = json_answer(500, {"message": f"stand-in failed: {error!r}"})
            raise
        finally:
            answer = exchange.answer
            if answer is not None and answer.delay:
                self._stopping.wait(answer.delay)
        return exchange.answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


def _handler_class(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class _Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in separate writes; with Nagle on, each answer waits 40 ms for an
        # ACK.
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            request = Request(
                method=self.command,
                target=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(length) if length else b"",
            )
            try:
                answer = server.answer(request)
            except Exception as error:
                answer = json_answer(500, {"message": f"stand-in failed: {error!r}"})
            if answer.reset:
                self._drop()
                return
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if answer.status != 204 and self.command != "HEAD":
                    self.wfile.write(answer.body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = (
                    True  # The client gave up first, as timeout tests want it to.
                )

        def _drop(self) -> None:
            # SO_LINGER with zero seconds makes close() send RST instead of FIN; the descriptor is
            # closed only when the files made from it are.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.wfile.close()
            self.rfile.close()
            self.connection.close()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the exchanges are kept in `LoopbackServer.log`."""

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    return _Handler
