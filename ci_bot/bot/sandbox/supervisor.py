"""One caged process, from its start to the last of its descendants.

One thread watches it (`SandboxedProcessWatcher`), while the thread that started it passes on log
lines and progress, which may mean slow requests to GitHub. A slow request must delay neither a kill
nor the five seconds that a cancelled run has.
"""

from __future__ import annotations

import os
import queue
import selectors
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Literal

from ci_bot.bot.sandbox.deadline import SandboxCancelToken
from ci_bot.bot.sandbox.early_worker import EarlyWorker, end_early_worker
from ci_bot.bot.sandbox.launch import (
    SHARED_DIRECTORIES,
    SandboxDiskReserve,
    SandboxLaunch,
    SandboxLimits,
    list_disk_reserves_of_sandbox,
)
from ci_bot.bot.sandbox.process_tree import (
    SandboxedProcessFamily,
    adopt_orphans_of_sandbox,
    read_table_of_sandboxed_processes,
)
from ci_bot.bot.sandbox.worker_output import (
    SandboxedLogReader,
    SandboxedProgressReader,
    SandboxedTraceReader,
)
from ci_bot.protocol.messages import Progress
from ci_bot.redaction import Redactor

# The thread that watches a caged process: it reads its pipes, enforces its limits, and ends it.
#
# Memory is measured from outside. A limit on address space (RLIMIT_AS) cannot distinguish what a
# JVM uses from what it reserves, which is many times its heap. And a container cannot make a
# control group of its own, because the file system of control groups is read-only there.


Reason = Literal["deadline", "memory", "disk", "answer_size", "cancelled", "abandoned"]

_TICK_SECONDS = 0.1
_LINGER_TICK_SECONDS = 0.02
_CHECK_SECONDS = 0.5
_READ_BYTES = 65_536
# While the other thread is busy, this many messages may wait; then the worker has to wait.
_MOST_WAITING = 5_000


class SandboxWatcherSign(Enum):
    """What the watcher reports besides lines and progress."""

    CANCELLED = "cancelled"
    END = "end"


@dataclass
class EndedSandboxedProcess:
    """How a process ended.

    Attributes:
        exit_code: Of the process; negative: the signal that ended it.
        stopped: Why we ended it, if we did.
        beside_exit_code: Of the process beside it, if there was one that ended on its own.
        disk: Which disk it was filling and what that lacks, if we ended it for that reason.
    """

    exit_code: int = 0
    stopped: Reason | None = None
    beside_exit_code: int | None = None
    disk: str = ""


