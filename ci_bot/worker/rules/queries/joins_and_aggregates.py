"""Joins that meet every version of a row, NOT IN that no row passes, and aggregates without order.

The value of such an aggregate depends on the order of rows, although the query sets no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.declared_keys import (
    find_column_alias_and_name,
    iterate_equalities,
    list_fixed_columns,
    list_unique_keys,
    split_column_name_into_words,
)
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import (
    NEVER,
    UNKNOWN,
    ScopedJoin,
    ScopedSelect,
    enter_expression,
    find_value_null_reason,
    name_query_part,
    read_audit_promises,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import is_scd_type_2

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_BROADCASTS = frozenset({"BROADCAST", "BROADCASTJOIN", "MAPJOIN"})


def _iterate_join_partners(
    select: ScopedSelect, by_table: Mapping[str, Model]
) -> Iterator[tuple[ScopedJoin, str, Model]]:
    """Yields (join, table, model) for each join of a stored table whose model is known."""
    for join in select.joins:
        table = select.find_table(join.alias)
        model = by_table.get(table_name(table)) if table is not None else None
        if table is not None and model is not None:
            yield join, table_name(table), model


@on_model
class HistoryJoin(ModelRule):
    """A dimension with history has a row for each version of a key."""

    spec = find_rule("history-join")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        for select in query.known_root.selects:
            yield from self._observe_totals(model, select)
            where = select.list_clause_conditions("where")
            for join, table, partner in _iterate_join_partners(select, self.project.by_table):
                validity = _find_validity(partner)
                keys = list_unique_keys(partner) if not partner.kind.is_scd_type_2 else []
                fixed = list_fixed_columns(join)
                is_one_row = any(key <= fixed for key in keys) or not join.adds_columns
                mentioned = {
                    column.name.lower()
                    for part in (*join.conditions, *where)
                    for column in part.find_all(exp.Column)
                }
                called = self.project.name_of_table(table)
                days = (
                    set() if is_one_row or validity else _find_days_of_rates(select, join, partner)
                )
                if days and not mentioned & days:
                    yield self.make_observation(
                        model,
                        f"`{called}` has a row for each {quote_names(days)}, and no condition "
                        "compares it: an amount is multiplied by the rate of every day.",
                        "the join picks one day, or the rates in force",
                        subject=[called],
                        anchors=(f"JOIN {called}", "JOIN"),
                    )
                if validity and not is_one_row and not mentioned & validity:
                    yield self.make_observation(
                        model,
                        f"`{called}` keeps a row for each version of a key, and the join "
                        f"compares none of {quote_names(validity)}: rows meet every version.",
                        f"the join picks one version: {max(validity)} IS NULL",
                        subject=[called],
                        anchors=(f"JOIN {called}", "JOIN"),
                    )

    def _observe_totals(self, model: Model, select: ScopedSelect) -> Iterator[RuleObservation]:
        """Totals over all versions that a history keeps."""
        table = select.find_table(select.start.alias_or_name) if select.start is not None else None
        source = self.project.by_table.get(table_name(table)) if table is not None else None
        if table is None or source is None or not is_scd_type_2(source.kind):
            return
        validity = _find_validity(source)
        if validity & {column.name.lower() for column in select.find_all(exp.Column)}:
            return
        totals = [
            name
            for name, value in select.results
            for node in value.find_all(exp.Sum, exp.Avg, exp.Count)
            if not isinstance(node.this, exp.Distinct)
            and _VERSIONS.isdisjoint(split_column_name_into_words(name))
        ]
        if totals:
            called = self.project.name_of_table(table_name(table))
            yield self.make_observation(
                model,
                lambda names: (
                    f"{quote_names(names)} adds up every version of a row: `{called}` keeps them "
                    f"all, and the query compares none of {quote_names(validity)}."
                ),
                f"a condition picks one version: {max(validity)} IS NULL",
                subject=totals,
                anchors=(called,),
            )


def _find_validity(model: Model) -> set[str]:
    """Finds the two columns that say from when to when a version is valid; empty if none do."""
    if is_scd_type_2(model.kind):
        names = (model.kind.valid_from_name, model.kind.valid_to_name)
        return {name.name.lower() for name in names}
    columns = {name.lower() for name in model.columns_to_types or ()}
    return next((set(pair) for pair in _VALIDITIES if columns >= pair), set())


def _find_days_of_rates(select: ScopedSelect, join: ScopedJoin, partner: Model) -> set[str]:
    """Finds the day of each row in a table of rates that an amount is multiplied by."""
    is_multiplied = any(
        isinstance(side.unnest(), exp.Column)
        and side.unnest().table.lower() == join.alias
        and not _RATES.isdisjoint(split_column_name_into_words(side.unnest().name))
        for node in select.find_all(exp.Mul, exp.Div)
        for side in (node.this, node.expression)
    )
    return {
        name.lower()
        for name, kind in (partner.columns_to_types or {}).items()
        if is_multiplied
        and kind.this in exp.DataType.TEMPORAL_TYPES
        and _LOADS.isdisjoint(split_column_name_into_words(name))
    }


_VALIDITIES = (
    {"valid_from", "valid_to"}, {"valid_from", "valid_until"}, {"effective_from", "effective_to"},
    {"effective_from", "effective_until"}, {"valid_from_date", "valid_to_date"},
)  # fmt: skip
_VERSIONS = frozenset({"versions", "changes", "revisions", "updates", "history"})
_RATES = frozenset({"rate", "rates", "fx", "price", "tariff", "factor"})
# When a row came, and not when it is valid.
_LOADS = frozenset({"updated", "loaded", "created", "modified", "ingested", "inserted", "synced"})


@on_model
class NotInNullable(ModelRule):
    """If the list contains one NULL, NOT IN is never true."""

    spec = find_rule("not-in-nullable")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Not):
            return
        for select in query.known_root.selects:
            for node in select.find_all(exp.Not):
                test = node.this.unnest()
                listed: Any = test.args.get("query") if isinstance(test, exp.In) else None
                for column in self._list_nullable(select, listed) if listed is not None else ():
                    yield self.make_observation(
                        model,
                        f"NOT IN over `{column}`, and no filter, audit or grain shows that "
                        "it is never NULL: one NULL, and no row passes.",
                        "NOT EXISTS is used instead, or the subquery has IS NOT NULL",
                        subject=[f"{self._name_tables(listed)} {column}"],
                        anchors=("NOT IN", "NOT"),
                    )

    def _list_nullable(self, select: ScopedSelect, listed: exp.Expr) -> list[str]:
        """Lists the columns that give the list its values and may be NULL."""
        found = [
            item.name.lower()
            for branch in select.find_nested(listed).branches
            for _, item in branch.results
            if isinstance(item, exp.Column) and not self._is_certain(branch, item)
        ]
        return list(dict.fromkeys(found))

    def _is_certain(self, select: ScopedSelect, column: exp.Column) -> bool:
        reason = find_value_null_reason(select, column, self.project)
        return reason == NEVER or (
            reason == UNKNOWN and all(map(self._is_promised, select.find_origins(column)))
        )

    def _is_promised(self, origin: tuple[str, str]) -> bool:
        table, name = origin
        model = self.project.by_table.get(table)
        return model is not None and (
            name in read_audit_promises(model).not_null
            or any(name in key for key in list_unique_keys(model))
        )

    def _name_tables(self, subquery: exp.Expr) -> str:
        found = {
            self.project.name_of_table(table_name(table)) for table in subquery.find_all(exp.Table)
        }
        return ", ".join(sorted(found))


@on_model
class BroadcastHint(ModelRule):
    """A hint makes Spark send a table to every executor, even if it has become large."""

    spec = find_rule("broadcast-hint")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.written_tree.has_any(exp.Hint):
            return
        for select in query.written_root.selects:
            hint = select.node.args.get("hint")
            for name in _list_broadcast_names(hint) if hint is not None else ():
                source = select.find_table(name)
                if source is None:
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
                    "the hint goes: adaptive execution broadcasts small tables automatically",
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


def _find_aggregate_types(*names_: str) -> tuple[type[exp.Expr], ...]:
    return tuple(getattr(exp, name) for name in names_ if hasattr(exp, name))


_PICKS = _find_aggregate_types("First", "Last", "AnyValue", "FirstValue", "LastValue")
_LISTS = _find_aggregate_types("ArrayAgg", "ArrayConcatAgg", "GroupConcat", "JSONArrayAgg")
_SETS = _find_aggregate_types("ArrayUniqueAgg")
_EXTREMES = _find_aggregate_types("ArgMax", "ArgMin")
# The most frequent value; if there are several, any of them.
_MOST_FREQUENT = _find_aggregate_types("Mode")
_ALL = (*_PICKS, *_LISTS, *_SETS, *_EXTREMES, *_MOST_FREQUENT)
# Functions that do not depend on the order of an array's elements.
_ORDER_FREE = _find_aggregate_types(
    "SortArray", "ArraySort", "ArraySize", "ArrayContains", "ArrayMax", "ArrayMin",
    "ArrayOverlaps", "ArraysOverlap", "ArrayContainsAll", "ArrayAny", "ArrayAll", "ArraySum",
    "Explode", "ExplodeOuter",
)  # fmt: skip
_ORDER_FREE_NAMES = frozenset(
    {"sort_array", "array_sort", "size", "cardinality", "array_size", "array_contains", "array_max",
     "array_min", "arrays_overlap", "exists", "forall", "explode", "explode_outer", "inline"}
)  # fmt: skip
_PASSING = _find_aggregate_types(
    "ArrayDistinct", "Filter", "Cast", "Paren", "Array", "Flatten", "ArrayCompact", "ArrayFilter",
    "ArrayTransform", "Transform", "WithinGroup", "IgnoreNulls", "RespectNulls", "ArrayExcept",
    "ArrayUnion", "ArrayIntersect", "ArrayConcat",
)  # fmt: skip


@on_model
class UnorderedAggregate(ModelRule):
    """FIRST takes the first row that arrives, and a list has the order in which rows arrive."""

    spec = find_rule("unordered-aggregate")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(*_ALL):
            return
        found: dict[Severity | None, list[str]] = {}
        for select in query.known_root.selects:
            for node in select.find_all(*_ALL):
                if node.find_ancestor(exp.Window) is not None or _has_own_order(node):
                    continue  # windows are judged by their own ORDER BY
                if self._is_decided(node, select):
                    continue
                function = node.sql(dialect=model.dialect).partition("(")[0].upper()
                subjects = found.setdefault(_weigh_aggregate(node), [])
                subjects.append(f"{function} in {name_query_part(node, query)}")
        for severity, subject in found.items():
            yield self.make_observation(
                model,
                _describe_ties
                if severity == "medium" or all(one.startswith("MODE ") for one in subject)
                else _describe_missing_order,
                "the array is sorted (SORT_ARRAY), or a ROW_NUMBER over a whole order picks the "
                "value",
                subject=subject,
                severity=severity,
                anchors=tuple(key.partition(" in ")[0] for key in subject),
            )

    def _is_decided(self, node: exp.Expr, select: ScopedSelect) -> bool:
        if isinstance(node, _EXTREMES):
            order = {column.name.lower() for column in node.expression.find_all(exp.Column)}
            aliases = {column.table for column in node.expression.find_all(exp.Column)}
            return any(
                key <= order for alias in aliases for key in self._list_keys(select, alias)
            ) or self._is_one_value(node, select)
        if isinstance(node, _MOST_FREQUENT) and node.args.get("deterministic") == exp.true():
            return True
        if isinstance(node, _PICKS + _MOST_FREQUENT):
            return self._is_one_value(node, select)
        return _classify_array_reader(node) == "free"

    def _is_one_value(self, node: exp.Expr, select: ScopedSelect) -> bool:
        """Whether a group has one value: it is a group key, or a group key determines it."""
        value = enter_expression(
            node.this, exp.IgnoreNulls, exp.RespectNulls, exp.Cast, exp.Distinct
        )
        keys = select.list_group_keys()
        if value in keys or isinstance(value, exp.Literal):
            return True
        columns = list(value.find_all(exp.Column))
        return bool(columns) and all(
            column in keys or self._depends_on_keys(column, keys, select) for column in columns
        )

    def _depends_on_keys(
        self, column: exp.Column, keys: list[exp.Expr], select: ScopedSelect
    ) -> bool:
        alias = column.table.lower()
        grouped = {find_column_alias_and_name(key) for key in keys if isinstance(key, exp.Column)}
        held = {name for owner, name in grouped if owner == alias}
        for join in select.joins:
            # An outer join makes its conditions true only for the rows of the partner.
            if not join.node.side or (join.node.side == "LEFT" and join.alias == alias):
                held |= {
                    name
                    for (owner, name), others in iterate_equalities(join.conditions)
                    if owner == alias and others and others <= grouped
                }
        return any(key <= held for key in self._list_keys(select, alias))

    def _list_keys(self, select: ScopedSelect, alias: str) -> list[frozenset[str]]:
        table = select.find_table(alias)
        model = self.project.by_table.get(table_name(table)) if table is not None else None
        return list_unique_keys(model)


def _weigh_aggregate(node: exp.Expr) -> Severity | None:
    """Returns the severity of an aggregate; None if it is the rule's.

    Ties are rare, and most readers do not need the order of a set.
    """
    if isinstance(node, _EXTREMES):
        return "medium"
    return "low" if isinstance(node, _SETS) and _classify_array_reader(node) == "result" else None


def _describe_missing_order(calls: Sequence[str]) -> str:
    return (
        f"{quote_names(calls)}: nothing says in which order rows come, so two runs over the same "
        "data may give two values."
    )


def _describe_ties(calls: Sequence[str]) -> str:
    return (
        f"{quote_names(calls)}: of rows that are equal in the order, any may be picked, and the "
        "next run may pick another."
    )


def _has_own_order(node: exp.Expr) -> bool:
    return node.find(exp.Order) is not None or isinstance(
        node.parent, getattr(exp, "WithinGroup", ())
    )


def _classify_array_reader(node: exp.Expr) -> str:
    """Classifies the use of an array: `free` of its order, a `result` column, or `other`."""
    above = node.parent
    while isinstance(above, _PASSING):
        above = above.parent
    if isinstance(above, _ORDER_FREE):
        return "free"
    if isinstance(above, exp.Anonymous) and above.name.lower() in _ORDER_FREE_NAMES:
        return "free"
    return "result" if isinstance(above, exp.Alias | exp.Select) else "other"
