"""Each escape, judged by what GitHub's own parser makes of its output."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from ci_bot.bot.report.markdown_text import (
    SafeMarkdown,
    clip_text,
    html_code,
    make_code_span,
    make_fenced_block,
    make_link,
    make_table_cell,
    one_line,
    prose_cell,
    render_prose,
    reveal_invisible,
    split_visible_lines,
)
from tests.unit.report.dom import LIVE, assert_inert, parse
from tests.unit.report.evil import CORPUS, TEXTS

Escape = Callable[[str], str]


def whole(escape: Callable[..., SafeMarkdown]) -> Escape:
    return lambda text: escape(text, None)


def shown(text: str) -> str:
    return one_line(text) or " "


def check_span(escape: Escape, text: str) -> None:
    page = assert_inert(f"A {escape(text)} Z")
    assert page.tags == {"p": 1, "code": 1}
    assert "".join(page.under("code")) == shown(text)
    assert "".join(text for path, text in page.texts).rstrip("\n") == f"A {shown(text)} Z"


def check_cell(escape: Escape, text: str) -> None:
    table = f"| one | two |\n|:--|:--|\n| {escape(text)} | second |\n| third | fourth |"
    page = assert_inert(table)
    assert page.tags["td"] == 4
    assert "".join(page.under("code")) == shown(text)
    assert [text for path, text in page.texts if path and path[-1] == "td"] == [
        "second",
        "third",
        "fourth",
    ]


def check_fence(escape: Escape, text: str) -> None:
    page = assert_inert(f"<details><summary>x</summary>\n\n{escape(text)}\n\n</details>\n\nafter")
    assert page.tags == {"details": 1, "summary": 1, "pre": 1, "code": 1, "p": 1}
    content = "".join(page.under("pre")).split("\n")
    assert content[:-1] == split_visible_lines(text) or "".join(split_visible_lines(text)) == ""
    assert page.texts[-2][1] == "after"


def check_html_code(escape: Escape, text: str) -> None:
    page = assert_inert(
        f"<details><summary>x {escape(text)}</summary>\n\nin\n\n</details>\n\nafter"
    )
    assert page.tags == {"details": 1, "summary": 1, "code": 1, "p": 2}
    assert "".join(page.under("code")) == one_line(text)


def check_prose(escape: Escape, text: str) -> None:
    page = assert_inert(f"**Why:** {escape(text)}")
    assert set(page.tags) <= {"p", "strong", "code"}
    assert page.tags["p"] == 1


def check_prose_item(escape: Escape, text: str) -> None:
    page = assert_inert(f"- {escape(text)}\n- next")
    assert set(page.tags) <= {"ul", "li", "code"}
    assert page.tags["li"] == 2


def check_prose_cell(escape: Escape, text: str) -> None:
    table = f"| one | two |\n|:--|:--|\n| {escape(text)} | second |\n| third | fourth |"
    page = assert_inert(table)
    assert page.tags["td"] == 4
    assert [text for path, text in page.texts if path and path[-1] == "td"][-3:] == [
        "second",
        "third",
        "fourth",
    ]
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


CHECKS = {
    "code": (check_span, whole(make_code_span)),
    "cell": (check_cell, whole(make_table_cell)),
    "fence": (check_fence, make_fenced_block),
    "html_code": (check_html_code, whole(html_code)),
    "prose": (check_prose, whole(render_prose)),
    "prose in a list": (check_prose_item, whole(render_prose)),
    "prose_cell": (check_prose_cell, whole(prose_cell)),
}


@pytest.mark.parametrize("name", CHECKS)
@given(text=TEXTS)
def test_escape__keeps_any_text_inert_and_whole(name: str, text: str) -> None:
    check, escape = CHECKS[name]
    check(escape, text)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("text", CORPUS)
def test_escape__keeps_the_corpus_inert(name: str, text: str) -> None:
    check, escape = CHECKS[name]
    check(escape, text)


@pytest.mark.parametrize("name", CHECKS)
def test_escape__its_check_fails_without_it(name: str) -> None:
    check, _ = CHECKS[name]
    caught = 0
    for text in CORPUS:
        try:
            check(lambda same: same, text)
        except (AssertionError, UnicodeEncodeError):
            caught += 1
    assert caught > len(CORPUS) // 3


@given(text=TEXTS)
def test_reveal__leaves_nothing_invisible(text: str) -> None:
    assert reveal_invisible(text).isprintable()
    assert "\x1b" not in reveal_invisible(text)


def test_reveal__names_the_character() -> None:
    assert (
        reveal_invisible("a\u202eb\u200b\ud800\u3164") == "a\\u{202e}b\\u{200b}\\u{d800}\\u{3164}"
    )
    assert reveal_invisible("\x1b[31mred\x1b[0m") == "red"
    assert reveal_invisible("Zoë 数据 🚀") == "Zoë 数据 🚀"


def test_clip__counts_characters_and_marks_the_cut() -> None:
    assert clip_text("abcdef", 4) == "abc…"
    assert clip_text("abcd", 4) == "abcd"
    assert clip_text("abcdef", None) == "abcdef"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "https://x.example/a)b",
        "https://x.example/a b",
        "https://x.example/a/../b",
        "https://x.example/a/..",
        "//x.example/a",
        "https://x.example/<b>",
        "https://x.example/\nb",
        None,
    ],
)
def test_link__only_plain_urls_become_links(url: str | None) -> None:
    label = make_code_span("x")
    assert make_link(label, url) == label


def test_link__label_stays_one_link() -> None:
    page = assert_inert(
        make_link(
            make_code_span("a](b) [c"), "https://github.com/shop/warehouse/blob/x/y%20z.sql#L3"
        )
    )
    assert page.tags == {"p": 1, "a": 1, "code": 1}


def test_safe_markdown__any_operation_makes_it_untrusted_again() -> None:
    safe = make_code_span("x")
    for changed in (safe + "y", safe.upper(), safe.replace("x", "y"), f"{safe}", safe[1:]):
        assert type(changed) is str


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("drops column `segment` of `mart.orders`", "drops column `segment` of `mart.orders`"),
        ("audit not_null(order_id) fails", "audit `not_null(order_id)` fails"),
        ("214 of 1,200,000 rows (0.02%)", "214 of 1,200,000 rows (0.02%)"),
        ("since 2024-01-01, e.g. forward-only", "since 2024-01-01, e.g. forward-only"),
        ("ask @team about #12", "ask `@team` about `#12`"),
        ("(mart.orders), then", "(`mart.orders`), then"),
        ("commit 1234567 is defaced", "commit `1234567` is `defaced`"),
        ("1. first", "`1.` first"),
        ("", "` `"),
    ],
)
def test_prose__reads_as_written(sentence: str, expected: str) -> None:
    assert render_prose(sentence) == expected


def test_prose__right_to_left_letters_cannot_reorder_our_text() -> None:
    page = parse(f"A {render_prose('שלום world')} Z")
    assert page.under("code") == ["שלום"]


def test_live__sees_what_github_would_bring_to_life() -> None:
    for text in (
        "hi @you",
        "see #1",
        "GH-7",
        "http://x",
        "www.x",
        ":tada:",
        "$x$",
        "abc1234",
        "\u202e",
    ):
        assert LIVE.search(text), text
    for text in ("10:14 UTC", "1,842 intervals", "2024-01-01", "defaced facade"):
        assert not LIVE.search(text), text
