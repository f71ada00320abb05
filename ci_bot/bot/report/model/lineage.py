"""What a change reaches: its columns as rows of a table, its models as a mermaid graph.

The graph goes from the changed models to their readers, level by level.

A graph of a whole project helps nobody and does not render (mermaid stops at 50,000 characters). So
it shows at most 40 models, and a model with readers that are not shown says how many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ci_bot.bot.report.markdown_text import SafeMarkdown, make_fenced_block, one_line
from ci_bot.bot.report.model.changed_rows import list_history_keepers
from ci_bot.bot.report.model.finding_groups import list_reached_models
from ci_bot.protocol.plan import Lineage
from ci_bot.protocol.review_report import ChangedPart, HowChanged, Impact, ReachedModel, Report

_NOTED_COLUMNS = 3
_SIGNS = {"dropped": "−", "added": "+"}


@dataclass(frozen=True)
class ImpactRowView:
    """Columns of one model that change in the same way and reach the same; none if rows change."""

    model: str
    how: HowChanged
    columns: tuple[str, ...]
    reached: tuple[ReachedModel, ...]
    more: int


def list_impact_row_views(impact: Impact, left_out: Collection[str] = ()) -> list[ImpactRowView]:
    """Returns the changed parts, those that reach most first.

    Args:
        left_out: Models that the pull request does not change itself.
    """
    groups: dict[tuple[object, ...], list[ChangedPart]] = {}
    for part in impact.changed:
        if part.model not in left_out:
            same = (part.model, part.how, part.column is None, part.more_models)
            groups.setdefault((*same, part.model_dump_json(include={"reached"})), []).append(part)
    found = [
        ImpactRowView(
            model=parts[0].model,
            how=parts[0].how,
            columns=tuple(part.column for part in parts if part.column is not None),
            reached=tuple(parts[0].reached),
            more=parts[0].more_models,
        )
        for parts in groups.values()
    ]
    return sorted(found, key=lambda row: -(len(row.reached) + row.more))


def list_models_that_read_nothing(impact: Impact, rebuilt: Iterable[str]) -> list[str]:
    """Lists the models of `rebuilt` that change only because of others and read nothing of it."""
    names = set(rebuilt)
    return [m.model for m in impact.indirect if m.reached == "no" and m.model in names]


def make_lineage_notes(impact: Impact) -> dict[str, str]:
    """Returns a note for each model's name: its changed columns, or those that a change reaches.

    Empty if no model reads a changed model. A "?" means that it cannot be known.
    """
    below = any(part.reached for part in impact.changed) or impact.indirect
    if not below:
        return {}
    columns: dict[str, dict[str, None]] = {}
    rows: set[str] = set()
    for part in impact.changed:
        if part.column is not None:
            sign = _SIGNS.get(part.how, "")
            columns.setdefault(part.model, {}).setdefault(f"{sign}{part.column}")
        elif part.how == "rows":
            rows.add(part.model)
        for reached in part.reached if part.how != "unknown" else ():
            names = columns.setdefault(reached.model, {})
            names |= dict.fromkeys(c for c in reached.columns if f"+{c}" not in names)
            rows |= {reached.model} if reached.rows else set()
    notes = {m.model: "reads no change" for m in impact.indirect if m.reached == "no"}
    notes |= {m.model: "?" for m in impact.indirect if m.reached == "unknown"}
    notes |= {part.model: "?" for part in impact.changed if part.how == "unknown"}
    for model in (*columns, *sorted(rows)):
        note = _describe_impact(list(columns.get(model, ())), has_rows=model in rows)
        if note:
            notes[model] = f"{note}, ?" if notes.get(model) == "?" else note
    return notes


def _describe_impact(columns: list[str], *, has_rows: bool) -> str:
    shown = [*(["rows"] if has_rows else []), *columns[:_NOTED_COLUMNS]]
    rest = len(columns) - _NOTED_COLUMNS
    return ", ".join(shown) + (f" +{rest}" if rest > 0 else "")


MAX_LINEAGE_NODES = 40
MAX_EDGES = 160
LABEL_LIMIT = 48

# Fill, border and text are all set, so that both of GitHub's themes show the same colours. The form
# of the border says the same to readers who do not see colours.
_STYLES = {
    "added": "fill:#d1f0d9,stroke:#1a7f37,color:#0b2e15,stroke-width:2px",
    "direct": "fill:#ffe5c2,stroke:#bc4c00,color:#3b1a00,stroke-width:2px",
    "indirect": "fill:#eaf2fd,stroke:#5b8fd0,color:#0a2647",
    "removed": "fill:#ffd8d6,stroke:#cf222e,color:#4a0b0f,stroke-width:2px,stroke-dasharray:5 4",
    "metadata": "fill:#f3eefc,stroke:#8a63d2,color:#2a1650",
    "same": "fill:#f6f8fa,stroke:#afb8c1,color:#57606a",
}

_DASHED = "stroke-width:2px,stroke-dasharray:5 4"

LEGEND = {
    "added": "🟩 added",
    "direct": "🟧 modified",
    "indirect": "🟦 downstream",
    "removed": "🟥 removed",
    "metadata": "🟪 metadata only",
    "same": "⬜ unchanged",
}

_FIRST = {"removed": 0, "direct": 1, "added": 2, "metadata": 3}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_. ")


@dataclass(frozen=True)
class LineageView:
    """The drawn part: the fence, its legend, how many models are drawn, and how many there are."""

    text: SafeMarkdown
    legend: SafeMarkdown
    drawn: int
    total: int


def draw_lineage_view(
    lineage: Lineage,
    max_nodes: int = MAX_LINEAGE_NODES,
    notes: Mapping[str, str] | None = None,
    *,
    dashed: Collection[str] = (),
) -> LineageView | None:
    """Draws the graph with at most `max_nodes` models; None if there is nothing to draw.

    Args:
        notes: The line below a model's name, by model; untrusted text, as the names are.
        dashed: Models that keep their history as it is.
    """
    notes = notes or {}
    changes: dict[str, str] = {node.model: node.change or "same" for node in lineage.nodes}
    if len(changes) < 2 or max_nodes < 1:  # noqa: PLR2004 - one box says nothing
        return None
    readers: dict[str, list[str]] = defaultdict(list)
    for parent, reader in lineage.edges:
        if parent in changes and reader in changes:
            readers[parent].append(reader)
    drawn = _choose_models_of_lineage_picture(changes, readers, max_nodes)
    ids = {model: f"n{index}" for index, model in enumerate(drawn)}
    lines = ["flowchart LR"]
    for model in drawn:
        hidden = sum(reader not in ids for reader in readers[model])
        more = f" (+{hidden})" if hidden else ""
        below = f"<br/>{make_lineage_node_label(notes[model])}" if model in notes else ""
        lines.append(
            f'  {ids[model]}["{make_lineage_node_label(model)}{more}{below}"]:::{changes[model]}'
        )
    edges = [
        f"  {ids[parent]} --> {ids[reader]}"
        for parent in drawn
        for reader in sorted(set(readers[parent]) & ids.keys())
    ]
    used = [name for name in LEGEND if any(changes[model] == name for model in drawn)]
    styles = [f"  classDef {name} {_STYLES[name]}" for name in used]
    kept = [ids[model] for model in drawn if model in dashed]
    if kept:
        styles += [f"  class {','.join(kept)} kept", f"  classDef kept {_DASHED}"]
    words = [LEGEND[name] for name in used] + (["dashed: forward-only"] if kept else [])
    return LineageView(
        text=make_fenced_block("\n".join(lines + edges[:MAX_EDGES] + styles), "mermaid"),
        legend=SafeMarkdown(" · ".join(words)),
        drawn=len(drawn),
        total=len(changes),
    )


def _choose_models_of_lineage_picture(
    changes: dict[str, str], readers: dict[str, list[str]], limit: int
) -> list[str]:
    """Chooses the models to draw: changed ones by weight and reach, then their readers, etc."""

    def sort_by_reach(models: Iterable[str]) -> list[str]:
        return sorted(models, key=lambda model: (-len(readers[model]), model))

    roots = sorted(
        sort_by_reach(model for model, change in changes.items() if change in _FIRST),
        key=lambda model: _FIRST[changes[model]],
    )
    # If not all fit, readers get most of the room: a chain says more than single boxes.
    first = roots if len(changes) <= limit else sort_by_reach(roots)[: max(limit // 4, 1)]
    chosen = dict.fromkeys(first[:limit])
    level = list(chosen)
    while level and len(chosen) < limit:
        below = {reader for model in level for reader in readers[model]} - chosen.keys()
        level = sort_by_reach(below)[: limit - len(chosen)]
        chosen |= dict.fromkeys(level)
    for model in (*roots, *sort_by_reach(changes)):
        if len(chosen) >= limit:
            break
        chosen.setdefault(model)
    return list(chosen)


def make_lineage_node_label(model: str) -> str:
    """Returns a node's text, each unusual character replaced by mermaid's character code."""
    # An empty label is a syntax error, and nobody sees a label of blanks.
    shown = one_line(model, LABEL_LIMIT).strip() or "no name"
    return "".join(char if char in _PLAIN else f"#{ord(char)};" for char in shown)


# The picture of the first screen: the changed models and all that read them, if they are few.


MAX_PICTURE_NODES = 12
_NEW_DATA_ONLY = "new data only"


def draw_change_picture(report: Report) -> LineageView | None:
    """Draws the changed models and all that read them; None if the picture does not help.

    It does not help for a Go, for a change that no model reads, or with too many models for one
    look.
    """
    if report.decision == "go":
        return None
    lineage = select_affected_lineage(report.lineage)
    if not lineage.edges or len(lineage.nodes) > MAX_PICTURE_NODES:
        return None
    kept = list_history_keepers(report)
    return draw_lineage_view(lineage, MAX_PICTURE_NODES, make_node_notes(report), dashed=kept)


def make_node_notes(report: Report) -> dict[str, str]:
    """Returns the line below each model's name: its columns, and whether its history stays."""
    notes = make_lineage_notes(report.impact)
    drawn = {node.model for node in report.lineage.nodes}
    for model in list_history_keepers(report) & drawn:
        notes[model] = f"{notes[model]}, {_NEW_DATA_ONLY}" if model in notes else _NEW_DATA_ONLY
    return notes


def select_affected_lineage(lineage: Lineage) -> Lineage:
    """Returns the part of the lineage that changes: no unchanged parents, no single models."""
    readers: dict[str, list[str]] = defaultdict(list)
    for parent, reader in lineage.edges:
        readers[parent].append(reader)
    keep: set[str] = set()
    for node in lineage.nodes:
        if node.change is not None and node.model not in keep:
            keep |= {node.model, *list_reached_models(node.model, readers)}
    edges = [(one, other) for one, other in lineage.edges if one in keep and other in keep]
    joined = {model for edge in edges for model in edge}
    nodes = [node for node in lineage.nodes if node.model in joined]
    return lineage.model_copy(update={"nodes": nodes, "edges": edges})
