"""Control sequences of terminals (colours, titles, hyperlinks), which print as nothing.

Whatever shows a text takes them out. So a text is looked at as it will be shown: a sequence in the
middle of a value hides nothing of it.
"""

from __future__ import annotations

import re

from ci_bot.secrets.shapes import Span

TERMINAL_CODE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, hyperlinks
    r"|\x1b[@-Z\\-_]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)


def strip_terminal_codes(text: str) -> str:
    """`text` as a terminal shows it, without colours."""
    return TERMINAL_CODE.sub("", text) if "\x1b" in text or "\x9b" in text else text


def list_original_places(text: str) -> list[int]:
    """For each character of the stripped text, and for its end, its place in `text`."""
    places: list[int] = []
    position = 0
    for code in TERMINAL_CODE.finditer(text):
        places.extend(range(position, code.start()))
        position = code.end()
    places.extend(range(position, len(text) + 1))
    return places


def restore_span(span: Span, places: list[int]) -> Span:
    """A span of the stripped text as one of the original: from its first to its last character."""
    start, end = span
    return (places[start], places[end - 1] + 1) if end > start else (places[start], places[start])
