"""Previews of readers: tables with the version and the dev version of prod's own snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ci_bot.bot.github.port import PullState
from ci_bot.bot.worker_client import cleanup
from ci_bot.protocol.cleanup_report import CleanupDocument
from tests.conftest import PROD_UNTIL
from tests.integration.test_apply_and_cleanup import prod_intervals
from tests.integration.test_reclaim import (
    CLOSED,
    REVENUE_FILE,
    kept,
    ledger_phase,
    pass_a_day,
    query,
    sweep,
    tables,
)
from tests.integration.test_review import REVENUE
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# A column more in what it reads is no change of its data, so SQLMesh gives its new snapshot both
# versions of prod's; and it is forward-only, so the environment gets a preview, which stays empty.
HISTORY = """\
MODEL (
  name shop.history,
  kind SCD_TYPE_2_BY_COLUMN (unique_key customer_id, columns [revenue]),
  grain customer_id
);

SELECT
  CAST(r.customer_id AS INT) AS customer_id,
  CAST(r.revenue AS BIGINT) AS revenue
FROM shop.revenue AS r
"""
COUNT = "SELECT COUNT(*) FROM {}.history"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    shop = write_shop(tmp_path_factory.mktemp("preview-shop"))
    shop.write("models/history.sql", HISTORY)
    with one_jvm(shop, prod_until=PROD_UNTIL) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    with jvm.shop.kept():
        yield jvm.shop


def apply(jvm: OneJvm, environment: str, column: str) -> None:
    """Builds an environment whose revenue has one column more than prod's."""
    path = jvm.shop.project / REVENUE_FILE
    before = path.read_text("utf-8")
    jvm.shop.edit(REVENUE_FILE, REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {column}")
    document = jvm.apply(environment)
    path.write_text(before, "utf-8")
    assert document.result == "applied", document.failure
    assert document.evidence_missing is None


def rows(jvm: OneJvm, schema: str) -> int:
    (((count,),),) = jvm.sql(COUNT.format(schema))
    return int(count)


def previews(jvm: OneJvm) -> set[str]:
    return {name for name in tables(jvm) if "__history__" in name and name.endswith("__dev")}


def dev_intervals(shop: Shop) -> int:
    ((count,),) = query(
        shop, "SELECT COUNT(*) FROM sqlmesh._intervals WHERE is_dev AND name LIKE '%history%'"
    )
    return int(count)


def remove(jvm: OneJvm, environment: str) -> CleanupDocument:
    document = jvm.cleanup(environment, merged=False, reclaim="always")
    assert document.result == "removed", document.failure
    return document


@pytest.mark.night
def test_reclaim__the_preview_of_a_reader_goes_and_prod_keeps_its_table(
    jvm: OneJvm, shop: Shop
) -> None:
    before, prod = tables(jvm), prod_intervals(shop)
    apply(jvm, "pr_1", "first")
    (preview,) = previews(jvm)
    assert rows(jvm, "shop__pr_1") == 0

    document = remove(jvm, "pr_1")

    assert tables(jvm) == before
    assert preview in {item.table for item in document.tables_reclaimed}
    assert document.tables_kept == []
    assert ledger_phase(shop, "pr_1") is None
    assert (rows(jvm, "shop"), prod_intervals(shop)) == (3, prod)
    assert dev_intervals(shop) == 0, "the next plan would take the preview for built"

    # The next pull request gets a preview of the same name, and it is built anew.
    apply(jvm, "pr_1", "second")
    assert previews(jvm) == {preview}
    assert rows(jvm, "shop__pr_1") == 0
    remove(jvm, "pr_1")
    assert tables(jvm) == before


@pytest.mark.night
def test_reclaim__the_last_of_two_that_share_a_preview_takes_it(jvm: OneJvm, shop: Shop) -> None:
    before = tables(jvm)
    apply(jvm, "pr_2", "third")
    apply(jvm, "pr_3", "fourth")
    (preview,) = previews(jvm)

    first = remove(jvm, "pr_2")

    assert kept(first) == {preview: "pr_3 reads it"}
    assert first.tables_kept[0].until is None
    assert rows(jvm, "shop__pr_3") == 0, "its view still finds it"
    last = remove(jvm, "pr_3")
    assert preview in {item.table for item in last.tables_reclaimed}
    assert tables(jvm) == before
    assert dev_intervals(shop) == 0


@pytest.mark.night
def test_reclaim__the_sweep_takes_a_preview_after_a_day_whoever_has_prods_snapshot(
    jvm: OneJvm, shop: Shop
) -> None:
    before = tables(jvm)
    # Another pull request changes a description only: its readers are new snapshots that share
    # everything with prod's, and read what prod reads.
    path = shop.project / "models/orders.sql"
    text = path.read_text("utf-8")
    path.write_text(text.replace("owner data,", "owner data,\n  description 'More words',"))
    assert jvm.apply("pr_5").result == "applied"
    path.write_text(text)
    apply(jvm, "pr_4", "fifth")
    (preview,) = previews(jvm)
    closed = jvm.cleanup("pr_4", merged=False)
    assert "the sweep reclaims it after a day" in kept(closed)[preview]
    pass_a_day(shop, "pr_4")

    swept = sweep(jvm, {4: CLOSED, 5: PullState(state="open", merged=False)})

    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0
    assert previews(jvm) == set()
    assert rows(jvm, "shop") == 3
    remove(jvm, "pr_5")
    assert tables(jvm) == before


@pytest.mark.night
@pytest.mark.parametrize(
    ("how", "says"), [("merged", "a preview, which prod never reads"), ("never", "`never`")]
)
def test_cleanup__says_of_a_preview_that_prod_does_not_read_it(
    jvm: OneJvm, shop: Shop, how: str, says: str
) -> None:
    apply(jvm, "pr_6", f"sixth_{how}")
    (preview,) = previews(jvm)

    document = (
        jvm.cleanup("pr_6", merged=True)
        if how == "merged"
        else jvm.cleanup("pr_6", merged=False, reclaim="never")
    )

    assert says in kept(document)[preview]
    assert "which prod never reads" in kept(document)[preview]
    (entry,) = [item for item in document.tables_kept if item.table == preview]
    assert entry.until is None, "prod's snapshot shares it, and does not expire"
    # Nobody is left who knows of it, so the test takes it away.
    jvm.sql(f"DROP TABLE {preview}")
