"""Keys: the columns that identify a row, and facts of the project that contradict such a key.

Grains, unique keys and audits declare keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import quote_names
from ci_bot.worker.sql import (
    ModelQueries,
    ModelQuery,
    ScopedJoin,
    ScopedSelect,
    enter_expression,
    list_column_names,
    plain_name,
    read_audit_promises,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# A table's alias and its column, in lower case.
Place = tuple[str, str]
_RANGES = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_BOTH_ENDS = 2
_VALIDITY = {"valid_from", "valid_to"}


def list_grains(model: Model) -> list[frozenset[str]]:
    """Lists the declared grains, each a set of columns."""
    return [frozenset(list_column_names(grain)) for grain in model.grains]


def list_unique_keys(model: Model | None) -> list[frozenset[str]]:
    """Lists sets of columns that identify a row, by the model's own declarations and audits.

    Empty for None.
    """
    if model is None:
        return []
    found = set(list_grains(model)) | set(read_audit_promises(model).unique)
    if model.unique_key and not model.kind.is_scd_type_2:
        found.add(frozenset(list_column_names(model.unique_key)))
    return sorted((key for key in found if key), key=sorted)


def iterate_equalities(
    conditions: Iterable[exp.Expr],
) -> Iterator[tuple[Place, frozenset[Place]]]:
    """Yields columns that conditions make equal to something, with columns of the other side."""
    for condition in conditions:
        part = condition.unnest()
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            for side, other in ((part.this, part.expression), (part.expression, part.this)):
                column = side.unnest()
                if isinstance(column, exp.Column):
                    owner = find_column_alias_and_name(column)
                    places = frozenset(list_column_aliases_and_names(other))
                    if owner[0] not in {alias for alias, _ in places}:
                        yield owner, places
        elif isinstance(part, exp.Is) and isinstance(part.this, exp.Column):
            # valid_to IS NULL selects the current row of a history.
            alias, name = find_column_alias_and_name(part.this)
            for one in {name, *_VALIDITY}:
                yield (alias, one), frozenset()


def find_column_alias_and_name(column: exp.Column) -> Place:
    """Returns the alias and the name of a column, in lower case."""
    return column.table.lower(), column.name.lower()


def list_column_aliases_and_names(node: exp.Expr) -> set[Place]:
    """Returns the places of all columns in an expression."""
    return set(map(find_column_alias_and_name, node.find_all(exp.Column)))


def list_fixed_columns(join: ScopedJoin) -> frozenset[str]:
    """Lists columns of a join's partner that the join compares for equality, without a function."""
    found = (place for place, _ in iterate_equalities(join.conditions))
    return frozenset({*join.using, *(name for alias, name in found if alias == join.alias)})


def may_model_deduplicate(query: ModelQuery | None) -> bool:
    """Whether the query may combine several rows into one; true if there is no query."""
    return query is None or query.tree.has_any(exp.Group, exp.RowNumber, exp.Distinct)


def find_multiplying_join(
    query: ModelQuery | None, key: Collection[str], by_table: Mapping[str, Model]
) -> str | None:
    """Finds a joined table that may multiply rows with one key; None if there is none.

    The key has no column of the table, and no declared key shows that only one row joins.
    """
    for branch in query.root.branches if query is not None else ():
        for join, source in _iterate_partners_of_key(branch, key):
            fixed = list_fixed_columns(join)
            keys = list_unique_keys(by_table.get(table_name(source)))
            if not any(one <= fixed for one in keys):
                return str(source.name)
    return None


def _iterate_partners_of_key(
    branch: ScopedSelect, key: Collection[str]
) -> Iterator[tuple[ScopedJoin, exp.Table]]:
    """Yields joins that may give several rows, with their stored tables.

    The key has no column of these tables.
    """
    items = filter(None, map(branch.find_result, key))
    read = {alias for item in items for alias, _ in list_column_aliases_and_names(item)}
    for join in branch.joins:
        table = branch.find_table(join.alias)
        if not join.adds_columns or join.alias in read or table is None:
            continue
        if not keeps_only_unmatched(branch, join):
            yield join, table


def keeps_only_unmatched(select: ScopedSelect, join: ScopedJoin) -> bool:
    """Whether WHERE leaves only rows without a partner: a LEFT JOIN with `key IS NULL`."""
    compared = {place for place, _ in iterate_equalities(join.conditions)}
    return join.node.side == "LEFT" and any(
        isinstance(part.unnest(), exp.Is)
        and isinstance(part.unnest().expression, exp.Null)
        and isinstance(part.unnest().this, exp.Column)
        and find_column_alias_and_name(part.unnest().this) in compared
        and part.unnest().this.table.lower() == join.alias
        for part in select.list_clause_conditions("where")
    )


