"""Words of the page can be read on their ground, in light and in dark: 4.5 to 1, as WCAG 2.2 (1.4.3)
asks of text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLES = Path(__file__).resolve().parents[4] / "templates" / "webpage" / "report.css"
LEAST = 4.5
CHIPS = (
    *("good", "medium", "high", "blocker", "info"),
    *("added", "direct", "indirect", "removed", "metadata"),
)
PAIRS = [(name, f"{name}-soft") for name in CHIPS]
PAIRS += [(word, ground) for word in ("ink", "faint") for ground in ("paper", "soft", "code")]
PAIRS += [("link", "paper"), ("link", "soft"), ("ink", "gone"), ("ink", "come")]
PAIRS += [("ink", "gone-word"), ("ink", "come-word")]


def colours(theme: str) -> dict[str, str]:
    light, _, dark = STYLES.read_text("utf-8").partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", light))
    return (
        found
        if theme == "light"
        else found | dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", dark))
    )


def luminance(colour: str) -> float:
    """Relative luminance of a colour of six digits (WCAG 2.2, definitions)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast__is_what_the_standard_says_of_black_and_white() -> None:
    assert contrast("000000", "ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("word", "ground"), PAIRS)
def test_words__stand_out_from_their_ground(theme: str, word: str, ground: str) -> None:
    known = colours(theme)
    assert contrast(known[word], known[ground]) >= LEAST
