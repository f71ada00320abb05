"""What a report says to do next, and what it says of checks and keys: true, and once."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.html.head import make_html_page_head
from ci_bot.bot.report.markdown.comments import (
    render_apply_comment,
    render_cleanup_comment,
    render_review_comment,
)
from ci_bot.bot.report.model.advice import list_recommendations
from ci_bot.protocol.base import Failure
from ci_bot.protocol.plan import FormatCheck, LintCheck, ProjectCheck, TestsCheck
from tests.factories import (
    laptop_context,
    make_apply,
    make_checks,
    make_cleanup,
    make_context,
    make_report,
    make_risk,
    make_table_diff,
)
from tests.golden.samples import report


def planned(**overrides: Any) -> str:
    return render_review_comment(make_report(**overrides), make_context(phase="planned")).text


def test_next__of_what_is_built_already_is_no_apply() -> None:
    text = planned(environment_holds_plan=True, work=[])
    assert "`pr_142` holds this plan already, with all of its data." in text
    assert "**All of this is built already** in `pr_142`" in text
    assert "/sqlmesh apply" not in text
    page = make_html_page_head(make_report(environment_holds_plan=True, work=[]), make_context())
    assert page.next == "Nothing to build: `pr_142` holds this plan, with all data."
    assert not page.command


@pytest.mark.parametrize("reason", ["not_a_pr_environment", "prod", "pinned", "not_ours"])
def test_cleanup__that_was_refused_does_not_say_to_run_it_again(reason: str) -> None:
    assert "ci-bot cleanup" not in refused_cleanup(reason)


@pytest.mark.parametrize("reason", ["held", "state_locked"])
def test_cleanup__that_was_not_its_turn_says_how_to_run_it_again(reason: str) -> None:
    assert "ci-bot cleanup" in refused_cleanup(reason)


def refused_cleanup(reason: str) -> str:
    failure = Failure(stage="cleanup", reason_code=reason, exit_code=3, message="No.", hint="Hint.")
    document = make_cleanup(result="refused", failure=failure, state_record_removed=False)
    return render_cleanup_comment(document, laptop_context(phase="cleanup_failed")).text


def test_checks__say_each_thing_once_and_with_its_noun() -> None:
    checks = make_checks(
        tests=TestsCheck(status="none"),
        lint=LintCheck(status="off"),
        formatting=FormatCheck(status="needs_format", checked=2, files=["a.sql"]),
    )
    gaps = [
        make_risk("R10-not-checked", severity="info", model=None, path=None, subject=name)
        for name in ("unit tests", "lint", "data diff")
    ]
    line = next(line for line in planned(checks=checks, risks=gaps).splitlines() if "⬜" in line)
    assert line == (
        "no unit tests · lint is off · ⚠️ 1 of 2 changed files needs `sqlmesh format` · ⬜ not "
        "checked: data diff"
    )


def test_advice__ends_each_sentence_once() -> None:
    checks = make_checks(
        project=[
            ProjectCheck(
                name="state", status="warn", message="There is no state yet.", fix="Build."
            )
        ]
    )
    assert "There is no state yet. Build." in list_recommendations(make_report(checks=checks))


def test_no_changes__can_be_built_where_unmodified_models_are_asked_for() -> None:
    nothing: dict[str, Any] = {"changes": [], "backfill": [], "work": [], "decision": "no_changes"}
    context = make_context(phase="no_changes")
    text = render_review_comment(
        make_report(**nothing, identity=report("small_change").identity), context
    ).text
    assert "gets a view of every model, because `include-unmodified` asks for it" in text
    assert "/sqlmesh apply" in text
    assert "/sqlmesh apply" not in render_review_comment(make_report(**nothing), context).text


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"null_keys": 1, "duplicate_keys": 0}, "rows without a key"),
        ({"null_keys": 1, "duplicate_keys": 2}, "keys are not unique"),
    ],
)
def test_applied__says_what_is_wrong_with_the_keys(keys: dict[str, int], told: str) -> None:
    document = make_apply(table_diff=[make_table_diff(**keys)])
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert f"· {told} ·" in text
    assert ("keys are not unique" in text) == (told == "keys are not unique")
