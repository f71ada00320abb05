"""What a change changes of a model itself: columns that are computed differently, and rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ci_bot.contracts.lineage.impact import HowChanged
from ci_bot.worker.impact.expressions import UnreadableError
from ci_bot.worker.impact.facts import Definition, KnownColumns, Model
from ci_bot.worker.impact.model_reading import Relations, StoredTables, read_definition
from ci_bot.worker.impact.values import ANY, Rowset, Terms

_CLAUSES = {
    "sources": "what it reads",
    "branches": "what it reads",
    "joins": "its joins",
    "filter": "its filter",
    "grouping": "its GROUP BY",
    "distinct": "its DISTINCT",
    "limit and order": "its LIMIT",
    "set operation": "its UNION, EXCEPT or INTERSECT",
    "generator": "the rows that it makes of values",
}


@dataclass(frozen=True)
class OwnPart:
    """A part of a changed model: a column, or, where that is None, its rows.

    `shifts` where a column comes or goes before others, so that those stand elsewhere.
    """

    model: str
    column: str | None
    how: HowChanged
    why: str | None = None
    shifts: bool = False


def differences(model: Model, columns: KnownColumns) -> list[OwnPart]:
    """The changed parts of an edited model.

    Nothing is listed only where both sides were read and mean the same; what cannot be compared is
    `unknown`.
    """
    found = list(_listed(model))
    if model.same_result:
        return [part for part in found if part.how == "reordered"]
    if model.beside_query is not None:
        found.append(OwnPart(model.name, None, "rows", model.beside_query))
    if model.is_source:
        return found
    before = model.before() if model.before is not None else Definition(opaque="It was not there.")
    after = model.after() if model.after is not None else Definition(opaque="It is gone.")
    opaque = model.opaque or after.opaque or before.opaque
    if opaque is not None:
        return [*found, OwnPart(model.name, None, "unknown", opaque)]
    terms = Terms()
    tables = StoredTables(terms, (*model.parents, model.name), columns)
    hides = before.hides or after.hides
    try:
        old = read_definition(before, terms, tables, with_written=hides)
        new = read_definition(after, terms, tables, with_written=hides)
    except UnreadableError as error:
        return [*found, OwnPart(model.name, None, "unknown", f"Its query cannot be read: {error}.")]
    known = {part.column for part in found if part.column is not None}
    found += [part for part in _of_queries(model.name, old, new) if part.column not in known]
    if hides and (old.written is None or new.written is None) and before.text != after.text:
        found.append(OwnPart(model.name, None, "rows", "Its Jinja differs in what times decide."))
    return _once(found)


def _listed(model: Model) -> Iterator[OwnPart]:
    """What the lists of columns say."""
    old, new = model.columns_before, model.columns_after
    if old is not None and new is not None:
        shifts = old[: len(new)] != new[: len(old)]
        yield from (OwnPart(model.name, n, "dropped", shifts=shifts) for n in old if n not in new)
        yield from (OwnPart(model.name, n, "added", shifts=shifts) for n in new if n not in old)
        common = [name for name in old if name in new]
        if common != [name for name in new if name in old]:
            yield OwnPart(model.name, None, "reordered", "Its columns stand in another order.")
    yield from (OwnPart(model.name, name, how) for name, how in sorted(model.changed.items()))


def _of_queries(model: str, old: Relations, new: Relations) -> Iterator[OwnPart]:
    yield from _of_relations(model, old.rendered, new.rendered)
    if old.written is not None and new.written is not None:
        yield from _of_relations(model, old.written, new.written)


def _of_relations(model: str, old: Rowset, new: Rowset) -> Iterator[OwnPart]:
    if old.rows.key != new.rows.key:
        yield OwnPart(model, None, "rows", _which(old, new))
    for name, value in new.columns.items():
        other = old.column(name)
        if name.startswith("\n"):  # it has no name to be read by; a macro's are in the rendering
            continue
        if other is None:
            yield OwnPart(model, name, "added", shifts=True)
        elif other.key != value.key:
            yield OwnPart(model, name, "computed")
    yield from (
        OwnPart(model, name, "dropped", shifts=True)
        for name in old.columns
        if new.column(name) is None and not name.startswith("\n")
    )
    unlisted = [side.missing(ANY).key if side.missing else None for side in (old, new)]
    if unlisted[0] != unlisted[1]:
        yield OwnPart(model, None, "rows", "Columns that cannot be listed changed.")


def _which(old: Rowset, new: Rowset) -> str:
    names = dict.fromkeys((*old.clauses, *new.clauses))
    told = dict.fromkeys(
        _CLAUSES[name] for name in names if old.clauses.get(name) != new.clauses.get(name)
    )
    return f"Other rows: {', '.join(told) or 'its query'} changed."


def _once(parts: list[OwnPart]) -> list[OwnPart]:
    """One entry for each column, the weightiest, and one for the rows."""
    kept: dict[tuple[str | None, bool], OwnPart] = {}
    for part in parts:
        kept.setdefault((part.column, part.how == "reordered"), part)
    return list(kept.values())
