"""What the comment says about itself holds: its commands run, and a state that was not read is told."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import nights
from tests.e2e.scene import Change, Scene, add_orders
from tests.projects import Shop

_COMMANDS = re.compile(r"```bash\n((?:git fetch|ci-bot review)[^`]*)```")


def printed(comment: str) -> str:
    """The shell lines with which the comment says it can be reproduced."""
    (found,) = _COMMANDS.findall(comment)
    return str(found)


def run_printed(change: Change, directory: Path) -> subprocess.CompletedProcess[str]:
    """Does what the comment says in a clone of the team's repository, as a reader would."""
    origin = change.scene.git
    origin("update-ref", f"refs/pull/{change.number}/merge", change.merge_sha)
    clone = directory / "clone"
    origin("clone", "-q", str(origin.root), str(clone))
    installed = Path(sys.executable).parent
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("CI_BOT_")},
        "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}",
    }
    return subprocess.run(
        ["/bin/bash", "-e", "-c", printed(change.sticky())],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.spark
@pytest.mark.parametrize("baseline", nights.cases(["state", "base-branch"], by_day=["base-branch"]))
def test_reproduce__the_printed_command_gives_the_same_decision(
    scene: Scene, tmp_path: Path, baseline: str
) -> None:
    change = scene.open("orders", add_orders)
    reviewed = change.review(inputs={"baseline": baseline})

    again = run_printed(change, tmp_path)

    assert again.returncode == reviewed.exit_code == 0, again.stderr
    assert again.stdout.rstrip().splitlines()[-1].startswith("🟢 Go"), again.stdout
    assert "1 modified · 1 downstream" in again.stdout
    assert "Changed files: not known" not in again.stdout
    if baseline == "state":
        assert reviewed.outputs["plan-id"][:12] in again.stdout
    else:
        assert "compared with the base branch" in again.stdout


@pytest.mark.night
@pytest.mark.spark
def test_auto__a_state_that_cannot_be_read_is_told_first(scene: Scene, tmp_path: Path) -> None:
    broken = tmp_path / "state.duckdb"
    broken.write_bytes(b"this is no database" * 1_000)

    def elsewhere(shop: Shop) -> None:
        add_orders(shop)
        shop.edit("config.yaml", str(scene.shop.state), str(broken))

    change = scene.open("elsewhere", elsewhere)

    outcome = change.review(inputs={"baseline": "auto"})

    first = "\n".join(change.sticky().splitlines()[:8])
    assert "The state of `prod` was not read" in first
    assert "not a valid DuckDB database file" in first
    assert "that file is no DuckDB database" in first
    assert next(each.data for each in outcome.commands if each.name == "warning").startswith(
        "The state of `prod` was not read, so this compares with the base branch: The state database"
    )
    assert outcome.document("report")["state_failure"]["reason_code"] == "state_unreachable"
    assert outcome.document("report")["baseline"] == "base-branch"
