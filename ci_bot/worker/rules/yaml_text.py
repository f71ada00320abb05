"""Reading YAML with the parser that SQLMesh brings along, as data and nothing else."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError


def load(text: str) -> Any:
    """The document, or None where it is no YAML."""
    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, ValueError, RecursionError):
        return None
