"""A team's policy in real reviews: whose version counts, and which models SQLMesh takes it to mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.decision import TeamLimits
from ci_bot.bot.policy.policy_file import UnfitPolicy
from ci_bot.protocol.cost import Price
from ci_bot.protocol.review_inputs import ModelScope
from ci_bot.protocol.review_report import Report, Risk
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.review.policy_scopes import evaluate_policy_scopes
from tests.projects.duck import write_duck_shop
from tests.projects.opened import opened
from tests.projects.repository import Files, Repository, write_repository
from tests.worker import Client

POLICY = "project/.sqlmesh-review.yaml"
TOP = "project/models/top_customers.sql"
SCRATCH = "project/models/scratch.sql"
MODEL = "shop.top_customers"
TOP_SQL = """\
MODEL (
  name shop.top_customers,
  kind VIEW,
  grain customer_id{tags}
);
{comment}
SELECT
  r.customer_id,
  r.revenue
FROM shop.revenue AS r
WHERE
  r.revenue > {least}
"""
LOW = """\
severity:
  - rule: [filter-changed, R06-breaking-rebuild]
    severity: low
    models: {models}
    reason: thresholds move every week
"""


def top(least: int, *, tags: str = "", comment: str = "") -> str:
    return TOP_SQL.format(least=least, tags=f",\n  tags {tags}" if tags else "", comment=comment)


def repository(root: Path, policy: str | None = None, **base: str) -> Repository:
    files: dict[str, str] = {TOP: base.get("top", top(100))}
    if policy is not None:
        files[POLICY] = policy
    return write_repository(root, files)


def review(made: Repository, files: Files, **options: Any) -> Report:
    """The report on a pull request that changes these files, by the real worker."""
    if "commits" not in options:
        options["commits"] = made.change(files)
    client = Client(made.root, projects=("project",))
    return client.review("pr_1", baseline="base-branch", **options)


def of(report: Report, rule: str) -> list[Risk]:
    return [risk for risk in report.risks if risk.rule == rule]


def weight(report: Report, rule: str = "filter-changed") -> str:
    """The weight of the one finding of a rule; `none` where it does not count."""
    aside = [risk for risk in report.set_aside if risk.rule == rule]
    found = of(report, rule)
    assert len(found) + len(aside) == 1, (report.risks, report.set_aside)
    return found[0].severity if found else "none"


@pytest.mark.night
def test_review__without_a_policy__is_review(tmp_path: Path) -> None:
    report = review(repository(tmp_path), {TOP: top(200)})
    assert (report.decision, weight(report), report.policy) == ("review", "high", None)


@pytest.mark.night
def test_policy__of_the_base_commit__weighs_what_it_means(tmp_path: Path) -> None:
    made = repository(tmp_path, LOW.format(models="shop.top*"))
    report = review(made, {TOP: top(200)})
    assert (report.decision, weight(report)) == ("go", "low")
    told = of(report, "filter-changed")[0].weighed
    assert told is not None
    assert (told.weight, told.place) == ("high", f"{POLICY} line 2")
    assert told.reason == "thresholds move every week"
    assert report.policy is not None
    assert (report.policy.source, report.policy.files, report.policy.entries) == (
        "base",
        [POLICY],
        1,
    )
    assert of(report, "policy-changed") == []


def test_policy__that_a_pull_request_brings__silences_nothing_and_is_a_finding(
    tmp_path: Path,
) -> None:
    made = repository(tmp_path)
    report = review(made, {TOP: top(200), POLICY: LOW.format(models="shop.top*")})
    assert (report.decision, weight(report), report.policy) == ("review", "high", None)
    (found,) = of(report, "policy-changed")
    assert (found.severity, found.path, found.line) == ("high", POLICY, 2)
    assert "`filter-changed`, `R06-breaking-rebuild` on `shop.top*` would weigh low" in (
        found.evidence
    )


@pytest.mark.night
def test_policy__that_a_pull_request_tightens__is_a_note(tmp_path: Path) -> None:
    made = repository(tmp_path, LOW.format(models="shop.top*"))
    report = review(made, {POLICY: "version: 1\n"})
    assert report.decision == "no_changes"
    assert [risk.severity for risk in of(report, "policy-changed")] == ["low"]


@pytest.mark.night
def test_policy__on_another_branch_than_the_default__makes_nothing_lighter(tmp_path: Path) -> None:
    made = repository(tmp_path, LOW.format(models="shop.top*"))
    report = review(made, {TOP: top(200)}, no_lighter="It is another branch.")
    assert weight(report) == "high"
    assert report.policy is not None
    assert not report.policy.loosens
    assert report.policy.not_loosened_because == "It is another branch."


@pytest.mark.night
def test_tag__that_the_pull_request_gives__changes_no_weight(tmp_path: Path) -> None:
    policy = LOW.format(models="tag:scratch")
    made = repository(tmp_path / "new", policy)
    assert weight(review(made, {TOP: top(200, tags="(scratch)")})) == "high"
    made = repository(tmp_path / "kept", policy, top=top(100, tags="(scratch)"))
    report = review(made, {TOP: top(200, tags="(scratch)")})
    assert weight(report) == "low"
    assert [change.tags for change in report.changes] == [["scratch"]]


def test_policy__that_cannot_be_used__is_refused_with_its_line(tmp_path: Path) -> None:
    wrong = LOW.format(models="shop.top*").replace("filter-changed", "filter-change")
    made = repository(tmp_path, LOW.format(models="shop.top*"))
    with pytest.raises(UnfitPolicy) as caught:
        review(made, {POLICY: wrong})
    assert (caught.value.exit_code, caught.value.path, caught.value.line) == (2, POLICY, 2)
    assert "`filter-change` (did you mean `filter-changed`" in caught.value.message


@pytest.mark.night
def test_policy__that_the_pull_request_mends__counts_for_nothing_before_it(tmp_path: Path) -> None:
    wrong = LOW.format(models="shop.top*").replace("filter-changed", "filter-change")
    made = repository(tmp_path, wrong)
    with pytest.raises(UnfitPolicy):
        review(made, {TOP: top(150)})
    report = review(made, {POLICY: LOW.format(models="shop.top*"), TOP: top(200)})
    assert weight(report) == "high"
    first, *_ = of(report, "policy-changed")
    assert "the base branch's cannot be used, so nothing of it counts" in first.evidence


@pytest.mark.night
def test_selection__that_sqlmesh_cannot_read__is_refused_with_its_line(tmp_path: Path) -> None:
    made = repository(tmp_path, LOW.format(models='"shop.* & (tag:x"'))
    with pytest.raises(UnfitPolicy) as caught:
        review(made, {TOP: top(150)})
    assert (caught.value.path, caught.value.line) == (POLICY, 2)
    assert "SQLMesh cannot read the selection `shop.* & (tag:x`" in caught.value.message
    with pytest.raises(UnfitPolicy):
        review(made, {POLICY: LOW.format(models="shop.* shop.orders")})
    report = review(made, {POLICY: LOW.format(models="shop.top*"), TOP: top(200)})
    assert weight(report) == "high"


COMMENT = "-- review: ignore[filter-changed, R06-breaking-rebuild] thresholds move every week"


@pytest.mark.night
def test_comment__counts_where_the_base_branch_has_it(tmp_path: Path) -> None:
    made = repository(tmp_path, top=top(100, comment=COMMENT))
    report = review(made, {TOP: top(200, comment=COMMENT)})
    assert (report.decision, weight(report)) == ("go", "none")
    assert of(report, "policy-changed") == []
    report = review(made, {TOP: top(300)})
    assert weight(report) == "high", "the pull request has taken it out"


@pytest.mark.night
def test_comment__that_a_pull_request_adds__is_a_finding(tmp_path: Path) -> None:
    made = repository(tmp_path)
    report = review(made, {TOP: top(200, comment=COMMENT)})
    assert (report.decision, weight(report)) == ("review", "high")
    found = of(report, "policy-changed")
    assert [(risk.severity, risk.path, risk.line) for risk in found] == [("high", TOP, 6)] * 2


@pytest.mark.night
def test_comment__in_a_file_that_another_model_moves_into__does_not_count(tmp_path: Path) -> None:
    """Whoever may silence a scratch model takes a model of others to its file."""
    made = repository(tmp_path)
    made.commit({SCRATCH: top(100, comment=COMMENT).replace(MODEL, "shop.scratch")})
    taken = top(200, comment=COMMENT)
    report = review(made, {TOP: None, SCRATCH: taken})
    assert (report.decision, weight(report)) == ("review", "high")
    assert of(report, "filter-changed")[0].path == SCRATCH


def owners(report: Report) -> dict[str, list[str]]:
    return {item.model: item.logins for item in report.owners}


CODEOWNERS = "* @lead\n/project/models/top* @alice\n/project/models/scratch* @mallory\n"


def test_owners__are_those_of_the_base_commits_file(tmp_path: Path) -> None:
    made = repository(tmp_path)
    made.commit({"CODEOWNERS": CODEOWNERS, SCRATCH: top(100).replace(MODEL, "shop.scratch")})
    report = review(made, {TOP: top(200), "CODEOWNERS": "* @mallory\n"})
    assert owners(report) == {MODEL: ["alice"]}
    assert report.owners[0].place == "CODEOWNERS line 2"
    # The same model from a new file of a folder of one's own, and from a file that was there.
    base = report.base_sha or ""
    for place in ("project/models/scratch_too.sql", SCRATCH):
        made.git("reset", "-q", "--hard", base)
        report = review(made, {TOP: None, place: top(200)})
        assert weight(report) == "high"
        assert owners(report) == {}, place


@pytest.mark.night
def test_owners__of_the_policy_count_wherever_the_file_is(tmp_path: Path) -> None:
    made = repository(tmp_path, "owners:\n- {models: shop.top*, github: ['@alice']}\n")
    made.commit({"CODEOWNERS": CODEOWNERS, SCRATCH: top(100).replace(MODEL, "shop.scratch")})
    report = review(made, {TOP: None, SCRATCH: top(200)})
    assert owners(report) == {MODEL: ["alice"]}
    made.git("reset", "-q", "--hard", report.base_sha or "")
    on_a_branch = review(made, {TOP: top(200)}, no_lighter="It is another branch.")
    assert owners(on_a_branch) == {}


@pytest.mark.night
def test_limits__of_the_policy__hold_where_no_input_says_otherwise(tmp_path: Path) -> None:
    price = "comment: {executor-hour-price: 2 EUR}\n"
    made = repository(tmp_path, f"limits: {{max-intervals: 0, fail-on: high}}\n{price}")
    orders = made.read("project/models/orders.sql")
    files = {"project/models/orders.sql": orders.replace("* 10 AS", "* 11 AS")}
    commits = made.change(files)
    report = review(made, {}, commits=commits)
    assert of(report, "R06-interval-limit")
    assert report.policy is not None
    assert report.policy.fail_on == "high"
    assert report.policy.executor_hour_price == Price.parse_price("2 EUR")
    report = review(made, {}, commits=commits, limits=TeamLimits(max_intervals=10_000))
    assert not of(report, "R06-interval-limit")


@pytest.mark.night
def test_tolerance__of_a_changed_model__is_in_the_report(tmp_path: Path) -> None:
    text = "data-diff:\n- {models: shop.*, tolerance: 0.5, reason: x}\n"
    text += "- {models: shop.top*, tolerance: 0.25, reason: x}\n"
    report = review(repository(tmp_path, text), {TOP: top(200)})
    assert report.policy is not None
    assert report.policy.tolerances == {"shop.top_customers": 0.25}


def scratch(root: Path) -> Path:
    (root / "scratch").mkdir()
    return root / "scratch"


SELECTIONS = {
    "shop.orders": {"shop.orders"},
    "shop.*r*": None,
    "shop.*": {"shop.customers", "shop.orders", "shop.revenue", "shop.top_customers"},
    "*customers": {"shop.customers", "shop.top_customers"},
    "tag:daily": {"shop.orders", "shop.revenue"},
    "TAG:DAILY": {"shop.orders", "shop.revenue"},
    "tag:d*": {"shop.orders", "shop.revenue"},
    "+shop.revenue": {"shop.customers", "shop.orders", "shop.revenue"},
    "shop.revenue+": {"shop.revenue", "shop.top_customers"},
    "+shop.revenue+": {"shop.customers", "shop.orders", "shop.revenue", "shop.top_customers"},
    "tag:daily & ^shop.orders": {"shop.revenue"},
    "shop.orders | shop.customers": {"shop.orders", "shop.customers"},
    "^shop.orders": {"shop.customers", "shop.revenue", "shop.top_customers"},
    "shop.none": set(),
    "shop.orders shop.revenue": None,
    "(shop.orders": None,
    "resource_type:nonsense": None,
    "": None,
}


def test_selections__mean_what_they_mean_to_sqlmesh(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path)
    shop.edit("models/orders.sql", "grain order_id,", "grain order_id,\n  tags (daily),")
    shop.edit("models/revenue.sql", "grain customer_id,", "grain customer_id,\n  tags (Daily),")
    scopes = [ModelScope(models=[text]) for text in SELECTIONS]
    with opened(scratch(tmp_path), shop.project) as project:
        context = project.context
        names = MessageNames(context.default_catalog, context.default_dialect)
        every = {names.short_name(fqn) for fqn in context.models}
        found = evaluate_policy_scopes(
            context, scopes, before=context.models, after=context.models, about=every, names=names
        )
    told = {
        text: None if answer.problem else set(answer.after)
        for text, answer in zip(SELECTIONS, found, strict=True)
    }
    assert told == SELECTIONS
    assert all(answer.before == answer.after for answer in found)


def test_scopes__go_by_both_versions_of_a_model(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path)
    shop.edit("models/orders.sql", "grain order_id,", "grain order_id, owner data, tags (scratch),")
    with opened(scratch(tmp_path), shop.project) as project:
        context = project.context
        names = MessageNames(context.default_catalog, context.default_dialect)
        after = dict(context.models)
        by_name = {names.short_name(fqn): fqn for fqn in after}
        orders, revenue = by_name["shop.orders"], by_name["shop.revenue"]
        before = dict(after)
        # Before the change orders had no tag and another owner, and revenue was not there.
        before[orders] = after[orders].copy(update={"tags": [], "owner": "finance"})
        del before[revenue]
        after[revenue] = after[revenue].copy(update={"tags": ["scratch"], "owner": "data"})
        gone = by_name["shop.top_customers"]
        del after[gone]
        found = evaluate_policy_scopes(
            context,
            [
                ModelScope(models=["tag:scratch"]),
                ModelScope(owners=["data"]),
                ModelScope(models=["shop.orders"], owners=["finance"]),
                ModelScope(models=["shop.revenue", "shop.top_customers"]),
            ],
            before=before,
            after=after,
            about=set(by_name),
            names=names,
        )
    assert [(answer.before, answer.after) for answer in found] == [
        ([], ["shop.orders", "shop.revenue"]),
        ([], ["shop.orders", "shop.revenue"]),
        (["shop.orders"], []),
        (["shop.revenue", "shop.top_customers"], ["shop.revenue", "shop.top_customers"]),
    ]
