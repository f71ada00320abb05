"""The column impact as its readers ask for it: rows of a table, and notes for the lineage."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ci_bot.protocol.review_report import ChangedPart, HowChanged, Impact, ReachedModel

_NOTED_COLUMNS = 3
_SIGNS = {"dropped": "−", "added": "+"}


@dataclass(frozen=True)
class ImpactRow:
    """Columns of one model that change alike and reach the same; none if it is the rows."""

    model: str
    how: HowChanged
    columns: tuple[str, ...]
    reached: tuple[ReachedModel, ...]
    more: int


def list_impact_rows(impact: Impact, left_out: Collection[str] = ()) -> list[ImpactRow]:
    """The changed parts, those that reach most first.

    Args:
        left_out: Models whose change is not the pull request's.
    """
    groups: dict[tuple[object, ...], list[ChangedPart]] = {}
    for part in impact.changed:
        if part.model not in left_out:
            same = (part.model, part.how, part.column is None, part.more_models)
            groups.setdefault((*same, part.model_dump_json(include={"reached"})), []).append(part)
    found = [
        ImpactRow(
            model=parts[0].model,
            how=parts[0].how,
            columns=tuple(part.column for part in parts if part.column is not None),
            reached=tuple(parts[0].reached),
            more=parts[0].more_models,
        )
        for parts in groups.values()
    ]
    return sorted(found, key=lambda row: -(len(row.reached) + row.more))


def reads_nothing(impact: Impact, rebuilt: Iterable[str]) -> list[str]:
    """The models among `rebuilt` that change only because of others and read nothing of it."""
    names = set(rebuilt)
    return [m.model for m in impact.indirect if m.reached == "no" and m.model in names]


def make_lineage_notes(impact: Impact) -> dict[str, str]:
    """What to write below a model's name: its changed columns, or those that a change reaches.

    Empty if nothing stands below a changed model. A "?" stands where it cannot be known.
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
