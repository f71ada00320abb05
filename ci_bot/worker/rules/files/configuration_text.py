"""A project's YAML configuration as text: where it stands, and its settings without a load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from ci_bot.jinja_text import REMARK, replace_templates
from ci_bot.static_config import FILES
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.yaml_reader import load_yaml

_FILES = frozenset(FILES)
_DIGITS = 16

STAND_IN = re.compile(rf"jinja[0-9a-f]{{{_DIGITS}}}")


def flatten_configuration(text: str | None) -> dict[str, object] | None:
    """Flattens a YAML configuration to dotted keys; None if it is no mapping.

    The result of Jinja depends on the machine, so a template is a value that equals only itself.
    """
    if text is None:
        return None
    found = load_yaml(replace_configuration_templates(text))
    return dict(_iterate_flat(found, ())) if isinstance(found, dict) else None


def replace_configuration_templates(text: str) -> str:
    """Replaces each template by a word. A condition in one line counts as one value."""
    return replace_templates(text, _make_template_placeholder, whole_conditions=True)


def _make_template_placeholder(template: str) -> str:
    """Makes a word for a template, always the same one; empty for a comment."""
    if template.startswith(REMARK):
        return ""
    words = " ".join(template.split())
    # Jinja has two kinds of quotes that mean the same.
    words = words if "'" in words else words.replace('"', "'")
    return f"jinja{sha256(words.encode()).hexdigest()[:_DIGITS]}"


def _iterate_flat(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _iterate_flat(inner, (*path, str(key)))
    else:
        yield "\x00".join(path), value


def is_project_yaml(inputs: RuleInputs, path: str) -> bool:
    """Whether a file is the YAML configuration of one of the projects."""
    return PurePosixPath(path).name in _FILES and inputs.find_path_in_project(path) in _FILES


def read_text_before_move(inputs: RuleInputs, path: str) -> str | None:
    """A configuration's text before; it may have stood under another of SQLMesh's names."""
    text = inputs.read_text_before(path)
    changed = inputs.all_changed_files or inputs.changed_files or ()
    for name in FILES if text is None else ():
        other = str(PurePosixPath(path).with_name(name))
        if other in changed and inputs.read_text_after(other) is None:
            text = inputs.read_text_before(other) or text
    return text
