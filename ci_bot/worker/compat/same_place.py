"""Two checkouts of one project, compared as if they lay in the same place.

A configuration may put the directory that it lies in into a variable, and a module may do so with
its own. SQLMesh keeps such values with each model that uses them, and they count in fingerprints:
the base branch's project, which lies elsewhere, would differ in every such model.

Leans on `Context._models`, `_standalone_audits`, and the hashes that nodes keep once computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlmesh.core.context import Context

Moved = Callable[[str], str]


def as_if_in(context: Context, here: Path, there: Path) -> None:
    """Lets a loaded project's values say `there` where they say `here`.

    Args:
        here: The root of the checkout that was loaded.
        there: The root of the one that it will be compared with.
    """
    moved = _mover(here, there)
    every: tuple[dict[str, Any], ...] = (context._models, context._standalone_audits)
    for named in every:
        for name, node in list(named.items()):
            changed = _changed(node, moved)
            if changed:
                copy = node.copy(update=changed)
                copy._data_hash = copy._metadata_hash = None
                named.update({name: copy})


def _mover(here: Path, there: Path) -> Moved:
    """Also of paths whose first slash was taken off, as they are put after a scheme."""
    named = re.compile(
        "|".join(
            rf"(?<![\w.-]){re.escape(str(path).lstrip('/'))}(?![\w.-])"
            for path in dict.fromkeys((here, here.resolve()))
        )
    )
    new = str(there).lstrip("/")
    return lambda text: named.sub(lambda _: new, text)


def _changed(node: Any, moved: Moved) -> dict[str, Any]:
    """The fields of a model or audit that hold a path."""
    changed: dict[str, Any] = {}
    values = {
        name: item.copy(update={"payload": moved(item.payload)})
        for name, item in node.python_env.items()
        if moved(item.payload) != item.payload
    }
    if values:
        changed["python_env"] = {**node.python_env, **values}
    shared = node.jinja_macros.global_objs
    rewritten = _rewritten(shared, moved)
    if rewritten != shared:
        changed["jinja_macros"] = node.jinja_macros.copy(update={"global_objs": rewritten})
    return changed


def _rewritten(value: Any, moved: Moved) -> Any:
    if isinstance(value, str):
        return moved(value)
    if isinstance(value, dict):
        return {key: _rewritten(item, moved) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_rewritten(item, moved) for item in value)
    return value
