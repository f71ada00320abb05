"""A credential that the base branch holds: a pull request that touches it is no new leak."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.job import Outcome
from tests.e2e.scene import Change, Edit, Scene
from tests.projects import Shop

pytestmark = pytest.mark.spark

KEY = "ghp_" + "Zq81xVb72mKd93sLw05tRh64yNc27uJp18eG"
OTHER = "ghp_" + "Ty63aHw94kQe17vBn28zXm50cLs86dPf31rU"
SCRIPT = "scripts/load.sh"
TEXT = (
    f"#!/bin/sh\ncurl -H 'Authorization: Bearer {KEY}' https://files.acme.test/orders\necho done\n"
)


def write(path: str, text: str) -> Edit:
    return lambda shop: shop.write(path, text)


def rename(shop: Shop) -> None:
    target = shop.project / "tools/load_orders.sh"
    target.parent.mkdir()
    (shop.project / SCRIPT).rename(target)


def edit_line(shop: Shop) -> None:
    shop.edit(SCRIPT, "/orders", "/orders?day=today")


def edit_another_line(shop: Shop) -> None:
    shop.edit(SCRIPT, "echo done", "echo 'all done'")


def add_another_key(shop: Shop) -> None:
    shop.edit(SCRIPT, "echo done", f"curl -H 'Authorization: Bearer {OTHER}' https://b.acme.test")


def opened(scene: Scene, branch: str, edit: Edit) -> tuple[Change, Outcome]:
    scene.commit("main", write(SCRIPT, TEXT), "Load the orders")
    scene.push("main")
    change = scene.open(branch, edit)
    return change, change.review("opened")


def secrets(outcome: Outcome) -> list[dict[str, Any]]:
    risks: list[dict[str, Any]] = outcome.document("report")["risks"]
    return [risk for risk in risks if risk["rule"] == "hardcoded-secret"]


@pytest.mark.parametrize(
    ("branch", "edit", "path"),
    [("rename", rename, "project/tools/load_orders.sh"), ("line", edit_line, f"project/{SCRIPT}")],
)
@pytest.mark.by_day(1)
def test_secret_of_the_base__is_the_bases_and_blocks_nothing(
    scene: Scene, branch: str, edit: Edit, path: str
) -> None:
    change, outcome = opened(scene, branch, edit)

    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    assert outcome.outputs["blockers"] == "0"
    assert change.marker().decision != "no_go"
    (risk,) = secrets(outcome)
    assert (risk["severity"], risk["path"]) == ("medium", path)
    assert "It is not new: the base branch holds the same value already" in risk["evidence"]
    text = change.sticky()
    assert "the base branch holds the same value already" in text
    assert KEY not in f"{text}{outcome.readable}"


@pytest.mark.night
def test_secret_of_the_base__in_a_line_that_stays_is_not_spoken_of(scene: Scene) -> None:
    _, outcome = opened(scene, "beside", edit_another_line)

    assert outcome.exit_code == 0, outcome.stdout
    assert secrets(outcome) == []


def test_secret__that_is_new_beside_that_of_the_base_blocks(scene: Scene) -> None:
    change, outcome = opened(scene, "another", add_another_key)

    assert outcome.exit_code == 1, outcome.stdout
    assert change.marker().decision == "no_go"
    (risk,) = secrets(outcome)
    assert risk["severity"] == "blocker"
    assert "not new" not in risk["evidence"]
