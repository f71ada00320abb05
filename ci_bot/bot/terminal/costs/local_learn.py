"""`ci-bot learn` at a terminal: what Spark's event logs tell of prod's own runs."""

from __future__ import annotations

from ci_bot.bot.comment.text import words
from ci_bot.bot.terminal.local_client import local_client, origin_of
from ci_bot.bot.terminal.output.page import Page
from ci_bot.bot.worker_calls.client import run_owner
from ci_bot.bot.worker_calls.failures import error_of
from ci_bot.bot.worker_calls.learn import learn
from ci_bot.contracts.base import Failure
from ci_bot.contracts.cost.learned import LearnDocument
from ci_bot.errors import EXIT_DONE
from ci_bot.machine import Machine

_BECAME = (
    ("known", "read before"),
    ("foreign", "without a table of SQLMesh"),
    ("other_version", "of another version of Spark"),
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
    with local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = learn(
            client, owner_name=run_owner(None, origin_of(client)), event_logs=event_logs
        )
    if isinstance(document, Failure):
        raise error_of(document)
    print(learned_to_terminal(document), end="", file=machine.out, flush=True)
    return EXIT_DONE


def learned_to_terminal(document: LearnDocument) -> str:
    """The document as plain text, ending in a newline."""
    page = Page()
    page.title(
        f"Learned {words.count(document.writes, 'write')} into "
        f"{words.count(document.tables, 'table')} from "
        f"{words.count(document.read, 'event log')} · {words.duration(document.seconds)}",
        "green" if document.writes or document.known else "yellow",
    )
    page.fact("Directory", document.directory)
    for name, became in _BECAME:
        if count := getattr(document, name):
            page.item(f"{words.count(count, 'log')} {became}")
    if document.remark:
        page.note(f"→ {document.remark}")
    return page.text()
