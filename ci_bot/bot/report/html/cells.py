"""The parts that the page's script can draw, as plain data. Every text in them is untrusted.

The script shows text between backticks as code. No other text in it has a meaning, and it never
becomes markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ci_bot.bot.report import words

# found: a text, and the other places with their addresses and texts.
# name: a model, with the address of its file. value: a text, and the number by which it is sorted.
CellKind = Literal[
    "text", "found", "name", "rule", "number", "value", "chip", "names", "strip", "bars", "diff"
]
# What the page's script draws: data for its JSON; the keys are a contract with `templates`.
PageItem = dict[str, Any]


def make_name_cell(text: str, url: str | None = None, note: str = "") -> list[str | None]:
    """Makes a cell of kind `name`: its name, its address, and a note in small print."""
    return [text, url, note]


def make_value_cell(text: str, number: float | None) -> list[str | float | None]:
    """Makes a cell of kind `value`; an unknown number is None, and is sorted below known ones."""
    return [text, number]


def format_window_cell(start: str | None, end: str | None) -> str:
    """Formats a range of time in words; the page breaks its lines itself."""
    return words.format_window(start, end).replace("\u00a0", " ")


def make_chip_cell(key: str, label: str, rank: int = 0) -> list[str | int]:
    """Makes a cell of kind `chip`: `key` is ours and gives the colour, `rank` gives the order."""
    return [key, label, rank]


def make_bar_cell(
    label: str, share: float | None, text: str, tone: str = "plain"
) -> list[str | float | None]:
    """Makes one bar of a cell of kind `bars`: a share of the width, None if it is not known."""
    return [label, share, text, tone]


def make_table_part(
    columns: Sequence[tuple[str, CellKind]],
    rows: Sequence[Sequence[Any]],
    *,
    title: str = "",
    note: str = "",
    key: str = "",
) -> list[PageItem]:
    """Makes a table to sort and search, as a list of one part; no part if it has no rows."""
    if not rows:
        return []
    heads = [list(column) for column in columns]
    return [
        {
            "type": "table",
            "title": title,
            "note": note,
            "key": key,
            "columns": heads,
            "rows": [list(row) for row in rows],
        }
    ]


def make_prose_part(*texts: str | None, title: str = "") -> list[PageItem]:
    """Makes a part of sentences, one below the other; no part if there is none."""
    sentences = [text for text in texts if text]
    return [{"type": "prose", "title": title, "texts": sentences}] if sentences else []


def make_code_part(text: str, title: str = "") -> list[PageItem]:
    """Makes a part of lines as they are; no part if there is no text."""
    return [{"type": "code", "title": title, "text": text}] if text else []


def make_section_part(
    id_: str, title: str, parts: Sequence[PageItem], count: int | None = None, *, short: str = ""
) -> list[PageItem]:
    """Makes a section, as a list of one; no section if it has no parts.

    Args:
        short: Its name in the list of sections.
    """
    if not parts:
        return []
    called = {"id": id_, "title": title, "short": short or title, "count": count}
    return [{**called, "parts": list(parts)}]
