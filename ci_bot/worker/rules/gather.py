"""The rules' inputs where there is no plan, because the head does not load or SQLMesh refuses it.

These are the moments in which a finding helps most: SQLMesh says that a forward-only change is
destructive, and not of which model; it says that a byte cannot be decoded, and not in which seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sqlmesh.core import constants as c

from ci_bot.worker.rules.inputs import ReadFile, RuleInputs
from ci_bot.worker.words.names import Names

_NAME = re.compile(
    r"MODEL\s*\(\s*(?:[^;]*?,\s*)?name\s+([\w.]+)|@model\(\s*(?:name\s*=\s*)?[\"']([\w.]+)",
    re.IGNORECASE,
)


def models_in_state(state_reader: Any, environment: str = c.PROD) -> dict[str, Any]:
    """The models of an environment by fully qualified name; empty where it does not exist."""
    stored = state_reader.get_environment(environment)
    if stored is None:
        return {}
    snapshots = state_reader.get_snapshots(stored.snapshots)
    return {s.name: s.model for s in snapshots.values() if s.is_model}


def without_plan(
    context: Any,
    *,
    repository: Path,
    projects: Iterable[str],
    changed_files: Iterable[str] | None,
    files_before: ReadFile,
    files_after: ReadFile,
) -> RuleInputs:
    """Inputs for `find` after a failure.

    Args:
        context: the loaded head with its state, where only the plan failed; None where the head
            does not load. Rules on files run in both cases.
    """
    after = dict(context.models) if context is not None else {}
    readers: dict[str, set[str]] = {}
    for name, model in after.items():
        for parent in model.depends_on:
            readers.setdefault(parent, set()).add(name)
    return RuleInputs(
        before=models_in_state(context.state_reader) if context is not None else {},
        after=after,
        repository=repository,
        projects=tuple(projects),
        loaded=context is not None,
        changed_files=None if changed_files is None else tuple(changed_files),
        files_before=files_before,
        files_after=files_after,
        config_after=context.config if context is not None else None,
        readers=readers,
        default_dialect=(context.default_dialect or "") if context is not None else "",
        names=Names(context.default_catalog if context is not None else None, None),
    )


def model_in_file(path: Path) -> str | None:
    """The name in a file's MODEL block or @model call, read as text: the file may not parse."""
    if not path.is_file():
        return None
    return model_in_text(path.read_text(encoding="utf-8", errors="replace"))


def model_in_text(text: str) -> str | None:
    """See `model_in_file`."""
    found = _NAME.search(text)
    return next((name for name in found.groups() if name), None) if found else None
