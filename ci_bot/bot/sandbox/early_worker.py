"""A worker that starts and imports before anybody knows what to ask it.

Most of a small review is the import of SQLMesh. It needs nothing of the pull request, so it may run
while the bot imports its own modules, reads the event, talks to GitHub and copies the checkout. The
process is caged as every worker is and holds no file of the pull request. It gets the name of its
directory, two variables and its request once the scan has started. It has to be the worker
that would be started then: if interpreter, user, packages or variables differ, it ends unused and
another one starts. It also ends unused if any other caged process starts first, so that it never
lives beside code of the pull request before it is asked.

Only the standard library: this runs before the bot imports anything else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from ci_bot.bot.sandbox.start_command import (
    fix_worker_variables,
    is_never_passed_on,
    make_bootstrap_command,
    make_trace_arguments,
)

if TYPE_CHECKING:
    from ci_bot.bot.sandbox.launch import SandboxLaunch
    from ci_bot.host import Machine

EarlyActivity = Literal["review", "spark"]

# What differs from run to run and is handed over. No import reads them.
HANDED_OVER = ("TMPDIR", "PYTHONPATH")
_MODULE = "ci_bot.worker"
_PACKAGES = str(Path(__file__).parents[3])


@dataclass(frozen=True, kw_only=True)
class EarlyWorker:
    """A worker that waits for its request, and our ends of all that it has.

    Attributes:
        activity: What it has prepared for.
        line: The pipe on which it waits.
        gate: The end of its gate that keeps it shut; the scan gets it.
        log_writer: The end of its log that the scan writes to as well.
    """

    process: subprocess.Popen[bytes]
    activity: EarlyActivity
    python: str
    variables: Mapping[str, str]
    user: tuple[int, int] | None
    processes: int | None
    request: BinaryIO
    answer: BinaryIO
    line: int
    gate: int
    log: int
    log_writer: int
    progress: int
    trace: int

    def is_fit_for(self, launch: SandboxLaunch) -> bool:
        """Whether a worker that is started now for this launch would be the same process."""
        identity = launch.identity
        return (
            self.process.poll() is None
            and launch.python == self.python
            and launch.module == _MODULE
            and launch.search_path == (_PACKAGES,)
            and launch.overlay is None
            and not launch.bounds
            and bool(launch.traced) == (self.trace >= 0)
            and self.user == (None if identity is None else (identity.uid, identity.gid))
            and self.processes == (None if identity is None else launch.limits.processes)
            and _drop_handed_over(self.variables) == _drop_handed_over(launch.variables)
            and launch.directory.is_dir()
        )

    def hand_over(self, launch: SandboxLaunch) -> None:
        """Has it go on as the worker of this launch. The request is written, and the scan started.

        Raises:
            OSError: it has ended.
        """
        said = {
            "directory": str(launch.directory),
            "variables": {name: launch.variables.get(name) for name in HANDED_OVER},
            "roots": [str(root) for root in launch.traced],
        }
        os.write(self.line, json.dumps(said).encode())
        for number in (self.line, self.gate, self.log_writer):
            os.close(number)

    def end_unused(self) -> None:
        """Ends it; returns when it is gone."""
        self.process.kill()
        self.process.wait()
        for number in (self.line, self.gate, self.log, self.log_writer, self.progress, self.trace):
            if number >= 0:
                os.close(number)
        self.request.close()
        self.answer.close()


_waiting: list[EarlyWorker] = []


def start_early_worker(
    activity: EarlyActivity,
    variables: Mapping[str, str],
    *,
    python: str = sys.executable,
    user: tuple[int, int] | None = None,
    processes: int | None = None,
) -> None:
    """Starts a worker that imports what an activity needs, and then waits. Never raises.

    It dies with the thread that calls this, and with the bot.

    Args:
        activity: What it will most likely be asked for.
        variables: The environment that it would get; `HANDED_OVER` may differ.
        user: User and group to change to.
        processes: The limit of them, if it has a user of its own.
    """
    with suppress(OSError), ExitStack() as ours, ExitStack() as theirs:

        def open_pipe(reads: bool) -> tuple[int, int]:
            """Our end and the worker's; `reads`: whether we read."""
            pipe = os.pipe()
            our, its = pipe if reads else pipe[::-1]
            ours.callback(os.close, our)
            theirs.callback(os.close, its)
            return our, its

        for stream in range(3):
            os.fstat(stream)  # where one is closed, a pipe of ours would get its number
        request, answer = (ours.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        progress, its_progress = open_pipe(True)
        trace, its_trace = open_pipe(True) if activity == "review" else (-1, -1)
        gate, its_gate = open_pipe(False)
        line, its_line = open_pipe(False)
        log, log_writer = os.pipe()
        ours.callback(os.close, log)
        ours.callback(os.close, log_writer)
        its = (request.fileno(), answer.fileno(), its_progress, its_gate, its_line)
        command = make_bootstrap_command(
            python,
            processes=processes,
            search_path=(_PACKAGES,),
            module=_MODULE,
            trace=make_trace_arguments(None) if its_trace >= 0 else None,
        )
        process = subprocess.Popen(
            [*command, str(its_trace), *map(str, its), activity],
            stdin=subprocess.DEVNULL,
            stdout=log_writer,
            stderr=log_writer,
            pass_fds=[*its, *([its_trace] if its_trace >= 0 else [])],
            cwd="/",
            env=dict(variables),
            start_new_session=True,
            user=None if user is None else user[0],
            group=None if user is None else user[1],
            extra_groups=None if user is None else [],
        )
        ours.pop_all()
        end_early_worker()
        _waiting.append(
            EarlyWorker(
                process=process,
                activity=activity,
                python=python,
                variables=dict(variables),
                user=user,
                processes=processes,
                request=request,
                answer=answer,
                line=line,
                gate=gate,
                log=log,
                log_writer=log_writer,
                progress=progress,
                trace=trace,
            )
        )


def start_early_worker_on_laptop(arguments: Sequence[str], environ: Mapping[str, str]) -> None:
    """Starts a worker if a command of a laptop will most likely need one.

    Args:
        arguments: What was typed behind `ci-bot`.
    """
    activity = _LAPTOP_ACTIVITIES.get(next(iter(arguments), ""))
    if activity is None or not _NO_WORK.isdisjoint(arguments):
        return
    passed = {name: value for name, value in environ.items() if not is_never_passed_on(name)}
    passed.setdefault("PYSPARK_PYTHON", sys.executable)
    start_early_worker(activity, {**passed, **fix_worker_variables(environ.get("PATH"))})


def start_early_worker_in_workflow(
    activity: EarlyActivity, machine: Machine, *, worker_env: str, secrets: Sequence[str]
) -> None:
    """Starts a worker for an action.

    Args:
        activity: What it will most likely be asked for.
        worker_env: The input of that name.
        secrets: Values that belong to the bot alone.

    Raises:
        BadInput: `worker_env` names what it must not.
    """
    from ci_bot.bot.sandbox import launch, run_directories

    environment = launch.build_environment_on_machine(
        machine,
        selection=launch.parse_sandbox_variables(worker_env),
        # Where two runs share a directory it may be another one, and the worker ends unused.
        home=run_directories.predict_home_of_run(machine.temporary),
        temporary=machine.temporary,
        secrets=secrets,
    )
    user = machine.worker_user
    start_early_worker(
        activity,
        environment.variables,
        python=machine.python,
        user=None if user is None else (user.uid, user.gid),
        processes=None if user is None else launch.SandboxLimits().processes,
    )


def take_early_worker(launch: SandboxLaunch) -> EarlyWorker | None:
    """Returns the worker that waits, if it fits; else ends it."""
    found = _waiting.pop() if _waiting else None
    if found is not None and not found.is_fit_for(launch):
        found.end_unused()
        return None
    return found


def end_early_worker() -> None:
    """Ends the worker that waits, if there is one."""
    while _waiting:
        _waiting.pop().end_unused()


_LAPTOP_ACTIVITIES: Mapping[str, EarlyActivity] = {
    "review": "review",
    "apply": "spark",
    "cleanup": "spark",
}
_NO_WORK = frozenset({"-h", "--help"})


def _drop_handed_over(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in HANDED_OVER}
