"""Blocks as keys: two queries with equal keys give the same rows on any data.

Within a SELECT each occurrence of a source has a number, and the names of columns contain it. The
numbers do not come from names: sources are sorted by their keys, and if one thing occurs several
times, the numbering with the smallest key is used. If a result depends on the order of rows,
sources and branches keep the order in which they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations, product
from math import factorial, prod

from ci_bot.worker.sql.equivalence.blocks import (
    DerivedTable,
    GeneratedRows,
    GroupClause,
    KeyInterner,
    MadeRows,
    NestedQuery,
    OuterJoin,
    QueryBlock,
    QuerySource,
    SetOperation,
    SourceColumn,
    SourcePart,
    TableRead,
    Term,
    TermKey,
    ValuesTable,
    walk_term,
)
from ci_bot.worker.sql.equivalence.guarded_conditions import can_term_fail, iterate_guarded

MOST_NUMBERINGS = 120

Labels = Mapping[QuerySource, object]


@dataclass(frozen=True)
class SealedBlock:
    """A block's rows as one key, and the keys of its results by name."""

    rows: TermKey
    outputs: Mapping[str, TermKey]


class KeySealer:
    """A maker of keys for blocks.

    Args:
        keys: shared by all queries that are compared.
    """

    def __init__(self, keys: KeyInterner) -> None:
        self.keys = keys
        self._known: dict[tuple[QueryBlock, bool], SealedBlock] = {}
        self._ordered: dict[QueryBlock, bool] = {}

    def seal_block(self, block: QueryBlock, *, in_order: bool = False) -> SealedBlock:
        """Returns the keys of a block that uses no columns of a query around it."""
        in_order = in_order or self._looks_at_order(block)
        known = self._known.get((block, in_order))
        if known is None:
            known = self._known[block, in_order] = self._seal_within(
                block, {}, 0, in_order=in_order
            )
        return known

    def _looks_at_order(self, block: QueryBlock) -> bool:
        known = self._ordered.get(block)
        if known is None:
            known = self._ordered[block] = block.depends_on_order
        return known

    def seal_as_written(self, block: QueryBlock) -> tuple[SealedBlock, KeyNames]:
        """Seals a block with its sources in written order, and returns it with their names."""
        sources = list(block.part.iterate_sources())
        labels = _number_sources(sources, {}, 0)
        bases = {source: self.source_key(source, in_order=True) for source in sources}
        names = _NumberedNames(self, labels, 0, in_order=True)
        return self._seal_with_labels(block, bases, labels, 0, in_order=True), names

    def _seal_within(
        self, block: QueryBlock, around: Labels, level: int, *, in_order: bool
    ) -> SealedBlock:
        sources = list(block.part.iterate_sources())
        bases = {source: self.source_key(source, in_order=in_order) for source in sources}
        if in_order:
            return self._seal_with_labels(
                block, bases, _number_sources(sources, around, level), level, in_order=True
            )
        ties = self._list_ties(block, bases, around, level)
        found: tuple[tuple[object, ...], SealedBlock] | None = None
        for order in _list_orders(ties):
            labels = _number_sources(order, around, level)
            sealed = self._seal_with_labels(block, bases, labels, level, in_order=False)
            least = (sealed.rows, sorted(sealed.outputs.values()), sorted(sealed.outputs.items()))
            if found is None or least < found[0]:
                found = (least, sealed)
        if found is None:
            raise AssertionError("unreachable: there is always one numbering")
        return found[1]

    def _list_ties(
        self, block: QueryBlock, bases: Mapping[QuerySource, TermKey], around: Labels, level: int
    ) -> list[list[QuerySource]]:
        """Groups the sources in one order of their keys; those that look the same share a list."""
        count = Counter(bases.values())
        colours: dict[QuerySource, tuple[TermKey, TermKey]] = {
            source: (key, 0) for source, key in bases.items()
        }
        alike = [source for source, key in bases.items() if count[key] > 1]
        for source in alike:
            # The look of the block from this occurrence, if all others of its kind have one name.
            labels: dict[QuerySource, object] = {**around, **{s: ("?", bases[s]) for s in bases}}
            labels[source] = "this"
            sealed = self._seal_with_labels(block, bases, labels, level, in_order=False)
            look = self.keys.intern_structure(
                ("look", sealed.rows, *sorted(sealed.outputs.values()))
            )
            colours[source] = (bases[source], look)
        groups: dict[tuple[TermKey, TermKey], list[QuerySource]] = {}
        for source in sorted(bases, key=lambda source: colours[source]):
            groups.setdefault(colours[source], []).append(source)
        return list(groups.values())

    def _seal_with_labels(
        self,
        block: QueryBlock,
        bases: Mapping[QuerySource, TermKey],
        labels: Labels,
        level: int,
        *,
        in_order: bool,
    ) -> SealedBlock:
        naming = _NumberedNames(self, labels, level, in_order=in_order)
        if block.group is None or not block.group.sets:
            # If a grouping set lacks one of two equal keys, only that key is NULL.
            naming.join_equal_columns(block.part.list_equal_columns())
        outputs = {
            name: self.keys.key_of_term(term, naming) for name, term in block.outputs.items()
        }
        held = sorted((str(labels[source]), key) for source, key in bases.items())
        rows = self.keys.intern_structure(
            ("rows", *held, *self.block_shape(block, naming, in_order=in_order))
        )
        return SealedBlock(rows, outputs)

    def block_shape(
        self, block: QueryBlock, naming: KeyNames, *, in_order: bool = False
    ) -> tuple[object, ...]:
        """Returns the steps of a block on its sources, which have the names of `naming`."""
        group, counts = block.group, in_order or bool(block.limits)
        return (
            self._part_key(block.part, naming),
            self._make_group_key(group, naming) if group is not None else (),
            ("having", self._conditions_key(block.having, naming)),
            ("qualify", self._conditions_key(block.qualify, naming)),
            ("generators", self._list_key(block.generators, naming)),
            ("layout", self._make_order_key(block.layout, naming, counts=counts)),
            self._make_distinct_key(block, naming),
            ("order", self._make_order_key(block.order, naming, counts=counts)),
            ("limits", self._list_key(block.limits, naming)),
        )

    def _make_order_key(
        self, terms: Sequence[Term], naming: KeyNames, *, counts: bool
    ) -> tuple[TermKey, ...]:
        """Makes a key of an order; one that does not count may still end the query."""
        if counts:
            return self._list_key(terms, naming)
        return self._set_key(filter(can_term_fail, terms), naming)

    def _make_distinct_key(self, block: QueryBlock, naming: KeyNames) -> tuple[object, ...]:
        if block.distinct is None:
            return ()
        results, group = self._set_key(block.distinct, naming), block.group
        # Each group is one row, and its keys differ from those of every other group.
        is_grouped = group is not None and not group.sets and not block.generators
        if group is not None and is_grouped:
            is_grouped = set(self._set_key(group.keys, naming)) <= set(results)
        return () if is_grouped else ("distinct", *results)

    def _make_group_key(self, group: GroupClause, naming: KeyNames) -> tuple[object, ...]:
        # If there are grouping sets, `grouping_id()` counts the keys in their order.
        listed = self._list_key if group.sets else self._set_key
        return ("group", listed(group.keys, naming), self._list_key(group.sets, naming))

    def _part_key(self, part: SourcePart, naming: KeyNames) -> TermKey:
        plain = sorted(
            str(naming.source_label(s)) for s in part.inner if not isinstance(s, OuterJoin)
        )
        outer = sorted(
            self._outer_join_key(s, naming) for s in part.inner if isinstance(s, OuterJoin)
        )
        hung = sorted(
            self.keys.intern_structure(
                (item.how, naming.source_label(item.source), self._conditions_key(item.on, naming))
            )
            for item in part.hung
        )
        return self.keys.intern_structure(
            (
                "part",
                *plain,
                ("outer", *outer),
                ("hung", *hung),
                self._conditions_key(part.where, naming),
            )
        )

    def _outer_join_key(self, source: OuterJoin, naming: KeyNames) -> TermKey:
        sides = [self._part_key(source.kept, naming), self._part_key(source.other, naming)]
        if source.full:
            sides.sort()
        kind = "full" if source.full else "right"
        return self.keys.intern_structure((kind, *sides, self._conditions_key(source.on, naming)))

    def _set_key(self, terms: Iterable[Term], naming: KeyNames) -> tuple[TermKey, ...]:
        return tuple(sorted({self.keys.key_of_term(term, naming) for term in terms}))

    def _conditions_key(self, terms: Sequence[Term], naming: KeyNames) -> tuple[object, ...]:
        """Makes a key of conditions in any order, except if one keeps another from failing."""
        guarded = sorted(
            (self.keys.key_of_term(term, naming), self._set_key(guards, naming))
            for term, guards in iterate_guarded(terms)
        )
        return (*self._set_key(terms, naming), *guarded)

    def _list_key(self, terms: Iterable[Term], naming: KeyNames) -> tuple[TermKey, ...]:
        return tuple(self.keys.key_of_term(term, naming) for term in terms)

    def source_key(self, source: QuerySource, *, in_order: bool = False) -> TermKey:
        """Returns the key of a source itself, without the joins and filters on it."""
        if isinstance(source, TableRead):
            return self.keys.intern_structure(("table", source.name, source.version))
        if isinstance(source, DerivedTable):
            return self.seal_block(source.block, in_order=in_order).rows
        if isinstance(source, SetOperation):
            return self.branch_keys(source, in_order=in_order)[0]
        if isinstance(source, ValuesTable):
            return self.keys.key_of_term(
                source.rows, _NumberedNames(self, {}, 0, in_order=in_order)
            )
        if isinstance(source, GeneratedRows):
            return self.keys.intern_structure(("generated",))
        if isinstance(source, MadeRows):
            below = [self.source_key(one, in_order=in_order) for one in source.sources]
            return self.keys.intern_structure(("made", source.kind, *below))
        raise AssertionError(f"unreachable: {type(source).__name__} has no columns")

    def branch_keys(
        self, source: SetOperation, *, in_order: bool
    ) -> tuple[TermKey, tuple[tuple[TermKey, ...], ...]]:
        """Returns the key of a set operation's rows, and for each column those of all branches."""
        sealed = [self.seal_block(branch, in_order=in_order) for branch in source.branches]
        branches = [(one.rows, tuple(one.outputs.values())) for one in sealed]
        if source.kind != "except" and source.loose and not in_order:
            branches.sort(key=lambda one: (one[0], sorted(one[1])) if _is_union(source) else one)
        columns = tuple(zip(*(outputs for _, outputs in branches), strict=True))
        structure: tuple[object, ...] = (
            source.kind,
            source.distinct,
            *(rows for rows, _ in branches),
        )
        if not _is_union(source):
            structure = (*structure, columns)
        elif source.distinct:
            structure = (*structure, tuple(sorted(set(columns))))
        return self.keys.intern_structure(structure), columns

    def nested_key(
        self, nested: NestedQuery, labels: Labels, level: int, *, in_order: bool
    ) -> TermKey:
        """Returns the key of a subquery in an expression; `labels` are the names from around it."""
        block = nested.block
        in_order = in_order or block.depends_on_order
        sealed = self._seal_within(block, labels, level, in_order=in_order)
        return self.keys.intern_structure(("nested", sealed.rows, *sealed.outputs.values()))


