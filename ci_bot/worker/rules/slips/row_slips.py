"""Rows that are there twice, and keys that a row of one side of a join lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import quote_names
from ci_bot.worker.rules.models.declared_keys import (
    find_column_alias_and_name,
    iterate_equalities,
    list_column_aliases_and_names,
    list_unique_keys,
)
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.sql import ModelQuery, ScopedQuery, ScopedSelect, SelectSource, table_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_MOST_LEVELS = 12
_NUMBERING = (exp.RowNumber, exp.Uuid)
_ADDING = (exp.Sum, exp.Count, exp.Avg)
# Clauses that make one row of several, and those that leave some out.
_MERGING = ("group", "distinct", "having")
_CHOOSING = ("limit", "offset", "qualify", "sample")


def iterate_row_slips(model: Model, query: ModelQuery, project: ProjectView) -> Iterator[QuerySlip]:
    """Yields what repeats rows of a query, and what leaves them without a key."""
    if not _may_merge_rows(query):
        for operation in query.root.set_operations:
            yield from _iterate_overlapping_branches(operation, project)
    keys = list_unique_keys(model)
    for select in query.root.selects:
        yield from _iterate_idle_distincts(select)
        yield from _iterate_keys_of_one_side(select, frozenset().union(*keys))
        yield from _iterate_meeting_gaps(select)
        yield from _iterate_blind_subqueries(select, project)
        yield from _iterate_ranks_with_ties(select, keys)


def _may_merge_rows(query: ModelQuery) -> bool:
    """Whether the query may make one row of equal ones, without counting them."""
    tree = query.rendered_tree
    merges = any(select.node.args.get("distinct") for select in query.root.selects)
    is_grouped = tree.has_any(exp.Group) and not tree.has_any(*_ADDING)
    return merges or is_grouped or tree.has_any(exp.RowNumber)


# Branches of UNION ALL that read the same rows of one table.


@dataclass(frozen=True)
class _PassedRows:
    """Rows that a query passes on from a table or a query below.

    Attributes:
        table: its name; empty for a query.
        values: columns of that table, or constants, in the order of the result.
        conditions: what the rows meet, in columns of that table.
        is_whole: whether all rows that meet the conditions are passed on, and once.
    """

    table: str
    values: tuple[exp.Expr, ...]
    conditions: frozenset[exp.Expr]
    is_whole: bool

    def holds_rows_of(self, other: _PassedRows) -> bool:
        """Whether each row of the other one is here, too."""
        return (
            self.is_whole
            and bool(self.table)
            and self.table == other.table
            and self.values == other.values
            and self.conditions <= other.conditions
        )


def _iterate_overlapping_branches(
    operation: ScopedQuery, project: ProjectView
) -> Iterator[QuerySlip]:
    node = operation.expression
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        return
    left, right = (
        [one for branch in side.branches for one in _iterate_passed(branch, project)]
        for side in operation.sides
    )
    for one, other in product(left, right):
        if one.holds_rows_of(other) or other.holds_rows_of(one):
            yield QuerySlip(
                node.expression,
                f"in UNION ALL has rows of `{project.name_of_table(one.table)}` that the other "
                "branch has, too, so they are there twice",
                "the conditions of the branches exclude each other, or UNION keeps one of them",
            )
            return


def _iterate_passed(branch: ScopedSelect, project: ProjectView) -> Iterator[_PassedRows]:
    """Yields the tables of which a SELECT passes rows on, the nearest first."""
    names: tuple[str, ...] = branch.names
    rows = _PassedRows("", tuple(exp.column(name) for name in names), frozenset(), True)
    select: ScopedSelect | None = branch
    for _ in range(_MOST_LEVELS):
        source = _find_passed_source(select) if select is not None else None
        if select is None or source is None:
            return
        alias, below = source
        below_rows = _pass_rows(rows, select, alias, below)
        if below_rows is None:
            return
        rows = below_rows
        if isinstance(below, exp.Table):
            yield rows
            model = project.by_table.get(table_name(below))
            # The rows of other kinds are those of many runs.
            is_one_run = model is not None and (model.kind.is_full or model.kind.is_view)
            query = project.queries.query_of(model) if model is not None and is_one_run else None
            if query is None:
                return
            below = query.root
        select = below.only_branch


def _find_passed_source(select: ScopedSelect) -> tuple[str, SelectSource] | None:
    """Finds the only source that gives a SELECT its columns, if the SELECT has rows of it."""
    if any(select.node.args.get(name) for name in _MERGING) or select.laterals or select.pivoted:
        return None
    values = [value for _, value in select.results]
    if any(value.find(exp.AggFunc, exp.Window, exp.Explode) for value in values):
        return None
    aliases = {column.table.lower() for value in values for column in value.find_all(exp.Column)}
    alias = next(iter(aliases)) if len(aliases) == 1 else ""
    if alias not in select.read_sources or select.find_outer_join(alias):
        return None
    return alias, select.sources[alias]


def _pass_rows(
    rows: _PassedRows, select: ScopedSelect, alias: str, source: SelectSource
) -> _PassedRows | None:
    """Says in columns of a source what is known of rows that a SELECT makes of it."""
    made = {name: _unqualify_columns(value) for name, value in select.results}
    if any(
        column.name.lower() not in made
        for value in rows.values
        for column in value.find_all(exp.Column)
    ):
        return None
    values = tuple(_replace_columns(value, made) for value in rows.values)
    conditions = {_replace_columns(one, made) for one in rows.conditions}
    is_whole = rows.is_whole and not select.joins
    is_whole = is_whole and not any(select.node.args.get(name) for name in _CHOOSING)
    for part in select.list_clause_conditions("where"):
        if {owner for owner, _ in list_column_aliases_and_names(part)} == {alias} and not part.find(
            exp.Query
        ):
            conditions.add(_unqualify_columns(part.unnest()))
        else:
            is_whole = False
    name = table_name(source) if isinstance(source, exp.Table) else ""
    return _PassedRows(name, values, frozenset(conditions), is_whole)


def _replace_columns(node: exp.Expr, made: Mapping[str, exp.Expr]) -> exp.Expr:
    """Writes what a query makes for the names of its columns."""
    return node.transform(
        lambda one: made.get(one.name.lower(), one).copy() if isinstance(one, exp.Column) else one
    )


def _unqualify_columns(node: exp.Expr) -> exp.Expr:
    """Returns the expression with its columns in lower case and without the names of tables."""
    return node.transform(
        lambda one: exp.column(one.name.lower()) if isinstance(one, exp.Column) else one
    )


def _iterate_idle_distincts(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields a DISTINCT that no row is equal for, because each has a number of its own."""
    if select.node.args.get("distinct") is None:
        return
    for _, value in select.results:
        made = value.this if isinstance(value, exp.Window) else value
        if isinstance(made, _NUMBERING):
            yield QuerySlip(
                value,
                "is another value in each row, so DISTINCT beside it removes none",
                "DISTINCT is in a query of its own, or a condition picks one number",
            )


