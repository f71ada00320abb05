"""Numbers and times as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.report import words
from ci_bot.bot.report.model.context import CommentLinks
from tests.factories import HEAD, make_context


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (3.26, "3.3 s"),
        (41, "41 s"),
        (60, "1 min"),
        (134, "2 min 14 s"),
        (6_120, "1 h 42 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_duration__reads_well(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.999999, "99.99 %"),
        (0.000001, "0.01 %"),
        (0.991458, "99.15 %"),
        (0.5, "50 %"),
    ],
)
def test_percent__never_rounds_to_all_or_nothing(rate: float, text: str) -> None:
    assert words.format_percent(rate) == text


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_percent__between_is_between(rate: float) -> None:
    assert words.format_percent(rate) not in ("0 %", "100 %")


@pytest.mark.parametrize(
    ("amount", "text"),
    [(512, "512 bytes"), (1_200_000_000, "1.2 GB"), (999, "999 bytes"), (10**18, "1,000.0 PB")],
)
def test_size__reads_well(amount: int, text: str) -> None:
    assert words.format_size(amount) == text


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2024-01-01T00:00:00Z", "2024-04-01T00:00:00Z", "2024-01-01\u00a0→\u00a02024-03-31"),
        ("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "2024-01-01"),
        (
            "2024-01-01T05:00:00Z",
            "2024-01-01T07:00:00Z",
            "2024-01-01 05:00\u00a0→\u00a02024-01-01 07:00",
        ),
        (None, None, "–"),
        (None, "2024-01-02T00:00:00Z", "the beginning\u00a0→\u00a02024-01-01"),
    ],
)
def test_window__end_is_the_last_day_included(
    start: str | None, end: str | None, text: str
) -> None:
    assert words.format_window(start, end) == text


def test_count__nouns_agree() -> None:
    assert words.format_count(1, "batch") == "1 batch"
    assert words.format_count(2, "batch") == "2 batches"
    assert words.format_count(0, "retry") == "0 retries"
    assert words.format_count(1_842, "null key") == "1,842 null keys"
    assert words.format_count(2, "alias") == "2 aliases"
    assert words.format_count(2, "day") == "2 days"


def test_clock__names_the_day_only_when_it_is_another() -> None:
    assert words.format_clock("2026-08-22T10:14:03Z", "2026-08-22T23:59:59Z") == "10:14 UTC"
    assert (
        words.format_clock("2026-08-21T10:14:03Z", "2026-08-22T00:00:00Z") == "2026-08-21 10:14 UTC"
    )


def test_bar__is_full_only_at_the_end() -> None:
    assert words.render_text_bar(0, 10, 4) == "░░░░"
    assert words.render_text_bar(5, 10, 4) == "██░░"
    assert words.render_text_bar(9_999, 10_000, 4) == "███░"
    assert words.render_text_bar(10, 10, 4) == "████"
    assert words.render_text_bar(0, 0, 4) == "░░░░"


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/passwd", "a/./b", "..", "a//b", "./a", "..%2f/../x"]
)
def test_links__paths_that_lead_elsewhere_are_not_linked(path: str) -> None:
    assert CommentLinks(make_context(), HEAD).file_url(path) is None


def test_links__paths_are_quoted() -> None:
    url = CommentLinks(make_context(), HEAD).file_url("models/a b)](x).sql", 3)
    assert url == (
        f"https://github.com/shop/warehouse/blob/{HEAD}/models/a%20b%29%5D%28x%29.sql#L3"
    )
