"""A worker that does one thing, named by the request's gateway: mostly something hostile.

It runs inside the cage, in place of `ci_bot.worker`. What it finds out it writes to `scratch_dir`.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Versions
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import ApplyRequest, CleanupRequest
from ci_bot.worker.runtime.process import WorkerChannelToBot

Scenario = Callable[[WorkerChannelToBot, Any], None]


def document(environment: str) -> CleanupDocument:
    return CleanupDocument(
        environment=environment,
        existed=False,
        result="nothing_to_do",
        state_record_removed=False,
        seconds=0.0,
        versions=Versions(ci_bot="0", python="3"),
    )


def found(request: CleanupRequest, facts: Any) -> None:
    Path(request.workplace.scratch_dir, "found.json").write_text(
        json.dumps(facts), encoding="utf-8"
    )


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        return f"succeeded: {attempt()!r}"[:200]
    except OSError as error:
        return type(error).__name__


def read_some(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1)


def append_to(path: Path) -> int:
    with path.open("a", encoding="ascii") as file:
        return file.write("SOME=thing")


def apply_document(environment: str) -> ApplyDocument:
    return ApplyDocument(
        environment=environment,
        plan_id=None,
        result="nothing_to_apply",
        seconds=0.0,
        timings={},
        versions=Versions(ci_bot="0", python="3"),
    )


def answer(channel: WorkerChannelToBot, request: CleanupRequest | ApplyRequest) -> None:
    make = apply_document if isinstance(request, ApplyRequest) else document
    channel.write_answer(make(request.environment))


def environment(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    status = Path("/proc/self/status").read_text("ascii")
    found(
        request,
        {
            "environ": dict(os.environ),
            "stdin": sys.stdin.read(),
            "path": sys.path,
            "cwd": str(Path.cwd()),
            "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()],
            "status": dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line),
            "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()),
            "argv": Path("/proc/self/cmdline").read_text("utf-8"),
            "utf8": [sys.flags.utf8_mode, sys.stdout.encoding, sys.getfilesystemencoding()],
            "oom": Path("/proc/self/oom_score_adj").read_text("ascii").strip(),
            "arguments": json.loads(os.environ.get("SPARK_PROBE", "{}")),
        },
    )
    answer(channel, request)


def break_out(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Everything a hostile project would try; `SPARK_PROBE` names the files to attack."""
    targets = json.loads(os.environ["SPARK_PROBE"])
    libc = ctypes.CDLL(None, use_errno=True)
    facts: dict[str, Any] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and process.stat().st_uid != os.getuid():
            facts[f"environ of {process.name}"] = outcome((process / "environ").read_bytes)
            facts[f"memory of {process.name}"] = outcome(lambda it=process: read_some(it / "mem"))
    for name in targets["write"]:
        facts[f"write {name}"] = outcome(lambda it=name: append_to(Path(it)))
    for name in targets["read"]:
        facts[f"read {name}"] = outcome(Path(name).read_bytes)
    for name in targets["sockets"]:
        with socket.socket(socket.AF_UNIX) as client:
            facts[f"connect {name}"] = outcome(lambda it=name, to=client: to.connect(it))
    for name in targets["programs"]:
        facts[f"set-uid {name}"] = outcome(
            lambda it=name: subprocess.check_output([it], stderr=subprocess.DEVNULL)
        )
    facts["become root"] = outcome(lambda: os.setuid(0))
    facts["signal the bot"] = outcome(lambda: os.kill(os.getppid(), signal.SIGTERM))
    facts["list the run directory"] = outcome(lambda: list(Path(targets["root"]).iterdir()))
    facts["add to the run directory"] = outcome(lambda: Path(targets["root"], "x").touch())
    facts["new privileges"] = str(libc.prctl(39, 0, 0, 0, 0))
    found(request, facts)
    answer(channel, request)