class KeyNames:
    """The names of a block's sources in keys."""

    known: dict[Term, TermKey]

    def source_label(self, source: QuerySource) -> object:
        raise NotImplementedError

    def column_key(self, column: SourceColumn) -> tuple[object, ...]:
        raise NotImplementedError

    def nested_key(self, nested: NestedQuery) -> tuple[object, ...]:
        raise NotImplementedError


class _NumberedNames(KeyNames):
    def __init__(self, sealer: KeySealer, labels: Labels, level: int, *, in_order: bool) -> None:
        self.known = {}
        self._columns: dict[tuple[QuerySource, str], tuple[object, ...]] = {}
        self._sealer = sealer
        self._labels = labels
        self._level = level
        self._in_order = in_order

    def source_label(self, source: QuerySource) -> object:
        return self._labels[source]

    def join_equal_columns(self, pairs: Iterable[tuple[SourceColumn, SourceColumn]]) -> None:
        """Gives one name to columns that have the same value in each row."""
        classes: dict[tuple[QuerySource, str], dict[tuple[QuerySource, str], SourceColumn]] = {}
        for pair in pairs:
            places = [(column.source, column.name) for column in pair]
            joined = dict(zip(places, pair, strict=True))
            for place in places:
                joined.update(classes.get(place, {}))
            classes.update(dict.fromkeys(joined, joined))
        for joined in classes.values():
            keys = sorted((self._own_column_key(one) for one in joined.values()), key=repr)
            self._columns.update(dict.fromkeys(joined, ("equal columns", *keys)))

    def column_key(self, column: SourceColumn) -> tuple[object, ...]:
        place = (column.source, column.name)
        known = self._columns.get(place)
        if known is None:
            known = self._columns[place] = self._own_column_key(column)
        return known

    def _own_column_key(self, column: SourceColumn) -> tuple[object, ...]:
        source = column.source
        name: object = column.name
        if isinstance(source, DerivedTable):
            name = _result_key(
                self._sealer.seal_block(source.block, in_order=self._in_order), column.name
            )
        elif isinstance(source, SetOperation):
            columns = self._sealer.branch_keys(source, in_order=self._in_order)[1]
            name = columns[int(column.name)]
        return ("column", self._labels[source], name)

    def nested_key(self, nested: NestedQuery) -> tuple[object, ...]:
        key = self._sealer.nested_key(
            nested, self._labels, self._level + 1, in_order=self._in_order
        )
        return ("nested", key)


