"""The activities on a laptop: options of the command line in, a report on the terminal out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci_bot.bot.cage.variables import redactor_of
from ci_bot.bot.cage.watch.signals import CancelToken, handle_signals
from ci_bot.bot.cage.watch.tracebacks import TracebackFilter
from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.parts.budget import COMMENT_BYTES
from ci_bot.bot.comment.text import shell_commands
from ci_bot.bot.decision import exit_code as decision_exit_code
from ci_bot.bot.report_files import Format, check_output, write_files
from ci_bot.bot.terminal.report_text import Document, to_markdown, to_terminal
from ci_bot.bot.worker_calls import apply as applying
from ci_bot.bot.worker_calls import cleanup as cleaning
from ci_bot.bot.worker_calls.client import (
    ClientOptions,
    Listener,
    WorkerClient,
    open_client,
    owner,
    relative_projects,
    run_owner,
)
from ci_bot.bot.worker_calls.prefix import prefix_here, told
from ci_bot.bot.worker_calls.review import reviewing
from ci_bot.bot.worker_calls.review.review_options import Commits, ReviewOptions
from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.plan_options import GivenFlags
from ci_bot.contracts.environment import DEFAULT_PREFIX
from ci_bot.contracts.messages import BaselineChoice, Progress
from ci_bot.errors import EXIT_BAD_INPUT, BadInput, BotError
from ci_bot.machine import Machine
from ci_bot.secrets.cutting import quoted_value
from ci_bot.secrets.environment import from_dotenv


def review_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment: str,
    baseline: BaselineChoice,
    base_ref: str | None,
    flags: GivenFlags,
    start: str | None,
    end: str | None,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
    output: str | None,
    form: Format,
) -> int:
    """`ci-bot review`."""
    _check(machine, output)
    if baseline == "base-branch" and base_ref is None:
        raise BadInput(
            "`--baseline base-branch` compares with a branch, and `--base-ref` names none.",
            hint="Add the branch that this change is to be merged into, for example "
            "`--base-ref origin/main`.",
            reason_code="no_base",
        )
    with local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        commits = local_commits(client, base_ref)
        report = reviewing.review(
            client,
            ReviewOptions(
                environment=environment,
                owner=owner(run_owner(None, origin_of(client))),
                commits=commits,
                baseline=baseline,
                flags=flags,
                start=start,
                end=end,
                python_path=tuple(client.python_path),
            ),
            planned_at=machine.timestamp(),
        )
        raise_bad_input(report.failure)
        given = shell_commands.flags(flags, start, end)
        _show(machine, client, "report", report, output, form, given)
    if report.failure is not None:
        return report.failure.exit_code
    return decision_exit_code(report.decision)


def apply_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment: str,
    plan_id: str | None,
    flags: GivenFlags,
    start: str | None,
    end: str | None,
    python_path: tuple[str, ...],
    claim: bool,
    worker_env: str,
    timeout_minutes: int,
    output: str | None,
    form: Format,
) -> int:
    """`ci-bot apply`."""
    _check(machine, output)
    with local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = applying.apply(
            client,
            environment=environment,
            owner=owner(run_owner(None, origin_of(client))),
            claim=claim,
            plan_id=plan_id,
            flags=flags,
            start=start,
            end=end,
            head_branch=branch_of(client),
        )
        raise_bad_input(document.failure)
        given = shell_commands.flags(flags, start, end)
        _show(machine, client, "apply", document, output, form, given)
    return applying.exit_code(document)


def cleanup_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment: str,
    environment_prefix: str | None,
    reclaim: str,
    merged: bool | None,
    python_path: tuple[str, ...],
    claim: bool,
    worker_env: str,
    timeout_minutes: int,
    output: str | None,
    form: Format,
) -> int:
    """`ci-bot cleanup`."""
    _check(machine, output)
    with local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = cleaning.cleanup(
            client,
            environment=environment,
            environment_prefix=local_prefix(client, machine, environment_prefix),
            owner=owner(run_owner(None, origin_of(client))),
            reclaim=reclaim,
            merged=merged,
            claim=claim,
        )
        raise_bad_input(document.failure)
        _show(machine, client, "cleanup", document, output, form)
    return cleaning.exit_code(document)


def raise_bad_input(failure: Failure | None) -> None:
    """Where input was wrong nothing was looked at, so there is nothing to report or to decide.

    Raises:
        BadInput: the failure, if it is one of that kind.
    """
    if failure is not None and failure.exit_code == EXIT_BAD_INPUT:
        raise BadInput(
            failure.message,
            hint=failure.hint,
            reason_code=failure.reason_code,
            path=failure.path,
            line=failure.line,
        )


def local_commits(client: WorkerClient, base_ref: str | None) -> Commits:
    """The commits of a laptop's checkout; none of them is needed for a review against state.

    Raises:
        BadInput: there is no such base.
    """
    try:
        head = client.git.head()
    except BadInput as error:
        if base_ref is not None:
            raise BadInput(
                "There is no git repository with a commit here, so `--base-ref` "
                f"{quoted_value(base_ref)} names nothing.",
                hint="Leave it out, or commit first.",
                reason_code="no_commit",
            ) from error
        return Commits()
    base = client.git.resolve(base_ref) if base_ref else None
    return Commits(head=head, base=base, head_branch=branch_of(client))


def origin_of(client: WorkerClient) -> str | None:
    """The URL of the repository's origin, None outside of a repository."""
    try:
        return client.git.origin()
    except BotError:
        return None


