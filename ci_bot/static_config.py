"""What a project's YAML configuration says in plain text: nothing is rendered, expanded or run.

The bot has to know the name of a pull request's environment before any project is loaded, and a
cleanup has to find the same name after the branch is gone. So SQLMesh's own
`cicd_bot.pr_environment_name` is used only if it can be read without running anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from ci_bot.jinja_text import EXPRESSION, REMARK, replace_templates
from ci_bot.protocol.environment import is_environment_prefix, normalize_environment_name
from ci_bot.yaml_reader import MappingNode, Node, ScalarNode, UnfitYaml, compose_yaml

# A directory may have one of them; SQLMesh refuses several.
FILES = ("config.yaml", "config.yml", "sqlmesh.yaml", "sqlmesh.yml")
KEY = "cicd_bot.pr_environment_name"
MOST_BYTES = 1024 * 1024
# Replaces what a template would write; no usable name has this character.
_UNKNOWN = "\u2400"
_TEXT, _NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"


@dataclass(frozen=True)
class WrittenPrefix:
    """What a configuration says about the names of pull requests' environments.

    Attributes:
        prefix: the part before `_<number>`; None if nothing usable is written.
        problem: why the written text is not usable, to follow the key in a sentence.
    """

    prefix: str | None = None
    problem: str | None = None


class _NotPlainError(Exception):
    """Why the written text is not usable."""


def read_written_prefix(text: str) -> WrittenPrefix:
    """Reads the prefix of environments from a configuration, and makes it as SQLMesh's bot does."""
    if KEY.rpartition(".")[2] not in text:
        return WrittenPrefix()
    try:
        name = _read_yaml_text_at_key(text)
    except UnfitYaml:
        return WrittenPrefix(problem="is in a file that is not YAML")
    except _NotPlainError as why:
        return WrittenPrefix(problem=str(why))
    prefix = None if name is None else normalize_environment_name(name)
    if prefix is None or is_environment_prefix(prefix):
        return WrittenPrefix(prefix)
    return WrittenPrefix(
        problem="does not begin with a letter, is longer than 31 characters, or has letters other "
        "than a to z"
    )


def read_written_keys(text: str, path: str) -> list[str]:
    """Lists the keys at a path in a configuration; none if it cannot be read."""
    try:
        node = _find_yaml_node_at_path(_without_templates(text), path.split("."))
    except UnfitYaml:
        return []
    if not isinstance(node, MappingNode):
        return []
    return [str(key.value) for key, _ in node.value if isinstance(key, ScalarNode)]


def _read_yaml_text_at_key(text: str) -> str | None:
    """Returns the text at `KEY`; None if nothing is written there.

    Raises:
        _NotPlainError: a template makes it, or it is no text.
        UnfitYaml: the text is no document.
    """
    if "{%" in text:
        raise _NotPlainError("is in a file that a template makes")
    node = _find_yaml_node_at_path(_without_templates(text), KEY.split("."))
    if node is None or node.tag == _NULL:
        return None
    if not isinstance(node, ScalarNode) or node.tag != _TEXT:
        raise _NotPlainError("is no text")
    if _UNKNOWN in node.value:
        raise _NotPlainError("is made by a template")
    return str(node.value)


def _without_templates(text: str) -> str:
    """Replaces each expression by a mark; no two are equal, because they may be keys."""
    numbers = count()
    without_remarks = replace_templates(text, lambda _: "", (REMARK,))
    return replace_templates(without_remarks, lambda _: f"{_UNKNOWN}{next(numbers)}", (EXPRESSION,))


def _find_yaml_node_at_path(text: str, path: list[str]) -> Node | None:
    """Finds the node at a path in a YAML document; None if there is none.

    Raises:
        UnfitYaml: the text is no document.
    """
    node = compose_yaml(text)
    for name in path:
        if not isinstance(node, MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == name), None)
    return node
