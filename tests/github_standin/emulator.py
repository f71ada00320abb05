"""The npm process `emulate` that keeps the state, and a client for the way behind the front."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .parts import Parts

# emulate counts 5,000 requests per token and hour and cannot be told otherwise; each login gets
# several tokens.
_TOKENS_PER_LOGIN = 8
_START_SECONDS = 20.0


class EmulateError(Exception):
    """emulate did not start, or refused something the stand-in needs. Carries its own words."""


@dataclass(frozen=True)
class UpstreamAnswer:
    """What emulate said."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; None when it is empty."""
        return json.loads(self.body) if self.body else None


class Emulator:
    """One emulate process with GitHub's service on a loopback port.

    `public_url` is what its bodies name as their own address: the front's. `logins` are the users
    it knows; emulate cannot add users later.
    """

    def __init__(self, parts: Parts, public_url: str, logins: Sequence[str], workdir: Path) -> None:
        self._parts = parts
        self._public_url = public_url
        self._workdir = workdir
        self._log = workdir / "emulate.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._tokens = {
            login: itertools.cycle([f"tok-{login}-{n}" for n in range(_TOKENS_PER_LOGIN)])
            for login in logins
        }
        self.start_seconds = 0.0

    def start(self) -> None:
        """Start the process and wait until it answers. Raises EmulateError with its output."""
        began = time.monotonic()
        seed = {
            "tokens": {
                f"tok-{login}-{n}": {"login": login, "scopes": ["repo", "user"]}
                for login in self._tokens
                for n in range(_TOKENS_PER_LOGIN)
            },
            "github": {"users": [{"login": login} for login in self._tokens]},
        }
        seed_file = self._workdir / "seed.json"
        seed_file.write_text(json.dumps(seed))
        # emulate refuses port 0, so a free port is asked for first; another process may take it in
        # between.
        for _ in range(3):
            self._port = _free_port()
            if self._start_once(seed_file):
                self.start_seconds = time.monotonic() - began
                return
        raise EmulateError(f"emulate did not start:\n{self._log.read_text()[-2000:]}")

    def _start_once(self, seed_file: Path) -> bool:
        command = [str(self._parts.node), str(self._parts.emulate), "start"]
        command += ["--service", "github", "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--base-url", self._public_url, "--seed", str(seed_file)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._workdir,
                env={"PATH": os.defpath, "HOME": str(self._workdir), "NO_COLOR": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if self.call("GET", "/zen").status == 200:
                    return True
            except OSError:
                time.sleep(0.02)
        self.stop()
        return False

    def stop(self) -> None:
        """End the process."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    @property
    def logins(self) -> frozenset[str]:
        """Everybody emulate knows."""
        return frozenset(self._tokens)

    def call(
        self,
        method: str,
        target: str,
        *,
        login: str | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> UpstreamAnswer:
        """One request straight to emulate, as `login`."""
        # emulate takes the address of `Link` headers from Host, not from --base-url.
        host = self._public_url.removeprefix("http://")
        sent = {"Host": host, "Accept": "application/vnd.github+json", **(headers or {})}
        if login is not None:
            sent["Authorization"] = f"token {next(self._tokens[login])}"
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, target, body=body, headers=sent)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return UpstreamAnswer(answer.status, found, answer.read())
        finally:
            connection.close()

    def do(self, method: str, target: str, login: str, payload: Any = None) -> Any:
        """One request that must succeed; returns its JSON. Raises EmulateError."""
        body = None if payload is None else json.dumps(payload).encode()
        answer = self.call(
            method, target, login=login, body=body, headers={"Content-Type": "application/json"}
        )
        if answer.status >= 400:
            said = answer.body.decode(errors="replace")[:500]
            raise EmulateError(f"{method} {target} as {login}: {answer.status} {said}")
        return answer.json

    def put_blob(self, repo: str, login: str, content: bytes) -> str:
        """Store a git blob; returns its sha."""
        payload = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        return str(self.do("POST", f"/repos/{repo}/git/blobs", login, payload)["sha"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
