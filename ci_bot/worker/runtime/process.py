"""The worker's process: its channel to the bot, its end within seconds, and work in a fork of it.

The channel carries one request, some progress and one answer, over inherited descriptors whose
numbers are the process's arguments. Output (descriptors 1 and 2) is only log, so nothing that
SQLMesh, Spark or the project prints can count as an answer.

SQLMesh waits for its thread pool before it passes an interrupt on; with a Python model that took 36
s, and the runner gives 7.5 s. So a separate thread writes the answer, cancels Spark's jobs,
releases the leases and ends the process.

A forked process has all imports, but nothing of the project loaded. The effects of a project's code
on a process (modules, classes, variables, the working directory) cannot all be undone. So two
versions of a project load in two processes: this one, and one that is forked from it before either
has begun.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from ci_bot.protocol.base import Contract
from ci_bot.protocol.messages import REQUEST, AnyRequest
from ci_bot.redaction import shorten_redacted
from ci_bot.worker.runtime.early_imports import import_until_readable

if TYPE_CHECKING:
    from pyspark import SparkContext

# The bot drops lines that are longer than 8,192 bytes.
PROGRESS_BYTES = 8_190
_PHASE_CHARACTERS = 200
_MESSAGE_CHARACTERS = 4_000
_CHUNK = 1024 * 1024


def write_worker_log_line(text: str) -> None:
    """Writes a line to the job's log; the bot removes secrets from it."""
    print(text, file=sys.stderr)  # noqa: T201 - the one place that does


