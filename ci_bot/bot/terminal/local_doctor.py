"""`ci-bot doctor` at a terminal."""

from __future__ import annotations

from ci_bot.bot.report_files import Format
from ci_bot.bot.terminal.doctor_text import doctor_to_terminal
from ci_bot.bot.terminal.local import local_client, local_prefix, origin_of
from ci_bot.bot.worker_calls import doctor as examining
from ci_bot.bot.worker_calls.client import run_owner
from ci_bot.machine import Machine


def doctor_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
    form: Format,
) -> int:
    """`ci-bot doctor`. Returns the exit code."""
    with local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = examining.doctor(
            client,
            owner_name=run_owner(None, origin_of(client)),
            environment_prefix=local_prefix(client, machine, None),
        )
    if form == "json":
        text = document.to_json(indent=2)
    else:
        text = doctor_to_terminal(document, colour=machine.out.isatty())
    print(text, file=machine.out, flush=True)
    return examining.exit_code(document)
