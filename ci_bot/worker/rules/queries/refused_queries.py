"""Queries that Spark refuses before it reads a row, because its analyzer finds no meaning in them.

SQLMesh renders such a query and plans it, but the build ends with an error. These rules only find
queries that Spark refuses in every version and mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.queries.spark_functions import SPARK_FUNCTIONS
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedSelect,
    find_only_frame,
    is_spark_dialect,
    spell_frame,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_CLAUSES = {exp.Where: "WHERE", exp.Join: "ON", exp.Group: "GROUP BY", exp.Having: "HAVING"}
# Expressions that may be between an aggregate and its window.
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
_QUANTILES = (exp.Quantile, exp.ApproxQuantile)
# Expressions that compute a value of one row. SQLGlot does not know each of Spark's aggregates as
# one: not ANY, EVERY and WITHIN GROUP, for example.
_OF_ONE_ROW = (
    exp.Binary, exp.Paren, exp.Neg, exp.Not, exp.Cast, exp.TryCast, exp.Case, exp.If, exp.Coalesce,
    exp.Concat, exp.Upper, exp.Lower, exp.Trim, exp.In, exp.Between,
)  # fmt: skip
# Spark also finds a group's key that is written in another way: `b + a` for `a + b`, DATE(x) for
# CAST(x AS DATE). An expression that has only these parts has one spelling.
_OF_ONE_SPELLING = (exp.Column, exp.Identifier, exp.Literal, exp.Upper, exp.Lower)
_SHOWN = 80


@on_model
class QueryRefused(ModelRule):
    """A build of it ends with an error of Spark's analyzer."""

    spec = find_rule("query-refused")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not is_spark_dialect(model.dialect):
            return
        found: dict[str, tuple[str, str]] = {}
        for select in query.root.selects:
            found.update(_iterate_ungrouped(select))
            found.update(_iterate_misplaced(select))
        for node in query.tree.find_all(*_QUANTILES):
            found.update(_iterate_wrong_quantiles(node))
        for text, (why, clears) in found.items():
            yield self.make_observation(
                model,
                f"Spark refuses `{text}`: {why}.",
                clears,
                subject=[text],
                anchors=(text, text.partition("(")[0], "GROUP BY"),
            )
        yield from self._observe_unknown_functions(model, query)

    def _observe_unknown_functions(
        self, model: Model, query: ModelQuery
    ) -> Iterator[RuleObservation]:
        """Observes functions that Spark does not have and no other model of the project calls."""
        unknown = {
            name
            for name in _list_called_functions(query) - SPARK_FUNCTIONS
            if not self._is_called_elsewhere(name, model)
        }
        if unknown:
            yield self.make_observation(
                model,
                f"Spark has no function {quote_names(unknown)}: the build ends with an error, "
                "unless the team registers it.",
                "the function has Spark's name for it, or is registered in each place that "
                "builds the model",
                subject=sorted(unknown),
                severity="high",
                anchors=tuple(unknown),
            )

    def _is_called_elsewhere(self, name: str, model: Model) -> bool:
        """Whether another model of the project calls a function; then the team registers it."""
        others = (one for fqn, one in self.project.models.items() if fqn != model.fqn)
        return any(name in self._called_by(other) for other in others)

    def _called_by(self, model: Model) -> frozenset[str]:
        if model.fqn not in self._called:
            query = self.query_of(model)
            names = _list_called_functions(query) if query is not None else frozenset()
            self._called[model.fqn] = names
        return self._called[model.fqn]

    @cached_property
    def _called(self) -> dict[str, frozenset[str]]:
        return {}


def _list_called_functions(query: ModelQuery) -> frozenset[str]:
    """Lists the functions that SQLGlot does not know, in lower case, except those of a schema."""
    return frozenset(
        node.name.lower()
        for node in query.tree.find_all(exp.Anonymous)
        if not isinstance(node.parent, exp.Dot | exp.Hint | d.MacroFunc)
    )


_Found = tuple[str, tuple[str, str]]


