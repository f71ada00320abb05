"""From the parser's queries to blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from ci_bot.worker.sql.equivalence import translate_clauses
from ci_bot.worker.sql.equivalence.blocks import (
    DependentSource,
    Hanging,
    NestedQuery,
    OuterJoin,
    QueryBlock,
    SetKind,
    SetOperation,
    SourceColumn,
    SourcePart,
    Term,
    TermOperation,
    make_comparison,
    make_leaf,
    split_conjuncts,
)
from ci_bot.worker.sql.equivalence.select_notes import (
    CLAUSES_BEHIND_SUBQUERY,
    CteEntry,
    FromItem,
    JoinNoteSource,
    QueryNotes,
    SelectFrame,
)
from ci_bot.worker.sql.equivalence.translate_clauses import LAYOUT, ClauseTranslator
from ci_bot.worker.sql.equivalence.translate_scalars import ScalarTranslator
from ci_bot.worker.sql.equivalence.translate_sources import SourceTranslator, TranslatedFrom
from ci_bot.worker.sql.model_query import split_conditions as written_parts
from ci_bot.worker.sql.model_query import table_name
from ci_bot.worker.sqlmesh_compat import FROM, WITH

# UNION, INTERSECT and EXCEPT as one source.


_KINDS: dict[type, SetKind] = {
    exp.Union: "union",
    exp.Intersect: "intersect",
    exp.Except: "except",
}

_SET_CLAUSES = frozenset({"this", "expression", "distinct", WITH, "order", "limit", "offset"})

_TWO = 2

_STRUCTURES = (exp.DataType.Type.STRUCT, exp.DataType.Type.OBJECT, exp.DataType.Type.VARIANT)


def find_set_kind(node: exp.Expr) -> SetKind | None:
    """Finds which set operation it is; None for one with clauses that change its result."""
    told = any(value for name, value in node.args.items() if name not in _SET_CLAUSES)
    return None if told else _KINDS.get(type(node))


def combine_branches(
    node: exp.Expr, kind: SetKind, branches: list[QueryBlock], used: frozenset[str] | None
) -> tuple[SetOperation, list[str]] | None:
    """The set operation of `branches`, and the names of its columns by place.

    None if the branches cannot be matched: a star, or another number of columns.
    """
    distinct = bool(node.args.get("distinct"))
    names = list(branches[0].outputs)
    if any(b.has_star or len(b.outputs) != len(names) for b in branches):
        return None
    converts_nothing = _has_one_type_for_each_column(node)
    if kind == "union" and converts_nothing:
        branches = [leaf for branch in branches for leaf in _list_leaves(branch, distinct=distinct)]
    places = range(len(names))
    if kind == "union" and not distinct and used is not None:
        # Rows are kept as they are, so a column that nobody reads is of no account.
        places = [place for place, name in enumerate(names) if name in used]  # type: ignore[assignment]
    for branch in branches:
        terms = list(branch.outputs.values())
        branch.outputs = {str(new): terms[old] for new, old in enumerate(places)}
    names = [names[place] for place in places]
    loose = converts_nothing or (len(branches) == _TWO and _has_no_structures(node))
    source = SetOperation(
        kind, distinct, branches, names, loose=loose, converts_nothing=converts_nothing
    )
    return source, names


def wrap_set_operation(source: SetOperation, names: list[str]) -> QueryBlock:
    """A SELECT of everything that a set operation gives."""
    outputs = {name: SourceColumn(source, str(place)) for place, name in enumerate(names)}
    return QueryBlock(part=SourcePart([source]), outputs=dict(outputs))


def _list_leaves(block: QueryBlock, *, distinct: bool) -> list[QueryBlock]:
    """The branches of a nested UNION that may stand in the one around it."""
    source = block.part.inner[0] if block.part.inner else None
    if (
        not isinstance(source, SetOperation)
        or source.kind != "union"
        or (source.distinct and not distinct)
        or not block.is_simple
        or len(block.part.inner) > 1
        or block.part.hung
        or block.part.where
    ):
        return [block]
    places: list[str] = []
    for term in block.outputs.values():
        if not isinstance(term, SourceColumn) or term.source is not source:
            return [block]
        places.append(term.name)
    if source.distinct and set(places) != {str(n) for n in range(len(source.names))}:
        return [block]
    for branch in source.branches:
        branch.outputs = {str(new): branch.outputs[old] for new, old in enumerate(places)}
    return source.branches


def _has_one_type_for_each_column(node: exp.Expr) -> bool:
    """Whether no branch's values are converted: the result of three types hangs on their order."""
    rows = [[item.type for item in select.expressions] for select in _list_selects(node)]
    if len({len(row) for row in rows}) != 1:
        return False
    return all(
        first is not None and not first.is_type(exp.DataType.Type.UNKNOWN) and set(kinds) == {first}
        for first, *kinds in zip(*rows, strict=True)
    )


