"""The whole life of a pull request through `ci-bot run`: real git, SQLMesh, Spark and state."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.conftest import run_python
from tests.e2e.job import Outcome
from tests.e2e.scene import Change, Scene, add_largest, add_orders
from tests.github_standin import script
from tests.github_standin.wire import Request
from tests.integration.test_review import digest, state_rows
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]


def on_spark(shop: Shop, *statements: str) -> list[list[list[str]]]:
    """Rows of each statement, asked in a JVM of its own."""
    printed = run_python("tests.projects.spark_sql", str(shop.project), *statements)
    rows: list[list[list[str]]] = json.loads(printed.strip().splitlines()[-1])
    return rows


def schemas(shop: Shop) -> set[str]:
    return {row[0] for row in on_spark(shop, "SHOW NAMESPACES")[0]}


def environments(shop: Shop) -> set[str]:
    """The environments that SQLMesh's state knows."""
    return {str(row[0]) for row in state_rows(shop.state)["sqlmesh._environments"]}


def assert_reviewed(change: Change, outcome: Outcome) -> str:
    """A review that went well; returns the plan id."""
    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.errors == []
    assert outcome.outputs["decision"] == "go"
    assert outcome.outputs["environment"] == change.environment
    assert outcome.outputs["blockers"] == "0"
    assert outcome.result["reported"]
    marker = change.marker()
    assert (marker.pr, marker.env, marker.phase) == (change.number, change.environment, "planned")
    assert (marker.head, marker.merge) == (change.pull.head_sha, change.merge_sha)
    assert marker.base == change.scene.main_sha
    assert (marker.plan, marker.decision) == (outcome.outputs["plan-id"], "go")
    report = outcome.document("report")
    assert report["plan_id"] == marker.plan
    assert report["decision"] == "go"
    assert outcome.outputs["sarif-path"] == "ci-bot-report/report.sarif"
    assert b'"version": "2.1.0"' in outcome.report_files()["report.sarif"]
    assert f"/sqlmesh apply {str(marker.plan)[:12]}" in change.sticky()
    assert "shop.revenue" in outcome.summary
    assert outcome.outputs["comment-url"].endswith(f"#issuecomment-{change.sticky_id()}")
    return str(marker.plan)


def assert_removed(change: Change, outcome: Outcome, how: str) -> None:
    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["reason-code"] == "removed"
    assert change.marker().phase == "closed"
    tombstone = change.sticky()
    assert f"`{change.environment}` is removed" in tombstone
    assert how in tombstone
    document = outcome.document("cleanup")
    assert document["views_dropped"] == [
        f"shop__{change.environment}.revenue",
        f"shop__{change.environment}.top_customers",
    ]
    assert document["schemas_dropped"] == [f"shop__{change.environment}"]
    assert document["leftovers"] == []
    assert document["state_record_removed"]
    assert change.environment not in environments(change.scene.shop)


