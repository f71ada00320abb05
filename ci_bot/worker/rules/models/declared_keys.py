"""The columns that identify a row, as grains, unique keys and audits declare them, and what in the
project contradicts a declared key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.worker.rules.observation import quote_names
from ci_bot.worker.sql import (
    ModelQueries,
    ModelQuery,
    find_projection,
    list_column_names,
    list_outer_scopes,
    plain_name,
    read_audit_promises,
    split_conditions,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope
    from sqlmesh.core.model import Model

_RANGES = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_BOTH_ENDS = 2
_VALIDITY = {"valid_from", "valid_to"}


def list_grains(model: Model) -> list[frozenset[str]]:
    """Lists the declared grains, each a set of columns."""
    return [frozenset(list_column_names(grain)) for grain in model.grains]


def list_unique_keys(model: Model | None) -> list[frozenset[str]]:
    """Lists sets of columns that identify a row, by the model's own declarations and audits."""
    if model is None:
        return []
    found = set(list_grains(model)) | set(read_audit_promises(model).unique)
    if model.unique_key and not model.kind.is_scd_type_2:
        found.add(frozenset(list_column_names(model.unique_key)))
    return sorted((key for key in found if key), key=sorted)


def list_fixed_columns(join: exp.Join) -> frozenset[str]:
    """Lists columns of a join's partner that the join compares for equality, without a function."""
    mine = join.this.alias_or_name
    found = {key.name.lower() for key in join.args.get("using") or []}
    on = join.args.get("on")
    parts = [] if on is None else on.flatten() if isinstance(on, exp.And) else [on]
    for part in parts:
        inner = part.unnest()
        if isinstance(inner, exp.EQ | exp.NullSafeEQ):
            for side, other in ((inner.this, inner.expression), (inner.expression, inner.this)):
                if (
                    isinstance(side, exp.Column)
                    and side.table == mine
                    and not any(column.table == mine for column in other.find_all(exp.Column))
                ):
                    found.add(side.name.lower())
        elif isinstance(inner, exp.Is) and isinstance(inner.this, exp.Column):
            # valid_to IS NULL selects the current row of a history.
            found |= {inner.this.name.lower(), "valid_from"}
    return frozenset(found)


def may_model_deduplicate(query: ModelQuery | None) -> bool:
    """Whether the query may combine several rows into one, by any columns."""
    return query is None or query.tree.has_any(exp.Group, exp.RowNumber, exp.Distinct)


def find_multiplying_join(
    query: ModelQuery | None, key: Collection[str], by_table: Mapping[str, Model]
) -> str | None:
    """Finds a table whose rows the key does not tell apart and nothing says that one row joins."""
    for branch in list_outer_scopes(query.root) if query is not None else ():
        for join, source in _iterate_partners_of_key(branch, key):
            fixed = list_fixed_columns(join)
            keys = list_unique_keys(by_table.get(table_name(source)))
            if not any(one <= fixed for one in keys):
                return str(source.name)
    return None


def _iterate_partners_of_key(
    branch: Scope, key: Collection[str]
) -> Iterator[tuple[exp.Join, exp.Table]]:
    """Yields joins that may give several rows, with their stored tables, of which no column is in
    the key.
    """
    read = {
        column.table
        for name in key
        if (item := find_projection(branch, name)) is not None
        for column in item.find_all(exp.Column)
    }
    for join in branch.expression.args.get("joins") or ():
        alias = join.this.alias_or_name
        source = branch.sources.get(alias)
        may_multiply = join.kind not in {"SEMI", "ANTI"} and alias not in read
        if may_multiply and isinstance(source, exp.Table):
            yield join, source


