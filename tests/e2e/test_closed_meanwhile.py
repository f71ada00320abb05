"""Pull requests that close while their environment is built, and evidence that must stay."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.scene import Change, Scene
from tests.e2e.test_life import environments, schemas
from tests.github_standin import script
from tests.github_standin.wire import Request
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

_REVENUE = "SUM(o.amount) AS BIGINT) AS revenue"


def add_column(name: str) -> Callable[[Shop], None]:
    """A column more, with its unit test: a plan that nothing stands against."""

    def edit(shop: Shop) -> None:
        shop.edit(
            "models/revenue.sql", _REVENUE, f"{_REVENUE},\n  CAST(COUNT(*) AS BIGINT) AS {name}"
        )
        shop.edit("tests/test_revenue.yaml", "revenue: 15}", f"revenue: 15, {name}: 2}}")

    return edit


def once_applying(then: Callable[[Request], bool]) -> Callable[[Request], bool]:
    """For what begins when the comment says that the apply has begun."""
    seen: list[Request] = []

    def when(request: Request) -> bool:
        if request.method == "PATCH" and not seen:
            seen.append(request)
            return then(request)
        return bool(seen) and then(request)

    return when


@pytest.mark.night
def test_apply__of_a_pull_request_that_closes_meanwhile__is_removed(scene: Scene) -> None:
    change = scene.open("closing", add_column("orders_of_closed"), number=31)
    plan = change.review("opened").outputs["plan-id"]
    comment = change.sticky_id()

    def close(_request: Request) -> bool:
        if change.pull.json["state"] == "open":
            change.close()
        return False

    path = rf"/repos/{scene.repo.full_name}/.*"
    scene.standin.script.on("*", path, script.server_error(), when=once_applying(close))

    outcome = change.dispatch({"plan-id": plan})

    scene.standin.script.clear()
    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert any(
        "#31 was closed while the apply ran, so pr_31 is removed at once" in text
        for text in outcome.annotations("notice")
    )
    assert outcome.document("apply")["result"] == "applied"
    assert outcome.document("cleanup")["result"] == "removed"
    assert outcome.outputs["reason-code"] == "removed"
    assert outcome.result["activity"] == "cleanup"
    assert change.marker().phase == "closed"
    assert change.sticky_id() == comment
    assert "`pr_31` is removed" in change.sticky()
    assert change.notes() == [], "nobody is told of an environment that is gone"
    assert "pr_31" not in environments(scene.shop)
    assert "shop__pr_31" not in schemas(scene.shop)


@pytest.mark.night
def test_apply__its_evidence_outlives_what_comes_after(scene: Scene) -> None:
    change = scene.open("staying", add_column("orders_of_staying"), number=32)
    plan = change.review("opened").outputs["plan-id"]
    # GitHub is down when it is asked whether the pull request is still open.
    path = rf"/repos/{scene.repo.full_name}/.*"
    down = scene.standin.script.on(
        "*",
        path,
        script.server_error(502),
        forever=True,
        when=once_applying(lambda request: "/pulls/" in request.path),
    )

    applied = change.dispatch({"plan-id": plan})

    assert down.served > 0
    scene.standin.script.clear()
    assert applied.exit_code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert any(
        "whether the pull request is still open" in text and "sweep removes pr_32" in text
        for text in applied.annotations("warning")
    )
    assert applied.result["reported"]
    evidence = shown_applied(change, plan)
    assert "pr_32" in environments(scene.shop)
    notes = change.notes()

    # Refused by the gate, which asks no worker.
    outcome = change.dispatch({"plan-id": "0123456789ab"})

    assert outcome.exit_code == 3
    assert outcome.outputs["reason-code"] == "unknown_plan"
    assert "is not the plan" in outcome.summary
    assert shown_applied(change, plan) == evidence
    assert len(change.notes()) == len(notes) + 1
    assert "Refused to apply" in change.notes()[-1]
    assert "is not the plan" in change.notes()[-1]

    # Nothing left to do.
    outcome = change.dispatch({"plan-id": plan})

    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.result["result"] == "nothing_to_apply"
    assert outcome.writes == []
    assert shown_applied(change, plan) == evidence

    # Refused by the worker, after it has planned again: the base changed the plan.
    scene.commit("main", lambda shop: shop.edit("models/top_customers.sql", "> 100", "> 50"))
    change.pushed()
    outcome = change.dispatch({"plan-id": plan})

    assert outcome.exit_code == 3, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["reason-code"] == "plan_changed"
    assert outcome.result["reported"]
    assert shown_applied(change, plan) == evidence
    assert "no longer the reviewed one" in change.notes()[-1]


def shown_applied(change: Change, plan: str) -> str:
    """The comment, which shows the apply and its evidence."""
    assert change.marker().phase == "applied"
    text = change.sticky()
    assert f"Built in `{change.environment}` · " in text
    assert f"plan `{plan[:12]}`" in text
    assert f"shop__{change.environment}.revenue" in text
    return text


def test_cleanup__of_a_pull_request_that_is_open_again__leaves_it(scene: Scene) -> None:
    """Closed and reopened, and the closing's run comes late."""
    change = scene.open("reopened", add_column("orders_of_reopened"), number=33)
    change.close()
    change.pull.reopen()

    late = change.closed()

    assert late.exit_code == 0, f"{late.stdout}\n{late.stderr}"
    assert late.outputs["reason-code"] == "reopened"
    assert late.result["result"] == "nothing_to_do"
    assert any("#33 is open again, so pr_33 stays" in text for text in late.annotations("notice"))
    assert change.comments() == [], "and nobody is told"
