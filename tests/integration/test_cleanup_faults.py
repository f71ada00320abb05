"""Cleanups of environments that are not as they were left, and what they must not touch."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from ci_bot.bot.worker_client import cleanup
from tests.conftest import PROD_UNTIL
from tests.integration.test_apply_and_cleanup import prod_intervals
from tests.integration.test_review import REVENUE
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


@pytest.fixture(scope="module")
def jvm(built_shop: Shop) -> Iterator[OneJvm]:
    with one_jvm(built_shop, alone_there=False) as made:
        yield made


def apply(jvm: OneJvm, environment: str, column: str) -> None:
    added = f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {column}"
    jvm.shop.edit("models/revenue.sql", REVENUE, added)
    document = jvm.apply(environment)
    assert document.result == "applied", document.failure


def recorded(shop: Shop) -> set[str]:
    """The environments that state and ledger know."""
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        rows = connection.execute(
            "SELECT name FROM sqlmesh._environments "
            "UNION SELECT name FROM sqlmesh_ci_bot._environments"
        ).fetchall()
    return {str(name) for (name,) in rows}


def schemas(jvm: OneJvm) -> set[str]:
    return {row[0] for row in jvm.sql("SHOW NAMESPACES")[0]}


def test_cleanup__with_a_view_already_gone__removes_the_rest(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_61", "view_gone")
    jvm.sql("DROP VIEW shop__pr_61.revenue")

    document = jvm.cleanup("pr_61", merged=True)

    assert document.result == "removed"
    assert document.views_dropped == ["shop__pr_61.top_customers"], "only what really was dropped"
    assert document.schemas_dropped == ["shop__pr_61"]
    assert "pr_61" not in recorded(shop)


@pytest.mark.night
def test_cleanup__with_the_schema_already_gone__finishes_the_records(
    jvm: OneJvm, shop: Shop
) -> None:
    apply(jvm, "pr_62", "schema_gone")
    jvm.sql("DROP SCHEMA shop__pr_62 CASCADE")

    document = jvm.cleanup("pr_62", merged=True)

    assert document.result == "removed"
    assert (document.views_dropped, document.schemas_dropped) == ([], [])
    assert document.state_record_removed
    assert "pr_62" not in recorded(shop)
    assert jvm.cleanup("pr_62", merged=True).result == "nothing_to_do"


def test_cleanup__a_foreign_table_outlives_the_teams_next_run(jvm: OneJvm, shop: Shop) -> None:
    apply(jvm, "pr_63", "foreign_there")
    jvm.sql("CREATE TABLE shop__pr_63.notes USING parquet AS SELECT 7 AS a")

    document = jvm.cleanup("pr_63", merged=True)
    # Its janitor drops the schemas of expired environments with CASCADE.
    jvm.run_prod(PROD_UNTIL)

    assert cleanup.choose_exit_code_of_worker_cleanup(document) == 4
    assert document.foreign == ["shop__pr_63.notes"]
    assert document.failure is not None
    assert document.failure.message == "1 object is left of pr_63: shop__pr_63.notes."
    assert jvm.sql("SELECT a FROM shop__pr_63.notes") == [[["7"]]]
    assert "pr_63" in recorded(shop), "the ledger remembers that something is left"

    jvm.sql("DROP TABLE shop__pr_63.notes")
    assert jvm.cleanup("pr_63", merged=True).schemas_dropped == ["shop__pr_63"]
    assert "pr_63" not in recorded(shop)


@pytest.mark.night
def test_cleanup__with_the_suffix_on_the_table__leaves_prods_schema_alone(
    jvm: OneJvm, shop: Shop
) -> None:
    config = (shop.project / "config.yaml").read_text("utf-8")
    shop.write("config.yaml", f"{config}\nenvironment_suffix_target: table\n")
    before, prod = schemas(jvm), prod_intervals(shop)
    apply(jvm, "pr_64", "table_suffix")
    ((count,),) = jvm.sql("SELECT SUM(table_suffix) FROM shop.revenue__pr_64")
    jvm.sql("CREATE TABLE shop.notes__pr_64 USING parquet AS SELECT 7 AS a")

    document = jvm.cleanup("pr_64", merged=False, reclaim="always")

    assert count == ["30"]
    assert document.result == "removed"
    assert document.views_dropped == ["shop.revenue__pr_64", "shop.top_customers__pr_64"]
    assert (document.schemas_dropped, document.foreign) == ([], [])
    assert len(document.tables_reclaimed) == 2
    assert schemas(jvm) == before
    names = {row[1] for row in jvm.sql("SHOW TABLES IN shop")[0]}
    assert names == {"customers", "orders", "revenue", "top_customers", "notes__pr_64"}
    assert jvm.sql("SELECT COUNT(*) FROM shop.revenue") == [[["3"]]]
    assert prod_intervals(shop) == prod
    jvm.sql("DROP TABLE shop.notes__pr_64")
