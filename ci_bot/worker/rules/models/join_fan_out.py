"""Joins that count a row several times, and NOT IN that no row meets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.keys import list_fixed_columns, list_unique_keys
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.sql import (
    ModelQuery,
    iterate_selects,
    read_audit_promises,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import is_scd_type_2

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope
    from sqlmesh.core.model import Model

_ADDING = (exp.Sum, exp.Avg)
_BROADCASTS = frozenset({"BROADCAST", "BROADCASTJOIN", "MAPJOIN"})


def _iterate_partners(
    scope: Scope, by_table: Mapping[str, Model]
) -> Iterator[tuple[exp.Join, str, Model]]:
    """Yields (join, table, model) for each join of a stored table whose model is known."""
    for join in scope.expression.args.get("joins") or []:
        source = scope.sources.get(join.this.alias_or_name)
        if isinstance(source, exp.Table):
            model = by_table.get(table_name(source))
            if model is not None:
                yield join, table_name(source), model


def _has_joins(query: ModelQuery | None) -> bool:
    return query is not None and query.tree.has_any(exp.Join)


@on_model
class FanOutTotal(ModelRule):
    """If a join multiplies rows, a sum over them counts them several times."""

    spec = find_rule("fan-out-total")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not _has_joins(query) or not query.tree.has_any(*_ADDING):
            return
        for scope in iterate_selects(query.root or query.written_root):
            totals = [
                (item.alias_or_name, node)
                for item in scope.expression.expressions
                for node in item.find_all(*_ADDING)
                if not isinstance(node.this, exp.Distinct)
                and node.find_ancestor(exp.Window) is None
            ]
            for join, table, partner in (
                _iterate_partners(scope, self.project.by_table) if totals else ()
            ):
                keys, fixed = list_unique_keys(partner), list_fixed_columns(join)
                if not keys or join.kind == "CROSS" or any(key <= fixed for key in keys):
                    continue
                alias = join.this.alias_or_name
                called = self.project.name_of_table(table)
                counted = {
                    f"{column} by {called}": node.sql(dialect=model.dialect)
                    for column, node in totals
                    if _reads_only_others(node, alias)
                }
                if counted:
                    yield self.make_observation(
                        model,
                        partial(_describe_fan_out, counted, called, min(keys, key=len), fixed),
                        "the partner is reduced to one row first, or summed up in a CTE of its own",
                        subject=counted,
                        anchors=(f"JOIN {called}", "JOIN"),
                    )


def _describe_fan_out(
    counted: Mapping[str, str],
    table: str,
    key: Collection[str],
    fixed: Collection[str],
    subjects: Sequence[str],
) -> str:
    return (
        f"{quote_names(counted[subject] for subject in subjects)} adds up rows that the join of "
        f"`{table}` multiplies: that is identified by {quote_names(key)}, and the join fixes "
        f"{quote_names(fixed) or 'none of it'}."
    )


def _reads_only_others(node: exp.Expr, alias: str) -> bool:
    tables = {column.table for column in node.find_all(exp.Column)}
    return bool(tables) and "" not in tables and alias not in tables


@on_model
class HistoryJoin(ModelRule):
    """A dimension with history has a row for each version of a key."""

    spec = find_rule("history-join")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not _has_joins(query):
            return
        for scope in iterate_selects(query.root or query.written_root):
            where = scope.expression.args.get("where")
            for join, table, partner in _iterate_partners(scope, self.project.by_table):
                kind = partner.kind
                if not is_scd_type_2(kind):
                    continue
                validity = {kind.valid_from_name.name.lower(), kind.valid_to_name.name.lower()}
                mentioned = {
                    column.name.lower()
                    for part in (join.args.get("on"), where)
                    if part is not None
                    for column in part.find_all(exp.Column)
                }
                if not mentioned & validity:
                    called = self.project.name_of_table(table)
                    yield self.make_observation(
                        model,
                        f"`{called}` keeps a row for each version of a key, and the join "
                        f"compares none of {quote_names(validity)}: rows meet every version.",
                        f"the join picks one version: {kind.valid_to_name.name} IS NULL",
                        subject=[called],
                        anchors=(f"JOIN {called}", "JOIN"),
                    )


@on_model
class NotInNullable(ModelRule):
    """If the list contains one NULL, NOT IN is never true."""

    spec = find_rule("not-in-nullable")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not any(_list_not_in(node) for node in query.tree.find_all(exp.Not)):
            return
        for node in (
            query.rendered_tree if query.rendered_query is not None else query.tree
        ).find_all(exp.Not):
            for inner in _list_not_in(node):
                column = _find_listed_column(inner)
                if column is not None and not self._is_certain(column, inner):
                    yield self.make_observation(
                        model,
                        f"NOT IN over `{column.name}`, and no filter, audit or grain shows that "
                        "it is never NULL: one NULL, and no row passes.",
                        "NOT EXISTS is used instead, or the subquery has IS NOT NULL",
                        subject=[f"{self._name_tables(inner)} {column.name.lower()}"],
                        anchors=("NOT IN", "NOT"),
                    )

    def _name_tables(self, subquery: exp.Query) -> str:
        found = {
            self.project.name_of_table(table_name(table)) for table in subquery.find_all(exp.Table)
        }
        return ", ".join(sorted(found))

    def _is_certain(self, column: exp.Column, subquery: exp.Query) -> bool:
        """Whether a filter, an audit or a grain ensures that the listed column is never NULL."""
        for test in subquery.find_all(exp.Not):
            inner = test.this
            if isinstance(inner, exp.Is) and inner.this.name.lower() == column.name.lower():
                return True
        tables = list(subquery.find_all(exp.Table))
        if len(tables) != 1:
            return False
        source = self.project.by_table.get(table_name(tables[0]))
        if source is None:
            return False
        name = column.name.lower()
        return name in read_audit_promises(source).not_null or any(
            name in key for key in list_unique_keys(source)
        )


def _list_not_in(node: exp.Expr) -> list[exp.Query]:
    """Lists the subquery of NOT (x IN (SELECT …)); empty for any other node."""
    inner = node.this.unnest()
    query = inner.args.get("query") if isinstance(inner, exp.In) else None
    return [query.unnest()] if query is not None else []


def _find_listed_column(subquery: exp.Query) -> exp.Column | None:
    if not isinstance(subquery, exp.Select) or len(subquery.expressions) != 1:
        return None
    item = subquery.expressions[0].unalias()
    return item if isinstance(item, exp.Column) else None


@on_model
class BroadcastHint(ModelRule):
    """A hint makes Spark send a table to every executor, even if it has become large."""

    spec = find_rule("broadcast-hint")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.written_tree.has_any(exp.Hint):
            return
        for scope in iterate_selects(query.written_root):
            hint = scope.expression.args.get("hint")
            for name in _list_broadcast_names(hint) if hint is not None else ():
                source = scope.sources.get(name)
                if not isinstance(source, exp.Table):
                    continue
                partner = self.project.by_table.get(table_name(source))
                if partner is not None and partner.kind.is_seed:
                    continue
                grows = partner is not None and partner.kind.is_incremental
                called = self.project.name_of_table(table_name(source))
                yield self.make_observation(
                    model,
                    f"The hint sends all of `{called}` to every executor, through the driver"
                    + (", and that table grows with each interval" if grows else "")
                    + ". No setting overrules a hint: Spark fails from 8 GB or 512 million rows "
                    "on, or before that for lack of memory.",
                    "the hint goes: adaptive execution broadcasts what is small by itself",
                    subject=[called],
                    severity=None if grows else "medium",
                    anchors=("BROADCAST", "MAPJOIN"),
                )


def _list_broadcast_names(hint: exp.Expr) -> list[str]:
    """Lists the names that the hints of a SELECT make Spark broadcast."""
    return [
        table.alias_or_name
        for item in hint.expressions
        if isinstance(item, exp.JoinHint) and str(item.this).upper() in _BROADCASTS
        for table in item.expressions
    ]
