"""The report on a laptop: readable in 96 columns, and the same text with and without colours."""

from __future__ import annotations

import re

import pytest

from ci_bot.bot.terminal.page import Page
from ci_bot.bot.terminal.report_text import to_terminal
from ci_bot.contracts.messages import FailedAnswer
from tests.factories import make_apply, make_cleanup, make_report
from tests.golden.samples import destructive_report, large_report

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_review__says_decision_reasons_and_next_command() -> None:
    text = to_terminal(make_report())
    assert text.startswith("Review · 1 high risk · analytics → pr_142\n──")
    assert "Why          full-history-rebuild: 964 intervals of stg.orders" in text
    assert (
        "ci-bot apply --project analytics --gateway spark_prod --environment pr_142 "
        "--plan-id 9f3c21aa01bc"
    ) in text


def test_review__has_no_markdown_and_fits_the_width() -> None:
    text = to_terminal(destructive_report())
    for noise in ("**", "|", "<details", "`", "](", "&nbsp;"):
        assert noise not in text
    # A command is copied as a whole.
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("ci-bot ")]
    assert max(len(line) for line in lines) <= 96


def test_review__says_who_still_reads_what_goes() -> None:
    text = to_terminal(destructive_report())
    assert "mart.legacy_ltv is removed; read by mart.board, exports.ltv_daily" in text
    assert "dim.customers.segment (STRING) is dropped; read by mart.churn" in text
    assert "the plan for prod WOULD FAIL" in text


def test_colours__change_nothing_but_colours() -> None:
    for document in (destructive_report(), make_apply(), make_cleanup()):
        plain, coloured = to_terminal(document), to_terminal(document, colour=True)
        assert "\x1b" not in plain
        assert "\x1b[31m" in coloured or "\x1b[32m" in coloured
        assert _COLOUR.sub("", coloured) == plain


def test_apply__shows_what_was_built_and_compared() -> None:
    text = to_terminal(make_apply())
    assert text.startswith("Applied 9f3c21aa01bc · pr_142 · 1 h 42 min\n")
    assert "mart.revenue not compared: it has no grain" in text
    assert "99.15 %" in text


def test_apply__a_refusal_lists_the_difference() -> None:
    document = make_apply(result="refused", difference={"snapshots_added": ["mart.new"]})
    text = to_terminal(document)
    assert "mart.new: only in the plan of now" in text
    assert "Built" not in text


def test_cleanup__says_what_is_left() -> None:
    document = make_cleanup(
        result="incomplete", leftovers=[{"object": "a.b", "why": "no permission to drop"}]
    )
    text = to_terminal(document)
    assert "cleanup incomplete" in text
    assert "a.b: no permission to drop" in text
    assert "run the same cleanup again" in text


def test_large_report__is_complete() -> None:
    text = to_terminal(large_report(300))
    assert text.count("model_0299") >= 2


def test_table__a_long_name_keeps_its_end() -> None:
    page = Page(width=30)
    page.table(["model", "rows"], [["catalog.schema.a_rather_long_name", "1,200"]])
    assert page.text().split("\n")[1] == "  …a.a_rather_long_name  1,200"
    assert all(len(line) <= 31 for line in page.text().split("\n"))


def test_other_documents__are_an_error() -> None:
    answer = FailedAnswer.model_validate(
        {"failure": {"stage": "x", "reason_code": "y", "exit_code": 1, "message": "z"}}
    )
    with pytest.raises(TypeError, match="FailedAnswer"):
        to_terminal(answer)
