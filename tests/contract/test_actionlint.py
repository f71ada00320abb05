"""actionlint over every workflow here: expressions, contexts, inputs of actions, syntax."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.actionlint import actionlint
from tests.contract.test_linters import GITHUB, WORKFLOWS
from tests.go_programs import GoProgramMissingError

VARIANTS = sorted(GITHUB.glob("examples/enterprise-server/*.yml"))
# What GitHub takes and actionlint 1.7.12 does not know, by the file in which it stands.
NOT_KNOWN_YET = 'unexpected key "queue" for "concurrency" section'
WITH_QUEUE = {"apply.yml", "cleanup.yml", "deploy.yml"}


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return actionlint(os.environ)
    except GoProgramMissingError as missing:
        if os.environ.get("CI_BOT_REQUIRE_PARTS") == "1":
            pytest.fail(f"CI_BOT_REQUIRE_PARTS=1, but {missing}")
        pytest.skip(str(missing))


def found(program: Path, *files: Path) -> list[str]:
    """What it says, a line each. Which shell checker a machine has makes no difference."""
    done = subprocess.run(
        [program, "-oneline", "-no-color", "-shellcheck=", "-pyflakes=", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_actionlint__finds_nothing_but_the_key_that_it_does_not_know(program: Path) -> None:
    lines = found(program, *WORKFLOWS, *VARIANTS)
    assert [line for line in lines if NOT_KNOWN_YET not in line] == []
    named = {Path(line.partition(":")[0]).name for line in lines}
    assert named == WITH_QUEUE, "an excuse that is not needed any more has to go"


def test_actionlint__notices_an_output_that_no_step_has(program: Path, tmp_path: Path) -> None:
    text = (GITHUB / "examples" / "review.yml").read_text("utf-8")
    assert "steps.review.outputs" in text
    wrong = tmp_path / "review.yml"
    wrong.write_text(text.replace("steps.review.outputs", "steps.reviewed.outputs"), "utf-8")
    assert any('property "reviewed" is not defined' in line for line in found(program, wrong))
