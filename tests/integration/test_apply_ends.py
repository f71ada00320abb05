"""Every end of an apply tells what it did, and what it could not look at the next one does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ci_bot.bot.worker_client import apply
from ci_bot.protocol.apply_report import ApplyDocument
from tests.conftest import PROD_UNTIL
from tests.integration.test_apply_and_cleanup import prod_intervals
from tests.integration.test_review import REVENUE
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

REVENUE_FILE = "models/revenue.sql"
CUSTOMERS_FILE = "models/top_customers.sql"
COUNTING = "evidence: counting rows"
RESOLVING = "verify: asking Spark"
AGAIN = "the virtual layer update failed; trying once more"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    """A shop of this module's own, because prod moves here."""
    with one_jvm(write_shop(tmp_path_factory.mktemp("ends-shop")), prod_until=PROD_UNTIL) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    with jvm.shop.kept():
        yield jvm.shop


def add_column(shop: Shop, name: str) -> None:
    shop.edit(REVENUE_FILE, REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {name}")


def ledger(shop: Shop, environment: str) -> dict[str, Any]:
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        row = connection.execute(
            "SELECT document FROM sqlmesh_ci_bot._environments WHERE name = ?", [environment]
        ).fetchone()
    assert row is not None
    found: dict[str, Any] = json.loads(row[0])
    return found


def built(document: ApplyDocument) -> set[str]:
    return {model.model for model in document.models}


def prod_rows(jvm: OneJvm) -> list[list[str]]:
    (rows,) = jvm.sql("SELECT * FROM shop.top_customers ORDER BY customer_id")
    return rows


def break_promotion(shop: Shop, environment: str) -> str:
    """Hive cannot make the environment's schema while there is a file in its place."""
    path = shop.warehouse / f"shop__{environment}.db"
    path.write_text("in the way", "utf-8")
    return str(path)


@pytest.mark.night
def test_retry__of_the_same_plan__builds_it(jvm: OneJvm, shop: Shop) -> None:
    add_column(shop, "retried")
    jvm.meanwhile(AGAIN, "unlink", path=break_promotion(shop, "pr_1"))

    document = jvm.apply("pr_1")

    assert document.failure is None
    assert [attempt.result for attempt in document.attempts] == ["failed", "succeeded"]
    assert document.result == "applied"
    assert built(document) == {"shop.revenue", "shop.top_customers"}
    assert ledger(shop, "pr_1")["phase"] == "applied"
    assert ledger(shop, "pr_1")["plan_id"] == document.plan_id
    # What would have been told at each step: never less than was there.
    told = [kept for kept in jvm.kept if isinstance(kept, ApplyDocument)]
    assert {kept.plan_id for kept in told} == {document.plan_id}
    assert {kept.reason_code for kept in told} == {"worker_ended"}
    last = told[-1]
    assert (last.result, apply.choose_exit_code_of_worker_apply(last)) == ("failed", 4)
    assert built(last) == built(document)
    assert {view.view for view in last.views} == {view.view for view in document.views}
    assert last.attempts == document.attempts
    assert "not checked to the end" in last.partial[0]
    assert told[0].models == []


def test_retry__after_a_changed_audit_that_failed__asks_it_again(jvm: OneJvm, shop: Shop) -> None:
    """SQLMesh asks it of new snapshots only, and the first apply has recorded this one."""
    audits = "audits (not_null(columns := (customer_id)))"
    shop.edit(
        REVENUE_FILE,
        audits,
        "audits (not_null(columns := (customer_id)), forall(criteria := (revenue < 0)))",
    )

    first, second = jvm.apply("pr_12"), jvm.apply("pr_12")

    for document in (first, second):
        assert document.result == "failed"
        assert document.failure is not None
        assert "forall" in document.failure.message, document.failure

    shop.edit(REVENUE_FILE, "revenue < 0", "revenue > 0")
    assert jvm.apply("pr_12").result == "applied"


@pytest.mark.night
def test_apply__whose_evidence_fails_once__collects_it_again(jvm: OneJvm, shop: Shop) -> None:
    add_column(shop, "replaced")
    view = "shop__pr_3.top_customers"
    jvm.meanwhile(COUNTING, "sql", statements=[f"DROP VIEW {view}"])
    jvm.meanwhile(
        COUNTING, "sql", statements=[f"CREATE VIEW {view} AS SELECT * FROM shop.top_customers"]
    )

    with jvm.views_looked_at_anew():
        document = jvm.apply("pr_3")

    assert (document.result, apply.choose_exit_code_of_worker_apply(document)) == ("applied", 0)
    assert document.evidence_missing is None
    assert {model.model: model.rows for model in document.models} == {
        "shop.revenue": 3,
        "shop.top_customers": 2,
    }
    assert ledger(shop, "pr_3")["phase"] == "applied"
    assert sum(line.startswith(COUNTING) for line in jvm.progress) == 2


def test_evidence__is_of_the_views_as_they_were_looked_at(jvm: OneJvm, shop: Shop) -> None:
    """Somebody's promotion replaces one right after: what was seen of it is asked all the same."""
    add_column(shop, "swapped")
    jvm.meanwhile(COUNTING, "sql", statements=["DROP VIEW shop__pr_13.top_customers"])

    document = jvm.apply("pr_13")

    assert document.evidence_missing is None
    assert {diff.model: diff.compared for diff in document.table_diff} == {
        "shop.revenue": True,
        "shop.top_customers": True,
    }
    assert sum(line.startswith(COUNTING) for line in jvm.progress) == 1


@pytest.mark.night
def test_apply__whose_evidence_fails__is_applied_and_the_next_one_collects_it(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "unseen")
    view = "shop__pr_4.top_customers"
    jvm.meanwhile(COUNTING, "sql", statements=[f"DROP VIEW {view}"])

    with jvm.views_looked_at_anew():
        document = jvm.apply("pr_4")

    assert (document.result, apply.choose_exit_code_of_worker_apply(document)) == ("applied", 0)
    assert document.failure is None
    assert "TABLE_OR_VIEW_NOT_FOUND" in (document.evidence_missing or "")
    assert document.table_diff == []
    assert built(document) == {"shop.revenue", "shop.top_customers"}
    assert all(view.resolves for view in document.views)
    assert ledger(shop, "pr_4")["phase"] == "promoted"

    # Its view reads what is not there: that is found, and not called applied already.
    jvm.sql(
        "CREATE TABLE shop.gone USING parquet AS SELECT 1 AS a",
        f"CREATE VIEW {view} AS SELECT * FROM shop.gone",
        "DROP TABLE shop.gone",
    )
    broken = jvm.apply("pr_4")
    assert (broken.result, broken.reason_code) == ("failed", "views_do_not_resolve")
    assert apply.choose_exit_code_of_worker_apply(broken) == 4
    assert broken.plan_id == document.plan_id
    assert [item.view for item in broken.views if not item.resolves] == [view]
    assert broken.evidence_missing == "some of its views do not resolve"
    assert ledger(shop, "pr_4")["phase"] == "promoted"

    jvm.sql(f"CREATE OR REPLACE VIEW {view} AS SELECT * FROM shop.top_customers")
    whole = jvm.apply("pr_4")
    assert (whole.result, whole.reason_code) == ("applied", "evidence_collected")
    assert (whole.attempts, whole.models) == ([], []), "nothing was built again"
    assert {diff.model for diff in whole.table_diff} == {"shop.revenue", "shop.top_customers"}
    assert ledger(shop, "pr_4")["phase"] == "applied"

    again = jvm.apply("pr_4")
    assert (again.result, again.reason_code) == ("nothing_to_apply", "already_applied")
    assert not any(line.startswith("verify") for line in jvm.progress)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "dropped",
    ["DROP VIEW shop__pr_13.top_customers", "DROP SCHEMA shop__pr_13 CASCADE"],
    ids=["one view", "the schema"],
)
def test_apply__of_an_environment_whose_views_are_gone__makes_them_again(
    jvm: OneJvm, shop: Shop, dropped: str
) -> None:
    """https://github.com/SQLMesh/sqlmesh/issues/5765"""
    add_column(shop, "views_gone")
    assert jvm.apply("pr_13").result in ("applied", "nothing_to_apply")
    jvm.sql(dropped)

    again = jvm.apply("pr_13")

    assert again.failure is None
    assert (again.result, again.reason_code) == ("applied", "views_made_again")
    assert again.models == [], "no table was built"
    assert {view.view: view.resolves for view in again.views} == {
        "shop__pr_13.revenue": True,
        "shop__pr_13.top_customers": True,
    }
    assert jvm.sql("SELECT SUM(views_gone) FROM shop__pr_13.revenue") == [[["30"]]]
    assert ledger(shop, "pr_13")["phase"] == "applied"
    assert jvm.apply("pr_13").reason_code == "already_applied"