def _has_no_structures(node: exp.Expr) -> bool:
    """Whether no column is a structure, whose fields are called as in the first branch."""
    types = [item.type for select in _list_selects(node) for item in select.expressions]
    return all(
        kind is not None
        and not kind.is_type(exp.DataType.Type.UNKNOWN)
        and not any(part.is_type(*_STRUCTURES) for part in kind.find_all(exp.DataType))
        for kind in types
    )


def _list_selects(node: exp.Expr) -> list[exp.Select]:
    query = node.unnest() if isinstance(node, exp.Subquery) else node
    if isinstance(query, exp.SetOperation):
        return [*_list_selects(query.this), *_list_selects(query.expression)]
    return [query] if isinstance(query, exp.Select) else []


# Each use of a CTE that only filters is read anew, so a chain of them could double at each step.
MOST_SELECTS = 500

_CLAUSES = frozenset(
    {WITH, FROM, "expressions", "joins", "laterals", "where", "group", "having", "qualify"}
    | {"distinct", "order", "limit", "offset", "hint", "sort", "cluster", "distribute", "windows"}
)


class QueryTooLargeError(Exception):
    """The query has too many SELECTs once its CTEs are written out."""


class QueryTranslator:
    """Reads one query; everything that it does not understand is a gap, and it goes on.

    Attributes:
        gaps: what was not understood, in words; empty if a key says all.
        notes: joins, filters and so on as they are met, for whoever tells changes.
    """

    def __init__(self, new_names: Mapping[str, str]) -> None:
        self.gaps: list[str] = []
        self.notes = QueryNotes()
        self._new_names = new_names
        self._kept: dict[tuple[int, frozenset[str] | None, tuple[str, ...]], QueryBlock] = {}
        self._selects = 0

    def translate_query(self, query: exp.Expr) -> QueryBlock:
        """The block of a whole query."""
        return self._translate_subquery(query, {}, None, None)

    def add_gap(self, why: str) -> None:
        if why not in self.gaps:
            self.gaps.append(why)

    def resolve_table_name(self, table: exp.Table) -> str:
        name = table_name(table)
        return self._new_names.get(name, name)

    def note_first(self, node: exp.Expr, item: FromItem) -> None:
        if self.notes.begin_part(node):
            self.notes.first.append(item)

    def note_join(self, join: JoinNoteSource) -> None:
        if self.notes.begin_part(join.node):
            self.notes.joined.append(join)

    def translate_nested(
        self, query: exp.Expr, frame: SelectFrame, columns: int | None
    ) -> QueryBlock:
        """A subquery in an expression, with as many columns as are used of it."""
        block = self._translate_subquery(
            query, frame.ctes, frame, frozenset() if columns == 0 else None
        )
        if columns == 0:
            block.outputs = {}
        elif columns is not None and (len(block.outputs) != columns or block.has_star):
            self.add_gap("a subquery with several columns")
        return block

    def from_query(
        self,
        query: exp.Expr,
        ctes: Mapping[str, CteEntry | None],
        names: tuple[str, ...],
        used: frozenset[str] | None,
        *,
        fresh: bool,
    ) -> QueryBlock:
        """A query in FROM, with its columns called `names`, where these are given.

        A block is the reader's own as long as it may still be changed: with `fresh`, or if it only
        joins and filters. Others are read once for all that read them alike.
        """
        key = (id(query), used, names)
        if not fresh and key in self._kept:
            return self._kept[key]
        block = self._translate_subquery(query, ctes, None, None if names else used)
        if names:
            self._rename_outputs(block, names, used)
        if not fresh and not block.is_simple:
            self._kept[key] = block
        return block

    def _rename_outputs(
        self, block: QueryBlock, names: tuple[str, ...], used: frozenset[str] | None
    ) -> None:
        if block.has_star or len(names) != len(block.outputs):
            self.add_gap("names for columns that are not known")
            return
        named = zip(names, block.outputs.values(), strict=True)
        block.outputs = {name: term for name, term in named if used is None or name in used}

    def _translate_subquery(
        self,
        query: exp.Expr,
        ctes: Mapping[str, CteEntry | None],
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        if isinstance(query, exp.Subquery):
            if any(value for name, value in query.args.items() if name not in {"this", "alias"}):
                self.add_gap(CLAUSES_BEHIND_SUBQUERY)
            return self._translate_subquery(query.this, ctes, outer, used)
        known = self._translate_ctes(query, ctes)
        if isinstance(query, exp.SetOperation):
            block = self._set_operation(query, known, outer, used)
        elif isinstance(query, exp.Select):
            block = self._translate_select(query, known, outer, used)
        else:
            self.add_gap(f"a query of the kind {query.key}")
            return QueryBlock(outputs={"*": make_leaf("unknown", query.sql())})
        block.push_conditions_down()
        self.notes.blocks.append(block)
        return block

    def _translate_ctes(
        self, query: exp.Expr, ctes: Mapping[str, CteEntry | None]
    ) -> Mapping[str, CteEntry | None]:
        with_ = query.args.get(WITH)
        if with_ is None:
            return ctes
        known = dict(ctes)
        for cte in with_.expressions:
            name = cte.alias.lower()
            around = {**known, name: None} if with_.args.get("recursive") else dict(known)
            names = tuple(column.lower() for column in cte.alias_column_names)
            known[name] = CteEntry(cte.this, names, around)
        return known

    def _set_operation(
        self,
        query: exp.Expr,
        ctes: Mapping[str, CteEntry | None],
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        kind = find_set_kind(query)
        if kind is None:
            self.add_gap("a set operation with more clauses")
        branches = [
            self._translate_subquery(branch, ctes, outer, None)
            for branch in (query.this, query.expression)
        ]
        self.notes.set_operation(query)
        made = combine_branches(query, kind or "union", branches, used)
        if made is None:
            self.add_gap("a set operation whose columns are not known")
            return branches[0]
        source, names = made
        block = wrap_set_operation(source, names)
        # By name or by place, ORDER BY means the columns of the whole.
        frame = SelectFrame(ctes, items={"": FromItem(source=source, names=names, by_place=True)})
        columns = [exp.column(name) for name in names]
        clauses = ClauseTranslator(self, ScalarTranslator(self, frame))
        clauses.translate_order(block, query, columns, list(block.outputs.values()))
        return block

    def _translate_select(
        self,
        select: exp.Select,
        ctes: Mapping[str, CteEntry | None],
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        self._selects += 1
        if self._selects > MOST_SELECTS:
            raise QueryTooLargeError
        for name, value in select.args.items():
            if value and name not in _CLAUSES:
                self.add_gap(f"a SELECT with {name}")
        own = translate_clauses.find_mentions(select)
        frame = SelectFrame(ctes, outer)
        scalars = ScalarTranslator(self, frame)
        scalars.windows = {w.name.lower(): w for w in select.args.get("windows") or ()}
        sources = SourceTranslator(self, frame, scalars, own)
        found = sources.translate_sources(select, lambda block: _may_stand_for(block, select, own))
        return self._translate_rest(select, found, own, scalars, used)

    def _translate_rest(
        self,
        select: exp.Select,
        found: TranslatedFrom,
        own: translate_clauses.ClauseMentions,
        scalars: ScalarTranslator,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        """What a SELECT does with its sources."""
        # The results of a query that is read alone can still be named while it becomes this one.
        block = replace(found.alone) if found.alone is not None else QueryBlock()
        block.part.add_part(found.part)
        first = self.notes.begin_part(select)
        where = self._translate_conditions(select, "where", scalars, first=first)
        distinct = select.args.get("distinct")
        clauses = ClauseTranslator(self, scalars)
        outputs = clauses.translate_outputs(select, used if distinct is None else None)
        scalars.frame.results = {
            item.alias.lower(): item.this for item in select.expressions if item.alias
        } | {item.name.lower(): item for item in select.expressions if isinstance(item, exp.Column)}
        group = clauses.translate_group(select, own)
        having = self._translate_conditions(select, "having", scalars, first=first)
        qualify = self._translate_conditions(select, "qualify", scalars, first=first)
        layout = clauses.translate_layout(select)
        kept, block.outputs = block.outputs, outputs
        clauses.translate_order(block, select, select.expressions, clauses.by_place(select))
        if found.alone is None:
            for condition in where:
                hung = _find_semi_join(condition)
                if hung is None:
                    block.part.where.append(condition)
                else:
                    block.part.hung.append(hung)
            block.part.make_filtered_joins_inner()
            block.group = group
            block.having, block.qualify = having, qualify
            block.distinct = list(outputs.values()) if distinct is not None else None
            block.generators = clauses.translate_generators(select) if own.generators else []
        else:
            # The filter comes after whatever the query below does, whose results it names.
            block.outputs = {**kept, **outputs}
            block.add_filters(where)
            block.outputs = outputs
        block.layout += layout
        if distinct is not None and distinct.args.get("on") is not None:
            self.add_gap("DISTINCT ON")
        if first:
            self.notes.note_select(select, group)
        return block

    def _translate_conditions(
        self, select: exp.Select, clause: str, scalars: ScalarTranslator, *, first: bool
    ) -> list[Term]:
        node = select.args.get(clause)
        found: list[Term] = []
        for part in written_parts(node.this) if node is not None else ():
            terms = split_conjuncts(scalars.translate_scalar(part))
            if first:
                self.notes.filters += [(term, part) for term in terms]
            found += terms
        return found


def _find_semi_join(condition: Term) -> DependentSource | None:
    """The semi or anti join that a condition of WHERE is, if it is EXISTS, NOT EXISTS or IN over a
    query that only filters one source. NOT IN is none: one NULL decides about all rows."""
    how: Hanging = "semi"
    if isinstance(condition, TermOperation) and condition.op == "not":
        condition, how = condition.parts[0], "anti"
    if not isinstance(condition, TermOperation):
        return None
    nested = condition.parts[-1] if condition.parts else None
    if not isinstance(nested, NestedQuery) or not nested.block.is_simple:
        return None
    part = nested.block.part
    if len(part.inner) != 1 or part.hung or isinstance(part.inner[0], OuterJoin):
        return None
    if condition.op == "exists":
        return DependentSource(part.inner[0], how, list(part.where))
    if condition.op == "in query" and how == "semi" and len(nested.block.outputs) == 1:
        (output,) = nested.block.outputs.values()
        equal = make_comparison("eq", condition.parts[0], output)
        return DependentSource(part.inner[0], how, [equal, *part.where])
    return None


def _may_stand_for(
    block: QueryBlock, select: exp.Select, own: translate_clauses.ClauseMentions
) -> bool:
    """Whether `select` only filters and chooses results of the query that it reads."""
    if own.aggregates or own.windows or own.generators:
        return False
    if any(select.args.get(name) for name in ("group", "having", "qualify", "distinct")):
        return False
    if select.args.get("where") is not None and (block.limits or block.generators):
        return False
    shapes = any(select.args.get(n) for n in ("hint", "order", "limit", "offset", *LAYOUT))
    return not shapes or not (block.order or block.limits or block.layout or block.generators)
