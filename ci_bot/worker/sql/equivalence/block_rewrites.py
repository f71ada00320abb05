"""Rewrites of blocks for a proof: they change the form, and the rows stay the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    DependentSource,
    DerivedTable,
    GroupClause,
    NestedQuery,
    QueryBlock,
    QuerySource,
    SetKind,
    SetOperation,
    SourceColumn,
    SourcePart,
    TableRead,
    Term,
    TermOperation,
    is_aggregated,
    is_windowed,
    make_comparison,
    split_conjuncts,
    walk_term,
)
from ci_bot.worker.sql.equivalence.guarded_conditions import can_term_fail
from ci_bot.worker.sql.equivalence.known_types import find_known_type
from ci_bot.worker.sql.equivalence.semi_joins import move_conditions_of_semi_joins
from ci_bot.worker.sql.equivalence.translate_clauses import LAYOUT, ClauseMentions

# Because of its own join or of a later one, the rows of a source can be without a match.
SourceRole = Literal["inner", "hung", "outer"]

_TWO = 2
_JOINED = ("and", "or")

_STRUCTURES = (exp.DataType.Type.STRUCT, exp.DataType.Type.OBJECT, exp.DataType.Type.VARIANT)


def replace_terms(block: QueryBlock, replace: Callable[[Term], Term | None]) -> None:
    """Replaces terms in the clauses of a block that are computed for its rows or groups.

    Args:
        replace: Returns the new term, or the term itself if nothing in it may change; None to try
            its parts.
    """

    def rebuild_term(term: Term) -> Term:
        replaced = replace(term)
        if replaced is not None or not isinstance(term, TermOperation):
            return term if replaced is None else replaced
        parts = tuple(map(rebuild_term, term.parts))
        if all(one is other for one, other in zip(parts, term.parts, strict=True)):
            return term
        return TermOperation(
            term.op, parts, term.order, ordered=term.ordered, windowed=term.windowed
        )

    block.part.where = [*map(rebuild_term, block.part.where)]
    block.outputs = {name: rebuild_term(term) for name, term in block.outputs.items()}
    block.having = [*map(rebuild_term, block.having)]
    block.order = [*map(rebuild_term, block.order)]
    block.qualify = [*map(rebuild_term, block.qualify)]
    if block.distinct is not None:
        block.distinct = [*map(rebuild_term, block.distinct)]


def combine_branches(
    node: exp.Expr, kind: SetKind, branches: list[QueryBlock], used: frozenset[str] | None
) -> SetOperation | None:
    """Makes the set operation of `branches`.

    None if the branches cannot be matched, because of a star or another number of columns.
    """
    distinct = bool(node.args.get("distinct"))
    names = list(branches[0].outputs)
    if any(b.has_star or len(b.outputs) != len(names) for b in branches):
        return None
    converts_nothing = _has_one_type_for_each_column(branches)
    if kind == "union" and distinct:
        for branch in branches:
            _drop_copies_later(branch)
    if kind == "union" and converts_nothing:
        branches = [leaf for branch in branches for leaf in _list_leaves(branch, distinct=distinct)]
    places = range(len(names))
    if kind == "union" and not distinct and used is not None:
        # All rows are kept, so a column that nobody reads does not matter.
        places = [place for place, name in enumerate(names) if name in used]  # type: ignore[assignment]
    for branch in branches:
        terms = list(branch.outputs.values())
        branch.outputs = {str(new): terms[old] for new, old in enumerate(places)}
    names = [names[place] for place in places]
    loose = converts_nothing or (len(branches) == _TWO and _has_no_structures(node))
    return SetOperation(
        kind, distinct, branches, names, loose=loose, converts_nothing=converts_nothing
    )


def _drop_copies_later(block: QueryBlock) -> None:
    """Drops DISTINCT of a branch of a UNION that drops copies itself."""
    group = block.group
    more = (block.having, block.qualify, block.generators, block.limits, block.order)
    if group is None or not group.keys or group.sets or any(more):
        return
    if any(map(can_term_fail, group.keys)):
        return
    if not any(is_aggregated(term) or is_windowed(term) for term in block.outputs.values()):
        block.group = None


def _list_leaves(block: QueryBlock, *, distinct: bool) -> list[QueryBlock]:
    """Lists the branches of a nested UNION, if the UNION around it may take them over.

    Otherwise the list has only the block itself.
    """
    source = block.part.only_source
    if (
        not isinstance(source, SetOperation)
        or source.kind != "union"
        or (source.distinct and not distinct)
        or not block.is_simple
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


def _has_one_type_for_each_column(branches: list[QueryBlock]) -> bool:
    """Whether no branch's values are converted: a result of three types depends on their order."""
    columns = zip(*(branch.outputs.values() for branch in branches), strict=True)
    return all(
        len(kinds) == 1 and "" not in kinds
        for terms in columns
        for kinds in [set(map(find_known_type, terms))]
    )


