"""Environments at a terminal: estimates, builds and removes them, and prints the reports."""

from __future__ import annotations

from typing import Literal

from ci_bot.bot import github
from ci_bot.bot import report as reports
from ci_bot.bot.cli.session import (
    check_environment_name_on_laptop,
    make_owner_on_laptop,
    open_worker_client_on_laptop,
    parse_environment_on_laptop,
    raise_bad_input_of_laptop,
    read_branch_on_laptop,
    read_origin_url,
    read_prefix_on_laptop,
)
from ci_bot.bot.worker_client import (
    RequestedReviewCommits,
    WorkerClient,
    WorkerSweepOptions,
    apply,
    cleanup,
    make_error_of_worker_failure,
    read_agreed_cost_for_request,
    request_estimate_from_worker,
)
from ci_bot.errors import EXIT_DONE, EXIT_FAILED, BadInput
from ci_bot.host import Machine
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import Price
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report


def apply_on_laptop(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment: str,
    plan_id: str | None,
    flags: GivenFlags,
    start: str | None,
    end: str | None,
    table_diff: bool,
    max_executor_hours: float | None,
    executor_hour_price: Price | None,
    python_path: tuple[str, ...],
    claim: bool,
    probe: bool,
    worker_env: str,
    timeout_minutes: int,
    output: str | None,
    form: reports.Format,
) -> int:
    """`ci-bot apply`. Limit and price are the options', else those of the policy in the checkout.

    Raises:
        BadInput: an option or the policy cannot be used; nothing was built.
    """
    if probe and output is not None:
        raise BadInput(
            "`--output` is for the report of an environment, and a probe makes none.",
            hint="Leave it out; `--format json` prints all that the probe has found.",
        )
    check_output_files(machine, output)
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        check_environment_name_on_laptop(environment)
        if plan_id is None:
            warning = (
                "without `--plan-id` this builds the plan as it is now, which nobody has reviewed"
            )
            print(f"apply: {warning}", file=machine.log, flush=True)
        limit, price = read_agreed_cost_for_request(
            client,
            RequestedReviewCommits(),
            hours=max_executor_hours,
            price=executor_hour_price,
            today=machine.read_date(),
        )
        document = apply.request_apply_from_worker(
            client,
            environment=environment,
            owner=make_owner_on_laptop(client),
            claim=claim,
            plan_id=plan_id,
            flags=flags,
            start=start,
            end=end,
            table_diff=table_diff,
            max_executor_hours=limit,
            executor_hour_price=price,
            probe=probe,
            head_branch=read_branch_on_laptop(client),
        )
        raise_bad_input_of_laptop(document.failure)
        given = reports.advice.format_plan_flags(flags, start, end)
        if probe and document.failure is None:
            return _show_probe(machine, client, document, limit, form, given)
        show_document_on_laptop(machine, client, "apply", document, output, form, given)
    return apply.choose_exit_code_of_worker_apply(document)


def _show_probe(
    machine: Machine,
    client: WorkerClient,
    document: ApplyDocument,
    limit: float | None,
    form: reports.Format,
    plan_options: str,
) -> int:
    """Prints what a probe has found; returns the exit code: 1 if the limit is exceeded."""
    context = make_laptop_context(machine, client, document.environment, plan_options)
    text = (
        document.to_json(indent=2)
        if form == "json"
        else reports.notices.render_probed_comment(document, limit, context)
    )
    if form == "terminal":
        text = _render_at_terminal(machine, text)
    print(text, file=machine.out, flush=True)
    return (
        EXIT_FAILED
        if reports.notices.is_estimate_above_in_comment(document, limit)
        else apply.choose_exit_code_of_worker_apply(document)
    )


def clean_up_on_laptop(
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
    form: reports.Format,
) -> int:
    """`ci-bot cleanup`. Returns the exit code."""
    check_output_files(machine, output)
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = cleanup.request_cleanup_from_worker(
            client,
            environment=environment,
            environment_prefix=read_prefix_on_laptop(client, machine, environment_prefix),
            owner=make_owner_on_laptop(client),
            reclaim=reclaim,
            merged=merged,
            claim=claim,
        )
        raise_bad_input_of_laptop(document.failure)
        show_document_on_laptop(machine, client, "cleanup", document, output, form)
    return cleanup.choose_exit_code_of_worker_cleanup(document)


def check_output_files(machine: Machine, output: str | None) -> None:
    """Checks that the files can be written, before the action that they report.

    Raises:
        BadInput: they cannot.
    """
    if output is not None:
        reports.check_output(machine.directory / output)


def make_laptop_context(
    machine: Machine, client: WorkerClient, environment: str, plan_options: str = ""
) -> reports.CommentViewContext:
    """Makes the context for rendering a laptop's reports; they have no links to GitHub."""
    return reports.CommentViewContext(
        project=client.project_title,
        environment=environment,
        now=machine.format_timestamp(),
        phase="planned",
        options=reports.advice.format_project_options(
            client.projects, client.python_path, client.gateway
        ),
        plan_options=plan_options,
    )


