"""The sample comments are what a reviewer looked at; a change of them is looked at again."""

from __future__ import annotations

import pytest

from ci_bot.bot.comment.marker import decode
from ci_bot.bot.comment.parts.budget import COMMENT_BYTES
from tests.golden.samples import HERE, SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_sample__is_unchanged(name: str) -> None:
    assert SAMPLES[name]().text == (HERE / f"{name}.md").read_text("utf-8"), (
        "if the change is wanted: python -m tests.golden.samples, and read the diff"
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_sample__starts_with_its_marker_and_fits(name: str) -> None:
    rendered = SAMPLES[name]()
    marker = decode(rendered.text)
    assert marker is not None
    assert marker.cut == rendered.cut
    assert len(rendered.text.encode()) <= COMMENT_BYTES


def test_samples__no_file_is_left_from_a_sample_that_is_gone() -> None:
    assert {path.stem for path in HERE.glob("*.md")} == set(SAMPLES)