def _iterate_ungrouped(select: ScopedSelect) -> Iterator[_Found]:
    """Yields columns that have no single value in a group."""
    group = select.node.args.get("group")
    is_total = any(
        _is_aggregate(node)
        for node in select.find_all(exp.AggFunc)
        if node.find_ancestor(*_CLAUSES, exp.Select) is select.node
    )
    if (group is None and not is_total) or select.groups_by_sets or select.pivoted:
        return
    if group is not None and group.args.get("all"):
        return
    keys = select.list_group_keys()
    spelled = {_spell(key) for key in keys}
    variable = {
        _spell(column)
        for key in keys
        if not all(isinstance(part, _OF_ONE_SPELLING) for part in key.walk())
        for column in key.find_all(exp.Column)
    }
    for _, item in select.results:
        for column in _iterate_bare_columns(item, spelled | variable):
            if column.table.lower() in select.sources:
                yield (
                    _show(column),
                    (
                        "it is neither in GROUP BY nor in an aggregate"
                        if group is not None
                        else "there is an aggregate beside it, and no GROUP BY",
                        "GROUP BY has it, or an aggregate takes it",
                    ),
                )


def _iterate_bare_columns(node: exp.Expr, keys: Collection[str]) -> Iterator[exp.Column]:
    """Yields columns outside of aggregates and of group keys."""
    is_of_one_row = isinstance(node, (exp.Column, *_OF_ONE_ROW))
    if not is_of_one_row or isinstance(node, exp.AggFunc) or _spell(node) in keys:
        return
    if not isinstance(node, exp.Column):
        for child in node.iter_expressions():
            yield from _iterate_bare_columns(child, keys)
    elif node.args.get("db") is None and not node.is_star:
        yield node


def _spell(node: exp.Expr) -> str:
    return node.unnest().sql(dialect="spark", normalize=True).replace("`", "").lower()


def _show(node: exp.Expr) -> str:
    return node.sql(dialect="spark").replace("`", "")[:_SHOWN]


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate makes one row of a group, and not a value beside each row."""
    above = node.parent
    while isinstance(above, _AROUND):
        above = above.parent
    return not isinstance(above, exp.Window)


def _iterate_misplaced(select: ScopedSelect) -> Iterator[_Found]:
    """Yields aggregates and windows in places where Spark takes none, and refused windows."""
    for node in select.find_all(exp.AggFunc, exp.Window):
        why = None
        if isinstance(node, exp.Window):
            why = _describe_place_of_window(node, select) or _describe_window(node)
        elif _is_aggregate(node):
            why = _describe_place_of_aggregate(node, select)
        if why is not None:
            yield _show(node), why


def _describe_place_of_window(node: exp.Expr, select: ScopedSelect) -> tuple[str, str] | None:
    place = _find_clause(node, select)
    if place is None:
        return None
    return f"{place} takes no window", "QUALIFY or a subquery takes it"


def _describe_place_of_aggregate(node: exp.Expr, select: ScopedSelect) -> tuple[str, str] | None:
    outer = node.find_ancestor(exp.AggFunc, exp.Window, exp.Select)
    if isinstance(outer, exp.AggFunc) and _is_aggregate(outer):
        return "an aggregate of an aggregate has no rows", "a subquery comes first"
    place = _find_clause(node, select)
    if place is None or place == "HAVING":
        return None
    return f"{place} takes no aggregate", "HAVING or a subquery takes it"


def _describe_window(node: exp.Window) -> tuple[str, str] | None:
    if isinstance(node.this.this, exp.Distinct):
        return "a window takes no DISTINCT", "rows are made distinct before"
    only = find_only_frame(node.this)
    if only is None or node.args.get("alias") is not None:
        return None
    if node.args.get("order") is None:
        return "it has no ORDER BY", "ORDER BY says what it ranks by"
    frame = node.args.get("spec")
    if frame is not None and spell_frame(frame) != only:
        return "it takes no frame but its own", "the frame goes"
    return None


def _find_clause(node: exp.Expr, select: ScopedSelect) -> str | None:
    above = node.find_ancestor(*_CLAUSES, exp.Select)
    if (
        above is None
        or isinstance(above.parent, exp.Filter)
        or above.find_ancestor(exp.Select) is not select.node
    ):
        return None
    return _CLAUSES.get(type(above))


def _iterate_wrong_quantiles(node: exp.Expr) -> Iterator[_Found]:
    share = node.args.get("quantile")
    if not isinstance(share, exp.Literal) or share.is_string:
        return
    if not 0 <= Decimal(share.name) <= 1:
        yield _show(node), ("the share of a percentile is between 0 and 1", "95 % are 0.95")
