"""The example of a GitHub App's token, put into each example workflow as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.cli.setup.plan_files import find_action_release
from tests.contract.test_actionlint import NOT_KNOWN_YET, found, program
from tests.contract.test_linters import GITHUB, ROOT, ZIZMOR, assert_clean, lint

__all__ = ["program"]  # a fixture

PAGE = (ROOT / "docs" / "installation.md").read_text("utf-8")
STEP, WITH = re.findall(r"```yaml\n(.*?)```", PAGE.split("## A GitHub App's token")[1], re.S)[:2]
NAMES = ("review", "apply", "cleanup")
OURS = find_action_release(None).repository
# The action's step: its name, perhaps an id and comments, and what it uses.
ACTION = re.compile(
    r"(?m)^      - name: [^\n]+\n(?:        [^\n]+\n)*?"
    rf"        uses: {re.escape(OURS)}[/@][^\n]+\n        with:\n"
)


def with_app(name: str) -> str:
    text = (GITHUB / "examples" / f"{name}.yml").read_text("utf-8")
    # The first job writes the comments; what runs beside it keeps the workflow's own token.
    step = ACTION.findall(text)[0]
    return text.replace(step, STEP + step + WITH, 1)


@pytest.mark.parametrize("name", NAMES)
def test_app_token__is_clean_for_the_linters(name: str, program: Path, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yml"
    file.write_text(with_app(name), "utf-8")
    assert_clean(lint(*ZIZMOR, str(file)))
    assert [line for line in found(program, file) if NOT_KNOWN_YET not in line] == []


@pytest.mark.parametrize("name", NAMES)
def test_app_token__goes_to_the_action_and_nowhere_else(name: str) -> None:
    workflow = YAML(typ="safe").load(with_app(name))
    job, *beside = workflow["jobs"].values()
    before, step = next(
        (a, b)
        for a, b in zip(job["steps"], job["steps"][1:], strict=False)
        if b.get("uses", "").startswith(OURS)
    )
    assert before["id"] == "app"
    assert step["with"]["github-token"] == "${{ steps.app.outputs.token }}"
    others = [other for other in job["steps"] if other is not step]
    assert "steps.app.outputs.token" not in str([others, beside])
    asked = {key: value for key, value in before["with"].items() if key.startswith("permission-")}
    assert asked == {
        "permission-pull-requests": "write",
        "permission-contents": "read",
        "permission-actions": "read",
    }
