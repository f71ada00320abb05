"""What each state of the comment has to say, in the words that a reader looks for."""

from __future__ import annotations

import re
from html import unescape

import pytest

from ci_bot.bot.report.html.page import render_page_parts
from ci_bot.bot.report.markdown.comments import (
    render_apply_comment,
    render_cleanup_comment,
    render_planning_comment,
    render_review_comment,
)
from ci_bot.bot.report.model.context import (
    ApplyConditionView,
    ApplyRefusalView,
    DecisionOverrideView,
)
from ci_bot.bot.report.model.headline import make_headline_view
from ci_bot.bot.report.text.report_text import render_short_review
from ci_bot.bot.report.text.screen import OutputScreen
from ci_bot.protocol.apply_report import AuditTotals
from ci_bot.protocol.base import Failure, shorten_plan_id
from ci_bot.protocol.comment import Phase
from ci_bot.protocol.plan import Cost, ProdPlan, TestsCheck, Window
from ci_bot.protocol.plan_identity import PlanFlags, PlanIdentity
from ci_bot.protocol.review_report import Baseline, ProdNotFound
from tests.factories import (
    HEAD,
    NOW,
    make_apply,
    make_backfill,
    make_change,
    make_checks,
    make_cleanup,
    make_context,
    make_report,
    make_risk,
    make_table_diff,
    on_terminal,
)
from tests.golden.samples import SAMPLES, report

SMALL_PLAN = shorten_plan_id(report("small_change").plan_id)


def sample(name: str) -> str:
    return SAMPLES[name]()


def review(phase: Phase = "planned", **overrides: object) -> str:
    return render_review_comment(make_report(**overrides), make_context(phase=phase)).text


def complete(phase: Phase = "planned", **overrides: object) -> str:
    return render_review_comment(make_report(**overrides), make_context(phase=phase), None).text


def test_complete_review__its_list_of_findings_says_how_many() -> None:
    one, other = make_risk("R01-lint", model="a"), make_risk("R06-breaking-rebuild", model="b")
    assert "<summary>1 finding</summary>" in complete(risks=[one])
    assert "<summary>All 2 findings, heaviest first</summary>" in complete(risks=[one, other])


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("small_change", "## 🟡 Review · `flights` → `pr_7`"),
        ("destructive_change", "## 🔴 No-Go · 2 things to fix · "),
        ("failed_plan", "## 🔴 No-Go · 1 thing to fix · "),
        ("base_broken", "## 🟡 Review · `flights`"),
        ("planning", "## 🔄 Re-planning for [`b2c3d4e`]"),
        ("applying", f"## 🟠 Applying `{SMALL_PLAN}` · "),
        ("applied", "## 🟡 Built in `pr_7` · the numbers differ from `prod` · "),
        ("apply_failed", "## ❌ Apply failed · `"),
        ("refused", "## ⛔ Apply refused · "),
        ("cancelled", "## ⏹️ Apply cancelled · "),
        ("closed", "## 🧹 `pr_7` is removed"),
        ("cleanup_failed", "## ⚠️ Cleanup incomplete: `pr_7`"),
    ],
)
def test_state__first_heading_says_what_happened(name: str, title: str) -> None:
    headings = [line for line in sample(name).split("\n") if line.startswith("## ")]
    assert headings[0].startswith(title)


def test_planned__the_command_names_the_plan() -> None:
    assert "```\n/sqlmesh apply 9f3c21aa01bc\n```" in review()
    assert "Needs:" not in review(), "what is met is not said"


def test_planned__a_plan_without_state_says_why_it_cannot_be_applied() -> None:
    text = review(
        appliable=False,
        baseline="base-branch",
        not_appliable_because="it was planned without the state database",
    )
    assert "this plan can't be applied: it was planned without the state database" in text
    assert "/sqlmesh apply" not in text
    assert "compared with the base branch, without state" in text


def test_planned__a_blocked_plan_offers_no_command() -> None:
    text = review(decision="no_go", risks=[make_risk(severity="blocker")])
    assert "fix it and push" in text
    assert "/sqlmesh apply" not in text


def test_planned__unmet_conditions_say_what_to_do() -> None:
    condition = ApplyConditionView(label="write access", met=False, next_command="ask `admins`")
    text = render_review_comment(make_report(), make_context(conditions=(condition,))).text
    assert "Needs: ☐ write access (ask `admins`)" in text


