"""Known values: which can be hidden at all, and where."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.redaction import MASK, Redactor
from ci_bot.redaction.known_secrets import (
    ENOUGH,
    can_secret_be_hidden,
    count_possible_secrets,
    fold_case_of_secret,
)


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ("", False),
        ("1", False),
        ("abc", False),
        ("aB3", False),
        ("a1!", False),
        ("true", False),
        ("prod", False),
        ("2024", False),
        ("55432", False),
        ("false", False),
        ("postgres", False),
        ("Spark", False),
        ("aB3x", True),
        ("x7kq", True),
        ("482197", True),
        ("tiger", True),
        ("/abc", True),
    ],
)
def test_value__is_hidden_if_a_million_are_like_it(value: str, hidden: bool) -> None:
    assert can_secret_be_hidden(value) is hidden
    text = f"a ({value}) b"
    assert (Redactor([value]).redact(text) == f"a ({MASK}) b") is (hidden and bool(value))


@given(st.text(alphabet=string.printable.strip(), max_size=3))
def test_three_characters__are_never_enough(value: str) -> None:
    assert count_possible_secrets(value) < ENOUGH


@pytest.mark.parametrize("value", ["tiger", "orders", "482197", "4821975530", "aB3x"])
def test_short_value__goes_only_where_it_stands_alone(value: str) -> None:
    redactor = Redactor([value])
    assert redactor.redact(f"x={value}, '{value}'.") == f"x={MASK}, '{MASK}'."
    for text in (f"9{value}", f"{value}s", f"x_{value}", f"{value}_x"):
        assert redactor.redact(text) == text


def test_long_value__goes_wherever_it_stands() -> None:
    redactor = Redactor(["hunter22", "482197553041"])
    assert redactor.redact("xhunter22y_482197553041_1") == f"x{MASK}y_{MASK}_1"


@given(st.text(max_size=40))
def test_fold__keeps_every_character_in_its_place(text: str) -> None:
    folded = fold_case_of_secret(text)
    assert len(folded) == len(text)
    assert fold_case_of_secret(folded) == folded


@given(st.text(min_size=8, max_size=30), st.sampled_from(["", "a model called", "'", "host="]))
def test_letter_case__does_not_save_a_secret(value: str, before: str) -> None:
    if not can_secret_be_hidden(value) or not value.strip() or len(value.splitlines()) > 1:
        return
    redactor = Redactor([value])
    for written in (value, fold_case_of_secret(value)):
        assert written not in redactor.redact(f"{before} {written} .").replace(MASK, "")


def test_many_secrets__take_time_for_the_text_and_not_for_each_secret() -> None:
    source = random.Random(7)
    values = [
        "".join(source.choices(string.ascii_letters + string.digits, k=24)) for _ in range(300)
    ]
    text = "SELECT o.order_id, o.amount FROM shop.orders AS o WHERE o.ds = '2024-01-01'\n" * 400
    redactor = Redactor(values)
    assert redactor.redact(text) == text
    assert redactor.redact(f"{text}{values[0]}").endswith(MASK)
