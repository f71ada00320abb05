"""The SELECTs of a query for rules: the parts that each reads, joins, requires and returns.

SQLGlot's scopes find the tables and queries that names mean. Rules need the nodes of the tree, for
texts and positions, but the blocks of `equivalence` have none. So this module reads scopes, and no
other module does. It adds what scopes leave out: names in other letters, the columns of a set
operation by their places, lists of aliases, joins in brackets, and the conditions that still hold
after an outer join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeGuard

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from ci_bot.worker.sql.joins import (
    RowParts,
    ScopedJoin,
    enter_brackets,
    find_outer_join,
    iterate_joins,
    list_joins_in_brackets,
    list_row_parts,
    split_conditions,
)
from ci_bot.worker.sqlmesh_compat import FROM

# A column of a table, whose name is catalog.db.name; the table is empty if it is unknown.
ColumnOrigin = tuple[str, str]
# A value is followed through at most this many queries.
_MOST_LEVELS = 40


class ScopedQuery:
    """A query whose names are resolved; also VALUES, and a call that generates rows.

    Without a scope the query is not known: then it is false, and it lists nothing.

    Attributes:
        names: the names by which its reader calls the columns, in lower case; empty if they keep
            their own.
    """

    def __init__(self, scope: Scope | None, names: Sequence[str], known: _KnownQueries) -> None:
        while scope is not None:
            names = names or scope.outer_columns
            is_around = isinstance(scope.expression, exp.Subquery | exp.Lateral)
            if not is_around or not scope.subquery_scopes:
                break
            scope = scope.subquery_scopes[0]
        self.names = tuple(name.lower() for name in names)
        self._scope = scope
        self._known = known
        self._origins: dict[str, set[ColumnOrigin]] = {}

    def __bool__(self) -> bool:
        return self._scope is not None

    @property
    def expression(self) -> exp.Expr | None:
        return self._scope.expression if self._scope is not None else None

    @cached_property
    def selects(self) -> tuple[ScopedSelect, ...]:
        """All SELECTs, inner ones first."""
        every = (one for one in self._scopes if isinstance(one.expression, exp.Select))
        return tuple(map(self._known.find_select, every))

    @property
    def set_operations(self) -> Iterator[ScopedQuery]:
        """All UNIONs, EXCEPTs and INTERSECTs, inner ones first."""
        return (self._known.find_query(one) for one in self._scopes if one.union_scopes)

    @property
    def _scopes(self) -> Iterable[Scope]:
        return self._scope.traverse() if self._scope is not None else ()

    @cached_property
    def sides(self) -> tuple[ScopedQuery, ...]:
        """The two queries that a set operation combines, with one list of names."""
        if self._scope is None or not self._scope.union_scopes:
            return ()
        left, right = self._scope.union_scopes
        first = self._known.find_query(left, self.names)
        is_by_name = self._scope.expression.args.get("by_name")
        names = () if is_by_name or not first.branches else first.branches[0].names
        return first, self._known.find_query(right, names)

    @cached_property
    def branches(self) -> tuple[ScopedSelect, ...]:
        """The SELECTs whose rows are in the result: one, or those of a UNION.

        An EXCEPT only has rows of its left side.
        """
        if self._scope is None:
            return ()
        if self.sides:
            kept = self.sides[: 1 if isinstance(self.expression, exp.Except) else 2]
            return tuple(branch for side in kept for branch in side.branches)
        if isinstance(self.expression, exp.Select):
            return (self._known.find_select(self._scope, self.names),)
        return ()

    @property
    def only_branch(self) -> ScopedSelect | None:
        """The SELECT that gives all rows; None for a UNION."""
        return self.branches[0] if len(self.branches) == 1 else None

    def find_origins(self, name: str) -> set[ColumnOrigin]:
        """Finds the columns of stored tables from which a result column is computed."""
        name = name.lower()
        if name not in self._origins:
            found: set[ColumnOrigin] = set()
            for branch in self.branches:
                found |= self._known.find_result_origins(branch, name)
            self._origins[name] = found
        return self._origins[name]


# The meaning of a name after FROM.
SelectSource = exp.Table | ScopedQuery


class ScopedSelect:
    """One SELECT.

    Attributes:
        node: the SELECT in the tree.
    """

    def __init__(self, scope: Scope, names: Sequence[str], known: _KnownQueries) -> None:
        self.node: exp.Select = scope.expression.assert_is(exp.Select)
        self._scope = scope
        self._names = names
        self._known = known

    @cached_property
    def results(self) -> tuple[tuple[str, exp.Expr], ...]:
        """The result columns: the name in lower case, and the expression without its alias."""
        own: list[tuple[str, exp.Expr]] = []
        for item in self.node.expressions:
            if isinstance(item, exp.Aliases):  # a call that gives several columns
                own += [(alias.name.lower(), item.this) for alias in item.expressions]
            else:
                own.append((item.alias_or_name.lower(), item.unalias()))
        # After a star, the place of a column is not known.
        given = () if any(item.is_star for _, item in own) else self._names
        names = [*given, *(name for name, _ in own[len(given) :])]
        return tuple(zip(names, (item for _, item in own), strict=False))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the result columns."""
        return tuple(name for name, _ in self.results)

    def find_result(self, name: str) -> exp.Expr | None:
        """Returns the expression of a result column, without its alias; None if there is none."""
        wanted = name.lower()
        return next((item for known, item in self.results if known == wanted), None)

    @cached_property
    def start(self) -> exp.Expr | None:
        """The first source; None without FROM."""
        from_ = self.node.args.get(FROM)
        return enter_brackets(from_.this) if from_ is not None else None

    @cached_property
    def _outer_joins(self) -> list[exp.Join]:
        """The joins after the first source, without those in the brackets of another source."""
        from_ = self.node.args.get(FROM)
        nested = list_joins_in_brackets(from_.this) if from_ is not None else []
        return [*nested, *(self.node.args.get("joins") or ())]

    @cached_property
    def joins(self) -> tuple[ScopedJoin, ...]:
        """The joins in their order, also those in brackets."""
        return tuple(iterate_joins(self._outer_joins))

    @property
    def laterals(self) -> list[exp.Expr]:
        """The LATERAL VIEWs."""
        return list(self.node.args.get("laterals") or ())

    def list_row_parts(self) -> list[RowParts]:
        """Lists the parts of a row before WHERE; a FULL JOIN gives several kinds of rows."""
        return list_row_parts(self.start, self._outer_joins) if self.start is not None else []

    def list_conditions(self) -> list[exp.Expr]:
        """Lists the conditions that are true for each row of the result, split at AND."""
        rows = self.list_row_parts()
        joined = rows[0].conditions if len(rows) == 1 else ()
        return [*joined, *self.list_clause_conditions("where", "having", "qualify")]

    def list_clause_conditions(self, *clauses: str) -> list[exp.Expr]:
        """Lists the conditions of WHERE and similar clauses, split at AND."""
        held = [self.node.args.get(clause) for clause in clauses]
        return [part for one in held if one is not None for part in split_conditions(one.this)]

    def find_outer_join(self, alias: str) -> str:
        """Finds the outer join that may leave a source without a match; empty if none does."""
        if self.start is None:
            return ""
        first = {self.start.alias_or_name.lower()}
        return find_outer_join(first, self._outer_joins, alias.lower())

    @property
    def groups_by_sets(self) -> bool:
        """Whether GROUP BY has several lists of keys: ROLLUP, CUBE or GROUPING SETS."""
        group = self.node.args.get("group")
        return group is not None and any(
            value for name, value in group.args.items() if name not in {"expressions", "all"}
        )

    def list_group_keys(self) -> list[exp.Expr]:
        """Lists the keys of GROUP BY; for a position or the name of a result, its expression."""
        group = self.node.args.get("group")
        if group is None:
            return []
        items = [item.unalias() for item in self.node.expressions]
        if group.args.get("all"):
            return [item for item in items if item.find(exp.AggFunc) is None]
        named = {item.alias.lower(): item.unalias() for item in self.node.expressions}
        found: list[exp.Expr] = []
        for node in group.expressions:
            key = node.unnest()
            if isinstance(key, exp.Literal) and not key.is_string:
                found += items[int(key.name) - 1 : int(key.name)]
            elif isinstance(key, exp.Column) and not key.table:
                found.append(named.get(key.name.lower(), key))
            else:
                found.append(key)
        return found

    @cached_property
    def sources(self) -> dict[str, SelectSource]:
        """The sources that FROM, joins and LATERAL VIEW name, by alias in lower case."""
        found: dict[str, SelectSource] = {}
        for alias, node in self._scope.references:
            source = self._read_source(alias)
            if source is None:
                continue
            named = node.args.get("alias") if isinstance(node, exp.Table) else None
            columns = [column.name for column in named.columns] if named is not None else []
            found[alias.lower()] = (
                self._known.find_query(source, columns) if isinstance(source, Scope) else source
            )
        return found

    def _read_source(self, alias: str) -> exp.Table | Scope | None:
        source = self._scope.sources.get(alias)
        if isinstance(source, exp.Table) and not source.db:
            # SQLGlot compares the names of CTEs with their capital letters.
            ctes = {name.lower(): cte for name, cte in self._scope.cte_sources.items()}
            return ctes.get(source.name.lower(), source)
        return source

    @cached_property
    def pivoted(self) -> frozenset[str]:
        """The sources with a PIVOT, which makes other rows and columns of them."""
        every = self._scope.references
        return frozenset(alias.lower() for alias, node in every if node.args.get("pivots"))

    @property
    def read_sources(self) -> dict[str, SelectSource]:
        """The sources whose columns the SELECT can return."""
        asked = {join.alias for join in self.joins if not join.adds_columns}
        return {alias: source for alias, source in self.sources.items() if alias not in asked}

    def find_table(self, alias: str) -> exp.Table | None:
        """Finds the stored table that an alias means; None for a query."""
        source = self.sources.get(alias.lower())
        return source if isinstance(source, exp.Table) else None

    def find_source(self, column: exp.Column) -> SelectSource | None:
        """Finds the source of a column; None if unknown. A subquery may read sources around it."""
        if not column.table:
            return None if self.pivoted else self._find_unqualified_source(column.name.lower())
        alias = column.table.lower()
        for reader in (self, *self.iterate_selects_around()):
            if alias in reader.sources:
                return None if alias in reader.pivoted else reader.sources[alias]
        return None

    def _find_unqualified_source(self, name: str) -> SelectSource | None:
        made = [one for one in self.read_sources.values() if _makes_rows(one)]
        named = next((one for one in made if name in one.names), None)
        others = [one for one in self.read_sources.values() if one not in made]
        return named or (others[0] if len(others) == 1 else None)

    def iterate_selects_around(self) -> Iterator[ScopedSelect]:
        """Yields the SELECTs whose sources a subquery may also read."""
        scope = self._scope
        while scope.can_be_correlated and scope.parent is not None:
            scope = scope.parent
            if isinstance(scope.expression, exp.Select):
                yield self._known.find_select(scope)

    def find_nested(self, query: exp.Expr) -> ScopedQuery:
        """Returns a subquery, such as the list of IN."""
        wanted = query.unnest()
        below = (one for one in self._scope.traverse() if one.expression is wanted)
        return self._known.find_query(next(below, None))

    def find_all(self, *types: Any) -> Iterator[Any]:
        """Yields the nodes of some types in the SELECT itself, without those of subqueries."""
        return self._scope.find_all(*types)

    @property
    def columns(self) -> list[exp.Column]:
        """The columns that are read from the sources, also by subqueries."""
        return self._scope.columns

    def find_result_origins(self, name: str) -> set[ColumnOrigin]:
        """Finds the columns of stored tables from which a result column is computed."""
        item = self.find_result(name)
        if item is not None:
            return self.find_origins(item)
        stars = [item for item in self.node.expressions if item.is_star]
        found = self._trace_pivots(name) if stars else set()
        for alias, source in self.read_sources.items():
            if any(not item.text("table") or item.text("table").lower() == alias for item in stars):
                found |= self._trace_source(source, name)
        return found

    def find_origins(self, node: exp.Expr) -> set[ColumnOrigin]:
        """Finds the columns of stored tables from which a value is computed.

        CTEs and subqueries are followed to the tables below. Columns that a subquery only compares
        are not part of its value.
        """
        found: set[ColumnOrigin] = set()
        for column in node.find_all(exp.Column):
            inner = column.find_ancestor(exp.Select)
            if inner is None or inner is self.node:
                found |= self._find_origin(column)
            elif _is_returned(column, inner):
                for branch in self.find_nested(inner).branches or (self,):
                    found |= branch._find_origin(column)
        return found

    def _find_origin(self, column: exp.Column) -> set[ColumnOrigin]:
        name, source = column.name.lower(), self.find_source(column)
        found = self._trace_source(source, name) if source is not None else self._trace_pivots(name)
        return found or {("", name)}

    def _trace_source(self, source: SelectSource, name: str) -> set[ColumnOrigin]:
        if isinstance(source, exp.Table):
            alias = source.args.get("alias")
            return set() if alias is not None and alias.columns else {(table_name(source), name)}
        if isinstance(source.expression, exp.Lateral):
            return self.find_origins(source.expression.this)
        return source.find_origins(name)

    def _trace_pivots(self, name: str) -> set[ColumnOrigin]:
        """Finds the origins of a column after a PIVOT: perhaps all that the PIVOT reads."""
        found: set[ColumnOrigin] = set()
        for alias, node in self._scope.references:
            pivots, source = node.args.get("pivots") or (), self._read_source(alias)
            computed = {
                column.name.lower()
                for pivot in pivots
                for part in (pivot.args["fields"] if pivot.unpivot else pivot.expressions)
                for column in part.find_all(exp.Column)
            }
            if pivots and source is not None:
                below = self._known.find_query(source) if isinstance(source, Scope) else source
                for each in {name, *computed}:
                    found |= self._trace_source(below, each)
        return found


