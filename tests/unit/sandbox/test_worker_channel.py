"""The worker's end of the channel, over real descriptors."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.sandbox.worker_output import SandboxedProgressReader
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import CleanupRequest, FailedAnswer, Owner, Progress, Workplace
from ci_bot.worker.runtime.process import PROGRESS_BYTES, WorkerChannelToBot

ASKED = CleanupRequest(
    projects=["."] * 3,
    workplace=Workplace(repository="/r" * 400, cache_dir="/c", scratch_dir="/s"),
    owner=Owner(name="org/repo"),
    environment="pr_7",
)


class Line:
    """Both ends of a channel."""

    def __init__(self, directory: Path) -> None:
        self.request = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by the fixture
        self.answer = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.request.write(ASKED.to_bytes())
        self.request.flush()
        self.channel = WorkerChannelToBot(
            request_fd=self.request.fileno(), answer=self.answer.fileno(), progress=self.writer
        )

    def heard(self) -> bytes:
        data = b""
        while True:
            try:
                data += os.read(self.reader, 65_536)
            except BlockingIOError:
                return data

    def close(self) -> None:
        self.request.close()
        self.answer.close()
        os.close(self.reader)
        os.close(self.writer)


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    made = Line(tmp_path)
    yield made
    made.close()


def test_ask__twice_the_same(line: Line) -> None:
    assert line.channel.read_request() == ASKED
    assert line.channel.read_request() == ASKED


def test_answer__a_later_one_takes_the_place(line: Line) -> None:
    for length in (200_000, 10):
        failure = Failure(stage="plan", reason_code="x", exit_code=1, message="m" * length)
        line.channel.write_answer(FailedAnswer(failure=failure))
    answer = FailedAnswer.model_validate_json(os.pread(line.answer.fileno(), 1_000_000, 0))
    assert answer.failure.message == "m" * 10


def test_keep__is_the_answer_only_where_there_is_no_other(line: Line) -> None:
    def said(message: str) -> FailedAnswer:
        return FailedAnswer(
            failure=Failure(stage="apply", reason_code="x", exit_code=1, message=message)
        )

    def read() -> str:
        data = os.pread(line.answer.fileno(), 1_000_000, 0)
        return FailedAnswer.model_validate_json(data).failure.message

    line.channel.write_last_words(said("the first step " * 100))
    line.channel.write_last_words(said("the second step"))
    assert not line.channel.answered
    assert read() == "the second step", "a process that is killed now has said this"
    line.channel.write_answer(said("the end"))
    line.channel.write_last_words(said("a thread that was late"))
    assert read() == "the end"


def test_channel__children_do_not_inherit_it(line: Line) -> None:
    for descriptor in (line.request.fileno(), line.answer.fileno(), line.writer):
        assert not os.get_inheritable(descriptor)


@given(st.text(max_size=20), st.text(max_size=30), st.integers(1, 300))
def test_progress__anything_arrives_as_one_valid_message(
    phase: str, message: str, times: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        line = Line(Path(directory))
        line.channel.send_progress(phase * times, message * times, done=1, total=2)
        data = line.heard()
        line.close()
    assert len(data) <= PROGRESS_BYTES + 1
    found = SandboxedProgressReader(line_bytes=8_192, lines=10).feed_bytes(data)
    assert len(found) == 1
    assert found[0] == Progress.model_validate_json(data)


def test_progress__a_full_pipe_loses_messages_and_never_waits(line: Line) -> None:
    for number in range(500):
        line.channel.send_progress("apply", f"{number} " + "x" * 3_000)
    reader = SandboxedProgressReader(line_bytes=8_192, lines=1_000)
    first = reader.feed_bytes(line.heard())
    line.channel.send_progress("apply", "after the jam")
    second = reader.feed_bytes(line.heard())
    assert 0 < len(first) < 500
    assert [message.message for message in second] == ["after the jam"]


def test_progress__nobody_listens(line: Line) -> None:
    os.close(line.reader)
    line.channel.send_progress("apply", "x")
    line.reader, unused = os.pipe()
    os.close(unused)


def test_progress__is_ascii_safe_json(line: Line) -> None:
    line.channel.send_progress("load", 'quote " back \\ line\nbreak \u2028 é')
    assert json.loads(line.heard()) == {
        "phase": "load",
        "message": 'quote " back \\ line\nbreak \u2028 é',
        "done": None,
        "total": None,
        "seconds": None,
    }
