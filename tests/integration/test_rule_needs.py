"""What the rules need, the production path gives: each fact lets a rule speak in a real review.

The reviews run as everywhere: the bot's own code asks the real worker in its processes, on a real
state. Only what an apply would have left behind is written by hand: an environment of SQLMesh, and
the ledger's rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.bot.decision import TeamLimits, judge_risks_of_data_diffs
from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_inputs import RestatementWish
from ci_bot.protocol.review_report import Report, Risk
from ci_bot.protocol.rules import FACTS, RULES, find_rule
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.state_store.cost_ledger import CostLedger, RunRow
from ci_bot.worker.state_store.ledger import Ledger, LedgerRow, LedgerSnapshot
from tests.conftest import PROD_UNTIL
from tests.github_standin.local_git import LocalGit
from tests.one_jvm import one_jvm
from tests.projects import Shop, write_shop
from tests.projects.duck import write_duck_shop
from tests.projects.forward import DOUBLED, UNTIL, write_forward_shop
from tests.worker import OWNER, Client

pytestmark = [pytest.mark.slow, pytest.mark.own_jvm]

AT = "2024-12-01T00:00:00Z"
LIMITS = TeamLimits(max_intervals=10, max_executor_hours=0.001)
MACRO = """\
from sqlmesh import macro


@macro()
def twice(evaluator, of):
    return f"{of} * 2"
"""
# Its catalog is written out, which is the default one.
ORDERS_BY_COUNTRY = """\
MODEL (name warehouse.shop.by_country, kind FULL, grain country);

SELECT
  CAST(country AS TEXT) AS country,
  CAST(@twice(SUM(amount)) AS BIGINT) AS doubled
FROM shop.orders
GROUP BY
  country
"""
FAILS = """\
test_by_country:
  model: shop.by_country
  inputs:
    shop.orders:
      rows:
        - {country: DE, amount: 2}
  outputs:
    query:
      rows:
        - {country: DE, doubled: 5}
"""
GAP = """\
MODEL (name shop.gap, kind FULL, grain id);

SELECT
  CAST(o.id AS INT) AS id,
  CAST(@VAR('nowhere') AS INT) AS nothing
FROM shop.orders AS o
"""


POLICY = """\
version: 1

severity:
  - rule: select-star
    severity: low
    reason: we know
