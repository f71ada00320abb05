"""`ci-bot review`: a plan and a decision at a terminal, once or after each change of a file."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from typing_extensions import Self

from ci_bot.bot import report as reports
from ci_bot.bot.actions import FailOn
from ci_bot.bot.cli.environments import (
    check_output_files,
    make_laptop_context,
    show_document_on_laptop,
    write_documents_on_laptop,
)
from ci_bot.bot.cli.session import (
    LEAVE_ONE_OUT,
    make_owner_on_laptop,
    open_worker_client_on_laptop,
    parse_environment_on_laptop,
    raise_bad_input_of_laptop,
    read_branch_on_laptop,
)
from ci_bot.bot.decision import TeamLimits, choose_exit_code_of_review_decision
from ci_bot.bot.sandbox import SandboxCancelToken, handle_signals_of_sandbox
from ci_bot.bot.worker_client import (
    RequestedReviewCommits,
    WorkerClient,
    WorkerReviewOptions,
    list_changes_of_pull_for_request,
)
from ci_bot.bot.worker_client import review as reviewing
from ci_bot.errors import BadInput, BotError, RunCancelled
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import Price
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import BaselineChoice
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from ci_bot.redaction import quote_value

# Which files a review on a laptop is about: since which base, and with uncommitted changes.


_NAME_IT = "Name the branch that this change is to be merged into, for example `--base-ref main`."


def find_commits_for_laptop_review(
    client: WorkerClient, machine: Machine, base_ref: str | None, baseline: BaselineChoice
) -> RequestedReviewCommits:
    """Finds the commits of a laptop's checkout and its uncommitted changes, and prints them.

    The base is the commit where this branch left the branch that it will be merged into. So what
    others have merged since then is no change of this branch.

    Raises:
        BadInput: there is no such base, or there is none although the plan is compared with it.
    """
    git = client.git
    try:
        head = git.read_head()
    except BadInput as error:
        needed = f"`--base-ref` {quote_value(base_ref)}" if base_ref else ""
        needed = needed or ("`--baseline base-branch`" if baseline == "base-branch" else "")
        if needed:
            raise BadInput(
                "There is no git repository with a commit here, so "
                f"{needed} names nothing to compare with.",
                hint="Leave it out, or commit first.",
                reason_code="no_commit",
            ) from error
        _print_warning(
            machine, "there is no git repository with a commit here, so nobody knows which files"
        )
        _print_warning(
            machine, "have changed: rules on files, such as those for leaked keys, are not run"
        )
        return RequestedReviewCommits()
    named = base_ref or git.find_default_base()
    if named is None:
        if baseline == "base-branch":
            raise BadInput(
                "`--baseline base-branch` compares with a branch, and this clone has "
                "no `origin/HEAD`, `main` or `master`.",
                hint=_NAME_IT,
                reason_code="no_base",
            )
        _print_warning(machine, "no base branch is known, so rules on changed files are not run")
        _print_warning(machine, _NAME_IT)
        return RequestedReviewCommits(head=head, head_branch=read_branch_on_laptop(client))
    base = git.find_fork_point(git.resolve_revision(named), head)
    tree = git.working.write_tree(machine.environ)
    working = tree if tree is not None and git.changed_files(head, tree) else None
    also = ", and of files that are not committed yet" if working else ""
    also = also if tree else "; what is not committed yet could not be read"
    _print_warning(machine, f"changes since `{named}` ({base[:7]}){also}")
    return RequestedReviewCommits(
        head=head, base=base, working=working, head_branch=read_branch_on_laptop(client)
    )


def _print_warning(machine: Machine, text: str) -> None:
    print(f"base: {text}", file=machine.log, flush=True)


# `ci-bot review --watch`: checks once a second for changed files, and reviews again.


SECONDS = 1.0
# The files that a load of a project reads. Its state, its logs and Spark's warehouse may be beside
# them, and change during a review.
_READ = (".sql", ".py", ".yaml", ".yml", ".csv", ".jinja", ".j2", ".toml", ".json", ".env")
_ENVIRONMENT = "pyvenv.cfg"
_BYTE_CODE = "__pycache__"

Signature = dict[str, tuple[int, int]]


def watch_project(machine: Machine, places: Iterable[Path], review: Callable[[], object]) -> int:
    """Reviews now, and again after each change below `places`, until somebody ends it.

    A failure may be fixed in the next round, so it only ends the first one.

    Returns:
        The exit code of the signal that has ended it.

    Raises:
        BotError: the first review failed.
        RunCancelled: it was ended during a review.
    """
    directories = list(places)
    cancel = SandboxCancelToken(clock=machine.monotonic)
    try:
        with handle_signals_of_sandbox(cancel):
            seen = take_signature_of_watched_files(directories)
            review()
            while True:
                try:  # this line, too, because a reader may end it at once
                    _print_watch_line(machine, f"watching {len(seen):,} files; Ctrl-C ends it")
                    seen = _wait_for_change(machine, directories, seen)
                except RunCancelled as error:
                    _print_watch_line(machine, "ended")
                    return error.exit_code
                _review_again(machine, review)
    finally:
        cancel.close()


def _review_again(machine: Machine, review: Callable[[], object]) -> None:
    print(f"\n── {machine.utc_now().astimezone():%H:%M:%S} ──", file=machine.out, flush=True)
    try:
        review()
    except BotError as error:
        print(reports.describe_error(error, machine.environ), file=machine.log, flush=True)


def _wait_for_change(machine: Machine, directories: list[Path], seen: Signature) -> Signature:
    """Waits for a change, and until no more files change: an editor or git writes several."""
    before = seen
    while True:
        machine.sleep(SECONDS)
        now = take_signature_of_watched_files(directories)
        if now == before != seen:
            return now
        before = now


def take_signature_of_watched_files(directories: Iterable[Path]) -> Signature:
    """Returns time (in nanoseconds) and size (in bytes) of each file that a load reads, by path."""
    found: Signature = {}
    for directory in directories:
        for path in _list_watched_files(directory):
            try:
                status = os.stat(path)  # noqa: PTH116 - a text, thousands of them each second
            except OSError:
                continue  # it was removed meanwhile
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _list_watched_files(directory: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        if _ENVIRONMENT in files:
            folders.clear()
            continue
        folders[:] = [one for one in folders if not one.startswith(".") and one != _BYTE_CODE]
        yield from (os.path.join(folder, one) for one in files if one.endswith(_READ))  # noqa: PTH118 - a text, too


def _print_watch_line(machine: Machine, text: str) -> None:
    print(f"watch: {text}", file=machine.log, flush=True)


# The report as a page in the user's browser.


Opener = Callable[[str], bool]


def open_page_on_laptop(
    page: str, output: Path | None, machine: Machine, opener: Opener = webbrowser.open
) -> Path:
    """Shows the page in the user's browser, and prints where it is; returns its file.

    Args:
        output: The directory that has the page. Without one the page is written to a new file in
            the directory for temporary files, which stays there.
    """
    if output is None:
        file = Path(tempfile.mkdtemp(prefix="ci-bot-report-", dir=machine.temporary)) / reports.PAGE
        file.write_text(page, encoding="utf-8")
    else:
        file = output / reports.PAGE
    address = file.resolve().as_uri()
    shown = opener(address)
    print(
        f"The report: {address}" if shown else f"No browser could be started. Open {address}",
        file=machine.log,
        flush=True,
    )
    return file


_DEFAULT_ENVIRONMENT = EnvironmentName("dev")


@dataclass(frozen=True, kw_only=True)
class LaptopReview:
    """The options of `ci-bot review`."""

    projects: tuple[str, ...] = (".",)
    gateway: str | None = None
    environment: EnvironmentName = _DEFAULT_ENVIRONMENT
    baseline: BaselineChoice = "auto"
    base_ref: str | None = None
    flags: GivenFlags = field(default_factory=GivenFlags)
    start: str | None = None
    end: str | None = None
    fail_on: FailOn | None = None
    max_intervals: int | None = None
    max_executor_hours: float | None = None
    executor_hour_price: Price | None = None
    python_path: tuple[str, ...] = ()
    cache_dir: str | None = None
    worker_env: str = ""
    timeout_minutes: int = 60
    output: str | None = None
    form: reports.Format = "terminal"
    full: bool = False
    watch: bool = False
    open_report: bool = False

    @classmethod
    def from_options(cls, *, environment: str, **options: Any) -> Self:
        """Makes it from a command's options, with the types that click gave them.

        Raises:
            BadInput: the environment's name is not one, or is prod's.
        """
        return cls(environment=parse_environment_on_laptop(environment), **options)


def review_on_laptop(machine: Machine, local_review: LaptopReview) -> int:
    """Reviews the project, with `--watch` again and again; returns the exit code.

    Raises:
        BadInput: the options do not fit together, or the project cannot be reviewed at all.
        RunCancelled: somebody has ended it.
    """
    for name, given in (("full", local_review.full), ("watch", local_review.watch)):
        if given and local_review.form != "terminal":
            raise BadInput(
                f"`--{name}` is for a terminal, and `--format {local_review.form}` asks for "
                "another form.",
                hint=LEAVE_ONE_OUT,
                reason_code="bad_input",
            )
    check_output_files(machine, local_review.output)
    if local_review.watch:
        places = [
            machine.directory / path for path in (*local_review.projects, *local_review.python_path)
        ]
        return watch_project(
            machine, places, _LaptopReviewRounds(machine, local_review).review_next
        )
    return choose_exit_code_of_review_decision(
        _review_once(machine, local_review), local_review.fail_on
    )


class _LaptopReviewRounds:
    """Reviews one after the other; each prints what differs from the last one."""

    def __init__(self, machine: Machine, local_review: LaptopReview) -> None:
        self._machine = machine
        self._asked = local_review
        self._last: Report | None = None

    def review_next(self) -> None:
        # The page is only opened once, however often a file changes.
        local_review = replace(
            self._asked, open_report=self._asked.open_report and self._last is None
        )
        before, self._last = self._last, _review_once(self._machine, local_review)
        if before is not None:
            changes = reports.compare_rounds(before, self._last) or ["nothing that a review shows"]
            for line in changes:
                print(f"since the last round: {line}", file=self._machine.out, flush=True)


def make_report_on_laptop(machine: Machine, local_review: LaptopReview) -> Report:
    """Makes a review's report without showing it.

    Raises:
        BadInput: the project cannot be reviewed at all.
    """
    return _review_once(machine, local_review, show=False)


def _review_once(machine: Machine, local_review: LaptopReview, *, show: bool = True) -> Report:
    with open_worker_client_on_laptop(
        machine,
        local_review.projects,
        local_review.gateway,
        local_review.worker_env,
        local_review.python_path,
        timeout_minutes=local_review.timeout_minutes,
    ) as client:
        options = _make_review_options(client, machine, local_review)
        if local_review.form != "json" or local_review.output:
            client.do_meanwhile(reports.prepare_review_comment)
        report = reviewing.request_review_and_judge(
            client, options, planned_at=machine.format_timestamp()
        )
        if not _does_change_break_configuration(report.failure, client, options):
            raise_bad_input_of_laptop(report.failure)
        if show:
            _show_review(machine, client, report, local_review)
    return report


def _does_change_break_configuration(
    failure: Failure | None, client: WorkerClient, options: WorkerReviewOptions
) -> bool:
    """Whether the change itself makes the configuration unreadable.

    Then it is a finding about the change, like a model that does not load, and not a wrong input.
    """
    if failure is None or failure.reason_code != "bad_config" or failure.path is None:
        return False
    changed = list_changes_of_pull_for_request(client.git, options.commits)
    return changed is not None and failure.path in changed.paths


def _make_review_options(
    client: WorkerClient, machine: Machine, local_review: LaptopReview
) -> WorkerReviewOptions:
    return WorkerReviewOptions(
        environment=local_review.environment,
        owner=make_owner_on_laptop(client),
        commits=find_commits_for_laptop_review(
            client, machine, local_review.base_ref, local_review.baseline
        ),
        baseline=local_review.baseline,
        flags=local_review.flags,
        start=local_review.start,
        end=local_review.end,
        limits=TeamLimits(
            max_intervals=local_review.max_intervals,
            max_executor_hours=local_review.max_executor_hours,
        ),
        executor_hour_price=local_review.executor_hour_price,
        python_path=tuple(client.python_path),
        cache_dir=local_review.cache_dir,
    )


def _show_review(
    machine: Machine, client: WorkerClient, report: Report, local_review: LaptopReview
) -> None:
    given = reports.advice.format_plan_flags(
        local_review.flags, local_review.start, local_review.end
    )
    context = make_laptop_context(machine, client, report.environment, given)
    if local_review.form == "terminal" and not local_review.full:
        print(
            reports.render_short_review(report, context, reports.make_screen(machine)),
            file=machine.out,
            end="",
            flush=True,
        )
        write_documents_on_laptop(machine, "report", report, context, local_review.output)
    else:
        show_document_on_laptop(
            machine, client, "report", report, local_review.output, local_review.form, given
        )
    if local_review.open_report:
        output = machine.directory / local_review.output if local_review.output else None
        open_page_on_laptop(reports.render_html_page(report, context), output, machine)
