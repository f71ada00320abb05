"""The workbench of one run: private directories, the checkout's git facts, and the caged worker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from ci_bot.contracts.apply import ApplyDocument
from ci_bot.contracts.base import Contract, Failure
from ci_bot.contracts.cleanup import CleanupDocument
from ci_bot.contracts.doctor import DoctorDocument
from ci_bot.contracts.messages import (
    AnyAsk,
    ApplyAsk,
    CleanupAsk,
    DoctorAsk,
    FailedAnswer,
    ListAsk,
    Owner,
    Progress,
    ReviewAsk,
    ScanAsk,
    SweepAsk,
    Workplace,
)
from ci_bot.contracts.report import ReviewFacts
from ci_bot.contracts.scan import ScanFacts
from ci_bot.contracts.sweep import EnvironmentList, SweepDocument
from ci_bot.errors import BadInput, BotError, Cancelled, WorkerFailed
from ci_bot.loading import LoadTrace, scan_launch
from ci_bot.process.doors import DOCKER_SOCKETS
from ci_bot.process.environment import (
    CONTAINER_PATH,
    WorkerVariables,
    build,
    parse_worker_variables,
)
from ci_bot.process.git import Git
from ci_bot.process.launch import Identity, Launch
from ci_bot.process.requirements import check_requirements, install_requirements
from ci_bot.process.run import Second, run_worker
from ci_bot.process.signals import CancelToken
from ci_bot.process.trace import TraceReader
from ci_bot.process.workspace import Workspace, inside, private_workspace, project_paths
from ci_bot.redaction import Redactor
from ci_bot.surroundings import Surroundings

Answer = TypeVar("Answer", bound=Contract)


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """What a run needs to know before it can ask the worker anything.

    Args:
        checkout: The repository's root.
        projects: Project directories, relative to `checkout`.
        requirements: A file of the project's own pins, relative to `checkout`.
        worker_env: The input of that name.
        own_machine: The project is the user's own, on the user's own machine: it sees the user's
            environment, as it would under `sqlmesh`. In a workflow it sees what is named.
        secrets: What the worker must never see and no text may show.
    """

    checkout: Path
    projects: tuple[str, ...]
    gateway: str | None = None
    requirements: str | None = None
    worker_env: str = ""
    timeout_minutes: int = 60
    own_machine: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class Listener:
    """Who hears of the work while it goes on."""

    on_progress: Callable[[Progress], None]
    on_log: Callable[[str], None]
    on_cancel: Callable[[], None] = lambda: None


class Bench:
    """Asks the worker, with everything around it prepared."""

    def __init__(
        self,
        options: BenchOptions,
        workspace: Workspace,
        launch: Launch,
        around: Surroundings,
        *,
        redactor: Redactor,
        cancel: CancelToken,
        listener: Listener,
        projects: list[str],
    ) -> None:
        self._options = options
        self._workspace = workspace
        self._launch = launch
        self._around = around
        self._cancel = cancel
        self._listener = listener
        self._installed = False
        self._clean_launch = launch
        self._loads = LoadTrace(workspace)
        self.scanned: ScanFacts | None = None
        self.not_scanned_because = "it was not asked"
        self.redactor = redactor
        self.projects = projects
        self.git = Git(options.checkout, private=workspace.channel)

    @property
    def workplace(self) -> Workplace:
        return self._workspace.workplace()

    @property
    def project_directories(self) -> list[str]:
        """The projects' directories as the worker sees them."""
        return [str(self._workspace.repository / path) for path in self.projects]

    def listen(self, more: Listener) -> None:
        """Adds somebody who hears of the work."""
        before = self._listener

        def progress(step: Progress) -> None:
            before.on_progress(step)
            more.on_progress(step)

        def cancelled() -> None:
            before.on_cancel()
            more.on_cancel()

        self._listener = Listener(on_progress=progress, on_log=before.on_log, on_cancel=cancelled)

    @property
    def name(self) -> str:
        """What a title calls the projects: their directories, the checkout's for its root."""
        named = "+".join(self.projects)
        return self._options.checkout.name if named == "." else named

    @property
    def gateway(self) -> str | None:
        return self._options.gateway

    def export_base(self, commit: str) -> list[str]:
        """Writes the base branch's projects aside; returns their directories for the worker.

        Raises:
            BadInput: the commit is not in the checkout.
        """
        self.git.require(commit)
        shutil.rmtree(self._workspace.base, ignore_errors=True)
        # The whole tree: a project may read files beside its own directory.
        self.git.export(commit, [], self._workspace.base, identity=self._workspace.identity)
        found = [self._workspace.base / path for path in self.projects]
        return [str(path) for path in found if path.is_dir()]

    def export_before(self, commit: str, paths: Iterable[str]) -> str | None:
        """Writes a commit's version of some files aside, for rules that compare; its directory."""
        held = [path for path in paths if self.git.content(commit, path) is not None]
        if not held:
            return None
        target = self._workspace.base.with_name("before")
        shutil.rmtree(target, ignore_errors=True)
        self.git.export(commit, held, target, identity=self._workspace.identity)
        return str(target)

    @property
    def base_directory(self) -> str:
        """Where `export_base` has written the base branch's tree."""
        return str(self._workspace.base)

    def review(self, ask: ReviewAsk, scan: ScanAsk | None) -> ReviewFacts | Failure:
        """Asks for a review; `scanned` holds the answer to `scan`, whatever becomes of the review.

        The scan runs once, under the interpreter as it came: without the packages that a pull
        request may ask for, and without credentials.
        """
        second = None
        if scan is not None and self.scanned is None:
            second = Second(ask=scan, launch=scan_launch(self._clean_launch))
        try:
            return self._ask(ask, ReviewFacts, second=second, trace=self._loads.begin())
        except Cancelled:
            raise
        except BotError:
            if second is not None and not second.asked:
                self._loads.never_began()
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

    def loaded_among(self, changed: Collection[str]) -> frozenset[str] | None:
        """Those of the changed files that the reviews so far opened, imported or ran on load.

        None where that is not known (see `LoadTrace`).
        """
        return self._loads.opened_among(changed)

    def apply(self, ask: ApplyAsk) -> ApplyDocument | Failure:
        return self._ask(ask, ApplyDocument)

    def cleanup(self, ask: CleanupAsk) -> CleanupDocument | Failure:
        return self._ask(ask, CleanupDocument)

    def environments(self, ask: ListAsk) -> EnvironmentList | Failure:
        return self._ask(ask, EnvironmentList)

    def sweep(self, ask: SweepAsk) -> SweepDocument | Failure:
        return self._ask(ask, SweepDocument)

    def doctor(self, ask: DoctorAsk) -> DoctorDocument | Failure:
        return self._ask(ask, DoctorDocument)

    def _ask_alone(self, second: Second) -> None:
        """Asks for what was to be asked beside a question that could not be asked."""
        try:
            second.answer = run_worker(
                second.ask,
                launch=second.launch,
                redactor=self.redactor,
                on_progress=lambda _step: None,
                on_log=self._listener.on_log,
                deadline_seconds=self._options.timeout_minutes * 60.0,
                cancel=self._cancel,
                clock=self._around.monotonic,
            )
        except Cancelled:
            raise
        except BotError as error:
            second.refusal = error.message

    def _ask(
        self,
        ask: AnyAsk,
        expected: type[Answer],
        *,
        second: Second | None = None,
        trace: TraceReader | None = None,
    ) -> Answer | Failure:
        self._cancel.check()
        self._install_requirements()
        launch = self._launch
        if trace is not None:
            launch = replace(launch, traced=self._loads.roots)
        answer = run_worker(
            ask,
            launch=launch,
            redactor=self.redactor,
            on_progress=self._listener.on_progress,
            on_log=self._listener.on_log,
            deadline_seconds=self._options.timeout_minutes * 60.0,
            cancel=self._cancel,
            clock=self._around.monotonic,
            on_cancel=self._listener.on_cancel,
            trace=trace,
            second=second,
        )
        if isinstance(answer, FailedAnswer):
            return answer.failure
        if not isinstance(answer, expected):
            raise WorkerFailed(
                "The worker answered another question than the one that was asked.",
                hint="If the pull request changes code that runs on load, look there first.",
                reason_code="answer_refused",
            )
        return answer

    def _install_requirements(self) -> None:
        """Before the first question and not sooner: a refused request runs no installation."""
        if not self._options.requirements or self._installed:
            return
        required = check_requirements(self._workspace.repository, self._options.requirements)
        self._loads.required = frozenset(os.path.normpath(path) for path in required)
        self._launch = install_requirements(
            inside(
                self._workspace.repository, self._options.requirements, what="Requirements file"
            ),
            launch=self._launch,
            overlay=self._workspace.overlay,
            redactor=self.redactor,
            on_log=self._listener.on_log,
            deadline_seconds=self._options.timeout_minutes * 60.0,
            cancel=self._cancel,
            clock=self._around.monotonic,
            repository=self._workspace.repository,
        )
        self._installed = True


