"""How every activity on a laptop begins: its projects, and who sees the steps of the work.

A terminal gets one line with a counter and a clock; a file or a pipe gets a line for each step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ci_bot.bot.sandbox import (
    SandboxCancelToken,
    SandboxedTracebackFilter,
    describe_problem_of_sandbox_directory,
    handle_signals_of_sandbox,
    make_redactor_for_sandbox,
)
from ci_bot.bot.worker_client import (
    WorkerClient,
    WorkerClientOptions,
    WorkListener,
    describe_prefix_ignored_by_client,
    make_bad_input_of_request,
    make_error_of_worker_failure,
    make_failure_of_refused_request,
    open_worker_client,
    read_laptop_prefix_for_worker,
)
from ci_bot.errors import EXIT_BAD_INPUT, BadInput, BotError
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import format_duration
from ci_bot.protocol.environment import (
    DEFAULT_PREFIX,
    EnvironmentName,
    UnfitEnvironmentName,
    parse_review_environment,
)
from ci_bot.protocol.messages import Owner, Progress
from ci_bot.redaction import read_dotenv_secrets

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


# A shorter step is over before anybody wants to know how long it takes.
TOLD_SECONDS = 2.0
# With long names, too, the step must fit on one line.
_WIDEST = 60


class LaptopStepDisplay(Protocol):
    """The place where steps and log lines are shown."""

    def show_step(self, step: Progress) -> None: ...

    def print_line(self, line: str) -> None: ...


class PlainLaptopSteps:
    """Prints a line for each step, and how long each step of two seconds or more took."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._begun: tuple[str, float] | None = None

    def show_step(self, step: Progress) -> None:
        self.end_step(step.phase)
        if self._begun is None:
            self._begun = (step.phase, self._machine.monotonic())
        count = f" {step.done}/{step.total}" if step.total else ""
        self.print_line(f"{step.phase}{count}: {step.message}")

    def print_line(self, line: str) -> None:
        print(line, file=self._machine.log, flush=True)

    def end_step(self, following: str | None = None) -> None:
        """Prints how long the last phase took, unless `following` is the same phase."""
        if self._begun is None or self._begun[0] == following:
            return
        phase, since = self._begun
        self._begun = None
        seconds = self._machine.monotonic() - since
        if seconds >= TOLD_SECONDS:
            self.print_line(f"{phase}: took {format_duration(seconds)}")


class LiveLaptopSteps:
    """Shows one line at the bottom of a terminal; the log continues above it."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=None, count="")

    def show_step(self, step: Progress) -> None:
        task = self._bar.tasks[0]
        if task.fields.get("phase") != step.phase:
            self._bar.reset(self._task, phase=step.phase, count="")
        self._bar.update(
            self._task,
            description=f"{step.phase}: {step.message}"[:_WIDEST],
            total=step.total or None,
            completed=step.done or 0,
            count=f"{step.done or 0:,} of {step.total:,}" if step.total else "",
            refresh=True,
        )

    def print_line(self, line: str) -> None:
        # As it is: what a project prints is neither markup nor one of our colours.
        self._bar.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


@contextmanager
def show_steps_on_laptop(machine: Machine) -> Iterator[LaptopStepDisplay]:
    """Yields the display for the steps of one piece of work, on the machine's log."""
    if not machine.log.isatty() or machine.environ.get("TERM") == "dumb":
        plain = PlainLaptopSteps(machine)
        try:
            yield plain
        finally:
            plain.end_step()
        return
    # The import takes 0.1 s, and an event of GitHub should not wait for it.
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    refused = machine.color == "never" or bool(machine.environ.get("NO_COLOR"))
    console = Console(file=machine.log, no_color=refused, highlight=False)
    with Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        yield LiveLaptopSteps(bar)


LEAVE_ONE_OUT = "Leave out one of them."

# The projects on a command line, and the repository that they are in.


def find_repository_root_on_laptop(start: Path) -> Path:
    """Finds the repository that holds `start`; outside of any it is `start` itself."""
    for directory in (start, *start.parents):
        if os.path.exists(directory / ".git"):  # noqa: PTH110 - False also where we may not look
            return directory
    return start


def make_relative_projects(paths: Iterable[str], directory: Path) -> tuple[Path, tuple[str, ...]]:
    """Returns the repository's root and the projects relative to it, from paths as typed.

    Raises:
        BadInput: one is no directory, or they are not in one repository.
    """
    given = list(paths)
    _check_directories(
        directory,
        given,
        hint="`--project` names the directory of a SQLMesh project.",
        reason_code="bad_project_path",
    )
    absolute = [Path(os.path.realpath(directory / path)) for path in given]
    roots = {find_repository_root_on_laptop(path) for path in absolute}
    common = [root for root in roots if all(path.is_relative_to(root) for path in absolute)]
    if not common:
        raise BadInput(
            "Several projects are planned together in one git repository only, and "
            f"{_describe_wrong_place(given, absolute)}.",
            hint="Give projects of one checkout, or run ci-bot once for each.",
            reason_code="several_repositories",
        )
    return common[0], tuple(os.path.relpath(path, common[0]) for path in absolute)


