"""Whose an environment is: what no apply of this repository has recorded stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from ci_bot.bot.github.port import PullState
from ci_bot.bot.worker_client import cleanup
from ci_bot.bot.worker_client.cleanup import WorkerSweepOptions
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.messages import ApplyRequest, CleanupRequest, FailedAnswer, Owner
from tests.conftest import PROD_UNTIL
from tests.factories import on_terminal
from tests.integration.test_review import REVENUE, state_rows
from tests.one_jvm import OWNER, OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

REVENUE_FILE = "models/revenue.sql"
CLOSED = PullState(state="closed", merged=False)
# Prod has a schema that is called as if it were an environment's.
CONFUSING = "MODEL (name shop__pr_9.notes, kind FULL);\n\nSELECT CAST(7 AS INT) AS a\n"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    shop = write_shop(tmp_path_factory.mktemp("owners-shop"))
    shop.write("models/confusing.sql", CONFUSING)
    with one_jvm(shop, prod_until=PROD_UNTIL) as made:
        yield made


@pytest.fixture
def shop(jvm: OneJvm) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test."""
    before = {
        path: path.read_bytes()
        for path in jvm.shop.project.rglob("*")
        if path.suffix != ".pyc"
        if path.is_file()
    }
    yield jvm.shop
    for path, content in before.items():
        path.write_bytes(content)


def add_column(shop: Shop, name: str) -> None:
    shop.edit(REVENUE_FILE, REVENUE, f"{REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {name}")


def ask(
    jvm: OneJvm,
    kind: type[ApplyRequest] | type[CleanupRequest],
    environment: str,
    pull: int | None,
    owner: str = OWNER,
    **fields: Any,
) -> ApplyDocument | CleanupDocument | Failure:
    """A request of the action for a pull request, or of a person on a laptop."""
    answer = jvm.ask(
        kind(
            projects=jvm.project_directories,
            workplace=jvm.workplace,
            owner=Owner(name=owner, pr_number=pull),
            environment=environment,
            **fields,
        )
    )
    assert isinstance(answer, ApplyDocument | CleanupDocument | FailedAnswer), answer
    return answer.failure if isinstance(answer, FailedAnswer) else answer


def assert_not_ours(answer: object, environment: str) -> None:
    assert isinstance(answer, Failure), answer
    assert (answer.reason_code, answer.exit_code) == ("not_ours", 3)
    assert f"{environment} is in SQLMesh's state" in answer.message
    assert f"ci-bot cleanup --project . --environment {environment} --claim" in (answer.hint or "")


def schemas(jvm: OneJvm) -> set[str]:
    return {row[0] for row in jvm.sql("SHOW NAMESPACES")[0]}


def owner_of(shop: Shop, environment: str) -> str | None:
    with duckdb.connect(str(shop.state), read_only=True) as connection:
        row = connection.execute(
            "SELECT document FROM sqlmesh_ci_bot._environments WHERE name = ?", [environment]
        ).fetchone()
    return str(json.loads(row[0])["owner"]) if row else None


def test_foreign_environment__is_neither_removed_nor_built_nor_swept(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "by_hand")
    jvm.plan_by_hand("pr_1")
    before = state_rows(shop.state)

    for request in (CleanupRequest, ApplyRequest):
        assert_not_ours(ask(jvm, request, "pr_1", 1), "pr_1")
        # Nor on a laptop, where a name alone is no proof either.
        assert_not_ours(ask(jvm, request, "pr_1", None), "pr_1")
        assert not any(line.startswith("spark") for line in jvm.progress)
    swept = cleanup.request_sweep_from_worker(
        jvm, WorkerSweepOptions(owner=OWNER), lambda numbers: dict.fromkeys(numbers, CLOSED)
    )

    assert [(row.environment, row.standing) for row in swept.rows] == [("pr_1", "not_recorded")]
    assert "not recorded by this action" in on_terminal(swept.make_report())
    assert state_rows(shop.state) == before
    assert "shop__pr_1" in schemas(jvm)
    assert jvm.sql("SELECT SUM(by_hand) FROM shop__pr_1.revenue") == [[["30"]]]

    removed = ask(jvm, CleanupRequest, "pr_1", None, claim=True)
    assert isinstance(removed, CleanupDocument), removed
    assert (removed.result, removed.leftovers) == ("removed", [])
    assert "shop__pr_1" not in schemas(jvm)
    assert owner_of(shop, "pr_1") is None
    again = ask(jvm, CleanupRequest, "pr_1", 1)
    assert isinstance(again, CleanupDocument)
    assert (again.result, again.existed) == ("nothing_to_do", False), "a quiet success"


