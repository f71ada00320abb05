"""Whole comments in which every text that comes from outside is hostile (threat rows 20-29)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from ci_bot.bot.report.markdown import templating
from ci_bot.bot.report.markdown.comments import (
    render_apply_comment,
    render_cleanup_comment,
    render_planning_comment,
    render_review_comment,
)
from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model.context import (
    ApplyConditionView,
    ApplyRefusalView,
    DecisionOverrideView,
    ProgressView,
)
from ci_bot.redaction.redactor import redact_document
from tests.factories import make_apply, make_cleanup, make_context, make_report, on_terminal
from tests.golden.samples import SAMPLES
from tests.reports import full_report
from tests.unit.report.dom import Page, assert_inert, parse
from tests.unit.report.evil import CORPUS, TEXTS

# What takes out secrets reaches every text that is not of a closed set, so it serves to replace all
# of them.
Replace = Callable[[str], str]


def _planned(replace: Replace, budget: int | None) -> str:
    return render_review_comment(
        redact_document(full_report(), replace), make_context(), budget
    ).text


def _failed(replace: Replace, budget: int | None) -> str:
    failure = {"stage": "load", "reason_code": "x", "exit_code": 1, "message": "m", "hint": "h"}
    report = make_report(failure=failure | {"model": "m", "path": "p", "line": 3})
    context = make_context(phase="plan_failed")
    return render_review_comment(redact_document(report, replace), context, budget).text


def _unchanged(replace: Replace, budget: int | None) -> str:
    report = make_report(decision="no_changes")
    context = make_context(phase="no_changes")
    return render_review_comment(redact_document(report, replace), context, budget).text


def _applying(replace: Replace, budget: int | None) -> str:
    progress = ProgressView(done=1, total=3, message=replace("m"))
    context = make_context(phase="applying", progress=progress)
    return render_apply_comment(
        None, context, budget, review=redact_document(make_report(), replace)
    ).text


def _applied(replace: Replace, budget: int | None) -> str:
    attempts = [
        {"number": 1, "result": "failed", "error": "e", "retried_because": "b", "seconds": 1.0},
        {"number": 2, "result": "succeeded", "seconds": 1.0},
    ]
    broken = [{"view": "v", "resolves": False, "error": "e"}]
    document = make_apply(attempts=attempts, views=broken)
    return render_apply_comment(
        redact_document(document, replace),
        make_context(phase="applied"),
        budget,
        review=redact_document(make_report(), replace),
    ).text


def _refused(replace: Replace, budget: int | None) -> str:
    difference = {"snapshots_added": ["a"], "snapshots_changed": ["c"], "fields_changed": ["f"]}
    document = make_apply(result="refused", reason_code="x", difference=difference, partial=["p"])
    context = make_context(phase="refused")
    return render_apply_comment(redact_document(document, replace), context, budget).text


def _left(replace: Replace, budget: int | None) -> str:
    document = make_cleanup(
        result="incomplete",
        leftovers=[{"object": "o", "why": "w"}],
        foreign=["f"],
        failure={"stage": "c", "reason_code": "x", "exit_code": 4, "message": "m", "path": "p"},
    )
    context = make_context(phase="cleanup_failed")
    return render_cleanup_comment(redact_document(document, replace), context, budget).text


def _closed(replace: Replace, budget: int | None) -> str:
    context = make_context(phase="closed")
    return render_cleanup_comment(redact_document(make_cleanup(), replace), context, budget).text


STATES = [_planned, _failed, _unchanged, _applying, _applied, _refused, _left, _closed]


def _word(_: str) -> str:
    return "word"


def check(state: Callable[[Replace, int | None], str], text: str, budget: int | None) -> Page:
    """The hostile comment has the same elements as a harmless one, and nothing in it is live."""
    page = assert_inert(state(lambda _: text, budget).partition("\n")[2])
    harmless = parse(state(_word, budget).partition("\n")[2])
    for tag in (page.tags | harmless.tags).keys() - {"code", "a"}:
        assert page.tags[tag] == harmless.tags[tag], f"<{tag}> for {text!r}"
    # A sentence has a span for each unusual word; a path that leads elsewhere is not linked.
    assert page.tags["a"] <= harmless.tags["a"]
    assert page.attributes <= harmless.attributes
    assert page.comments == harmless.comments
    return page


@pytest.mark.by_day(150)
@pytest.mark.parametrize("text", CORPUS)
@pytest.mark.parametrize("state", STATES)
def test_comment__hostile_text_changes_no_element(
    state: Callable[[Replace, int | None], str], text: str
) -> None:
    check(state, text, None)


@pytest.mark.parametrize("budget", [9_000, 20_000, None])
@given(text=TEXTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_planned_comment__any_text_stays_inert_at_any_budget(budget: int | None, text: str) -> None:
    comment = _planned(lambda _: text, budget)
    assert_inert(comment.partition("\n")[2])
    if budget is not None:
        assert len(comment.encode()) <= budget


# The default branch's policy writes Markdown on purpose; test_team_words holds what it may not be.
TEAM_MARKDOWN = {"team_words", "team_message"}


@pytest.mark.parametrize("name", sorted(templating.ESCAPES.keys() - TEAM_MARKDOWN))
def test_comment__its_check_fails_when_an_escape_is_gone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unescaped(text: str, *_: object) -> SafeMarkdown:
        return SafeMarkdown(text)

    monkeypatch.setitem(templating.ESCAPES, name, unescaped)
    templating.get_environment_of_comment_templates.cache_clear()
    caught = set()
    try:
        for state in STATES:
            for text in ("<img src=x> @octocat", "a|b\n\n```\n</details>"):
                try:
                    check(state, text, None)
                except AssertionError:
                    caught.add(state.__name__)
    finally:
        templating.get_environment_of_comment_templates.cache_clear()
    assert caught


@pytest.mark.parametrize("name", SAMPLES)
def test_sample__is_inert(name: str) -> None:
    assert_inert(SAMPLES[name]().partition("\n")[2], repository="octo/flights")


def test_comment__data_is_no_template() -> None:
    text = _planned(lambda _: "{{ 7*7 }}{% if %}{# #}", None)
    assert "`{{ 7*7 }}{% if %}{# #}`" in text


@pytest.mark.parametrize("text", CORPUS)
def test_context__hostile_branch_names_and_reasons_stay_inert(text: str) -> None:
    shared = {
        "project": text,
        "environment": text,
        "base_name": text,
        "override": DecisionOverrideView(by=text, reason=text),
        "conditions": (ApplyConditionView(label=text, met=False, next_command=text),),
    }
    refusal = ApplyRefusalView(reason_code=text, message=text, hint=text)
    for rendered in (
        render_review_comment(full_report(), make_context(**shared)),
        render_apply_comment(None, make_context(phase="refused", refusal=refusal, **shared)),
        render_cleanup_comment(
            make_cleanup(result="incomplete"),
            make_context(phase="cleanup_failed", apply_workflow=text, **shared),
        ),
    ):
        assert_inert(rendered.text.partition("\n")[2])


def test_planning__an_earlier_review_is_as_safe() -> None:
    context = make_context(phase="planning")
    for text in CORPUS:

        def replace(_: str, text: str = text) -> str:
            return text

        rendered = render_planning_comment(context, review=redact_document(full_report(), replace))
        assert_inert(rendered.text.partition("\n")[2])


@pytest.mark.parametrize("text", CORPUS)
def test_terminal__no_text_moves_the_cursor(text: str) -> None:
    for document in (full_report(), make_apply(), make_cleanup()):
        shown = on_terminal(redact_document(document, lambda _: text))
        assert all(char.isprintable() or char == "\n" for char in shown)


def test_redacted__reaches_every_field_that_holds_text() -> None:
    marked = redact_document(full_report(), lambda _: "REPLACED").model_dump(mode="json")

    def texts(value: object, key: str = "") -> list[tuple[str, str]]:
        if isinstance(value, dict):
            return [pair for name, item in value.items() for pair in texts(item, name)]
        if isinstance(value, list):
            return [pair for item in value for pair in texts(item, key)]
        return [(key, value)] if isinstance(value, str) else []

    known = {
        "activity",
        "environment",  # compared with what the bot asked about
        "head_sha",
        "base_sha",
        "merge_sha",
        "plan_id",
        "baseline",
        "planned_at",
        "decision",
        "change",
        "category",
        "action",
        "start",
        "end",
        "severity",
        "status",
        "confidence",
        "when",
        "on_base",
        "cause",
    }
    assert {key for key, text in texts(marked) if text != "REPLACED"} <= known