def test_planned__an_override_stays_visible() -> None:
    override = DecisionOverrideView(by="maria", reason="agreed in the review meeting")
    text = render_review_comment(make_report(), make_context(override=override)).text
    assert "> [!WARNING]" in text
    assert "`maria`, let this plan through in spite of its blockers: agreed in the review" in text


def test_planned__a_fork_says_what_was_not_asked() -> None:
    text = render_review_comment(make_report(), make_context(fork=True)).text
    assert "comes from a fork" in text
    assert "without access to the warehouse" in text


def test_planned__no_tests_are_not_a_pass() -> None:
    text = review(checks=make_checks(tests=TestsCheck(status="none")))
    assert "no unit tests" in text
    assert "nothing was tested, which is not a pass" in text
    assert "✅ 0" not in text


def test_planned__unknown_cost_is_unknown() -> None:
    text = review(cost=Cost(intervals=1, batches=1, tables_rebuilt=0, basis="no history"))
    assert "(executor time unknown)" in text
    assert "- no history" in text
    assert "of executor time" not in text


def test_planned__previews_and_reuse_are_kept_apart() -> None:
    backfill = [make_backfill("a.kept"), make_backfill("a.preview", preview=True)]
    text = complete(backfill=backfill, work=backfill)
    reused = text.index("**Built once, reused by `prod` after the merge** (1)")
    preview = text.index("**Preview only: lives in this environment, `prod` never reads it** (1)")
    assert reused < text.index("`a.kept` | incremental") < preview
    assert preview < text.index("`a.preview` | incremental")
    assert "1 preview that `prod` will not reuse" in text


def test_planned__work_that_is_done_is_said() -> None:
    text = review(work=[make_backfill(intervals=3)])
    assert "**3 intervals still to do**" in text


def test_planned__changes_of_the_base_branch_stand_apart() -> None:
    changes = [make_change("own.model"), make_change("base.model", from_base=True)]
    text = review(changes=changes)
    assert "Also: 1 change of `main`." in text
    assert "1 modified, out of 31 models; 1 breaking; 1 more come from `main`" in complete(
        changes=changes
    )
    assert "**From the base branch, not from this pull request** (1)" in text


def test_planned__a_prod_plan_that_would_fail_stands_on_the_first_screen() -> None:
    plan = ProdPlan(changes=1, backfill=[], would_fail=True, failure="`a.b` cannot be altered")
    text = review(prod_plan=plan)
    top = text.partition("<details")[0]
    assert "❌ **The plan for `prod` would fail**: `a.b` cannot be altered" in top


def test_planned__risks_of_one_rule_take_one_row() -> None:
    risks = [make_risk("R06", model=f"m.n{index}") for index in range(40)]
    top = review(risks=risks).partition("<details")[0]
    assert top.count("🟠") == 1
    assert "and 39 more: " in top


def test_planned__light_risks_are_counted_only() -> None:
    risks = [make_risk(severity="low"), make_risk(severity="info")]
    top = review(risks=risks, decision="go").partition("<details")[0]
    assert "| Risk |" not in top


def test_no_changes__explains_fingerprints_and_prints_the_command() -> None:
    text = render_review_comment(report("no_changes"), make_context(phase="no_changes"), None).text
    assert "fingerprints follow code, not data" in text
    assert "sqlmesh plan prod --restate-model MODEL --start START --end END" in text
    assert "The bot runs neither" in text
    assert "| Most work" not in text


def test_no_changes__the_command_names_what_was_asked_for() -> None:
    identity = PlanIdentity(
        environment="pr_142",
        gateway="spark_prod",
        suffix_target="schema",
        state_schema_version=100,
        flags=PlanFlags(restate_models=["stg.orders", "odd name;rm -rf /"]),
        window=Window(start="2026-08-01T00:00:00Z", end="2026-08-15T00:00:00Z", execution_time=NOW),
        snapshots=[],
        removed=[],
        restatements=[],
        statements=[],
    )
    text = complete("no_changes", decision="no_changes", identity=identity, changes=[])
    assert (
        "sqlmesh plan prod --restate-model stg.orders --restate-model 'odd name;rm -rf /'"
        " --start 2026-08-01 --end 2026-08-14"
    ) in text


