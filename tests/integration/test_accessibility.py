"""The report's page for people who use a keyboard, a screen reader or little light: axe-core in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from ci_bot.bot.report.html.page import render_html_page, render_html_page_of_document
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from tests.accessibility import list_violations, load_axe, read_axe
from tests.browser import Tab, browser, chromium
from tests.conftest import missing
from tests.factories import make_cleanup, make_context
from tests.github_standin.parts import PartsMissingError
from tests.golden.record import read
from tests.golden.samples import report as recorded
from tests.nights import cases

pytestmark = pytest.mark.browser

CONTEXT = make_context()
# A telephone, a window beside another, a whole screen.
WIDTHS = (390, 900, 1600)
PAGES: dict[str, Callable[[], str]] = {
    "review": lambda: render_html_page(recorded("wide_change"), CONTEXT),
    "review-no-go": lambda: render_html_page(recorded("leaked_key"), CONTEXT),
    "apply": lambda: render_html_page(
        recorded("small_change"), CONTEXT, applied=cast(ApplyDocument, read("applied"))
    ),
    "cleanup": lambda: show_cleanup(make_cleanup()),
    "cleanup-left": lambda: show_cleanup(cast(CleanupDocument, read("cleanup_failed"))),
}

# An apply shows its review as well; the page of 80 changed models takes axe the longest.
CASES = cases(PAGES, by_day=["apply", "cleanup-left"])


def show_cleanup(document: CleanupDocument) -> str:
    return "".join(render_html_page_of_document(document, CONTEXT))


_READY = """new Promise(done => {
  const lineage = document.querySelector('svg.lineage');
  const look = () => (!lineage || 'ready' in lineage.dataset ? done() : setTimeout(look, 10));
  look();
})"""


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        return read_axe()
    except PartsMissingError as absent:
        missing(str(absent))


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if chromium() is None:
        missing("no chromium on this machine")
    with browser() as opened:
        yield opened


def show(tab: Tab, folder: Path, page: Callable[[], str]) -> None:
    file = folder / "report.html"
    file.write_text(page(), encoding="utf-8")
    tab.open(file)
    tab.ask(_READY)
    # What is folded is read, too.
    tab.ask("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    tab.settle()


@pytest.mark.parametrize("page", CASES)
def test_page__breaks_no_rule_of_axe(
    tab: Tab, axe: str, tmp_path: Path, page: Callable[[], str]
) -> None:
    tab.resize(WIDTHS[0])
    show(tab, tmp_path, page)
    load_axe(tab, axe)
    for width in WIDTHS:
        tab.resize(width)
        tab.settle()
        assert list_violations(tab) == [], f"at {width}"
    # A reader's wish for dark changes colours and nothing else.
    tab.resize(WIDTHS[1], dark=True)
    tab.settle()
    assert list_violations(tab, rule="color-contrast") == [], "in the dark"


def test_axe__finds_what_is_wrong(tab: Tab, axe: str, tmp_path: Path) -> None:
    tab.resize(WIDTHS[1])
    show(tab, tmp_path, PAGES["cleanup"])
    tab.ask(
        "document.querySelector('h1').style.color = getComputedStyle(document.body).backgroundColor, 1"
    )
    tab.ask("document.body.appendChild(document.createElement('button')), 1")
    load_axe(tab, axe)
    found = {line.partition(":")[0] for line in list_violations(tab)}
    assert {"color-contrast", "button-name"} <= found


@pytest.mark.parametrize("page", CASES)
def test_page__every_control_is_reached_by_the_keyboard_and_shows_it(
    tab: Tab, tmp_path: Path, page: Callable[[], str]
) -> None:
    tab.resize(WIDTHS[1])
    show(tab, tmp_path, page)
    wanted = tab.ask("""(() => {
      const shown = e => e.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})
        && !e.closest('[inert]') && !e.disabled;
      window.controls = [...document.querySelectorAll(
        'a[href], button, input, select, textarea, summary, [role=button], [onclick]')].filter(shown);
      return controls.length;
    })()""")
    assert wanted > 0
    reached, hidden = set(), []
    for _ in range(3 * wanted + 50):
        tab.press("Tab")
        index, outline = tab.ask("""(() => {
          const at = document.activeElement, style = getComputedStyle(at);
          const node = at.matches('.node') && getComputedStyle(at.querySelector('rect')).strokeWidth === '3px';
          return [controls.indexOf(at), node || style.outlineStyle !== 'none' || style.boxShadow !== 'none'];
        })()""")
        if index >= 0:
            reached.add(index)
            if not outline:
                hidden.append(index)
        if len(reached) == wanted:
            break
    left = tab.ask(
        f"controls.filter((e, i) => !{sorted(reached)}.includes(i)).map(e => e.outerHTML.slice(0, 150))"
    )
    assert left == []
    assert hidden == []