def local_prefix(client: WorkerClient, machine: Machine, given: str | None) -> str:
    """What environments of pull requests are called: as the option says, else as the project."""
    if given is not None:
        return given
    found = prefix_here(client)
    if warning := told(found):
        print(warning, file=machine.log)
    return found.prefix or DEFAULT_PREFIX


def branch_of(client: WorkerClient) -> str | None:
    """The branch that is checked out, None outside of a repository."""
    try:
        return client.git.branch()
    except BotError:
        return None


@contextmanager
def local_client(
    machine: Machine,
    projects: tuple[str, ...],
    gateway: str | None,
    worker_env: str,
    python_path: tuple[str, ...],
    *,
    timeout_minutes: int,
    secrets: tuple[str, ...] = (),
) -> Iterator[WorkerClient]:
    """A worker client on projects of the user's own; `secrets` are what the worker must not see."""
    root, relative = relative_projects(projects, machine.directory)
    cancel = CancelToken(clock=machine.monotonic)

    def log_line(line: str) -> None:
        print(line, file=machine.log)

    def traceback(lines: list[str]) -> None:
        if machine.verbose:
            print(*lines, sep="\n", file=machine.log)

    log = TracebackFilter(on_line=log_line, on_traceback=traceback)

    def progress(step: Progress) -> None:
        count = f" {step.done}/{step.total}" if step.total else ""
        print(f"{step.phase}{count}: {step.message}", file=machine.log, flush=True)

    redactor = redactor_of(
        machine.environ, worker_env=worker_env, secrets=secrets, own=_own(root, relative)
    )
    options = ClientOptions(
        checkout=root,
        projects=relative,
        gateway=gateway,
        python_path=tuple(str(machine.directory / path) for path in python_path),
        worker_env=worker_env,
        timeout_minutes=timeout_minutes,
        own_machine=True,
        secrets=secrets,
    )
    listener = Listener(on_progress=progress, on_log=log.line, on_traceback=traceback)
    try:
        with (
            handle_signals(cancel),
            open_client(
                options, machine, redactor=redactor, cancel=cancel, listener=listener
            ) as client,
        ):
            yield client
    finally:
        log.close()
        cancel.close()


def _check(machine: Machine, output: str | None) -> None:
    """Whether the files can be written, before anything is done that they would tell of."""
    if output is not None:
        check_output(machine.directory / output)


def _own(root: Path, projects: tuple[str, ...]) -> dict[str, str]:
    """What the user's own projects set themselves: SQLMesh reads their .env files."""
    found: dict[str, str] = {}
    for project in projects:
        path = root / project / ".env"
        if path.is_file():
            found |= from_dotenv(path.read_text(encoding="utf-8", errors="replace"))
    return found


def context_of(
    machine: Machine, client: WorkerClient, environment: str, plan_options: str = ""
) -> CommentContext:
    """What a laptop's reports are rendered with; nothing in them leads to GitHub."""
    return CommentContext(
        project=client.name,
        environment=environment,
        now=machine.timestamp(),
        phase="planned",
        options=shell_commands.options(client.projects, client.python_path, client.gateway),
        plan_options=plan_options,
    )


def _show(
    machine: Machine,
    client: WorkerClient,
    name: str,
    document: Document,
    output: str | None,
    form: Format,
    plan_options: str = "",
) -> None:
    context = context_of(machine, client, document.environment, plan_options)
    if form == "json":
        text = document.to_json(indent=2)
    elif form == "markdown":
        text = to_markdown(document, context, COMMENT_BYTES)
    else:
        text = to_terminal(document, context, colour=machine.out.isatty())
    print(text, file=machine.out, flush=True)
    if output is not None:
        write_files(machine.directory / output, name, document, to_markdown(document, context))