def test_plan_failed__shows_place_message_hint_and_the_plan_before() -> None:
    text = sample("failed_plan")
    assert "[`models/staging/flights.sql:45`](https://github.com/octo/flights/blob/" in text
    assert "Expected table name" in text
    assert "Correct it and push; `sqlmesh info` shows the same locally." in text
    assert f"<summary>The last plan that worked: <code>{SMALL_PLAN}</code></summary>" in text
    assert f"`{SMALL_PLAN}` | 🟡 Review" in text, "it is in the history"


def test_plan_failed__long_output_is_cut_to_fifteen_lines() -> None:
    message = "\n".join(f"line {index}" for index in range(40))
    failure = Failure(stage="plan", reason_code="x", exit_code=1, message=message)
    text = review("plan_failed", failure=failure)
    assert "line 14\n```" in text
    assert "25 more lines in the log" in text


def test_applying__shows_progress_and_time_left() -> None:
    text = sample("applying")
    assert re.search(r"\*\*\d of 7 batches\*\*, about \d+ s left · `marts\.", text)
    assert "█░" in text


def test_applied__evidence_stands_beside_the_estimate() -> None:
    text = sample("applied")
    top = text.partition("<details")[0]
    assert "Built: **4 tables, 368 intervals** in 7 batches, 5,688 rows · " in top
    assert " · as planned" in top
    assert "✅ 17 audits passed" in top
    daily = "| `marts.`<br>`daily_carrier_performance`<br>changed: `late_arrivals`"
    assert daily in top
    assert "`late_arrivals` 70.56 %" in text
    assert "in 29.44 % of the rows: mean 14.29 → 14.75 · about 119 → 121 distinct values" in top
    assert "1 audit warns: `not_null_non_blocking` on `marts.route_summary`, 7 rows (same in" in top
    assert "| `██░░░░░░` 29.44\u00a0%<br>of 5,432 rows<br>0 gone, 0 new |" in top
    assert "`marts.carrier_fleet`<br>The model is new" in top


def test_applied__a_comparison_of_nothing_is_no_match() -> None:
    empty = {"rows_prod": 0, "rows_pr": 0, "matched": 0, "full_match": 0, "columns": []}
    document = make_apply(table_diff=[make_table_diff(**empty)])
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert "no rows on either side" in text
    assert "## ⚪ Built in `pr_142` · nothing to compare · " in text
    assert "same rows" not in text


def test_applied__broken_keys_are_no_match() -> None:
    document = make_apply(table_diff=[make_table_diff(duplicate_keys=4, full_match=412_904)])
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert "## 🟡 Built in `pr_142` · keys are not unique · " in text
    assert "4 duplicate keys" in text


def test_applied__nothing_to_apply_is_no_success() -> None:
    document = make_apply(result="nothing_to_apply", models=[], views=[], table_diff=[])
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert "## ⚪ Nothing to apply" in text
    assert "✅" not in text


def test_applied__a_view_that_does_not_resolve_is_no_clean_apply() -> None:
    document = make_apply(views=[{"view": "a.b", "resolves": False, "error": "table not found"}])
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert "## 🟡 Built in" in text
    assert "❌ 1 view does not resolve" in text
    assert "❌ `table not found`" in text


def test_applied__without_evidence_is_no_clean_apply_and_says_why() -> None:
    document = make_apply(table_diff=[], evidence_missing="it could not be collected: NOT_FOUND")
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert "## 🟡 Built in `pr_142` · the data was not checked" in text
    assert "⚠️ **Evidence not collected:** it could not be collected" in text
    assert "compared" not in text.partition("<details")[0]


def test_applied__of_what_prod_has_by_now_does_not_speak_of_the_environment() -> None:
    document = make_apply(
        result="nothing_to_apply", reason_code="no_changes", models=[], views=[], table_diff=[]
    )
    text = render_apply_comment(document, make_context(phase="applied")).text
    assert "`prod` already is what the project makes of it" in text
    assert "The environment already is" not in text


def test_cleanup_failed__of_an_environment_that_is_not_ours_proposes_no_second_try() -> None:
    failure = Failure(
        stage="cleanup",
        reason_code="not_ours",
        exit_code=3,
        message="Nothing proves that this repository made it.",
        hint="`ci-bot cleanup --project . --environment pr_142 --claim` removes it.",
    )
    document = make_cleanup(result="refused", leftovers=[], failure=failure)
    text = render_cleanup_comment(document, make_context(phase="cleanup_failed")).text
    assert "Nothing was touched." in text
    assert "--claim" in text
    assert "Done so far" not in text
    assert "```bash" not in text


