"""Outputs and the step summary, read back by the referee."""

from __future__ import annotations

import json
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_bot.bot.actions.workflow_commands import (
    OUTPUT_LIMIT,
    SUMMARY_LIMIT,
    ActionStepOutputs,
    ActionStepSummary,
    TooLargeError,
    format_step_output,
)
from tests.oracle.fuzzing import caught, fuzz
from tests.oracle.runner import read_file_command

DELIMITER = "d" * 32
ATOMS = [
    *("\n", "\r", "\r\n", "=", "<<", "<", "EOF", "a=b", "x<<y", " ", "\x85", "\u2028", "\x00", "é"),
    *("ghadelimiter_", "__GIDGETHUB_DELIMITER__", "decision=go", "decision<<X\ngo\nX\n", "\ud800"),
]
values = st.lists(st.one_of(st.sampled_from(ATOMS), st.text(max_size=3)), max_size=8).map("".join)
names = st.sampled_from(["decision", "plan-id", "_x", "A", "result-2", "x" * 100])
Format = Callable[[str, str, str], str]


def sets_exactly_this(form: Format, pairs: list[tuple[str, str]]) -> bool:
    """The runner reads the very pairs that were written, and nothing else."""
    text = "".join(form(name, value, DELIMITER) for name, value in pairs)
    wanted = [(name, value.encode("utf-8", "replace").decode()) for name, value in pairs]
    try:
        return read_file_command(text.encode("utf-8", "replace").decode()) == wanted
    except ValueError:
        return False


@fuzz(20_000)
@given(st.lists(st.tuples(names, values), max_size=3))
@example([("result", "a\nplan-id=x\ndecision<<EOF\ngo\nEOF\n")])
@example([("result", "\r"), ("empty", ""), ("breaks", "\n\n")])
def test_outputs__round_trip(pairs: list[tuple[str, str]]) -> None:
    assert sets_exactly_this(format_step_output, pairs)


@pytest.mark.parametrize(
    "broken",
    [
        # what SQLMesh's bundled bot writes
        lambda name, value, _: f"{name}={value}\n",
        # gidgethub: a delimiter that everybody knows
        lambda name, value, _: (
            f"{name}<<__GIDGETHUB_DELIMITER__\n{value}\n__GIDGETHUB_DELIMITER__\n"
        ),
        # no line break before the closing delimiter
        lambda name, value, delimiter: f"{name}<<{delimiter}\n{value}{delimiter}\n",
    ],
)
def test_mutation__other_ways_to_write_outputs_are_caught(broken: Format) -> None:
    assert caught(
        st.lists(st.tuples(names, values), min_size=1, max_size=2),
        lambda pairs: not sets_exactly_this(broken, pairs),
    )


@pytest.mark.parametrize("name", ["", "a b", "1a", "a=b", "a<<b", "a\n", "ä", "x" * 101])
def test_format_output__bad_name(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name"):
        format_step_output(name, "x", DELIMITER)


@pytest.mark.parametrize("delimiter", ["", "short", "with space" * 3, "a\nb" * 10])
def test_format_output__weak_delimiter(delimiter: str) -> None:
    with pytest.raises(ValueError, match="delimiter"):
        format_step_output("a", "x", delimiter)


def test_format_output__value_with_the_delimiter() -> None:
    with pytest.raises(ValueError, match="its own delimiter"):
        format_step_output("a", f"x{DELIMITER}y", DELIMITER)


def test_format_output__too_large() -> None:
    with pytest.raises(TooLargeError):
        format_step_output("a", "é" * OUTPUT_LIMIT, DELIMITER)


def test_outputs__are_appended_to_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "output"
    file.write_bytes(b"unfinished=line")
    outputs = ActionStepOutputs(file, delimiter=lambda: DELIMITER, warn=pytest.fail)
    outputs.set_output("decision", "go")
    outputs.set_json("result", {"b": [1, "ü\n"], "a": None})
    pairs = read_file_command(file.read_text("utf-8"))
    assert pairs[:2] == [("unfinished", "line"), ("decision", "go")]
    assert json.loads(pairs[2][1]) == {"a": None, "b": [1, "ü\n"]}
    assert pairs[2][1].isascii()


def test_outputs__outside_a_workflow_are_checked_and_dropped() -> None:
    outputs = ActionStepOutputs(None, delimiter=lambda: DELIMITER, warn=pytest.fail)
    outputs.set_output("a", "b")
    with pytest.raises(ValueError, match="cannot be the name"):
        outputs.set_output("a b", "x")


def test_summary__written_in_pieces(tmp_path: Path) -> None:
    summary = ActionStepSummary(tmp_path / "summary", warn=pytest.fail)
    summary.append_markdown("# One")
    summary.append_markdown("two\n")
    assert (tmp_path / "summary").read_text("utf-8") == "# One\ntwo\n"
    ActionStepSummary(None, warn=pytest.fail).append_markdown("nowhere")


def test_summary__larger_than_the_runner_takes(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    told: list[str] = []
    summary = ActionStepSummary(file, warn=told.append)
    summary.append_markdown("é" * (SUMMARY_LIMIT // 2 - 1))
    assert file.stat().st_size == SUMMARY_LIMIT - 1
    assert told == []
    summary.append_markdown("xx")
    assert "could not be written: it would be larger than 1,048,576 bytes" in told[0]
    assert file.stat().st_size == SUMMARY_LIMIT - 1


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes, as on a disk that is full.

    That holds for the test runner's own log, too: nothing but the code under test may run in here.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    held = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, held)


def test_outputs__on_a_full_disk__warn_once_and_leave_no_half_of_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("first<<A\n1\nA\n")
    told: list[str] = []
    outputs = ActionStepOutputs(file, delimiter=lambda: DELIMITER, warn=told.append)
    with limit_file_size(file.stat().st_size + 100):
        outputs.set_output("decision", "go")
        there = file.read_text()
        outputs.set_output("result", "x" * 500)
        outputs.set_output("report-path", "y" * 500)
    assert file.read_text() == there
    assert read_file_command(there) == [("first", "1"), ("decision", "go")]
    (warning,) = told
    assert warning.startswith("The outputs of this step, which later steps read, could not be")
    assert "What was done stays done." in warning


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/dev/full", "No space left on device"),
        ("/dev/null/file", "Not a directory"),
        ("/nowhere/at/all", "No such file or directory"),
    ],
)
def test_files_of_the_step__that_cannot_be_written__only_warn(path: str, why: str) -> None:
    told: list[str] = []
    outputs = ActionStepOutputs(Path(path), delimiter=lambda: DELIMITER, warn=told.append)
    outputs.set_output("decision", "go")
    outputs.set_output("plan-id", "x")
    assert not outputs.has_output("decision")
    summary = ActionStepSummary(Path(path), warn=told.append)
    summary.append_markdown("# One")
    summary.append_markdown("# Two")
    assert [why in text for text in told] == [True, True]
    assert told[1].startswith("The summary of this step could not be written:")