class KeyContradictions:
    """Contradictions between a declared key of a model and the joins and sources of its query.

    Only declarations count: a partner or a source without a declared key contradicts nothing.
    """

    def __init__(self, by_table: Mapping[str, Model], queries: ModelQueries) -> None:
        self._by_table = by_table
        self._queries = queries
        self._inferred: Mapping[str, list[frozenset[str]]] | None = None

    def describe_join(self, model: Model, key: Collection[str]) -> str | None:
        """Describes a join by which several rows may have one key; None if there is none."""
        branch = self._find_branch(model, key)
        if branch is None:
            return None
        for join, source in _iterate_partners_of_key(branch, key):
            keys = list_unique_keys(self._by_table.get(table_name(source)))
            fixed = list_fixed_columns(join) | _list_fixed_by_filter(branch, join.alias)
            if keys and not any(one <= fixed for one in keys) and not is_range_join(join):
                smallest = min(keys, key=len)
                return (
                    f"`{source.name}` has a row for each {quote_names(smallest)}, and "
                    f"the join fixes {quote_names(fixed) or 'none of it'}, so one row may meet "
                    "several"
                )
        return None

    def describe_groups(self, model: Model, key: Collection[str]) -> str | None:
        """Describes groups by more columns than the key; None if the key has each group column."""
        query = self._queries.query_of(model)
        branch = query.root.only_branch if query is not None else None
        if branch is None or branch.groups_by_sets or branch.node.args.get("qualify"):
            return None
        shown = {item: name for name, item in branch.results}
        more = [shown.get(part) for part in branch.list_group_keys()]
        left = sorted({name for name in more if name is not None and name not in key})
        fixed = _list_fixed_by_filter(branch, None)
        if not left or None in more or not set(key) <= set(more) or fixed & set(left):
            return None
        return f"the query has a row for each group of {quote_names([*sorted(key), *left])}"

    def describe_source(self, model: Model, key: Collection[str]) -> str | None:
        """Describes a source in which several rows may have one key; None if there is none."""
        branch = self._find_branch(model, key)
        source = self._find_row_table(branch, key) if branch is not None else None
        if branch is None or source is None:
            return None
        items = [item for name in key if (item := branch.find_result(name)) is not None]
        if len(items) < len(key):
            return None
        held = _list_columns_held(branch, source.alias_or_name.lower(), items)
        held |= _list_fixed_by_filter(branch, None)
        keys = self._list_source_keys(table_name(source))
        if not keys or any(one <= held for one in keys):
            return None
        smallest = min(keys, key=len)
        return f"`{source.name}` has a row for each {quote_names(smallest)}"

    def _find_row_table(self, branch: ScopedSelect, key: Collection[str]) -> exp.Table | None:
        """Finds the stored table whose rows a query passes on, each once; None without one.

        A join to a table by a whole key of it adds columns to each row. An inner join that compares
        more of the row may choose one of several rows.
        """
        if not branch.joins:
            return _find_only_table(branch)
        if branch.start is None or _may_make_rows(branch):
            return None
        first = branch.start.alias_or_name.lower()
        for join in branch.joins:
            table = branch.find_table(join.alias)
            keys = list_unique_keys(self._by_table.get(table_name(table))) if table else []
            if not any(one <= list_fixed_columns(join) for one in keys):
                return None
            if join.node.side not in {"", "LEFT"}:
                return None
            mine = {
                name
                for part in join.conditions
                for alias, name in list_column_aliases_and_names(part)
                if alias == first
            } | set(join.using)
            compared = _list_key_columns_of(branch, first, key)
            if join.node.side != "LEFT" and not mine <= compared:
                return None
        return branch.find_table(first)

    def _find_branch(self, model: Model, key: Collection[str]) -> ScopedSelect | None:
        """Finds the only SELECT that gives the model's rows, if it keeps each row that it reads."""
        query = self._queries.query_of(model)
        if query is None or may_model_deduplicate(query) or not key:
            return None
        return query.root.only_branch

    def _list_source_keys(self, table: str) -> list[frozenset[str]]:
        """Lists a table's declared keys, or those audited in models that pass its rows on."""
        declared = list_unique_keys(self._by_table.get(table))
        if declared:
            return declared
        if self._inferred is None:
            self._inferred = self._infer_source_keys()
        return self._inferred.get(plain_name(table)) or self._list_keys_by_name(table)

    def _list_keys_by_name(self, table: str) -> list[frozenset[str]]:
        """Lists the key that the names of an external table show: `tickets` with a `ticket_id`."""
        model = self._by_table.get(table)
        if model is None or not model.kind.is_external:
            return []
        name = f"{make_singular(plain_name(table).rpartition('.')[2].strip('`'))}_id"
        columns = {column.lower() for column in model.columns_to_types or ()}
        return [frozenset({name})] if name in columns else []

    def _infer_source_keys(self) -> dict[str, list[frozenset[str]]]:
        found: dict[str, set[frozenset[str]]] = {}
        for model in {id(model): model for model in self._by_table.values()}.values():
            if model.kind.is_external or model.kind.is_seed or model.kind.is_scd_type_2:
                continue
            query = self._queries.query_of(model)
            branch = query.root.only_branch if query is not None else None
            source = _find_only_table(branch) if branch is not None else None
            if branch is None or source is None or may_model_deduplicate(query):
                continue
            # A grain is a claim, and an audit is proof.
            for key in read_audit_promises(model).unique:
                columns = _map_key_to_source(branch, key)
                if columns:
                    found.setdefault(table_name(source), set()).add(columns)
        return {table: sorted(keys, key=sorted) for table, keys in found.items()}


