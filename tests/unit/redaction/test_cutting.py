"""A text that is cut loses whole words: half a secret looks like no secret."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_bot.redaction import Redactor
from ci_bot.redaction.redactor import shorten_redacted
from tests.unit.redaction.leaks import made

SECRET = made("cut", 24)


@given(st.text(max_size=60), st.integers(min_value=1, max_value=60))
def test_shortened__is_a_beginning_of_whole_words(text: str, most: int) -> None:
    cut = shorten_redacted(text, most)
    assert len(cut) <= most
    if cut != text:
        assert cut.endswith("…")
        kept = cut[:-1].split()
        assert text.split()[: len(kept)] == kept


@given(st.integers(min_value=0, max_value=40), st.integers(min_value=10, max_value=60))
def test_shortened__leaves_no_half_of_a_secret(before: int, most: int) -> None:
    cut = shorten_redacted(f"{'x' * before} {SECRET} {'y ' * 60}", most)
    assert SECRET[:6] not in Redactor([SECRET]).redact(cut)


def test_mutation__a_plain_cut_is_caught() -> None:
    cut = f"{'x' * 20} {SECRET} {'y ' * 60}"[:35]
    assert SECRET[:6] in Redactor([SECRET]).redact(cut)