@pytest.mark.night
def test_foreign_environment__that_is_claimed_by_an_apply__is_ours(jvm: OneJvm, shop: Shop) -> None:
    add_column(shop, "claimed")
    jvm.plan_by_hand("pr_2")

    applied = ask(jvm, ApplyRequest, "pr_2", None, claim=True)

    assert isinstance(applied, ApplyDocument), applied
    assert applied.result == "applied"
    assert owner_of(shop, "pr_2") == OWNER
    removed = ask(jvm, CleanupRequest, "pr_2", 2, merged=False, reclaim="always")
    assert isinstance(removed, CleanupDocument), removed
    assert removed.result == "removed"
    assert removed.tables_reclaimed == [], "its tables were there before it was ours"


@pytest.mark.night
def test_environment__of_another_repository__is_claimed_by_a_person_only(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "renamed")
    assert isinstance(ask(jvm, ApplyRequest, "pr_3", 3, owner="octo/old-name"), ApplyDocument)

    for request in (CleanupRequest, ApplyRequest):
        refused = ask(jvm, request, "pr_3", 3)
        assert isinstance(refused, Failure)
        assert (refused.reason_code, refused.exit_code) == ("other_owner", 3)
        assert "belongs to octo/old-name, not to octo/shop" in refused.message
        assert "--claim" in (refused.hint or "")

    removed = ask(jvm, CleanupRequest, "pr_3", None, claim=True, merged=False, reclaim="always")
    assert isinstance(removed, CleanupDocument), removed
    assert removed.result == "removed"
    assert len(removed.tables_reclaimed) == 2


@pytest.mark.night
def test_environment__that_was_made_anew_after_its_cleanup__is_somebody_elses(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "remade")
    assert isinstance(ask(jvm, ApplyRequest, "pr_4", 4), ApplyDocument)
    closed = ask(jvm, CleanupRequest, "pr_4", 4, merged=False)
    assert isinstance(closed, CleanupDocument)
    assert closed.tables_kept, "the ledger's row waits for the sweep"
    jvm.plan_by_hand("pr_4")

    assert_not_ours(ask(jvm, CleanupRequest, "pr_4", 4, merged=False), "pr_4")
    assert_not_ours(ask(jvm, ApplyRequest, "pr_4", 4), "pr_4")
    swept = cleanup.request_sweep_from_worker(
        jvm, WorkerSweepOptions(owner=OWNER), lambda numbers: dict.fromkeys(numbers, CLOSED)
    )
    assert [(row.environment, row.standing) for row in swept.rows] == [("pr_4", "not_recorded")]
    assert "shop__pr_4" in schemas(jvm)

    removed = ask(jvm, CleanupRequest, "pr_4", None, claim=True)
    assert isinstance(removed, CleanupDocument)
    assert removed.result == "removed"


def test_environment__whose_views_would_lie_among_prods__is_not_built(
    jvm: OneJvm, shop: Shop
) -> None:
    add_column(shop, "confused")

    refused = ask(jvm, ApplyRequest, "pr_9", 9)

    assert isinstance(refused, Failure)
    assert (refused.reason_code, refused.exit_code) == ("would_write_prod", 3)
    assert "in the place of prod's: shop__pr_9.notes" in refused.message
    assert "environment-prefix" in (refused.hint or "")
    assert not any(line.startswith("spark") for line in jvm.progress)

    # Made by hand it is there, and its end takes nothing of prod along.
    jvm.plan_by_hand("pr_9")
    claimed = ask(jvm, CleanupRequest, "pr_9", None, claim=True)
    assert isinstance(claimed, CleanupDocument)
    assert claimed.views_dropped == ["shop__pr_9.revenue", "shop__pr_9.top_customers"]
    assert "shop__pr_9" not in claimed.schemas_dropped
    assert jvm.sql("SELECT a FROM shop__pr_9.notes") == [[["7"]]]


@pytest.mark.parametrize(
    ("setting", "pull", "reason"),
    [
        ("default_target_environment: dev_ada", None, "default_target"),
        ("default_target_environment: Dev Ada", None, "default_target"),
        ("default_target_environment: pr_5", 5, "default_target"),
        ("pinned_environments: [PR_5]", 5, "pinned"),
    ],
)
@pytest.mark.by_day(2)
def test_apply__of_an_environment_that_the_project_keeps_for_others__is_refused(
    jvm: OneJvm, shop: Shop, setting: str, pull: int | None, reason: str
) -> None:
    config = (shop.project / "config.yaml").read_text("utf-8")
    shop.write("config.yaml", f"{config}\n{setting}\n")
    add_column(shop, "kept")

    refused = ask(jvm, ApplyRequest, "pr_5" if pull else "dev_ada", pull)

    assert isinstance(refused, Failure)
    assert (refused.reason_code, refused.exit_code) == (reason, 3)
