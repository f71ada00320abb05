"""Reading YAML with the parser that SQLMesh brings along, as data and nothing else."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

# With every alias written out. No configuration and no test has as many; nine lines of aliases of
# aliases have a milliard, and whoever walks through them never comes back.
MOST_NODES = 200_000
_ERRORS = (YAMLError, ValueError, RecursionError)


class NotYamlError(Exception):
    """The text is no YAML, or is none that can be looked through."""


class EndlessYamlError(NotYamlError):
    """Its aliases make too much of it."""


def read_yaml(text: str) -> Any:
    """The document.

    Raises:
        NotYamlError: there is none, or it holds itself, or too much.
    """
    try:
        document = YAML(typ="safe").load(text)
        if _count_nodes(document, {}) > MOST_NODES:
            raise EndlessYamlError("it is too much with its aliases written out")
    except _ERRORS as error:
        raise NotYamlError(type(error).__name__) from error
    return document


def load_yaml(text: str) -> Any:
    """The document, or None where it cannot be read."""
    try:
        return read_yaml(text)
    except NotYamlError:
        return None


def _count_nodes(node: Any, known: dict[int, int]) -> int:
    """How many nodes there are with every alias written out.

    Args:
        known: Of the lists and mappings that were counted already. What is being counted has no
            end yet, so a document that holds itself is larger than any.
    """
    if not isinstance(node, dict | list):
        return 1
    if id(node) not in known:
        known[id(node)] = MOST_NODES + 1
        inner = [*node.keys(), *node.values()] if isinstance(node, dict) else node
        known[id(node)] = 1 + sum(_count_nodes(item, known) for item in inner)
    return known[id(node)]