@pytest.mark.night
def test_apply__whose_view_is_lost_before_it_was_looked_at__makes_it_again(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "lost_early")
    jvm.meanwhile(RESOLVING, "sql", statements=["DROP VIEW shop__pr_14.top_customers"])
    broken = jvm.apply("pr_14")
    assert (broken.result, broken.reason_code) == ("failed", "views_do_not_resolve")

    again = jvm.apply("pr_14")

    assert (again.result, again.reason_code) == ("applied", "views_made_again")
    assert all(view.resolves for view in again.views)


@pytest.mark.night
def test_apply__of_what_another_plan_was_looked_at_for__looks_again(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "narrow")
    assert jvm.apply("pr_5").result == "applied"

    # Another window is another plan id, and the same tables.
    document = jvm.apply("pr_5", end="2024-01-09")

    assert (document.result, document.reason_code) == ("applied", "evidence_collected")
    assert ledger(shop, "pr_5")["plan_id"] == document.plan_id


def test_apply__of_a_plan_that_prod_has_caught_up_with__has_nothing_left(
    jvm: OneJvm, shop: Shop
) -> None:
    asked = "ab" * 32
    document = jvm.apply("pr_6", plan_id=asked)
    assert (document.result, document.reason_code) == ("nothing_to_apply", "no_changes")
    assert document.plan_id == asked
    assert apply.choose_exit_code_of_worker_apply(document) == 0

    add_column(shop, "unknown")
    refused = jvm.apply("pr_6", plan_id=asked)
    assert (refused.result, refused.reason_code) == ("refused", "plan_changed")
    assert apply.choose_exit_code_of_worker_apply(refused) == 3
    assert prod_intervals(shop)