# Keys of joins.


def _iterate_keys_of_one_side(select: ScopedSelect, keys: Collection[str]) -> Iterator[QuerySlip]:
    """Yields keys that are NULL in the rows which an outer join keeps of the other side."""
    tested = {
        place
        for part in select.list_clause_conditions("where", "having")
        for place in list_column_aliases_and_names(part)
    }
    shown = {place for _, value in select.results for place in list_column_aliases_and_names(value)}
    pairs = [
        (next(iter(sides)), own)
        for join in select.joins
        if join.node.side
        for own, sides in iterate_equalities(join.conditions)
        if len(sides) == 1
    ]
    for name, value in select.results:
        if not isinstance(value, exp.Column) or find_column_alias_and_name(value) in tested:
            continue
        kept = select.find_outer_join(value.table)
        others = {other for other, own in pairs if own == find_column_alias_and_name(value)}
        if not kept or not others or others & (shown | tested):
            continue
        if kept == "FULL JOIN" or name in keys:
            other = quote_names(sorted(alias for alias, _ in others))
            yield QuerySlip(
                value,
                f"is NULL in each row that only {other} has: the outer join keeps these rows, and "
                "the query shows no other column of the key",
                "COALESCE takes the key of either side, or the join is an INNER JOIN",
            )


def _iterate_meeting_gaps(select: ScopedSelect) -> Iterator[QuerySlip]:
    """Yields joins in which all rows without a key meet each other."""
    for join in select.joins:
        parts = [part.unnest() for part in join.conditions]
        if len(parts) != 1 or not isinstance(parts[0], exp.EQ):
            continue
        sides = [parts[0].this.unnest(), parts[0].expression.unnest()]
        if not all(isinstance(side, exp.Coalesce) for side in sides):
            continue
        ends = [side.expressions[-1].unnest() for side in sides]
        if ends[0] == ends[1] and ends[0].find(exp.Literal) and not ends[0].find(exp.Column):
            yield QuerySlip(
                parts[0],
                "lets each row without a key meet every row without a key of the other side",
                "the join compares the columns themselves",
            )


