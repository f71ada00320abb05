"""Numbers as people read them: times, counts of work, what is unknown, and why a window is short."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.markdown.comments import render_apply_comment, render_review_comment
from ci_bot.bot.report.words import describe_options, executor_time, short_window
from ci_bot.protocol.apply_report import AppliedModel
from ci_bot.protocol.plan import Backfill, ProdPlan, ShortWindow, WindowCause, sum_planned_work
from ci_bot.protocol.plan_identity import PlanOption
from tests.factories import (
    make_apply,
    make_backfill,
    make_context,
    make_cost,
    make_report,
    on_terminal,
)

VIEW: dict[str, Any] = {
    "kind": "VIEW",
    "action": "recreate_view",
    "start": None,
    "end": None,
    "intervals": 1,
    "batches": 1,
}


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (0.0, "0.0 s"),
        (0.0055, "20 s"),
        (0.0001, "0.4 s"),
        (0.5, "30 min"),
        (1.7, "1 h 42 min"),
        (23.99, "23 h 59 min"),
        (24.0, "24 h"),
        (1_204.4, "1,204 h"),
    ],
)
def test_executor_time__is_no_decimal_of_an_hour(hours: float, text: str) -> None:
    assert executor_time(hours) == text


def test_estimate__that_knows_one_of_four_tables_is_a_lower_bound() -> None:
    part = make_cost(price=14.2, unknown=["a.b", "a.c", "a.d"])

    comment = render_review_comment(make_report(cost=part), make_context()).text
    assert (
        "at least **20 s** of executor time, at least 14.20 at your rate; 3 of 4 tables unknown"
        in comment
    )
    shown = on_terminal(make_report(cost=part))
    assert "at least 20 s of executor time, at least 14.20 at your rate; 3 of 4 tables" in shown
    for text in (comment, shown):
        assert "about" not in text.partition("executor time")[0].splitlines()[-1]
        assert "0.0055" not in text


def test_estimate__that_knows_all_of_them_has_a_spread() -> None:
    comment = render_review_comment(make_report(cost=make_cost(price=14.2)), make_context()).text

    assert "about **20 s** of executor time (12 s to 32 s), about 14.20 at your rate" in comment
    assert "about 20 s of executor time (12 s to 32 s)" in on_terminal(
        make_report(cost=make_cost(price=14.2))
    )


def test_estimate__of_an_apply_is_in_the_same_words() -> None:
    document = make_apply(estimate=make_cost(price=14.2, unknown=["a.b"]), executor_hours=0.0041)

    text = render_apply_comment(document, make_context(phase="applied")).text

    assert "expected at least 20 s of executor time, took 15 s" in text


def applied(item: Backfill) -> AppliedModel:
    """What an apply reports of a planned table or view."""
    return AppliedModel(
        model=item.model,
        table=item.table,
        action=item.action,
        intervals=item.intervals,
        batches=item.batches,
        seconds=1.0,
    )


def test_counts__of_a_review_and_of_its_apply_are_the_same() -> None:
    backfill = [
        make_backfill("a.orders", intervals=366, batches=5),
        make_backfill("a.full", action="full_refresh", intervals=1, batches=1),
        make_backfill("a.small", intervals=1, batches=1),
        make_backfill("a.view", **VIEW),
    ]
    review = render_review_comment(
        make_report(backfill=backfill, work=backfill), make_context()
    ).text
    document = make_apply(models=[applied(item) for item in backfill])
    done = render_apply_comment(document, make_context(phase="applied")).text

    assert "**3 tables, 368 intervals** in 7 batches" in review
    assert "**3 tables, 368 intervals** in 7 batches" in done
    assert "3 tables, 368 intervals in 7 batches" in on_terminal(document)
    assert "3 tables, 368 intervals in 7 batches" in on_terminal(
        make_report(backfill=backfill, work=backfill)
    )


def test_counts__what_an_apply_only_audited_is_no_table() -> None:
    audited = AppliedModel(model="a.b", table="t", intervals=0, batches=0, seconds=0.0)

    assert sum_planned_work([audited]).tables == 0


def test_merge__says_what_prod_builds_and_what_an_apply_saves() -> None:
    report = make_report(
        prod_plan=ProdPlan(
            changes=1,
            full_backfill=[make_backfill(intervals=1_055)],
            backfill=[make_backfill(intervals=1_054)],
            would_fail=False,
        )
    )

    assert (
        "`prod` builds **1 table, 1,055 intervals**, 2024-01-01 → 2026-08-21; after an apply of "
        "this plan 1 table, 1,054 intervals"
        in render_review_comment(report, make_context()).text.replace("\u00a0", " ")
    )
    assert "prod builds 1 table, 1,055 intervals" in on_terminal(report, width=300)


def test_merge__a_plan_that_cannot_be_applied_saves_nothing() -> None:
    report = make_report(
        baseline="base-branch",
        prod_plan=ProdPlan(
            changes=1, full_backfill=[make_backfill()], backfill=[], would_fail=False
        ),
    )

    for text in (render_review_comment(report, make_context()).text, on_terminal(report)):
        assert "after an apply of this plan" not in text
        assert "reuses every table" not in text


# --------------------------------------------------------------------------- why a window is short


def window(
    cause: WindowCause,
    *models: str,
    start: str | None = "2026-11-21T00:00:00Z",
    said: PlanOption | None = None,
) -> str:
    found = ShortWindow(cause=cause, models=list(models), start=start, end="2026-11-22T00:00:00Z")
    return short_window(found, "pr_7", [said] if said else [])


BY_REVIEW = PlanOption(name="start", value="2026-11-01", source="review")
BY_PROJECT = PlanOption(
    name="start", value="2 weeks ago", source="project", key="cicd_bot.default_pr_start"
)
LEAST_BY_PROJECT = PlanOption(
    name="min-intervals", value="1", source="project", key="cicd_bot.pr_min_intervals"
)


MORE = "to see more, set the input `start` (`--start` on a laptop) of review and apply."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            window("forward_only_model", "shop.country_sales"),
            "`pr_7` gets 2026-11-21 only, because forward-only `shop.country_sales` is in the "
            "plan; " + MORE,
        ),
        (
            window("forward_only_model", "a.b", "a.c"),
            "`pr_7` gets 2026-11-21 only, because forward-only `a.b`, `a.c` are in the plan; "
            f"{MORE}",
        ),
        (
            window("auto_restatement", "a.a", "a.b", "a.c", "a.d"),
            "`pr_7` gets 2026-11-21 only, because `a.a`, `a.b`, `a.c` and 1 more have an "
            "`auto_restatement_cron`; " + MORE,
        ),
        (
            window("start", start="2026-11-01T00:00:00Z"),
            "`pr_7` gets 2026-11-01 → 2026-11-21 only, because the input `start` says so.",
        ),
        (
            window("start", said=BY_PROJECT),
            "`pr_7` gets 2026-11-21 only, because the project's `cicd_bot.default_pr_start` says "
            "so.",
        ),
        (
            window("start", said=BY_REVIEW),
            "`pr_7` gets 2026-11-21 only, because the reviewed plan begins there.",
        ),
        (
            window("min_intervals", said=LEAST_BY_PROJECT),
            "`pr_7` gets 2026-11-21 only, because the project's `cicd_bot.pr_min_intervals` is "
            "set and `start` is not; " + MORE,
        ),
        (
            window("end", start=None),
            "`pr_7` ends with 2026-11-21, because the input `end` says so.",
        ),
        (
            window("min_intervals"),
            "`pr_7` gets 2026-11-21 only, because `min-intervals` is set and `start` is not; "
            f"{MORE}",
        ),
    ],
)
def test_short_window__is_one_sentence(text: str, expected: str) -> None:
    assert text == expected


def test_options__stand_in_comment_and_terminal_with_who_said_them() -> None:
    report = make_report(
        options=[
            PlanOption(
                name="skip-backfill",
                value="true",
                source="project",
                key="cicd_bot.skip_pr_backfill",
            ),
            PlanOption(name="select-model", value="a`b | c", source="input"),
            BY_REVIEW,
        ]
    )

    comment = render_review_comment(report, make_context()).text
    assert (
        "**Options of the plan:** `skip-backfill: true` (project's `cicd_bot.skip_pr_backfill`), "
        "`select-model: a'b | c` (input)" in comment
    )
    assert "none, on purpose (`skip-backfill`): new tables stay empty" in comment
    shown = on_terminal(report, width=300)
    assert "skip-backfill: true (project's cicd_bot.skip_pr_backfill)" in shown
    assert "new tables stay empty" in shown
    assert (
        "**Options of the plan"
        not in render_review_comment(make_report(options=[]), make_context()).text
    )


def test_options__of_any_number_are_one_line() -> None:
    many = [PlanOption(name="select-model", value=f"m{i}", source="input") for i in range(10)]

    assert (describe_options(many) or "").endswith(" and 2 more")
    assert describe_options([BY_REVIEW]) is None


def test_short_window__stands_in_comment_and_terminal() -> None:
    report = make_report(
        short_window=ShortWindow(
            cause="forward_only_model",
            models=["shop.country_sales"],
            start="2026-11-21T00:00:00Z",
            end="2026-11-22T00:00:00Z",
        )
    )

    comment = render_review_comment(report, make_context()).text
    assert "because forward-only `shop.country_sales` is in the plan" in comment
    shown = on_terminal(report, width=300)
    assert (
        "because forward-only shop.country_sales is in the plan; to see more, set the input start ("
        in shown
    )


def test_later__reuse_of_a_part_is_told() -> None:
    backfill = [
        make_backfill("a.orders", intervals=1),
        make_backfill("a.whole"),
        make_backfill("a.full", action="full_refresh", intervals=1, preview=True),
        make_backfill("a.forward", intervals=1, preview=True),
    ]
    report = make_report(
        backfill=backfill,
        risks=[],
        prod_plan=ProdPlan(
            changes=1,
            full_backfill=[
                make_backfill("a.orders", intervals=1_055),
                make_backfill("a.whole"),
                make_backfill("a.full", action="full_refresh", intervals=1),
            ],
            backfill=[
                make_backfill("a.orders", intervals=1_054),
                make_backfill("a.full", action="full_refresh", intervals=1),
            ],
            would_fail=False,
        ),
    )
    top = on_terminal(report, width=200).partition("Next")[0]
    lines = [line.split("  ") for line in top.splitlines()]
    later = {line[1]: line[-1].strip() for line in lines if line[1:2] and line[1][:2] == "a."}

    assert later == {
        "a.orders": "reused, 1,054 more built",
        "a.whole": "reused",
        "a.full": "built again",
        "a.forward": "preview only",
    }


def test_commands__name_the_gateway_and_the_base() -> None:
    merged = make_report()
    comment = render_review_comment(merged, make_context()).text

    assert (
        "git fetch origin pull/142/merge && git checkout FETCH_HEAD\n"
        "ci-bot review --project analytics --gateway spark_prod --environment pr_142 "
        "--base-ref 'HEAD^1'\n" in comment
    )
    assert (
        "ci-bot review --project analytics --gateway spark_prod --environment pr_142 "
        "--baseline base-branch --base-ref 'HEAD^1'\n"
        in render_review_comment(make_report(baseline="base-branch"), make_context()).text
    )
    assert "--gateway spark_prod --environment pr_142 --plan-id" in on_terminal(merged, width=200)