@contextmanager
def open_bench(
    options: BenchOptions,
    around: Surroundings,
    *,
    cancel: CancelToken,
    listener: Listener,
) -> Iterator[Bench]:
    """Prepares the private directories and the launch, and removes everything afterwards.

    Raises:
        BadInput: a path leaves the checkout, or `worker-env` names what it must not.
    """
    user = around.worker_user
    identity = Identity(uid=user.uid, gid=user.gid) if user else None
    projects = project_paths(options.checkout, list(options.projects))
    variables = parse_worker_variables(options.worker_env)
    with (
        private_workspace(
            options.checkout, parent=around.temporary, identity=identity, copy=identity is not None
        ) as workspace,
        cancel.last_act(workspace.abandon),
    ):
        environment = build(
            around.environ,
            asked=WorkerVariables(prefixes=("",)) if options.own_machine else variables,
            python=around.python,
            home=str(workspace.home)
            if identity
            else around.environ.get("HOME", str(workspace.home)),
            temporary=str(workspace.temporary),
            secrets=options.secrets,
            path=CONTAINER_PATH if identity else around.environ.get("PATH", CONTAINER_PATH),
            fixed={"JAVA_HOME": user.java_home} if user else None,
        )
        redactor = Redactor(
            [*options.secrets, *credentials(environment.variables, variables.asks_for)]
        )
        launch = Launch(
            python=around.python,
            environment=environment.variables,
            directory=_start_directory(workspace, around, identity),
            channel_directory=workspace.channel,
            search_path=(str(Path(__file__).parent.parent),),
            identity=identity,
            in_container=identity is not None,
            guarded=(*DOCKER_SOCKETS, *command_files(around.environ)),
        )
        yield Bench(
            options,
            workspace,
            launch,
            around,
            redactor=redactor,
            cancel=cancel,
            listener=listener,
            projects=projects,
        )


