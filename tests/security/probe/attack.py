"""Everything that a hostile project would try. What came of it is printed, one line each.

`attack.json` beside it says what to forge and which places to attack; a real attacker would know
the places, because the runner's are the same everywhere.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
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
    """Answers in the worker's name through its own channel, and ends."""
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
    told("grandchild", grandchild)
    commands()
    if plan.get("forge"):
        forge(plan["forge"])
    print("PROBE end", flush=True)
