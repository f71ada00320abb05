"""A pattern for many texts finds what a list of alternatives finds, and does not get slow."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from ci_bot.redaction import Redactor
from ci_bot.redaction.known_secrets import make_alternation_of_secrets

TEXTS = st.text(alphabet="ab.*(", min_size=1, max_size=6)


@given(st.sets(TEXTS, min_size=1, max_size=12), st.text(alphabet="ab.*(", max_size=30))
def test_any_of__finds_the_longest_at_every_place(texts: set[str], text: str) -> None:
    pattern = re.compile(make_alternation_of_secrets(texts))
    for place in range(len(text)):
        here = [item for item in texts if text.startswith(item, place)]
        match = pattern.match(text, place)
        assert (match.group() if match else None) == (max(here, key=len) if here else None)


def test_any_of__of_long_texts_that_begin_alike__is_no_deep_recursion() -> None:
    texts = {"x" * length for length in range(1, 400)}
    match = re.compile(make_alternation_of_secrets(texts)).match("x" * 1_000)
    assert match is not None
    assert len(match.group()) == 399


def test_redaction__with_many_secrets__costs_little_more_than_with_one() -> None:
    """With a list of alternatives two hundred secrets take fifteen times as long as one."""
    lines = "\n".join(f"INFO step {number} of model shop.orders is done" for number in range(5_000))
    spent = []
    for count in (1, 200):
        redactor = Redactor(
            f"{number:04}-{'secret' * 4}-{number * 7919:05}" for number in range(count)
        )
        begun = time.process_time()
        assert redactor.redact(lines) == lines
        spent.append(time.process_time() - begun)
    assert spent[1] < 4 * spent[0]
