"""Blocks as keys: two queries with equal keys give the same rows on any data.

Within a SELECT each occurrence of a source has a number, and every column is called by it. The
numbers do not come from names: sources are sorted by what they are, and of several occurrences of
one thing that numbering is taken which gives the least key. Where what is computed depends on the
order of rows, sources and branches keep the order in which they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, permutations, product
from math import factorial, prod

from ci_bot.worker.sql.algebra_blocks import (
    Block,
    Derived,
    Generated,
    Group,
    Interner,
    Nested,
    Outer,
    Part,
    QuerySource,
    SetOperation,
    SourceColumn,
    TableRead,
    Term,
    TermKey,
    Values,
    walk,
)

MOST_NUMBERINGS = 120

Labels = Mapping[QuerySource, object]


@dataclass(frozen=True)
class Sealed:
    """A block's rows as one key, and its results by name."""

    rows: TermKey
    outputs: Mapping[str, TermKey]


class Sealer:
    """Makes keys of blocks.

    Args:
        keys: shared by everything that is compared.
    """

    def __init__(self, keys: Interner) -> None:
        self.keys = keys
        self._known: dict[tuple[Block, bool], Sealed] = {}
        self._ordered: dict[Block, bool] = {}

    def seal(self, block: Block, *, in_order: bool = False) -> Sealed:
        """The keys of a block that uses no columns of a query around it."""
        in_order = in_order or self._looks_at_order(block)
        known = self._known.get((block, in_order))
        if known is None:
            known = self._known[block, in_order] = self._seal(block, {}, 0, in_order=in_order)
        return known

    def _looks_at_order(self, block: Block) -> bool:
        known = self._ordered.get(block)
        if known is None:
            known = self._ordered[block] = block.looks_at_order
        return known

    def as_written(self, block: Block) -> tuple[Sealed, KeyNames]:
        """A block with its sources numbered as they stand, and what they are called by that."""
        sources = list(block.part.sources())
        labels = _numbered(sources, {}, 0)
        bases = {source: self.base(source, in_order=True) for source in sources}
        names = _Numbers(self, labels, 0, in_order=True)
        return self._with(block, bases, labels, 0, in_order=True), names

    def _seal(self, block: Block, around: Labels, level: int, *, in_order: bool) -> Sealed:
        sources = list(block.part.sources())
        bases = {source: self.base(source, in_order=in_order) for source in sources}
        if in_order:
            return self._with(block, bases, _numbered(sources, around, level), level, in_order=True)
        ties = self._ties(block, bases, around, level)
        found: tuple[tuple[object, ...], Sealed] | None = None
        for order in _orders(ties):
            labels = _numbered(order, around, level)
            sealed = self._with(block, bases, labels, level, in_order=False)
            least = (sealed.rows, sorted(sealed.outputs.values()), sorted(sealed.outputs.items()))
            if found is None or least < found[0]:
                found = (least, sealed)
        if found is None:
            raise AssertionError("unreachable: there is always one numbering")
        return found[1]

    def _ties(
        self, block: Block, bases: Mapping[QuerySource, TermKey], around: Labels, level: int
    ) -> list[list[QuerySource]]:
        """The sources in one order of their kinds; those that look alike stand in one list."""
        count = Counter(bases.values())
        colours: dict[QuerySource, tuple[TermKey, TermKey]] = {
            source: (key, 0) for source, key in bases.items()
        }
        alike = [source for source, key in bases.items() if count[key] > 1]
        for source in alike:
            # How the block looks from this occurrence, with the others of its kind not told apart.
            labels: dict[QuerySource, object] = {**around, **{s: ("?", bases[s]) for s in bases}}
            labels[source] = "this"
            sealed = self._with(block, bases, labels, level, in_order=False)
            look = self.keys.key(("look", sealed.rows, *sorted(sealed.outputs.values())))
            colours[source] = (bases[source], look)
        groups: dict[tuple[TermKey, TermKey], list[QuerySource]] = {}
        for source in sorted(bases, key=lambda source: colours[source]):
            groups.setdefault(colours[source], []).append(source)
        return list(groups.values())

    def _with(
        self,
        block: Block,
        bases: Mapping[QuerySource, TermKey],
        labels: Labels,
        level: int,
        *,
        in_order: bool,
    ) -> Sealed:
        naming = _Numbers(self, labels, level, in_order=in_order)
        outputs = {name: self.keys.of(term, naming) for name, term in block.outputs.items()}
        held = sorted((str(labels[source]), key) for source, key in bases.items())
        rows = self.keys.key(("rows", *held, *self.shape(block, naming, in_order=in_order)))
        return Sealed(rows, outputs)

    def shape(
        self, block: Block, naming: KeyNames, *, in_order: bool = False
    ) -> tuple[object, ...]:
        """What a block does to its sources, as `naming` calls them."""
        group = block.group
        return (
            self._part(block.part, naming),
            self._group(group, naming) if group is not None else (),
            ("having", self._set(block.having, naming)),
            ("qualify", self._set(block.qualify, naming)),
            ("generators", self._list(block.generators, naming)),
            ("layout", self._list(block.layout, naming)),
            ("distinct", *self._set(block.distinct, naming)) if block.distinct is not None else (),
            ("order", self._list(block.order, naming) if in_order or block.limits else ()),
            ("limits", self._list(block.limits, naming)),
        )

    def _group(self, group: Group, naming: KeyNames) -> tuple[object, ...]:
        # `grouping_id()` counts the keys in their order, where there are sets of them.
        listed = self._list if group.sets else self._set
        return ("group", listed(group.keys, naming), self._list(group.sets, naming))

    def _part(self, part: Part, naming: KeyNames) -> TermKey:
        plain = sorted(str(naming.label(s)) for s in part.inner if not isinstance(s, Outer))
        outer = sorted(self._outer(s, naming) for s in part.inner if isinstance(s, Outer))
        hung = sorted(
            self.keys.key((item.how, naming.label(item.source), self._set(item.on, naming)))
            for item in part.hung
        )
        return self.keys.key(
            ("part", *plain, ("outer", *outer), ("hung", *hung), self._set(part.where, naming))
        )

    def _outer(self, source: Outer, naming: KeyNames) -> TermKey:
        sides = [self._part(source.kept, naming), self._part(source.other, naming)]
        if source.full:
            sides.sort()
        kind = "full" if source.full else "right"
        return self.keys.key((kind, *sides, self._set(source.on, naming)))

    def _set(self, terms: Iterable[Term], naming: KeyNames) -> tuple[TermKey, ...]:
        return tuple(sorted({self.keys.of(term, naming) for term in terms}))

    def _list(self, terms: Iterable[Term], naming: KeyNames) -> tuple[TermKey, ...]:
        return tuple(self.keys.of(term, naming) for term in terms)

    def base(self, source: QuerySource, *, in_order: bool = False) -> TermKey:
        """What a source is, without what is done with it."""
        if isinstance(source, TableRead):
            return self.keys.key(("table", source.name, source.version))
        if isinstance(source, Derived):
            return self.seal(source.block, in_order=in_order).rows
        if isinstance(source, SetOperation):
            return self.branches(source, in_order=in_order)[0]
        if isinstance(source, Values):
            return self.keys.of(source.rows, _Numbers(self, {}, 0, in_order=in_order))
        if isinstance(source, Generated):
            return self.keys.key(("generated",))
        raise AssertionError(f"unreachable: {type(source).__name__} has no columns")

    def branches(
        self, source: SetOperation, *, in_order: bool
    ) -> tuple[TermKey, tuple[tuple[TermKey, ...], ...]]:
        """A set operation's rows, and for each column, by place, what each branch gives."""
        sealed = [self.seal(branch, in_order=in_order) for branch in source.branches]
        branches = [(one.rows, tuple(one.outputs.values())) for one in sealed]
        if source.kind != "except" and source.loose and not in_order:
            branches.sort(key=lambda one: (one[0], sorted(one[1])) if _is_union(source) else one)
        columns = tuple(zip(*(outputs for _, outputs in branches), strict=True))
        told: tuple[object, ...] = (source.kind, source.distinct, *(rows for rows, _ in branches))
        if not _is_union(source):
            told = (*told, columns)
        elif source.distinct:
            told = (*told, tuple(sorted(set(columns))))
        return self.keys.key(told), columns

    def nested(self, nested: Nested, labels: Labels, level: int, *, in_order: bool) -> TermKey:
        """A subquery in an expression, whose names from around it are `labels`."""
        block = nested.block
        in_order = in_order or block.looks_at_order
        sealed = self._seal(block, labels, level, in_order=in_order)
        return self.keys.key(("nested", sealed.rows, *sealed.outputs.values()))


