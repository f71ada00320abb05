"""What people read of costs: in the review, after an apply, and of what was learned."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ci_bot.bot.cli.surveys import render_learned_for_laptop
from ci_bot.bot.report.markdown.comments import render_apply_comment, render_review_comment
from ci_bot.bot.sandbox.answer_validation import (
    SandboxedAnswerRefusedError,
    check_subject_of_sandboxed_answer,
)
from ci_bot.bot.worker_client.surveys import describe_costs_learned_by_worker
from ci_bot.protocol.base import Versions
from ci_bot.protocol.cost import Accuracy, ActualCost, Counters, LearnDocument, Price
from ci_bot.protocol.messages import DoctorRequest, LearnRequest, Owner, Workplace
from tests.factories import make_apply, make_context, make_cost, make_report


def test_review__says_how_far_off_earlier_estimates_were() -> None:
    known = Accuracy(estimates=20, median=0.18, nine_of_ten=0.41)
    text = render_review_comment(make_report(cost=make_cost(accuracy=known)), make_context()).text
    assert text.count("the last 20 estimates: median error 18 %, 90&nbsp;% within 41 %") == 1
    assert (
        "median error"
        not in render_review_comment(make_report(cost=make_cost()), make_context()).text
    )


def test_review__names_the_price_of_rebuilds_that_nobody_needs() -> None:
    part = make_cost(unneeded=["a.b", "a.c"], unneeded_hours=3.1667)
    text = render_review_comment(make_report(cost=part), make_context()).text
    assert "2 of 4 rebuilt tables read nothing that changes: 3 h 10 min" in text


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (
            {"reused": 12, "reused_hours": 3.1667},
            "12 tables of `prod` are read and not built: about 3 h 10 min saved",
        ),
        ({"reused": 1}, "1 table of `prod` is read and not built)"),
        ({}, None),
    ],
)
def test_review__names_what_of_prod_is_read_and_not_built(
    parts: dict[str, Any], told: str | None
) -> None:
    text = render_review_comment(make_report(cost=make_cost(**parts)), make_context()).text
    assert ("not built" in text) == (told is not None)
    assert told is None or told in text


def test_review__shows_the_currency() -> None:
    text = render_review_comment(
        make_report(cost=make_cost(price=14.2, currency="EUR")), make_context()
    ).text
    assert "about 14.20 EUR at your rate" in text


def test_apply__shows_what_was_allocated_used_and_moved() -> None:
    actual = ActualCost(
        source="counters",
        allocated_hours=0.5,
        core_hours=2.0,
        used_share=0.39,
        price=0.21,
        currency="EUR",
        counters=Counters(input_bytes=1_200_000_000, shuffle_write_bytes=5_000_000),
        remarks=["m spilled 3.2 GB to disk."],
    )
    text = render_apply_comment(make_apply(cost=actual), make_context(phase="applied")).text
    (row,) = [line for line in text.splitlines() if line.startswith("Cost:")]
    assert "**30 min** of executor time, 39 % of its cores' time used, 0.21 EUR" in row
    assert "read 1.2 GB" in row
    assert "spilled 3.2 GB" in row


@pytest.mark.parametrize("text", ["<b>", "eur", "EURO", "", "[x](y)"])
def test_currency__is_three_letters_and_no_markup(text: str) -> None:
    # It comes from a process that runs a stranger's code, and is shown as it is.
    with pytest.raises(ValidationError):
        make_cost(price=1.0, currency=text)
    with pytest.raises(ValueError, match="an amount from 0 up and a currency"):
        Price.parse_price(f"1 {text}")


def learned(**parts: Any) -> LearnDocument:
    counts = ("logs", "read", "known", "foreign", "other_version", "cut", "unreadable")
    values: dict[str, Any] = dict.fromkeys((*counts, "writes", "tables"), 0)
    return LearnDocument(
        directory="/logs",
        seconds=1.0,
        versions=Versions(ci_bot="0", python="3.11"),
        **values | parts,
    )


def test_learned__counts_what_was_of_no_use() -> None:
    document = learned(logs=9, read=2, writes=40, tables=3, foreign=4, other_version=1, cut=1)
    assert describe_costs_learned_by_worker(document) == (
        "Event logs: 2 of 9 were new and are about 40 writes into 3 tables "
        "(4 of other applications, 1 of another version of Spark, 1 cut)."
    )
    text = render_learned_for_laptop(document)
    assert "Learned 40 writes into 3 tables from 2 event logs" in text
    assert "4 logs without a table of SQLMesh" in text
    assert "1 log cut" in text


def test_learned__is_an_answer_to_learning_only() -> None:
    place: dict[str, Any] = {
        "projects": ["."],
        "workplace": Workplace(repository="/r", cache_dir="/c", scratch_dir="/s"),
        "owner": Owner(name="octo/shop"),
    }
    check_subject_of_sandboxed_answer(learned(), LearnRequest(event_logs="/logs", **place))
    with pytest.raises(SandboxedAnswerRefusedError, match="about a learn"):
        check_subject_of_sandboxed_answer(learned(), DoctorRequest(**place))
