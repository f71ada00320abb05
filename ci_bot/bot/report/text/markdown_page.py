"""A comment's Markdown as text: markdown-it reads it as GitHub does, and a `TextPage` draws it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.style import Style
from rich.text import Text

from ci_bot.bot.report.markdown_text import one_line
from ci_bot.bot.report.text.page import TextPage
from ci_bot.bot.report.text.screen import WIDTH

_COLORS = {
    **dict.fromkeys("🟢✅🧹", "green"),
    **dict.fromkeys("🟡🟠⚠⏹", "yellow"),
    **dict.fromkeys("🔴❌💥⛔", "red"),
}
# The source of a picture does not help readers of a terminal.
_PICTURE = re.compile(r"<details><summary>[^\n]*\n\n```mermaid\n.*?\n</details>\n", re.DOTALL)
_HEADING = re.compile(r"\*\*([^*:]+)\*\*( \(\d[\d,]*\))?")
_FACT = re.compile(r"\*\*[^*:]{1,12}:\*\* *\S")
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_ALERT = re.compile(r"\[!(\w+)\] *")
_TAG = re.compile(r"</?[a-z]+(?: open)?/?>")
# A table is drawn as a table if the names in its first column keep this many characters and a gap.
_LEAST_NAME = 26
# The singular of the nouns in column heads.
_ONE = {"intervals": "interval", "batches": "batch", "rows": "row", "tables": "table"}
# The longest cell that still follows the first one on its line, if no table is drawn.
_BESIDE = 64


def render_plain(markdown: str, *, colour: bool = False, width: int = WIDTH) -> str:
    """Returns the text of a comment, complete except for pictures, with a newline at its end.

    Args:
        markdown: As this package's templates render it.
        colour: Whether the output is a terminal that shows colours.
        width: Columns at which lines wrap; text to be copied may be wider.
    """
    page = TextPage(width=width, color=colour)
    tree = SyntaxTreeNode(_make_markdown_parser().parse(_PICTURE.sub("", markdown)))
    for node in tree.children:
        _ADD[node.type](page, node, width)
    return page.render_text()


@cache
def _make_markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _add_title(page: TextPage, node: SyntaxTreeNode, _width: int) -> None:
    text = _read_styled_words(node)
    page.add_title(text, _COLORS.get(text.plain[:1]))


def _add_sections(page: TextPage, node: SyntaxTreeNode, _width: int) -> None:
    """Adds the heading of a fold; other tags and comments add nothing."""
    for summary in _SUMMARY.findall(node.content):
        page.add_heading(html.unescape(_TAG.sub("", summary)))


def _add_alert(page: TextPage, node: SyntaxTreeNode, _width: int) -> None:
    for paragraph in node.children:
        text = _read_styled_words(paragraph)
        label = _ALERT.match(text.plain)
        page.add_fact(label[1] if label else "", text[label.end() if label else 0 :])


def _add_markdown_list(page: TextPage, node: SyntaxTreeNode, _width: int) -> None:
    for number, item in enumerate(node.children, start=1):
        mark = f"{number}." if node.type == "ordered_list" else "-"
        page.add_item(_join_styled_words(map(_read_styled_words, item.children)), mark=mark)


def _add_paragraph(page: TextPage, node: SyntaxTreeNode, _width: int) -> None:
    source, text = node.children[0].content, _read_styled_words(node)
    if _HEADING.fullmatch(source):
        page.add_heading(text)
    elif _FACT.match(source):
        label, _, _ = text.plain.partition(":")
        rest = text[len(label) + 1 :]
        page.add_fact(label, rest[len(rest.plain) - len(rest.plain.lstrip()) :])
    else:
        page.add_paragraph(text)


def _add_fence(page: TextPage, node: SyntaxTreeNode, _width: int) -> None:
    page.add_block(node.content.removesuffix("\n"), diff=node.info == "diff")


def _add_markdown_table(page: TextPage, node: SyntaxTreeNode, width: int) -> None:
    (header, *_), *rest = (part.children for part in node.children)
    names = [_read_styled_words(cell) for cell in header.children]
    body = [[_read_styled_words(cell) for cell in row.children] for part in rest for row in part]
    # Two columns, the first without a name, are facts; a table of rows before and after has more.
    if not names[0] and not names[2:]:
        page.add_heading(names[1])
        for label, text in body:
            page.add_fact(label.plain, text)
        return
    page.add_gap()
    if _count_least_width(names, body) <= width:
        page.add_table([name.plain for name in names], body)
        return
    for row in body:
        _add_markdown_row_as_item(page, [name.plain for name in names[1:]], row)


def _count_least_width(names: Sequence[Text], body: Sequence[Sequence[Text]]) -> int:
    """Returns the columns that a readable table needs; only its first column may be cut."""
    columns = zip(names, *body, strict=True)
    widths: list[int] = [max(cell.cell_len for cell in column) + 2 for column in columns]
    if not any(" " in row[0].plain for row in body):
        widths[0] = min(_LEAST_NAME, widths[0])
    return sum(widths)


def _add_markdown_row_as_item(page: TextPage, labels: Sequence[str], row: Sequence[Text]) -> None:
    name, *values = row
    cells = list(zip(labels, values, strict=True))
    beside = [_add_unit(label, text) for label, text in cells if len(text) <= _BESIDE]
    page.add_item(_join_styled_words([name, *filter(None, beside)], between=" · "))
    for label, text in cells:
        if len(text) > _BESIDE:
            page.add_note(Text.assemble(f"{label}: ", text), indent=6)


def _add_unit(label: str, text: Text) -> Text:
    """Adds its unit to a number in a short cell; a cell with a dash is left out."""
    label = label.lower()
    if text.plain == "–":
        return Text()
    if not text.plain.replace(",", "").isdigit():
        return text
    if label not in _ONE:
        return Text(f"{label} {text.plain}")
    return Text(f"{text.plain} {_ONE[label] if text.plain == '1' else label}")


def _join_styled_words(parts: Iterable[Text], between: str = " ") -> Text:
    return Text(between).join(parts)


def _read_styled_words(block: SyntaxTreeNode) -> Text:
    """Returns the words of a paragraph, a heading or a cell, with bold words and links."""
    text = Text()
    for inline in block.children:
        _append_words(text, inline, Style())
    return text


def _append_words(text: Text, node: SyntaxTreeNode, style: Style) -> None:
    if node.type in ("text", "code_inline"):
        # After an icon an invisible character asks for colours, and it would be shown here.
        words = node.content.replace("\u00a0", " ").replace("\ufe0f", "")
        text.append(one_line(words), style)
    elif node.type in ("softbreak", "hardbreak"):
        text.append(" ")
    elif node.type == "html_inline":
        text.append("" if node.content != "<br>" or _is_inside_name(node) else " · ")
    elif node.type == "strong":
        style += Style(bold=True)
    elif node.type == "link":
        style += Style(link=str(node.attrs["href"]))
    for child in node.children:
        _append_words(text, child, style)


def _is_inside_name(node: SyntaxTreeNode) -> bool:
    """Whether a break divides a long name after a dot, to fit into a narrow comment."""
    before = node.previous_sibling
    return before is not None and before.type == "code_inline" and before.content.endswith(".")


_ADD: dict[str, Callable[[TextPage, SyntaxTreeNode, int], None]] = {
    "heading": _add_title,
    "html_block": _add_sections,
    "blockquote": _add_alert,
    "bullet_list": _add_markdown_list,
    "ordered_list": _add_markdown_list,
    "paragraph": _add_paragraph,
    "fence": _add_fence,
    "table": _add_markdown_table,
    "hr": lambda page, _node, _width: page.add_gap(),
}
