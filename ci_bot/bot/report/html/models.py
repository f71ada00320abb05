"""The changed models: how each changes, what that reaches, its lineage as a picture, and its diff.

The picture is a layered drawing in the manner of Sugiyama, without its slow step: no edge is cut
into pieces, so 5,000 models take less than a second. We tried two libraries for browsers; they took
3 and 5 seconds for 1,000 models.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from ci_bot.bot.report import words
from ci_bot.bot.report.html import cells
from ci_bot.bot.report.html.cells import PageItem
from ci_bot.bot.report.html.findings import HtmlReportSources
from ci_bot.bot.report.model import execution_examples
from ci_bot.bot.report.model.lineage import make_lineage_notes
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.protocol.plan import Change, ColumnChange
from ci_bot.protocol.review_report import ChangedPart, Impact

# Units of the picture: a box of 240 x 36.
COLUMN, ROW = 310.0, 50.0
_SWEEPS = 6
_GAP = 1.0  # rows between two parts that nothing connects
# The wanted ratio of the picture's width to its height.
_SHAPE = 1.6
_FEWEST_ROWS = 14


@dataclass(frozen=True)
class PlacedModelInHtml:
    """The position of the middle of a model's box."""

    x: float
    y: float


def place_models_in_html_picture(
    nodes: Sequence[str], edges: Iterable[tuple[str, str]]
) -> dict[str, PlacedModelInHtml]:
    """Returns a position for each of `nodes`, no two the same; always the same for one graph.

    Args:
        edges: From the model that is read to its reader. An edge with an unknown end, or from a
            model to itself, is left out. Models in a circle get a position, too.
    """
    order = list(dict.fromkeys(nodes))
    known = set(order)
    pairs = list(dict.fromkeys(e for e in edges if e[0] != e[1] and {*e} <= known))
    below, above = _list_neighbours(pairs)
    parts = _split_connected_parts(order, below, above)
    drawn = [part for part in parts if len(part) > 1]
    alone = [part[0] for part in parts if len(part) == 1]
    tall = max(_FEWEST_ROWS, ceil(sqrt(len(order) * COLUMN / ROW / _SHAPE)))
    places: dict[str, PlacedModelInHtml] = {}
    top = 0.0
    for part in sorted(drawn, key=len, reverse=True):
        rows, columns = _place_part_of_graph(part, below, above, tall)
        high = max(rows.values()) - min(rows.values())
        first = min(rows.values())
        for node in part:
            places[node] = PlacedModelInHtml(
                columns[node] * COLUMN, (top + rows[node] - first) * ROW
            )
        top += high + 1 + _GAP
    wide = max(4, ceil(sqrt(len(alone) * ROW * _SHAPE / COLUMN)))
    for index, node in enumerate(alone):
        places[node] = PlacedModelInHtml(index % wide * COLUMN, (top + index // wide) * ROW)
    return places


_Links = Mapping[str, Sequence[str]]


def _list_neighbours(pairs: Iterable[tuple[str, str]]) -> tuple[_Links, _Links]:
    below: dict[str, list[str]] = defaultdict(list)
    above: dict[str, list[str]] = defaultdict(list)
    for parent, reader in pairs:
        below[parent].append(reader)
        above[reader].append(parent)
    return below, above


def _split_connected_parts(order: Sequence[str], below: _Links, above: _Links) -> list[list[str]]:
    """Returns the nodes in groups that are connected in some way; each group in the given order."""
    rank = {node: index for index, node in enumerate(order)}
    seen: set[str] = set()
    parts = []
    for start in order:
        if start in seen:
            continue
        seen.add(start)
        part: list[int] = []
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            insort(part, rank[node])
            for other in (*below.get(node, ()), *above.get(node, ())):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        parts.append([order[index] for index in part])
    return parts


def _place_part_of_graph(
    part: Sequence[str], below: _Links, above: _Links, tall: int
) -> tuple[dict[str, float], dict[str, int]]:
    """Returns the row and the column of each node of a connected part."""
    layers = _layer_graph_of_models(part, below, above)
    _untangle_layers(layers, below, above)
    columns: dict[str, int] = {}
    groups: list[list[str]] = []
    for layer in layers:
        # A layer that is too tall is divided into several columns side by side.
        size = ceil(len(layer) / ceil(len(layer) / tall))
        for start in range(0, len(layer), size):
            group = layer[start : start + size]
            columns.update(dict.fromkeys(group, len(groups)))
            groups.append(group)
    rows = {node: float(index) for group in groups for index, node in enumerate(group)}
    for sweep in range(_SWEEPS):
        towards, turned = (above, groups) if sweep % 2 == 0 else (below, groups[::-1])
        for group in turned:
            wanted = [
                _average_places_in_layer([rows[n] for n in towards.get(node, ())], rows[node])
                for node in group
            ]
            rows.update(zip(group, _spread_places_in_layer(wanted), strict=True))
    return rows, columns


def _layer_graph_of_models(part: Sequence[str], below: _Links, above: _Links) -> list[list[str]]:
    """Puts each node as far right as its longest way from a source; sources next to a reader."""
    missing = {node: len(above.get(node, ())) for node in part}
    depth: dict[str, int] = {}
    ready = deque(node for node in part if not missing[node])
    left = deque(part)
    while len(depth) < len(part):
        if not ready:
            # A circle: the first of its nodes in the given order begins it.
            ready.append(next(node for node in iter(left.popleft, None) if node not in depth))
        node = ready.popleft()
        if node in depth:
            continue
        depth[node] = max((depth[p] + 1 for p in above.get(node, ()) if p in depth), default=0)
        for reader in below.get(node, ()):
            missing[reader] -= 1
            if missing[reader] == 0 and reader not in depth:
                ready.append(reader)
    for node in part:
        readers = below.get(node, ())
        if readers and not above.get(node):
            depth[node] = max(depth[node], min(depth[reader] for reader in readers) - 1)
    layers: dict[int, list[str]] = defaultdict(list)
    for node in part:
        layers[depth[node]].append(node)
    return [layers[number] for number in sorted(layers)]


def _untangle_layers(layers: list[list[str]], below: _Links, above: _Links) -> None:
    """Sorts each layer by the places of its neighbours, in both directions, so few edges cross."""
    at = {n: index / len(layer) for layer in layers for index, n in enumerate(layer)}
    for sweep in range(2 * _SWEEPS):
        towards, turned = (above, layers) if sweep % 2 == 0 else (below, layers[::-1])
        for layer in turned:
            wanted = {
                n: _average_places_in_layer([at[o] for o in towards.get(n, ())], at[n])
                for n in layer
            }
            layer.sort(key=wanted.__getitem__)
            at.update((node, index / len(layer)) for index, node in enumerate(layer))


def _average_places_in_layer(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _spread_places_in_layer(wanted: Sequence[float]) -> list[float]:
    """Returns numbers near `wanted`, in the same order, each at least 1 from the next.

    They are the least squares, found by pooling neighbours that want the same place.
    """
    blocks: list[tuple[float, int]] = []  # sum and count of the wanted places, minus the rank
    for index, value in enumerate(wanted):
        total, count = value - index, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before = blocks.pop()
            total, count = total + before[0], count + before[1]
        blocks.append((total, count))
    found: list[float] = []
    for total, count in blocks:
        found += [total / count + rank for rank in range(len(found), len(found) + count)]
    return found


_READERS = "Who reads what changes"


def rank_changes_in_html_table(changes: list[Change]) -> list[Change]:
    """Sorts changes: the pull request's before the base branch's, in each the heaviest first."""
    return sorted(changes, key=lambda c: (c.from_base, words.CHANGE_ORDER.index(c.change), c.model))


def make_models_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes the section of all changed models, in one table."""
    changes = rank_changes_in_html_table(sources.report.changes)
    reached = _list_reached_models(sources.report.impact)
    rows = [
        [
            sources.make_model_cell(change.model, _describe_notes_of_change_row(change)),
            cells.make_chip_cell(
                change.change, words.CHANGES[change.change], words.CHANGE_ORDER.index(change.change)
            ),
            words.CATEGORIES.get(change.category or "", "–"),
            words.KINDS.get(change.kind, change.kind),
            change.owner or "",
            ", ".join(_describe_column_of_change_row(column) for column in change.columns),
            reached.get(change.model, [] if change.change == "indirect" else None),
            change.model if change.diff else None,
        ]
        for change in changes
    ]
    table = cells.make_table_part(
        [
            ("Model", "name"),
            ("Change", "chip"),
            ("Category", "text"),
            ("Kind", "text"),
            ("Owner", "text"),
            ("Columns", "text"),
            (_READERS, "names"),
            ("Diff", "diff"),
        ],
        rows,
        key="models",
    )
    return cells.make_section_part(
        "models",
        "Changed models",
        [*table, *_make_impact_part(sources), *_make_example_parts(sources)],
        len(rows),
        short="Models",
    )


def _describe_notes_of_change_row(change: Change) -> str:
    base = SENTENCES.from_base if change.from_base else ""
    also = f"also in {', '.join(change.also_in)}" if change.also_in else ""
    return "; ".join(text for text in (base, also, ", ".join(change.tags)) if text)


def _describe_column_of_change_row(column: ColumnChange) -> str:
    readers = (
        f", read by {words.format_count(len(column.readers), 'model')}" if column.readers else ""
    )
    if column.before is None:
        return f"+`{column.name}` {column.after}"
    if column.after is None:
        return f"−`{column.name}`{readers}"
    return f"`{column.name}` {column.before} → {column.after}{readers}"


def _list_reached_models(impact: Impact) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for part in impact.changed:
        found.setdefault(part.model, {}).update(dict.fromkeys(r.model for r in part.reached))
    return {model: list(models) for model, models in found.items()}


def _make_impact_part(sources: HtmlReportSources) -> list[PageItem]:
    impact = sources.report.impact
    more = impact.more_changed
    return cells.make_table_part(
        [
            ("Model", "name"),
            ("Column", "text"),
            ("How", "text"),
            (_READERS, "names"),
            ("Why", "text"),
        ],
        [
            [
                sources.make_model_cell(part.model),
                f"`{part.column}`" if part.column else "all rows",
                words.HOW_CHANGED[part.how],
                _list_depending_models(part),
                part.why or "",
            ]
            for part in impact.changed
        ],
        title=SENTENCES.readers_of_change,
        note=f"{words.format_count(more, 'further change')} not listed." if more else "",
        key="impact",
    )


def _make_example_parts(sources: HtmlReportSources) -> list[PageItem]:
    """Shows what changed queries give on generated rows: a table for each input, one of results."""
    report = sources.report
    examples = execution_examples.list_example_views(report)
    unproved = execution_examples.list_unproved_models(report)
    parts: list[PageItem] = []
    if examples or unproved:
        title = "On generated rows"
        parts += cells.make_prose_part(execution_examples.GENERATED, *unproved, title=title)
    for one in examples:
        if one.example is None:
            continue
        for table in one.example.inputs:
            shown = [
                [execution_examples.show_example_value(cell) for cell in row] for row in table.rows
            ]
            parts += cells.make_table_part(
                [(name, "text") for name in table.columns] or [("rows", "text")],
                shown if table.columns else [["a row"] for _ in table.rows],
                title=f"{one.model} reads {table.table}",
            )
        parts += cells.make_table_part(
            [("Result", "text"), *((name, "text") for name in one.example.columns)],
            [
                [line.side, *(f"{'● ' * cell.changed}{cell.text}" for cell in line.cells)]
                for line in execution_examples.list_lines_of_example_view(one.example)
            ],
            title=f"{one.model} before and after",
            note="● marks what changes.",
        )
        if one.witness is not None:
            title = f"{execution_examples.WITNESS}: {one.witness.path}"
            parts += cells.make_code_part(one.witness.text, title=title)
        elif one.no_witness is not None:
            parts += cells.make_prose_part(f"{execution_examples.NO_WITNESS} {one.no_witness}.")
    return parts


def _list_depending_models(part: ChangedPart) -> list[str]:
    found = []
    for reached in part.reached:
        names = [*(["rows"] if reached.rows else []), *reached.columns]
        names += [f"{reached.more_columns} more"] if reached.more_columns else []
        found.append(f"{reached.model} ({', '.join(names)})" if names else reached.model)
    return [*found, *([f"and {part.more_models} more"] if part.more_models else [])]


def make_lineage_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes the picture of the changed models and their readers; no section if it is one model."""
    report = sources.report
    names = [node.model for node in report.lineage.nodes]
    if len(names) < 2:  # noqa: PLR2004 - one box says nothing
        return []
    places = place_models_in_html_picture(names, report.lineage.edges)
    notes = make_lineage_notes(report.impact)
    forward = {c.model for c in report.changes if c.category == "forward_only"}
    index = {name: number for number, name in enumerate(places)}
    changes = {node.model: node.change for node in report.lineage.nodes}
    counts: Counter[str] = Counter(change or "same" for change in changes.values())
    part = {
        "type": "lineage",
        "nodes": [
            [
                name,
                changes[name] or "same",
                round(at.x),
                round(at.y),
                notes.get(name, ""),
                name in forward,
                sources.links.file_url(sources.model_paths.get(name)),
            ]
            for name, at in places.items()
        ],
        "edges": [
            [index[parent], index[reader]]
            for parent, reader in report.lineage.edges
            if parent in index and reader in index and parent != reader
        ],
        "legend": [
            [key, words.CHANGES.get(key, "unchanged"), counts[key]]
            for key in (*words.CHANGE_ORDER, "same")
            if counts[key]
        ],
        "forward": bool(forward & index.keys()),
    }
    return cells.make_section_part("lineage", "Lineage", [part], len(names))


def make_diffs_section(sources: HtmlReportSources) -> list[PageItem]:
    """Makes the section of the definitions' diffs, to be read side by side."""
    diffs = [
        [
            change.model,
            cells.make_chip_cell(change.change, words.CHANGES[change.change]),
            change.diff,
            sources.links.file_url(change.path),
        ]
        for change in rank_changes_in_html_table(sources.report.changes)
        if change.diff
    ]
    parts = [{"type": "diffs", "diffs": diffs}] if diffs else []
    return cells.make_section_part(
        "diffs", "SQL, before and after", parts, len(diffs), short="Diffs"
    )
