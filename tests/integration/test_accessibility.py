"""The report's page for people who use a keyboard, a screen reader or little light: axe-core in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from ci_bot.bot.report.html.page import cleanup_page_parts, render_page
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from tests.accessibility import list_violations, read_axe
from tests.browser import Tab, browser, chromium
from tests.conftest import missing
from tests.factories import make_cleanup, make_context
from tests.golden.record import read
from tests.golden.samples import report as recorded

pytestmark = pytest.mark.browser

CONTEXT = make_context()
# A telephone, a window beside another, a whole screen.
WIDTHS = (390, 900, 1600)
PAGES: dict[str, Callable[[], str]] = {
    "review": lambda: render_page(recorded("wide_change"), CONTEXT),
    "review-no-go": lambda: render_page(recorded("leaked_key"), CONTEXT),
    "apply": lambda: render_page(
        recorded("small_change"), CONTEXT, applied=cast(ApplyDocument, read("applied"))
    ),
    "cleanup": lambda: show_cleanup(make_cleanup()),
    "cleanup-left": lambda: show_cleanup(cast(CleanupDocument, read("cleanup_failed"))),
}


def show_cleanup(document: CleanupDocument) -> str:
    return "".join(cleanup_page_parts(document, CONTEXT))


_READY = """new Promise(done => {
  const lineage = document.querySelector('svg.lineage');
  const look = () => (!lineage || 'ready' in lineage.dataset ? done() : setTimeout(look, 10));
  look();
})"""


@pytest.fixture(scope="module")
def axe() -> str:
    return read_axe()


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if chromium() is None:
        missing("no chromium on this machine")
    with browser() as opened:
        yield opened


def show(tab: Tab, folder: Path, called: str) -> None:
    file = folder / "report.html"
    file.write_text(PAGES[called](), encoding="utf-8")
    tab.open(file)
    tab.ask(_READY)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("called", PAGES)
def test_page__breaks_no_rule_of_axe(
    tab: Tab, axe: str, tmp_path: Path, called: str, dark: bool
) -> None:
    for width in WIDTHS:
        tab.resize(width, dark=dark)
        show(tab, tmp_path, called)
        assert list_violations(tab, axe) == [], f"{called} at {width}"


def test_axe__finds_what_is_wrong(tab: Tab, axe: str, tmp_path: Path) -> None:
    tab.resize(WIDTHS[1])
    show(tab, tmp_path, "cleanup")
    tab.ask(
        "document.querySelector('h1').style.color = getComputedStyle(document.body).backgroundColor, 1"
    )
    tab.ask("document.body.appendChild(document.createElement('button')), 1")
    found = {line.partition(":")[0] for line in list_violations(tab, axe)}
    assert {"color-contrast", "button-name"} <= found


@pytest.mark.parametrize("called", PAGES)
def test_page__every_control_is_reached_by_the_keyboard_and_shows_it(
    tab: Tab, tmp_path: Path, called: str
) -> None:
    tab.resize(WIDTHS[1])
    show(tab, tmp_path, called)
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