def test_life__opened_pushed_applied_merged(scene: Scene) -> None:
    shop = scene.shop
    rows, warehouse = state_rows(shop.state), digest(shop.warehouse)
    metastore = digest(shop.root / "metastore")
    change = scene.open("add-orders", add_orders, number=7)

    opened = change.review("opened")

    first_plan = assert_reviewed(change, opened)
    comment = change.sticky_id()
    assert len(opened.requests) <= 7, opened.requests
    assert len(opened.writes) <= 3, opened.writes
    assert change.check()["conclusion"] == "success"
    assert state_rows(shop.state) == rows
    assert digest(shop.warehouse) == warehouse
    assert digest(shop.root / "metastore") == metastore

    change.push(add_largest)
    pushed = change.review("synchronize")

    plan = assert_reviewed(change, pushed)
    assert plan != first_plan
    assert change.sticky_id() == comment
    assert len(pushed.requests) <= 7, pushed.requests
    assert len(pushed.writes) <= 3, pushed.writes
    assert "**After the apply" not in change.check()["output"]["summary"]
    history = change.marker().history
    assert [(entry.plan, entry.decision) for entry in history] == [(first_plan, "go")]
    assert history[0].run != str(change.marker().run_id)
    assert "largest" in change.sticky()
    assert state_rows(shop.state) == rows

    applied = change.dispatch({"plan-id": plan[:12]})

    assert applied.exit_code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert applied.outputs["reason-code"] == "applied"
    assert applied.outputs["plan-id"] == plan
    assert applied.result["reported"]
    document = applied.document("apply")
    assert (document["result"], document["plan_id"]) == ("applied", plan)
    assert {view["view"] for view in document["views"] if view["resolves"]} == {
        "shop__pr_7.revenue",
        "shop__pr_7.top_customers",
    }
    assert change.sticky_id() == comment
    assert change.marker().phase == "applied"
    assert change.marker().plan == plan
    check = change.check()
    assert check["conclusion"] == "success"
    assert check["output"]["summary"].startswith(
        "**After the apply in `pr_7`:** 0 of 5 rows differ from `prod`"
    )
    assert "## ✅ Built in `pr_7` · the same rows as `prod` · " in change.sticky()
    assert f"plan `{plan[:12]}`" in change.sticky()
    assert "shop__pr_7.revenue" in change.sticky()
    assert "shop__pr_7.revenue" in applied.summary
    assert len(change.notes()) == 1
    assert "Applied" in change.notes()[0]
    assert "pr_7" in environments(shop)
    totals = "SELECT SUM(orders), MAX(largest) FROM shop__pr_7.revenue"
    assert on_spark(shop, totals)[0] == [["30", "30"]]

    change.merge()
    removed = change.closed("pull_request_target")

    assert_removed(change, removed, "merged")
    assert change.sticky_id() == comment
    assert "shop__pr_7" not in schemas(shop)

    tombstone = change.sticky()
    again = change.closed("pull_request_target")

    assert again.exit_code == 0
    assert again.outputs["reason-code"] == "nothing_to_do"
    assert again.writes == []
    assert change.sticky() == tombstone, "the second cleanup must not replace the proof"
    assert len(change.comments()) == 2, "one comment, and the note about the apply"


@pytest.mark.night
def test_life__closed_unmerged_after_github_was_down_for_the_apply(scene: Scene) -> None:
    shop = scene.shop
    change = scene.open("add-orders", add_orders, number=8)
    plan = assert_reviewed(change, change.review("opened"))
    comment = change.sticky_id()
    # The apply tells once that it has begun. What it says at its end never arrives.
    path = rf"/repos/{scene.repo.full_name}/issues/.*"
    down = scene.standin.script.on(
        "*", path, script.server_error(502), forever=True, when=after_the_first_patch()
    )

    applied = change.dispatch({"plan-id": plan})

    assert down.served > 0
    scene.standin.script.clear()
    assert applied.exit_code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert applied.outputs["reason-code"] == "applied"
    assert applied.outputs["plan-id"] == plan
    assert applied.result["result"] == "applied"
    assert not applied.result["reported"]
    assert applied.document("apply")["result"] == "applied"
    assert "Built in `pr_8` · " in applied.summary
    assert f"plan `{plan[:12]}`" in applied.summary
    assert "shop__pr_8.revenue" in applied.summary
    assert any("could not be updated" in text for text in applied.annotations("warning"))
    assert change.marker().phase == "applying"
    assert "pr_8" in environments(shop)

    change.close()
    removed = change.closed("pull_request")

    assert_removed(change, removed, "closed without a merge")
    assert change.sticky_id() == comment
    assert "shop__pr_8" not in schemas(shop)

    again = change.closed("pull_request")

    assert again.exit_code == 0
    assert again.outputs["reason-code"] == "nothing_to_do"
    assert again.writes == []
    assert len(change.comments()) == 1


def after_the_first_patch() -> Callable[[Request], bool]:
    """For a fault that begins once the comment was changed."""
    seen: list[Request] = []

    def when(request: Request) -> bool:
        if not seen and request.method != "PATCH":
            return False
        seen.append(request)
        return len(seen) > 1

    return when
