"""Our own Markdown as plain text: the comment's words on a terminal, without a second renderer.

It reads what `ci_bot.bot.report` writes and no other Markdown: there untrusted text stands in code
spans and fences only, and each block begins at the start of a line.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from itertools import groupby

from ci_bot.bot.report.markdown.blocks import FencedBlock, split_passages
from ci_bot.bot.report.text.page import WIDTH, TextPage

_COLORS = {
    **dict.fromkeys("🟢✅🧹", "green"),
    **dict.fromkeys("🟡🟠⚠⏹", "yellow"),
    **dict.fromkeys("🔴❌💥⛔", "red"),
}
# Readers of a terminal have no use for the source of a picture.
_PICTURE = re.compile(r"<details><summary>[^\n]*\n\n```mermaid\n.*?\n</details>\n", re.DOTALL)
_HEADING = re.compile(r"\*\*([^*:]+)\*\*( \(\d[\d,]*\))?")
_FACT = re.compile(r"\*\*([^*:]{1,12}):\*\*\s*(.*)")
_ITEM = re.compile(r"(-|\d+\.) (.*)")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# Of ours: in other people's words an underscore stands in a span, or as its number.
_EMPHASIS = re.compile(r"(?<!\S)_(\S.*?\S)_(?!\S)")
_TAG = re.compile(r"</?[a-z]+(?: open)?/?>")
# No text of a report holds one: an unusual character is written with its number there.
PLACE = "\ue000"
# A table is drawn as one where its first column keeps at least so many characters.
_LEAST_NAME = 24
# One of what columns count.
_ONE = {"intervals": "interval", "batches": "batch", "rows": "row", "tables": "table"}
# So long is a cell that still stands beside the first one, where there is no table.
_BESIDE = 64


def render_plain(markdown: str, *, colour: bool = False, width: int = WIDTH) -> str:
    """The text of a comment, complete but for pictures, ending in a newline.

    Args:
        markdown: As this package's templates render it.
        colour: Whether the output is a terminal that shows colours.
        width: Columns to wrap at; what is to be copied may be wider.
    """
    page = TextPage(width=width, color=colour)
    markdown = _PICTURE.sub("", markdown)
    for passage in split_passages(markdown):
        if isinstance(passage, FencedBlock):
            page.add_block("\n".join(passage.lines), diff=passage.language == "diff")
        else:
            _add_text(page, passage, width)
    return page.render_text()


def _add_text(page: TextPage, lines: Sequence[str], width: int) -> None:
    for kind, found in groupby(lines, _classify_line):
        _SHOW[kind](page, list(found), width)


def _classify_line(line: str) -> str:
    starts = {"": "nothing", "<!--": "nothing", "</details>": "nothing"}
    starts |= {"<details": "section", "## ": "title", "|": "table", ">": "alert"}
    for start, kind in starts.items():
        if line.startswith(start) and (start or not line):
            return kind
    return "item" if _ITEM.fullmatch(line) else "text"


def _add_title(page: TextPage, lines: Sequence[str], _width: int) -> None:
    text = _strip_markup(lines[0].removeprefix("## "))
    page.add_title(text, _COLORS.get(text[:1]))


def _add_section(page: TextPage, lines: Sequence[str], _width: int) -> None:
    page.add_heading(_strip_markup(lines[0]))


def _add_alert(page: TextPage, lines: Sequence[str], _width: int) -> None:
    label, *rest = (line.lstrip("> ") for line in lines)
    page.add_fact(label.strip("[!]"), _strip_markup(" ".join(rest)))


def _add_items(page: TextPage, lines: Sequence[str], _width: int) -> None:
    for number, line in enumerate(lines, start=1):
        mark, _, text = line.partition(" ")
        # Markdown counts by itself, whatever number each item has.
        page.add_item(_strip_markup(text), mark=mark if mark == "-" else f"{number}.")


def _add_paragraph(page: TextPage, lines: Sequence[str], _width: int) -> None:
    text = " ".join(lines)
    fact = _FACT.fullmatch(text)
    if _HEADING.fullmatch(text):
        page.add_heading(_strip_markup(text))
    elif fact and fact[2]:
        page.add_fact(fact[1], _strip_markup(fact[2]))
    else:
        page.add_paragraph(_strip_markup(text))


def _add_table(page: TextPage, lines: Sequence[str], width: int) -> None:
    header, _, *body = map(_split_cells, lines)
    # Two columns, of which the first has no name, are facts; rows before and after have more.
    if not header[0] and not header[2:]:
        page.add_heading(header[1])
        for label, text in body:
            page.add_fact(label, text)
        return
    columns = list(zip(header, *body, strict=True))
    rest = sum(max(map(len, column)) + 2 for column in columns[1:])
    page.add_gap()
    if rest + min(_LEAST_NAME, max(map(len, columns[0]))) <= width:
        page.add_table(header, body)
        return
    for name, *values in body:
        cells = list(zip(header[1:], values, strict=True))
        beside = [_format_amount(label, value) for label, value in cells if len(value) <= _BESIDE]
        page.add_item(" · ".join([name, *filter(None, beside)]))
        for label, value in cells:
            if len(value) > _BESIDE:
                page.add_note(f"{label}: {value}", indent=6)


def _format_amount(label: str, value: str) -> str:
    """A short cell: a number says of what it is one, and what there is none of is left out."""
    if value == "–":
        return ""
    if value == "1":
        return f"1 {_ONE.get(label.lower(), label.lower())}"
    return f"{value} {label.lower()}" if value.replace(",", "").isdigit() else value


def _split_cells(line: str) -> list[str]:
    text, spans = extract_code_spans(line)
    return [_restore_spans(cell.strip(), spans) for cell in text.strip("|").split("|")]


def _strip_markup(text: str) -> str:
    return _restore_spans(*extract_code_spans(text))


def extract_code_spans(text: str) -> tuple[str, list[str]]:
    """`text` with its code spans taken out, so that nothing in them is taken for markup."""
    spans: list[str] = []

    def take_span(span: re.Match[str]) -> str:
        content = span[2].replace("\\|", "|")
        padded = content[:1] == content[-1:] == " " and content.strip()
        spans.append(content[1:-1] if padded else content)
        return PLACE

    return _SPAN.sub(take_span, text), spans


def _restore_spans(text: str, spans: list[str]) -> str:
    """Our own words without markup, the spans back in their places (and off the list)."""
    # The icons' own request for colours is an invisible character, which Page would show.
    text = text.replace("<br>", " · ").replace("\ufe0f", "")
    text = html.unescape(
        _TAG.sub("", _EMPHASIS.sub(r"\1", _LINK.sub(r"\1", text)).replace("**", ""))
    )
    text = text.replace("\u00a0", " ")
    return re.sub(PLACE, lambda _: spans.pop(0), text)


_SHOW: dict[str, Callable[[TextPage, Sequence[str], int], None]] = {
    "nothing": lambda _page, _lines, _width: None,
    "title": _add_title,
    "section": _add_section,
    "alert": _add_alert,
    "item": _add_items,
    "table": _add_table,
    "text": _add_paragraph,
}
