"""Reads rendered Markdown the way GitHub does: cmark, then the elements and texts of the page."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

_VOID = {"br", "img", "hr", "input"}
QUOTES = ("code", "pre")
# Where the pages of the rules are in the samples: in the action's own repository.
DOCS_URL = "https://github.com/octo/sqlmesh-plan-review/blob/v0.1.0/docs/"
RULES_URL = f"{DOCS_URL}rules/"

# What GitHub brings to life in text that stands outside of code: mentions, references, commits,
# links, emoji and math. Invisible characters are no good there either.
LIVE = re.compile(
    r"@\w|#\d|\bGH-\d|https?://|\bwww\.|:[a-z0-9_+-]+:|\$"
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)


@dataclass
class Page(HTMLParser):
    """Every element and text of a page, in order."""

    tags: Counter[str] = field(default_factory=Counter)
    texts: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    attributes: set[tuple[str, str]] = field(default_factory=set)
    comments: list[str] = field(default_factory=list)
    unclosed: list[str] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in _VOID:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.unclosed and self.unclosed[-1] == tag:
            self.unclosed.pop()
        else:
            self.stray.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.unclosed), data))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def plain(self) -> list[str]:
        """Texts outside of code."""
        return [text for path, text in self.texts if not set(QUOTES) & set(path)]

    def under(self, tag: str) -> list[str]:
        """Texts anywhere below `tag`, one string for each run of them."""
        return [text for path, text in self.texts if tag in path]


def html(markdown: str) -> str:
    """GitHub's HTML of `markdown`, before its sanitizer: raw HTML stays, so that a test sees it."""
    return cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)


def parse(markdown: str) -> Page:
    """The page that `markdown` becomes."""
    page = Page()
    page.feed(html(markdown))
    page.close()
    return page


def assert_inert(markdown: str, repository: str = "shop/warehouse") -> Page:
    """No live text outside of code, all elements closed, and links to our own repository only."""
    page = parse(markdown)
    for text in page.plain:
        assert not LIVE.search(text), f"live outside of code: {text!r}"
    assert page.unclosed == [], f"left open: {page.unclosed}"
    assert page.stray == [], f"closed but never opened: {page.stray}"
    for url in page.links:
        pages = (
            *("reading-the-comment.md", "policy.md#owners-accept-findings"),
            "installation.md#step-by-step",
        )
        ours = url.startswith(RULES_URL) or url in {f"{DOCS_URL}{one}" for one in pages}
        assert ours or url.startswith(f"https://github.com/{repository}/"), url
        assert "/../" not in url
    assert page.tags["img"] == page.tags["script"] == 0
    assert not any(name.startswith("on") for _, name in page.attributes)
    return page
