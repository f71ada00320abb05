"""Stored snapshots of models that are as they were loaded, without a second model made of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlmesh.core.context import Context
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.core.state_sync.db import snapshot as snapshot_module


@contextmanager
def loaded_nodes(context: Context) -> Iterator[None]:
    """Gives a snapshot that the state has under a loaded model's fingerprint that model.

    SQLMesh parses the stored one first and then puts the loaded one in its place.
    (`GenericContext._snapshots`, `ContextDiff.create`, `parse_snapshot`)
    """
    module: Any = snapshot_module
    project: Any = context
    make = project._nodes_to_snapshots
    made: dict[str, Snapshot] = {}

    def noted(nodes: Any) -> dict[str, Snapshot]:
        found: dict[str, Snapshot] = make(nodes)
        made.update(found)
        return found

    class SnapshotJson:
        """The module's `json`."""

        def __getattr__(self, name: str) -> Any:
            return getattr(json, name)

        def loads(self, text: str) -> Any:
            stored = json.loads(text)
            loaded = made.get(stored["name"])
            if loaded is not None and stored["fingerprint"] == loaded.fingerprint.dict():
                stored["node"] = loaded.node
            return stored

    project._nodes_to_snapshots, module.json = noted, SnapshotJson()
    try:
        yield
    finally:
        module.json = json
        del project._nodes_to_snapshots
