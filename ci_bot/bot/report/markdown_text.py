"""Keeps untrusted text from becoming Markdown, HTML, a mention or a link, in a sentence or alone.

GitHub does not turn text in code spans and fences into mentions, references, commits or emoji, and
CommonMark gives no markup a meaning there. An HTML entity is no such protection: `&#64;` is decoded
before GitHub looks for mentions. So every escape here ends in a code span, a fence, or words that
hold only letters.
Sources: CommonMark 0.31 sections 4.5 and 6.1, GitHub's table extension, both tried with cmarkgfm.

A rule writes "drops column `segment` of `mart.orders`", and a model's name may contain any
character, also the backtick. So the sentence is not trusted: words of plain letters and ordinary
numbers are printed as they are, and every other token (`@team`, `#12`, `a.b`, `https://...`, a
commit, a tag) goes into a code span of its own. Text between backticks stays together as one span.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from ci_bot.redaction import strip_terminal_codes_for_redaction

NAME_LIMIT = 120
ELLIPSIS = "…"

# Letters and marks that nobody sees in print although Unicode calls them printable.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}

_BREAKS = re.compile(r"\r\n|[\r\n\t\v\f]")
_BACKTICKS = re.compile(r"`+")
# cmark accepts no span of more than 80 backticks, and a fence of 255 closes every longer one.
_LONG_RUN = re.compile(r"`{40,}")


class SafeMarkdown(str):
    """Text that is Markdown on purpose. Any operation on it returns a plain, untrusted `str`."""

    __slots__ = ()

    def __html__(self) -> SafeMarkdown:
        """Returns itself: Jinja's autoescape calls this and takes the answer as it is."""
        return self


def reveal_invisible(text: str, keep: str = "") -> str:
    """Returns `text` without terminal sequences, and with invisible characters as `\\u{hex}`.

    It shows all bidirectional controls, zero-width characters, control characters, lone surrogates
    and unusual spaces, so that nobody reads a name that does not exist. `keep` lists exceptions. A
    run of 40 backticks or more is written with its length, because no span or fence can hold it.
    """
    text = _LONG_RUN.sub(
        lambda run: f"\\u{{60}}×{len(run[0])}", strip_terminal_codes_for_redaction(text)
    )
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char
        if char in keep or (char.isprintable() and char not in _BLANK)
        else f"\\u{{{ord(char):x}}}"
        for char in text
    )


def clip_text(text: str, limit: int | None) -> str:
    """Returns at most `limit` characters of `text`, the last one an ellipsis if it was cut."""
    if limit is None or len(text) <= limit:
        return text
    return text[: max(limit - 1, 0)].rstrip() + ELLIPSIS


def one_line(text: str, limit: int | None = None) -> str:
    """Returns `text` on one line, with everything in it visible, cut to `limit` characters."""
    return clip_text(reveal_invisible(_BREAKS.sub(" ", text)), limit)


def make_code_span(text: str, limit: int | None = NAME_LIMIT) -> SafeMarkdown:
    """Makes a code span that ends where we end it, for text outside of tables."""
    return _make_span(one_line(text, limit))


def make_table_cell(text: str, limit: int | None = NAME_LIMIT) -> SafeMarkdown:
    """Makes a code span for a table cell: even in a span a pipe splits the cell unless escaped."""
    return SafeMarkdown(_make_span(one_line(text, limit)).replace("|", "\\|"))


def _make_span(shown: str) -> SafeMarkdown:
    if not shown:
        return SafeMarkdown("` `")
    ticks = "`" * (find_longest_run(shown) + 1)
    # The parser removes one space on each side again; without it a backtick at an end would join
    # our own.
    edges = shown[0] + shown[-1]
    pad = " " if "`" in edges or (" " in edges and shown.strip()) else ""
    return SafeMarkdown(f"{ticks}{pad}{shown}{pad}{ticks}")


def find_longest_run(text: str) -> int:
    """Returns the length of the longest run of backticks in `text`."""
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def split_visible_lines(text: str) -> list[str]:
    """Returns the lines of `text` as a fence shows them."""
    return reveal_invisible(_normalize_newlines(text), keep="\n\t").rstrip("\n").split("\n")