def show_document_on_laptop(
    machine: Machine,
    client: WorkerClient,
    name: str,
    document: reports.Document,
    output: str | None,
    form: reports.Format,
    plan_options: str = "",
) -> None:
    """Prints a document in the requested form, and writes its files."""
    context = make_laptop_context(machine, client, document.environment, plan_options)
    print(_render_document(machine, document, context, form), file=machine.out, flush=True)
    write_documents_on_laptop(machine, name, document, context, output)


def _render_document(
    machine: Machine,
    document: reports.Document,
    context: reports.CommentViewContext,
    form: reports.Format,
) -> str:
    if form == "json":
        return document.to_json(indent=2)
    if form == "markdown":
        return reports.render_markdown_text(document, context, reports.COMMENT_BYTES)
    screen = reports.make_screen(machine)
    return reports.render_terminal_text(document, context, colour=screen.colour, width=screen.width)


def _render_at_terminal(machine: Machine, markdown: str) -> str:
    """Renders a comment of our own as the machine's terminal shows it."""
    screen = reports.make_screen(machine)
    return reports.render_plain(markdown, colour=screen.colour, width=screen.width)


def write_documents_on_laptop(
    machine: Machine,
    name: str,
    document: reports.Document,
    context: reports.CommentViewContext,
    output: str | None,
) -> None:
    """Writes the complete files of a document, if `--output` names a directory for them."""
    if output is not None:
        texts = reports.DocumentTexts(
            markdown=lambda: reports.render_markdown_text(document, context),
            page=lambda: reports.render_html_page_of_document(document, context),
            sarif=lambda: (
                reports.make_sarif_view_of_report(document, context)
                if isinstance(document, Report)
                else None
            ),
        )
        reports.write_files(machine.directory / output, name, document, texts)


# `ci-bot sweep` at a terminal: the same sweep as in the workflow, without comments.


def sweep_on_laptop(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment_prefix: str | None,
    dry_run: bool,
    max_deletions: int,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
) -> int:
    """`ci-bot sweep`. Returns the exit code.

    Raises:
        BadInput: there is no token, or no repository to ask about; nothing was checked.
    """
    token = github.find_github_token(machine.environ)
    with open_worker_client_on_laptop(
        machine,
        projects,
        gateway,
        worker_env,
        python_path,
        timeout_minutes=timeout_minutes,
        secrets=(token,),
    ) as client:
        repository = github.find_github_repository(machine.environ, read_origin_url(client))
        remote = github.GitHubClient(
            repository=repository,
            token=token,
            api_url=github.find_github_api_url(machine.environ),
            time=github.make_github_client_time(machine, client.deadline),
            trust=github.find_certificates_for_github(machine.environ),
        )
        swept = cleanup.request_sweep_from_worker(
            client,
            WorkerSweepOptions(
                owner=repository,
                environment_prefix=read_prefix_on_laptop(client, machine, environment_prefix),
                max_deletions=max_deletions,
                dry_run=dry_run,
            ),
            remote.pull_states,
        )
        report = client.redactor.redact_document(swept.make_report())
        summary = reports.render_sweep_markdown(
            report, make_laptop_context(machine, client, environment="")
        )
    print(_render_at_terminal(machine, summary), file=machine.out, flush=True)
    return cleanup.choose_exit_code_of_worker_sweep(swept)


def estimate_on_laptop(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment: str,
    flags: GivenFlags,
    start: str | None,
    end: str | None,
    max_executor_hours: float | None,
    executor_hour_price: Price | None,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
    form: Literal["terminal", "json"],
) -> int:
    """`ci-bot estimate`. Returns the exit code: 1 if the limit is exceeded.

    The limit is an option's, or else the policy's.

    Raises:
        BotError: the project cannot be planned, or Spark does not start.
    """
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        name = parse_environment_on_laptop(environment)
        limit, price = read_agreed_cost_for_request(
            client,
            RequestedReviewCommits(),
            hours=max_executor_hours,
            price=executor_hour_price,
            today=machine.read_date(),
        )
        document = request_estimate_from_worker(
            client,
            environment=name,
            owner=make_owner_on_laptop(client),
            flags=flags,
            start=start,
            end=end,
            head_branch=read_branch_on_laptop(client),
            executor_hour_price=price,
        )
        if isinstance(document, Failure):
            raise make_error_of_worker_failure(document)
        context = make_laptop_context(machine, client, document.environment)
    text = (
        document.to_json(indent=2)
        if form == "json"
        else _render_at_terminal(
            machine, reports.notices.render_estimated_comment(document, limit, context)
        )
    )
    print(text, file=machine.out, flush=True)
    return (
        EXIT_FAILED if reports.notices.is_estimate_above_in_comment(document, limit) else EXIT_DONE
    )
