"""What a shell can complete: the names of rules, and of the models that a project's files declare.

Nothing is loaded or run: a shell asks at each press of the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# A model's name stands at its beginning.
_HEAD_BYTES = 4_096
# A shell waits for the answer.
_MOST_FILES = 5_000
_SQL = re.compile(r"\bMODEL\s*\(\s*name\s+([^\s,;()@]+)", re.IGNORECASE)
_PYTHON = re.compile(r"@model\(\s*(?:name\s*=\s*)?[\"\']([^\"\'{}@]+)[\"\']")


def list_rule_names() -> list[str]:
    """The ids of all rules."""
    from ci_bot.protocol.rules import RULES

    return list(RULES)


def list_model_names(projects: Iterable[str]) -> list[str]:
    """The models that files below these directories declare with a plain name, sorted.

    A name that is made by a macro, or that stands below other properties, is not found.
    """
    found = set()
    for project in projects:
        for path in _list_model_files(Path(project)):
            name = _read_model_name(path)
            if name is not None:
                found.add(name)
    return sorted(found)


def _list_model_files(project: Path) -> Iterator[Path]:
    left = _MOST_FILES
    for folder, folders, files in os.walk(project / "models"):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for file in sorted(files):
            if file.endswith((".sql", ".py")):
                if not left:
                    return
                left -= 1
                yield Path(folder, file)


def _read_model_name(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            text = file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    hit = (_SQL if path.suffix == ".sql" else _PYTHON).search(text)
    return hit[1].replace("`", "").replace('"', "") if hit else None