def test_closed__says_for_each_reason_what_stays_and_until_when() -> None:
    kept = [
        {"table": "s.a__1", "why": "prod reads it", "until": "2026-08-30T12:00:00Z"},
        {"table": "s.a__2__dev", "why": "it is a preview", "until": None},
        {"table": "s.b__1", "why": "prod reads it", "until": "2026-08-31T12:00:00Z"},
    ]
    text = render_cleanup_comment(make_cleanup(tables_kept=kept), make_context(phase="closed")).text
    assert [line for line in text.splitlines() if " stay" in line and "<" not in line] == [
        "2 physical tables stay until 2026-08-31 12:00 UTC at the latest: prod reads it.",
        "1 physical table stays: it is a preview.",
    ]


def test_apply_failed__lists_what_may_be_half_built() -> None:
    text = sample("apply_failed")
    assert "**The audit `accepted_values` failed on `marts.route_summary`: 68 rows." in text
    assert "**May be half built** (1)" in text
    assert "no audit passed · ❌ 1 blocking audit failed: `accepted_values` on" in text
    assert "**Next:** If the code is the cause, push a fix" in text


@pytest.mark.parametrize(
    ("failed", "blocking", "told"),
    [
        (1, 1, "✅ 4 audits passed · ❌ 1 blocking audit failed · "),
        (3, 1, "✅ 4 audits passed · ❌ 1 blocking audit failed · ⚠️ 2 audits warn · "),
        (2, 0, "✅ 4 audits passed · ⚠️ 2 audits warn · "),
        (1, 0, "✅ 4 audits passed · ⚠️ 1 audit warns · "),
    ],
)
def test_apply__each_audit_is_counted_once(failed: int, blocking: int, told: str) -> None:
    totals = AuditTotals(passed=4, failed=failed, blocking_failed=blocking)
    text = render_apply_comment(make_apply(audits=totals), make_context(phase="applied")).text
    assert told in text


def test_refused__shows_the_difference() -> None:
    text = sample("refused")
    assert "- another version than the reviewed one: `marts.carrier_fleet`, `marts.c" in text
    assert "- only in the current plan: `staging.flights`\n" in text
    assert f"asked for `{SMALL_PLAN}`, the current plan is `" in text
    assert "Nothing was built and nothing was changed." in text


def test_refused__names_a_setting_that_differs() -> None:
    document = make_apply(result="refused", difference={"fields_changed": ["statements"]})
    text = render_apply_comment(document, make_context(phase="refused")).text
    assert "- this setting differs: `statements`" in text


def test_refused__says_that_the_reviewed_sets_are_gone() -> None:
    refusal = ApplyRefusalView(
        reason_code="plan_changed", message="It differs.", reviewed_sets_gone=True
    )
    text = render_apply_comment(None, make_context(phase="refused", refusal=refusal)).text
    assert "gone with their artifact" in text


def test_closed__proves_that_nothing_is_left() -> None:
    text = sample("closed")
    counts = "6 views and 1 schema dropped, 0 tables reclaimed"
    assert f"**Nothing is left**, checked with Spark after the drop: {counts}." in text
    assert "4 physical tables stay until 2014-01-09 00:00 UTC at the latest: kept for prod" in text
    assert f"<summary>The review of plan <code>{SMALL_PLAN}</code></summary>" in text


def test_closed__a_rescue_by_the_sweep_is_a_warning() -> None:
    text = render_cleanup_comment(make_cleanup(), make_context(phase="closed", rescued=True)).text
    assert "> [!WARNING]" in text
    assert "its own cleanup never ran" in text


def test_closed__an_environment_that_never_existed_is_no_failure() -> None:
    document = make_cleanup(result="nothing_to_do", existed=False, views_dropped=[])
    text = render_cleanup_comment(document, make_context(phase="closed")).text
    assert "## 🧹 `pr_142`: nothing to remove" in text


def test_cleanup_failed__lists_what_is_left_and_how_to_retry() -> None:
    text = sample("cleanup_failed")
    assert "`marts__pr_7.scratch_of_maria`" in text
    assert "gh workflow run apply.yml -f mode=cleanup -f pr-number=7" in text


@pytest.mark.parametrize("name", ["planning", "applied", "refused", "closed"])
def test_state__keeps_the_review_below(name: str) -> None:
    text = sample(name)
    assert "## 🟡 Review · " in text
    assert "SQL diff (" in text


