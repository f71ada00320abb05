"""The goldens are what a reviewer looked at; a change of them is looked at again."""

from __future__ import annotations

from typing import get_args

import pytest

from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
from ci_bot.bot.report.markdown.marker import decode_comment_marker
from ci_bot.protocol.comment import Phase
from tests.golden.record import KINDS, RECORDED, read
from tests.golden.samples import HERE, SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_sample__is_unchanged(name: str) -> None:
    assert SAMPLES[name]() == (HERE / f"{name}.md").read_text("utf-8"), (
        "if the change is wanted: python -m tests.golden.samples, and read the diff"
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_sample__starts_with_its_marker_and_fits(name: str) -> None:
    text = SAMPLES[name]()
    marker = decode_comment_marker(text)
    assert marker is not None
    assert bool(marker.cut) == (name in ("wide_change", "large_go"))
    assert len(text.encode()) <= COMMENT_BYTES


def test_samples__no_file_is_left_from_a_sample_that_is_gone() -> None:
    assert {path.stem for path in HERE.glob("*.md")} == set(SAMPLES)
    assert {path.stem for path in RECORDED.glob("*.json")} == set(KINDS)


def test_samples__show_each_state_of_the_comment() -> None:
    found = [decode_comment_marker(sample()) for sample in SAMPLES.values()]
    assert {marker.phase for marker in found if marker} == set(get_args(Phase))


@pytest.mark.parametrize("name", KINDS)
def test_recording__is_read_with_todays_contract(name: str) -> None:
    assert isinstance(read(name), KINDS[name])