@dataclass(kw_only=True)
class SandboxedProcessWatcher:
    """Everything that the watching thread needs, and its results."""

    process: subprocess.Popen[bytes]
    family: SandboxedProcessFamily
    limits: SandboxLimits
    beside: subprocess.Popen[bytes] | None
    log_pipe: int
    progress_pipe: int
    trace_pipe: int
    answer_file: int
    disks: Sequence[SandboxDiskReserve]
    log: SandboxedLogReader
    trace: SandboxedTraceReader
    cancel: SandboxCancelToken
    clock: Callable[[], float]
    deadline_seconds: float
    events: queue.SimpleQueue[str | Progress | SandboxWatcherSign] = field(
        default_factory=queue.SimpleQueue
    )
    abandoned: threading.Event = field(default_factory=threading.Event)
    ended: EndedSandboxedProcess = field(default_factory=EndedSandboxedProcess)
    failure: BaseException | None = None

    def run(self) -> None:
        """Watches until nothing of the process is left; never raises, see `failure`."""
        try:
            self._watch_process()
        except BaseException as error:
            self.failure = error
            with suppress(Exception):
                self.family.kill_members()
        finally:
            self.events.put(SandboxWatcherSign.END)

    def _watch_process(self) -> None:
        started = self.clock()
        self._deadline = started + self.deadline_seconds
        self._next_check = started
        self._kill_at: float | None = None
        self._progress = SandboxedProgressReader(
            line_bytes=self.limits.progress_line_bytes, lines=self.limits.progress_lines
        )
        with selectors.DefaultSelector() as selector:
            selector.register(self.cancel, selectors.EVENT_READ)
            os.set_blocking(self.log_pipe, False)
            for pipe in (self.progress_pipe, self.trace_pipe):
                if pipe >= 0:
                    os.set_blocking(pipe, False)
                    selector.register(pipe, selectors.EVENT_READ)
            if self.beside is not None:
                self._watch_until_end(selector, self.beside)
                self.ended.beside_exit_code = self.beside.returncode
                self.family.release_leader(self.beside.pid)
            self._watch_until_end(selector, self.process)
            self._end_process(selector)

    def _watch_until_end(
        self, selector: selectors.BaseSelector, process: subprocess.Popen[bytes]
    ) -> None:
        handle = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
        try:
            if handle is not None:
                selector.register(handle, selectors.EVENT_READ)
            while process.poll() is None:
                self._read_ready_pipes(selector, _TICK_SECONDS)
                self._decide_stop()
        finally:
            if handle is not None:
                selector.unregister(handle)
                os.close(handle)

    def _read_ready_pipes(self, selector: selectors.BaseSelector, seconds: float) -> None:
        if self.log_pipe >= 0:
            listening = self.log_pipe in selector.get_map()
            crowded = self.events.qsize() > _MOST_WAITING
            if listening and crowded:
                selector.unregister(self.log_pipe)
            elif not listening and not crowded:
                selector.register(self.log_pipe, selectors.EVENT_READ)
        for key, _ in selector.select(seconds):
            if key.fd in (self.log_pipe, self.progress_pipe, self.trace_pipe):
                if not self._read_pipe(key.fd):
                    selector.unregister(key.fd)
                    self._close_pipe(key.fd)
            elif key.fd == self.cancel.fileno():
                selector.unregister(self.cancel)
                self.events.put(SandboxWatcherSign.CANCELLED)

    def _read_pipe(self, pipe: int) -> bool:
        """Passes on what the pipe holds; returns whether there can be more later."""
        try:
            data = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return True
        if pipe == self.log_pipe:
            for line in self.log.feed_bytes(data):
                self.events.put(line)
        elif pipe == self.trace_pipe:
            self.trace.feed_bytes(data)
        else:
            for message in self._progress.feed_bytes(data):
                self.events.put(message)
        return bool(data)

    def _close_pipe(self, pipe: int) -> None:
        os.close(pipe)
        if pipe == self.log_pipe:
            self.log_pipe = -1
        elif pipe == self.trace_pipe:
            self.trace_pipe = -1
        else:
            self.progress_pipe = -1

    def _decide_stop(self) -> None:
        now = self.clock()
        if self.abandoned.is_set():
            self._stop_process("abandoned", now)
        elif self.cancel.is_cancelled:
            self._stop_process("cancelled", (self.cancel.since or now) + self.limits.grace_seconds)
        elif now >= self._deadline:
            self._stop_process("deadline", now + self.limits.grace_seconds)
        elif now >= self._next_check:
            self._next_check = now + _CHECK_SECONDS
            if os.fstat(self.answer_file).st_size > self.limits.answer_bytes:
                self._stop_process("answer_size", now)
            elif self._needs_too_much_memory():
                self._stop_process("memory", now)
            elif lack := self._find_lack():
                self.ended.disk = self.ended.disk or lack
                # It gets its last seconds only if the disk cannot become full in that time.
                urgent = any(disk.is_used_up(share=0.5) for disk in self.disks)
                self._stop_process("disk", now if urgent else now + self.limits.grace_seconds)
        if self._kill_at is not None and now >= self._kill_at:
            self.family.kill_members()

    def _find_lack(self) -> str:
        return next((lack for disk in self.disks if (lack := disk.describe_lack())), "")

    def _needs_too_much_memory(self) -> bool:
        limit = self.limits.memory_bytes
        return limit is not None and self.family.measure_resident_bytes(at_most=limit) > limit

    def _stop_process(self, reason: Reason, kill_at: float) -> None:
        """Asks the process to end, once; a later reason can only bring the kill forward."""
        if self.ended.stopped is None:
            self.ended.stopped = reason
            self._kill_at = kill_at
            self.family.terminate_groups()
        elif self._kill_at is not None:
            self._kill_at = min(self._kill_at, kill_at)

    def _end_process(self, selector: selectors.BaseSelector) -> None:
        """Ends what the process has left behind, and reads what is still in the pipes."""
        until = self.clock() + self.limits.linger_seconds
        while self.ended.stopped is None and self.clock() < until and self.family.list_members():
            self._read_ready_pipes(selector, _LINGER_TICK_SECONDS)
            if self.abandoned.is_set() or self.cancel.is_cancelled:
                break
        self.ended.exit_code = self.process.returncode
        survivors = self.family.kill_members()
        for pipe in (self.log_pipe, self.progress_pipe, self.trace_pipe):
            while pipe >= 0 and self._has_more(pipe):
                pass
            if pipe >= 0:
                self._close_pipe(pipe)
        for line in self.log.finish_line():
            self.events.put(line)
        if survivors:
            self.events.put(f"({survivors} processes of the worker could not be ended)")
        if self._progress.dropped:
            self.events.put(f"({self._progress.dropped} progress messages were left out)")

    def _has_more(self, pipe: int) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            return bool(selector.select(0)) and self._read_pipe(pipe)


