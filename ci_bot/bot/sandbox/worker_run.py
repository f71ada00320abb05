"""Asks the worker; returns an answer that can be trusted, or raises a failure that says why not."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ci_bot.bot.sandbox.answer_validation import (
    SandboxedAnswerRefusedError,
    WorkerAnswer,
    WorkerRequest,
    read_answer_of_sandboxed_worker,
)
from ci_bot.bot.sandbox.deadline import (
    OUT_OF_TIME_HINT,
    RUN_IT_AGAIN,
    SandboxCancelToken,
    SandboxDeadline,
)
from ci_bot.bot.sandbox.early_worker import EarlyWorker, take_early_worker
from ci_bot.bot.sandbox.launch import MIB, SandboxLaunch, SandboxLimits
from ci_bot.bot.sandbox.run_directories import is_disk_of_sandbox_full
from ci_bot.bot.sandbox.start_command import make_bootstrap_command, make_trace_arguments
from ci_bot.bot.sandbox.supervisor import (
    EndedSandboxedProcess,
    SandboxWatchOptions,
    SecondSandboxedProcess,
    supervise_sandboxed_process,
)
from ci_bot.bot.sandbox.worker_output import SandboxedTraceReader
from ci_bot.errors import FULL_DISK_HINT, LOG_HINT, RunCancelled, TimedOut, WorkerFailed
from ci_bot.protocol.messages import Progress
from ci_bot.redaction import Redactor

NOT_ASKED = "it was not asked"

SUSPECT_CODE_ON_LOAD = "If the pull request changes code that runs on load, look there first."

_STEP_CHARACTERS = 200


class SandboxedWorkerStopped(WorkerFailed):
    """A worker that the bot had to stop; `answer` is what it could still say, if anything."""

    answer: WorkerAnswer | None = None


class SandboxedWorkerTimedOut(TimedOut):
    """A worker that did not end in time; `answer` is what it could still say, if anything."""

    answer: WorkerAnswer | None = None


class SandboxedWorkerCancelled(RunCancelled):
    """A run that was asked to stop; `answer` is what the worker could still say, if anything."""

    answer: WorkerAnswer | None = None


@dataclass(kw_only=True)
class SecondSandboxedQuestion:
    """A second question, which a separate process answers first.

    The worker that loads the project waits for the end of that process. So it never runs beside
    code of the pull request, which could manipulate another process of the same user.

    Attributes:
        started: Whether the process was started.
        answer: Set if there is one that can be trusted, even if the first question failed.
        refusal: Why there is none, as the end of a sentence.
    """

    request: WorkerRequest
    launch: SandboxLaunch
    started: bool = False
    answer: WorkerAnswer | None = None
    refusal: str = NOT_ASKED


def run_worker_in_sandbox(
    request: WorkerRequest,
    *,
    launch: SandboxLaunch,
    redactor: Redactor,
    on_progress: Callable[[Progress], None],
    on_log: Callable[[str], None],
    deadline: SandboxDeadline,
    cancel: SandboxCancelToken,
    clock: Callable[[], float],
    on_cancel: Callable[[], None] = lambda: None,
    meanwhile: Callable[[], None] = lambda: None,
    trace: SandboxedTraceReader | None = None,
    second: SecondSandboxedQuestion | None = None,
) -> WorkerAnswer:
    """Starts the worker, waits for its answer, and leaves no process behind.

    The callbacks run in the caller's thread. Log lines come without known secrets, but they are the
    worker's words: show them only through `Commands.write_worker_line`.

    Args:
        on_cancel: Called once when `cancel` is set, while the worker has its last seconds; the
            place to mark the comment.
        meanwhile: Short work of the bot's own, called once the worker runs.
        deadline: When it passes, the worker is asked to end, and is killed after
            `launch.limits.grace_seconds`.
        clock: Monotonic seconds.
        trace: Gets what the worker opens, if `launch` is traced.
        second: Asked first, and answered whatever happens to `request`.

    Returns:
        An answer about what was asked: a document, or the failure that the worker met.

    Raises:
        BadInput: The launch would not separate the worker from the bot (container only).
        RunCancelled: `cancel` was set before the worker was started; if it was set later,
            SandboxedWorkerCancelled.
        TimedOut: The deadline had passed before the start; if it passed later,
            SandboxedWorkerTimedOut.
        WorkerFailed: The worker could not be started, crashed, needed too much memory or disk, or
            gave an answer that cannot be trusted.
    """
    launch.check_separation(own_uid=os.geteuid())
    deadline.check_time("before the worker was asked")
    last: list[Progress] = []

    def hear_step(message: Progress) -> None:
        last[:] = [redactor.redact_document(launch.places.hide_in_document(message))]
        on_progress(last[0])

    with ExitStack() as files:
        early = take_early_worker(launch)
        if early is not None:
            files.callback(early.process.kill)  # where it is not gone yet: it was never asked
        request_file, answer = _write_request_into_sandbox(request, launch, files, early)
        beside = None
        if second is not None:
            question, reply = _write_request_into_sandbox(second.request, second.launch, files)
            beside = SecondSandboxedProcess(
                command=make_sandboxed_command(second.launch, [str(question), str(reply), "-1"]),
                launch=second.launch,
                pass_fds=(question, reply),
            )
        try:
            ended = supervise_sandboxed_process(
                make_sandboxed_command(
                    launch, [str(request_file), str(answer), "{progress}", "{gate}"]
                ),
                launch=launch,
                watch=SandboxWatchOptions(
                    on_log=lambda line: on_log(launch.places.hide_in_text(line)),
                    on_progress=hear_step,
                    on_cancel=on_cancel,
                    meanwhile=meanwhile,
                    redactor=redactor,
                    cancel=cancel,
                    clock=clock,
                    deadline_seconds=deadline.seconds_left(),
                    trace=trace or SandboxedTraceReader(),
                ),
                answer_file=answer,
                pass_fds=(request_file, answer),
                beside=beside,
                early=early,
            )
        except OSError as error:
            raise make_start_failure_of_sandbox(launch, error) from error
        if second is not None:
            _judge_second_sandboxed_answer(reply, ended, second, redactor)
        size = os.fstat(answer).st_size
        if size > launch.limits.answer_bytes or ended.stopped == "answer_size":
            raise _make_refused_sandboxed_answer(
                f"it is larger than {launch.limits.answer_bytes / MIB:.0f} MiB"
            )
        document, refusal = _read_answer_out_of_sandbox(answer, request, launch, redactor)
    return _judge_sandboxed_answer(
        document,
        refusal if size else None,
        ended,
        limits=launch.limits,
        late=f"{deadline.describe_timeout('The worker')}{_describe_last_step_in_sandbox(last)}.",
        cancel=cancel,
        directory=launch.channel_directory,
    )


def _write_request_into_sandbox(
    request: WorkerRequest,
    launch: SandboxLaunch,
    files: ExitStack,
    early: EarlyWorker | None = None,
) -> tuple[int, int]:
    """The request, written, and an empty file for the answer.

    Files without names: nobody can open them, only the worker has them, and nothing is left. A
    worker that waits has its own.
    """
    directory = launch.channel_directory
    request_file, answer = (
        files.enter_context(file)
        for file in (
            (early.request, early.answer)
            if early is not None
            else (tempfile.TemporaryFile(dir=directory) for _ in range(2))  # noqa: SIM115 - by `files`
        )
    )
    request_file.write(request.to_bytes())
    request_file.flush()
    request_file.seek(0)
    return request_file.fileno(), answer.fileno()


def _read_answer_file_of_sandbox(answer: int, limits: SandboxLimits) -> bytes:
    size = os.fstat(answer).st_size
    return os.pread(answer, min(size, limits.answer_bytes + 1), 0)


def _judge_second_sandboxed_answer(
    reply: int, ended: EndedSandboxedProcess, second: SecondSandboxedQuestion, redactor: Redactor
) -> None:
    second.started = True
    if ended.beside_exit_code is None:
        second.refusal = "it was stopped"
    elif not os.fstat(reply).st_size:
        second.refusal = f"it {_describe_ending_of_sandboxed_process(ended.beside_exit_code)}"
    else:
        second.answer, second.refusal = _read_answer_out_of_sandbox(
            reply, second.request, second.launch, redactor
        )


def make_sandboxed_command(
    launch: SandboxLaunch, arguments: Sequence[str], *, script: Path | None = None
) -> list[str]:
    """Makes the command that starts the worker's module, or a script of ours, inside the cage."""
    interpreter = make_bootstrap_command(
        launch.python,
        # The limit counts all processes of the user, so it needs a user of the worker's own.
        processes=launch.limits.processes if launch.identity is not None else None,
        overlay=None if launch.overlay is None else str(launch.overlay),
        search_path=launch.search_path,
        module=launch.module if script is None else None,
        bounds=launch.bounds,
        trace=make_trace_arguments(launch.traced) if launch.traced else None,
    )
    return [*interpreter, "{trace}", *([] if script is None else [str(script)]), *arguments]


