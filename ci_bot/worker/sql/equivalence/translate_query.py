"""Translates the parser's queries into blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from ci_bot.worker.sql.equivalence.block_rewrites import (
    add_where,
    combine_branches,
    may_stand_for,
    push_conditions_down,
)
from ci_bot.worker.sql.equivalence.blocks import (
    DerivedTable,
    QueryBlock,
    SetKind,
    SetOperation,
    SourcePart,
    Term,
    make_leaf,
    split_conjuncts,
)
from ci_bot.worker.sql.equivalence.group_totals import settle_group_totals
from ci_bot.worker.sql.equivalence.scalar_queries import join_scalar_queries
from ci_bot.worker.sql.equivalence.select_frames import (
    Ctes,
    FromItem,
    NamedResult,
    QueryRead,
    SelectFrame,
)
from ci_bot.worker.sql.equivalence.select_notes import CLAUSES_BEHIND_SUBQUERY, QueryHost
from ci_bot.worker.sql.equivalence.translate_clauses import (
    ClauseMentions,
    ClauseTranslator,
    find_mentions,
)
from ci_bot.worker.sql.equivalence.translate_scalars import ScalarTranslator
from ci_bot.worker.sql.equivalence.translate_sources import (
    SourceTranslator,
    make_item,
    make_part,
    pivot_rows,
)
from ci_bot.worker.sql.joins import split_conditions as written_parts
from ci_bot.worker.sqlmesh_compat import FROM, WITH

_KINDS: dict[type, SetKind] = {
    exp.Union: "union",
    exp.Intersect: "intersect",
    exp.Except: "except",
}

_SET_CLAUSES = frozenset({"this", "expression", "distinct", WITH, "order", "limit", "offset"})

_IN_BRACKETS = frozenset({"this", "alias", WITH})
_BEHIND = _SET_CLAUSES | _IN_BRACKETS | {"pivots", "by_name"}
# Each use of a CTE that only filters is read again, so a chain of CTEs could double the work at
# each step.
MOST_SELECTS = 500

_CLAUSES = frozenset(
    {WITH, FROM, "expressions", "joins", "laterals", "where", "group", "having", "qualify"}
    | {"distinct", "order", "limit", "offset", "hint", "sort", "cluster", "distribute", "windows"}
)


# These clauses choose neither rows nor values. `exclude` takes columns away, but they are kept
# here.
_WITHOUT_EFFECT = _CLAUSES | frozenset(
    {"locks", "into", "operation_modifiers", "settings", "format", "options", "exclude"}
)


class QueryTooLargeError(Exception):
    """The query has too many SELECTs after its CTEs are written out."""


class QueryTranslator(QueryHost):
    """A reader of one query, which continues after parts that it does not understand."""

    _selects = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._kept: dict[tuple[int, frozenset[str] | None, tuple[str, ...]], QueryBlock] = {}

    def translate_query(self, query: exp.Expr) -> QueryBlock:
        """Translates a whole query into its block."""
        return self._translate_subquery(query, {}, None, None)

    def read_nested(self, query: exp.Expr, frame: SelectFrame, columns: int | None) -> QueryBlock:
        block = self._translate_subquery(
            query, frame.ctes, frame, frozenset() if columns == 0 else None
        )
        if columns == 0:
            block.outputs, block.written.columns, block.written.stars = {}, [], []
        elif columns is not None and (len(block.outputs) != columns or block.has_star):
            self.add_gap("a subquery with several columns")
        return block

    def read_source(
        self, read: QueryRead, used: frozenset[str] | None, *, fresh: bool
    ) -> QueryBlock:
        names = () if self.as_written else read.names
        key = (id(read.query), used, names)
        if not fresh and key in self._kept:
            return self._kept[key]
        block = self._translate_subquery(read.query, read.ctes, read.outer, None if names else used)
        if names:
            self._rename_outputs(block, names, used)
        if not fresh and (self.as_written or not block.is_simple):
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
        ctes: Ctes,
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        known = self._translate_ctes(query, ctes)
        if isinstance(query, exp.Subquery):
            return self._translate_brackets(query, known, outer, used)
        if isinstance(query, exp.SetOperation):
            block = self._translate_set_operation(query, known, outer, used)
        elif isinstance(query, exp.Select):
            block = self._translate_select(query, known, outer, used)
        else:
            self.refuse_query(f"a query of the kind {query.key}")
            return QueryBlock(outputs={"*": make_leaf("unknown", query.sql())})
        if not self.as_written:
            push_conditions_down(block)
        self.notes.blocks.append(block)
        return block

    def _translate_brackets(
        self,
        query: exp.Expr,
        ctes: Ctes,
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        """Reads a query in brackets, with the clauses behind them."""
        behind = any(value for name, value in query.args.items() if name not in _IN_BRACKETS)
        if behind:
            self.add_gap(CLAUSES_BEHIND_SUBQUERY)
        block = self._translate_subquery(query.this, ctes, outer, used)
        if not behind or not self.as_written:
            return block
        item = pivot_rows(self, make_item(DerivedTable(block), block.written), query)
        return self._translate_behind(query, item, SelectFrame(ctes, outer))

    def _translate_behind(self, query: exp.Expr, item: FromItem, frame: SelectFrame) -> QueryBlock:
        """Reads all columns of a source, with the clauses behind brackets or a set operation."""
        frame.items[""] = item
        block = QueryBlock(part=make_part(item))
        clauses = ClauseTranslator(self, ScalarTranslator(self, frame))
        block.outputs = clauses.translate_outputs(exp.select("*"), None)
        block.written = clauses.written
        clauses.translate_order(block, query, list(map(exp.column, item.names)))
        block.written.more = clauses.translate_others(query, _BEHIND)
        block.written.is_mixed = bool(block.written.more)
        return block

    def _translate_ctes(self, query: exp.Expr, ctes: Ctes) -> Ctes:
        with_ = query.args.get(WITH)
        if with_ is None:
            return ctes
        known = dict(ctes)
        for cte in with_.expressions:
            name = cte.alias.lower()
            reads_itself = bool(with_.args.get("recursive")) and _reads_name(cte.this, name)
            around = {**known, name: None} if reads_itself else dict(known)
            names = tuple(column.lower() for column in cte.alias_column_names)
            known[name] = QueryRead(cte.this, around, names, reads_itself=reads_itself)
        return known

    def _translate_set_operation(
        self,
        query: exp.Expr,
        ctes: Ctes,
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        kind = _find_set_kind(query)
        if kind is None:
            self.add_gap("a set operation with more clauses")
        branches = [
            self._translate_subquery(branch, ctes, outer, None)
            for branch in (query.this, query.expression)
        ]
        self.notes.note_set_operation(query)
        if self.as_written:
            item = _keep_branches(query, branches)
        else:
            made = combine_branches(query, kind or "union", branches, used)
            if made is None:
                self.add_gap("a set operation whose columns are not known")
                return branches[0]
            item = FromItem(made, names=made.names, is_open=False, by_place=True)
        # By name or by place, ORDER BY means the columns of the whole set operation.
        return self._translate_behind(query, item, SelectFrame(ctes, outer))

    def _translate_select(
        self,
        select: exp.Select,
        ctes: Ctes,
        outer: SelectFrame | None,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        self._selects += 1
        if self._selects > MOST_SELECTS and not self.as_written:
            raise QueryTooLargeError
        for name, value in select.args.items():
            if value and name not in _CLAUSES:
                self.add_gap(f"a SELECT with {name}")
        own = find_mentions(select)
        frame = SelectFrame(ctes, outer)
        scalars = ScalarTranslator(self, frame)
        scalars.windows = {w.name.lower(): w for w in select.args.get("windows") or ()}
        sources = SourceTranslator(self, frame, scalars, own)
        part, alone = sources.translate_sources(
            select, lambda block: may_stand_for(block, select, own)
        )
        return self._translate_rest(select, part, alone, own, scalars, used)

    def _translate_rest(
        self,
        select: exp.Select,
        part: SourcePart,
        alone: QueryBlock | None,
        own: ClauseMentions,
        scalars: ScalarTranslator,
        used: frozenset[str] | None,
    ) -> QueryBlock:
        """Reads the clauses of a SELECT after its sources."""
        # If a query becomes this SELECT, its results can still be named until then.
        block = replace(alone) if alone is not None else QueryBlock()
        block.part.add_part(part)
        first = self.notes.begin_part(select)
        # In some engines WHERE can name results, but the proof is about Spark.
        where = [] if self.as_written else self._translate_conditions(select, "where", scalars)
        distinct = select.args.get("distinct")
        clauses = ClauseTranslator(self, scalars)
        outputs = clauses.translate_outputs(select, used if distinct is None else None)
        scalars.frame.results |= {
            item.name.lower(): NamedResult(item, None)
            for item in select.expressions
            if isinstance(item, exp.Column)
        }
        scalars.is_behind = True
        if self.as_written:
            where = self._translate_conditions(select, "where", scalars)
        group = clauses.translate_group(select, own)
        having = self._translate_conditions(select, "having", scalars)
        qualify = self._translate_conditions(select, "qualify", scalars)
        layout = clauses.translate_layout(select)
        kept, block.outputs = block.outputs, outputs
        clauses.translate_order(block, select, select.expressions)
        if alone is None:
            if self.as_written:
                block.part.where += where
            else:
                add_where(block.part, where)
            block.group = group
            block.having, block.qualify = having, qualify
            if distinct is not None:
                block.distinct = [*outputs.values(), *clauses.translate_others(distinct, set())]
            block.generators = clauses.translate_generators(select) if own.generators else []
            if self.on_spark and not self.as_written:
                settle_group_totals(block)
                join_scalar_queries(block)
                clauses.read_generator_as_source(select, block, own)
        else:
            # The filter comes after all steps of the query below, and names its results.
            block.outputs = {**kept, **outputs}
            block.add_filters(where)
            block.outputs = outputs
        block.layout += layout
        block.written = clauses.written
        if self.as_written:
            is_odd = any(
                value and name not in _WITHOUT_EFFECT for name, value in select.args.items()
            )
            if is_odd:
                block.written.more = clauses.translate_others(select, _WITHOUT_EFFECT)
            block.written.is_mixed = block.written.is_mixed or is_odd or own.column_lists
        if distinct is not None and distinct.args.get("on") is not None:
            self.add_gap("DISTINCT ON")
        if first:
            self.notes.note_select(select, group)
        return block

    def _translate_conditions(
        self, select: exp.Select, clause: str, scalars: ScalarTranslator
    ) -> list[Term]:
        node = select.args.get(clause)
        found: list[Term] = []
        if node is None:
            return found
        first = self.notes.begin_part(node)
        is_macro = not isinstance(node, exp.Where | exp.Having | exp.Qualify)
        for part in [node] if is_macro else written_parts(node.this):
            terms = split_conjuncts(scalars.translate_condition(part))
            if first:
                self.notes.filters += [(term, part) for term in terms]
            found += terms
        return found


def _find_set_kind(node: exp.Expr) -> SetKind | None:
    """Finds the kind of a set operation; None if it has clauses that change its result."""
    has_more = any(value for name, value in node.args.items() if name not in _SET_CLAUSES)
    return None if has_more else _KINDS.get(type(node))


def _keep_branches(node: exp.Expr, branches: list[QueryBlock]) -> FromItem:
    """Makes the rows of a set operation whose branches stay as they are written."""
    written = [branch.written for branch in branches]
    names = [[name for name, _ in one.columns] for one in written]
    distinct = bool(node.args.get("distinct"))
    by_name = bool(node.args.get("by_name"))
    listed = list(dict.fromkeys([*names[0], *names[1]])) if by_name else names[0]
    kind = _KINDS.get(type(node), "other")
    source = SetOperation(kind, distinct, branches, listed, by_name=by_name)
    is_matched = by_name or len(names[0]) == len(names[1])
    is_open = any(one.is_open or one.is_unplaced for one in written) or not (listed and is_matched)
    return FromItem(source, names=listed, is_open=is_open, by_place=not is_open)


def _reads_name(query: exp.Expr, name: str) -> bool:
    return any(table.name.lower() == name for table in query.find_all(exp.Table))
