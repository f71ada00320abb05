"""Ask the worker, and get an answer that can be believed or a failure that explains itself."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from ci_bot.contracts.messages import ASK, Progress
from ci_bot.errors import Cancelled, WorkerFailed
from ci_bot.process.answer import Answer, AnswerRefusedError, Ask, read_answer
from ci_bot.process.launch import MIB, Launch, Limits
from ci_bot.process.signals import CancelToken
from ci_bot.process.supervisor import Watch, supervise
from ci_bot.process.watcher import Ended
from ci_bot.redaction import Redactor

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_TWO_MINUTES = 120


class WorkerStopped(WorkerFailed):
    """We had to stop the worker; `answer` is what it could still say, if anything."""

    answer: Answer | None = None


class WorkerTimedOut(WorkerStopped):
    """The worker did not end in time."""

    reason_code = "timeout"


class WorkerCancelled(Cancelled):
    """The run was asked to stop; `answer` is what the worker could still say, if anything."""

    answer: Answer | None = None


def run_worker(
    ask: Ask,
    *,
    launch: Launch,
    redactor: Redactor,
    on_progress: Callable[[Progress], None],
    on_log: Callable[[str], None],
    deadline_seconds: float,
    cancel: CancelToken,
    clock: Callable[[], float],
    on_cancel: Callable[[], None] = lambda: None,
) -> Answer:
    """Start the worker, wait for its answer, and leave no process behind.

    The callbacks run in the caller's thread. Log lines come without known secrets, but are the
    worker's words: show them only through `Commands.worker_line`.

    Args:
        on_cancel: Called once when `cancel` is set, while the worker has its last seconds; the
            place to mark the comment.
        deadline_seconds: From the start; then the worker is asked to end, and killed after
            `launch.limits.grace_seconds`.
        clock: Monotonic seconds.

    Returns:
        An answer about what was asked: a document, or the failure that the worker met.

    Raises:
        BadInput: The launch would not separate the worker from the bot (container only).
        Cancelled: `cancel` was set before the worker was started, or, as WorkerCancelled, before
            it ended.
        WorkerTimedOut: The deadline passed.
        WorkerFailed: The worker could not be started, crashed, needed too much memory, or gave an
            answer that cannot be believed.
    """
    launch.check(own_uid=os.geteuid())
    with ExitStack() as files:
        # Files without names: nobody can open them, only the worker has them, and nothing is left.
        request = files.enter_context(tempfile.TemporaryFile(dir=launch.channel_directory))
        answer = files.enter_context(tempfile.TemporaryFile(dir=launch.channel_directory))
        request.write(ASK.dump_json(ask, by_alias=True))
        request.flush()
        request.seek(0)
        try:
            ended = supervise(
                caged(launch, [str(request.fileno()), str(answer.fileno()), "{progress}"]),
                launch=launch,
                watch=Watch(
                    on_log=on_log,
                    on_progress=lambda message: on_progress(redactor.document(message)),
                    on_cancel=on_cancel,
                    redactor=redactor,
                    cancel=cancel,
                    clock=clock,
                    deadline_seconds=deadline_seconds,
                ),
                answer_file=answer.fileno(),
                pass_fds=(request.fileno(), answer.fileno()),
            )
        except OSError as error:
            raise not_started(launch, error) from error
        size = os.fstat(answer.fileno()).st_size
        raw = os.pread(answer.fileno(), min(size, launch.limits.answer_bytes + 1), 0)
    return _judge(
        raw, ended, ask=ask, limits=launch.limits, seconds=deadline_seconds, cancel=cancel
    )


def caged(launch: Launch, arguments: Sequence[str], *, script: Path | None = None) -> list[str]:
    """The command that starts the worker's module, or a script of ours, inside the cage."""
    config = {
        "parent": os.getpid(),
        # The limit counts the user's processes everywhere, so only a user of its own can have it.
        "processes": launch.limits.processes if launch.identity is not None else None,
        "overlay": None if launch.overlay is None else str(launch.overlay),
        "search_path": list(launch.search_path),
        "module": launch.module if script is None else None,
    }
    # -X utf8: with -I, Python ignores PYTHONUTF8.
    interpreter = [launch.python, "-I", "-X", "utf8", str(_BOOTSTRAP), json.dumps(config)]
    return [*interpreter, *([] if script is None else [str(script)]), *arguments]


def not_started(launch: Launch, error: OSError) -> WorkerFailed:
    """The failure to start a process in the cage."""
    return WorkerFailed(
        f"The worker could not be started with {launch.python} in {launch.directory}: "
        f"{error.strerror}.",
        hint="Check that the interpreter and the project exist, and that the worker's user can "
        "read them.",
        reason_code="worker_not_started",
    )


def _judge(
    raw: bytes, ended: Ended, *, ask: Ask, limits: Limits, seconds: float, cancel: CancelToken
) -> Answer:
    if len(raw) > limits.answer_bytes or ended.stopped == "answer_size":
        raise _refused(f"it is larger than {limits.answer_bytes / MIB:.0f} MiB")
    answer, refusal = _read(raw, ask)
    if ended.stopped == "cancelled":
        cancelled = WorkerCancelled(
            f"The run was {cancel.word}; the worker was stopped.",
            hint="Run it again; it starts from where it is.",
        )
        cancelled.exit_code, cancelled.answer = cancel.exit_code, answer
        raise cancelled
    if ended.stopped == "deadline":
        late = WorkerTimedOut(
            f"The worker did not finish within {_duration(seconds)} and was stopped.",
            hint="Raise `timeout-minutes`, or plan a smaller range.",
        )
        late.answer = answer
        raise late
    if ended.stopped == "memory" and limits.memory_bytes is not None:
        large = WorkerStopped(
            f"The worker was stopped, because it needed more than {limits.memory_bytes / MIB:.0f} "
            "MiB of memory.",
            hint="Give Spark's driver less memory, or use a larger runner.",
            reason_code="memory_limit",
        )
        large.answer = answer
        raise large
    if answer is not None:
        return answer
    if raw and ended.exit_code >= 0:
        raise _refused(refusal)  # killed while it wrote, it has no answer
    raise WorkerFailed(
        f"The worker {_ending(ended.exit_code)} without an answer.",
        hint="The log above says what happened last.",
        reason_code="worker_crashed",
    )


def _read(raw: bytes, ask: Ask) -> tuple[Answer | None, str]:
    try:
        return read_answer(raw, ask), ""
    except AnswerRefusedError as refusal:
        return None, str(refusal)


def _refused(why: str) -> WorkerFailed:
    return WorkerFailed(
        f"The worker's answer was refused: {why}.",
        hint="If the pull request changes code that runs on load, look there first; otherwise this "
        "is a fault of the bot.",
        reason_code="answer_refused",
    )


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = str(-exit_code)
    return f"was killed by signal {name}{' (perhaps out of memory)' if name == 'SIGKILL' else ''}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= _TWO_MINUTES else f"{seconds:g} seconds"