def make_start_failure_of_sandbox(launch: SandboxLaunch, error: OSError) -> WorkerFailed:
    """Makes the failure of a process that does not start in the sandbox."""
    return WorkerFailed(
        f"The worker could not be started with {launch.python} in {launch.directory}: "
        f"{error.strerror}.",
        hint="Check that the interpreter and the project exist, and that the worker's user can "
        "read them.",
        reason_code="worker_not_started",
    )


def _judge_sandboxed_answer(
    answer: WorkerAnswer | None,
    refusal: str | None,
    ended: EndedSandboxedProcess,
    *,
    limits: SandboxLimits,
    late: str,
    cancel: SandboxCancelToken,
    directory: Path,
) -> WorkerAnswer:
    if ended.stopped == "cancelled":
        cancelled = SandboxedWorkerCancelled(
            f"The run was {cancel.signal_word}; the worker was stopped.",
            hint=RUN_IT_AGAIN,
        )
        cancelled.exit_code, cancelled.answer = cancel.exit_code, answer
        raise cancelled
    if ended.stopped == "deadline":
        timed_out = SandboxedWorkerTimedOut(late, hint=OUT_OF_TIME_HINT)
        timed_out.answer = answer
        raise timed_out
    if ended.stopped == "memory" and limits.memory_bytes is not None:
        large = SandboxedWorkerStopped(
            f"The worker was stopped, because it needed more than {limits.memory_bytes / MIB:.0f} "
            "MiB of memory.",
            hint="Give Spark's driver less memory, or use a larger runner.",
            reason_code="memory_limit",
        )
        large.answer = answer
        raise large
    if ended.stopped == "disk":
        filling = SandboxedWorkerStopped(
            f"The worker was stopped before a disk was full: {ended.disk}.",
            hint=f"{FULL_DISK_HINT} {SUSPECT_CODE_ON_LOAD}",
            reason_code="disk_limit",
        )
        filling.answer = answer
        raise filling
    if answer is not None:
        return answer
    if refusal is not None and ended.exit_code >= 0:
        raise _make_refused_sandboxed_answer(refusal)  # killed while it wrote, it has no answer
    if is_disk_of_sandbox_full(directory):
        raise WorkerFailed(
            f"The worker {_describe_ending_of_sandboxed_process(ended.exit_code)} without an "
            "answer, because the disk of the temporary directory is full.",
            hint=FULL_DISK_HINT,
            reason_code="disk_full",
        )
    raise WorkerFailed(
        f"The worker {_describe_ending_of_sandboxed_process(ended.exit_code)} without an answer.",
        hint=LOG_HINT,
        reason_code="worker_crashed",
    )


