"""The spread of changed parts from model to model: one pass, in which every part is a bit."""

from __future__ import annotations

import logging
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import cast

from ci_bot.protocol.review_report import HowChanged
from ci_bot.worker.sql.equivalence.select_notes import (
    UnreadableError,
    is_spelled_alike,
    list_spellings,
)
from ci_bot.worker.sql.lineage.query import (
    DefinitionRelations,
    ModelDependencies,
    StoredTables,
    read_definition,
    read_dependencies,
)
from ci_bot.worker.sql.lineage.rowsets import (
    ANY,
    ANYWHERE,
    DOUBT,
    ORDER,
    ROWS,
    LineageAtom,
    LineageRowset,
    LineageTerms,
)
from ci_bot.worker.sql.lineage.sources import (
    ChangedProject,
    KnownColumns,
    LineageModel,
    ModelDefinition,
)

# The changes of a model itself: columns that are computed differently, and rows.


_LOG = logging.getLogger(__name__)
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
    """A part of a changed model: a column, or, if that is None, its rows.

    `shifts` is true if a column is added or removed before others, which then get other places.
    """

    model: str
    column: str | None
    how: HowChanged
    why: str | None = None
    shifts: bool = False


def list_own_changes(model: LineageModel, columns: KnownColumns) -> list[OwnPart]:
    """Lists the changed parts of an edited model.

    The list is empty only if both sides were read and mean the same; a side that cannot be compared
    gives an `unknown` part.
    """
    found = _list_compared_changes(model, columns)
    listed = {part.column for part in found if part.how != "reordered"}
    why = model.disproved
    if None not in listed and not model.executed <= listed:
        missed = ", ".join(sorted(name or "number of rows" for name in model.executed - listed))
        why = f"Run on generated rows, both versions give another {missed}."
    if why is None:
        return found
    # The analysis missed a change, so its other results are not trusted either.
    _LOG.warning("column impact: %s has a change that is not listed. %s", model.name, why)
    return [*found, OwnPart(model.name, None, "unknown", why)]


def _list_compared_changes(model: LineageModel, columns: KnownColumns) -> list[OwnPart]:
    found = list(_list_listed_changes(model))
    if model.same_result:
        return [part for part in found if part.how == "reordered"]
    if model.beside_query is not None:
        found.append(OwnPart(model.name, None, "rows", model.beside_query))
    if model.is_source:
        return found
    before = (
        model.before() if model.before is not None else ModelDefinition(opaque="It was not there.")
    )
    after = model.after() if model.after is not None else ModelDefinition(opaque="It is gone.")
    opaque = model.opaque or after.opaque or before.opaque
    if opaque is not None:
        return [*found, OwnPart(model.name, None, "unknown", opaque)]
    terms = LineageTerms()
    tables = StoredTables(terms, (*model.parents, model.name), columns)
    hides = before.hides or after.hides
    try:
        old = read_definition(before, terms, tables, with_written=hides)
        new = read_definition(after, terms, tables, with_written=hides)
    except UnreadableError as error:
        return [*found, OwnPart(model.name, None, "unknown", f"Its query cannot be read: {error}.")]
    cannot = _find_incomparable_part(model.name, before, after, (*old.gaps, *new.gaps))
    if cannot is not None:
        return [*found, cannot]
    known = {part.column for part in found if part.column is not None}
    found += [
        part for part in _list_query_changes(model.name, old, new) if part.column not in known
    ]
    if hides and (old.written is None or new.written is None) and before.text != after.text:
        found.append(OwnPart(model.name, None, "rows", "Its Jinja differs in what times decide."))
    return _merge_changed_parts(found)


def _find_incomparable_part(
    model: str, before: ModelDefinition, after: ModelDefinition, gaps: tuple[str, ...]
) -> OwnPart | None:
    """Makes the part that is reported if equal computations may give other values; None if not."""
    if gaps:
        why = f"Spark may read it in another way: {', '.join(sorted(set(gaps)))}."
        return OwnPart(model, None, "unknown", why)
    (old, _), (new, _) = list_spellings(before.rendered), list_spellings(after.rendered)
    if not is_spelled_alike(old, new):  # capital and small letters differ in the project
        return OwnPart(model, None, "rows", "It spells a name with other letters.")
    return None


