"""The report's page in a real browser: it is drawn, it answers, and nothing in it but itself runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.report.html.page import render_html_page
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.comment import PlanHistoryEntry
from tests.browser import Tab, browser, chromium
from tests.conftest import missing
from tests.factories import NOW, make_apply, make_context
from tests.golden.record import RECORDED, read
from tests.golden.samples import report as recorded
from tests.webpage_reports import ATTACKS, REPORTS, hostile, large, name

pytestmark = pytest.mark.browser

CONTEXT = make_context()
HISTORY = [PlanHistoryEntry(at=NOW, head="a" * 40, plan="b" * 64, decision="no_go", run="8812.1")]
# The lineage has found its size; a page without one is ready at once.
_READY = """new Promise(done => {
  const lineage = document.querySelector('svg.lineage');
  const look = () => (!lineage || 'ready' in lineage.dataset ? done() : setTimeout(look, 10));
  look();
})"""
# Nothing here takes half a second; the machine may be slow.
SECONDS = 15


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if chromium() is None:
        missing("no chromium on this machine")
    with browser() as opened:
        opened.resize(1400)
        yield opened


@pytest.fixture(autouse=True)
def forget(tab: Tab) -> None:
    for kept in (tab.console, tab.requests, tab.dialogs):
        kept.clear()


def shown(tab: Tab, folder: Path, text: str) -> Tab:
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    tab.open(file)
    tab.ask(_READY)
    return tab


def texts(tab: Tab, selector: str) -> list[str]:
    found = tab.ask(f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)")
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("called", REPORTS)
def test_page__of_a_recorded_report__is_drawn_in_peace(
    tab: Tab, tmp_path: Path, called: str
) -> None:
    report = recorded(called)
    shown(tab, tmp_path, render_html_page(report, CONTEXT, history=HISTORY))
    assert (tab.console, tab.requests, tab.dialogs) == ([], [], [])
    assert tab.ask("document.documentElement.dataset.drawn") is not None
    rules = texts(tab, ".t-findings .rule")
    assert set(rules) <= {risk.rule for risk in report.risks}
    assert len(texts(tab, ".timeline li")) == len(HISTORY) + 1
    for file in texts(tab, "section h2"):
        assert file.strip()


def test_page__of_an_apply__shows_data_beside_the_review(tab: Tab, tmp_path: Path) -> None:
    assert (RECORDED / "applied.json").is_file()
    document = read("applied")
    assert isinstance(document, ApplyDocument)
    shown(tab, tmp_path, render_html_page(recorded("small_change"), CONTEXT, applied=document))
    assert (tab.console, tab.requests) == ([], [])
    # What was changed itself stands before what only reads it.
    row = ".t-data tbody tr:first-child "
    assert texts(tab, f"{row}td:first-child > .name") == ["marts.daily_carrier_performance"]
    assert texts(tab, f"{row}td:nth-child(7) .bar-label") == ["late_arrivals"]
    assert texts(tab, f"{row}td:nth-child(4) .bar-text") == ["70.56 %"]
    assert any("mean 14.29 → 14.75" in text for text in texts(tab, ".t-columns td"))
    assert "not_null_non_blocking" in " ".join(texts(tab, ".t-built td"))
    assert texts(tab, "section")[0].startswith("Data against prod")


@pytest.mark.parametrize("attack", ATTACKS)
def test_page__nothing_of_a_project_runs(tab: Tab, tmp_path: Path, attack: str) -> None:
    """Whatever a reader opens, clicks or moves over."""
    context = replace(CONTEXT, project=attack, environment=attack)
    apply = make_apply()
    models = [apply.models[0].model_copy(update={"model": attack, "table": attack})]
    diffs = [apply.table_diff[0].model_copy(update={"model": attack, "keys": [attack]})]
    document = apply.model_copy(
        update={"models": models, "table_diff": diffs, "evidence_missing": attack}
    )
    shown(tab, tmp_path, render_html_page(hostile(attack), context, applied=document))
    tab.ask(
        """(() => {
          for (const one of document.querySelectorAll('details')) one.open = true;
          for (const one of document.querySelectorAll('button, .node, summary'))
            for (const kind of ['mouseover', 'focus', 'click'])
              one.dispatchEvent(new MouseEvent(kind, {bubbles: true}));
        })()"""
    )
    tab.settle()
    assert tab.ask("typeof ran") == "undefined"
    assert (tab.console, tab.requests, tab.dialogs) == ([], [], [])
    assert (
        tab.ask("document.querySelectorAll('img, iframe, object, embed, base, form').length") == 0
    )
    handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
    assert not [one for one in tab.ask(handlers) if one.startswith("on") or one == "src"]
    links = tab.ask("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
    assert links
    assert all(link.startswith(("#", "https://")) for link in links)


def test_page__a_script_that_got_in__is_refused_by_the_policy(tab: Tab, tmp_path: Path) -> None:
    """If every escape failed. Without the policy the same text does run, so the test can fail."""
    text = render_html_page(recorded("small_change"), CONTEXT)
    bad = "<script>ran=1</script><p onclick='ran=1' id=bad>x</p><img src='https://example.org/x'>"
    broken = text.replace("<noscript>", f"{bad}<noscript>")
    assert broken != text
    shown(tab, tmp_path, broken)
    tab.ask("document.getElementById('bad').click()")
    assert tab.ask("typeof ran") == "undefined"
    assert len([said for said in tab.console if "Content Security Policy" in said]) >= 3
    start = broken.index('<meta http-equiv="Content-Security-Policy"')
    bare = broken[:start] + broken[broken.index(">", start) + 1 :]
    shown(tab, tmp_path, bare.replace("<img src='https://example.org/x'>", ""))
    assert tab.ask("typeof ran") == "number"


def test_table__is_sorted_by_numbers_not_by_their_letters(tab: Tab, tmp_path: Path) -> None:
    shown(tab, tmp_path, render_html_page(large(40, 25), CONTEXT))

    def click() -> list[int]:
        tab.ask("document.querySelector('.t-building th:nth-child(3) button').click()")
        cells = texts(tab, ".t-building td:nth-child(3)")
        return [int(cell.split(" ")[0].replace(",", "")) for cell in cells]

    first = click()
    assert first == sorted(first, reverse=True)
    assert len(set(first)) == 25
    assert click() == first[::-1]
    sort = "document.querySelector('.t-building th:nth-child(3)').getAttribute('aria-sort')"
    assert tab.ask(sort) == "ascending"


def test_table__is_sorted_with_the_keyboard(tab: Tab, tmp_path: Path) -> None:
    shown(tab, tmp_path, render_html_page(recorded("destructive_change"), CONTEXT))
    before = texts(tab, ".t-findings .rule")
    tab.ask("document.querySelector('.t-findings th:nth-child(2) button').focus()")
    tab.press("Enter")
    after = texts(tab, ".t-findings .rule")
    assert before != after
    assert after == sorted(after, key=str.casefold)


def test_search__narrows_tables_diffs_and_lineage(tab: Tab, tmp_path: Path) -> None:
    models = 200
    shown(tab, tmp_path, render_html_page(large(models, 50), CONTEXT))
    assert len(texts(tab, ".t-models tbody tr")) == 25
    tab.press("/", "/")
    tab.type("model_0199")
    tab.ask("new Promise(done => setTimeout(done, 200))")
    assert texts(tab, ".t-models .name") == [name(199, models)]
    assert texts(tab, "details.diff .name") == [name(199, models)]
    assert texts(tab, ".tools [role=status]") == ["1 of 200 models match"]
    tab.press("Enter")
    tab.settle()
    assert texts(tab, ".panel .name") == [name(199, models)]
    tab.press("Escape")
    tab.settle()
    assert len(texts(tab, ".t-models tbody tr")) == 25
    tab.ask(
        "document.querySelector('.t-models').closest('.tablepart').querySelector('.plain').click()"
    )
    assert len(texts(tab, ".t-models tbody tr")) == 50


def test_lineage__is_zoomed_moved_and_shown_whole(tab: Tab, tmp_path: Path) -> None:
    shown(tab, tmp_path, render_html_page(large(1_000, 100), CONTEXT))
    world = "document.querySelector('svg.lineage > g').getAttribute('transform')"
    whole = tab.ask(world)
    assert texts(tab, ".node") == [], "a thousand names are no help"
    for _ in range(6):
        tab.ask("document.querySelector('.tools button').click()")
    tab.settle()
    near = tab.ask(world)
    assert near != whole
    assert 0 < len(texts(tab, ".node")) < 300
    tab.ask("document.querySelector('svg.lineage').focus()")
    tab.press("ArrowRight")
    tab.settle()
    assert tab.ask(world) != near
    for kind, x in (("mousePressed", 500), ("mouseMoved", 620), ("mouseReleased", 620)):
        box = tab.ask("document.querySelector('svg.lineage').getBoundingClientRect().top")
        tab.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=box + 20, button="left", clickCount=1
        )
    tab.press("0", "0")
    tab.settle()
    assert tab.ask(world) == whole


@pytest.mark.parametrize("many", [False, True])
def test_lineage__takes_the_height_that_it_needs_and_the_window_has(
    tab: Tab, tmp_path: Path, many: bool
) -> None:
    shown(
        tab,
        tmp_path,
        render_html_page(large(300, 40) if many else recorded("small_change"), CONTEXT),
    )
    height = tab.ask("document.querySelector('svg.lineage').clientHeight / innerHeight")
    assert (0.75 < height < 0.85) if many else (height < 0.75)


def test_lineage__fills_the_screen_and_comes_back(tab: Tab, tmp_path: Path) -> None:
    shown(tab, tmp_path, render_html_page(large(300, 40), CONTEXT))
    wanted = "document.querySelector('.tools button[title^=\"Full screen\"]')"
    assert tab.ask(f"{wanted} !== null || !document.fullscreenEnabled")
    if not tab.ask("document.fullscreenEnabled"):
        pytest.skip("this browser has no full screen")
    tab.call("Runtime.evaluate", expression=f"{wanted}.click()", userGesture=True)
    tab.settle()
    assert tab.ask("document.fullscreenElement.className") == "lineagepart"
    height = tab.ask("document.querySelector('svg.lineage').clientHeight / innerHeight")
    assert height > 0.6
    tab.call("Runtime.evaluate", expression="document.exitFullscreen()", awaitPromise=True)
    tab.settle()
    assert tab.ask("document.fullscreenElement") is None


def test_page__of_thousand_models__is_drawn_in_time(tab: Tab, tmp_path: Path) -> None:
    """Generous, for slow machines; `tests.benchmarks.bench_webpage` prints the figures."""
    shown(tab, tmp_path, render_html_page(large(1_000, 1_000), CONTEXT))
    assert int(tab.ask("document.documentElement.dataset.drawn")) < SECONDS * 1_000
    assert tab.console == []
    drawn = tab.ask(
        "[...document.querySelectorAll('.boxes path[class^=n-]')].map(p => p.getAttribute('d').split('M').length - 1)"
    )
    assert sum(drawn) == 1_000
    assert texts(tab, "a[href='#lineage'] .n") == ["1,000"]


def test_links__inside_of_the_page__open_what_they_lead_to(tab: Tab, tmp_path: Path) -> None:
    shown(tab, tmp_path, render_html_page(large(600, 400), CONTEXT))
    last = name(599, 600)
    tab.ask(f"location.hash = Page.anchor('diff', {last!r})")
    tab.settle()
    assert texts(tab, "details.diff[open] .name") == [last]
    assert "1.599" in "".join(texts(tab, "details.diff[open] ins"))
    tab.ask("document.querySelector('.t-findings a.rule').click()")
    tab.settle()
    assert "What it sees." in "".join(texts(tab, "details.rulepage[open]"))


def test_page__on_a_phone_and_in_the_dark(tab: Tab, tmp_path: Path) -> None:
    text = render_html_page(recorded("destructive_change"), CONTEXT, history=HISTORY)
    colour = "getComputedStyle(document.body).backgroundColor"
    try:
        tab.resize(400)
        light = shown(tab, tmp_path, text).ask(colour)
        assert tab.ask("document.documentElement.scrollWidth") == 400
        tab.resize(400, dark=True)
        assert tab.ask(colour) != light
    finally:
        tab.resize(1400)


def test_page__on_paper__is_some_pages(tab: Tab, tmp_path: Path) -> None:
    shown(tab, tmp_path, render_html_page(recorded("small_change"), CONTEXT))
    tab.pdf(tmp_path / "report.pdf")
    pages = (tmp_path / "report.pdf").read_bytes().count(b"/Type /Page\n")
    assert 2 <= pages <= 20