class KeyNames:
    """How the sources of a block are called in keys."""

    known: dict[Term, TermKey]

    def label(self, source: QuerySource) -> object:
        raise NotImplementedError

    def column(self, column: SourceColumn) -> tuple[object, ...]:
        raise NotImplementedError

    def nested(self, nested: Nested) -> tuple[object, ...]:
        raise NotImplementedError


class _Numbers(KeyNames):
    def __init__(self, sealer: Sealer, labels: Labels, level: int, *, in_order: bool) -> None:
        self.known = {}
        self._columns: dict[tuple[QuerySource, str], tuple[object, ...]] = {}
        self._sealer = sealer
        self._labels = labels
        self._level = level
        self._in_order = in_order

    def label(self, source: QuerySource) -> object:
        return self._labels[source]

    def column(self, column: SourceColumn) -> tuple[object, ...]:
        place = (column.source, column.name)
        known = self._columns.get(place)
        if known is None:
            known = self._columns[place] = self._column(column)
        return known

    def _column(self, column: SourceColumn) -> tuple[object, ...]:
        source = column.source
        name: object = column.name
        if isinstance(source, Derived):
            name = _result(self._sealer.seal(source.block, in_order=self._in_order), column.name)
        elif isinstance(source, SetOperation):
            columns = self._sealer.branches(source, in_order=self._in_order)[1]
            name = columns[int(column.name)]
        return ("column", self._labels[source], name)

    def nested(self, nested: Nested) -> tuple[object, ...]:
        key = self._sealer.nested(nested, self._labels, self._level + 1, in_order=self._in_order)
        return ("nested", key)


