"""The parts that the page's script can draw, as plain data. Every text in them is untrusted.

Of a text the script shows what stands between backticks as code, and nothing else of it has a
meaning: it never becomes markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ci_bot.bot.report import words

# found: a text, and other places with their addresses and texts.
# name: a model, with the address of its file. value: a text, and the number that it is sorted by.
CellKind = Literal[
    "text", "found", "name", "rule", "number", "value", "chip", "names", "strip", "bars", "diff"
]
# What the page's program draws: data for its JSON, whose keys are a contract with `templates`.
PageItem = dict[str, Any]


def make_name_cell(text: str, url: str | None = None, note: str = "") -> list[str | None]:
    """A cell of kind `name`: what it is called, where it leads, and a word in small print."""
    return [text, url, note]


def make_value_cell(text: str, number: float | None) -> list[str | float | None]:
    """A cell of kind `value`: unknown is None, and stands below everything that is known."""
    return [text, number]


def format_window_cell(start: str | None, end: str | None) -> str:
    """A range of time in words; the page breaks its lines itself."""
    return words.format_window(start, end).replace("\u00a0", " ")


def make_chip_cell(key: str, label: str, rank: int = 0) -> list[str | int]:
    """A cell of kind `chip`: `key` is ours and gives the colour, `rank` is what it is sorted by."""
    return [key, label, rank]


def make_bar_cell(
    label: str, share: float | None, text: str, tone: str = "plain"
) -> list[str | float | None]:
    """One bar of a cell of kind `bars`: a share of the width, None if nobody knows it."""
    return [label, share, text, tone]


def make_table_part(
    columns: Sequence[tuple[str, CellKind]],
    rows: Sequence[Sequence[Any]],
    *,
    title: str = "",
    note: str = "",
    key: str = "",
) -> list[PageItem]:
    """A table to sort and search, as a list of one part; no part where it has no rows."""
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
    """Sentences, one below the other; no part if there is none."""
    sentences = [text for text in texts if text]
    return [{"type": "prose", "title": title, "texts": sentences}] if sentences else []


def make_code_part(text: str, title: str = "") -> list[PageItem]:
    """Lines as they are."""
    return [{"type": "code", "title": title, "text": text}] if text else []


def make_section_part(
    id_: str, title: str, parts: Sequence[PageItem], count: int | None = None, *, short: str = ""
) -> list[PageItem]:
    """A section as a list of one; none if it has no parts.

    Args:
        short: What the list of sections calls it.
    """
    if not parts:
        return []
    called = {"id": id_, "title": title, "short": short or title, "count": count}
    return [{**called, "parts": list(parts)}]
