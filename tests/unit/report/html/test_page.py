"""The page's frame: what may run in it, what it is made of, what it says, and what it never shows."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.report.html.head import make_html_page_head
from ci_bot.bot.report.html.page import (
    SCRIPTS,
    STYLES,
    embed_json_in_html,
    find_directory_of_html_page,
    render_html_page,
    render_prose_html,
)
from ci_bot.bot.report.markdown.marker import list_plans_before_in_comment
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.comment import PlanHistoryEntry
from ci_bot.protocol.plan import SEVERITIES
from ci_bot.protocol.review_report import Report
from ci_bot.redaction import MASK, Redactor
from tests.factories import NOW, PLAN, make_apply, make_context, make_marker, make_report, make_risk
from tests.golden.record import read
from tests.golden.samples import report as recorded
from tests.reports import full_report
from tests.webpage_parts import PARTS, SUMS, VENDOR, sums
from tests.webpage_reports import ATTACKS, REPORTS, hostile, large

CONTEXT = make_context()


class Seen(HTMLParser):
    """The elements of a page with their attributes, and the text of each script and style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[tuple[str, str]] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = "data" if dict(attrs).get("type") == "application/json" else tag
            self.blocks.append((self._inside, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks[-1] = (self._inside, self.blocks[-1][1] + data)

    def data(self) -> list[dict[str, Any]]:
        found = json.loads(dict(self.blocks)["data"])
        assert isinstance(found, list)
        return found


def part(seen: Seen, key: str) -> dict[str, Any]:
    return next(p for s in seen.data() for p in s["parts"] if p.get("key") == key)


def test_policy__allows_what_stands_in_the_page_and_nothing_else() -> None:
    seen = Seen(render_html_page(full_report(), CONTEXT))
    policy = next(a["content"] for tag, a in seen.elements if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    rules = {rule.split(" ")[0]: rule.split(" ")[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    for kind in ("script", "style"):
        texts = [text for found, text in seen.blocks if found == kind]
        digests = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[f"{kind}-src"] == [f"'sha256-{digest}'" for digest in digests]
    assert set(rules) - {"default-src", "script-src", "style-src", "img-src"} == {
        "base-uri",
        "form-action",
        "require-trusted-types-for",
        "trusted-types",
    }


@pytest.mark.parametrize("attack", ATTACKS)
def test_page__a_hostile_report_adds_no_element(attack: str) -> None:
    def counted(report: Report) -> list[str]:
        return sorted(
            tag for tag, _ in Seen(render_html_page(report, CONTEXT)).elements if tag in watched
        )

    watched = {"script", "style", "meta", "link", "img", "svg", "iframe", "nav", "main", "title"}
    assert counted(hostile(attack)) == counted(full_report())


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_embedded__is_json_that_ends_no_element(data: Any) -> None:
    text = embed_json_in_html([data, "</script>\u2028"])
    assert not set("<>&\u2028\u2029") & set(text)
    text.encode("utf-8")
    json.loads(text)


def test_embedded__shows_what_is_invisible() -> None:
    assert json.loads(embed_json_in_html("a\u202eb\nc\ud800")) == "a\\u{202e}b\nc\\u{d800}"


def test_prose__makes_code_and_nothing_else() -> None:
    assert str(render_prose_html("`<b>` & <i>")) == "<code>&lt;b&gt;</code> &amp; &lt;i&gt;"


def test_vendored__files_are_the_pinned_ones() -> None:
    texts = {name: (VENDOR / name).read_text("utf-8") for name in PARTS}
    assert sums(texts) == SUMS.read_text("utf-8")
    assert {path.name for path in VENDOR.iterdir()} == {*PARTS, SUMS.name}
    for name, text in texts.items():
        top = text.partition("*/")[0]
        assert "Copyright" in top, name
        assert PARTS[name].package in top


def test_page__is_small_without_a_report() -> None:
    """What each report costs before anything is in it."""
    parts = [(find_directory_of_html_page() / name).read_bytes() for name in (*SCRIPTS, *STYLES)]
    assert sum(len(content) for content in parts) < 150_000
    assert not any(re.search(rb"</(script|style)", content) for content in parts)


def test_template__marks_nothing_safe() -> None:
    source = (find_directory_of_html_page() / "report.html.j2").read_text("utf-8")
    assert not re.search(r"safe|autoescape", source)


@pytest.mark.parametrize("called", REPORTS)
def test_page__of_a_recorded_report__holds_it_whole(called: str) -> None:
    report = recorded(called)
    seen = Seen(render_html_page(report, CONTEXT))
    found = [p for s in seen.data() for p in s["parts"]]
    tables = {p["key"]: p["rows"] for p in found if p["type"] == "table"}
    rows = tables.get("findings", ())
    shown = (
        len(rows)
        + sum(len(row[3][1]) for row in rows)
        + sum(len(p["texts"]) for p in found if p.get("title") == "Not checked")
    )
    assert shown == len(report.risks)
    assert len(tables.get("models", ())) == len(report.changes)
    diffs = [d for p in found if p["type"] == "diffs" for d in p["diffs"]]
    assert sorted(d[0] for d in diffs) == sorted(c.model for c in report.changes if c.diff)
    built = {*(b.model for b in report.backfill)}
    built |= {b.model for b in report.prod_plan.full_backfill} if report.prod_plan else set()
    assert {row[0][0] for row in tables.get("building", ())} == built


def test_findings__name_owner_place_rule_and_what_clears_them() -> None:
    report = recorded("small_change")
    seen = Seen(render_html_page(report, make_context(repository="octo/flights")))
    rows = part(seen, "findings")["rows"]
    ranks = [row[0][2] for row in rows]
    assert ranks == sorted(ranks)
    assert {row[0][0] for row in rows} <= set(SEVERITIES)
    first = rows[0]
    assert first[1] == "R06-breaking-rebuild"
    assert first[2][0] == "marts.daily_carrier_performance"
    assert first[2][1].startswith(f"https://github.com/octo/flights/blob/{report.head_sha}/models/")
    assert "data diff" in first[4]
    assert first[5] == "network-planning"
    rules = next(s for s in seen.data() if s["id"] == "rules")["parts"][0]["pages"]
    assert {row[1] for row in rows} <= {page[0] for page in rules}


def test_strip__shows_both_plans_on_one_axis() -> None:
    report = recorded("small_change")
    rows = part(Seen(render_html_page(report, CONTEXT)), "building")["rows"]
    daily = next(row for row in rows if row[0][0] == "marts.daily_carrier_performance")
    strip = daily[5]
    year = [1356998400, 1388534400]
    assert strip["axis"] == year
    assert strip["pr"] == ["incremental", *year]
    assert strip["prod"] == ["incremental", *year]
    assert strip["left"] is None, "prod reuses what the environment has built"
    assert strip["held"] == [year]
    assert "365 intervals" in strip["says"]
    assert daily[6] == "reuses it"


def test_head__of_an_apply__is_the_verdict_of_the_data() -> None:
    document = read("applied")
    assert isinstance(document, ApplyDocument)
    head = make_html_page_head(recorded("small_change"), CONTEXT, document)
    assert head.word == "Built in `pr_7` · the numbers differ from `prod`"
    assert head.reviewed == "The review said: Review"
    assert ("Audits", "17 passed · 1 warning") in head.facts
    same = document.model_copy(
        update={"table_diff": [d for d in document.table_diff if d.model == "marts.route_ranking"]}
    )
    assert "the same rows" in make_html_page_head(None, CONTEXT, same).word
    nothing = document.model_copy(update={"table_diff": []})
    assert "nothing to compare" in make_html_page_head(None, CONTEXT, nothing).word


def test_head__needs_something_to_show() -> None:
    with pytest.raises(ValueError, match="a review, an apply, or both"):
        render_html_page(None, CONTEXT)


def test_head__says_what_comes_next() -> None:
    assert make_html_page_head(make_report(), CONTEXT).command == CONTEXT.apply_command(PLAN)
    stopped = make_report(decision="no_go", risks=[make_risk(severity="blocker")])
    head = make_html_page_head(stopped, CONTEXT)
    assert (head.word, head.command) == ("No-Go · 1 thing to fix", "")
    assert head.next == "Fix these and push; the comment follows."
    failed = make_html_page_head(recorded("failed_plan"), CONTEXT)
    assert "sqlmesh info" in failed.points[0].text
    assert "Expected table name but got 'WHERE'" in failed.said


def test_head__says_what_this_change_does_in_the_words_of_the_comment() -> None:
    head = make_html_page_head(recorded("small_change"), CONTEXT)
    assert head.sentence.startswith("Past numbers change: `late_arrivals` in")
    assert head.asked == "Owner `network-planning`: is that intended?"
    rules = [point.rule for point in head.points]
    assert "R06-breaking-rebuild" not in rules, "the sentence says it"
    assert "R12-code-on-load" in rules


def test_history__ends_with_the_decision_of_now() -> None:
    before = PlanHistoryEntry(at=NOW, head="a" * 40, plan="c" * 64, decision="no_go", run="1.2")
    seen = Seen(render_html_page(make_report(), CONTEXT, history=[before]))
    steps = next(p for s in seen.data() for p in s["parts"] if p["type"] == "timeline")["steps"]
    assert [step[0] for step in steps] == ["no_go", "review"]
    assert steps[0][6].endswith("/actions/runs/1")


def test_plans_before__are_those_of_other_plans() -> None:
    marker = make_marker(plan="c" * 64, history=[])
    assert [entry.plan for entry in list_plans_before_in_comment(marker, "d" * 64)] == ["c" * 64]
    assert list_plans_before_in_comment(marker, "c" * 64) == []
    assert list_plans_before_in_comment(None, "c" * 64) == []


@pytest.mark.parametrize("place", ["evidence", "diff", "owner", "note", "failure"])
def test_page__of_a_redacted_report__holds_no_secret(place: str) -> None:
    """The page is made of the record whose secrets are gone; here one stands in each place."""
    secret = "ghs_" + "Ab3dEf6hIj9lMn0pQr2tUv5xYz8bCd1fGh4j"
    report = make_report()
    changes = [report.changes[0].model_copy(update={"diff": f"+ '{secret}'", "owner": secret})]
    whole = {
        "evidence": {"risks": [make_risk(evidence=f"found {secret}")]},
        "diff": {"changes": changes},
        "owner": {"changes": changes},
        "note": {"notes": [f"token {secret}"]},
        "failure": {
            "failure": Failure(stage="plan", reason_code="failed", exit_code=1, message=secret)
        },
    }[place]
    leaking = make_report(**whole)
    assert secret in render_html_page(leaking, CONTEXT)
    page = render_html_page(Redactor([]).redact_document(leaking), CONTEXT)
    assert secret not in page
    assert MASK in page


def test_page__of_five_thousand_models__is_written_in_time() -> None:
    """Generous, for slow machines; `tests.benchmarks.bench_webpage` prints the figures."""
    import time

    report = large(5_000, 2_000)
    start = time.process_time()
    text = render_html_page(report, CONTEXT)
    assert time.process_time() - start < 15
    assert len(text) < 20_000_000


def test_page__of_an_apply_alone() -> None:
    seen = Seen(
        render_html_page(
            None,
            CommentViewContext(project="p", environment="pr_1", now=NOW, phase="applied"),
            applied=make_apply(),
        )
    )
    assert {s["id"] for s in seen.data()} >= {"built", "data"}


def test_directory__holds_what_the_page_is_made_of() -> None:
    here = {
        path.relative_to(VENDOR.parent).as_posix()
        for path in Path(VENDOR.parent).rglob("*")
        if path.is_file()
    }
    assert here == {*SCRIPTS, *STYLES, "report.html.j2", "vendor/SHA256SUMS"}
