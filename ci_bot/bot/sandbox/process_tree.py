"""All processes that come from the worker, however they try to leave it.

A process group is not enough: `setsid` leaves it, and a double fork leaves the parent. On Linux
the bot therefore adopts its orphans (PR_SET_CHILD_SUBREAPER), so every process that comes from the
worker stays below the bot in the tree of processes. Processes that the bot itself starts share its
session, which no other process can join; so they can be distinguished.

On other systems only the process group is known; the container is always Linux.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ci_bot.bot.sandbox.launch import SandboxIdentity

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
_WAIT_MILLISECONDS = 100


@dataclass(frozen=True)
class SandboxedProcessEntry:
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int
    resident_pages: int

    @property
    def process_key(self) -> tuple[int, int]:
        """What distinguishes this process from a later one with the same pid."""
        return self.pid, self.started


@contextmanager
def adopt_orphans_of_sandbox() -> Iterator[None]:
    """While inside, orphans of our descendants become our children (Linux only)."""
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def read_table_of_sandboxed_processes() -> dict[int, SandboxedProcessEntry]:
    """Returns every process by pid; empty if there is no /proc."""
    table: dict[int, SandboxedProcessEntry] = {}
    with suppress(FileNotFoundError):
        for entry in os.scandir(_PROC):
            if (
                entry.name.isdecimal()
                and (process := _read_sandboxed_process(int(entry.name))) is not None
            ):
                table[process.pid] = process
    return table


def _read_sandboxed_process(pid: int) -> SandboxedProcessEntry | None:
    try:
        text = (_PROC / str(pid) / "stat").read_bytes().decode("ascii", "replace")
    except OSError:
        return None
    # The name is in parentheses and may contain anything, parentheses and spaces too.
    fields = text[text.rindex(")") + 2 :].split()
    return SandboxedProcessEntry(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        state=fields[0],
        started=int(fields[19]),
        resident_pages=int(fields[21]),
    )


class SandboxedProcessFamily:
    """The worker, a process beside it if there is one, and all processes that they started.

    Args:
        leaders: Their pids; each leads a session and group of its own.
        known_before: Processes that existed before the worker, so they are not part of it.
        identity: The worker's own user, if it has one; then nobody else has it.
    """

    def __init__(
        self,
        leaders: Sequence[int],
        *,
        known_before: frozenset[tuple[int, int]],
        identity: SandboxIdentity | None,
    ) -> None:
        self._leaders = frozenset(leaders)
        self._known_before = known_before
        self._identity = identity
        self._own = os.getpid()
        self._own_session = os.getsid(0)

    def list_members(self) -> list[SandboxedProcessEntry]:
        """Lists the living processes of the family that one look at the process table finds."""
        return [process for process in self._scan_members() if process.state not in "ZX"]

    def _scan_members(self) -> list[SandboxedProcessEntry]:
        """Lists the family with its dead; those that the bot has adopted are reaped."""
        table = read_table_of_sandboxed_processes()
        children: dict[int, list[SandboxedProcessEntry]] = {}
        for process in table.values():
            children.setdefault(process.parent, []).append(process)
        todo = [
            process
            for process in children.get(self._own, [])
            if process.session != self._own_session
            and process.process_key not in self._known_before
        ]
        family: list[SandboxedProcessEntry] = []
        while todo:
            process = todo.pop()
            todo += children.get(process.pid, [])
            if process.pid in self._leaders and process.state in "ZX":
                continue  # its exit code is for the code that started it
            family.append(process)
            if process.state in "ZX" and process.parent == self._own:
                with suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return family

    def measure_resident_bytes(self, *, at_most: int) -> int:
        """Returns the memory of the whole family, in bytes.

        The quick sum counts pages that forked processes share more than once. Only if it is above
        `at_most`, the exact share of every process is read, which is slow.
        """
        members = self.list_members()
        quick = sum(process.resident_pages for process in members) * os.sysconf("SC_PAGE_SIZE")
        if quick <= at_most:
            return quick
        return sum(
            _read_proportional_bytes_of_sandboxed_process(process.pid) for process in members
        )

    def release_leader(self, leader: int) -> None:
        """Forgets a leader that has ended with all of its group: its pid may be used again."""
        self._leaders -= {leader}

    def terminate_groups(self) -> None:
        """Asks the process groups to end."""
        for leader in self._leaders:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, signal.SIGTERM)

    def kill_members(self) -> int:
        """Kills the group and the whole family; returns how many could not be killed.

        It repeats this, because a process may fork between the look and the kill. A process that
        only forks and ends may not even be seen alive; but its dead are seen, and they show the
        group. A group is killed as a whole, and so are all processes of a user: the kernel lets no
        process fork in between.
        """
        for leader in self._leaders:
            _kill_sandboxed_group(leader)
        for _ in range(_ROUNDS):
            if self._identity is not None:
                _kill_all_processes_of_sandboxed_user(self._identity)
            family = self._scan_members()
            if not family:
                return 0
            for group in {process.group for process in family}:
                _kill_sandboxed_group(group)
            _kill_sandboxed_processes_and_wait(
                [process for process in family if process.state not in "ZX"]
            )
        return len(self.list_members())


def _kill_sandboxed_group(group: int) -> None:
    if group <= 1:  # 0 would be our own, 1 everybody's
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _kill_all_processes_of_sandboxed_user(identity: SandboxIdentity) -> None:
    """Kills every process of a user, from a process of that user: it can reach no other."""
    with suppress(OSError):
        subprocess.run(
            ["/bin/sh", "-c", "kill -KILL -1"],
            check=False,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=identity.uid,
            group=identity.gid,
            extra_groups=[],
        )


def _kill_sandboxed_processes_and_wait(processes: list[SandboxedProcessEntry]) -> None:
    """Kills exactly these: if a pid now belongs to another process, that one is left alone."""
    handles: list[int] = []
    poll = select.poll()
    try:
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                handle = os.pidfd_open(process.pid)
                handles.append(handle)
                now = _read_sandboxed_process(process.pid)
                if now is not None and now.process_key == process.process_key:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    poll.register(handle, select.POLLIN)
        poll.poll(_WAIT_MILLISECONDS)
    finally:
        for handle in handles:
            os.close(handle)


def _read_proportional_bytes_of_sandboxed_process(pid: int) -> int:
    try:
        for line in (_PROC / str(pid) / "smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