class WorkerChannelToBot:
    """The channel to the bot.

    Args:
        request_fd: Descriptor of the file that holds the request.
        answer: Descriptor of the empty file for the answer.
        progress: Descriptor of the pipe for progress; -1 if nobody listens.
        gate: Descriptor that closes when the process beside this one has ended; -1: there is none.
    """

    def __init__(self, *, request_fd: int, answer: int, progress: int, gate: int = -1) -> None:
        self._request_fd, self._answer, self._progress = request_fd, answer, progress
        self._gate = gate
        # Reentrant, because a signal handler may answer while its thread is sending progress.
        self._lock = threading.RLock()
        self._torn = False
        self.answered = False
        for descriptor in (request_fd, answer, progress, gate):
            # A JVM that kept them open would keep the bot waiting.
            if descriptor >= 0:
                os.set_inheritable(descriptor, False)
        # Progress is optional: work never waits for a reader.
        if progress >= 0:
            os.set_blocking(progress, False)

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> WorkerChannelToBot:
        """Makes the channel of this process.

        Args:
            arguments: `sys.argv[1:]`, as the bot starts the worker: three descriptor numbers, and
                that of the gate if there is one. What follows is for `early_imports.py`.
        """
        request_fd, answer, progress, *gate = (int(argument) for argument in arguments[:4])
        for stream in (sys.stdout, sys.stderr):
            _flush_worker_log_line_by_line(stream)
        return cls(
            request_fd=request_fd, answer=answer, progress=progress, gate=next(iter(gate), -1)
        )

    def wait_for_process_beside(self, probable: Sequence[str] = ()) -> None:
        """Returns when the process beside this one has ended.

        Args:
            probable: Modules to import as long as it has not.
        """
        if self._gate >= 0:
            import_until_readable(self._gate, probable)
        while self._gate >= 0 and os.read(self._gate, _CHUNK):
            pass

    def read_request(self) -> AnyRequest:
        """Reads the bot's request."""
        chunks: list[bytes] = []
        while chunk := os.pread(self._request_fd, _CHUNK, sum(map(len, chunks))):
            chunks.append(chunk)
        return REQUEST.validate_json(b"".join(chunks))

    def send_progress(
        self,
        phase: str,
        message: str,
        done: int | None = None,
        total: int | None = None,
        *,
        seconds: float | None = None,
    ) -> None:
        """Sends progress to the bot, from any thread; it is lost if nobody listens."""
        fields = {
            "phase": phase[:_PHASE_CHARACTERS] or "work",
            "message": shorten_redacted(message, _MESSAGE_CHARACTERS),
            "done": done,
            "total": total,
            "seconds": seconds,
        }
        line = _encode_worker_line(fields)
        while len(line) > PROGRESS_BYTES:
            fields["message"] = str(fields["message"])[: len(str(fields["message"])) // 2]
            line = _encode_worker_line(fields)
        with self._lock, suppress(OSError):
            # A full pipe may take the first half of a line; then the next line starts on its own.
            text = (b"\n" if self._torn else b"") + line + b"\n"
            self._torn = os.write(self._progress, text) < len(text)

    def write_answer(self, document: Contract) -> None:
        """Writes the answer; a later one replaces an earlier one."""
        with self._lock:
            self._write_document(document)
            self.answered = True

    def write_last_words(self, document: Contract) -> None:
        """Writes the answer that counts if this process ends without a later one."""
        with self._lock:
            if not self.answered:
                self._write_document(document)

    def _write_document(self, document: Contract) -> None:
        data = memoryview(document.to_json().encode("utf-8"))
        os.ftruncate(self._answer, 0)
        position = 0
        while position < len(data):
            position += os.pwrite(self._answer, data[position : position + _CHUNK], position)


def _encode_worker_line(fields: dict[str, str | int | float | None]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")


def _flush_worker_log_line_by_line(stream: TextIO) -> None:
    """Flushes each line to the log, and escapes characters that it cannot encode."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True, errors="backslashreplace")


@contextmanager
def silence_worker_log(name: str) -> Iterator[None]:
    """Keeps the log of this name from writing anything inside this block."""
    log = logging.getLogger(name)
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was


# Stopping Spark in parallel with the remaining work.
#
# An abandoned JVM takes most of a second to end, for no benefit. But a Spark that is killed before
# it has stopped leaves its application without an end, in its event log and at the cluster's
# manager. So Spark is stopped after its last query, and then its idle JVM is killed.


# The limit for a cluster that does not answer. The sandbox waits a little longer, and ends the JVM.
PATIENCE_SECONDS = 2.0


def find_spark_context_of_worker() -> Any | None:
    """Finds the SparkContext of this process; None if there is none, or no PySpark."""
    context: type[SparkContext] | None = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None)


class EndOfWorkerSpark:
    """The end of the Spark of this process, if it has one. Nothing here raises.

    Args:
        context: Returns the SparkContext; called when Spark is to end.
        patience: Seconds that Spark gets to stop.
    """

    def __init__(
        self,
        context: Callable[[], Any | None] = find_spark_context_of_worker,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._context, self._patience = context, patience
        self._thread: threading.Thread | None = None
        self._jvm: Any = None

    def begin_end(self) -> None:
        """Starts to stop Spark after its last query; returns at once."""
        context = self._context()
        if self._thread is not None or context is None:
            return
        # The process that PySpark has started; None if PySpark was given a JVM.
        self._jvm = getattr(context._gateway, "proc", None)
        self._thread = threading.Thread(
            target=_run_quietly_at_worker_end, args=(context.stop,), name="spark-end", daemon=True
        )
        self._thread.start()

    def finish_end(self) -> None:
        """Ends the JVM of a Spark that has stopped; the sandbox ends one that has not stopped."""
        if self._thread is None:
            return
        self._thread.join(self._patience)
        if self._jvm is not None and not self._thread.is_alive():
            _run_quietly_at_worker_end(self._jvm.kill)
            _run_quietly_at_worker_end(self._jvm.wait)


def _run_quietly_at_worker_end(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:
        write_worker_log_line(f"while Spark ends: {error}")


# The bot kills the process group after 5 s.
EXIT_AFTER_SECONDS = 4.0


class WorkerStopRequest:
    """A request to stop this process, and the actions that follow.

    Args:
        monotonic: A clock in seconds.
        exit_now: Ends the process without waiting for threads.
    """

    def __init__(self, *, monotonic: Callable[[], float], exit_now: Callable[[int], Any]) -> None:
        self._monotonic = monotonic
        self._exit_now = exit_now
        self._event = threading.Event()
        self._signal = signal.SIGTERM
        self._last_words: list[Callable[[], None]] = []
        self._at_the_end: list[Callable[[], None]] = []

    @property
    def is_requested(self) -> bool:
        return self._event.is_set()

    def on_last_words(self, action: Callable[[], None]) -> None:
        """Adds an action that runs before the process ends; the last added runs first."""
        self._last_words.append(action)

    def at_the_end(self, action: Callable[[], None]) -> None:
        """Adds an action that runs after everything else, if there is time."""
        self._at_the_end.append(action)

    def install_and_watch(self) -> None:
        """Handles SIGINT and SIGTERM, and starts the thread that acts on them.

        SparkContext replaces the SIGINT handler when it starts; call `install_handlers` again then.
        """
        threading.Thread(target=self._act_on_signal, name="stop", daemon=True).start()
        self.install_handlers()

    def install_handlers(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._handle_signal)
            signal.signal(signal.SIGINT, self._handle_signal)

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        if self._event.is_set():
            self._exit_now(128 + number)
        self._signal = signal.Signals(number)
        self._event.set()

    def _act_on_signal(self) -> None:
        self._event.wait()
        started = self._monotonic()
        worker = threading.Thread(target=self._wind_down, name="wind-down", daemon=True)
        worker.start()
        worker.join(timeout=max(0.0, EXIT_AFTER_SECONDS - (self._monotonic() - started)))
        self._exit_now(128 + self._signal)

    def _wind_down(self) -> None:
        # Leases are released after the jobs end: a waiting run may begin as soon as one is free.
        first = (*reversed(self._last_words), cancel_spark_jobs_of_worker, release_leases_of_worker)
        for action in (*first, *self._at_the_end):
            try:
                action()
            except Exception as error:
                write_worker_log_line(f"while stopping: {error}")


def cancel_spark_jobs_of_worker() -> None:
    """Cancels every job of this process's Spark, if it has one that has started."""
    active = find_spark_context_of_worker()
    if active is not None and getattr(active, "_jsc", None) is not None:
        active.cancelAllJobs()


def release_leases_of_worker() -> None:
    """Releases every lease of this process, on this thread's own connection."""
    module: Any = sys.modules.get("ci_bot.worker.state_store.leases")
    if module is not None:
        module.release_all_leases()


_PR_SET_PDEATHSIG = 1
# The threads that wait for a signal and hold nothing.
_OWN_THREADS = {"MainThread", "stop"}


class KilledWorkerFork(ChildProcessError):
    """The error if a signal ended the process, which proves nothing about its work."""


def may_fork_worker() -> bool:
    """Whether work may run in a fork of this process, beside this one.

    There must be a processor for it, and no thread of others: a fork has none of them, and a lock
    that one of them holds is never free there. On macOS libraries refuse to run in a fork.
    """
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) == 1:
        return False
    return {thread.name for thread in threading.enumerate()} <= _OWN_THREADS


class ForkedBackgroundWork:
    """Work in a process beside this one, which ends with this one.

    Args:
        work: Returns a JSON value.
        answer: A new file for that value.
    """

    def __init__(self, work: Callable[[], Any], answer: Path) -> None:
        self._answer = answer
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid: int | None = os.fork()
        if self._pid == 0:
            _run_work_in_fork(work, answer, parent)

    def wait_for_result(self) -> Any:
        """Waits for the work and returns its result; call it once.

        Raises:
            KilledWorkerFork: a signal ended it, which any process of this user may have sent.
            ChildProcessError: the process ended without an answer; the text says how.
        """
        if self._pid is None:
            raise RuntimeError("a result is asked for once")
        _, status = os.waitpid(self._pid, 0)
        self._pid = None
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            if code < 0:
                raise KilledWorkerFork(f"was killed by signal {-code}")
            raise ChildProcessError(f"ended with exit code {code}")
        return json.loads(self._answer.read_bytes())

    def __enter__(self) -> ForkedBackgroundWork:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = None


def _run_work_in_fork(work: Callable[[], Any], answer: Path, parent: int) -> None:
    """Runs the work in the forked process. Never returns."""
    code = 1
    try:
        if sys.platform == "linux":
            # A worker that is killed has no time to end its fork.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(code)
        # A worker's signal handlers wake a thread, which a fork does not have.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        answer.write_text(json.dumps(work()), encoding="utf-8")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# The time of each phase of a run.


@dataclass
class WorkerPhaseClock:
    """Seconds by phase, in the order in which the phases first ran."""

    now: Callable[[], float] = time.perf_counter
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def time_phase(self, name: str) -> Iterator[None]:
        start = self.now()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + self.now() - start, 3)

    def add_seconds(self, seconds: Mapping[str, float]) -> None:
        """Adds phases that ran elsewhere, or not alone; they become the last ones."""
        for name, more in seconds.items():
            self.phases[name] = round(self.phases.pop(name, 0.0) + more, 3)