def _list_listed_changes(model: LineageModel) -> Iterator[OwnPart]:
    """Lists the changes that the lists of columns show."""
    old, new = model.columns_before, model.columns_after
    if old is not None and new is not None:
        shifts = old[: len(new)] != new[: len(old)]
        yield from (OwnPart(model.name, n, "dropped", shifts=shifts) for n in old if n not in new)
        yield from (OwnPart(model.name, n, "added", shifts=shifts) for n in new if n not in old)
        common = [name for name in old if name in new]
        if common != [name for name in new if name in old]:
            yield OwnPart(model.name, None, "reordered", "Its columns are in another order.")
    yield from (OwnPart(model.name, name, how) for name, how in sorted(model.changed.items()))


def _list_query_changes(
    model: str, old: DefinitionRelations, new: DefinitionRelations
) -> Iterator[OwnPart]:
    yield from _list_relation_changes(model, old.rendered, new.rendered)
    if old.written is not None and new.written is not None:
        yield from _list_relation_changes(model, old.written, new.written)
    if old.incremental is not None or new.incremental is not None:
        yield from _list_relation_changes(model, old.later, new.later)


def _list_relation_changes(model: str, old: LineageRowset, new: LineageRowset) -> Iterator[OwnPart]:
    if old.rows.key != new.rows.key:
        yield OwnPart(model, None, "rows", _describe_difference(old, new))
    for name, value in new.columns.items():
        other = old.columns.get(name)
        if name.startswith("\n"):  # no name to be read by; the rendering has a macro's columns
            continue
        if other is None:
            yield OwnPart(model, name, "added", shifts=True)
        elif other.key != value.key:
            yield OwnPart(model, name, "computed")
    yield from (
        OwnPart(model, name, "dropped", shifts=True)
        for name in old.columns
        if new.columns.get(name) is None and not name.startswith("\n")
    )
    unlisted = [side.missing(ANY).key if side.missing else None for side in (old, new)]
    if unlisted[0] != unlisted[1]:
        yield OwnPart(model, None, "rows", "Columns that cannot be listed changed.")


def _describe_difference(old: LineageRowset, new: LineageRowset) -> str:
    names = dict.fromkeys((*old.clauses, *new.clauses))
    clauses = dict.fromkeys(
        _CLAUSES[name] for name in names if old.clauses.get(name) != new.clauses.get(name)
    )
    return f"Other rows: {', '.join(clauses) or 'its query'} changed."


def _merge_changed_parts(parts: list[OwnPart]) -> list[OwnPart]:
    """Keeps one part for each column, the most important one, and one for the rows."""
    kept: dict[tuple[str | None, bool], OwnPart] = {}
    for part in parts:
        kept.setdefault((part.column, part.how == "reordered"), part)
    return list(kept.values())


# Parts beyond these share one bit; a number with this many bits is still fast.
MOST_PARTS = 500

_HOW = ("rows", "dropped", "retyped", "computed", "added", "reordered", "unknown")


@dataclass
class ModelReach:
    """The parts that reach a model: bits over the parts, for each column and for the rows."""

    columns: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    order: int = 0
    unlisted: int = 0
    own: int = 0  # the model's own parts

    @property
    def all_columns(self) -> int:
        bits = self.unlisted
        for column in self.columns.values():
            bits |= column
        return bits

    @property
    def any_bits(self) -> int:
        return self.all_columns | self.rows | self.order

    def bits_of(self, what: str) -> int:
        """Returns the parts that reach a column, or one of the special names in `rowsets`."""
        if what == ROWS:
            return self.rows
        if what == ORDER:
            return self.order
        if what == DOUBT:
            return self.any_bits
        if what == ANY:
            return self.all_columns
        found = self.columns.get(what)
        # A column that no query shows, such as one that SQLMesh adds, may depend on all of them.
        return self.all_columns if found is None else found