"""


class History:
    """The shop: prod as the base commit says, and commits on top of it."""

    def __init__(self, root: Path) -> None:
        self.shop = write_forward_shop(root)
        self.shop.write(".gitignore", ".cache\n")
        self.shop.write("macros/__init__.py", "")
        self.shop.write("macros/twice.py", MACRO)
        self.shop.write("models/by_country.sql", ORDERS_BY_COUNTRY)
        self.shop.write("tests/test_by_country.yaml", FAILS)
        self.shop.edit(
            "config.yaml",
            "model_defaults:",
            "linter:\n  enabled: true\n  warn_rules: [nomissingaudits]\n\nmodel_defaults:",
        )
        self._plan("prod", UNTIL)
        self.git = LocalGit(self.shop.project)
        self.base = self.commit()

    def commit(self) -> str:
        self.git.commit({}, "A change")
        return self.git("rev-parse", "HEAD")

    def review(self, edit: Callable[[Shop], object], **options: Any) -> Report:
        edit(self.shop)
        commits = RequestedReviewCommits(base=self.base, head=self.commit())
        return Client(self.shop.project).review("pr_7", commits=commits, **options)

    def apply_elsewhere(self, environment: str, number: int) -> None:
        """What an apply of the checkout by another pull request leaves in state and ledger."""
        made = self._plan(environment, UNTIL)
        self._in_ledger(lambda adapter: Ledger(adapter).write_row(_row(environment, number, made)))

    def record_runs(self, *runs: RunRow) -> None:
        def add(adapter: Any) -> None:
            CostLedger(adapter).add_runs(list(runs), forget_before="2024")

        self._in_ledger(add)

    def _plan(self, environment: str, until: str) -> list[Any]:
        set_console(NoopConsole())
        context = Context(paths=[str(self.shop.project)])
        try:
            plan = context.plan_builder(
                environment, execution_time=until, skip_tests=True, skip_linter=True
            ).build()
            context.apply(plan)
            return list(plan.new_snapshots)
        finally:
            context.close()

    def _in_ledger(self, write: Callable[[Any], None]) -> None:
        context = Context(paths=[str(self.shop.project)], load=False)
        try:
            adapter = sqlmesh_compat.get_sqlmesh_state_adapter(context)
            Ledger(adapter).prepare_tables()
            write(adapter)
        finally:
            context.close()


def _row(environment: str, number: int, snapshots: list[Any]) -> LedgerRow:
    return LedgerRow(
        environment=environment,
        owner=OWNER,
        pr_number=number,
        head_sha=None,
        plan_id=None,
        phase="applied",
        gateway="duck",
        catalog="shop",
        suffix_target="schema",
        snapshots=[
            LedgerSnapshot(
                name=item.name,
                identifier=item.identifier,
                version=str(item.version),
                dev_version=item.dev_version,
                ours=True,
            )
            for item in snapshots
        ],
        created_at=AT,
        updated_at=AT,
    )


def run(model: str, *, rows: int | None = None) -> RunRow:
    return RunRow(
        environment="pr_3",
        model=model,
        version="1",
        intervals=1,
        batches=1,
        seconds=60.0,
        executor_seconds=60.0,
        rows=rows,
        bytes=None,
        at=AT,
    )


def everything(shop: Shop) -> None:
    """A change that reaches every fact of a plan."""
    shop.edit(*DOUBLED)
    shop.edit("models/customers.sql", "AS total\nFROM", "AS sold\nFROM")
    shop.edit("models/country_sales.sql", "AS sales,", "AS sales, CAST(MAX(amount) AS INT) AS top,")
    shop.edit("models/top_customers.sql", "kind VIEW", "kind FULL")
    shop.edit("models/segments.sql", "\nSELECT", "\nDELETE FROM shop.raw;\n\nSELECT")
    shop.edit("macros/twice.py", "* 2", "+ 0 * 2")
    shop.edit("tests/test_customers.yaml", "total: 5}", "sold: 6}")
    shop.write("models/gap.sql", GAP)
    shop.write(".sqlmesh-review.yaml", POLICY)
    shop.write(".env", "SHOP_PASSWORD=correct-horse-battery\n")


def one_country_less(shop: Shop) -> None:
    shop.edit("models/by_country.sql", "GROUP BY", "WHERE country <> 'FR'\nGROUP BY")


def gone_and_read(shop: Shop) -> None:
    (shop.project / "models" / "orders.sql").unlink()
    shop.edit("models/top_customers.sql", "kind VIEW", "kind FULL")


def by_hand(shop: Shop) -> None:
    # No other environment holds this version: SQLMesh would take its category from there.
    shop.edit("models/by_country.sql", "GROUP BY", "WHERE country <> 'DE'\nGROUP BY")
    setting = "plan:\n  auto_categorize_changes:\n    sql: 'off'\n"
    shop.edit("config.yaml", "model_defaults:", f"{setting}\nmodel_defaults:")


def broken(shop: Shop) -> None:
    shop.write("models/orders.sql", "MODEL (name shop.orders, kind NOTHING_SUCH);\nSELECT 1 AS a\n")


def a_note(shop: Shop) -> None:
    shop.edit("models/raw.sql", "kind SEED", "description 'raw',\n  kind SEED")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    made: dict[str, Report] = {}
    history = History(tmp_path_factory.mktemp("needs"))
    history.record_runs(run("shop.orders"), run("shop.top_customers", rows=2_000_000))
    # Another pull request changes the sums by country, too, in another way.
    one_country_less(history.shop)
    history.apply_elsewhere("pr_8", 8)
    history.git("checkout", "--quiet", ".")
    made["everything"] = history.review(everything, baseline="state", limits=LIMITS, fork=True)
    history.git("checkout", "--quiet", history.base)
    flags = GivenFlags(restate_models=["shop.by_country"])
    made["restated"] = history.review(one_country_less, baseline="state", flags=flags)
    history.git("checkout", "--quiet", history.base)
    wish = RestatementWish(model="shop.orders", by="alice", at=AT, reason="late rows", comment_id=9)
    made["restating"] = history.review(a_note, baseline="state", number=7, wish=wish)
    history.git("checkout", "--quiet", history.base)
    made["refused"] = history.review(gone_and_read, baseline="state")
    history.git("checkout", "--quiet", history.base)
    made["by hand"] = history.review(by_hand, baseline="state")
    history.git("checkout", "--quiet", history.base)
    made["broken"] = history.review(broken, baseline="state")
    history.base = made["broken"].head_sha or ""
    made["on a broken base"] = history.review(a_note, baseline="base-branch")
    made["without prod"] = Client(
        write_duck_shop(tmp_path_factory.mktemp("without-prod")).project
    ).review("pr_7")
    return made


# For each fact: a review, the rule that speaks in it and needs the fact, and what it says then.
NEEDS = {
    "base": ("everything", "kind-changed", "VIEW becomes FULL"),
    "base_failures": ("on a broken base", "R01-base-broken", "models/orders.sql"),
    "base_tests": ("everything", "R02-test-failed-before", "It fails on the base branch, too"),
    "changed_files": ("everything", "env-file-tracked", "tracked by git"),
    "cost": ("everything", "R07-over-budget", "executor time"),
    "effects": ("everything", "destructive-statement", "shop.raw"),
    "environments": ("everything", "R11-changed-elsewhere", "#8"),
    "failure": ("broken", "R01-load-failed", "Stage load"),
    "limits": ("everything", "R06-interval-limit", "the limit is 10"),
    "linter": ("everything", "lint-warning", "nomissingaudits"),
    "load_trace": ("everything", "R12-code-on-load", "macros/twice.py"),
    "policy": ("everything", "policy-changed", "loosens"),
    "prod_not_found": ("without prod", "R10-prod-not-found", "no table of SQLMesh is there"),
    "prod_plan": ("everything", "R05-forward-only-schema", "in place"),
    "pull_request": ("everything", "R10-fork", "in a fork"),
    "readers": ("everything", "R04-column-dropped", "still read by"),
    "restatements": ("restating", "restated-after-merge", "(late rows)"),
    "row_counts": ("everything", "huge-full-model", "2,000,000 rows"),
    "settings": ("everything", "undefined-variable", "nowhere"),
    "unit_tests": ("everything", "R02-test-fails", "test_customers"),
    "work": ("everything", "R06-breaking-rebuild", "in prod after the merge"),
}
# What only an apply makes.
OF_AN_APPLY = {"data_diff"}


def told(report: Report, id_: str) -> list[Risk]:
    return [risk for risk in report.risks if risk.rule == id_]


def test_needs__are_all_looked_at() -> None:
    assert NEEDS.keys() | OF_AN_APPLY == FACTS.keys()


@pytest.mark.night
@pytest.mark.parametrize("need", NEEDS)
def test_need__is_met_in_a_review(need: str, reports: dict[str, Report]) -> None:
    name, id_, words = NEEDS[need]
    assert need in find_rule(id_).needs
    assert words in " ".join(risk.evidence for risk in told(reports[name], id_)), [
        (risk.rule, risk.evidence) for risk in reports[name].risks
    ]


@pytest.mark.night
@pytest.mark.spark
def test_need__is_met_in_an_apply(tmp_path: Path, java: None) -> None:
    with one_jvm(write_shop(tmp_path)) as jvm:
        jvm.plan_prod(PROD_UNTIL)
        jvm.apply_prod()
        jvm.shop.edit("models/revenue.sql", "SUM(o.amount) AS", "SUM(o.amount) + 1 AS")
        document = jvm.apply("pr_7")
    (risk,) = (
        r
        for r in judge_risks_of_data_diffs(document.table_diff, TeamLimits())
        if r.model == "shop.revenue"
    )
    assert (risk.rule, risk.severity) == ("R09-values-differ", "medium")
    assert find_rule(risk.rule).needs == ("data_diff",)


def test_restatement__of_what_another_environment_uses(reports: dict[str, Report]) -> None:
    (risk,) = told(reports["restated"], "R08-restatement-elsewhere")
    assert (risk.model, risk.severity) == ("shop.by_country", "high")
    assert "`pr_8` also uses" in risk.evidence


def test_change__that_another_pull_request_makes_as_well_is_no_second_one(
    reports: dict[str, Report],
) -> None:
    assert told(reports["restated"], "R11-changed-elsewhere") == []


def test_refused_plan__names_its_model_and_keeps_what_is_seen(reports: dict[str, Report]) -> None:
    report = reports["refused"]
    (refusal,) = told(report, "R01-plan-failed")
    (removed,) = told(report, "removed-model-read")
    (kind,) = told(report, "kind-changed")
    assert (refusal.model, removed.model, kind.model) == (
        "shop.orders",
        "shop.orders",
        "shop.top_customers",
    )
    assert "warehouse" not in refusal.evidence
    assert (report.decision, report.appliable) == ("no_go", False)
    assert report.checks.tests.status != "not_run"


def test_refused_load__names_its_model(reports: dict[str, Report]) -> None:
    (failed,) = told(reports["broken"], "R01-load-failed")
    assert (failed.model, failed.path) == ("shop.orders", "models/orders.sql")


def test_change__without_a_category_is_told_with_its_model(reports: dict[str, Report]) -> None:
    report = reports["by hand"]
    (risk,) = told(report, "R01-uncategorized")
    assert (risk.model, risk.severity) == ("shop.by_country", "blocker")
    assert told(report, "filter-changed")
    assert not report.appliable


def test_models__are_called_one_way(reports: dict[str, Report]) -> None:
    report = reports["everything"]
    assert {risk.model.partition(".")[0] for risk in report.risks if risk.model} == {"shop"}
    (failed,) = told(report, "R02-test-failed-before")
    assert failed.model == "shop.by_country"
    # A statement names an object of the warehouse, and that has a catalog.
    others = [risk for risk in report.risks if RULES[risk.rule].scope != "statement"]
    assert not [risk for risk in others if "warehouse" in f"{risk.subject} {risk.evidence}"]


def test_finding__has_a_severity_that_its_page_names(reports: dict[str, Report]) -> None:
    risks = [risk for report in reports.values() for risk in report.risks]
    assert len({risk.rule for risk in risks}) > 25
    assert not [risk for risk in risks if risk.severity not in RULES[risk.rule].severities]