def _start_directory(workspace: Workspace, around: Surroundings, identity: Identity | None) -> Path:
    """Where relative paths of a configuration start; as with `sqlmesh -p`, where the user is."""
    return workspace.repository if identity else around.directory


def command_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files through which a step talks to the runner; only the bot may write to them."""
    names = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
    return tuple(Path(environ[name]) for name in names if environ.get(name))


def credentials(variables: dict[str, str], asked: Callable[[str], bool]) -> Iterable[str]:
    """Values of the worker's variables that no text may show.

    What a workflow passes with `worker-env` counts as a credential unless its name or its form says
    otherwise: masking too much costs a `***`, masking too little costs a password.
    """
    for name, value in variables.items():
        if asked(name) and not _harmless(name, value):
            yield value


def _harmless(name: str, value: str) -> bool:
    plain = name.upper().endswith(("_HOST", "_PORT", "_USER", "_REGION", "_DATABASE", "_SCHEMA"))
    return plain or value.isdigit() or value.lower() in ("true", "false", "") or value[:1] == "/"


def run_owner(repository: str | None, origin: str | None) -> str:
    """Who owns an environment: the repository, else the origin's URL, else this machine."""
    return repository or origin or "local"


def owner(
    name: str, *, number: int | None = None, head_sha: str | None = None, run: str | None = None
) -> Owner:
    """The owner record of a request."""
    return Owner(name=name, pr_number=number, head_sha=head_sha, run=run)


def repository_root(start: Path) -> Path:
    """The repository that holds `start` on a laptop; `start` itself outside of any."""
    for directory in (start, *start.parents):
        if (directory / ".git").exists():
            return directory
    return start


def relative_projects(paths: Iterable[str], directory: Path) -> tuple[Path, tuple[str, ...]]:
    """The repository's root and the projects relative to it, from paths typed on a command line.

    Raises:
        BadInput: the projects lie in different repositories.
    """
    absolute = [(directory / path).resolve() for path in paths]
    roots = {repository_root(path) for path in absolute}
    if len(roots) == 1:
        root = roots.pop()
        return root, tuple(str(path.relative_to(root)) for path in absolute)
    common = [root for root in roots if all(path.is_relative_to(root) for path in absolute)]
    if not common:
        raise BadInput(
            "The projects are not in one repository.",
            hint="Give projects of one checkout, or run ci-bot once for each.",
            reason_code="several_repositories",
        )
    return common[0], tuple(str(path.relative_to(common[0])) for path in absolute)
