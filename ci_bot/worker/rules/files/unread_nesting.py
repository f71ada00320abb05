"""Files that are nested deeper than a parser can follow, so that no rule has read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ci_bot.worker.rules.files.configuration_text import (
    is_project_yaml,
    replace_configuration_templates,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import CRASHED, on_file
from ci_bot.worker.sql import is_too_deep
from ci_bot.yaml_reader import UnfitYaml, UnreadYaml, read_yaml


@on_file(CRASHED)
def find_unread_nesting(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds Python and settings that every rule skips: their silence says nothing."""
    for path in inputs.changed_files or ():
        text = inputs.read_text_after(path)
        why = None if text is None else _explain_unread(inputs, path, text)
        if why is not None:
            yield RuleObservation(
                CRASHED,
                f"No rule has read `{path}`: {why}.",
                "it is written without such nesting, or somebody has read it",
                path=path,
                line=1,
                subject=("nesting",),
            )


def _explain_unread(inputs: RuleInputs, path: str, text: str) -> str | None:
    inside = PurePosixPath(inputs.find_path_in_project(path) or "/")
    if inside.suffix == ".py":
        return "it is nested deeper than Python's own parser follows" if is_too_deep(text) else None
    is_test = inside.parts[0] == "tests" and inside.suffix in (".yaml", ".yml")
    if not is_test and not is_project_yaml(inputs, path):
        return None
    try:
        read_yaml(replace_configuration_templates(text))
    except UnreadYaml as unread:
        return unread.message
    except UnfitYaml:
        return None  # no YAML: the load fails, or the test does
    return None
