"""What a run in the image leaves on the runner: files that the runner's own account can remove.

The container is root, the workspace is not. A runner that keeps its work directory cleans it before
the next checkout as its own account, and whatever root left there would end every later job.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.checkout import Repository
from tests.container.engine import Engine
from tests.container.merged import a_pull_request, merge_feature, review
from tests.container.runner import RUNNER_UID, Action
from tests.integration.test_laptop_leftovers import CONFIG, with_python
from tests.projects.duck import write_duck_shop

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(os.geteuid() != 0, reason="a workspace of another owner needs root"),
]

REPORT = "ci-bot-report"
MOUNTS = ("workspace", "home", "runner_temp", "workflow")


def with_code(action: Action) -> tuple[Repository, str]:
    """The shop, with a model in Python, as a pull request; the commit."""
    return a_pull_request(action, with_python(write_duck_shop(action.home / "made")))


def paths(action: Action) -> dict[str, int]:
    """Everything in the directories that the runner mounts, with its owner."""
    found = [path for mount in MOUNTS for path in (action.home / mount).rglob("*")]
    return {str(path.relative_to(action.home)): path.lstat().st_uid for path in found}


def test_owners__of_all_that_a_review_writes__are_the_workspaces(action: Action) -> None:
    _, merge = with_code(action)
    before = set(paths(action)) | {"workflow/event.json"}

    outcome = review(action, merge)

    assert outcome.outputs["report-path"] == REPORT, outcome.log
    after = paths(action)
    new = {path: owner for path, owner in after.items() if path not in before}
    names = ("", "/report.json", "/report.md", "/report.html", "/report.sarif")
    report = {f"workspace/{REPORT}{name}" for name in names}
    assert new == dict.fromkeys(report, RUNNER_UID)
    assert {
        path for path, owner in after.items() if path[:9] == "workspace" and owner == 0
    } == set()
    told = json.loads((action.workspace / REPORT / "report.json").read_text("utf-8"))
    assert told["failure"] is None, outcome.log
    assert [change["model"] for change in told["changes"]] == ["shop.revenue", "shop.top_customers"]


@pytest.mark.parametrize("target", ["/github/home", "/etc", "../home"])
def test_report__in_place_of_which_the_checkout_has_a_link__is_refused(
    action: Action, target: str
) -> None:
    repository, _ = with_code(action)
    (action.workspace / REPORT).symlink_to(target)
    repository.git("checkout", "--quiet", "feature")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "a link")
    merge_feature(repository, "HEAD^1")

    outcome = review(action, repository.git("rev-parse", "HEAD"))

    assert outcome.exit_code == 2, outcome.log
    assert outcome.outputs["reason-code"] == "output"
    assert "`ci-bot-report` in the checkout is no directory" in outcome.log
    assert "report-path" not in outcome.outputs
    assert list((action.home / "home").iterdir()) == []
    assert (action.workspace / REPORT).is_symlink()


@pytest.mark.night
@pytest.mark.spark
@pytest.mark.slow
def test_temporary_directory__is_empty_after_a_run_with_spark(
    engine: Engine, image: str, tmp_path: Path
) -> None:
    """Java does not follow TMPDIR, and a JVM that is killed removes nothing."""
    shop = with_python(write_duck_shop(tmp_path))
    shop.write("config.yaml", CONFIG.format(state="/tmp/state.duckdb"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    temporary.chmod(0o1777)
    before = {str(path) for path in shop.project.rglob("*")}
    mounts = {shop.project: "/github/workspace", temporary: "/tmp"}
    options = [part for here, there in mounts.items() for part in ("--volume", f"{here}:{there}")]
    done = engine.run(
        image,
        *("doctor", "--project", "."),
        options=(*options, "--workdir", "/github/workspace"),
        check=False,
        timeout=300,
    )
    assert "Spark 3.5" in done.stdout, f"Spark was started: {done.stdout}\n{done.stderr}"
    left = {path.name for path in temporary.iterdir()}
    assert {name for name in left if not name.startswith("hsperfdata_")} == set()
    assert {str(path) for path in shop.project.rglob("*")} == before