def _find_only_table(branch: ScopedSelect) -> exp.Table | None:
    """Finds the stored table whose rows a query passes on.

    None if the query also has a join or a generator.
    """
    if branch.start is None or branch.joins or _may_make_rows(branch):
        return None
    return branch.find_table(branch.start.alias_or_name)


def _may_make_rows(branch: ScopedSelect) -> bool:
    """Whether a query may make several rows of one without a join, or columns of rows."""
    generates = any(item.find(exp.Explode, exp.Inline) for _, item in branch.results)
    return bool(branch.laterals or branch.pivoted or generates)


def _list_columns_held(branch: ScopedSelect, alias: str, items: Iterable[exp.Expr]) -> set[str]:
    """Lists columns of a table that values hold, or that a join makes equal to them."""
    places = {place for item in items for place in list_column_aliases_and_names(item)}
    if not branch.joins:
        return {name for _, name in places}
    held = {name for owner, name in places if owner in {alias, ""}}
    for join in branch.joins:
        held |= {name for name in join.using if (join.alias, name) in places}
        for (owner, name), others in iterate_equalities(join.conditions):
            if owner == alias and others & places:
                held.add(name)
    return held


def _list_key_columns_of(branch: ScopedSelect, alias: str, key: Iterable[str]) -> set[str]:
    items = [item for name in key if (item := branch.find_result(name)) is not None]
    return _list_columns_held(branch, alias, items)


def _map_key_to_source(branch: ScopedSelect, key: Iterable[str]) -> frozenset[str]:
    """Maps result columns to the source's columns, through casts; empty if one is computed."""
    found: set[str] = set()
    for name in key:
        item = branch.find_result(name)
        value = enter_expression(item, exp.Cast, exp.Paren) if item is not None else None
        if not isinstance(value, exp.Column):
            return frozenset()
        found.add(value.name.lower())
    return frozenset(found)


def _list_fixed_by_filter(branch: ScopedSelect, alias: str | None) -> frozenset[str]:
    """Lists columns that WHERE compares: a filter may leave one row of several.

    A validity column selects a version, so both validity columns are fixed then.
    """
    found = {
        name
        for part in branch.list_clause_conditions("where")
        for owner, name in list_column_aliases_and_names(part)
        if alias in {None, owner}
    }
    return frozenset(found | _VALIDITY if found & _VALIDITY else found)


def split_column_name_into_words(name: str) -> list[str]:
    """Splits a name into its words, in lower case."""
    return re.split(r"[\W_]+", name.lower())


def make_singular(word: str) -> str:
    """Makes the singular of an English word, by its ending."""
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    return word.removesuffix("es") if word.endswith(("sses", "xes")) else word.removesuffix("s")


def is_range_join(join: ScopedJoin) -> bool:
    """Whether a join selects by a range, such as a validity or a tier, with both of its ends."""
    count = 0
    for part in join.conditions:
        count += sum(_BOTH_ENDS for _ in part.find_all(exp.Between))
        for test in part.find_all(*_RANGES):
            count += join.alias in {alias for alias, _ in list_column_aliases_and_names(test)}
    return count >= _BOTH_ENDS
