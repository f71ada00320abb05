"""The demo's page shows a comment as GitHub's own parser does, and nothing in it can act."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from ci_bot.bot.cli.demo_pages import ShownDemoFiles, render_demo_page_of_comments
from ci_bot.bot.report.markdown.comments import render_review_comment
from tests.factories import make_apply, make_context, make_report, make_risk
from tests.golden.samples import SAMPLES

_ALERT = re.compile(r"\[!\w+\]\s*")
HOSTILE = "a`<script>alert(1)</script>` [x](javascript:alert(1)) | </code><img src=x onerror=y>"


class Text(HTMLParser):
    """What a reader sees, and the elements with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._quiet = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._quiet += tag in ("style", "title")

    def handle_endtag(self, tag: str) -> None:
        self._quiet -= tag in ("style", "title")

    def handle_data(self, data: str) -> None:
        if not self._quiet:
            self.words += data.split()


def read(page: str) -> Text:
    found = Text()
    found.feed(page)
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_page__has_the_words_of_githubs_own_parser(name: str) -> None:
    comment = SAMPLES[name]()
    options = Options.CMARK_OPT_UNSAFE
    theirs = read(cmarkgfm.github_flavored_markdown_to_html(comment, options=options))
    ours = read(render_demo_page_of_comments("x", {"": comment}))
    said = "".join(ours.words).replace("thesourceofapicture,whichGitHubdraws:", "")
    assert said == _ALERT.sub("", "".join(theirs.words))
    for tag in ("table", "details", "summary", "tr", "td", "th", "code", "pre", "a", "strong"):
        count = [sum(kind == tag for kind, _ in found.elements) for found in (ours, theirs)]
        assert count[0] == count[1], tag


def test_page__is_alone_and_forbids_everything() -> None:
    page = render_demo_page_of_comments("x", {"One": SAMPLES["small_change"]()})
    assert "default-src 'none'" in page
    tags = {tag for tag, _ in read(page).elements}
    assert not tags & {"script", "img", "link", "iframe", "object", "base", "form"}


def test_page__shows_hostile_text_and_runs_none_of_it() -> None:
    report = make_report(
        risks=[make_risk(model=HOSTILE, evidence=HOSTILE)], reasons=[HOSTILE, f"`{HOSTILE}`"]
    )
    page = render_demo_page_of_comments(
        HOSTILE, {HOSTILE: render_review_comment(report, make_context()).text}
    )
    found = read(page)
    allowed = {"a": {"href"}, "meta": {"charset", "http-equiv", "content", "name"}}
    allowed |= {"html": {"lang"}, "details": {"open"}, "th": {"style"}, "td": {"style"}}
    for tag, attributes in found.elements:
        assert tag not in ("script", "img"), tag
        assert set(attributes) <= allowed.get(tag, set()), (tag, attributes)
        assert attributes.get("style") in (None, "text-align:left", "text-align:right")
        assert not (attributes.get("href") or "https://").lower().startswith("javascript")
    assert "<script>alert(1)</script>" in " ".join(found.words)


def test_page__does_not_lead_where_nothing_is() -> None:
    comment = "[head](https://github.com/octo/flights/commit/1) [rule](https://example.org/r)"
    page = render_demo_page_of_comments(
        "x", {"": comment}, nowhere="https://github.com/octo/flights"
    )
    links = [attributes["href"] for tag, attributes in read(page).elements if tag == "a"]
    assert links == ["https://example.org/r"]
    assert "head" in read(page).words


def test_shown__names_its_files_at_the_end(tmp_path: Path) -> None:
    shown = ShownDemoFiles(tmp_path / "a b")
    assert list(shown.list_files()) == [], "nothing was shown"
    shown.add_document(
        "The comment after the review", "report", make_report(), "2026-08-22T12:00:00Z", number=7
    )
    shown.add_document(
        "The comment after the apply", "apply", make_apply(), "2026-08-22T12:30:00Z", number=7
    )
    lines = list(shown.list_files())
    (page,) = [line.split()[0] for line in lines if "the comment" in line]
    assert page == (tmp_path / "a b/comment.html").as_uri()
    words = read((tmp_path / "a b/comment.html").read_text("utf-8")).words
    assert " ".join(words).count("The comment after the") == 2
    assert {path.name for path in (tmp_path / "a b").iterdir()} >= {
        *("comment.html", "report.json", "report.md", "apply.json", "apply.md"),
    }
    (tmp_path / "a b/report.html").write_text("x")
    assert any("report.html   the full report" in line for line in shown.list_files())
