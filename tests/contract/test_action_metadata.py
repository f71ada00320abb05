"""action.yml: the promised inputs and outputs, and how each input reaches the program."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.reference_page import ACTION, REVIEW, render_action, render_review_action

OUTPUTS = [
    "decision",
    "reason-code",
    "plan-id",
    "environment",
    "blockers",
    "compared-with",
    "report-path",
    "sarif-path",
    "comment-url",
    "result",
]


@pytest.fixture(scope="module")
def metadata() -> Any:
    return YAML(typ="safe").load(ACTION.read_text("utf-8"))


def test_action__has_the_promised_outputs(metadata: Any) -> None:
    assert list(metadata["outputs"]) == OUTPUTS


def test_action__every_input_and_output_is_described(metadata: Any) -> None:
    for name, declared in {**metadata["inputs"], **metadata["outputs"]}.items():
        assert declared["description"].strip().endswith("."), name


def test_action__inputs_are_optional_and_their_defaults_are_text(metadata: Any) -> None:
    for name, declared in metadata["inputs"].items():
        assert set(declared) == {"description", "default"}, name
        # YAML would make `false` or `20` something else than what the runner hands on.
        assert isinstance(declared["default"], str), name


def test_action__what_its_files_repeat__is_made_of_its_inputs() -> None:
    action, review = ACTION.read_text("utf-8"), REVIEW.read_text("utf-8")
    assert render_action(action) == action, "run `python -m tests.reference_page`"
    assert render_review_action(review, action) == review, "run `python -m tests.reference_page`"


def test_action__of_an_input_without_its_variable__is_made_whole() -> None:
    action, review = ACTION.read_text("utf-8"), REVIEW.read_text("utf-8")
    line = "    CI_BOT_GATEWAY: ${{ inputs.gateway }}\n"
    assert render_action(action.replace(line, "")) == action
    assert (
        render_review_action(review.replace(line, "").replace("Token for", "A token for"), action)
        == review
    )


def test_review_action__is_the_same_container_with_another_image(metadata: Any) -> None:
    review = YAML(typ="safe").load(REVIEW.read_text("utf-8"))
    assert set(review) == set(metadata)
    assert review["runs"] == {**metadata["runs"], "image": "../Dockerfile"}


def test_action__is_the_container_with_its_one_command(metadata: Any) -> None:
    runs = metadata["runs"]
    assert runs["using"] == "docker"
    # The release workflow replaces exactly this value by the image's digest.
    assert runs["image"] == "Dockerfile"
    assert runs["args"] == ["run"]
    assert set(runs) == {"using", "image", "args", "env"}