@pytest.mark.night
@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (31, "apply: building pr_31"),
        (32, "updating the virtual layer"),
        (33, COUNTING),
    ],
    ids=["before the tables", "before the views", "before the counting"],
)
def test_two_plans_of_shared_models__both_end_well(
    jvm: OneJvm, shop: Shop, number: int, moment: str
) -> None:
    """Two plans of the same models share their tables, and one finds what the other has just made.
    With plain SQLMesh one of two at once often ends with "already exists" or "not found"."""
    ours, theirs = f"pr_{number}", f"other_{number}"
    add_column(shop, f"shared_{number}")
    jvm.meanwhile(moment, "plan_by_hand", environment=theirs)

    document = jvm.apply(ours)

    assert (document.failure, document.result) == (None, "applied")
    assert all(view.resolves for view in document.views)
    assert {model.rows for model in document.models if model.model == "shop.revenue"} <= {3}
    for environment in (ours, theirs):
        rows = jvm.sql(f"SELECT SUM(shared_{number}) FROM shop__{environment}.revenue")
        assert rows == [[["30"]]]
    # What the other one uses stays.
    assert jvm.cleanup(ours, merged=False, reclaim="always").failure is None
    assert jvm.sql(f"SELECT SUM(shared_{number}) FROM shop__{theirs}.revenue") == [[["30"]]]


@pytest.mark.night
def test_retry__of_a_plan_that_is_another_by_now__is_not_built(jvm: OneJvm, shop: Shop) -> None:
    main = {
        path: (shop.project / path).read_text("utf-8") for path in (REVENUE_FILE, CUSTOMERS_FILE)
    }
    main[CUSTOMERS_FILE] = main[CUSTOMERS_FILE].replace("r.revenue > 100", "r.revenue > 250")
    add_column(shop, "moved")
    reviewed = jvm.apply("pr_2", plan_id="0" * 64)
    # Between the attempts somebody merges something else.
    jvm.meanwhile(
        AGAIN,
        "move_prod",
        files=main,
        until=PROD_UNTIL,
        unlink=break_promotion(shop, "pr_2"),
    )

    document = jvm.apply("pr_2", plan_id=reviewed.plan_id)

    assert document.failure is not None
    assert (document.result, document.reason_code) == ("failed", "plan_changed")
    assert apply.choose_exit_code_of_worker_apply(document) == 4
    assert "would be another one" in document.failure.message
    assert "has built shop.revenue" in document.failure.message
    assert "defect" not in f"{document.failure.message}{document.failure.hint}"
    assert document.plan_id == reviewed.plan_id
    assert document.difference is not None
    assert any("top_customers" in name for name in document.difference.snapshots_changed)
    assert [attempt.result for attempt in document.attempts] == ["failed"]
    assert "shop.revenue" in built(document)
    assert "may be half built" in document.partial[0]
    assert ledger(shop, "pr_2")["phase"] == "failed"
    assert ledger(shop, "pr_2")["plan_id"] == reviewed.plan_id
    assert prod_rows(jvm) == [["3", "300"]], "as the merge left them"
    (schemas,) = jvm.sql("SHOW NAMESPACES")
    assert ["shop__pr_2"] not in schemas
