"""The picture of the first screen: what changed, and what lies below it; small, or not at all."""

from __future__ import annotations

from collections import defaultdict

from ci_bot.bot.comment.column_impact import lineage_notes
from ci_bot.bot.comment.first_screen.fixes import reached
from ci_bot.bot.comment.lineage import DrawnLineage, draw
from ci_bot.contracts.documents.forward_only import forward_only_models
from ci_bot.contracts.documents.plan import Lineage
from ci_bot.contracts.documents.report import Report

MAX_NODES = 12
_NEW_DATA_ONLY = "new data only"


def picture(report: Report) -> DrawnLineage | None:
    """The changed models and all that read them; None where that is no help.

    That is a Go, a change that nothing reads, and more models than one look can take in.
    """
    if report.decision == "go":
        return None
    lineage = affected(report.lineage)
    if not lineage.edges or len(lineage.nodes) > MAX_NODES:
        return None
    kept = forward_only_models(report)
    return draw(lineage, MAX_NODES, node_notes(report), dashed=kept)


def node_notes(report: Report) -> dict[str, str]:
    """What stands below each model's name: its columns, and that its history stays."""
    notes = lineage_notes(report.impact)
    drawn = {node.model for node in report.lineage.nodes}
    for model in forward_only_models(report) & drawn:
        notes[model] = f"{notes[model]}, {_NEW_DATA_ONLY}" if model in notes else _NEW_DATA_ONLY
    return notes


def affected(lineage: Lineage) -> Lineage:
    """The part of the lineage in which something changes: no parents, and nothing that is alone."""
    readers: dict[str, list[str]] = defaultdict(list)
    for parent, reader in lineage.edges:
        readers[parent].append(reader)
    keep: set[str] = set()
    for node in lineage.nodes:
        if node.change is not None and node.model not in keep:
            keep |= {node.model, *reached(node.model, readers)}
    edges = [(one, other) for one, other in lineage.edges if one in keep and other in keep]
    joined = {model for edge in edges for model in edge}
    nodes = [node for node in lineage.nodes if node.model in joined]
    return lineage.model_copy(update={"nodes": nodes, "edges": edges})
