"""A GitHub API on loopback that refuses everything and remembers who asked."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Api(http.server.ThreadingHTTPServer):
    """`asked` holds path and Authorization header of every request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Refusal)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Refusal(http.server.BaseHTTPRequestHandler):
    server: Api

    def _refuse(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization", "")))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b'{"message": "Resource not accessible by integration"}'
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = _refuse  # noqa: N815

    def log_message(self, *_words: object) -> None:
        """Nothing on stderr."""


@contextmanager
def refusing_api() -> Iterator[Api]:
    server = Api()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