def test_planning__a_first_plan_has_nothing_to_keep() -> None:
    context = make_context(phase="planning", new_head=HEAD)
    text = render_planning_comment(context).text
    assert "## 🔄 Planning [`a1b2c3d`]" in text
    assert "<details" not in text


@pytest.mark.parametrize("phase", ["planned", "closed", "applied"])
def test_renderers__refuse_a_state_that_is_not_theirs(phase: Phase) -> None:
    context = make_context(phase=phase)
    if phase != "planned":
        with pytest.raises(ValueError, match="no phase"):
            render_review_comment(make_report(), context)
    if phase != "applied":
        with pytest.raises(ValueError, match="no phase"):
            render_apply_comment(make_apply(), context)
    if phase != "closed":
        with pytest.raises(ValueError, match="no phase"):
            render_cleanup_comment(make_cleanup(), context)


def test_apply__an_ended_apply_needs_its_document() -> None:
    with pytest.raises(ValueError, match="shows a document"):
        render_apply_comment(None, make_context(phase="applied"))


def test_laptop__nothing_is_linked_without_a_repository() -> None:
    context = make_context(repository=None, run_url=None, report_url=None, marker=None)
    text = render_review_comment(make_report(), context).text
    assert "](http" not in text
    assert text.startswith("<!-- review -->")


def test_state_failure__is_in_the_first_lines_of_comment_and_terminal() -> None:
    failure = Failure(
        stage="plan",
        reason_code="state_unreachable",
        exit_code=2,
        message="The state database (postgres) cannot be read: Connection refused",
        hint="Check `host` and `port`.",
    )
    report = make_report(baseline="base-branch", state_failure=failure)

    for phase in ("planned", "no_changes"):
        text = render_review_comment(report, make_context(phase=phase)).text
        top = "\n".join(text.splitlines()[:8])
        assert "> **The state of `prod` was not read**" in top
        assert "Connection refused Check `host` and `port`." in top
    first = " ".join(on_terminal(report).split()[:40])
    assert "The state of prod was not read, so this compares with the base branch: The" in first
    assert "was not read" not in render_review_comment(make_report(), make_context()).text


MISSING = ProdNotFound(
    state="postgres, host 'db.example:5432', database 'state', schema 'sqlmesh', gateway 'spark'",
    why="it holds the environment 'dev', and no `prod`",
    hint="If prod has been built, check the gateway's `state_connection`.",
)
FIRST = MISSING.model_copy(update={"first_deployment": "chosen"})


@pytest.mark.parametrize(
    ("missing", "baseline", "lead", "so"),
    [
        (MISSING, "base-branch", "No prod was found", "So this compares with the base branch."),
        (MISSING, "empty", "No prod was found", "what this change does to existing data is not"),
        (FIRST, "empty", "First deployment: no prod was found", "`baseline: state` was chosen"),
    ],
)
def test_prod_not_found__is_in_the_first_lines_of_every_output(
    missing: ProdNotFound, baseline: Baseline, lead: str, so: str
) -> None:
    report = make_report(baseline=baseline, prod_not_found=missing)
    whole = "db.example:5432', database 'state', schema 'sqlmesh'"

    for phase in ("planned", "no_changes"):
        lines = render_review_comment(report, make_context(phase=phase)).text.splitlines()
        top = "\n".join(lines[:8]).replace("**", "").replace("`", "")
        assert lead in top
        assert "was found in the state (" in top
        assert whole in top
        assert so.replace("`", "") in top
    short = " ".join(
        render_short_review(report, make_context(), OutputScreen(width=100, colour=False)).split()
    )
    page = "".join(render_page_parts(report, make_context()))
    for text in (on_terminal(report), short, page):
        plainly = " ".join(unescape(re.sub(r"<[^>]*>", "", text)).replace("`", "").split())
        assert lead in plainly
        assert "was found in the state (" in plainly
        assert "database 'state'" in plainly
    assert short.index(lead) < short.index("Changes")
    assert "compared with prod" not in on_terminal(report)


def test_prod_not_found__no_sentence_says_that_nothing_existing_changes() -> None:
    added = make_report(
        changes=[make_change("shop.a", change="added", category=None)], risks=[], decision="go"
    )

    assert "nothing that exists today changes" in make_headline_view(added).sentence
    first = added.model_copy(update={"prod_not_found": FIRST, "baseline": "empty"})
    assert make_headline_view(first).sentence == "Adds the model `shop.a`."
