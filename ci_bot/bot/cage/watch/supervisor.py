"""One caged process, from its start to the last of its descendants.

A thread watches it (`watcher`), while the thread that started it hands log lines and progress on,
which may mean slow requests to GitHub. A slow request must delay neither a kill nor the five
seconds that a cancelled run has.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

from ci_bot.bot.cage.launch import Launch
from ci_bot.bot.cage.watch.family import Family, adopting_orphans, process_table
from ci_bot.bot.cage.watch.log import LogReader
from ci_bot.bot.cage.watch.signals import CancelToken
from ci_bot.bot.cage.watch.trace import TraceReader
from ci_bot.bot.cage.watch.watcher import Ended, Sign, Watcher
from ci_bot.contracts.messages import Progress
from ci_bot.secrets import Redactor


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Whom to tell, and when to stop.

    Args:
        on_log: Gets each line of output, without secrets.
        on_progress: Gets each valid progress message.
        on_cancel: Called once when `cancel` is set, while the process still has its seconds.
        clock: Monotonic seconds.
        trace: Gets what the process opens, if its launch is traced.
    """

    on_log: Callable[[str], None]
    on_progress: Callable[[Progress], None]
    on_cancel: Callable[[], None]
    redactor: Redactor
    cancel: CancelToken
    clock: Callable[[], float]
    deadline_seconds: float
    trace: TraceReader = field(default_factory=TraceReader)


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A second process, which the first can wait for.

    It gets no progress pipe, is not traced, and sets its own bounds (`Launch.bounds`).

    Args:
        command: The program and its arguments.
        pass_fds: Descriptors that it alone inherits.
    """

    command: Sequence[str]
    launch: Launch
    pass_fds: Sequence[int] = ()


def supervise(
    command: Sequence[str],
    *,
    launch: Launch,
    watch: Watch,
    answer_file: int,
    pass_fds: Sequence[int] = (),
    beside: Beside | None = None,
) -> Ended:
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

    Raises:
        OSError: It could not be started.
        Cancelled: `watch.cancel` was set before the start.
    """
    known_before = frozenset(process.key for process in process_table().values())
    watch.cancel.check()
    with watch.cancel.deferred(), adopting_orphans():
        started = _start(command, launch, pass_fds, beside)
        family = Family(started.pids, known_before=known_before, identity=launch.identity)
        watcher = Watcher(
            process=started.process,
            beside=started.beside,
            family=family,
            limits=launch.limits,
            log_pipe=started.log,
            progress_pipe=started.progress,
            trace_pipe=started.trace,
            answer_file=answer_file,
            log=LogReader(
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
        with watch.cancel.last_act(lambda: _kill_quietly(family)):
            try:
                thread.start()
                _hand_on(watcher, watch)
            finally:
                watcher.abandoned.set()
                if thread.ident is None:
                    _kill_quietly(family)
                else:
                    thread.join()
    if watcher.failure is not None:
        raise watcher.failure
    return watcher.ended


@dataclass
class _Started:
    """The processes, and the ends at which their output, progress and trace can be read."""

    process: subprocess.Popen[bytes]
    beside: subprocess.Popen[bytes] | None
    log: int
    progress: int
    trace: int

    @property
    def pids(self) -> list[int]:
        return [found.pid for found in (self.process, self.beside) if found is not None]


def _start(
    command: Sequence[str], launch: Launch, pass_fds: Sequence[int], beside: Beside | None
) -> _Started:
    with ExitStack() as ours, ExitStack() as theirs:

        def pipe(wanted: bool = True) -> tuple[int, int]:
            """The end that is read and the one that is written; -1 where nobody needs them."""
            if not wanted:
                return -1, -1
            reader, writer = os.pipe()
            ours.callback(os.close, reader)
            theirs.callback(os.close, writer)
            return reader, writer

        (log, log_end), (progress, progress_end) = pipe(), pipe()
        trace, trace_end = pipe(bool(launch.traced))
        gate, gate_end = pipe(beside is not None)
        second = None
        if beside is not None:
            # Only this process holds the gate's end, so it opens when that ends, however it does.
            inherited = (*beside.pass_fds, gate_end)
            second = _popen(beside.command, beside.launch, log_end, inherited)
            ours.callback(_kill_alone, second)
        numbers = {"{progress}": progress_end, "{trace}": trace_end, "{gate}": gate}
        first = _popen(
            [str(numbers.get(part, part)) for part in command],
            launch,
            log_end,
            [*pass_fds, *(number for number in numbers.values() if number >= 0)],
        )
        ours.pop_all()
        if gate >= 0:
            os.close(gate)
    return _Started(first, second, log, progress, trace)


def _kill_alone(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _popen(
    command: Sequence[str], launch: Launch, output: int, pass_fds: Sequence[int]
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


def _hand_on(watcher: Watcher, watch: Watch) -> None:
    """In the caller's thread: give out what the watcher found, until it says that this was all."""
    while (event := watcher.events.get()) is not Sign.END:
        if event is Sign.CANCELLED:
            watch.on_cancel()
        elif isinstance(event, Progress):
            # Telling GitHub of it may take longer than a cancelled run has seconds.
            watch.cancel.interrupt(partial(watch.on_progress, event))
        elif isinstance(event, str):
            watch.on_log(event)


def _kill_quietly(family: Family) -> None:
    with suppress(Exception):
        family.kill()
