"""The worker process: one request in, one answer out (DESIGN 2)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ci_bot.contracts.base import Contract
from ci_bot.contracts.environment import UnfitName
from ci_bot.contracts.messages import (
    AnyAsk,
    ApplyAsk,
    DoctorAsk,
    FailedAnswer,
    ListAsk,
    ReviewAsk,
    SweepAsk,
)
from ci_bot.errors import BotError
from ci_bot.worker.channel import Channel
from ci_bot.worker.problems import cancelled
from ci_bot.worker.stopping import Stop

# Below this, forking loaders cost more than they save: a fork of a process that has SQLMesh
# imported takes about 0.1 s, a model file about 5 ms.
SMALL_PROJECT_FILES = 150

Words = Callable[[], Contract]


def main() -> None:
    """Answers one request. The answer says how it went, the exit code only that there is one."""
    channel = Channel.from_arguments(sys.argv[1:])
    try:
        ask = channel.ask()
    except UnfitName as error:
        # Before anything is opened: what was asked for must not be done.
        channel.answer(FailedAnswer(failure=error.failure("input")))
        return
    stop = Stop(monotonic=time.monotonic, exit_now=os._exit)
    words: list[Words] = [lambda: _cancelled(ask)]
    # A sweep answers as it goes on, and what it has done stays told.
    stop.on_last_words(lambda: None if channel.answered else channel.answer(words[-1]()))
    stop.install()
    limit_forks(ask)
    try:
        answer: Contract = perform(ask, channel, stop, words.append)
    except BaseException as error:
        answer = failed(error, ask)
    if stop.asked and isinstance(answer, FailedAnswer):
        answer = words[-1]()
    channel.answer(answer)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of SQLMesh's pools and of py4j must not keep an answered request waiting; the JVM
    # ends with the pipe to its standard input.
    os._exit(0)


def limit_forks(ask: AnyAsk) -> None:
    """Loads small projects in this process. SQLMesh reads the variable when it is imported."""
    if "MAX_FORK_WORKERS" in os.environ:
        return
    count = 0
    for project in ask.projects:
        for path in Path(project, "models").rglob("*"):
            count += path.suffix in (".sql", ".py")
            if count > SMALL_PROJECT_FILES:
                return
    os.environ["MAX_FORK_WORKERS"] = "1"


def perform(
    ask: AnyAsk, channel: Channel, stop: Stop, last_words: Callable[[Words], None]
) -> Contract:
    """Runs the activity that was asked for. SQLMesh is imported here and not before.

    Args:
        last_words: Takes what to answer instead of a plain "cancelled" where the run is stopped.
    """
    from ci_bot.worker import java
    from ci_bot.worker.project import Clock

    def progress(
        phase: str, message: str, done: int | None = None, total: int | None = None
    ) -> None:
        channel.progress(phase, message, done=done, total=total)

    def brief() -> None:
        os.environ.update(java.for_a_brief_run(os.environ))

    def before_spark() -> None:
        os.environ.update(java.java_environment(os.environ, python=sys.executable))
        if not isinstance(ask, ApplyAsk):
            brief()  # catalogs are asked, and no data is read
        progress("spark", "starting Spark")

    clock = Clock()
    if isinstance(ask, ReviewAsk):
        from ci_bot.worker import review

        return review.review(ask, review.Ports(clock, progress, before_spark))
    if isinstance(ask, ApplyAsk):
        from ci_bot.worker import apply

        ports = apply.Ports(
            clock,
            progress,
            before_spark,
            lambda: stop.asked,
            brief,
            keep=channel.keep,
            last_words=last_words,
        )
        return apply.apply(ask, ports)
    if isinstance(ask, DoctorAsk):
        from ci_bot.worker import doctor

        around = doctor.Ports(clock, progress, before_spark, os.environ, sys.executable)
        return doctor.doctor(ask, around)
    if isinstance(ask, ListAsk | SweepAsk):
        from ci_bot.worker import sweep

        asked = sweep.Ports(progress, before_spark, lambda: stop.asked, channel.answer)
        return sweep.answer(ask, asked)
    from ci_bot.worker import cleanup

    return cleanup.cleanup(ask, cleanup.Ports(clock, progress, before_spark, last_words))


def failed(error: BaseException, ask: AnyAsk) -> FailedAnswer:
    """The answer where an activity raised instead of giving a document."""
    from ci_bot.worker.problems import failure_of

    stage = {"review": "plan", "list": "sweep"}.get(ask.activity, ask.activity)
    if not isinstance(error, BotError):
        # The whole story goes to the log, which is masked; the reader gets the sentence.
        sys.excepthook(type(error), error, error.__traceback__)
    # SQLMesh names the place and what is wrong there; all else has no cure that we could name.
    from_sqlmesh = type(error).__module__.startswith("sqlmesh.")
    return FailedAnswer(
        failure=failure_of(
            error,
            stage=stage,
            repository=Path(ask.workplace.repository),
            hint="Correct it and push; `sqlmesh info` shows the same locally."
            if from_sqlmesh
            else None,
        )
    )


def _cancelled(ask: AnyAsk) -> FailedAnswer:
    return FailedAnswer(failure=cancelled(ask.activity))


if __name__ == "__main__":
    main()
