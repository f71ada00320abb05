"""action.yml: the promised inputs and outputs, and how each input reaches the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
INPUTS = [
    "github-token",
    "project",
    "gateway",
    "mode",
    "environment-prefix",
    "baseline",
    "requirements",
    "python-path",
    "worker-env",
    "select-model",
    "restate-model",
    "start",
    "end",
    "min-intervals",
    "preview-start",
    "preview-min-intervals",
    "skip-backfill",
    "include-unmodified",
    "forward-only",
    "allow-destructive",
    "override-reason",
    "plan-id",
    "pr-number",
    "comment-id",
    "fail-on",
    "max-intervals",
    "max-executor-hours",
    "diff-tolerance",
    "comment",
    "table-diff",
    "reclaim",
    "max-deletions",
    "event-logs",
    "cache",
    "cache-dir",
    "executor-hour-price",
    "timeout-minutes",
]
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
    return YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))


def test_action__has_the_promised_inputs_and_outputs(metadata: Any) -> None:
    assert list(metadata["inputs"]) == INPUTS
    assert list(metadata["outputs"]) == OUTPUTS


def test_action__every_input_and_output_is_described(metadata: Any) -> None:
    for name, declared in {**metadata["inputs"], **metadata["outputs"]}.items():
        assert declared["description"].strip().endswith("."), name


def test_action__inputs_are_optional_and_their_defaults_are_text(metadata: Any) -> None:
    for name, declared in metadata["inputs"].items():
        assert set(declared) == {"description", "default"}, name
        # YAML would make `false` or `20` something else than what the runner hands on.
        assert isinstance(declared["default"], str), name


def test_action__every_input_reaches_its_variable(metadata: Any) -> None:
    expected = {
        f"CI_BOT_{name.upper().replace('-', '_')}": f"${{{{ inputs.{name} }}}}" for name in INPUTS
    }
    assert metadata["runs"]["env"] == expected


def test_review_action__differs_in_its_name_its_words_and_its_image_alone(metadata: Any) -> None:
    """Two files, because GitHub has no other way to give one action two images."""
    review = YAML(typ="safe").load((ROOT / "review" / "action.yml").read_text("utf-8"))
    assert review["runs"]["image"] == "../Dockerfile"
    own = {"name", "description"}
    assert {key: review[key] for key in review if key not in own | {"runs"}} == {
        key: metadata[key] for key in metadata if key not in own | {"runs"}
    }
    assert review["runs"] == {**metadata["runs"], "image": "../Dockerfile"}
    # Each input's words, too: what follows `runs:` and `inputs:` is the same text.
    texts = [
        (ROOT / name).read_text("utf-8").partition("\ninputs:\n")[2].partition("\nruns:\n")[0]
        for name in ("action.yml", "review/action.yml")
    ]
    assert texts[0] == texts[1] != ""


def test_action__is_the_container_with_its_one_command(metadata: Any) -> None:
    runs = metadata["runs"]
    assert runs["using"] == "docker"
    # The release workflow replaces exactly this value by the image's digest.
    assert runs["image"] == "Dockerfile"
    assert runs["args"] == ["run"]
    assert set(runs) == {"using", "image", "args", "env"}
