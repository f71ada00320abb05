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
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ci_bot.contracts.messages import Progress
from ci_bot.process.family import Family, adopting_orphans, process_table
from ci_bot.process.launch import Launch
from ci_bot.process.log import LogReader
from ci_bot.process.signals import CancelToken
from ci_bot.process.watcher import Ended, Sign, Watcher
from ci_bot.secrets import Redactor


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Whom to tell, and when to stop.

    Args:
        on_log: Gets each line of output, without secrets.
        on_progress: Gets each valid progress message.
        on_cancel: Called once when `cancel` is set, while the process still has its seconds.
        clock: Monotonic seconds.
    """

    on_log: Callable[[str], None]
    on_progress: Callable[[Progress], None]
    on_cancel: Callable[[], None]
    redactor: Redactor
    cancel: CancelToken
    clock: Callable[[], float]
    deadline_seconds: float


def supervise(
    command: Sequence[str],
    *,
    launch: Launch,
    watch: Watch,
    answer_file: int,
    pass_fds: Sequence[int] = (),
) -> Ended:
    """Run `command` to its end and beyond; returns when nothing of it is left.

    To be called from a thread that lives as long as the bot: the worker dies with the thread that
    started it (PR_SET_PDEATHSIG).

    Args:
        command: The program and its arguments; `{progress}` as an argument becomes the number of
            the descriptor to which progress is written.
        answer_file: A descriptor whose file must not grow beyond the limit for answers.
        pass_fds: Descriptors that the process inherits, besides its output and progress.

    Raises:
        OSError: It could not be started.
        Cancelled: `watch.cancel` was set before the start.
    """
    known_before = frozenset(process.key for process in process_table().values())
    watch.cancel.check()
    with watch.cancel.deferred(), adopting_orphans():
        process, log_pipe, progress_pipe = _start(command, launch, pass_fds)
        family = Family(process.pid, known_before=known_before, identity=launch.identity)
        watcher = Watcher(
            process=process,
            family=family,
            limits=launch.limits,
            log_pipe=log_pipe,
            progress_pipe=progress_pipe,
            answer_file=answer_file,
            log=LogReader(
                watch.redactor,
                line_characters=launch.limits.log_line_characters,
                limit_bytes=launch.limits.log_bytes,
            ),
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


def _start(
    command: Sequence[str], launch: Launch, pass_fds: Sequence[int]
) -> tuple[subprocess.Popen[bytes], int, int]:
    """The process, and the ends at which its output and its progress can be read."""
    log_pipe, log_end = os.pipe()
    progress_pipe, progress_end = os.pipe()
    identity = launch.identity
    try:
        process = subprocess.Popen(
            [str(progress_end) if part == "{progress}" else part for part in command],
            stdin=subprocess.DEVNULL,
            stdout=log_end,
            stderr=log_end,
            pass_fds=(*pass_fds, progress_end),
            cwd=launch.directory,
            env=dict(launch.environment),
            start_new_session=True,
            user=None if identity is None else identity.uid,
            group=None if identity is None else identity.gid,
            extra_groups=None if identity is None else [],
        )
    except BaseException:
        os.close(log_pipe)
        os.close(progress_pipe)
        raise
    finally:
        os.close(log_end)
        os.close(progress_end)
    return process, log_pipe, progress_pipe


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
