"""What a demo leaves for its reader: the comment in each state, and the complete reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ci_bot.bot.comment.context import CommentContext
from ci_bot.bot.comment.parts.budget import COMMENT_BYTES
from ci_bot.bot.demo.comment_page import comment_page
from ci_bot.bot.report_files import Texts, write_files
from ci_bot.bot.terminal.report_text import Document, to_markdown, to_page
from ci_bot.contracts.base import Timestamp
from ci_bot.contracts.documents.report import Report

ENVIRONMENT = "pr_7"
_SERVER, _REPOSITORY = "https://github.com", "your-org/flights"
_PAGE = "comment.html"


class Shown:
    """Files in `directory`, which is made with the first of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._comments: dict[str, str] = {}
        self._review: Report | None = None

    def add(self, heading: str, name: str, document: Document, now: Timestamp) -> None:
        """Keeps a document as a pull request would show it, under a heading, and as files."""
        context = CommentContext(
            project="flights",
            environment=ENVIRONMENT,
            now=now,
            phase="planned",
            repository=_REPOSITORY,
            server_url=_SERVER,
            pr_number=7,
            base_name="main",
        )
        if isinstance(document, Report):
            self._review = document
        texts = Texts(
            markdown=lambda: to_markdown(document, context),
            page=lambda: to_page(document, context, self._review),
        )
        write_files(self._directory, name, document, texts)
        self._comments[heading] = to_markdown(document, context, COMMENT_BYTES)
        comments = comment_page(
            "Pull request #7", self._comments, nowhere=f"{_SERVER}/{_REPOSITORY}"
        )
        (self._directory / _PAGE).write_text(comments, encoding="utf-8")

    def files(self) -> Iterator[str]:
        """What there is to open, a line each; nothing where nothing was shown."""
        if not self._comments:
            return
        yield ""
        yield "━━ To look at in a browser"
        pages = [_PAGE, *sorted({p.name for p in self._directory.glob("*.html")} - {_PAGE})]
        for name in pages:
            what = "the comment, as GitHub shows it" if name == _PAGE else "the full report"
            yield f"   {(self._directory / name).as_uri()}   {what}"
        yield f"   The complete JSON and Markdown files are beside it. Remove {self._directory} "
        yield "   when you have seen enough."
        yield ""
