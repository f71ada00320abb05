"""The document of an impact: limited in size, in words, and with counts of the entries left out."""

from __future__ import annotations

from ci_bot.protocol.review_report import ChangedPart, Impact, IndirectModel, ReachedModel
from ci_bot.worker.sql.lineage.propagation import (
    ChangedParts,
    ChangeSpread,
    ModelReach,
    OwnPart,
    spread_changes,
)
from ci_bot.worker.sql.lineage.sources import ChangedProject

MOST_ENTRIES = 5_000  # models reached, over all parts
MOST_OF_ONE_PART = 200
MOST_COLUMNS = 50
MOST_INDIRECT = 10_000
MOST_REASONS = 3


def make_impact(project: ChangedProject) -> Impact:
    """Lists the dependents of each changed part, and the rebuilds that read no changed part."""
    found = spread_changes(project)
    entries = _reached_by_part(project, found)
    changed = [
        ChangedPart(
            model=project.shown(part.model),
            column=part.column,
            how=part.how,
            why=part.why,
            reached=entries.listed[number],
            more_models=entries.counts[number] - len(entries.listed[number]),
        )
        for number, part in enumerate(found.parts.known)
    ]
    indirect = [model.name for model in project.models if model.change == "indirect"]
    return Impact(
        changed=changed,
        more_changed=found.parts.more,
        indirect=[
            _make_indirect(name, found, project) for name in sorted(indirect)[:MOST_INDIRECT]
        ],
        more_indirect=max(len(indirect) - MOST_INDIRECT, 0),
    )


class _ReachedEntries:
    """The models that each part reaches; their number is limited."""

    def __init__(self, parts: int) -> None:
        self.listed: list[list[ReachedModel]] = [[] for _ in range(parts)]
        self.counts = [0] * parts
        self.left = MOST_ENTRIES


def _reached_by_part(project: ChangedProject, found: ChangeSpread) -> _ReachedEntries:
    entries = _ReachedEntries(len(found.parts.known))
    for model in project.models:
        reach = found.reached[model.name]
        for number in found.parts.list_numbers(reach.any_bits & ~reach.own):
            if found.parts.known[number].model == model.name:
                continue  # its own `unknown` part, found while changes spread
            entries.counts[number] += 1
            if entries.left > 0 and len(entries.listed[number]) < MOST_OF_ONE_PART:
                entries.left -= 1
                entries.listed[number].append(
                    _make_reached_model_entry(project.shown(model.name), reach, 1 << number)
                )
    return entries


def _make_reached_model_entry(name: str, reach: ModelReach, bit: int) -> ReachedModel:
    columns = sorted(column for column, bits in reach.columns.items() if bits & bit)
    return ReachedModel(
        model=name,
        columns=columns[:MOST_COLUMNS],
        more_columns=max(len(columns) - MOST_COLUMNS, 0),
        rows=bool(reach.rows & bit),
    )


def _make_indirect(name: str, found: ChangeSpread, project: ChangedProject) -> IndirectModel:
    reach, parts = found.reached[name], found.parts
    shown = project.shown(name)
    certain = reach.any_bits & ~parts.uncertain
    if certain:
        why = f"Reads {_name_changed_parts(certain, parts, project)}."
        return IndirectModel(model=shown, reached="yes", why=why)
    if reach.any_bits:
        own = [
            parts.known[n]
            for n in parts.list_numbers(reach.any_bits)
            if parts.known[n].model == name
        ]
        why = (
            (own[0].why or "")
            if own
            else f"Below {_name_changed_parts(reach.any_bits, parts, project)}."
        )
        return IndirectModel(model=shown, reached="unknown", why=why)
    return IndirectModel(model=shown, reached="no", why="Reads nothing that changed.")


def _name_changed_parts(bits: int, parts: ChangedParts, project: ChangedProject) -> str:
    known = [parts.known[number] for number in parts.list_numbers(bits)]
    names = list(dict.fromkeys(_name_changed_part(part, project) for part in known))
    rest = len(names) - MOST_REASONS
    text = ", ".join(names[:MOST_REASONS]) or "one of many changes"
    return f"{text} and {rest} more" if rest > 0 else text


def _name_changed_part(part: OwnPart, project: ChangedProject) -> str:
    model = project.shown(part.model)
    if part.how == "unknown":
        return f"`{model}`, which cannot be read"
    if part.how == "reordered":
        return f"the order of the columns of `{model}`"
    return f"`{part.column}` of `{model}`" if part.column else f"the rows of `{model}`"
