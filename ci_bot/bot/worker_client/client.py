"""What one run works with: private directories, git facts of the checkout, and the caged worker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ci_bot.bot.sandbox import (
    JAVA_READS,
    MIB,
    NOT_ASKED,
    SUSPECT_CODE_ON_LOAD,
    GitBlob,
    GitRepository,
    SandboxCancelToken,
    SandboxDeadline,
    SandboxedTraceReader,
    SandboxLaunch,
    SandboxWorkspace,
    SecondSandboxedQuestion,
    check_requirements_before_sandbox,
    install_requirements_in_sandbox,
    list_files_opened_in_sandbox,
    resolve_inside_checkout,
    run_worker_in_sandbox,
)
from ci_bot.bot.worker_client.failures import check_worker_request
from ci_bot.errors import BotError, WorkerFailed
from ci_bot.host import Machine
from ci_bot.protocol.apply_report import ApplyDocument, EstimateDocument
from ci_bot.protocol.base import Contract, Failure, Sha
from ci_bot.protocol.cleanup_report import CleanupDocument, EnvironmentList, SweepDocument
from ci_bot.protocol.cost import ExposuresDocument, LearnDocument
from ci_bot.protocol.messages import (
    AcceptAnswer,
    AcceptRequest,
    AnyRequest,
    ApplyRequest,
    BaseTestsRequest,
    CleanupRequest,
    DoctorDocument,
    DoctorRequest,
    EstimateRequest,
    ExposuresRequest,
    FailedAnswer,
    LearnRequest,
    ListRequest,
    Progress,
    RememberRequest,
    RestateAnswer,
    RestateRequest,
    ReviewRequest,
    SameRequest,
    ScanRequest,
    ScopesRequest,
    SweepRequest,
    Workplace,
)
from ci_bot.protocol.review_inputs import BaseCache, BaseTests, SameAnswer, ScanFacts, ScopesAnswer
from ci_bot.protocol.review_report import ReviewFacts
from ci_bot.redaction import Redactor

# What the processes of a review may use, and which files of the checkout they have opened.


_SCAN_VARIABLES = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "NO_COLOR", "TERM"}) | {
    "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"
}

_SCAN_SECONDS = 120
_SCAN_MEMORY = 4_096 * MIB


def make_launch_of_worker_scan(launch: SandboxLaunch) -> SandboxLaunch:
    """Makes the launch of a scan, which reads files and loads nothing.

    So it needs no credential and no package of the project, and its limits can be low.

    Args:
        launch: The worker's, before anything was installed for it.
    """
    variables = {k: v for k, v in launch.variables.items() if k in _SCAN_VARIABLES}
    return replace(
        launch,
        variables=variables,
        bounds={
            "RLIMIT_CPU": _SCAN_SECONDS,
            "RLIMIT_AS": _SCAN_MEMORY,
            "RLIMIT_FSIZE": launch.limits.answer_bytes,
        },
    )


class WorkerLoadTrace:
    """Which files were opened, imported or run while the projects of a run were loaded.

    Attributes:
        roots: Directories that count as the repository.
        required: Requirements files that were installed, relative to the repository.
    """

    def __init__(self, workspace: SandboxWorkspace) -> None:
        self._checkout = workspace.checkout
        self._traces: list[SandboxedTraceReader] = []
        self.roots: tuple[Path, ...] = tuple(
            dict.fromkeys((workspace.repository, workspace.checkout))
        )
        self.required: frozenset[str] = frozenset()

    def start_reader(self) -> SandboxedTraceReader:
        """Returns a new reader, for the records of the next process."""
        self._traces.append(SandboxedTraceReader())
        return self._traces[-1]

    def note_no_start(self) -> None:
        """Drops the last reader: its process could not be started, so it has opened nothing."""
        self._traces.pop()

    def list_opened_files_among(self, changed: Collection[str]) -> frozenset[str] | None:
        """Returns those of the changed files that were opened.

        None if that is unknown: a process reported nothing, or too much, or started a program
        whose files cannot be seen.
        """
        if not all(trace.is_complete for trace in self._traces):
            return None
        opened = list_files_opened_in_sandbox(
            changed, self._traces, roots=self.roots, checkout=self._checkout
        )
        unseen: tuple[str, ...] = ()
        if any(trace.started_java for trace in self._traces):
            unseen += JAVA_READS
        if self.required:
            unseen += (".whl",)  # pip is a separate program, and searches for files itself
        return opened | {path for path in changed if path in self.required or path.endswith(unseen)}


AnswerT = TypeVar("AnswerT", bound=Contract)

RequestT = TypeVar("RequestT", bound=Contract)


@dataclass(frozen=True, kw_only=True)
class WorkerClientOptions:
    """What a run needs to know before it can ask the worker anything.

    Attributes:
        checkout: The repository's root.
        projects: Project directories, relative to `checkout`.
        requirements: A file of the project's own pins, relative to `checkout`.
        python_path: Directories in which the project's Python modules are found; in `checkout`.
        worker_env: The input of that name.
        own_machine: The project is the user's own, on the user's own machine. Then it sees the
            user's environment, as under `sqlmesh`; in a workflow it sees only named variables.
        secrets: Values that the worker must never see.
    """

    checkout: Path
    projects: tuple[str, ...]
    gateway: str | None = None
    requirements: str | None = None
    python_path: tuple[str, ...] = ()
    worker_env: str = ""
    timeout_minutes: int = 60
    own_machine: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class WorkListener:
    """The functions that get the progress of the work.

    `on_traceback` gets the lines of the exception that caused the worker's failure.
    """

    on_progress: Callable[[Progress], None]
    on_log: Callable[[str], None]
    on_cancel: Callable[[], None] = lambda: None
    on_traceback: Callable[[list[str]], None] = lambda _lines: None


class WorkerClient:
    """Sends requests to the worker, with everything around it prepared."""

    def __init__(
        self,
        options: WorkerClientOptions,
        workspace: SandboxWorkspace,
        launch: SandboxLaunch,
        machine: Machine,
        *,
        redactor: Redactor,
        cancel: SandboxCancelToken,
        listener: WorkListener,
        projects: list[str],
        python_path: list[str],
        deadline: SandboxDeadline,
    ) -> None:
        self._options = options
        self.deadline = deadline
        self._workspace = workspace
        self._launch = launch
        self._machine = machine
        self._cancel = cancel
        self._listener = listener
        self._installed = False
        self._clean_launch = launch
        self._loads = WorkerLoadTrace(workspace)
        self._meanwhile: list[Callable[[], None]] = []
        self.scanned: ScanFacts | None = None
        self.not_scanned_because = NOT_ASKED
        self.redactor = redactor
        self.projects = projects
        self.python_path = python_path
        self.git = GitRepository(options.checkout, private=workspace.channel, deadline=deadline)

    @property
    def workplace(self) -> Workplace:
        return self._workspace.make_workplace(
            [self._workspace.repository / path for path in self.python_path],
            own=self._options.own_machine,
        )

    @property
    def checkout(self) -> Path:
        """The repository's root as it was given; in the container the worker has a copy of it."""
        return self._options.checkout

    @property
    def project_directories(self) -> list[str]:
        """The projects' directories as the worker sees them."""
        return [str(self._workspace.repository / path) for path in self.projects]

    def make_request(self, kind: Callable[..., RequestT], **fields: Any) -> RequestT:
        """Makes a request to the worker, and fills in what this client knows about the projects.

        Raises:
            BadInput: a value does not fit the contract.
            UnfitEnvironmentName: the environment has a name that must not be used.
        """
        with check_worker_request():
            return kind(
                projects=self.project_directories,
                gateway=self.gateway,
                workplace=self.workplace,
                **fields,
            )

    def add_listener(self, more: WorkListener) -> None:
        """Adds a listener, which gets progress and a cancel, but no log and no traceback."""
        before = self._listener

        def report_progress(step: Progress) -> None:
            before.on_progress(step)
            more.on_progress(step)

        def report_cancel() -> None:
            before.on_cancel()
            more.on_cancel()

        self._listener = replace(before, on_progress=report_progress, on_cancel=report_cancel)

    def do_meanwhile(self, work: Callable[[], None]) -> None:
        """Adds work of the bot that is done once, as soon as the next worker runs.

        Args:
            work: Takes no longer than a part of a second: lines of the log wait for it.
        """
        self._meanwhile.append(work)

    def _work_meanwhile(self) -> None:
        while self._meanwhile:
            with suppress(Exception):  # what fails now fails again when it is needed
                self._meanwhile.pop()()

    @property
    def project_title(self) -> str:
        """The projects in a title: their directories, or the checkout's name for its root."""
        named = "+".join(self.projects)
        return self._options.checkout.name if named == "." else named

    @property
    def own_machine(self) -> bool:
        """Whether the project is the user's own, on the user's own machine."""
        return self._options.own_machine

    @property
    def gateway(self) -> str | None:
        return self._options.gateway

    def export_base(self, commit: Sha) -> list[str]:
        """Exports the base branch's projects; returns their directories for the worker.

        Raises:
            BadInput: the commit is not in the checkout.
        """
        self.git.require_commit(commit)
        shutil.rmtree(self._workspace.base, ignore_errors=True)
        # The whole tree: a project may read files beside its own directory.
        self.git.exports.export_commit(
            commit, self._workspace.base, identity=self._workspace.identity
        )
        found = [self._workspace.base / path for path in self.projects]
        return [str(path) for path in found if path.is_dir()]

    def export_before(self, blobs: Mapping[str, GitBlob]) -> str | None:
        """Exports the old side of some files, for rules that compare; returns the directory."""
        if not blobs:
            return None
        target = self._workspace.base_directory
        shutil.rmtree(target, ignore_errors=True)
        self.git.exports.export_blobs(blobs, target, identity=self._workspace.identity)
        return str(target)

    @property
    def base_directory(self) -> str:
        """Where `export_base` has written the base branch's tree."""
        return str(self._workspace.base)

    def request_review(
        self, request: ReviewRequest, scan: ScanRequest | None
    ) -> ReviewFacts | FailedAnswer:
        """Requests a review; `scanned` holds the answer to `scan`, whatever happens to the review.

        The scan runs once, under the interpreter as it is in the image: without packages that a
        pull request may ask for, and without credentials.
        """
        second = None
        if scan is not None and self.scanned is None:
            second = SecondSandboxedQuestion(
                request=scan, launch=make_launch_of_worker_scan(self._clean_launch)
            )
        try:
            return self._run_worker(
                request, ReviewFacts, second=second, trace=self._loads.start_reader()
            )
        except BotError:
            if second is not None and not second.started:
                self._loads.note_no_start()
                self._ask_alone(second)
            raise
        finally:
            if second is not None:
                if isinstance(second.answer, ScanFacts):
                    self.scanned = second.answer
                elif isinstance(second.answer, FailedAnswer):
                    self.not_scanned_because = second.answer.failure.message
                else:
                    self.not_scanned_because = second.refusal

    def request_base_tests(self, request: BaseTestsRequest) -> BaseTests | Failure:
        return self._request_answer(request, BaseTests)

    def list_loaded_among(self, changed: Collection[str]) -> frozenset[str] | None:
        """Returns those of the changed files that the reviews so far opened, imported or ran.

        None if that is unknown (see `WorkerLoadTrace`).
        """
        return self._loads.list_opened_files_among(changed)

    def request_scopes(self, request: ScopesRequest) -> ScopesAnswer | Failure:
        return self._request_answer(request, ScopesAnswer)

    def request_same(self, request: SameRequest) -> SameAnswer | Failure:
        return self._request_answer(request, SameAnswer)

    def request_accept(self, request: AcceptRequest) -> AcceptAnswer | Failure:
        return self._request_answer(request, AcceptAnswer)

    def request_restate(self, request: RestateRequest) -> RestateAnswer | Failure:
        return self._request_answer(request, RestateAnswer)

    def request_apply(self, request: ApplyRequest) -> ApplyDocument | Failure:
        return self._request_answer(request, ApplyDocument)

    def request_estimate(self, request: EstimateRequest) -> EstimateDocument | Failure:
        return self._request_answer(request, EstimateDocument)

    def request_cleanup(self, request: CleanupRequest) -> CleanupDocument | Failure:
        return self._request_answer(request, CleanupDocument)

    def request_environments(self, request: ListRequest) -> EnvironmentList | Failure:
        return self._request_answer(request, EnvironmentList)

    def request_sweep(self, request: SweepRequest) -> SweepDocument | Failure:
        return self._request_answer(request, SweepDocument)

    def request_doctor(self, request: DoctorRequest) -> DoctorDocument | Failure:
        return self._request_answer(request, DoctorDocument)

    def request_learn(self, request: LearnRequest) -> LearnDocument | Failure:
        return self._request_answer(request, LearnDocument)

    def request_exposures(self, request: ExposuresRequest) -> ExposuresDocument | Failure:
        return self._request_answer(request, ExposuresDocument)

    def request_base_cache(self, request: RememberRequest) -> BaseCache | Failure:
        return self._request_answer(request, BaseCache)

    def _ask_alone(self, second: SecondSandboxedQuestion) -> None:
        """Runs the second question alone, because the first one could not be asked."""
        try:
            second.answer = run_worker_in_sandbox(
                second.request,
                launch=second.launch,
                redactor=self.redactor,
                on_progress=lambda _step: None,
                on_log=self._listener.on_log,
                deadline=self.deadline,
                cancel=self._cancel,
                clock=self._machine.monotonic,
            )
        except BotError as error:
            second.refusal = error.message

    def _request_answer(self, request: AnyRequest, expected: type[AnswerT]) -> AnswerT | Failure:
        answer = self._run_worker(request, expected)
        return answer.failure if isinstance(answer, FailedAnswer) else answer

    def _run_worker(
        self,
        request: AnyRequest,
        expected: type[AnswerT],
        *,
        second: SecondSandboxedQuestion | None = None,
        trace: SandboxedTraceReader | None = None,
    ) -> AnswerT | FailedAnswer:
        self._cancel.check_cancelled()
        self._install_requirements()
        launch = self._launch
        if trace is not None:
            launch = replace(launch, traced=self._loads.roots)
        answer = run_worker_in_sandbox(
            request,
            launch=launch,
            redactor=self.redactor,
            on_progress=self._listener.on_progress,
            on_log=self._listener.on_log,
            deadline=self.deadline,
            cancel=self._cancel,
            clock=self._machine.monotonic,
            on_cancel=self._listener.on_cancel,
            meanwhile=self._work_meanwhile,
            trace=trace,
            second=second,
        )
        if isinstance(answer, FailedAnswer) and answer.traceback is not None:
            self._listener.on_traceback(answer.traceback.splitlines())
        if not isinstance(answer, expected | FailedAnswer):
            raise WorkerFailed(
                "The worker answered another question than the one that was asked.",
                hint=SUSPECT_CODE_ON_LOAD,
                reason_code="answer_refused",
            )
        return answer

    def _install_requirements(self) -> None:
        """Installs them right before the first request: a refused request installs nothing."""
        if not self._options.requirements or self._installed:
            return
        required = check_requirements_before_sandbox(
            self._workspace.repository, self._options.requirements
        )
        self._loads.required = frozenset(os.path.normpath(path) for path in required)
        self._launch = install_requirements_in_sandbox(
            resolve_inside_checkout(
                self._workspace.repository, self._options.requirements, what="Requirements file"
            ),
            launch=self._launch,
            overlay=self._workspace.overlay,
            redactor=self.redactor,
            on_log=self._listener.on_log,
            deadline=self.deadline,
            cancel=self._cancel,
            clock=self._machine.monotonic,
            repository=self._workspace.repository,
        )
        self._installed = True
