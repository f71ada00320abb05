"""One list of inputs in four places: action.yml, the settings, the README, and the outputs that a
run sets.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.actions.inputs import Inputs, env_name, from_environ

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\|\s*`?([a-z][a-z-]*)`?\s*\|")
RUNNER = {
    "GITHUB_REPOSITORY": "acme/warehouse",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
}


@pytest.fixture(scope="module")
def metadata() -> Any:
    return YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text("utf-8")


def table(text: str, heading: str) -> list[str]:
    """The first cells of the table whose header's first cell is `heading`, in order."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if re.match(rf"^\|\s*{heading}\s*\|", line, re.IGNORECASE):
            inside = True
        elif inside and (row := _ROW.match(line)):
            found.append(row[1])
        elif inside and not line.startswith("|"):
            break
    return found


def test_inputs__of_the_action_are_those_of_the_settings(metadata: Any) -> None:
    assert list(metadata["inputs"]) == Inputs.list_names()


def test_inputs__are_handed_to_the_variables_that_the_settings_read(metadata: Any) -> None:
    assert set(metadata["runs"]["env"]) == {env_name(name) for name in Inputs.list_names()}


def test_inputs__defaults_of_the_action_are_those_of_the_settings(metadata: Any) -> None:
    environ = {
        env_name(name): declared["default"]
        for name, declared in metadata["inputs"].items()
        if name != "github-token"  # an expression that GitHub fills in
    }

    assert from_environ({**RUNNER, **environ}).inputs == Inputs()


def test_inputs__of_the_readme_are_those_of_the_action(metadata: Any, readme: str) -> None:
    assert sorted(table(readme, "input")) == sorted(metadata["inputs"])


def test_outputs__of_the_readme_are_those_of_the_action(metadata: Any, readme: str) -> None:
    assert sorted(table(readme, "output")) == sorted(metadata["outputs"])


def test_outputs__are_all_set_somewhere(metadata: Any) -> None:
    sources = "\n".join(
        path.read_text("utf-8")
        for path in [
            *(ROOT / "ci_bot" / "bot" / "handlers").glob("*.py"),
            ROOT / "ci_bot/bot/handlers/run_action.py",
        ]
    )

    for name in metadata["outputs"]:
        assert f'"{name}"' in sources, f"no run sets the output {name}"


def test_inputs__every_one_says_how_it_is_read() -> None:
    for item in fields(Inputs):
        assert callable(item.metadata.get("parse")), item.name
