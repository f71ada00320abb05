"""Comments as one HTML page that opens from disk, for those who have no pull request to look at.

As `terminal.output.plain` it reads the Markdown that `ci_bot.bot.report` writes, and no other.
Nothing is loaded from anywhere, and no script runs: the page itself forbids both.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from ci_bot.bot.report import (
    COMMENT_BYTES,
    PLACE,
    CommentViewContext,
    Document,
    DocumentTexts,
    FencedMarkdownBlock,
    extract_code_spans,
    render_html_page_of_document,
    render_markdown_text,
    split_markdown_passages,
    write_files,
)
from ci_bot.protocol.base import Timestamp
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.review_report import Report

_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")

_BOLD = re.compile(r"\*\*(.+?)\*\*")

_EMPHASIS = re.compile(r"(?<!\S)_(\S.*?\S)_(?!\S)")
# Of ours: other people's text stands in spans and fences, which are taken out before.
_TAG = re.compile(r"&lt;(/?(?:sub|br|b|i|code|kbd|details|summary)(?: open)?/?)&gt;")

_ENTITY = re.compile(r"&amp;(#?\w{1,10};)")

_ITEM = re.compile(r"(-|\d+\.) (.*)")

_ALERT = re.compile(r"> \[!(\w+)\]")

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 900px; padding: 0 1rem; }
article { border: 1px solid var(--line); border-radius: 6px; margin: 0 0 2rem; padding: 0 1rem; }
h1 { font-size: 1.1rem; font-weight: 500; }
h2 { border-bottom: 1px solid var(--line); font-size: 1.4rem; padding-bottom: .3rem; }
table { border-collapse: collapse; display: block; margin: 1rem 0; overflow-x: auto; }
td, th { border: 1px solid var(--line); padding: .3rem .7rem; text-align: left; }
code { background: var(--soft); border-radius: 4px; font-size: 85%; padding: .15em .35em; }
pre { background: var(--soft); border-radius: 6px; overflow-x: auto; padding: .8rem; }
pre code { background: none; padding: 0; }
blockquote { border-left: 4px solid #d29922; margin: 1rem 0; padding: 0 1rem; }
summary { cursor: pointer; font-weight: 500; }
ins { color: #1a7f37; text-decoration: none; } del { color: #cf222e; text-decoration: none; }
"""

_COMMENT_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def render_demo_page_of_comments(
    title: str, comments: Mapping[str, str], *, nowhere: str = ""
) -> str:
    """The page.

    Args:
        comments: Markdown of this package's templates, by the heading that it gets.
        nowhere: Links that begin with this are shown as text; a demo's repository is not there.
    """
    body = "\n".join(
        f"<h1>{html.escape(heading)}</h1>\n"
        f"<article>\n{_render_demo_article(text, nowhere)}\n</article>"
        for heading, text in comments.items()
    )
    return _COMMENT_PAGE.format(title=html.escape(title), style=_STYLE, body=body)


def _render_demo_article(markdown: str, nowhere: str) -> str:
    def render_inline(text: str) -> str:
        return _render_demo_inline(text, nowhere)

    return "\n".join(_render_demo_blocks(markdown, render_inline))


def _render_demo_blocks(markdown: str, inline: Callable[[str], str]) -> Iterator[str]:
    for passage in split_markdown_passages(markdown):
        if isinstance(passage, FencedMarkdownBlock):
            yield _render_demo_fence(passage)
        else:
            yield from _render_demo_texts(passage, inline)


def _render_demo_fence(fence: FencedMarkdownBlock) -> str:
    body = [html.escape(line) for line in fence.lines]
    if fence.language == "diff":
        tags = {"+": "ins", "-": "del"}
        body = [f"<{tag}>{line}</{tag}>" if (tag := tags.get(line[:1])) else line for line in body]
    kind = "the source of a picture, which GitHub draws:\n" if fence.language == "mermaid" else ""
    return f"<pre><code>{kind}{chr(10).join(body)}</code></pre>"


def _render_demo_texts(lines: Sequence[str], inline: Callable[[str], str]) -> Iterator[str]:
    for kind, group in groupby(lines, _classify_demo_line):
        found = list(group)
        if kind == "heading":
            yield from (f"<h2>{inline(line.lstrip('# '))}</h2>" for line in found)
        elif kind == "tag":
            yield from map(inline, found)
        elif kind == "table":
            yield _render_demo_table(found, inline)
        elif kind == "alert":
            sentence = " ".join(inline(_ALERT.sub("", line).lstrip("> ")) for line in found)
            yield f"<blockquote><p>{sentence.strip()}</p></blockquote>"
        elif kind == "item":
            yield _render_demo_list(found, inline)
        elif kind == "text":
            yield f"<p>{' '.join(map(inline, found))}</p>"


