"""`ci-bot estimate` at a terminal: what building the plan will cost, with Spark started."""

from __future__ import annotations

from typing import Literal

from ci_bot.bot.laptop.environments import make_laptop_context
from ci_bot.bot.laptop.session import (
    open_local_client,
    parse_local_environment,
    read_branch,
    read_origin_url,
)
from ci_bot.bot.report import TextPage, make_screen, notices, render_plain, words
from ci_bot.bot.worker_client import (
    OTHER_SPARK,
    ReviewCommits,
    make_error_of_failure,
    make_owner,
    read_agreed_cost,
    request_estimate,
    request_learn,
    run_owner,
)
from ci_bot.errors import EXIT_DONE, EXIT_FAILED
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import LearnDocument, Price
from ci_bot.protocol.plan_identity import GivenFlags


def estimate_locally(
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
    """`ci-bot estimate`. Returns the exit code: 1 where the limit does not hold, which an option
    says, or else the policy.

    Raises:
        BotError: the project cannot be planned, or Spark does not start.
    """
    with open_local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        name = parse_local_environment(environment)
        limit, price = read_agreed_cost(
            client,
            ReviewCommits(),
            hours=max_executor_hours,
            price=executor_hour_price,
            today=machine.today(),
        )
        document = request_estimate(
            client,
            environment=name,
            owner=make_owner(run_owner(None, read_origin_url(client))),
            flags=flags,
            start=start,
            end=end,
            head_branch=read_branch(client),
            executor_hour_price=price,
        )
        if isinstance(document, Failure):
            raise make_error_of_failure(document)
        context = make_laptop_context(machine, client, document.environment)
    screen = make_screen(machine)
    text = (
        document.to_json(indent=2)
        if form == "json"
        else render_plain(
            notices.render_estimated(document, limit, context),
            colour=screen.colour,
            width=screen.width,
        )
    )
    print(text, file=machine.out, flush=True)
    return EXIT_FAILED if notices.is_above(document, limit) else EXIT_DONE


# `ci-bot learn` at a terminal: what Spark's event logs tell of prod's own runs.


_BECAME = (
    ("known", "read before"),
    ("foreign", "without a table of SQLMesh"),
    ("other_version", OTHER_SPARK),
    ("cut", "cut: what is whole in them was read"),
    ("unreadable", "not readable"),
    ("old", "too old"),
)


def learn_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    event_logs: str,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
) -> int:
    """`ci-bot learn`. Returns the exit code.

    Raises:
        BotError: the logs or the state cannot be used.
    """
    with open_local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = request_learn(
            client, owner_name=run_owner(None, read_origin_url(client)), event_logs=event_logs
        )
    if isinstance(document, Failure):
        raise make_error_of_failure(document)
    print(render_learned(document), end="", file=machine.out, flush=True)
    return EXIT_DONE


def render_learned(document: LearnDocument) -> str:
    """The document as plain text, ending in a newline."""
    page = TextPage()
    page.add_title(
        f"Learned {words.format_count(document.writes, 'write')} into "
        f"{words.format_count(document.tables, 'table')} from "
        f"{words.format_count(document.read, 'event log')} · {words.duration(document.seconds)}",
        "green" if document.writes or document.known else "yellow",
    )
    page.add_fact("Directory", document.directory)
    for name, became in _BECAME:
        if count := getattr(document, name):
            page.add_item(f"{words.format_count(count, 'log')} {became}")
    if document.remark:
        page.add_note(f"→ {document.remark}")
    return page.render_text()
