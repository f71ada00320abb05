"""Workers that have SQLMesh imported already: forks of a process that did nothing else.

A worker's start is most of a small review, and nearly all of that is the import of SQLMesh, again
and again the same. So tests whose subject is not that start take a fork of a process that has
imported what a worker does, and has forgotten the worker's own modules. What follows is as ever,
from `cage/bootstrap.py` on: its limits, the trace, the worker's modules, the request, and its end.
Tests about the start itself say `cold_worker`, and those of all other folders start workers as the
bot does.

The fork becomes a child of the bot's process as any worker is: the process between the two ends at
once, and the bot adopts orphans while a worker runs (`process_tree.adopt_orphans_of_sandbox`).
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ci_bot.bot.sandbox.launch import SandboxLaunch

# What SQLMesh reads of its environment when it is imported; `MAX_FORK_WORKERS` see `_constants`.
_READ_ON_IMPORT = ("DATABRICKS_", "HOME", "MAX_FORK_WORKERS", "SQLMESH")
_INTERPRETER = ("-I", "-X", "utf8")
_MOST_FDS = 32
_ADOPTED_WITHIN_SECONDS = 10


class WarmWorkers:
    """Starts workers as `supervisor._start_sandboxed_process` does, from one process of its own."""

    def __init__(self, cold: Any) -> None:
        self._cold = cold
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._made_for: tuple[Any, ...] = ()

    def start(
        self, command: Sequence[str], launch: SandboxLaunch, output: int, pass_fds: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        """A process that runs the command; started as ever where the fork would be another one."""
        with self._lock:
            if self._line is None and _is_ordinary(command, launch):
                self._begin(launch)
            if not _is_ordinary(command, launch) or _kind(launch) != self._made_for:
                cold: subprocess.Popen[bytes] = self._cold(command, launch, output, pass_fds)
                return cold
            return _Adopted(command, self._fork(command, launch, output, pass_fds))

    def end(self) -> None:
        """Ends the process that is forked."""
        if self._line is not None and self._process is not None:
            self._line.close()
            self._process.wait()
            self._line = None

    def _begin(self, launch: SandboxLaunch) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    *(launch.python, *_INTERPRETER, __file__),
                    *(str(theirs.fileno()), json.dumps(launch.search_path)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=dict(launch.variables),
            )
        self._line, self._made_for = ours, _kind(launch)

    def _fork(
        self, command: Sequence[str], launch: SandboxLaunch, output: int, pass_fds: Sequence[int]
    ) -> int:
        assert self._line is not None
        asked = {
            "parent": os.getpid(),
            "argv": list(command[len(_INTERPRETER) + 1 :]),
            "directory": str(launch.directory),
            "variables": dict(launch.variables),
            "pass_fds": list(pass_fds),
        }
        paper = os.memfd_create("asked")
        try:
            os.write(paper, json.dumps(asked).encode())
            socket.send_fds(self._line, [b"x"], [paper, output, *pass_fds])
        finally:
            os.close(paper)
        told = self._line.recv(32)
        assert told, "the process that is forked has ended; what it said is above"
        return int(told)


class _Adopted(subprocess.Popen[bytes]):
    """A child that this process has not started itself."""

    def __init__(self, command: Sequence[str], pid: int) -> None:
        self.args, self.pid, self.returncode = list(command), pid, None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = True
        self._waitpid_lock = threading.Lock()


def _is_ordinary(command: Sequence[str], launch: SandboxLaunch) -> bool:
    """Whether the worker is the bot's own interpreter with its own packages."""
    return (
        launch.module == "ci_bot.worker"
        and launch.python == sys.executable
        and tuple(command[1 : len(_INTERPRETER) + 1]) == _INTERPRETER
        and launch.overlay is None
        and launch.identity is None
        and launch.directory.is_dir()
    )


def _kind(launch: SandboxLaunch) -> tuple[Any, ...]:
    """What the process that is forked must have been made for."""
    read = {
        name: value for name, value in launch.variables.items() if name.startswith(_READ_ON_IMPORT)
    }
    return launch.search_path, tuple(sorted(read.items()))


def _serve(line: socket.socket, search_path: Sequence[str]) -> None:
    """Imports what a worker imports, then forks for whoever asks; returns in each fork."""
    sys.path += [path for path in search_path if path not in sys.path]
    import ci_bot.worker.__main__
    import ci_bot.worker.review.review_plan
    import ci_bot.worker.review.scan  # noqa: F401
    from ci_bot.protocol.base import Contract

    # What a worker makes at its first use is made once for all forks.
    contracts: list[type[Contract]] = [Contract]
    for contract in contracts:
        contract.model_rebuild()
        contracts += contract.__subclasses__()
    # Theirs alone: the trace that the bot wants begins before the first of the worker's own.
    for name in [name for name in sys.modules if f"{name}.".startswith("ci_bot.worker.")]:
        del sys.modules[name]
    _constants()
    while True:
        said, fds, _, _ = socket.recv_fds(line, 1, _MOST_FDS)
        if not said:
            os._exit(0)
        asked = json.loads(os.pread(fds[0], os.fstat(fds[0]).st_size, 0))
        told, tell = os.pipe()
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                line.detach()  # its number may be wanted by then, and its end would close it
                _become(asked, fds[1:])
                return
            os.write(tell, str(child).encode())
            os._exit(0)
        os.waitpid(between, 0)
        line.sendall(os.read(told, 32))
        for number in (told, tell, *fds):
            os.close(number)


def _become(asked: Mapping[str, Any], fds: Sequence[int]) -> None:
    """What `subprocess` does between its fork and the new program, and Python at its start."""
    os.setsid()
    patience = time.monotonic() + _ADOPTED_WITHIN_SECONDS
    while os.getppid() != asked["parent"]:
        if time.monotonic() > patience:
            os._exit(1)
        time.sleep(0.0005)
    output, *passed = fds
    wanted = {1: output, 2: output, **dict(zip(asked["pass_fds"], passed, strict=True))}
    above = max(*wanted, *fds) + 1
    # Out of the way first: a number may be wanted by one and held by another.
    moved = {number: above + place for place, number in enumerate(wanted)}
    for number, there in moved.items():
        os.dup2(wanted[number], there)
    for number, there in moved.items():
        os.dup2(there, number)
    kept = {0, *wanted}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # it was the list's own
    # As under `-X utf8`. Those of before are for files that cannot be read back.
    sys.stdout, sys.stderr = (
        open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        for number, errors in ((1, "surrogateescape"), (2, "backslashreplace"))
    )
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["variables"])
    time.tzset()
    sys.argv = list(asked["argv"])


def _constants() -> None:
    """SQLMesh reads this variable on import, and a worker sets it before, by its project's size."""
    from sqlmesh.core import constants

    set_here = 0

    class Constants(types.ModuleType):
        @property
        def MAX_FORK_WORKERS(self) -> int:  # noqa: N802 - SQLMesh's name
            return set_here or int(
                os.environ.get("MAX_FORK_WORKERS") or len(os.sched_getaffinity(0))
            )

        @MAX_FORK_WORKERS.setter
        def MAX_FORK_WORKERS(self, count: int) -> None:  # noqa: N802
            nonlocal set_here
            set_here = count

    del constants.MAX_FORK_WORKERS
    constants.__class__ = Constants


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))
    runpy.run_path(sys.argv[0], run_name="__main__")
