"""SQLMesh's own language server, as an editor starts it: JSON-RPC over a pipe.

What it needs beside SQLMesh is a part of tests: installed once by the hashes in
`language_server.lock`, and kept with the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.locked_packages import install_locked_packages

LOCK = Path(__file__).with_name("language_server.lock")


class Editor:
    """The client's side of one server, which is open on one project."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ids = 0

    def ask(self, method: str, parameters: Mapping[str, Any]) -> Any:
        """The answer to a request; what comes before it is passed over."""
        self._ids += 1
        self._send({"id": self._ids, "method": method, "params": parameters})
        while True:
            message = self._read()
            if message.get("id") == self._ids and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            if "method" in message and "id" in message:  # the server asks: it gets nothing
                self._send({"id": message["id"], "result": None})

    def tell(self, method: str, parameters: Mapping[str, Any]) -> None:
        """A notification."""
        self._send({"method": method, "params": parameters})

    def open_file(self, path: Path) -> list[dict[str, Any]]:
        """Opens a file and gives its diagnostics."""
        uri = path.as_uri()
        document = {"uri": uri, "languageId": "sql", "version": 1, "text": path.read_text("utf-8")}
        self.tell("textDocument/didOpen", {"textDocument": document})
        answer = self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        return list(answer["items"])

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while (line := self._process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server has ended"
        found: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return found


@contextmanager
def open_project(project: Path, env: Mapping[str, str]) -> Iterator[Editor]:
    """Starts the server on a project, and ends it."""
    packages = install_locked_packages(LOCK, env)
    process = subprocess.Popen(
        [sys.executable, "-m", "sqlmesh.lsp.main"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=project,
        env={**env, "PYTHONPATH": str(packages), "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true"},
    )
    try:
        editor = Editor(process)
        folder = {"uri": project.as_uri(), "name": "project"}
        capabilities = {"textDocument": {"diagnostic": {"dynamicRegistration": False}}}
        editor.ask(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder["uri"],
                "workspaceFolders": [folder],
                "capabilities": capabilities,
            },
        )
        editor.tell("initialized", {})
        yield editor
        editor.ask("shutdown", {})
        editor.tell("exit", {})
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
