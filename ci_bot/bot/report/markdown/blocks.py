"""Finds the blocks of a text that this package rendered, so that it can be cut between them.

In our own output a line of backticks and a language opens or closes a fence, and `<details>` and
`</details>` start a line; untrusted text reaches the start of a line inside fences only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"(`{3,})([a-z]*)$")
_OPEN, _CLOSE = "<details", "</details>"
REVIEW_START = "<!-- review -->"
REVIEW_END = "<!-- /review -->"


def iterate_markdown_lines_with_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Every line of `text`, with whether it stands outside of every fence."""
    fence = ""
    for line in _split_markdown_lines(text):
        match = _FENCE.match(line)
        if not fence:
            yield line, match is None
            fence = match[1] if match else ""
        else:
            yield line, False
            if match and not match[2] and len(match[1]) >= len(fence):
                fence = ""


def _split_markdown_lines(text: str) -> Iterator[str]:
    """`text.split("\\n")`, a line at a time: a large report has tens of thousands."""
    begin = 0
    while (end := text.find("\n", begin)) >= 0:
        yield text[begin:end]
        begin = end + 1
    yield text[begin:]


def split_markdown_blocks(text: str) -> list[str]:
    """The top-level blocks: paragraphs, tables, fences, and each `<details>` with all it holds."""
    blocks: list[list[str]] = [[]]
    depth = 0
    for line, outside in iterate_markdown_lines_with_fences(text):
        if outside and depth == 0 and not line.strip():
            blocks.append([])
            continue
        blocks[-1].append(line)
        if outside:
            depth += line.startswith(_OPEN)
            depth -= line.startswith(_CLOSE)
    return ["\n".join(block) for block in blocks if block]


def trim_markdown_blocks(text: str, budget: int | None) -> tuple[str, int, int]:
    """The blocks of `text` that fit into `budget` bytes, their number, and the number of all.

    A block that is too large is left out whole, and later ones may still fit.
    """
    blocks = split_markdown_blocks(text)
    if budget is None:
        return text, len(blocks), len(blocks)
    kept: list[str] = []
    left = budget
    for block in blocks:
        needed = len(block.encode()) + 2
        if needed <= left:
            kept.append(block)
            left -= needed
    return "\n\n".join(kept), len(kept), len(blocks)


def tidy_blank_markdown_lines(text: str) -> str:
    """`text` without doubled blank lines; fences keep theirs."""
    result: list[str] = []
    for line, outside in iterate_markdown_lines_with_fences(text):
        if outside and not line.strip():
            if result and result[-1] != "":
                result.append("")
            continue
        result.append(line.rstrip() if outside else line)
    return join_markdown_lines(result)


def join_markdown_lines(lines: Sequence[str]) -> str:
    """A text of these lines without empty ones at its ends, and one newline at its end.

    Made at once, without a copy: an icon makes four bytes of every letter of a text.
    """
    begin, end = 0, len(lines)
    while begin < end and not lines[begin]:
        begin += 1
    while begin < end and not lines[end - 1]:
        end -= 1
    return "\n".join([*lines[begin:end], ""]) or "\n"


def lift_review_from_comment_body(body: str) -> str:
    """The review inside a comment that this package rendered; empty if there is none."""
    parts: list[str] = []
    inside = False
    for line, outside in iterate_markdown_lines_with_fences(body.replace("\r\n", "\n")):
        if outside and line in (REVIEW_START, REVIEW_END):
            inside = line == REVIEW_START
            parts.append("")
        elif inside:
            parts.append(line)
    return tidy_blank_markdown_lines("\n".join(parts)).strip("\n")
