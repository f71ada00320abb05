"""`ci-bot review`: a plan and a decision at a terminal, once or whenever a file changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, repeat

from ci_bot.bot.comment.text import shell_commands
from ci_bot.bot.decision import Limits, review_exit_code
from ci_bot.bot.report_files import Format
from ci_bot.bot.terminal.local import check_files, context_of, show, write
from ci_bot.bot.terminal.local_client import check_name, local_client, origin_of, raise_bad_input
from ci_bot.bot.terminal.output.screen import screen_of
from ci_bot.bot.terminal.review.local_commits import local_commits
from ci_bot.bot.terminal.review.opening import open_page
from ci_bot.bot.terminal.review.short_text import short_text
from ci_bot.bot.terminal.review.watching import watch
from ci_bot.bot.values import FailOn
from ci_bot.bot.webpage.page import render_page
from ci_bot.bot.worker_calls.client import WorkerClient, owner, run_owner
from ci_bot.bot.worker_calls.review import reviewing
from ci_bot.bot.worker_calls.review.changed_files import changed_by
from ci_bot.bot.worker_calls.review.review_options import ReviewOptions
from ci_bot.contracts.base import Failure
from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.documents.plan_options import GivenFlags
from ci_bot.contracts.documents.report import Report
from ci_bot.contracts.environment import for_review
from ci_bot.contracts.messages import BaselineChoice
from ci_bot.errors import BadInput
from ci_bot.machine import Machine


@dataclass(frozen=True, kw_only=True)
class LocalReview:
    """What was asked for; the fields are the options of `ci-bot review`."""

    projects: tuple[str, ...] = (".",)
    gateway: str | None = None
    environment: str = "dev"
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
    form: Format = "terminal"
    short: bool = False
    watch: bool = False
    open_report: bool = False


def review_locally(machine: Machine, asked: LocalReview) -> int:
    """Reviews the project, and with `--watch` again and again. Returns the exit code.

    Raises:
        BadInput: the options do not fit together, or the project cannot be reviewed at all.
        Cancelled: somebody has ended it.
    """
    for name, given in (("short", asked.short), ("watch", asked.watch)):
        if given and asked.form != "terminal":
            raise BadInput(
                f"`--{name}` is for a terminal, and `--format {asked.form}` asks for another form.",
                hint="Leave out one of them.",
                reason_code="bad_input",
            )
    check_name(asked.environment, for_review)
    check_files(machine, asked.output)
    if asked.watch:
        places = [machine.directory / path for path in (*asked.projects, *asked.python_path)]
        # One page is opened, however often a file changes.
        rounds = chain([asked], repeat(replace(asked, open_report=False)))
        return watch(machine, places, lambda: _review_once(machine, next(rounds)))
    return _review_once(machine, asked)


def _review_once(machine: Machine, asked: LocalReview) -> int:
    with local_client(
        machine,
        asked.projects,
        asked.gateway,
        asked.worker_env,
        asked.python_path,
        timeout_minutes=asked.timeout_minutes,
    ) as client:
        options = _options(client, machine, asked)
        report = reviewing.review(client, options, planned_at=machine.timestamp())
        if not _breaks_configuration(report.failure, client, options):
            raise_bad_input(report.failure)
        _show(machine, client, report, asked)
    return review_exit_code(report, asked.fail_on)


def _breaks_configuration(
    failure: Failure | None, client: WorkerClient, options: ReviewOptions
) -> bool:
    """Whether the change itself has made the configuration one that cannot be read.

    That is a finding about the change, as a model that does not load is, and no wrong input.
    """
    if failure is None or failure.reason_code != "bad_config" or failure.path is None:
        return False
    changed = changed_by(client.git, options.commits)
    return changed is not None and failure.path in changed.paths


def _options(client: WorkerClient, machine: Machine, asked: LocalReview) -> ReviewOptions:
    return ReviewOptions(
        environment=asked.environment,
        owner=owner(run_owner(None, origin_of(client))),
        commits=local_commits(client, machine, asked.base_ref, asked.baseline),
        baseline=asked.baseline,
        flags=asked.flags,
        start=asked.start,
        end=asked.end,
        limits=Limits(
            max_intervals=asked.max_intervals, max_executor_hours=asked.max_executor_hours
        ),
        executor_hour_price=asked.executor_hour_price,
        python_path=tuple(client.python_path),
        cache_dir=asked.cache_dir,
    )


def _show(machine: Machine, client: WorkerClient, report: Report, asked: LocalReview) -> None:
    given = shell_commands.flags(asked.flags, asked.start, asked.end)
    context = context_of(machine, client, report.environment, given)
    if asked.short:
        print(short_text(report, context, screen_of(machine)), file=machine.out, end="", flush=True)
        write(machine, "report", report, context, asked.output)
    else:
        show(machine, client, "report", report, asked.output, asked.form, given)
    if asked.open_report:
        output = machine.directory / asked.output if asked.output else None
        open_page(render_page(report, context), output, machine)
