"""What GitHub has to let in, read from a repository's own workflows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.worker.doctor.examination import check_missing_workflows, check_workflow_events
from tests.setup_layouts import clone

EXAMPLES = Path(__file__).resolve().parents[3] / ".github" / "examples"


def write(root: Path, name: str, text: str) -> None:
    folder = root / ".github" / "workflows"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_check__of_the_examples__names_each_event_and_who_starts_what_a_comment_asks_for(
    tmp_path: Path,
) -> None:
    for file in EXAMPLES.glob("*.yml"):
        write(tmp_path, file.name, file.read_text("utf-8"))

    found = check_workflow_events(tmp_path)

    assert found is not None
    assert found.message == (
        "this action is started by issue_comment, merge_group, pull_request, pull_request_target, schedule, "
        "workflow_dispatch, workflow_run"
    )
    assert "`github-actions[bot]`" in (found.fix or "")


@pytest.mark.parametrize(
    "on", ["on: pull_request", "on: [pull_request]", "on:\n  pull_request:\n    types: [opened]"]
)
def test_check__reads_each_form_of_on(tmp_path: Path, on: str) -> None:
    uses = "jobs: {review: {steps: [{uses: octo/sqlmesh-plan-review/review@v1}]}}"
    write(tmp_path, "review.yaml", f"{on}\n{uses}\n")
    # Another's, one that cannot be read, and a directory.
    write(tmp_path, "other.yml", "on: push\njobs: {build: {steps: [{uses: octo/other@v1}]}}\n")
    write(tmp_path, "broken.yml", "on: [push\n# octo/sqlmesh-plan-review@v1\n")
    write(
        tmp_path, "odd.yml", "on: 1\njobs: {build: {steps: 2}, other: [3], third: {steps: [4]}}\n"
    )
    write(tmp_path, "list.yml", "- push\n")
    (tmp_path / ".github" / "workflows" / "folder.yml").mkdir()

    found = check_workflow_events(tmp_path)

    assert found is not None
    assert found.message == "this action is started by pull_request"
    assert "github-actions" not in (found.fix or "")


def test_check__where_no_workflow_uses_it__says_nothing(tmp_path: Path) -> None:
    assert check_workflow_events(tmp_path) is None
    write(tmp_path, "other.yml", "on: push\njobs: {build: {steps: [{uses: octo/other@v1}]}}\n")
    assert check_workflow_events(tmp_path) is None


def test_missing__of_the_examples__is_the_release(tmp_path: Path) -> None:
    for file in EXAMPLES.glob("*.yml"):
        write(tmp_path, file.name, file.read_text("utf-8"))
    (found,) = check_missing_workflows(tmp_path)
    assert "names the placeholder of the documents" in found.message


@pytest.mark.parametrize("level", ["review", "apply", "full"])
def test_missing__of_what_init_writes__is_nothing(tmp_path: Path, level: str) -> None:
    clone(tmp_path, "company").init(level=level)
    assert list(check_missing_workflows(tmp_path)) == []


def test_missing__a_workflow_that_removes_what_another_builds(tmp_path: Path) -> None:
    clone(tmp_path, "company").init(level="apply")
    (tmp_path / ".github" / "workflows" / "cleanup.yml").unlink()
    (found,) = check_missing_workflows(tmp_path)
    assert "none removes them" in found.message
    assert found.fix == "`ci-bot init --level apply` writes cleanup.yml."
