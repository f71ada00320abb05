"""Surveys at a terminal: `ci-bot doctor`, `ci-bot learn` and `ci-bot exposures`.

The first checks each part. The other two read Spark's event logs: one takes costs from them, the
other the readers of prod's views, and makes a file of these for the policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ci_bot.bot.cli.session import (
    make_owner_on_laptop,
    open_worker_client_on_laptop,
    read_prefix_on_laptop,
)
from ci_bot.bot.report import (
    Format,
    OutputScreen,
    TextPage,
    make_page_of_screen,
    make_screen,
    words,
)
from ci_bot.bot.worker_client import (
    OTHER_SPARK,
    choose_exit_code_of_worker_doctor,
    make_error_of_worker_failure,
    request_doctor_from_worker,
    request_exposures_from_worker,
    request_learn_from_worker,
)
from ci_bot.errors import EXIT_DONE, BadInput
from ci_bot.host import Machine
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import ExposuresDocument, LearnDocument, LoggedReader
from ci_bot.protocol.messages import DoctorDocument
from ci_bot.redaction import quote_value

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "not_run": "yellow"}


def run_doctor_on_laptop(
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
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = request_doctor_from_worker(
            client,
            owner_name=make_owner_on_laptop(client).name,
            environment_prefix=read_prefix_on_laptop(client, machine, None),
        )
    if form == "json":
        text = document.to_json(indent=2)
    else:
        text = render_doctor_for_laptop(document, make_screen(machine)).rstrip("\n")
    print(text, file=machine.out, flush=True)
    return choose_exit_code_of_worker_doctor(document)


def render_doctor_for_laptop(document: DoctorDocument, screen: OutputScreen) -> str:
    """Renders the document as plain text with a newline at the end."""
    page = make_page_of_screen(screen)
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


HEADER = "# Written by `ci-bot exposures`"

_BECAME = (
    ("own", "log", "of SQLMesh's own runs"),
    ("foreign", "log", "without a read of a model"),
    ("other_version", "log", OTHER_SPARK),
    ("unreadable", "log", "not readable"),
    ("old", "log", "older than 90 days"),
    ("malformed", "line", "not readable, and left out"),
    ("more_readers", "reader", "beyond those of the file, which were seen last"),
)


def write_exposures_on_laptop(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    event_logs: str,
    output: str | None,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
) -> int:
    """`ci-bot exposures`. Prints or writes the file; returns the exit code.

    Args:
        output: the file, relative to the current directory; None: standard output.

    Raises:
        BotError: the logs or the state cannot be used, or the file cannot be written.
    """
    file = None if output is None else machine.directory / output
    if file is not None:
        _check_target(file)
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        owner_name = make_owner_on_laptop(client).name
        document = request_exposures_from_worker(
            client, owner_name=owner_name, event_logs=event_logs
        )
        if isinstance(document, Failure):
            raise make_error_of_worker_failure(document)
        document = client.redactor.redact_document(document)
    text = render_exposures_for_laptop(document, until=machine.read_date().isoformat())
    if file is None:
        print(text, file=machine.out, end="", flush=True)
    else:
        _write_exposures_whole(file, text)
    print(_describe_logs(document, output), end="", file=machine.log, flush=True)
    return EXIT_DONE


def render_exposures_for_laptop(document: ExposuresDocument, *, until: str) -> str:
    """Renders the file: YAML as dbt writes exposures, with the columns in `meta`.

    Args:
        until: the day on which the logs were read.
    """
    lines = [
        f"{HEADER} from Spark's event logs of {document.since[:10]} to {until}.",
        "# Name it in the policy (`exposures:`, `file:`, `owner:`), and write it again at times.",
        "version: 2",
        "exposures:" if document.readers else "exposures: []",
    ]
    for reader in document.readers:
        lines += _render_exposed_reader(reader)
    return "\n".join([*lines, ""])


def _render_exposed_reader(reader: LoggedReader) -> Iterable[str]:
    known = {model: columns for model, columns in reader.reads.items() if columns is not None}
    yield f"  - name: {_quote_scalar(reader.application)}"
    yield "    type: application"
    yield f"    owner: {{name: {_quote_scalar(reader.user or 'unknown')}}}"
    yield "    depends_on:"
    yield from (f"      - {_quote_scalar(model)}" for model in reader.reads)
    yield "    meta:"
    yield f"      last_read: {_quote_scalar(reader.last_read[:10])}"
    yield f"      statements: {reader.statements}"
    if known:
        yield "      columns:"
    for model, columns in known.items():
        yield f"        {_quote_scalar(model)}: [{', '.join(map(_quote_scalar, columns))}]"


def _quote_scalar(text: str) -> str:
    """Quotes a scalar so that YAML reads it as text: JSON's strings are YAML's, too."""
    return json.dumps(text, ensure_ascii=False)


def _check_target(file: Path) -> None:
    """Refuses to overwrite a file that this command has not written."""
    try:
        with file.open("rb") as opened:
            ours = opened.read(len(HEADER)).decode("utf-8", "replace") == HEADER
    except FileNotFoundError:
        return
    except OSError as error:
        raise _make_not_written_error(file, error) from error
    if not ours:
        raise BadInput(
            f"{quote_value(str(file))} is there already, and `ci-bot exposures` has not written "
            "it.",
            hint="Name another file with `--output`.",
            reason_code="output",
        )


def _write_exposures_whole(file: Path, text: str) -> None:
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _make_not_written_error(file, error) from error


def _make_not_written_error(file: Path, error: OSError) -> BadInput:
    return BadInput(
        f"{quote_value(str(file))} cannot be written: {(error.strerror or '').lower()}.",
        hint="Name another file with `--output`; without it the exposures are printed.",
        reason_code="output",
    )


def _describe_logs(document: ExposuresDocument, output: str | None) -> str:
    page = TextPage()
    page.add_title(
        f"Found {words.format_count(len(document.readers), 'reader')} in "
        f"{words.format_count(document.read, 'event log')} of "
        f"{words.format_number(document.logs)} · {words.duration(document.seconds)}",
        "green" if document.readers else "yellow",
    )
    if output is not None:
        page.add_fact("Written", output)
    for name, noun, became in _BECAME:
        if count := getattr(document, name):
            page.add_item(f"{words.format_count(count, noun)} {became}")
    if document.remark:
        page.add_note(f"→ {document.remark}")
    return page.render_text()


_BECAME_OF_LEARNED = (
    ("known", "read before"),
    ("foreign", "without a table of SQLMesh"),
    ("other_version", OTHER_SPARK),
    ("cut", "cut: what is whole in them was read"),
    ("unreadable", "not readable"),
    ("old", "too old"),
)


def learn_on_laptop(
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
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        document = request_learn_from_worker(
            client,
            owner_name=make_owner_on_laptop(client).name,
            event_logs=event_logs,
        )
    if isinstance(document, Failure):
        raise make_error_of_worker_failure(document)
    print(render_learned_for_laptop(document), end="", file=machine.out, flush=True)
    return EXIT_DONE


def render_learned_for_laptop(document: LearnDocument) -> str:
    """Renders the document as plain text with a newline at the end."""
    page = TextPage()
    page.add_title(
        f"Learned {words.format_count(document.writes, 'write')} into "
        f"{words.format_count(document.tables, 'table')} from "
        f"{words.format_count(document.read, 'event log')} · {words.duration(document.seconds)}",
        "green" if document.writes or document.known else "yellow",
    )
    page.add_fact("Directory", document.directory)
    for name, became in _BECAME_OF_LEARNED:
        if count := getattr(document, name):
            page.add_item(f"{words.format_count(count, 'log')} {became}")
    if document.remark:
        page.add_note(f"→ {document.remark}")
    return page.render_text()
