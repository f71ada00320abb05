"""`ci-bot review` at a terminal: at most 12 lines at any width, with the decision and its reasons."""

from __future__ import annotations

import re

import pytest

from ci_bot.bot.report.text.report_text import MOST_LINES, compare_rounds, render_short_review
from ci_bot.bot.report.text.screen import OutputScreen
from ci_bot.protocol.review_report import ProdNotFound, Report
from tests.factories import laptop_context, make_report, make_risk
from tests.golden.samples import report
from tests.reports import full_report, large_report

RECORDED = (
    "small_change",
    "base_branch",
    "destructive_change",
    "wide_change",
    "failed_plan",
    "leaked_key",
    "refused_plan",
    "base_broken",
    "no_changes",
)


REPORTS = {
    "full": full_report(),
    "large": large_report(1_000),
    "one": make_report(),
    **{name: report(name) for name in RECORDED},
}


_FACTS = ("Changes ", "To build ", "Checks ", "No apply: ")


def shown(found: Report, width: int = 96, *, colour: bool = False) -> list[str]:
    text = render_short_review(found, laptop_context(), OutputScreen(colour=colour, width=width))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    return text.splitlines()


@pytest.mark.parametrize("width", [60, 96, 200])
@pytest.mark.parametrize("name", REPORTS)
def test_short__has_at_most_twelve_lines_of_the_width(name: str, width: int) -> None:
    lines = shown(REPORTS[name], width)
    assert 1 < len(lines) <= MOST_LINES
    for line in lines:
        # What is to be copied stays in one line.
        assert len(line) <= width or "ci-bot " in line
        assert line == line.rstrip()


@pytest.mark.parametrize("width", [60, 96, 200])
@pytest.mark.parametrize("name", ["small_change", "full", "large", "failed_plan"])
def test_short__without_prod_has_twelve_lines_and_a_finding(name: str, width: int) -> None:
    missing = ProdNotFound(
        state="DuckDB, file 'db.db'", why="no table of SQLMesh is there", hint="Look there. " * 20
    )
    found = REPORTS[name].model_copy(
        update={"prod_not_found": missing, "baseline": "base-branch", "appliable": False}
    )
    lines = shown(found, width)
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("  - No prod was found in the state")
    assert "Look there" not in "".join(lines), "advice is in the whole report"
    assert any(line.startswith(("  - high: ", "  - blocker: ")) for line in lines)
    cut = [line for line in lines if line.endswith("…") and not line.startswith(_FACTS)]
    assert all(line.endswith(" …") for line in cut), "a line is cut after a word"


@pytest.mark.parametrize("name", ["no_changes", "small_change", "failed_plan"])
def test_short__without_prod_ends_with_the_decision(name: str) -> None:
    """The comment has its warning above or below the decision."""
    missing = ProdNotFound(state="DuckDB", why="no table of SQLMesh is there", hint="Look there.")
    found = report(name).model_copy(
        update={"prod_not_found": missing, "baseline": "base-branch", "appliable": False}
    )
    begins = {"no_changes": "⚪ No model changes · ", "small_change": "🟡 Review · "}
    assert shown(found)[-1].startswith(begins.get(name, "🔴 No-Go · "))


def test_short__counts_each_finding_that_it_does_not_show() -> None:
    risks = [make_risk(rule, severity="high", evidence="long words " * 12) for rule in
             ("random", "cross-join", "select-star", "limit-in-model")]  # fmt: skip
    lines = shown(make_report(risks=risks), 60)
    named = [line for line in lines if line.startswith("  - high: ")]
    assert 0 < len(named) < len(risks)
    assert f"  and {len(risks) - len(named)} more findings" in lines


def test_short__says_decision_reason_work_and_next_command() -> None:
    lines = shown(report("small_change"))
    text = "\n".join(lines)
    assert lines[-1].startswith("🟡 Review")
    assert any(line.startswith("  - high: R06-breaking-rebuild on ") for line in lines)
    assert "To build" in text
    assert "prod after the merge" in text
    assert "ci-bot explain R06-breaking-rebuild" in text
    assert "ci-bot apply --project" in lines[-2]


def test_short__of_a_failed_plan_keeps_the_way_out() -> None:
    found = report("failed_plan")
    text = " ".join(" ".join(line.split()) for line in shown(found))
    assert found.failure is not None
    assert found.failure.hint is not None
    assert "There is no plan: the project does not load." in text
    assert found.failure.hint.replace("`", "") in text


def test_short__of_a_failed_plan_says_that_a_key_has_leaked() -> None:
    found = report("refused_plan")
    assert any(line.startswith("  - blocker: hardcoded-secret in ") for line in shown(found))


def test_short__of_a_project_without_a_change_builds_nothing() -> None:
    unchanged = report("no_changes").model_copy(update={"prod_plan": None})
    text = "\n".join(shown(unchanged))
    assert "not known" not in text
    assert re.search(r"^To build +nothing$", text, re.M)


def test_short__names_the_weightiest_and_counts_the_rest() -> None:
    risks = [make_risk("select-star", severity="low", model=f"a.m{n}") for n in range(30)]
    risks += [make_risk("random", severity="high", model=f"a.n{n}") for n in range(3)]
    risks.append(make_risk("missing-column", severity="blocker", model="a.b"))
    lines = shown(make_report(decision="no_go", risks=risks))
    assert next(line for line in lines if line.startswith("  - ")).startswith(
        "  - blocker: missing-column on a.b"
    )
    assert any(line.startswith("  - high: random on a.n0 (+2)") for line in lines)
    assert "  and 1 more finding" in lines
    assert not any("ci-bot apply" in line for line in lines), "a No-Go has no next command"


def test_short__has_the_colours_of_its_heading() -> None:
    assert "\x1b[1;33m" in shown(report("small_change"), colour=True)[-1]


def test_short__recommends_no_apply_that_would_fail() -> None:
    why = "The gateway's engine is duckdb, and plans are applied on Spark here."
    lines = shown(make_report(appliable=False, not_appliable_because=why))
    assert not any("ci-bot apply" in line for line in lines)
    assert lines[-2] == f"No apply: t{why[1:]}"


def test_short__recommends_no_apply_of_what_is_built() -> None:
    lines = shown(make_report(environment_holds_plan=True, work=[]))
    assert lines[-2] == "Built already: pr_142 holds this plan, with all data."
    assert "ci-bot apply" in shown(make_report(environment_holds_plan=True))[-2]


def test_short__says_where_the_rest_is() -> None:
    assert any("All of it: --full, or --open for the page" in line for line in shown(make_report()))


def test_rounds__say_what_has_come_and_gone() -> None:
    before = make_report(risks=[make_risk("random", model="a.b"), make_risk("select-star")])
    after = before.model_copy(
        update={
            "decision": "no_go",
            "risks": [before.risks[1], make_risk("limit-in-model", model=None, path="x.sql")],
            "changes": before.changes[1:],
        }
    )
    assert compare_rounds(before, before) == []
    assert compare_rounds(before, after) == [
        "decision: Review → No-Go",
        "new finding: limit-in-model in x.sql",
        "gone: random on a.b",
        f"no longer changes: {before.changes[0].model}",
    ]
