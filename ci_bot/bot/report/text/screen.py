"""The colours and the width of a terminal, and a failure without the secrets in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ci_bot.bot.actions import make_variable_name_of_input
from ci_bot.bot.sandbox import make_redactor_for_sandbox
from ci_bot.errors import BotError, RunCancelled
from ci_bot.host import Machine

WIDTH = 96
# Below this width no table is readable, and above it no line.
NARROWEST, WIDEST = 60, 200

_DIGITS = 6


@dataclass(frozen=True)
class OutputScreen:
    """A place where text is printed; `width` is in columns."""

    colour: bool = False
    width: int = WIDTH


def make_screen(machine: Machine) -> OutputScreen:
    """Returns the screen of the machine's standard output.

    A terminal that shows colours gets them, unless NO_COLOR is set (https://no-color.org) or the
    option says otherwise. The width is COLUMNS if it is set, else the terminal's own; a file or a
    pipe has none, and gets one that suits most readers.
    """
    return OutputScreen(colour=_wants_colour(machine), width=_find_width(machine))


def _wants_colour(machine: Machine) -> bool:
    if machine.color != "auto":
        return machine.color == "always"
    refused = machine.environ.get("NO_COLOR") or machine.environ.get("TERM") == "dumb"
    return machine.out.isatty() and not refused


def _find_width(machine: Machine) -> int:
    columns = machine.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < _DIGITS and int(columns):
        return _bound_width(int(columns))
    try:
        return _bound_width(os.get_terminal_size(machine.out.fileno()).columns or WIDTH)
    except (OSError, ValueError):  # a file, a pipe, or a text in memory
        return WIDTH


def _bound_width(width: int) -> int:
    return max(NARROWEST, min(width, WIDEST))


def describe_error(error: BotError | RunCancelled, environ: Mapping[str, str]) -> str:
    """Returns the sentence and the hint, one line each, without the environment's secrets."""
    where = ""
    if error.path and error.path not in error.message:
        where = f"{error.path}{f', line {error.line}' if error.line else ''}: "
    lines = [f"ci-bot: {where}{error.message}"]
    if error.hint:
        lines.append(f"        {error.hint}")
    return redact_text("\n".join(lines), environ)


def redact_text(text: str, environ: Mapping[str, str]) -> str:
    """Removes the environment's secrets from `text`, for output outside of documents."""
    worker_env = environ.get(make_variable_name_of_input("worker-env"), "")
    return make_redactor_for_sandbox(environ, worker_env=worker_env).redact(text)
