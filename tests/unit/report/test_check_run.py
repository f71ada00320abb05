"""A review as a check: the comment's claim, its conclusion, and every finding at its line."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.markdown.check_run import (
    ApplyEnd,
    CheckRun,
    make_check_run_markdown,
    name_check_run,
)
from ci_bot.protocol.plan import Decision
from ci_bot.protocol.review_report import ModelOwners, Report
from tests.factories import HEAD, make_change, make_context, make_report, make_risk
from tests.golden.samples import SAMPLES, report
from tests.unit.report.dom import LIVE, parse
from tests.unit.report.evil import CORPUS
from tests.unit.report.first_screen import sentence

# What a finding can hold.
FIT = [text for text in CORPUS if len(text) <= 1_000 and "\ud800" not in text]
RUN = "https://github.com/octo/shop/actions/runs/8"


def check(given: Report, apply_end: ApplyEnd | None = None, **context: Any) -> CheckRun:
    made = make_check_run_markdown(
        given, make_context(report_url=RUN, **context), apply_end=apply_end
    )
    assert made is not None
    return made


def decided(decision: Decision, **more: Any) -> Report:
    return make_report(**more).model_copy(update={"decision": decision, "head_sha": HEAD})


@pytest.mark.parametrize(
    ("decision", "conclusion"),
    [
        ("go", "success"),
        ("no_changes", "success"),
        ("review", "neutral"),
        ("no_go", "failure"),
    ],
)
def test_conclusion__follows_the_decision(decision: Decision, conclusion: str) -> None:
    assert check(decided(decision)).conclusion == conclusion


@pytest.mark.parametrize(
    ("severity", "decision", "conclusion"),
    [
        ("high", "review", "action_required"),
        # Nobody is asked about a note, and no acceptance ends a blocker.
        ("medium", "review", "neutral"),
        ("blocker", "no_go", "failure"),
        ("high", "go", "success"),
    ],
)
def test_conclusion__asks_for_an_action_where_an_owner_can_take_it(
    severity: Any, decision: Decision, conclusion: str
) -> None:
    owner = ModelOwners(model="stg.orders", logins=["ada"], teams=[], place="CODEOWNERS line 1")
    risk = make_risk(rule="join-changed", model="stg.orders", severity=severity)
    assert check(decided(decision, risks=[risk], owners=[owner])).conclusion == conclusion


def test_annotations__are_all_findings__heaviest_first__each_at_its_line() -> None:
    risks = [
        make_risk(rule="select-star", model=f"m.m{n}", path=f"models/m{n}.sql", line=n)
        for n in range(120)
    ]
    risks += [
        make_risk(rule="join-changed", severity="blocker", path="models/a.sql", line=7),
        make_risk(rule="filter-changed", model="stg.orders", path=None, line=None),
        make_risk(rule="R01-prod-plan-fails", model=None, path=None, line=None),
    ]
    made = check(decided("no_go", risks=risks, changes=[make_change(path="models/orders.sql")]))
    assert len(made.annotations) == 122
    first = made.annotations[0]
    assert (first.path, first.line, first.level) == ("models/a.sql", 7, "failure")
    assert first.title == "blocker: join-changed"
    places = {(one.path, one.line) for one in made.annotations}
    assert ("models/orders.sql", 1) in places, "a finding without a file is at its model's"
    assert ("models/m0.sql", 1) in places, "GitHub takes no line 0"
    assert "122 findings at their lines, 1 without a file" in made.summary


@pytest.mark.parametrize(
    "name", ["small_change", "destructive_change", "failed_plan", "leaked_key"]
)
def test_summary__makes_the_claim_of_the_comments_first_screen(name: str) -> None:
    recorded = report(name)
    made = check(recorded.model_copy(update={"head_sha": HEAD}))
    said = sentence(SAMPLES[name]())
    assert said
    assert said in made.summary.replace("`", "")
    assert said.rstrip(".") in made.title
    assert "```mermaid" not in made.summary, "GitHub draws no picture in a check"
    assert "<details" not in made.summary
    assert RUN in made.summary
    assert made.details_url == RUN


def test_summary__of_a_wide_change__fits_into_what_github_takes() -> None:
    made = check(report("wide_change"))
    assert len(made.summary) < 65_535


def test_summary__after_an_apply__begins_with_what_the_data_says() -> None:
    made = check(decided("go"), ApplyEnd("The same rows as `prod`. 3 tables built."))
    assert made.summary.splitlines()[0].endswith("The same rows as `prod`. 3 tables built.")
    assert made.conclusion == "success"


@pytest.mark.parametrize("failed", [False, True])
def test_summary__after_an_apply__offers_nothing_that_it_has_built(failed: bool) -> None:
    recorded = report("small_change").model_copy(update={"head_sha": HEAD})
    reviewed, applied = check(recorded), check(recorded, ApplyEnd("4 tables built.", failed=failed))
    for offered in ("| To build |", "**Next:**", "/sqlmesh apply"):
        assert offered in reviewed.summary
        assert offered not in applied.summary


@pytest.mark.parametrize(
    ("decision", "conclusion"),
    [("go", "neutral"), ("review", "neutral"), ("no_go", "failure")],
)
def test_check__of_an_apply_that_failed__is_no_success(decision: Any, conclusion: str) -> None:
    made = check(decided(decision), ApplyEnd("Audits failed: `accepted_values`.", failed=True))
    assert made.conclusion == conclusion
    assert made.title.endswith(", but the apply failed: Audits failed: accepted_values.")
    assert "failed:** Audits failed" in made.summary.splitlines()[0]


@pytest.mark.parametrize(
    ("clears_when", "line"),
    [
        ("the owner agrees", ["Clears when: the owner agrees."]),
        ("nothing to do", []),
        ("nothing to do; please report it", ["Nothing to do; please report it."]),
        ("", []),
    ],
)
def test_annotation__says_how_the_finding_ends__if_somebody_has_to_do_something(
    clears_when: str, line: list[str]
) -> None:
    risk = make_risk(evidence="A column is new.", clears_when=clears_when)
    (made,) = check(decided("review", risks=[risk])).annotations
    assert made.message.splitlines() == ["A column is new.", *line]


@pytest.mark.parametrize("text", FIT)
def test_check__of_foreign_text__is_inert(text: str) -> None:
    risk = make_risk(model=text, evidence=text, clears_when=text, severity="high")
    made = check(decided("review", risks=[risk]), ApplyEnd(text), project=text)
    page = parse(made.summary)
    plain = parse(check(decided("review", risks=[]), ApplyEnd("x")).summary)
    assert set(page.tags) <= {*plain.tags, "ul", "li", "code", "a", "pre"}
    assert not [told for told in page.plain if LIVE.search(told)]
    assert all(one.isprintable() for one in (made.name, made.title, made.annotations[0].title))


def test_report__about_no_commit__has_no_check() -> None:
    assert (
        make_check_run_markdown(decided("go").model_copy(update={"head_sha": None}), make_context())
        is None
    )


def test_name__tells_projects_apart_and_is_one_line() -> None:
    assert name_check_run("shop/local") == "sqlmesh plan (shop/local)"
    assert len(name_check_run("x" * 500 + "\n")) < 130
