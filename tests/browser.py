"""A real Chromium, driven over a pipe by its own protocol: for pages that the bot writes.

What a page says on its console, what it asks the network for and which dialogs it opens is kept.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--mute-audio",
    "--remote-debugging-pipe",
)
_SECONDS = 60.0


def chromium() -> str | None:
    """The browser of this machine, None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@dataclass
class Tab:
    """One page in the browser.

    Attributes:
        console: errors and warnings of the page, and what its policy has refused.
        requests: addresses that were asked for, without the page's own.
        dialogs: what `alert` and its like have said.
    """

    pipe: _Pipe
    session: str = ""
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    _loaded: bool = False

    def open(self, page: Path) -> None:
        """Opens a file, and waits until it is loaded."""
        self._loaded = False
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self.pipe.step()
        self.settle()

    def settle(self) -> None:
        """Waits for what the page has asked to draw."""
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def ask(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Presses a key where the focus is."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27}
        more = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        typed = {"text": text or ("\r" if key == "Enter" else "")}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **typed, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, **more)

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.call("Input.insertText", text=text)

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """The size of the window, and which colours its reader prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = "dark" if dark else "light"
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def picture(self, file: Path, *, whole: bool = True) -> None:
        """Writes what the page looks like."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))

    def pdf(self, file: Path) -> None:
        """Writes what the page looks like on paper."""
        file.write_bytes(base64.b64decode(self.call("Page.printToPDF")["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, for this tab."""
        return self.pipe.call(method, self.session, **parameters)

    def heard(self, method: str, parameters: dict[str, Any]) -> None:
        """An event of this tab."""
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if parameters["type"] != "Document" and not url.startswith("data:"):
                self.requests.append(url)
        elif method == "Runtime.consoleAPICalled":
            self.console.append(str([item.get("value") for item in parameters["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(parameters["exceptionDetails"])[:600])
        elif method == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["message"])
            self.pipe.send("Page.handleJavaScriptDialog", self.session, accept=True)


class _Pipe:
    """The browser's side of its protocol: JSON, each message ended by a zero byte."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._rest, self._number = b"", 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.tabs: dict[str, Tab] = {}

    def send(self, method: str, session: str = "", **parameters: Any) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._number

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        number = self.send(method, session, **parameters)
        while number not in self._answers:
            self.step()
        answer = self._answers.pop(number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def step(self) -> None:
        """Takes what the browser says next."""
        while b"\0" not in self._rest:
            if not select([self._read], [], [], _SECONDS)[0]:
                raise AssertionError(f"The browser has said nothing for {_SECONDS:.0f} seconds.")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise AssertionError("The browser is gone.")
            self._rest += more
        whole, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(whole)
        if "id" in message:
            self._answers[message["id"]] = message
        elif tab := self.tabs.get(message.get("sessionId", "")):
            tab.heard(message["method"], message["params"])


@contextmanager
def browser() -> Iterator[Tab]:
    """A tab of a browser of its own, which ends with it."""
    program = chromium()
    if program is None:
        raise AssertionError("There is no chromium on this machine.")
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="ci-bot-browser-", ignore_cleanup_errors=True) as home:
        # The shell puts both pipes where the browser looks for them: 3 to read, 4 to write.
        line = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        process = subprocess.Popen(
            ["/bin/bash", "-c", line, program, *_FLAGS, f"--user-data-dir={home}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        pipe = _Pipe(ours_in, ours_out)
        try:
            yield _tab(pipe)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(ours_in)
            os.close(ours_out)


def _tab(pipe: _Pipe) -> Tab:
    target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
    session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    tab = Tab(pipe, session)
    pipe.tabs[session] = tab
    for domain in ("Page", "Runtime", "Log", "Network"):
        tab.call(f"{domain}.enable")
    return tab
