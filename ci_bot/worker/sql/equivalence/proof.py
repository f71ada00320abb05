"""Queries in a form that can prove that they give the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    KeyInterner,
    QueryBlock,
    Term,
    TermKey,
    TermOperation,
)
from ci_bot.worker.sql.equivalence.keys import KeySealer, OriginNames, walk_with_origins
from ci_bot.worker.sql.equivalence.select_notes import (
    JoinNote,
    QueryNotes,
    is_spelled_alike,
    list_spellings,
)
from ci_bot.worker.sql.equivalence.translate_query import QueryTooLargeError, QueryTranslator
from ci_bot.worker.sql.interval_filters import is_interval_predicate
from ci_bot.worker.sql.spark_sql import read_as_spark


@dataclass(frozen=True)
class NormalForm:
    """A query in normal form; forms of one `KeyInterner` can be compared.

    Attributes:
        gaps: the parts that were not understood, in words; if there are any, nothing is proved.
        rows: the key of its rows; None if it is unknown.
        results: the keys of its results by name, in their order.
        notes: its clauses, in the order in which they were read.
        spelling: its names as they are written, by the same names in lower case.
        unclear: the gaps for which it is known that one text gives one result.
    """

    block: QueryBlock
    notes: QueryNotes
    sealer: KeySealer
    gaps: tuple[str, ...]
    rows: TermKey | None
    results: Mapping[str, TermKey]
    spelling: Mapping[str, str]
    unclear: tuple[str, ...] = ()

    def proves_same(self, other: NormalForm, *, one_text: bool = False) -> bool:
        """Whether both give the same rows on any data; the order of rows and columns may differ.

        Args:
            one_text: Whether the engine gets one text for both; a part that is not understood may
                give other rows anyway.
        """
        if one_text:
            return self._is_repeatable and other._is_repeatable
        return (
            self.is_understood
            and other.is_understood
            and self.rows == other.rows
            and self.results == other.results
            and is_spelled_alike(self.spelling, other.spelling)
        )

    @property
    def is_understood(self) -> bool:
        """Whether the results of all parts of the query are known."""
        return not self.gaps and self.rows is not None

    @property
    def _is_repeatable(self) -> bool:
        return self.rows is not None and set(self.gaps) <= set(self.unclear)

    @property
    def grouped_by(self) -> frozenset[str]:
        """The results that identify each row; empty if no such results are known."""
        group = self.block.group
        if group is None or group.sets or self.gaps:
            return frozenset()
        _, names = self.sealer.seal_as_written(self.block)
        keys = {self.sealer.keys.key_of_term(term, names) for term in group.keys}
        found = {
            name: self.sealer.keys.key_of_term(term, names)
            for name, term in self.block.outputs.items()
        }
        if not keys <= set(found.values()):
            return frozenset()
        return frozenset(name for name, key in found.items() if key in keys)


def normalize_query(
    tree: exp.Expr,
    keys: KeyInterner,
    new_names: Mapping[str, str] | None = None,
    *,
    on_spark: bool = True,
) -> NormalForm | None:
    """Makes the normal form of a query; None if it is too large to be read.

    Args:
        tree: the query as the parser gives it.
        keys: shared by the forms that are to be compared.
        new_names: new names of renamed tables by their old ones, so both sides have the same names.
        on_spark: Spark runs the query, so forms that are equal only in Spark become one form.
    """
    reader, sealer = QueryTranslator(new_names or {}, on_spark=on_spark), KeySealer(keys)
    reading = read_as_spark(tree)
    spelling, is_clear = list_spellings(reading.tree)
    unclear = (*reading.gaps, *([] if is_clear else ["names that differ in case only"]))
    for gap in unclear:
        reader.add_gap(gap)
    try:
        block = reader.translate_query(reading.tree)
        if any("#" in name for name in block.outputs):
            reader.add_gap("two results of one name")
        sealed = sealer.seal_block(block)
    except KeyError:  # a column of a query around a part that cannot see it
        reader.add_gap("a column from outside")
        gaps = tuple(reader.gaps)
        return NormalForm(block, reader.notes, sealer, gaps, None, {}, spelling)
    except (RecursionError, QueryTooLargeError):
        return None
    gaps = tuple(reader.gaps)
    outputs = dict(sealed.outputs)
    return NormalForm(block, reader.notes, sealer, gaps, sealed.rows, outputs, spelling, unclear)


# The steps of a query, in a form in which two versions can be compared although their spelling
# differs.
#
# Aliases, CTE names, nesting and the order of operands do not change the meaning of a query. Each
# column is followed to the stored column or the expression from which it comes. Filters, joins,
# groupings, unions and results are left, and they are equal exactly if they mean the same.


# A key that no term has.
WHOLE: TermKey = -1


@dataclass(frozen=True)
class JoinMeaning:
    """One join: its partner, its kind, and its conditions.

    `places` has, for each condition, the (target, column) pairs that it compares, if all of them
    are columns of queries.
    """

    target: str
    how: str
    on: frozenset[TermKey]
    node: exp.Expr | None = field(compare=False, hash=False, default=None)
    places: Mapping[TermKey, frozenset[tuple[str, str]]] = field(
        compare=False, hash=False, default_factory=dict
    )

    @property
    def is_inner(self) -> bool:
        return self.how in {"INNER", "CROSS"}


class QueryMeaning:
    """The steps of a query, as sets and bags that do not depend on names or order.

    Keys can be compared with those of a meaning whose form was made with the same `KeyInterner`;
    `show_key` turns one back into SQL for a reader.

    Attributes:
        reads: the sources of FROM and inner joins, and the number of times each is read.
        columns: the columns of queries that are joined, by the sources of these queries.
        list_totals: for each result the aggregates that its value goes through.
    """

    def __init__(self, form: NormalForm, dialect: str) -> None:
        self._form = form
        self._dialect = dialect
        self._nodes: dict[TermKey, exp.Expr] = {}
        self._count_turns()
        self._names = OriginNames(form.sealer)
        notes = form.notes
        self.filters = Counter(
            self._make_key(term, node)
            for term, node in notes.filters
            if not is_interval_predicate(node)
        )
        self.joins = [self._make_join_meaning(join) for join in notes.joins]
        self.groups = [
            frozenset(self._make_key(term, node) for term, node in group) for group in notes.groups
        ]
        self.distincts: int = notes.distincts
        self.unions: Counter[str] = notes.unions
        self.reads: Counter[str] = notes.reads
        self.columns: Mapping[str, set[str]] = notes.joined_columns

    @cached_property
    def inner_conditions(self) -> frozenset[TermKey]:
        """The conditions of inner joins, which filter like a WHERE."""
        return frozenset(key for join in self.joins if join.is_inner for key in join.on)

    @cached_property
    def before_windows(self) -> Counter[TermKey]:
        """The filters that keep rows from a window function of the same SELECT.

        A filter that holds for all rows of a partition or for none is not among them.
        """
        return Counter(
            self._make_key(term, node)
            for term, node in self._form.notes.filters
            if _keeps_from_windows(node)
        )

    @cached_property
    def totals(self) -> dict[str, Counter[str]]:
        return {
            name: Counter(_iterate_totals(term)) for name, term in self._form.block.outputs.items()
        }

    @cached_property
    def quotients(self) -> dict[str, Counter[TermKey]]:
        """Counts the divisors of each result; `WHOLE` counts quotients that are whole numbers."""
        return {
            name: self._count_quotients(term) for name, term in self._form.block.outputs.items()
        }

    def show_key(self, key: TermKey) -> str:
        """Returns the SQL of `key`, without quotes."""
        return strip_quotes(self._nodes[key].sql(dialect=self._dialect, comments=False))

    def _make_key(self, term: Term, node: exp.Expr) -> TermKey:
        key = self._form.sealer.keys.key_of_term(term, self._names)
        self._nodes.setdefault(key, node)
        return key

    def _make_join_meaning(self, join: JoinNote) -> JoinMeaning:
        on = {self._make_key(term, node): places for term, node, places in join.on}
        return JoinMeaning(join.target, join.how, frozenset(on), join.node, on)

    def _count_turns(self) -> None:
        """Numbers the occurrences of one thing in a SELECT, in written order."""
        sealer = self._form.sealer
        for block in self._form.notes.blocks:
            met: Counter[TermKey] = Counter()
            for source in block.part.iterate_sources():
                try:
                    base = sealer.source_key(source)
                except KeyError:
                    base = sealer.keys.intern_structure(("unknown", id(source)))
                met[base] += 1
                source.turn = met[base]

    def _count_quotients(self, term: Term) -> Counter[TermKey]:
        found: Counter[TermKey] = Counter()
        for node in walk_with_origins(term):
            if isinstance(node, TermOperation) and node.op.startswith(("div(", "intdiv(")):
                found[WHOLE] += int(node.op.startswith("intdiv("))
                found[
                    self._form.sealer.keys.key_of_term(
                        _strip_zero_guard(node.parts[1]), self._names
                    )
                ] += 1
        return found


def _keeps_from_windows(node: exp.Expr) -> bool:
    below, select = node, node.parent
    while select is not None and not isinstance(select, exp.Select):
        below, select = select, select.parent
    if select is None or below.arg_key not in {"where", "having"}:
        return False
    filtered = {column.name.lower() for column in node.find_all(exp.Column)}
    return any(
        window.find_ancestor(exp.Select) is select and not filtered <= _partition_columns(window)
        for part in (*select.expressions, select.args.get("qualify"))
        if part is not None
        for window in part.find_all(exp.Window)
    )


def _partition_columns(window: exp.Expr) -> set[str]:
    return {
        column.name.lower()
        for part in window.args.get("partition_by") or []
        for column in part.find_all(exp.Column)
    }


def _iterate_totals(term: Term) -> Iterator[str]:
    for node in walk_with_origins(term):
        if isinstance(node, TermOperation) and node.aggregate:
            inner = node.parts[0] if node.parts else None
            distinct = isinstance(inner, TermOperation) and inner.op.startswith("distinct(")
            name = node.op.partition("(")[0].upper()
            yield f"{name}{' DISTINCT' if distinct else ''}"


def _strip_zero_guard(term: Term) -> Term:
    """Returns a denominator without its guard against zero, which changes no quotient."""
    while isinstance(term, TermOperation):
        guard = term.parts[1] if term.op.startswith("nullif(") else None
        is_guarded = isinstance(guard, TermOperation) and guard.op in {"number:0", "number:0.0"}
        if not is_guarded and not term.op.startswith(("cast(", "trycast(")):
            break
        term = term.parts[0]
    return term


def strip_quotes(text: str) -> str:
    """Removes the quotes of identifiers from SQL: views are rendered without, tables with them."""
    return text.replace("`", "").replace('"', "")