def _has_no_structures(node: exp.Expr) -> bool:
    """Whether no column is a structure, which has its field names from the first branch."""
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


def add_where(part: SourcePart, conditions: list[Term]) -> None:
    """Adds the conditions of WHERE to the sources; some of them are semi or anti joins."""
    for condition in conditions:
        hung = _find_semi_join(condition)
        if hung is None:
            part.where.append(condition)
        else:
            part.hung.append(hung)
    make_filtered_joins_inner(part)


def make_filtered_joins_inner(part: SourcePart) -> None:
    """Makes a LEFT JOIN an inner one if a condition drops all rows without a match.

    It also leaves out tests for NULL that another condition makes needless.
    """
    # From the last to the first: a join that becomes inner filters the sources that its condition
    # names.
    for hung in [one for one in reversed(part.hung) if one.how == "left"]:
        if any(column.source is hung.source for column in _iterate_strict_columns(part.where)):
            part.hung.remove(hung)
            part.inner.append(hung.source)
            part.where += hung.on
    compared = {
        (column.source, column.name)
        for term in part.where
        for column in _list_compared_columns(term)
    }
    part.where = [
        term
        for term in part.where
        for known in [_find_known_tested(term)]
        if not isinstance(known, SourceColumn) or (known.source, known.name) not in compared
    ]


def _iterate_strict_columns(conditions: list[Term]) -> Iterator[SourceColumn]:
    """Yields columns whose NULL keeps a condition from being true, if the form of it shows that."""
    for term in conditions:
        yield from _list_compared_columns(term)
        known = _find_known_tested(term)
        if isinstance(known, SourceColumn):
            yield known


def _find_null_tested_term(term: Term) -> Term | None:
    """Returns the term that a condition `a IS NULL` tests; None if it is another condition."""
    if not isinstance(term, TermOperation) or not term.op.startswith("is("):
        return None
    tested, constant = term.parts
    is_null = isinstance(constant, TermOperation) and constant.op.startswith("null(")
    return tested if is_null else None


def _find_known_tested(term: Term) -> Term | None:
    """Returns the term that a condition `a IS NOT NULL` tests; None if it is another condition."""
    if not isinstance(term, TermOperation) or term.op != "not":
        return None
    return _find_null_tested_term(term.parts[0])


def _list_compared_columns(term: Term) -> list[SourceColumn]:
    """Lists the columns that a condition compares: it is not true if one of them is NULL."""
    if not isinstance(term, TermOperation):
        return []
    if term.op in {"eq", "neq", "lt", "gte"}:
        return [side for side in term.parts if isinstance(side, SourceColumn)]
    found = [_list_compared_columns(part) for part in term.parts] if term.op in _JOINED else []
    if term.op == "and":
        return [column for columns in found for column in columns]
    places = [{(column.source, column.name) for column in columns} for columns in found[1:]]
    return [
        column
        for column in (found[0] if found else [])
        if all((column.source, column.name) in known for known in places)
    ]


def _find_semi_join(condition: Term) -> DependentSource | None:
    """Makes a semi or anti join of a condition of WHERE; None if it is another condition.

    It must be EXISTS, NOT EXISTS or IN over a query that only filters one source. NOT IN is no such
    condition: one NULL decides about all rows.
    """
    how = "semi"
    if isinstance(condition, TermOperation) and condition.op == "not":
        condition, how = condition.parts[0], "anti"
    if not isinstance(condition, TermOperation):
        return None
    nested = condition.parts[-1] if condition.parts else None
    if not isinstance(nested, NestedQuery) or not nested.block.is_simple:
        return None
    part = nested.block.part
    if part.only_source is None:
        return None
    if condition.op == "exists":
        return DependentSource(part.only_source, how, list(part.where))
    if condition.op == "in query" and how == "semi" and len(nested.block.outputs) == 1:
        (output,) = nested.block.outputs.values()
        equal = make_comparison("eq", condition.parts[0], output)
        return DependentSource(part.only_source, how, [equal, *part.where])
    return None


