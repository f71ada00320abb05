"""Absent parts are named, and never skipped where they are required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.github_standin.parts import PartsMissingError, locate


def test_parts__absent_or_outdated_ones_are_named_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(PartsMissingError, match=r"tests\.github_standin\.install"):
        locate(tmp_path)
    (tmp_path / "installed.txt").write_text("0" * 64)
    with pytest.raises(PartsMissingError, match="not the pinned ones"):
        locate(tmp_path)


@pytest.mark.parametrize(("required", "outcome"), [("0", "1 skipped"), ("1", "1 error")])
def test_parts__absent_ones_skip_or_fail_a_test(
    tmp_path: Path, required: str, outcome: str
) -> None:
    case = tmp_path / "test_it.py"
    case.write_text("def test_it(github_standin): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.github_standin.fixtures", "-q", "-rs"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(case)],
        cwd=Path(__file__).parents[2],
        env={
            "PATH": os.environ["PATH"],
            "CI_BOT_TEST_PARTS": str(tmp_path),
            "CI_BOT_REQUIRE_PARTS": required,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert "tests.github_standin.install" in done.stdout
