"""What a project's YAML configuration says in plain text: nothing is rendered, expanded or run.

The bot has to know what a pull request's environment is called before any project is loaded, and
a cleanup has to find the same name after the branch is gone. So of SQLMesh's own
`cicd_bot.pr_environment_name` that is honoured which can be read without running anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from ci_bot.jinja_text import EXPRESSION, REMARK, replace_templates
from ci_bot.protocol.environment import is_environment_prefix, normalize_environment_name
from ci_bot.yaml_reader import MappingNode, Node, ScalarNode, UnfitYaml, compose_yaml

# One of them in a directory; SQLMesh refuses several.
FILES = ("config.yaml", "config.yml", "sqlmesh.yaml", "sqlmesh.yml")
KEY = "cicd_bot.pr_environment_name"
MOST_BYTES = 1024 * 1024
# In place of what a template would give; in no name that could be honoured.
_UNKNOWN = "\u2400"
_TEXT, _NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"


@dataclass(frozen=True)
class WrittenPrefix:
    """What a configuration says that environments of pull requests are called.

    Attributes:
        prefix: what comes before `_<number>`; None if nothing is written that can be honoured.
        problem: why what is written cannot be, to follow the key in a sentence.
    """

    prefix: str | None = None
    problem: str | None = None


class _NotPlainError(Exception):
    """Why what is written cannot be honoured."""


def read_written_prefix(text: str) -> WrittenPrefix:
    """The prefix of environments that a configuration writes, made as SQLMesh's bot makes it."""
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
    """The keys that stand at a place of a configuration; none if it cannot be read."""
    try:
        node = _find_yaml_node_at_path(_without_templates(text), path.split("."))
    except UnfitYaml:
        return []
    if not isinstance(node, MappingNode):
        return []
    return [str(key.value) for key, _ in node.value if isinstance(key, ScalarNode)]


def _read_yaml_text_at_key(text: str) -> str | None:
    """The text at `KEY`, None if nothing is written there."""
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
    """The text with a mark for each expression; two are never equal, so that they can be keys."""
    numbers = count()
    without_remarks = replace_templates(text, lambda _: "", (REMARK,))
    return replace_templates(without_remarks, lambda _: f"{_UNKNOWN}{next(numbers)}", (EXPRESSION,))


def _find_yaml_node_at_path(text: str, path: list[str]) -> Node | None:
    """What stands at a place of a YAML document; None if nothing does.

    Raises:
        UnfitYaml: it is no document.
    """
    node = compose_yaml(text)
    for name in path:
        if not isinstance(node, MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == name), None)
    return node
