"""One list of inputs: action.yml, the settings, and the outputs that a run sets."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_bot.bot.actions.inputs import (
    ActionInputs,
    make_variable_name_of_input,
    read_action_settings,
)

ROOT = Path(__file__).resolve().parents[2]
RUNNER = {
    "GITHUB_REPOSITORY": "acme/warehouse",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
}


@pytest.fixture(scope="module")
def metadata() -> Any:
    return YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))


def test_inputs__of_the_action_are_those_of_the_settings(metadata: Any) -> None:
    assert list(metadata["inputs"]) == ActionInputs.list_names()


def test_inputs__defaults_of_the_action_are_those_of_the_settings(metadata: Any) -> None:
    environ = {
        make_variable_name_of_input(name): declared["default"]
        for name, declared in metadata["inputs"].items()
        if name != "github-token"  # an expression that GitHub fills in
    }

    assert read_action_settings({**RUNNER, **environ}).inputs == ActionInputs()


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
    for item in fields(ActionInputs):
        assert callable(item.metadata.get("parse")), item.name
