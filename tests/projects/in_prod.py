"""What SQLMesh's state says of prod."""

from __future__ import annotations

from pathlib import Path

from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context


def query_in_prod(project: Path, model: str) -> str:
    """The query of prod's model whose name contains `model`, rendered."""
    set_console(NoopConsole())
    context = Context(paths=[str(project)], load=False)
    try:
        prod = context.state_reader.get_environment("prod")
        snapshots = context.state_reader.get_snapshots(prod.snapshots if prod else [])
        (found,) = [each for each in snapshots.values() if model in each.name]
        return str(found.model.render_query())
    finally:
        context.close()
