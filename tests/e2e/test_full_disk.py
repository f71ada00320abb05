"""The runner's disk is full, or its log is gone: the comment shows the result all the same."""

from __future__ import annotations

import pytest

from tests.e2e.scene import Scene, add_orders
from tests.e2e.test_forged_comment import break_a_test

pytestmark = pytest.mark.spark

FULL = {"GITHUB_OUTPUT": "/dev/full", "GITHUB_STEP_SUMMARY": "/dev/full"}


def test_review__without_space_for_the_steps_files__is_in_the_comment(scene: Scene) -> None:
    change = scene.open("add-orders", add_orders)

    outcome = change.review("opened", variables=FULL)

    assert outcome.exit_code == 0, f"{outcome.stdout}\n{outcome.stderr}"
    marker = change.marker()
    assert (marker.phase, marker.decision) == ("planned", "go")
    assert outcome.errors == []
    warnings = [text for text in outcome.annotations("warning") if "No space left" in text]
    assert len(warnings) == 2, "once for each file"


@pytest.mark.night
def test_review__without_space__ends_with_the_code_of_its_decision(scene: Scene) -> None:
    change = scene.open("untested", break_a_test)

    outcome = change.review("opened", variables=FULL)

    assert outcome.exit_code == 1, outcome.stdout
    assert change.marker().decision == "no_go"
    assert not [text for text in outcome.errors if "defect" in text]


@pytest.mark.night
def test_review__that_gives_up_without_space__is_in_the_comment(scene: Scene) -> None:
    """The give-up path writes the same files."""
    change = scene.open("add-orders", add_orders)

    outcome = change.review(
        "opened", variables=FULL, inputs={"requirements": "no-such-requirements.txt"}
    )

    assert outcome.exit_code != 0
    assert change.marker().phase == "plan_failed", outcome.stdout
    assert not [text for text in outcome.errors if "defect" in text]