def _describe_wrong_place(given: list[str], absolute: list[Path]) -> str:
    """Says which of these projects are in the wrong place, as the end of a sentence."""
    outside = [
        path
        for path, place in zip(given, absolute, strict=True)
        if not (find_repository_root_on_laptop(place) / ".git").exists()
    ]
    names = " and ".join(f"`{path}`" for path in outside or given)
    if outside:
        return f"{names} {'is' if len(outside) == 1 else 'are'} in none"
    return f"{names} are in different ones"


def parse_environment_on_laptop(text: str) -> EnvironmentName:
    """Parses the name of an environment that a command on a laptop only reads.

    Raises:
        BadInput: it is no name of an environment, or is prod's.
    """
    try:
        return parse_review_environment(text)
    except UnfitEnvironmentName as error:
        raise make_bad_input_of_request(error) from error


def check_environment_name_on_laptop(text: str) -> None:
    """Refuses a text that is no name of an environment, before anything else is reported.

    A name that may not be built is left to the requests to the worker, which make a document of it.

    Raises:
        BadInput: it is no name of an environment.
    """
    try:
        EnvironmentName(text)
    except UnfitEnvironmentName as error:
        make_failure_of_refused_request(error, "input")


def raise_bad_input_of_laptop(failure: Failure | None) -> None:
    """Raises a failure that is the fault of an input: nothing was checked, so there is no report.

    Raises:
        BadInput: the failure is of that kind.
    """
    if failure is not None and failure.exit_code == EXIT_BAD_INPUT:
        raise make_error_of_worker_failure(failure)


def read_origin_url(client: WorkerClient) -> str | None:
    """Reads the URL of the repository's origin; None outside of a repository."""
    try:
        return client.git.read_origin()
    except BotError:
        return None


def make_owner_on_laptop(client: WorkerClient) -> Owner:
    """Returns who owns an environment here: the origin's repository, or "local"."""
    return Owner(name=read_origin_url(client) or "local")


def read_prefix_on_laptop(client: WorkerClient, machine: Machine, given: str | None) -> str:
    """Reads the prefix of pull requests' environments: the option's, else the project's."""
    if given is not None:
        return given
    found = read_laptop_prefix_for_worker(client)
    if warning := describe_prefix_ignored_by_client(found):
        print(warning, file=machine.log)
    return found.prefix or DEFAULT_PREFIX


def read_branch_on_laptop(client: WorkerClient) -> str | None:
    """Reads the branch that is checked out; None outside of a repository."""
    try:
        return client.git.read_branch()
    except BotError:
        return None


@contextmanager
def open_worker_client_on_laptop(
    machine: Machine,
    projects: tuple[str, ...],
    gateway: str | None,
    worker_env: str,
    python_path: tuple[str, ...],
    *,
    timeout_minutes: int,
    secrets: tuple[str, ...] = (),
) -> Iterator[WorkerClient]:
    """Opens a client for the user's own projects; the worker must not see `secrets`."""
    root, relative = make_relative_projects(projects, machine.directory)
    # In a workflow a path may be missing, because the base branch may lack it. Here it is a typo.
    _check_directories(
        machine.directory,
        python_path,
        hint="`--python-path` names a directory with Python modules of the project.",
        reason_code="bad_python_path",
    )
    cancel = SandboxCancelToken(clock=machine.monotonic)

    redactor = make_redactor_for_sandbox(
        machine.environ,
        worker_env=worker_env,
        secrets=secrets,
        own=_read_own_variables(root, relative),
    )
    options = WorkerClientOptions(
        checkout=root,
        projects=relative,
        gateway=gateway,
        python_path=tuple(str(machine.directory / path) for path in python_path),
        worker_env=worker_env,
        timeout_minutes=timeout_minutes,
        own_machine=True,
        secrets=secrets,
    )
    try:
        with (
            handle_signals_of_sandbox(cancel),
            _listen_to_work(machine) as listener,
            open_worker_client(
                options, machine, redactor=redactor, cancel=cancel, listener=listener
            ) as client,
        ):
            yield client
    finally:
        cancel.close()


@contextmanager
def _listen_to_work(machine: Machine) -> Iterator[WorkListener]:
    """Yields the listener that shows progress to the person at the machine's log."""
    with show_steps_on_laptop(machine) as display:

        def print_traceback(lines: list[str]) -> None:
            if machine.verbose:
                display.print_line("\n".join(lines))

        log = SandboxedTracebackFilter(on_line=display.print_line, on_traceback=print_traceback)
        try:
            yield WorkListener(
                on_progress=display.show_step, on_log=log.feed_line, on_traceback=print_traceback
            )
        finally:
            log.release_held()


def _check_directories(
    directory: Path, given: Iterable[str], *, hint: str, reason_code: str
) -> None:
    """Checks paths that were typed on a command line.

    Raises:
        BadInput: one is no directory.
    """
    problems = [
        found
        for path in given
        if (found := describe_problem_of_sandbox_directory(directory / path, path))
    ]
    if problems:
        raise BadInput(f"{'; '.join(problems)}.", hint=hint, reason_code=reason_code)


def _read_own_variables(root: Path, projects: tuple[str, ...]) -> dict[str, str]:
    """Reads the variables that the user's projects set: SQLMesh reads their .env files."""
    found: dict[str, str] = {}
    for project in projects:
        path = root / project / ".env"
        if path.is_file():
            found |= read_dotenv_secrets(path.read_text(encoding="utf-8", errors="replace"))
    return found