class _KnownQueries:
    """The queries of one tree, each only once, because many SELECTs may read one CTE."""

    def __init__(self) -> None:
        self._queries: dict[tuple[Scope | None, tuple[str, ...]], ScopedQuery] = {}
        self._selects: dict[tuple[Scope, tuple[str, ...]], ScopedSelect] = {}
        self._depth = 0

    def find_select(self, scope: Scope, names: Sequence[str] = ()) -> ScopedSelect:
        key = scope, tuple(names)
        if key not in self._selects:
            self._selects[key] = ScopedSelect(scope, names, self)
        return self._selects[key]

    def find_query(self, scope: Scope | None, names: Sequence[str] = ()) -> ScopedQuery:
        key = scope, tuple(names)
        if key not in self._queries:
            self._queries[key] = ScopedQuery(scope, names, self)
        return self._queries[key]

    def find_result_origins(self, branch: ScopedSelect, name: str) -> set[ColumnOrigin]:
        if self._depth >= _MOST_LEVELS:
            return set()
        self._depth += 1
        try:
            return branch.find_result_origins(name)
        finally:
            self._depth -= 1


def read_selects(query: exp.Expr | None) -> ScopedQuery:
    """Resolves the names of a query; if it is None or of an unknown form, nothing is known."""
    scope = None
    if isinstance(query, exp.Query):
        try:
            scope = build_scope(query)
        except Exception:  # a tree of an unforeseen shape
            scope = None
    return ScopedQuery(scope, (), _KnownQueries())


def table_name(table: exp.Table) -> str:
    """Returns the table as catalog.db.name, in lower case, without quotes and alias."""
    return ".".join(part.name.lower() for part in table.parts)


def _makes_rows(source: SelectSource) -> TypeGuard[ScopedQuery]:
    """Whether a source is neither a stored table nor a query: VALUES, or a call."""
    return isinstance(source, ScopedQuery) and not source.branches


def _is_returned(column: exp.Column, select: exp.Select) -> bool:
    """Whether a column of a subquery is a part of its value."""
    node: exp.Expr = column
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return node.arg_key == "expressions"
