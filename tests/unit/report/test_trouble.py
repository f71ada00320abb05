"""Comments in trouble: what failed comes first, and each says who does what next."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.report.markdown.comments import render_apply_comment, render_review_comment
from ci_bot.bot.report.model.context import CommentLinks
from ci_bot.bot.report.model.headline import make_headline_view
from ci_bot.protocol.apply_report import AppliedModel, ApplyVerdict, AuditTotals, ModelAudit
from ci_bot.protocol.base import Failure
from ci_bot.protocol.plan import ProdPlan
from ci_bot.protocol.review_report import ModelOwners
from tests.factories import (
    laptop_context,
    make_apply,
    make_backfill,
    make_change,
    make_context,
    make_report,
    make_table_diff,
)
from tests.golden.samples import report as recorded

QUERY = "SELECT\n  *\nFROM `sqlmesh__mart`.`mart__routes__1`\nWHERE\n  NOT `origin` IN ('EWR')"
RULES_URL = "https://github.com/octo/bot/blob/v1/docs/rules"


def failed_apply(*audits: ModelAudit, **overrides: Any) -> str:
    model = AppliedModel(
        model="mart.routes", table="t", intervals=1, batches=1, seconds=1.0, audits=list(audits)
    )
    failure = Failure(
        stage="apply",
        reason_code="failed",
        exit_code=1,
        message="Audits failed: accepted_values" if audits else "Job aborted: no space left",
        model="mart.routes",
    ).model_copy(update=overrides)
    document = make_apply(
        result="failed",
        failure=failure,
        models=[model],
        audits=AuditTotals(failed=len(audits), blocking_failed=len(audits)),
    )
    return render_apply_comment(document, make_context(phase="apply_failed")).text


def audit(**overrides: Any) -> ModelAudit:
    fields: dict[str, Any] = {
        "audit": "accepted_values",
        "blocking": True,
        "status": "failed",
        "failed_rows": 68,
        "query": QUERY,
    }
    return ModelAudit(**fields | overrides)


def test_apply_failed__an_audit_is_named_with_its_rows_and_the_query_that_shows_them() -> None:
    lines = failed_apply(audit()).split("\n")
    first = next(line for line in lines if line.startswith("**"))
    assert first == (
        "**The audit `accepted_values` failed on `mart.routes`: 68 rows. `prod` is unchanged.**"
    )
    text = "\n".join(lines)
    assert f"This query shows the rows:\n\n```sql\n{QUERY}\n```" in text
    assert "Audits failed:" not in text, "it says the same with less"
    assert "/sqlmesh apply 9f3c21aa01bc" in text


def test_apply_failed__several_audits_are_counted_and_no_query_is_invented() -> None:
    text = failed_apply(audit(query=None), audit(audit="not_null"))
    assert "68 rows. 1 more blocking audit failed. `prod` is unchanged.**" in text
    assert "This query" not in text


def test_apply_failed__a_warning_is_not_what_stopped_it() -> None:
    text = failed_apply(audit(blocking=False), message="Job aborted: no space left")
    assert "**`mart.routes` could not be built. `prod` is unchanged.**" in text
    assert "Job aborted: no space left" in text
    assert "This query" not in text


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("mart.routes", "**`mart.routes` could not be built. `prod` is unchanged.**"),
        (None, "**The apply stopped at the step `apply`. `prod` is unchanged.**"),
    ],
)
def test_apply_failed__without_an_audit_shows_the_message(model: str | None, told: str) -> None:
    text = failed_apply(model=model)
    assert told in text
    assert "```text\nJob aborted: no space left\n```" in text


def ended_apply(decision: str, **overrides: Any) -> str:
    verdict = ApplyVerdict(decision=decision, reasons=["x"])
    document = make_apply(verdict=verdict, **overrides)
    return render_apply_comment(document, make_context(phase="applied"), review=make_report()).text


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("no_go", "**Next:** fix it and push. This decision fails the check."),
        ("review", "are these numbers intended? If they are, merge. If they are not, change the"),
    ],
)
def test_applied__says_who_does_what_next(decision: str, told: str) -> None:
    assert told in ended_apply(decision)


def test_applied__of_the_same_data_is_merged() -> None:
    same = make_table_diff(
        rows_prod=9, rows_pr=9, matched=9, full_match=9, only_prod=0, only_pr=0, columns=[],
        window=None, complete=True,
    )  # fmt: skip
    text = ended_apply("go", table_diff=[same])
    assert "**Next:** merge as usual. `pr_142` is removed when the pull request is closed." in text


def test_applied__cost_is_a_line_of_its_own_also_where_lines_are_joined() -> None:
    sample = ended_apply("go")
    built = next(line for line in sample.split("\n\n") if line.startswith("Built: "))
    assert "\n" not in built


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        (
            ("a" * 40, "b" * 40),
            "**Why:** `main` has moved since the review: [`aaaaaaa` → `bbbbbbb`]",
        ),
        (("a" * 40, "a" * 40), "**Why:** the commits are the reviewed ones, so `prod`, an input"),
        (None, None),
    ],
)
def test_refused__says_what_moved_the_plan_and_how_to_review_again(
    moves: tuple[str, str] | None, told: str | None
) -> None:
    document = make_apply(
        result="refused",
        reason_code="plan_changed",
        difference={
            "snapshots_added": ["stg.new"],
            "snapshots_changed": [f"mart.m{number}" for number in range(9)],
        },
    )
    context = make_context(phase="refused", base_moves=moves)
    text = render_apply_comment(document, context).text
    assert (told in text) if told else ("**Why:**" not in text)
    assert "```\n/sqlmesh plan\n```" in text
    assert (
        "- only in the current plan: `stg.new`\n- another version than the reviewed one: " in text
    )
    assert "`mart.m0`, " in text
    assert "`mart.m7` and 1 more\n" in text


def test_refused__on_a_laptop_gives_the_shell_line() -> None:
    document = make_apply(result="refused", reason_code="plan_changed")
    text = render_apply_comment(document, laptop_context(phase="refused")).text
    assert "ci-bot review --project analytics --gateway spark_prod --environment pr_142" in text


@pytest.mark.parametrize(("intervals", "is_told"), [(999, False), (1_000, True)])
@pytest.mark.parametrize("decision", ["go", "review"])
def test_headline__of_a_go_says_that_prod_builds_much(
    intervals: int, is_told: bool, decision: str
) -> None:
    work = make_backfill("shop.a", intervals=intervals)
    report = make_report(
        decision=decision,
        risks=[],
        changes=[make_change("shop.a", change="added", category=None)],
        prod_plan=ProdPlan(would_fail=False, changes=1, backfill=[work], full_backfill=[work]),
    )
    told = "changes, but `prod` builds 1,000 intervals after the merge."
    assert (told in make_headline_view(report).sentence) is (is_told and decision == "go")


def test_rules__stand_behind_a_word_where_they_can_be_linked() -> None:
    context = make_context(rules_url=RULES_URL)
    links = CommentLinks(context)
    assert (
        links.link_rule_reason("R06-breaking-rebuild")
        == f"[why]({RULES_URL}/R06-breaking-rebuild.md)"
    )
    assert links.link_rule_reason("R06-breaking-rebuild", False).startswith("[breaking rebuild](")
    assert links.link_rule_reason("missing-column", False).startswith("[missing column](")
    assert links.link_rule_reason("not-a-rule-of-ours") == "`not-a-rule-of-ours`"
    assert (
        CommentLinks(make_context()).link_rule_reason("R06-breaking-rebuild")
        == "`R06-breaking-rebuild`"
    )


@pytest.mark.parametrize("known", [True, False])
def test_asked__says_who_may_accept_or_how_an_owner_becomes_known(known: bool) -> None:
    report = recorded("small_change")
    rule = "R06-breaking-rebuild"
    model = next(risk.model for risk in report.risks if risk.rule == rule) or ""
    owner = ModelOwners(model=model, logins=["ana"], teams=[], place="CODEOWNERS, line 1")
    report = report.model_copy(update={"owners": [owner] if known else []})
    text = render_review_comment(report, make_context(phase="planned", rules_url=RULES_URL)).text
    assert "intended?" in text
    page = RULES_URL.removesuffix("/rules") + "/policy.md#owners-accept-findings"
    accept = f'`@ana` may accept it, as an owner: `/sqlmesh accept {rule} {model} "reason"`'
    name = f"To accept it by a comment, [name an owner on GitHub]({page})."
    assert (accept in text, name in text) == (known, not known)
