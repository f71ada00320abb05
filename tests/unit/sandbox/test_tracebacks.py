"""Tracebacks in a log: kept together, whatever else stands around them."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.sandbox.worker_output import MOST_LINES, SandboxedTracebackFilter

JAVA = """\
\tat org.apache.spark.sql.catalyst.Analyzer.fail(Analyzer.scala:91)
\tat scala.collection.Iterator.foreach$(Iterator.scala:943)
\t... 12 more
Caused by: java.sql.SQLException: no
\tat org.apache.derby.Some.thing(Unknown Source)""".splitlines()


def sorted_out(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    shown: list[str] = []
    folded: list[list[str]] = []
    log = SandboxedTracebackFilter(on_line=shown.append, on_traceback=folded.append)
    for line in lines:
        log.feed_line(line)
    log.release_held()
    return shown, folded


def python_traceback(*, chained: bool = False) -> list[str]:
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            if chained:
                raise RuntimeError("outer") from error
            raise
    except Exception:
        return traceback.format_exc().splitlines()


@pytest.mark.parametrize("chained", [False, True])
def test_python__is_folded_and_its_exception_is_shown(chained: bool) -> None:
    lines = python_traceback(chained=chained)
    shown, folded = sorted_out(["before", *lines, "after"])
    assert folded == [lines]
    assert shown == ["before", "RuntimeError: outer" if chained else "KeyError: 'inner'", "after"]


def test_python__behind_a_loggers_prefix__and_at_the_end_of_the_log() -> None:
    lines = python_traceback()
    lines[0] = f"24/01/01 ERROR Executor: {lines[0]}"
    assert sorted_out(lines) == (["KeyError: 'inner'"], [lines])


def test_java__frames_and_causes_are_folded_and_the_message_is_not() -> None:
    shown, folded = sorted_out(["ERROR it failed", *JAVA, "after"])
    assert (shown, folded) == (["ERROR it failed", "after"], [JAVA])


def test_two_in_a_row__are_two() -> None:
    lines = python_traceback()
    _, folded = sorted_out([*lines, "between", *lines, *JAVA])
    assert folded[0] == lines
    assert [line for part in folded for line in part] == [*lines, *lines, *JAVA]


def test_endless__is_given_out_in_parts() -> None:
    lines = ["Traceback (most recent call last):", *["  x"] * (2 * MOST_LINES)]
    _, folded = sorted_out(lines)
    assert max(len(part) for part in folded) == MOST_LINES


LINES = st.sampled_from(
    [
        *python_traceback(chained=True),
        *JAVA,
        "",
        "  indented",
        "plain",
        "ValueError: x",
        "Caused by: y",
    ]
)


@given(st.lists(LINES, max_size=60))
def test_filter__loses_nothing_and_keeps_the_order(lines: list[str]) -> None:
    given_out: list[str] = []
    log = SandboxedTracebackFilter(
        on_line=lambda line: given_out.append(line) if line not in given_out[-1:] else None,
        on_traceback=given_out.extend,
    )
    for line in lines:
        log.feed_line(line)
    log.release_held()
    remaining = iter(given_out)
    previous = None
    for line in lines:
        if line != previous:
            assert any(line == found for found in remaining), line
        previous = line
