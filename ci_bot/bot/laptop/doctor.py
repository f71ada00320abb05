"""`ci-bot doctor` at a terminal: a line for each part, and the fix where one is needed."""

from __future__ import annotations

from ci_bot.bot.laptop.session import open_local_client, read_local_prefix, read_origin_url
from ci_bot.bot.report import Format, OutputScreen, TextPage, make_screen, words
from ci_bot.bot.worker_client import doctor, run_owner
from ci_bot.host import Machine
from ci_bot.protocol.messages import DoctorDocument

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "not_run": "yellow"}


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
    with open_local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = doctor.request_doctor(
            client,
            owner_name=run_owner(None, read_origin_url(client)),
            environment_prefix=read_local_prefix(client, machine, None),
        )
    if form == "json":
        text = document.to_json(indent=2)
    else:
        text = doctor_to_terminal(document, make_screen(machine))
    print(text, file=machine.out, flush=True)
    return doctor.exit_code(document)


def doctor_to_terminal(document: DoctorDocument, screen: OutputScreen) -> str:
    """The document as plain text, ending in a newline."""
    page = TextPage(width=screen.width, color=screen.colour)
    count = {
        status: sum(check.status == status for check in document.checks) for status in _COLOURS
    }
    worst = "red" if count["fail"] else "yellow" if count["warn"] else "green"
    page.add_title(
        f"Doctor · {count['ok']} ok, {count['warn']} to look at, {count['fail']} failing · "
        f"{words.duration(document.seconds)}",
        worst,
    )
    for check in document.checks:
        mark = check.status.replace("_", " ").ljust(4)
        page.add_item(f"{check.name}: {check.message}", mark=mark, color=_COLOURS[check.status])
        if check.fix:
            page.add_note(f"→ {check.fix}", indent=7)
    return page.render_text()
