"""What a reader sees of a comment before anything is opened: its words, folds and tables."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.unit.report.dom import html, parse

_PICTURE = re.compile(r"```mermaid\n.*?\n```", re.DOTALL)
_LABEL = re.compile(r'\["(.*?)"\]')
_CODE = re.compile(r"#\d+;")


def above(comment: str) -> str:
    """The Markdown before the first fold."""
    return comment.partition("\n")[2].partition("<details")[0]


def words(comment: str) -> int:
    """The words above the first fold, those inside the picture among them."""
    text = above(comment)
    labels = [
        _CODE.sub("", label.replace("<br/>", " "))
        for picture in _PICTURE.findall(text)
        for label in _LABEL.findall(picture)
    ]
    page = parse(_PICTURE.sub("", text))
    shown = " ".join([*(told for _, told in page.texts), *labels])
    return sum(any(char.isalnum() for char in word) for word in shown.split())


def sentence(comment: str) -> str:
    """The first bold sentence, as it reads."""
    found = re.search(r"^\*\*(.*?)\*\*(?: |$)", above(comment), re.MULTILINE)
    return found[1].replace("`", "") if found else ""


class _Folds(HTMLParser):
    depth = count = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "details":
            self.count += self.depth == 0
            self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "details"


def folds(comment: str) -> int:
    """How many sections can be opened; what is inside another one is not counted."""
    page = _Folds()
    page.feed(html(comment))
    return page.count