def _classify_demo_line(line: str) -> str:
    starts = {"<!--": "nothing", "<details": "tag", "</details": "tag", "#": "heading"}
    starts |= {"|": "table", ">": "alert"}
    for start, kind in starts.items():
        if line.startswith(start):
            return kind
    if not line.strip():
        return "nothing"
    return "item" if _ITEM.fullmatch(line) else "text"


def _render_demo_table(lines: Sequence[str], inline: Callable[[str], str]) -> str:
    header, _, *body = [_split_demo_cells(line) for line in lines]
    rows = [("th", header), *(("td", row) for row in body)]
    markup = "\n".join(
        f"<tr>{''.join(f'<{tag}>{inline(cell)}</{tag}>' for cell in row)}</tr>" for tag, row in rows
    )
    return f"<table>\n{markup}\n</table>"


def _split_demo_cells(line: str) -> list[str]:
    """The cells of a row; an escaped bar in a span divides nothing."""
    text, spans = extract_code_spans(line)
    cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
    return [re.sub(PLACE, lambda _: _render_demo_code_span(spans.pop(0)), cell) for cell in cells]


def _render_demo_code_span(content: str) -> str:
    """A code span for `_inline`, whatever stands in it."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    mark = "`" * (longest + 1)
    return f"{mark} {content} {mark}" if content.strip() else f"{mark}{content}{mark}"


def _render_demo_list(lines: Sequence[str], inline: Callable[[str], str]) -> str:
    tag = "ul" if lines[0].startswith("-") else "ol"
    items = "\n".join(f"<li>{inline(line.partition(' ')[2])}</li>" for line in lines)
    return f"<{tag}>\n{items}\n</{tag}>"


def _render_demo_inline(text: str, nowhere: str) -> str:
    plain, spans = extract_code_spans(text)

    def render_link(found: re.Match[str]) -> str:
        label, url = found[1], found[2]
        is_there = url.startswith("https://") and not (nowhere and url.startswith(nowhere))
        return f'<a href="{url}">{label}</a>' if is_there else label

    escaped = _ENTITY.sub(r"&\1", html.escape(plain))
    escaped = _TAG.sub(r"<\1>", escaped)
    escaped = _EMPHASIS.sub(r"<em>\1</em>", _BOLD.sub(r"<strong>\1</strong>", escaped))
    linked = _LINK.sub(render_link, escaped)
    return re.sub(PLACE, lambda _: f"<code>{html.escape(spans.pop(0))}</code>", linked)


# What a demo leaves for its reader: the comment in each state, and the complete reports.


def name_demo_environment(number: int) -> EnvironmentName:
    """The environment of a pull request of the demo."""
    return EnvironmentName(f"pr_{number}")


_SERVER, _REPOSITORY = "https://github.com", "octo/flights"

_COMMENT_FILE = "comment.html"


class ShownDemoFiles:
    """Files in `directory`, which is made with the first of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._comments: dict[str, str] = {}
        self._review: Report | None = None

    def add_document(
        self, heading: str, name: str, document: Document, now: Timestamp, *, number: int
    ) -> None:
        """Keeps a document as pull request `number` would show it, and as files."""
        context = CommentViewContext(
            project="flights",
            environment=name_demo_environment(number),
            now=now,
            phase="planned",
            repository=_REPOSITORY,
            server_url=_SERVER,
            pr_number=number,
            base_name="main",
        )
        if isinstance(document, Report):
            self._review = document
        texts = DocumentTexts(
            markdown=lambda: render_markdown_text(document, context),
            # A cleanup's page would take the place of the apply's.
            page=lambda: (
                None
                if isinstance(document, CleanupDocument)
                else render_html_page_of_document(document, context, self._review)
            ),
        )
        write_files(self._directory, name, document, texts)
        self._comments[heading] = render_markdown_text(document, context, COMMENT_BYTES)
        comments = render_demo_page_of_comments(
            "Pull requests of the demo", self._comments, nowhere=f"{_SERVER}/{_REPOSITORY}"
        )
        (self._directory / _COMMENT_FILE).write_text(comments, encoding="utf-8")

    def list_files(self) -> Iterator[str]:
        """What there is to open, a line each; nothing if nothing was shown."""
        if not self._comments:
            return
        yield ""
        yield "━━ To look at in a browser"
        pages = [
            _COMMENT_FILE,
            *sorted({p.name for p in self._directory.glob("*.html")} - {_COMMENT_FILE}),
        ]
        for name in pages:
            what = "the comment, as GitHub shows it" if name == _COMMENT_FILE else "the full report"
            yield f"   {(self._directory / name).as_uri()}   {what}"
        yield f"   The complete JSON and Markdown files are beside it. Remove {self._directory} "
        yield "   when you have seen enough."
        yield ""