def _result_key(sealed: SealedBlock, name: str) -> object:
    """Makes the key of a query's column from its value and not from its name.

    So another name changes nothing.
    """
    if name in sealed.outputs:
        return sealed.outputs[name]
    stars = [key for shown, key in sealed.outputs.items() if shown.startswith("*")]
    return ("of a star", name, *sorted(stars))


def _is_union(source: SetOperation) -> bool:
    return source.kind == "union"


def _number_sources(
    sources: Iterable[QuerySource], around: Labels, level: int
) -> dict[QuerySource, object]:
    return {**around, **{source: (level, number) for number, source in enumerate(sources)}}


def _list_orders(ties: list[list[QuerySource]]) -> Iterable[list[QuerySource]]:
    """Lists the orders to try: those of sources that look the same, unless there are too many."""
    if prod(factorial(len(tie)) for tie in ties) > MOST_NUMBERINGS:
        return [[source for tie in ties for source in tie]]
    choices = product(*(list(permutations(tie)) for tie in ties))
    return (
        [source for tie in choice for source in tie] for choice in islice(choices, MOST_NUMBERINGS)
    )


# Columns by their origin, and all terms from which a value is computed.


class OriginNames(KeyNames):
    """Names of columns by their origin, through all queries between."""

    def __init__(self, sealer: KeySealer) -> None:
        self.known = {}
        self._sealer = sealer
        self._open: set[int] = set()

    def source_label(self, source: QuerySource) -> object:
        if isinstance(source, TableRead):
            return ("table", source.name, source.version, source.turn)
        if isinstance(source, DerivedTable):
            return ("query", self._sealer.block_shape(source.block, self), source.turn)
        if isinstance(source, SetOperation):
            shapes = [self._sealer.block_shape(branch, self) for branch in source.branches]
            return (source.kind, source.distinct, *shapes)
        if isinstance(source, GeneratedRows):
            return ("generated", self._sealer.keys.key_of_term(source.call, self))
        if isinstance(source, MadeRows):
            return ("made", source.kind, *map(self.source_label, source.sources))
        if isinstance(source, ValuesTable):
            return ("values", self._sealer.keys.key_of_term(source.rows, self))
        raise AssertionError(f"unreachable: {type(source).__name__} has no columns")

    def column_key(self, column: SourceColumn) -> tuple[object, ...]:
        source, keys = column.source, self._sealer.keys
        if isinstance(source, DerivedTable):
            term = source.block.find_output(column.name)
            if term is not None:
                return ("from", source.turn, keys.key_of_term(term, self))
        if isinstance(source, SetOperation):
            terms = [list(branch.outputs.values())[int(column.name)] for branch in source.branches]
            return ("from", source.turn, *sorted({keys.key_of_term(term, self) for term in terms}))
        return ("column", self.source_label(source), column.name)

    def nested_key(self, nested: NestedQuery) -> tuple[object, ...]:
        outputs = [
            self._sealer.keys.key_of_term(term, self) for term in nested.block.outputs.values()
        ]
        return ("nested", self._sealer.block_shape(nested.block, self), *outputs)


def walk_with_origins(term: Term) -> Iterator[Term]:
    """Yields the term and all terms from which it is computed, each part once."""
    queue: list[Term] = [term]
    seen: set[tuple[int, str] | int] = set()
    while queue:
        for item in walk_term(queue.pop()):
            mark = (id(item.source), item.name) if isinstance(item, SourceColumn) else id(item)
            if mark in seen:
                continue
            seen.add(mark)
            yield item
            if isinstance(item, SourceColumn):
                queue += _list_terms_behind(item)


def _list_terms_behind(column: SourceColumn) -> list[Term]:
    source = column.source
    if isinstance(source, DerivedTable):
        term = source.block.find_output(column.name)
        return [term] if term is not None else []
    if isinstance(source, SetOperation):
        return [list(branch.outputs.values())[int(column.name)] for branch in source.branches]
    return []