class KeyContradictions:
    """What the joins and sources of a query say against a key that a model declares.

    It reads declarations only: a partner or a source without a declared key says nothing.
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
            alias = join.this.alias_or_name
            keys = list_unique_keys(self._by_table.get(table_name(source)))
            fixed = list_fixed_columns(join) | _list_fixed_by_filter(branch, alias)
            if keys and not any(one <= fixed for one in keys) and not is_range_join(join, alias):
                return (
                    f"`{source.name}` has a row for each {quote_names(min(keys, key=len))}, and "
                    f"the join fixes {quote_names(fixed) or 'none of it'}, so one row may meet "
                    "several"
                )
        return None

    def describe_groups(self, model: Model, key: Collection[str]) -> str | None:
        """Describes groups by more than the key; None if the key holds each of them."""
        query = self._queries.query_of(model)
        branches = list(list_outer_scopes(query.root)) if query is not None else []
        if len(branches) != 1:
            return None
        select = branches[0].expression
        group = select.args.get("group")
        if group is None or set(group.args) - {"expressions"} or select.args.get("qualify"):
            return None
        shown = {item.unalias(): item.alias_or_name.lower() for item in select.expressions}
        more = [shown.get(part) for part in group.expressions]
        left = sorted({name for name in more if name is not None and name not in key})
        fixed = _list_fixed_by_filter(branches[0], None)
        if not left or None in more or not set(key) <= set(more) or fixed & set(left):
            return None
        return f"the query has a row for each group of {quote_names([*sorted(key), *left])}"

    def describe_source(self, model: Model, key: Collection[str]) -> str | None:
        """Describes a source of which several rows may have one key; None if there is none."""
        branch = self._find_branch(model, key)
        source = _find_only_table(branch) if branch is not None else None
        if branch is None or source is None:
            return None
        items = [find_projection(branch, name) for name in key]
        if any(item is None for item in items):
            return None
        held = {
            column.name.lower()
            for item in items
            if item is not None
            for column in item.find_all(exp.Column)
        } | _list_fixed_by_filter(branch, None)
        keys = self._list_source_keys(table_name(source))
        if not keys or any(one <= held for one in keys):
            return None
        return f"`{source.name}` has a row for each {quote_names(min(keys, key=len))}"

    def _find_branch(self, model: Model, key: Collection[str]) -> Scope | None:
        """Finds the only SELECT that gives the model's rows, if it keeps each row that it reads."""
        query = self._queries.query_of(model)
        if query is None or query.root is None or may_model_deduplicate(query) or not key:
            return None
        branches = list(list_outer_scopes(query.root))
        return branches[0] if len(branches) == 1 else None

    def _list_source_keys(self, table: str) -> list[frozenset[str]]:
        """Lists a table's keys: declared, or audited in models that pass its rows on."""
        declared = list_unique_keys(self._by_table.get(table))
        if declared:
            return declared
        if self._inferred is None:
            self._inferred = self._infer_source_keys()
        return self._inferred.get(plain_name(table), [])

    def _infer_source_keys(self) -> dict[str, list[frozenset[str]]]:
        found: dict[str, set[frozenset[str]]] = {}
        for model in {id(model): model for model in self._by_table.values()}.values():
            if model.kind.is_external or model.kind.is_seed or model.kind.is_scd_type_2:
                continue
            query = self._queries.query_of(model)
            if query is None or query.root is None or may_model_deduplicate(query):
                continue
            branches = list(list_outer_scopes(query.root))
            source = _find_only_table(branches[0]) if len(branches) == 1 else None
            if source is None:
                continue
            # A grain is a claim, and an audit is proof.
            for key in read_audit_promises(model).unique:
                columns = _map_to_source(branches[0], key)
                if columns:
                    found.setdefault(table_name(source), set()).add(columns)
        return {table: sorted(keys, key=sorted) for table, keys in found.items()}


def _find_only_table(branch: Scope) -> exp.Table | None:
    """Finds the stored table whose rows a query passes on; None beside a join or a generator."""
    select = branch.expression
    start = select.args.get(FROM)
    if start is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    if any(item.find(exp.Explode, exp.Inline) for item in select.expressions):
        return None
    source = branch.sources.get(start.this.alias_or_name)
    return source if isinstance(source, exp.Table) else None


def _map_to_source(branch: Scope, key: Iterable[str]) -> frozenset[str]:
    """Maps result columns to the source's columns, through casts; empty if one is computed."""
    found: set[str] = set()
    for name in key:
        item = find_projection(branch, name)
        while isinstance(item, exp.Cast | exp.Paren):
            item = item.this
        if not isinstance(item, exp.Column):
            return frozenset()
        found.add(item.name.lower())
    return frozenset(found)


def _list_fixed_by_filter(branch: Scope, alias: str | None) -> frozenset[str]:
    """Lists columns that WHERE compares: a filter may leave one row of several.

    A validity column picks a version, so the other one is fixed, too.
    """
    where = branch.expression.args.get("where")
    found = {
        column.name.lower()
        for part in (split_conditions(where.this) if where is not None else ())
        for column in part.find_all(exp.Column)
        if alias is None or column.table == alias
    }
    return frozenset(found | _VALIDITY if found & _VALIDITY else found)


def is_range_join(join: exp.Join, alias: str) -> bool:
    """Whether a join picks by a range, such as a validity or a tier: its ends decide how many."""
    on = join.args.get("on")
    if on is None:
        return False
    count = sum(_BOTH_ENDS for _ in on.find_all(exp.Between)) + sum(
        1
        for test in on.find_all(*_RANGES)
        if any(column.table == alias for column in test.find_all(exp.Column))
    )
    return count >= _BOTH_ENDS