@dataclass(frozen=True, kw_only=True)
class SandboxWatchOptions:
    """Who gets its output, and when to stop.

    Attributes:
        on_log: Gets each line of output, without secrets.
        on_progress: Gets each valid progress message.
        on_cancel: Called once when `cancel` is set, while the process still has its seconds.
        meanwhile: Called once when the process runs; its output waits for that.
        clock: Monotonic seconds.
        trace: Gets what the process opens, if its launch is traced.
    """

    on_log: Callable[[str], None]
    on_progress: Callable[[Progress], None]
    on_cancel: Callable[[], None]
    redactor: Redactor
    cancel: SandboxCancelToken
    clock: Callable[[], float]
    deadline_seconds: float
    meanwhile: Callable[[], None] = lambda: None
    trace: SandboxedTraceReader = field(default_factory=SandboxedTraceReader)


@dataclass(frozen=True, kw_only=True)
class SecondSandboxedProcess:
    """A second process; the first can wait for its end.

    It gets no progress pipe, is not traced, and sets its own limits (`SandboxLaunch.bounds`).

    Attributes:
        command: The program and its arguments.
        pass_fds: Descriptors that only this process inherits.
    """

    command: Sequence[str]
    launch: SandboxLaunch
    pass_fds: Sequence[int] = ()


def supervise_sandboxed_process(
    command: Sequence[str],
    *,
    launch: SandboxLaunch,
    watch: SandboxWatchOptions,
    answer_file: int,
    pass_fds: Sequence[int] = (),
    beside: SecondSandboxedProcess | None = None,
    early: EarlyWorker | None = None,
) -> EndedSandboxedProcess:
    """Run `command` to its end and beyond; returns when nothing of it is left.

    To be called from a thread that lives as long as the bot: the worker dies with the thread that
    started it (PR_SET_PDEATHSIG).

    Args:
        command: The program and its arguments. `{progress}` as an argument becomes the number of
            the descriptor to which progress is written, `{trace}` that of the pipe for
            what is opened, and `{gate}` of one that can be read to its end when the process
            `beside` has ended.
        answer_file: A descriptor whose file must not grow beyond the limit for answers.
        pass_fds: Descriptors that the process inherits, besides its output and progress.
        beside: Started first, under the same watch; what is printed by both is one log.
        early: A worker that waits, to go on in place of `command`. Without it one that waits ends.

    Raises:
        OSError: It could not be started.
        RunCancelled: `watch.cancel` was set before the start.
    """
    end_early_worker()
    known_before = frozenset(
        process.process_key
        for process in read_table_of_sandboxed_processes().values()
        if early is None or process.pid != early.process.pid
    )
    watch.cancel.check_cancelled()
    with watch.cancel.defer_signal(), adopt_orphans_of_sandbox():
        started = (
            _start_sandboxed_processes(command, launch, pass_fds, beside)
            if early is None
            else _go_on_with_early_worker(early, launch, beside)
        )
        family = SandboxedProcessFamily(
            started.process_ids, known_before=known_before, identity=launch.identity
        )
        watcher = SandboxedProcessWatcher(
            process=started.process,
            beside=started.beside,
            family=family,
            limits=launch.limits,
            log_pipe=started.log,
            progress_pipe=started.progress,
            trace_pipe=started.trace,
            answer_file=answer_file,
            disks=list_disk_reserves_of_sandbox(
                [launch.channel_directory, *(SHARED_DIRECTORIES if launch.in_container else ())],
                launch.limits.disk_reserve_bytes,
            ),
            log=SandboxedLogReader(
                watch.redactor,
                line_characters=launch.limits.log_line_characters,
                limit_bytes=launch.limits.log_bytes,
            ),
            trace=watch.trace,
            cancel=watch.cancel,
            clock=watch.clock,
            deadline_seconds=watch.deadline_seconds,
        )
        thread = threading.Thread(target=watcher.run, name="worker-watch", daemon=True)
        with watch.cancel.set_last_act(lambda: _kill_sandboxed_family_quietly(family)):
            try:
                thread.start()
                watch.meanwhile()
                _hand_on_signs_of_sandbox(watcher, watch)
            finally:
                watcher.abandoned.set()
                if thread.ident is None:
                    _kill_sandboxed_family_quietly(family)
                else:
                    thread.join()
    if watcher.failure is not None:
        raise watcher.failure
    return watcher.ended


