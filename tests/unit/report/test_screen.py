"""Colours and width of a terminal: what people ask for, what it can show, and what a pipe gets."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from collections.abc import Iterator
from dataclasses import replace
from typing import TextIO

import pytest

from ci_bot.bot.actions.inputs import Color
from ci_bot.bot.report.text.screen import NARROWEST, WIDEST, make_screen
from ci_bot.host import Machine, make_process_machine


def machine(out: TextIO, color: Color = "auto", **environ: str) -> Machine:
    return replace(make_process_machine(), out=out, environ=environ, color=color)


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A real one, of 132 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 132, 0, 0))
    with os.fdopen(theirs, "w") as opened:
        yield opened
    os.close(ours)


@pytest.mark.parametrize(
    ("environ", "color", "coloured"),
    [
        ({}, "auto", True),
        ({"NO_COLOR": "1"}, "auto", False),
        ({"NO_COLOR": "0"}, "auto", False),  # any value counts, but an empty one
        ({"NO_COLOR": ""}, "auto", True),
        ({"TERM": "dumb"}, "auto", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({}, "never", False),
    ],
)
def test_terminal__has_colours_unless_somebody_objects(
    terminal: TextIO, environ: dict[str, str], color: Color, coloured: bool
) -> None:
    assert make_screen(machine(terminal, color, **environ)).colour is coloured


def test_pipe__has_colours_only_where_they_are_asked_for() -> None:
    assert not make_screen(machine(io.StringIO())).colour
    assert make_screen(machine(io.StringIO(), "always")).colour


def test_width__is_that_of_the_terminal(terminal: TextIO) -> None:
    assert make_screen(machine(terminal)).width == 132


@pytest.mark.parametrize(
    ("columns", "width"),
    [("80", 80), ("20", NARROWEST), ("1000", WIDEST), ("", 132), ("0", 132), ("wide", 132)],
)
def test_width__that_is_set_counts_within_bounds(
    terminal: TextIO, columns: str, width: int
) -> None:
    assert make_screen(machine(terminal, COLUMNS=columns)).width == width


def test_width__of_a_pipe_suits_most_readers() -> None:
    assert make_screen(machine(io.StringIO())).width == 96