class ChangedParts:
    """The changed parts, each with its bit; the last bits are for those that are too many."""

    def __init__(self) -> None:
        self.known: list[OwnPart] = []
        self.more = 0
        self.uncertain = 0  # the bits of the `unknown` parts
        self.dropped = 0  # the bits of the dropped columns

    def add_part(self, part: OwnPart) -> int:
        """Adds a part, and returns its bit."""
        if len(self.known) < MOST_PARTS:
            bit = 1 << len(self.known)
            self.known.append(part)
        else:
            self.more += 1
            bit = 1 << (MOST_PARTS + (part.how == "unknown"))
        if part.how == "unknown":
            self.uncertain |= bit
        if part.how == "dropped":
            self.dropped |= bit
        return bit

    def list_numbers(self, bits: int) -> Iterator[int]:
        """Yields the numbers of the listed parts among `bits`."""
        while bits:
            low = bits & -bits
            index = low.bit_length() - 1
            if index < len(self.known):
                yield index
            bits ^= low


@dataclass
class ChangeSpread:
    """All parts, and for each model those that reach it."""

    parts: ChangedParts
    reached: dict[str, ModelReach]


def spread_changes(project: ChangedProject) -> ChangeSpread:
    """Follows every changed part to the last models below it."""
    parts = ChangedParts()
    reached: dict[str, ModelReach] = {}
    # The columns of most tables are never needed, and a copy would read all of them. It is not
    # changed here.
    given = cast(MutableMapping[str, tuple[str, ...] | None], project.columns)
    columns = ChainMap[str, tuple[str, ...] | None]({}, given)
    own = {model.name: list(_list_own_parts(model, project)) for model in project.models}
    bits = _number_changed_parts(own, parts)
    for model in project.models:
        reach = reached[model.name] = ModelReach()
        if model.is_source:  # a query shows how its other columns are computed
            reach.columns = dict.fromkeys(columns.get(model.name) or (), 0)
        for part in own[model.name]:
            _mark_reached_change(reach, part, bits[part])
        if reach.own & parts.uncertain:  # rows unknown, each column only because of them
            for name in columns.get(model.name) or ():
                reach.columns.setdefault(name, 0)
        if model.after is None or model.is_source or reach.own & parts.uncertain:
            continue
        above = any(reached[name].any_bits for name in model.parents if name in reached)
        if above or reach.any_bits or model.opaque is not None:
            _ModelStep(model, project, columns, parts, reached).spread_parts()
    return ChangeSpread(parts, reached)


def _list_own_parts(model: LineageModel, project: ChangedProject) -> Iterable[OwnPart]:
    if model.change == "direct":
        return list_own_changes(model, project.columns)
    if model.change == "removed":
        return [OwnPart(model.name, None, "rows", "The model is removed.")]
    if model.change == "added":
        return [OwnPart(model.name, None, "rows", "The model is new.")]
    return []


def _number_changed_parts(own: dict[str, list[OwnPart]], parts: ChangedParts) -> dict[OwnPart, int]:
    every = sorted(
        (part for found in own.values() for part in found),
        key=lambda part: (_HOW.index(part.how), part.model, part.column or ""),
    )
    return {part: parts.add_part(part) for part in every}


def _mark_reached_change(reach: ModelReach, part: OwnPart, bit: int) -> None:
    reach.own |= bit
    if part.how == "reordered":
        reach.order |= bit
    elif part.column is None:
        reach.rows |= bit
    else:
        reach.columns[part.column] = reach.columns.get(part.column, 0) | bit
        if part.shifts:
            reach.order |= bit


