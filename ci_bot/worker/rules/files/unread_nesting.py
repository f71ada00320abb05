"""Files that are nested deeper than a parser can follow, so that no rule has read them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ci_bot.protocol.limits import is_read
from ci_bot.worker.rules.files.configuration_text import (
    is_project_yaml,
    replace_configuration_templates,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import CRASHED
from ci_bot.worker.sql import is_too_deep
from ci_bot.yaml_reader import UnfitYaml, UnreadYaml, read_yaml


def find_unread_files(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Changed files that no rule could read: run before all rules, as one of them.

    The silence of rules about such a file says nothing.
    """
    for path in inputs.changed_files or ():
        why = _explain_unread_file(inputs, path) if is_read(path) else None
        if why is not None:
            yield RuleObservation(
                CRASHED,
                f"No rule has read `{path}`: {why}.",
                "it is written without such nesting, or somebody has read it",
                severity="high",
                path=path,
                line=1,
                subject=("nesting",),
            )


def _explain_unread_file(inputs: RuleInputs, path: str) -> str | None:
    """Says why no rule could read a changed Python file or YAML of a project."""
    text = inputs.read_text_after(path)
    if text is None:
        return None
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