def make_fenced_block(text: str, language: str = "") -> SafeMarkdown:
    """Makes a fence longer than any run of backticks in `text`; `language` is ours, never data."""
    body = "\n".join(split_visible_lines(text))
    ticks = "`" * max(3, find_longest_run(body) + 1)
    return SafeMarkdown(f"{ticks}{language}\n{body}\n{ticks}")


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def html_code(text: str, limit: int | None = NAME_LIMIT) -> SafeMarkdown:
    """Makes a `<code>` element for places that do not read Markdown, such as `<summary>`."""
    return SafeMarkdown(f"<code>{html.escape(one_line(text, limit))}</code>")


_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:/[A-Za-z0-9._~%/?=&#:@+-]*)?")


def make_link(label: SafeMarkdown, url: str | None) -> SafeMarkdown:
    """Links `label` to a URL that we built; returns only the label if the URL is not plain."""
    if url is None or not _URL.fullmatch(url) or "/../" in f"{url}/":
        return label
    return SafeMarkdown(f"[{label}]({url})")


# Latin letters only: right-to-left scripts would reorder our own text around them.
_LETTER = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
_WORD = re.compile(rf"[{_LETTER}]{{1,40}}(?:['’-][{_LETTER}]{{1,40}}){{0,4}}|e\.g|i\.e")
# Seven digits in a row could be the short form of a commit.
_NUMBER = re.compile(
    r"[-+]?\d{1,6}(?:\.\d{1,6})?%?|[-+]?\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,6})?%?|\d{4}-\d{2}-\d{2}"
)

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_SYMBOLS = frozenset("–—→≈≥≤×±…·")
_TOKEN = re.compile(r"`([^`]+)`|([^\s`]+|`)|(\s+)")
_EDGES = re.compile(r"([(\"“]?)(.*?)([.,;:!?)\"”]*)", re.DOTALL)
_LIST_ITEM = re.compile(r"[-+]?\d{1,9}[.)]")


def render_prose(text: str, limit: int | None = None) -> SafeMarkdown:
    """Renders a sentence for use outside of tables, at most `limit` characters of its text."""
    return _join_pieces(shorten_prose(text, limit), in_table=False)


def prose_cell(text: str, limit: int | None = None) -> SafeMarkdown:
    """Renders a sentence for a table cell."""
    return _join_pieces(shorten_prose(text, limit), in_table=True)


def shorten_prose(text: str, limit: int | None = None) -> str:
    """Returns `text` on one line in at most `limit` characters: whole words, no half of a span."""
    whole = one_line(text)
    if limit is None or len(whole) <= limit:
        return whole
    kept = whole[: max(limit - 2, 0)]
    if " " not in kept.strip():
        return clip_text(whole, limit)
    if not whole[len(kept)].isspace():
        kept = kept[: kept.rindex(" ")]
    if kept.count("`") % 2:
        kept = kept[: kept.rindex("`")]
    return f"{kept.rstrip(' ,;:(')} {ELLIPSIS}"


def _join_pieces(text: str, *, in_table: bool) -> SafeMarkdown:
    span = make_table_cell if in_table else make_code_span
    parts: list[str] = []
    for piece, is_code in _split_pieces(text):
        shown = span(piece, None) if is_code else piece
        # Two adjacent spans would become one, because their backticks join.
        if is_code and parts and parts[-1].endswith("`"):
            parts.append(" ")
        parts.append(shown)
    return SafeMarkdown("".join(parts).strip() or span("", None))


def _split_pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yields the parts of the sentence in order, each with whether it needs a code span."""
    for number, match in enumerate(_TOKEN.finditer(text.strip())):
        quoted, token, space = match.groups()
        if quoted is not None:
            yield quoted, True
        elif space is not None:
            yield " ", False
        elif number == 0 and _LIST_ITEM.fullmatch(token):
            yield token, True
        else:
            yield from _split_markdown_word(token)


def _split_markdown_word(token: str) -> Iterator[tuple[str, bool]]:
    if token in _SYMBOLS:
        yield token, False
        return
    before, core, after = _EDGES.fullmatch(token).groups()  # type: ignore[union-attr]  # it matches every text
    if core.count("(") > core.count(")") and after.startswith(")"):
        core, after = f"{core})", after[1:]
    if not core and not before and after[:1] in '!"':
        before, core, after = "", token, ""
    if before:
        yield before, False
    if core:
        plain = (_WORD.fullmatch(core) or _NUMBER.fullmatch(core)) and not _COMMIT.fullmatch(core)
        yield core, not plain
    if after:
        yield after, False