@dataclass
class _ModelStep:
    """The step that finds the parts that reach one model, through the models that it reads."""

    model: LineageModel
    project: ChangedProject
    columns: MutableMapping[str, tuple[str, ...] | None]
    parts: ChangedParts
    reached: dict[str, ModelReach]
    _doubt: int = 0

    @property
    def _reach(self) -> ModelReach:
        return self.reached[self.model.name]

    def spread_parts(self) -> None:
        model = self.model
        if model.opaque is not None or model.after is None:
            return self._mark_unknown(model.opaque or "It has no query.")
        definition = model.after()
        if definition.opaque is not None:
            return self._mark_unknown(definition.opaque)
        terms = LineageTerms()
        tables = StoredTables(terms, (*model.parents, model.name), self.columns)
        with_written = definition.hides or definition.has_star
        try:
            relations = read_definition(definition, terms, tables, with_written=with_written)
        except UnreadableError as error:
            return self._mark_unknown(f"Its query cannot be read: {error}.")
        reading = read_dependencies(relations, terms)
        self._add_side_dependencies(reading)
        self._add_named_dependencies(definition)
        while self._fold_sources(reading):
            pass  # the model reads itself: parts that reach it reach it again
        listed = self.columns.get(model.name)
        if listed is not None:  # a column that a star lost on the way is also read below
            gone = [name for name in reading.columns if name not in listed]
            self.columns[model.name] = (*listed, *gone)
        return None

    def _mark_unknown(self, why: str) -> None:
        if not self._doubt:
            self._doubt = self.parts.add_part(OwnPart(self.model.name, None, "unknown", why))
        self._reach.rows |= self._doubt

    def _add_side_dependencies(self, reading: ModelDependencies) -> None:
        """Adds dependencies of the model that its query does not show."""
        read = {atom.table for atom in reading.atoms}
        for parent in self.model.parents:
            above = self.reached.get(parent)
            if above is None or not above.any_bits:
                continue
            shown = self.project.shown(parent)
            if parent not in read and ANYWHERE not in read:
                self._mark_unknown(f"It depends on {shown}, which its query does not read.")
            elif parent in self.model.read_elsewhere:
                self._mark_unknown(f"Statements around its query name {shown}.")

    def _add_named_dependencies(self, definition: ModelDefinition) -> None:
        """Adds parts that only a text names, or that a star hides: they may decide about rows."""
        for parent in self.model.parents:
            above = self.reached.get(parent)
            if above is None:
                continue
            if definition.has_star and definition.written is None:
                self._reach.rows |= above.all_columns & self.parts.dropped
            text = definition.text or ""
            for name, bits in above.columns.items() if text else ():
                if bits and re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE):
                    self._reach.rows |= bits

    def _fold_sources(self, reading: ModelDependencies) -> bool:
        """Adds the parts that reach the sources.

        Returns whether the model reads itself and this added more parts.
        """
        reach = self._reach
        before = (reach.any_bits, reach.rows, reach.order)
        bits = [self._bits_of_atom(atom) for atom in reading.atoms]
        for name, deps in reading.columns.items():
            found = _union_bits(bits, deps)
            reach.columns[name] = reach.columns.get(name, 0) | found
        reach.rows |= _union_bits(bits, reading.rows)
        reach.order |= _union_bits(bits, reading.order)
        reach.unlisted |= _union_bits(bits, reading.unlisted)
        if self.model.deciding is None:
            reach.rows |= reach.all_columns
        else:
            for name in self.model.deciding:
                reach.rows |= reach.bits_of(name)
        if all(atom.table != self.model.name for atom in reading.atoms):
            return False
        return before != (reach.any_bits, reach.rows, reach.order)

    def _bits_of_atom(self, atom: LineageAtom) -> int:
        if atom.table == ANYWHERE:
            found = [
                self._bits_of_atom(LineageAtom(parent, DOUBT)) for parent in self.model.parents
            ]
            return max(found, default=0)
        above = self.reached.get(atom.table)
        if above is None:
            return 0
        bits = above.bits_of(atom.what)
        if atom.what == DOUBT and bits:
            shown = self.project.shown(atom.table)
            self._mark_unknown(f"Where a name in its query leads is not known: perhaps to {shown}.")
            return self._doubt
        return bits


def _union_bits(bits: list[int], deps: int) -> int:
    found = 0
    while deps:
        low = deps & -deps
        found |= bits[low.bit_length() - 1]
        deps ^= low
    return found
