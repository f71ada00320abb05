"""`ci-bot demo`: the life of one pull request, in a git repository with prod's models on `main`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ci_bot.bot.cli.demo_pages import ShownDemoFiles, name_demo_environment
from ci_bot.bot.cli.environments import make_laptop_context
from ci_bot.bot.report import Document, check_output, make_screen, render_terminal_text
from ci_bot.bot.sandbox import (
    NO_GIT,
    PREFIX,
    SandboxCancelToken,
    handle_signals_of_sandbox,
    hold_private_directory_of_run,
    make_redactor_for_sandbox,
)
from ci_bot.bot.worker_client import (
    RequestedReviewCommits,
    WorkerClient,
    WorkerClientOptions,
    WorkerReviewOptions,
    WorkListener,
    apply,
    cleanup,
    open_worker_client,
    review,
)
from ci_bot.errors import EXIT_DONE, EXIT_FAILED, BadInput, BotError
from ci_bot.host import Machine
from ci_bot.protocol.base import Sha, shorten_plan_id
from ci_bot.protocol.messages import Owner, Progress
from ci_bot.protocol.review_inputs import RestatementWish
from ci_bot.protocol.review_report import Report
from ci_bot.resources import find_resource

MAIN, BRANCH = "main", "fleet"
# As in a project's own .gitignore; Python writes the first one beside models that it loads.
_NOT_KEPT = "__pycache__/\n.cache/\n"
_AUTHOR = ("-c", "user.name=Demo", "-c", "user.email=demo@example.org", "-c", "gc.auto=0")


@dataclass(frozen=True)
class DemoRepository:
    """Git in the directory `root`; the user's own configuration of git is not used."""

    root: Path
    environ: Mapping[str, str]

    def create_repository(self) -> str:
        """Makes the repository and commits all files on its main branch; returns the commit."""
        self._run_git("init", "--quiet", f"--initial-branch={MAIN}")
        excluded = self.root / ".git" / "info" / "exclude"
        excluded.parent.mkdir(exist_ok=True)
        excluded.write_text(_NOT_KEPT, encoding="utf-8")
        return self._commit_all("The models as prod has them")

    def start_branch(self, name: str = BRANCH) -> None:
        """Starts a pull request's branch from main."""
        self._run_git("checkout", "--quiet", "-b", name, MAIN)

    def commit_change(self, message: str) -> str:
        """Commits everything on the branch; returns the commit."""
        return self._commit_all(message)

    def return_to_branch(self) -> None:
        """Checks out the branch of the first pull request again."""
        self._run_git("checkout", "--quiet", BRANCH)

    def merge_branch(self) -> str:
        """Merges the branch into main; returns the merge commit."""
        self._run_git("checkout", "--quiet", MAIN)
        self._run_git("merge", "--quiet", "--no-ff", "--message", "Merge pull request #7", BRANCH)
        return self._run_git("rev-parse", "HEAD")

    def _commit_all(self, message: str) -> str:
        self._run_git("add", "--all")
        self._run_git("commit", "--quiet", "--message", message)
        return self._run_git("rev-parse", "HEAD")

    def _run_git(self, *arguments: str) -> str:
        environment = {
            **{name: value for name, value in self.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        program = shutil.which("git", path=self.environ.get("PATH")) or "git"
        try:
            done = subprocess.run(
                [program, *_AUTHOR, "-C", str(self.root), *arguments],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise BadInput(NO_GIT, hint="Install git.", reason_code="git_failed") from error
        if done.returncode != 0:
            raise BotError(
                f"`git {arguments[0]}` failed in the demo: {done.stderr.strip()}",
                hint="The demo needs git 2.28 or newer.",
                reason_code="demo_failed",
            )
        return done.stdout.strip()


# Where a demo keeps its files, and how its project and its change get there.


_FLIGHTS = find_resource("examples") / "flights"
PROJECT_FILES = _FLIGHTS / "project"
CHANGE_FILES = _FLIGHTS / "change"


@dataclass(frozen=True)
class DemoLayout:
    """The folders of one demo below `home`, an absolute path."""

    home: Path

    @property
    def project_directory(self) -> Path:
        """The SQLMesh project, as a checkout would have it."""
        return self.home / "project"

    @property
    def data_directory(self) -> Path:
        """The raw files, and the Parquet files of the raw tables."""
        return self.home / "data"

    @property
    def warehouse_directory(self) -> Path:
        """Spark's warehouse with the embedded metastore in it."""
        return self.home / "warehouse"

    @property
    def state_file(self) -> Path:
        """The DuckDB file with SQLMesh's state."""
        return self.home / "state.db"

    def list_variables(self) -> dict[str, str]:
        """Returns the environment variables that the project's config.yaml reads."""
        return {
            "FLIGHTS_WAREHOUSE": str(self.warehouse_directory),
            "FLIGHTS_STATE": str(self.state_file),
        }

    def create_layout(self) -> None:
        """Makes the folders, with the project as it is on the main branch."""
        for folder in (self.data_directory, self.warehouse_directory):
            folder.mkdir(parents=True, exist_ok=True)
        _copy_demo_files(PROJECT_FILES, self.project_directory)

    def apply_change(self) -> list[str]:
        """Copies the pull request's files over the project.

        Returns:
            The changed and added files, relative to the project, sorted, with forward slashes.
        """
        _copy_demo_files(CHANGE_FILES, self.project_directory)
        return list_files_of_demo_change()


def list_files_of_demo_change() -> list[str]:
    """Lists the files that the pull request adds or changes, relative to the project, sorted."""
    found = (path for path in CHANGE_FILES.rglob("*") if path.is_file() and _is_project_file(path))
    return sorted(path.relative_to(CHANGE_FILES).as_posix() for path in found)


def _is_project_file(path: Path) -> bool:
    return "__pycache__" not in path.parts and ".cache" not in path.parts


def _copy_demo_files(source: Path, target: Path) -> None:
    # Byte code and SQLMesh's cache may be beside the files after somebody has worked on them.
    ignore = shutil.ignore_patterns("__pycache__", ".cache", "*.pyc", "logs")
    # A copied file gets the current time, as in a checkout. SQLMesh caches a model under the newest
    # time of its own file, audits, macros and configuration (SqlMeshLoader._Cache). So it would not
    # read a changed file again if its time were older than theirs.
    shutil.copytree(
        source, target, ignore=ignore, copy_function=shutil.copyfile, dirs_exist_ok=True
    )


PROD_END = "2013-12-31"
CHANGE, CORRECTION = 7, 8
_CORRECTION_BRANCH = "january-again"
_RESTATED = "staging.flights"
# What the model's owner writes after `/sqlmesh restate`.
_WISH = ("2013-01-01", "2013-01-31", "the airports sent January again")


@dataclass(frozen=True)
class _DemoOutput:
    """Prints what happens, and how long each chapter took."""

    machine: Machine

    def print_text(self, text: str = "") -> None:
        print(text, file=self.machine.out, flush=True)

    @contextmanager
    def print_chapter(self, title: str) -> Iterator[None]:
        started = time.monotonic()
        self.print_text()
        self.print_text(f"━━ {title}")
        yield
        self.print_text(
            f"   {title.split(':', maxsplit=1)[0]} took {time.monotonic() - started:.0f} s"
        )


def run_demo(machine: Machine, keep: Path | None) -> int:
    """Builds prod, changes models as a pull request does, then review → apply → merge → cleanup.

    Args:
        keep: Where the demo's files stay. Without it only the files for people stay, in a
            temporary directory that is printed at the end.

    Returns:
        The exit code: 0 if every chapter ended as it should.
    """
    if keep is None:
        with hold_private_directory_of_run(machine.temporary, prefix=f"{PREFIX}demo-") as home:
            reports = Path(tempfile.mkdtemp(prefix="sqlmesh-review-demo-", dir=machine.temporary))
            return _run_demo(machine, home, reports)
    home = Path(os.path.realpath(machine.directory / keep))
    _check_directory_is_new(home)
    try:
        return _run_demo(machine, home, home / "reports")
    finally:
        print(f"\nEverything is in {home}.", file=machine.out)


def _run_demo(machine: Machine, home: Path, reports: Path) -> int:
    layout = DemoLayout(home)
    around = replace(machine, environ={**machine.environ, **layout.list_variables()})
    try:
        return _run_demo_story(around, layout, reports)
    finally:
        if reports.is_dir() and not any(reports.iterdir()):
            reports.rmdir()


def _check_directory_is_new(home: Path) -> None:
    """Checks that the demo's directory is new or empty.

    Raises:
        BadInput: it is not, or cannot be used.
    """
    check_output(home, option="--keep")
    if home.exists() and any(home.iterdir()):
        raise BadInput(
            f"{home} is not empty.",
            hint="Give `--keep` a new directory.",
            reason_code="not_empty",
        )


def _run_demo_story(machine: Machine, layout: DemoLayout, reports: Path) -> int:
    stage = _DemoOutput(machine)
    started = time.monotonic()
    stage.print_text("One pull request from opening to cleanup, on embedded Spark with real data:")
    stage.print_text("336,776 flights that left New York City in 2013.")
    with stage.print_chapter(
        "Building prod: what the team has before anybody opens a pull request"
    ):
        layout.create_layout()
        repository = DemoRepository(layout.project_directory, machine.environ)
        base = repository.create_repository()
        _build_demo_prod(machine, layout, stage)
    with stage.print_chapter(f"Pull request #{CHANGE} is opened"):
        repository.start_branch()
        layout.apply_change()
        head = repository.commit_change("Say more of carriers and their fleets")
        for path in list_files_of_demo_change():
            stage.print_text(f"   changed  {path}")
    shown = ShownDemoFiles(reports)
    try:
        with _open_demo_client(machine, layout, stage) as client:
            commits = RequestedReviewCommits(
                head=head, base=base, head_branch=BRANCH, base_branch=MAIN
            )
            code = _run_demo_pull_request(stage, client, repository, commits, shown)
    finally:
        for line in shown.list_files():
            stage.print_text(line)
    stage.print_text(f"The whole life of the pull request took {time.monotonic() - started:.0f} s.")
    return code


def _run_demo_pull_request(
    stage: _DemoOutput,
    client: WorkerClient,
    repository: DemoRepository,
    commits: RequestedReviewCommits,
    shown: ShownDemoFiles,
) -> int:
    """Reviews, applies, merges and cleans up; returns the exit code of the first that failed."""
    machine = stage.machine
    with stage.print_chapter("Review: read-only, without starting Spark"):
        report = _review_demo_change(client, machine, commits, CHANGE)
        stage.print_text(_render_demo_text(report, client, machine))
        shown.add_document(
            "The comment after the review",
            "report",
            report,
            machine.format_timestamp(),
            number=CHANGE,
        )
    if report.plan_id is None:
        return EXIT_FAILED
    with stage.print_chapter(f"Apply: /sqlmesh apply {shorten_plan_id(report.plan_id)}"):
        applied = apply.request_apply_from_worker(
            client,
            environment=name_demo_environment(CHANGE),
            owner=Owner(name="local", pr_number=CHANGE),
            plan_id=report.plan_id,
            reviewed=report.identity,
            window=report.identity.window if report.identity else None,
        )
        stage.print_text(_render_demo_text(applied, client, machine))
        shown.add_document(
            "The comment after the apply",
            "apply",
            applied,
            machine.format_timestamp(),
            number=CHANGE,
        )
    if apply.choose_exit_code_of_worker_apply(applied) != EXIT_DONE:
        return apply.choose_exit_code_of_worker_apply(applied)
    with stage.print_chapter(
        f"Restatement: pull request #{CORRECTION} changes no code, because the data did"
    ):
        _show_demo_restatement(stage, client, repository, commits.base, shown)
    with stage.print_chapter("Merge: the pull request is closed, and its environment goes"):
        repository.merge_branch()
        cleaned = cleanup.request_cleanup_from_worker(
            client,
            environment=name_demo_environment(CHANGE),
            environment_prefix="pr",
            owner=Owner(name="local", pr_number=CHANGE),
            merged=True,
        )
        stage.print_text(_render_demo_text(cleaned, client, machine))
        shown.add_document(
            "The comment after the merge",
            "cleanup",
            cleaned,
            machine.format_timestamp(),
            number=CHANGE,
        )
    return cleanup.choose_exit_code_of_worker_cleanup(cleaned)


def _show_demo_restatement(
    stage: _DemoOutput,
    client: WorkerClient,
    repository: DemoRepository,
    base: Sha | None,
    shown: ShownDemoFiles,
) -> None:
    """Shows another pull request, in which an owner asks prod to build one month again.

    Its review says what the deployment builds after the merge; prod stays as it is.
    """
    start, end, reason = _WISH
    stage.print_text(f'   /sqlmesh restate {_RESTATED} {start} {end} "{reason}"')
    repository.start_branch(_CORRECTION_BRANCH)
    (repository.root / "CORRECTIONS.md").write_text(f"{start} to {end}: {reason}.\n", "utf-8")
    head = repository.commit_change("Note that January was sent again")
    now = stage.machine.format_timestamp()
    wish = RestatementWish(
        model=_RESTATED, start=start, end=end, by="flight-data", at=now, reason=reason, comment_id=1
    )
    commits = RequestedReviewCommits(
        head=head, base=base, head_branch=_CORRECTION_BRANCH, base_branch=MAIN
    )
    report = _review_demo_change(client, stage.machine, commits, CORRECTION, wish)
    repository.return_to_branch()
    stage.print_text(_render_demo_text(report, client, stage.machine, CORRECTION))
    heading = f"Pull request #{CORRECTION}: data that changed without code"
    shown.add_document(heading, "restatement", report, now, number=CORRECTION)


def _build_demo_prod(machine: Machine, layout: DemoLayout, stage: _DemoOutput) -> None:
    command = [
        machine.python, "-m", "ci_bot.worker.demo_prod", str(layout.project_directory),
        "--data", str(layout.data_directory), "--end", PROD_END,
    ]  # fmt: skip
    environment = {**machine.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    tail: list[str] = []
    for line in process.stdout or ():
        tail = [*tail[-20:], line.rstrip()]
        if line.startswith("prod  "):
            stage.print_text(f"   {line.rstrip()}")
    if process.wait() != 0:
        raise BotError(
            "Prod could not be built: " + "\n".join(tail),
            hint="The demo needs `pip install 'sqlmesh-plan-review[demo]'`.",
            reason_code="demo_failed",
        )


@contextmanager
def _open_demo_client(
    machine: Machine, layout: DemoLayout, stage: _DemoOutput
) -> Iterator[WorkerClient]:
    cancel = SandboxCancelToken(clock=machine.monotonic)
    listener = WorkListener(
        on_progress=_make_demo_progress_printer(stage), on_log=lambda line: None
    )
    options = WorkerClientOptions(
        checkout=layout.project_directory, projects=(".",), own_machine=True
    )
    try:
        with (
            handle_signals_of_sandbox(cancel),
            open_worker_client(
                options,
                machine,
                redactor=make_redactor_for_sandbox(machine.environ, worker_env=""),
                cancel=cancel,
                listener=listener,
            ) as client,
        ):
            yield client
    finally:
        cancel.close()


def _make_demo_progress_printer(stage: _DemoOutput) -> Callable[[Progress], None]:
    def print_step(step: Progress) -> None:
        count = f" {step.done}/{step.total}" if step.total else ""
        stage.print_text(f"   {step.phase}{count}: {step.message}")

    return print_step


def _render_demo_text(
    document: Document, client: WorkerClient, machine: Machine, number: int = CHANGE
) -> str:
    context = make_laptop_context(machine, client, name_demo_environment(number))
    screen = make_screen(machine)
    return render_terminal_text(document, context, colour=screen.colour, width=screen.width)


def _review_demo_change(
    client: WorkerClient,
    machine: Machine,
    commits: RequestedReviewCommits,
    number: int,
    wish: RestatementWish | None = None,
) -> Report:
    return review.request_review_and_judge(
        client,
        WorkerReviewOptions(
            environment=name_demo_environment(number),
            owner=Owner(name="local", pr_number=number),
            commits=commits,
            wish=wish,
        ),
        planned_at=machine.format_timestamp(),
    )