def push_conditions_down(block: QueryBlock) -> None:
    """Moves conditions to the earliest place in which they mean the same."""
    compared = block.distinct
    if compared is not None and block.group is None and not (block.generators or block.is_windowed):
        # DISTINCT means GROUP BY all results.
        block.distinct, block.group = None, GroupClause(keys=compared)
    if block.qualify and not block.is_windowed:
        waiting, block.qualify = block.qualify, []
        block.add_filters(waiting)
    if block.qualify and block.group is None and not block.generators:
        whole = [term for term in block.qualify if _keeps_whole_partitions(term, block)]
        block.qualify = [term for term in block.qualify if term not in whole]
        block.part.where += whole
    if block.group is not None and block.group.keys and not block.group.sets:
        early = [term for term in block.having if _is_of_keys(term)]
        block.having = [term for term in block.having if not _is_of_keys(term)]
        block.part.where += early
    move_conditions_of_semi_joins(block.part)
    block.part.where = [item for term in block.part.where for item in split_conjuncts(term)]
    block.part.where = [term for term in block.part.where if not _filter_branches(block, term)]
    _make_unmatched_joins_anti(block)
    _drop_unread_joins(block)


def _keeps_whole_partitions(condition: Term, block: QueryBlock) -> bool:
    """Whether a condition has one answer for all rows of a partition, in each window."""
    asked = list(walk_term(condition))
    columns = {(one.source, one.name) for one in asked if isinstance(one, SourceColumn)}
    if is_windowed(condition) or any(isinstance(one, NestedQuery) for one in asked):
        return False
    terms = (*block.outputs.values(), *(block.distinct or ()), *block.qualify, *block.order)
    windows = [
        one
        for term in terms
        for one in walk_term(term)
        if isinstance(one, TermOperation) and one.op == "window"
    ]
    return all(columns <= _list_partition_columns(window) for window in windows)


def _list_partition_columns(window: TermOperation) -> set[tuple[object, str]]:
    by = window.parts[1]
    parts = by.parts if isinstance(by, TermOperation) else ()
    return {(one.source, one.name) for one in parts if isinstance(one, SourceColumn)}


def _filter_branches(block: QueryBlock, condition: Term) -> bool:
    """Filters the branches of a UNION instead of all its rows, if that means the same.

    Returns whether it did.
    """
    sources = {one.source for one in walk_term(condition) if isinstance(one, SourceColumn)}
    source = sources.pop() if len(sources) == 1 else None
    if not isinstance(source, SetOperation) or source not in block.part.inner:
        return False
    is_plain = not any(isinstance(one, NestedQuery) for one in walk_term(condition))
    is_one_type = source.kind == "union" and source.converts_nothing
    if not (is_one_type and is_plain and all(map(_takes_filters, source.branches))):
        return False
    for branch in source.branches:
        results = list(branch.outputs.values())
        branch.add_filters([_replace_columns(condition, results)])
        push_conditions_down(branch)
    return True


def _make_unmatched_joins_anti(block: QueryBlock) -> None:
    """Makes a LEFT JOIN an anti join if only its rows without a match are left."""
    terms = list(block.iterate_terms())
    if any(isinstance(item, NestedQuery) for term in terms for item in walk_term(term)):
        return
    for hung in [one for one in block.part.hung if one.how == "left"]:
        compared = {
            column.name
            for term in hung.on
            for column in _list_compared_columns(term)
            if column.source is hung.source
        }
        tests = [
            term
            for term in block.part.where
            for column in [_find_null_tested_term(term)]
            if isinstance(column, SourceColumn)
            and column.source is hung.source
            and column.name in compared
        ]
        if tests and not _reads_source(hung.source, terms, (*hung.on, *tests)):
            own = {id(term) for term in tests}
            hung.how = "anti"
            block.part.where = [term for term in block.part.where if id(term) not in own]


def _reads_source(source: QuerySource, terms: Iterable[Term], besides: Iterable[Term]) -> bool:
    """Whether one of the terms, but for those `besides`, reads a column of a source."""
    own = {id(term) for term in besides}
    return any(
        isinstance(item, SourceColumn) and item.source is source
        for term in terms
        if id(term) not in own
        for item in walk_term(term)
    )