def forge(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    channel.write_answer(document("prod"))


def raw(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Writes the bytes in SPARK_PROBE straight into the answer's file."""
    os.write(int(sys.argv[2]), os.environ["SPARK_PROBE"].encode())


def endless_answer(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    while True:
        os.write(int(sys.argv[2]), b"x" * 65_536)
        time.sleep(0.001)


def talk(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    sys.stdout.write("::add-mask::x\nplain")
    sys.stdout.flush()
    sys.stderr.write(" and ##[error]more\n")
    sys.stdout.write(f"the password is {os.environ['SPARK_PASSWORD']}\n")
    os.write(1, b"\xff\xfe\n")
    channel.send_progress("apply", "batch 1", done=1, total=2, seconds=0.5)
    os.write(int(sys.argv[3]), b"not json\n")
    channel.send_progress(
        "apply", f"{os.environ['SPARK_PASSWORD']} {'x ' * 5_000}", done=2, total=2
    )
    channel.send_progress("", "\ud800 odd")
    answer(channel, request)


def mute(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Closes its output and its progress, and goes on working."""
    for descriptor in (1, 2, int(sys.argv[3])):
        os.close(descriptor)
    time.sleep(0.5)
    answer(channel, request)


def flood(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    for _ in range(300):
        os.write(1, b"noise\n" * 10_000)
    for number in range(12_000):
        channel.send_progress("apply", f"batch {number}")
    answer(channel, request)


def deaf(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Ignores every request to end, and so does its child in a session of its own."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _family(request)
    channel.send_progress("apply", "deaf")
    _for_ever()


def orphans(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Answers, ends, and leaves descendants behind that hold on to the pipes."""
    _family(request)
    answer(channel, request)


def polite(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Ends when it is asked to, after it has said what it could."""

    def stop(_number: int, _frame: object) -> None:
        answer(channel, request)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    channel.send_progress("apply", "polite")
    _for_ever()


def crash(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    raise RuntimeError("broken on purpose")


def leave(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    os._exit(0)


def die(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def devour(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """A child takes the memory: the limit is for all of them."""
    child = os.fork()
    if child == 0:
        hoard = [bytearray(b"x" * 8_000_000) for _ in range(60)]
        time.sleep(600)
        sys.exit(len(hoard))
    os.waitpid(child, 0)


def fill_disk(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Writes on and on, and removes what it writes: only the disk knows how much there is."""
    channel.wait_for_process_beside()
    kept = []
    for number in range(200):
        path = Path(request.workplace.scratch_dir, str(number))
        kept.append(path.open("wb", buffering=0))
        path.unlink()
        kept[-1].write(b"x" * 4_000_000)
        time.sleep(0.005)
    _for_ever()


def reserve(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Address space that is never touched, as a JVM reserves it, is no use of memory."""
    import mmap

    space = mmap.mmap(-1, 8 * 1024**3)
    time.sleep(1.2)
    space.close()
    answer(channel, request)


def fork_storm(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Processes that fork and end all the time; for a while only, should nobody stop them."""
    until = time.monotonic() + 15
    for _ in range(8):
        if os.fork() == 0:
            os.setsid()
            while time.monotonic() < until:
                if os.fork() != 0:
                    os._exit(0)
                time.sleep(0.001)
            os._exit(0)
    found(request, until)
    channel.send_progress("apply", "storm")
    _for_ever()


def fork_limit(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    children = 0
    try:
        while children < 500:
            if os.fork() == 0:
                time.sleep(600)
            children += 1
    except BlockingIOError:
        pass
    found(request, children)
    answer(channel, request)


def cache(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Puts files wherever it can write, and reports what it finds planted."""
    for directory in (
        request.workplace.cache_dir,
        request.workplace.scratch_dir,
        request.workplace.repository,
    ):
        Path(directory, "left-behind").write_text("pickle", encoding="utf-8")
    found(request, Path(request.workplace.repository, ".cache").exists())
    mode = os.environ.get("SPARK_PROBE")
    if mode == "hang":
        channel.send_progress("apply", "hanging")
        _for_ever()
    if mode == "crash":
        raise RuntimeError("broken on purpose")
    answer(channel, request)


def first_of_two(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Waits for the process beside this one, and says whether that had ended."""
    time.sleep(0.2)
    channel.wait_for_process_beside()
    ended = Path(request.workplace.scratch_dir, "second").exists()
    found(request, {"ended": ended, "bounds": list(resource.getrlimit(resource.RLIMIT_CPU))})
    answer(channel, request)


def first_that_dies(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    """Does not wait, and takes its whole process group with it."""
    os.killpg(0, signal.SIGKILL)


def first_that_never_ends(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    channel.wait_for_process_beside()
    _for_ever()


def second(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    time.sleep(1)
    answer(channel, request)
    Path(request.workplace.scratch_dir, "second").write_text(
        json.dumps(resource.getrlimit(resource.RLIMIT_CPU)), encoding="utf-8"
    )


def second_that_dies(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def second_that_computes(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    while True:
        pass


def second_that_writes(channel: WorkerChannelToBot, request: CleanupRequest) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    while True:
        os.write(int(sys.argv[2]), b"x" * 65_536)


def _family(request: CleanupRequest) -> None:
    """A child, a grandchild in its own session, and an orphan of both; their pids go to a file."""
    pids = Path(request.workplace.scratch_dir, "pids")
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                _note(pids)
                _for_ever()
            _note(pids)
            os._exit(0)
        _note(pids)
        _for_ever()
    while not pids.exists() or len(pids.read_text("ascii").split()) < 3:
        time.sleep(0.01)


def _note(pids: Path) -> None:
    with pids.open("a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")


def _for_ever() -> None:
    while True:
        time.sleep(600)


def main() -> None:
    channel = WorkerChannelToBot.from_arguments(sys.argv[1:])
    request = channel.read_request()
    assert isinstance(request, CleanupRequest | ApplyRequest)
    scenario: Scenario = globals()[str(request.gateway)]
    scenario(channel, request)


if __name__ == "__main__":
    main()
