"""Comments as one HTML page that opens from disk, for people who have no pull request to look at.

The page loads nothing and runs no script: it forbids both itself.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token

from ci_bot.bot.report import (
    COMMENT_BYTES,
    CommentViewContext,
    Document,
    DocumentTexts,
    render_html_page_of_document,
    render_markdown_text,
    write_files,
)
from ci_bot.protocol.base import Timestamp
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.review_report import Report

_ALERT = re.compile(r"\[!\w+\] *")

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
    """Renders the page.

    Args:
        comments: Markdown of this package's templates, by its heading.
        nowhere: Links that begin with this are shown as text, because a demo has no repository.
    """
    body = "\n".join(
        f"<h1>{html.escape(heading)}</h1>\n"
        f"<article>\n{_render_demo_article(text, nowhere)}\n</article>"
        for heading, text in comments.items()
    )
    return _COMMENT_PAGE.format(title=html.escape(title), style=_STYLE, body=body)


def _render_demo_article(markdown: str, nowhere: str) -> str:
    reader = MarkdownIt("commonmark").enable("table")
    reader.add_render_rule("fence", _render_demo_fence)
    tokens = reader.parse(markdown)
    for token in tokens:
        if token.children:
            token.children = list(_list_shown_demo_tokens(token.children, nowhere))
    return str(reader.renderer.render(tokens, reader.options, {}))


def _render_demo_fence(
    _renderer: RendererProtocol, tokens: Sequence[Token], index: int, *_more: object
) -> str:
    token = tokens[index]
    body = html.escape(token.content.removesuffix("\n")).split("\n")
    if token.info == "diff":
        tags = {"+": "ins", "-": "del"}
        body = [f"<{tag}>{line}</{tag}>" if (tag := tags.get(line[:1])) else line for line in body]
    kind = "the source of a picture, which GitHub draws:\n" if token.info == "mermaid" else ""
    return f"<pre><code>{kind}{chr(10).join(body)}</code></pre>\n"


def _list_shown_demo_tokens(tokens: Iterable[Token], nowhere: str) -> Iterator[Token]:
    """Yields the tokens to show: without GitHub's word for an alert and links that lead nowhere."""
    is_link = True
    for number, token in enumerate(tokens):
        if token.type == "link_open":
            url = str(token.attrs["href"])
            is_link = url.startswith("https://") and not (nowhere and url.startswith(nowhere))
        if token.type == "text" and number == 0:
            token.content = _ALERT.sub("", token.content)
        if is_link or token.type not in ("link_open", "link_close"):
            yield token


# The files that a demo leaves for its reader: the comment in each state, and the full reports.


def name_demo_environment(number: int) -> EnvironmentName:
    """Returns the environment of one of the demo's pull requests."""
    return EnvironmentName(f"pr_{number}")


_SERVER, _REPOSITORY = "https://github.com", "octo/flights"

_COMMENT_FILE = "comment.html"


class ShownDemoFiles:
    """Files in `directory`, which is made when the first of them is written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._comments: dict[str, str] = {}
        self._review: Report | None = None

    def add_document(
        self, heading: str, name: str, document: Document, now: Timestamp, *, number: int
    ) -> None:
        """Adds a document as pull request `number` would show it, and writes its files."""
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
            # A cleanup's page would replace the apply's.
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
        """Yields a line for each file to open; nothing if no document was added."""
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