def _drop_unread_joins(block: QueryBlock) -> None:
    """Drops a LEFT JOIN that only keeps each row once: nothing reads it, and it has a key.

    Spark does so only with some of them, so none goes whose conditions can end the query.
    """
    terms = list(block.iterate_terms())
    if any(isinstance(item, NestedQuery) for term in terms for item in walk_term(term)):
        return
    for hung in [one for one in block.part.hung if one.how == "left"]:
        if (
            _matches_once(hung)
            and not _reads_source(hung.source, terms, hung.on)
            and not _can_join_fail(hung)
        ):
            block.part.hung.remove(hung)


def _can_join_fail(hung: DependentSource) -> bool:
    """Whether a join that nobody reads, or a query below it, can end the query.

    The results of its own query cannot: nobody reads them. Those below may be read by a condition.
    """
    if not isinstance(hung.source, DerivedTable):
        return True
    block = hung.source.block
    terms = [*hung.on, *block.part.iterate_terms(), *block.having, *block.qualify]
    waiting = list(block.part.iterate_sources())
    for source in waiting:
        if isinstance(source, DerivedTable):
            below = [source.block]
        elif isinstance(source, SetOperation):
            below = source.branches
        elif isinstance(source, TableRead):
            continue
        else:
            return True
        for one in below:
            terms += one.iterate_terms()
            waiting += one.part.iterate_sources()
    return any(map(can_term_fail, terms))


def _matches_once(hung: DependentSource) -> bool:
    """Whether a row has one match at most: groups, of which the join compares each key."""
    source = hung.source
    group = source.block.group if isinstance(source, DerivedTable) else None
    if not isinstance(source, DerivedTable) or group is None or group.sets:
        return False
    if source.block.generators:
        return False
    compared: set[tuple[object, str]] = set()
    for term in hung.on:
        if not isinstance(term, TermOperation) or term.op not in {"eq", "same"}:
            continue
        for own, other in (term.parts, term.parts[::-1]):
            kind = find_known_type(own)
            if not isinstance(own, SourceColumn) or own.source is not source:
                continue
            if not kind or kind != find_known_type(other):
                continue
            found = source.block.find_output(own.name)
            if isinstance(found, SourceColumn) and not _reads_source(source, [other], ()):
                compared.add((found.source, found.name))
    return all(isinstance(k, SourceColumn) and (k.source, k.name) in compared for k in group.keys)


def _takes_filters(block: QueryBlock) -> bool:
    """Whether a filter of a block's rows may come before the other steps of the block."""
    return not (block.limits or block.order or block.generators or block.has_star)


def _replace_columns(term: Term, results: list[Term]) -> Term:
    """Replaces the columns of a condition, whose names are places, by the results there."""
    if isinstance(term, SourceColumn):
        return results[int(term.name)]
    if isinstance(term, NestedQuery):
        return term
    parts = tuple(_replace_columns(part, results) for part in term.parts)
    return TermOperation(term.op, parts, term.order, ordered=term.ordered)


def _is_of_keys(term: Term) -> bool:
    """Whether a condition on groups only uses their keys: it has no aggregate."""
    return not is_aggregated(term) and not any(
        isinstance(item, NestedQuery) for item in walk_term(term)
    )


def may_merge(block: QueryBlock, role: SourceRole) -> bool:
    """Whether the SELECT that reads a query can take over its sources and conditions."""
    if not block.is_simple:
        return False
    if role == "inner":
        return True
    if block.part.only_source is None:
        return False
    # If there is no match, a column is NULL, but a value that is computed from NULLs may not be.
    is_plain = all(isinstance(term, SourceColumn) for term in block.outputs.values())
    return is_plain and (role == "hung" or not block.part.where)


def find_only_table(part: SourcePart) -> str:
    """Returns the name of the table that a part only reads; empty if the part does more."""
    only = part.only_source if not part.where else None
    return only.name if isinstance(only, TableRead) else ""


def may_stand_for(block: QueryBlock, select: exp.Select, own: ClauseMentions) -> bool:
    """Whether `select` only filters and chooses results of the query that it reads."""
    if own.aggregates or own.windows or own.generators:
        return False
    if any(select.args.get(name) for name in ("group", "having", "qualify", "distinct")):
        return False
    if select.args.get("where") is not None and (block.limits or block.generators):
        return False
    shapes = any(select.args.get(n) for n in ("hint", "order", "limit", "offset", *LAYOUT))
    return not shapes or not (block.order or block.limits or block.layout or block.generators)
