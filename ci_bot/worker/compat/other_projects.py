"""What the state holds of other projects, and whether it can be used here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from sqlmesh.core import constants as c
from sqlmesh.core.context import Context


@dataclass(frozen=True)
class FailingNode:
    """A node of prod's that is in no loaded project, and what its recorded code fails with.

    Attributes:
        name: fully qualified.
        project: None where the record itself cannot be read.
    """

    name: str
    project: str | None
    error: Exception


def failing_nodes_of_others(context: Context, state: Any) -> Iterator[FailingNode]:
    """The nodes of other projects in prod that cannot be read from the state, or not be rendered.

    Args:
        context: Holds the models of the loaded projects, and nothing from the state.

    (`Context.load`, which merges those nodes into the project's own)
    """
    prod = state.get_environment(c.PROD)
    own = {str(config.project or "") for config in context.configs.values()}
    if prod is None or not any(own):
        return
    absent = [
        info
        for info in prod.snapshots
        if info.name not in context._models and info.name not in context._standalone_audits
    ]
    for info in absent:
        node: Any = None
        try:
            (snapshot,) = state.get_snapshots([info]).values()
            node = snapshot.node
            if node.project not in own:
                _use(node)
        except Exception as error:
            yield FailingNode(str(info.name), None if node is None else str(node.project), error)


def _use(node: Any) -> Collection[str]:
    """Does with a node what loading and planning do: what is wrong with its code shows then."""
    read: Collection[str] = node.depends_on
    if hasattr(node, "render_query"):
        node.render_query()
    _ = node.data_hash, node.metadata_hash
    return read
