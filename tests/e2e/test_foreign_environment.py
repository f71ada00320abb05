"""An environment that somebody made by hand, with the name that a pull request's would have."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tests.e2e.scene import Scene, add_orders
from tests.integration.test_review import digest, state_rows
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NUMBER = 71


@pytest.fixture
def by_hand(built_shop: Shop) -> Iterator[Shop]:
    """What a plain `sqlmesh plan pr_71` leaves in the state: a record, and nothing in our ledger."""
    name = f"pr_{NUMBER}"
    with duckdb.connect(str(built_shop.state)) as connection:
        connection.execute(
            f"INSERT INTO sqlmesh._environments SELECT * REPLACE ('{name}' AS name) "
            "FROM sqlmesh._environments WHERE name = 'prod'"
        )
    yield built_shop
    with duckdb.connect(str(built_shop.state)) as connection:
        connection.execute(f"DELETE FROM sqlmesh._environments WHERE name = '{name}'")


@pytest.mark.night
def test_closed__leaves_an_environment_that_no_apply_has_made(scene: Scene, by_hand: Shop) -> None:
    """The review's comment names the environment, and proves nothing."""
    change = scene.open("by-hand", add_orders, number=NUMBER)
    review = change.review("opened")
    assert review.outputs["decision"] == "go", review.stdout
    assert change.marker().env == f"pr_{NUMBER}"
    notes = " ".join(review.document("report")["notes"])
    assert "nothing proves that this repository made it" in notes
    plan = review.outputs["plan-id"]
    rows, warehouse = state_rows(by_hand.state), digest(by_hand.warehouse)

    applied = change.dispatch({"plan-id": plan})

    assert applied.exit_code == 3, f"{applied.stdout}\n{applied.stderr}"
    assert applied.outputs["reason-code"] == "not_ours"
    assert applied.document("apply")["plan_id"] == plan

    change.close()
    closed = change.closed()

    assert closed.exit_code == 3, f"{closed.stdout}\n{closed.stderr}"
    assert closed.outputs["reason-code"] == "not_ours"
    assert closed.result["result"] == "refused"
    assert f"--environment pr_{NUMBER} --claim" in closed.errors[0]
    assert change.marker().phase == "cleanup_failed"
    assert "Nothing was touched" in change.sticky()
    assert "starting Spark" not in closed.stdout
    assert state_rows(by_hand.state) == rows
    assert digest(by_hand.warehouse) == warehouse


@pytest.mark.night
def test_closed__of_what_was_never_applied__is_a_quiet_success(scene: Scene) -> None:
    change = scene.open("never-applied", add_orders, number=NUMBER + 1)
    change.review("opened")
    change.close()

    closed = change.closed()

    assert closed.exit_code == 0, f"{closed.stdout}\n{closed.stderr}"
    assert closed.result["result"] == "nothing_to_do"
    assert change.marker().phase == "closed"
    assert change.notes() == []
