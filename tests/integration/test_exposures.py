"""Readers outside of the project in real reviews: whose version counts, and who is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.policy.policy_file import UnfitPolicy
from ci_bot.protocol.review_report import Report
from tests.integration.test_team_policy import of, review
from tests.projects.repository import Repository, write_repository

POLICY = "project/.sqlmesh-review.yaml"
LISTED = "dashboards/exposures.yml"
SOLD = "shop.sales"
RULE = "exposure-affected"
SALES = "project/models/sales.sql"
BELOW = "project/models/daily.sql"
SALES_SQL = """\
MODEL (
  name shop.sales,
  kind FULL,
  grain id
);

SELECT
  c.customer_id AS id,
  {amount} AS amount,
  CAST(c.customer_id AS TEXT) AS label
FROM shop.customers AS c
"""
DAILY_SQL = """\
MODEL (
  name shop.daily,
  kind FULL
);

SELECT
  s.label,
  SUM(s.amount) AS total
FROM shop.sales AS s
GROUP BY
  s.label
"""
OWN = """\
exposures:
  - name: Revenue dashboard
    owner: "@alice"
    reads:
      sales: [amount]
  - name: Label printer
    owner: acme/printing
    reads:
      shop.sales: [label]
      shop.gone: all
  - name: Everything
    owner: bi@acme.example
    reads:
      shop.daily: all
"""
FILE = f"exposures:\n  - file: {LISTED}\n    owner: acme/data\n"
DBT = """\
version: 2
exposures:
  - name: weekly
    type: dashboard
    depends_on: [ref('sales')]
    owner: {name: Jo, email: jo@acme.example}
    meta: {columns: {sales: [id, amount]}}
"""


def sales(amount: str) -> str:
    return SALES_SQL.format(amount=f"CAST({amount} AS INT)")


def repository(root: Path, **files: str) -> Repository:
    made = {SALES: sales("c.customer_id"), BELOW: DAILY_SQL}
    return write_repository(root, made | files)


def found(report: Report) -> dict[str, str]:
    """The reader and the model of each finding, with what it says."""
    return {f"{r.subject} {r.model}": r.evidence.partition(" reads ")[2] for r in of(report, RULE)}


def test_readers__of_what_changes__are_named_and_others_are_not(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: OWN})
    report = review(made, {SALES: sales("c.customer_id * 2")})
    assert found(report) == {
        "Revenue dashboard shop.sales": "`amount`: `amount` has other values.",
        "Everything shop.daily": "all columns: `total` has other values.",
    }
    assert {risk.severity for risk in of(report, RULE)} == {"high"}
    (owners,) = report.owners
    assert (owners.model, owners.rule, owners.subject) == (SOLD, RULE, "Revenue dashboard")
    assert (owners.logins, owners.place) == (["alice"], f"{POLICY} line 2")
    (note,) = [note for note in report.notes if "Exposures" in note]
    assert note == (
        f"Exposures to bring up to date: `Label printer` ({POLICY} line 6) reads `shop.gone`, "
        "which is no model of the project."
    )


@pytest.mark.night
def test_review__of_a_policy_without_exposures__says_nothing_of_them(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: "limits: {max-intervals: 5}\n"})
    report = review(made, {SALES: sales("c.customer_id * 2")})
    assert found(report) == {}
    assert "xposure" not in report.to_json()


def test_pull_request__cannot_silence_its_own_finding(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: FILE, LISTED: DBT})
    change = {SALES: sales("c.customer_id * 2")}
    report = review(made, change | {LISTED: "exposures: []\n"})
    assert found(report) == {"weekly shop.sales": "`id`, `amount`: `amount` has other values."}
    (risk,) = of(report, RULE)
    assert risk.evidence.startswith("`weekly` of `@acme/data` and `Jo` and `jo@acme.example` ")
    (gone,) = of(report, "policy-changed")
    assert (gone.severity, gone.path) == ("high", LISTED)
    assert "the exposure `weekly` would go" in gone.evidence


def test_file__that_cannot_be_used__stops_the_review_until_it_is_fixed(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: FILE, LISTED: "exposures: 3\n"})
    change = {SALES: sales("c.customer_id * 2")}
    with pytest.raises(UnfitPolicy) as caught:
        review(made, change)
    assert (caught.value.path, caught.value.line) == (LISTED, 1)
    made.git("reset", "-q", "--hard", "HEAD~1")
    report = review(made, change | {LISTED: DBT})
    assert found(report) == {}, "nothing of the base branch's counts"
    assert "cannot be used, so nothing of it counts" in of(report, "policy-changed")[0].evidence


def test_pull_request__that_breaks_the_file__is_refused(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: FILE, LISTED: DBT})
    with pytest.raises(UnfitPolicy) as caught:
        review(made, {LISTED: "exposures: 3\n"})
    assert caught.value.path == LISTED


def test_model_and_column__that_go__name_their_readers(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: OWN})
    report = review(made, {BELOW: None})
    assert found(report) == {"Everything shop.daily": "all columns: the model goes away."}
    (removed,) = of(report, "R04-model-removed")
    assert "outside of it, `Everything` reads it" in removed.evidence


@pytest.mark.night
def test_column__that_gets_another_type__says_which(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: OWN})
    report = review(made, {SALES: SALES_SQL.format(amount="CAST(c.customer_id AS TEXT)")})
    assert found(report)["Revenue dashboard shop.sales"] == (
        "`amount`: `amount` gets another type (`INT` to `TEXT`)."
    )


@pytest.mark.night
def test_rewrite__that_gives_the_same__asks_nobody(tmp_path: Path) -> None:
    made = repository(tmp_path, **{POLICY: OWN})
    renamed = sales("c.customer_id").replace("c.customer", "k.customer").replace(" AS c", " AS k")
    report = review(made, {SALES: renamed})
    assert [change.model for change in report.changes if change.change == "direct"] == [SOLD]
    assert found(report) == {}
