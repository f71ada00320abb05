"""One question is asked once, and each place of it stays a finding of its own."""

from __future__ import annotations

from ci_bot.bot.decision import decide_on_review
from ci_bot.bot.decision.judgement import decide_on_review_again
from ci_bot.bot.policy.model_owners import AcceptancesByOwners
from ci_bot.bot.report.html.findings import HtmlReportSources, make_findings_section
from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.model.risk_groups import EACH_ALONE, group_findings, group_risks
from ci_bot.bot.report.text.report_text import render_terminal_text
from ci_bot.protocol.review_report import Acceptance, Report, Weighed
from ci_bot.protocol.rules import RULES
from tests.factories import make_change, make_context, make_report, make_risk
from tests.unit.decision.facts import changed, facts, found, judged

MANY = [
    make_risk("filter-changed", model=f"mart.m{n:02}", path=None, evidence=f"filter {n}")
    for n in range(42)
]


def test_group__has_one_entry_for_a_rule_and_all_of_its_places() -> None:
    (group,) = group_findings(MANY)
    assert (group.rule, group.severity) == ("filter-changed", "high")
    assert [place.model for place in group.places] == [risk.model for risk in MANY]
    assert [place.evidence for place in group.places][:2] == ["filter 0", "filter 1"]


def test_group__keeps_weights_and_their_reasons_apart() -> None:
    weighed = Weighed(by="severity", weight="high", reason="Legacy.", place="policy.yaml:3")
    other = make_risk("filter-changed", severity="medium")
    mine = make_risk("filter-changed", weighed=weighed)
    assert len(group_risks([*MANY, other, mine])) == 3


def test_group__never_holds_two_leaked_keys_or_two_gaps() -> None:
    keys = [make_risk("hardcoded-secret", path=f"{n}.py", model=None) for n in range(2)]
    gaps = [make_risk("R10-not-checked", subject=what, model=None) for what in ("lint", "audits")]
    assert len(group_risks([*keys, *gaps])) == 4


def test_group__never_holds_what_was_not_looked_at_of_any_kind() -> None:
    evidence = {spec.id for spec in RULES.values() if spec.scope == "evidence"}
    # What a data diff shows is one question about many models.
    looked_at = {name for name in evidence if name.startswith("R09-")}
    assert {"hardcoded-secret", *(evidence - looked_at)} == EACH_ALONE
    assert "hardcoded-secret" in RULES


def test_reasons__ask_each_question_once() -> None:
    findings = [found("filter-changed", "high", model=f"mart.m{n:02}") for n in range(42)]
    judgement = judged(changes=[changed()], findings=findings)
    assert [r for r in judgement.reasons if r.startswith("filter-changed")] == [
        "filter-changed on mart.m00 and 41 more: seen"
    ]
    assert sum(risk.rule == "filter-changed" for risk in judgement.risks) == 42


def reviewed() -> Report:
    changes = [make_change(f"mart.m{n:02}") for n in range(42)]
    return make_report(changes=changes, risks=MANY, findings=group_findings(MANY))


def test_report__comment_page_and_terminal_show_one_finding_with_its_places() -> None:
    report = reviewed()
    text = render_review_comment(report, make_context()).text
    assert "`mart.m00`" in text
    assert "and 41 more" in text
    assert "1 finding</summary>" in text
    rows = next(
        part["rows"]
        for section in make_findings_section(HtmlReportSources(report, make_context()))
        for part in section["parts"]
        if part.get("key") == "findings"
    )
    assert len(rows) == 1
    _told, others = rows[0][3]
    assert [place for place, _url, _evidence in others] == [risk.model for risk in MANY[1:]]
    assert others[-1][2] == "filter 41"
    terminal = render_terminal_text(report, make_context(), colour=False, width=200)
    assert "mart.m41" in terminal
    assert "filter 41" in terminal


def test_acceptance__of_one_place_leaves_the_others() -> None:
    accepted = Acceptance(
        rule="filter-changed",
        model="mart.m07",
        fingerprint="1234",
        severity="high",
        subjects=[""],
        by="octocat",
        at="2026-08-22T10:00:00Z",
        reason="Meant.",
        comment_id=1,
    )
    after = decide_on_review_again(
        reviewed(), AcceptancesByOwners((accepted,), {"mart.m07": "1234"})
    )
    assert [risk.model for risk in after.set_aside] == ["mart.m07"]
    (group,) = after.findings
    assert len(group.places) == 41
    assert "mart.m07" not in {place.model for place in group.places}
    assert after.reasons == ["filter-changed on mart.m00 and 40 more: filter 0"]


def test_rename__is_told_once() -> None:
    gone = changed("mart.old", change="removed", category=None)
    new = changed("mart.new", change="added", category=None)
    renamed = found("model-renamed", "high", model="mart.old")
    told = [
        risk.rule for risk in decide_on_review(facts(changes=[gone, new], findings=[renamed])).risks
    ]
    assert told.count("model-renamed") == 1
    assert "R04-model-removed" not in told
    assert "R04-model-removed" in {
        r.rule for r in decide_on_review(facts(changes=[gone, new])).risks
    }


def test_rename__of_a_model_that_is_still_read_blocks() -> None:
    gone = changed("mart.old", change="removed", category=None, readers=["mart.a"])
    renamed = found("model-renamed", "high", model="mart.old")
    assert decide_on_review(facts(changes=[gone], findings=[renamed])).decision == "no_go"