def _iterate_blind_subqueries(select: ScopedSelect, project: ProjectView) -> Iterator[QuerySlip]:
    """Yields IN and EXISTS that are the same for each row, or compare a row with itself."""
    for node in select.find_all(exp.In, exp.Exists):
        inner = node.args.get("query") if isinstance(node, exp.In) else node.this
        nested = (
            select.find_nested(inner).only_branch if isinstance(inner, exp.Expression) else None
        )
        if nested is None or not nested.sources:
            continue
        values = [value for _, value in nested.results] if isinstance(node, exp.In) else []
        returned = {column.table.lower() for one in values for column in one.find_all(exp.Column)}
        read = {column.table.lower() for column in nested.node.find_all(exp.Column)}
        if returned and "" not in returned and returned.isdisjoint(nested.sources):
            yield QuerySlip(
                node,
                "lists a value of the outer row itself, so it is true for each row",
                "the subquery returns a column of its own table",
            )
        elif isinstance(node, exp.Exists) and read and read <= nested.sources.keys():
            shared = _list_columns(nested, project) & _list_columns(select, project)
            if any(name.endswith("_id") for name in shared):
                yield QuerySlip(
                    node,
                    "reads nothing of the outer row, so it is the same for all of them",
                    f"a condition compares {quote_names(sorted(shared)[:1])} of both",
                )


def _list_columns(select: ScopedSelect, project: ProjectView) -> frozenset[str]:
    """Lists the columns of all tables that a SELECT reads."""
    tables = [one for one in select.sources.values() if isinstance(one, exp.Table)]
    return frozenset().union(*(project.columns_of(table_name(one)) or () for one in tables))


def _iterate_ranks_with_ties(
    select: ScopedSelect, keys: Sequence[frozenset[str]]
) -> Iterator[QuerySlip]:
    """Yields RANK where one row of each key is wanted: rows that are equal in its order share 1."""
    for name, value in _list_ranks(select):
        by = value.args.get("partition_by") or []
        columns = {part.name.lower() for part in by if isinstance(part, exp.Column)}
        if columns and len(columns) == len(by) and columns in keys and _is_first_kept(select, name):
            yield QuerySlip(
                value,
                "gives 1 to all rows that are equal in its order, and the key says that one stays",
                "ROW_NUMBER is used, in an order without ties",
            )


def _list_ranks(select: ScopedSelect) -> list[tuple[str, exp.Window]]:
    found = [
        (node.parent.alias.lower() if isinstance(node.parent, exp.Alias) else "", node)
        for node in select.find_all(exp.Window)
    ]
    return [(name, node) for name, node in found if isinstance(node.this, exp.Rank | exp.DenseRank)]


def _is_first_kept(select: ScopedSelect, name: str) -> bool:
    """Whether some condition of the query keeps the rows with the rank 1."""
    root = select.node.root()
    return any(
        isinstance(test.expression, exp.Literal)
        and test.expression.name == "1"
        and (test.this.name.lower() == name or isinstance(test.this.unnest(), exp.Window))
        for test in root.find_all(exp.EQ)
    )