def _describe_last_step_in_sandbox(last: list[Progress]) -> str:
    """Says what the worker was doing by its last progress message; empty if there was none."""
    if not last:
        return ""
    text = " ".join(f"{last[0].phase}: {last[0].message}".split())
    return f"; its last step was `{text[:_STEP_CHARACTERS].replace('`', '')}`"


def _read_answer_out_of_sandbox(
    answer: int, request: WorkerRequest, launch: SandboxLaunch, redactor: Redactor
) -> tuple[WorkerAnswer | None, str]:
    """Returns the answer, or why it cannot be trusted. Its text is not kept beside its content."""
    try:
        read = read_answer_of_sandboxed_worker(
            _read_answer_file_of_sandbox(answer, launch.limits), request
        )
        document = launch.places.hide_in_document(read)
    except SandboxedAnswerRefusedError as refusal:
        return None, str(refusal)
    # Secrets are removed where the answer enters, so everything that is made of it has none.
    return redactor.redact_document(document), ""


def _make_refused_sandboxed_answer(why: str) -> WorkerFailed:
    return WorkerFailed(
        f"The worker's answer was refused: {why}.",
        hint="If the pull request changes code that runs on load, look there first; otherwise this "
        "is a fault of the bot.",
        reason_code="answer_refused",
    )


def _describe_ending_of_sandboxed_process(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = str(-exit_code)
    return f"was killed by signal {name}{' (perhaps out of memory)' if name == 'SIGKILL' else ''}"