@dataclass
class _StartedSandboxedProcesses:
    """The processes, and the descriptors to read their output, progress and trace from."""

    process: subprocess.Popen[bytes]
    beside: subprocess.Popen[bytes] | None
    log: int
    progress: int
    trace: int

    @property
    def process_ids(self) -> list[int]:
        return [found.pid for found in (self.process, self.beside) if found is not None]


def _start_sandboxed_processes(
    command: Sequence[str],
    launch: SandboxLaunch,
    pass_fds: Sequence[int],
    beside: SecondSandboxedProcess | None,
) -> _StartedSandboxedProcesses:
    with ExitStack() as ours, ExitStack() as theirs:

        def open_pipe(wanted: bool = True) -> tuple[int, int]:
            """Returns the end to read and the end to write; -1 if nobody needs them."""
            if not wanted:
                return -1, -1
            reader, writer = os.pipe()
            ours.callback(os.close, reader)
            theirs.callback(os.close, writer)
            return reader, writer

        (log, log_end), (progress, progress_end) = open_pipe(), open_pipe()
        trace, trace_end = open_pipe(bool(launch.traced))
        gate, gate_end = open_pipe(beside is not None)
        second = None
        if beside is not None:
            # Only this process holds the gate's other end, so the gate opens when it ends in any
            # way.
            inherited = (*beside.pass_fds, gate_end)
            second = _start_sandboxed_process(beside.command, beside.launch, log_end, inherited)
            ours.callback(_kill_sandboxed_process_alone, second)
        numbers = {"{progress}": progress_end, "{trace}": trace_end, "{gate}": gate}
        first = _start_sandboxed_process(
            [str(numbers.get(part, part)) for part in command],
            launch,
            log_end,
            [*pass_fds, *(number for number in numbers.values() if number >= 0)],
        )
        ours.pop_all()
        if gate >= 0:
            os.close(gate)
    return _StartedSandboxedProcesses(first, second, log, progress, trace)


def _go_on_with_early_worker(
    early: EarlyWorker, launch: SandboxLaunch, beside: SecondSandboxedProcess | None
) -> _StartedSandboxedProcesses:
    """As `_start_sandboxed_processes`: the second process starts first, and opens the gate."""
    with ExitStack() as ours:
        second = None
        if beside is not None:
            second = _start_sandboxed_process(
                *(beside.command, beside.launch, early.log_writer),
                (*beside.pass_fds, early.gate),
            )
            ours.callback(_kill_sandboxed_process_alone, second)
        early.hand_over(launch)
        ours.pop_all()
    return _StartedSandboxedProcesses(early.process, second, early.log, early.progress, early.trace)


def _kill_sandboxed_process_alone(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _start_sandboxed_process(
    command: Sequence[str], launch: SandboxLaunch, output: int, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    identity = launch.identity
    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=pass_fds,
        cwd=launch.directory,
        env=dict(launch.variables),
        start_new_session=True,
        user=None if identity is None else identity.uid,
        group=None if identity is None else identity.gid,
        extra_groups=None if identity is None else [],
    )


def _hand_on_signs_of_sandbox(watcher: SandboxedProcessWatcher, watch: SandboxWatchOptions) -> None:
    """Passes on, in the caller's thread, what the watcher finds, until it reports its end."""
    while (event := watcher.events.get()) is not SandboxWatcherSign.END:
        if event is SandboxWatcherSign.CANCELLED:
            watch.on_cancel()
        elif isinstance(event, Progress):
            # Reporting it to GitHub may take longer than the seconds that a cancelled run has.
            watch.cancel.run_interruptible(partial(watch.on_progress, event))
        elif isinstance(event, str):
            watch.on_log(event)


def _kill_sandboxed_family_quietly(family: SandboxedProcessFamily) -> None:
    with suppress(Exception):
        family.kill_members()
