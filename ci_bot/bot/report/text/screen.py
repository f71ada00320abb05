"""What a terminal shows: in which colours and how wide, and a failure without the secrets in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ci_bot.bot.actions import make_variable_name_of_input
from ci_bot.bot.sandbox import make_redactor_for_sandbox
from ci_bot.errors import BotError, RunCancelled
from ci_bot.host import Machine

WIDTH = 96
# Narrower no table can be read, and wider no line.
NARROWEST, WIDEST = 60, 200

_DIGITS = 6


@dataclass(frozen=True)
class OutputScreen:
    """Where a text is printed. `width` is in columns."""

    colour: bool = False
    width: int = WIDTH


def make_screen(machine: Machine) -> OutputScreen:
    """The machine's standard output.

    A terminal that shows colours gets them, unless NO_COLOR is set (https://no-color.org) or the
    option says otherwise. COLUMNS counts where it is set, then the terminal's own width; a file
    or a pipe has none, and gets one that suits most readers.
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
    """The sentence and the fix, each a line."""
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