def _result(sealed: Sealed, name: str) -> object:
    """A column of a query, by what it is and not by its name: another name changes nothing."""
    if name in sealed.outputs:
        return sealed.outputs[name]
    stars = [key for told, key in sealed.outputs.items() if told.startswith("*")]
    return ("of a star", name, *sorted(stars))


def _is_union(source: SetOperation) -> bool:
    return source.kind == "union"


def _numbered(
    sources: Iterable[QuerySource], around: Labels, level: int
) -> dict[QuerySource, object]:
    return {**around, **{source: (level, number) for number, source in enumerate(sources)}}


def _orders(ties: list[list[QuerySource]]) -> Iterable[list[QuerySource]]:
    """The orders to try: those of sources that look alike, unless they are too many."""
    if prod(factorial(len(tie)) for tie in ties) > MOST_NUMBERINGS:
        return [[source for tie in ties for source in tie]]
    choices = product(*(list(permutations(tie)) for tie in ties))
    return (
        [source for tie in choice for source in tie] for choice in islice(choices, MOST_NUMBERINGS)
    )


# Columns by where they come from, and everything that a value is computed from.


class Origins(KeyNames):
    """Columns by where they come from, whatever stands between."""

    def __init__(self, sealer: Sealer) -> None:
        self.known = {}
        self._sealer = sealer
        self._open: set[int] = set()

    def label(self, source: QuerySource) -> object:
        if isinstance(source, TableRead):
            return ("table", source.name, source.version, source.turn)
        if isinstance(source, Derived):
            return ("query", self._sealer.shape(source.block, self), source.turn)
        if isinstance(source, SetOperation):
            shapes = [self._sealer.shape(branch, self) for branch in source.branches]
            return (source.kind, source.distinct, *shapes)
        if isinstance(source, Generated):
            return ("generated", self._sealer.keys.of(source.call, self))
        if isinstance(source, Values):
            return ("values", self._sealer.keys.of(source.rows, self))
        raise AssertionError(f"unreachable: {type(source).__name__} has no columns")

    def column(self, column: SourceColumn) -> tuple[object, ...]:
        source, keys = column.source, self._sealer.keys
        if isinstance(source, Derived):
            term = source.block.output(column.name)
            if term is not None:
                return ("from", source.turn, keys.of(term, self))
        if isinstance(source, SetOperation):
            terms = [list(branch.outputs.values())[int(column.name)] for branch in source.branches]
            return ("from", source.turn, *sorted({keys.of(term, self) for term in terms}))
        return ("column", self.label(source), column.name)

    def nested(self, nested: Nested) -> tuple[object, ...]:
        outputs = [self._sealer.keys.of(term, self) for term in nested.block.outputs.values()]
        return ("nested", self._sealer.shape(nested.block, self), *outputs)


def below(term: Term) -> Iterator[Term]:
    """The term and everything that it is computed from, each part once."""
    queue: list[Term] = [term]
    seen: set[tuple[int, str] | int] = set()
    while queue:
        for item in walk(queue.pop()):
            mark = (id(item.source), item.name) if isinstance(item, SourceColumn) else id(item)
            if mark in seen:
                continue
            seen.add(mark)
            yield item
            if isinstance(item, SourceColumn):
                queue += _behind(item)


def _behind(column: SourceColumn) -> list[Term]:
    source = column.source
    if isinstance(source, Derived):
        term = source.block.output(column.name)
        return [term] if term is not None else []
    if isinstance(source, SetOperation):
        return [list(branch.outputs.values())[int(column.name)] for branch in source.branches]
    return []
