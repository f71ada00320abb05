"""New columns of row numbers and neighbours, and new picks of one row among several, in an order
that leaves them to chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.worker.rules.changes.rows import DECIDES_ORDER, TIES
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import list_unique_keys
from ci_bot.worker.rules.models.fan_outs import list_source_keys
from ci_bot.worker.rules.models.value_types import ValueTypes, name_family
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.sql import (
    ModelQueries,
    ModelQuery,
    iterate_selects,
    list_outer_scopes,
    plain_name,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope
    from sqlmesh.core.model import Model

# Of equal rows, these take one, or number them.
_PICKING = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)


@on_change(TIES)
def find_new_numbers(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Row numbers as a new column, in an order that does not decide between rows."""
    if pair.query_before is None or pair.query_after is None or pair.has_same_text:
        return
    known = _list_changed_row_numbers(pair.query_before)
    yield from _observe_numbers(pair.after, pair.query_after, known, inputs)
    picked = {pick.subject for pick in _list_picks(pair.query_before)}
    yield from _observe_picks(pair.after, pair.query_after, picked, inputs)


@on_new_model(TIES)
def find_numbers_in_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Row numbers as a column of a new model, and picks by them."""
    query = ModelQueries().query_of(model)
    if query is not None:
        yield from _observe_numbers(model, query, {}, inputs)
        yield from _observe_picks(model, query, set(), inputs)


def _observe_numbers(
    model: Model, query: ModelQuery, known: Mapping[str, exp.Expr], inputs: RuleInputs
) -> Iterator[RuleObservation]:
    models = {plain_name(fqn): one for fqn, one in inputs.after.items()}
    for name, window in _list_changed_row_numbers(query).items():
        if name not in known and _does_window_leave_ties(window, models):
            yield RuleObservation(
                TIES,
                f"`{name}` hangs on an order that does not tell every row from the others: of "
                "equal rows, chance decides which comes first, and the next run may do otherwise.",
                DECIDES_ORDER,
                model=model,
                subject=(name,),
                anchors=(name, "ORDER BY", "OVER"),
            )


def _list_changed_row_numbers(query: ModelQuery) -> dict[str, exp.Expr]:
    """Lists result columns that are a ROW_NUMBER, LAG and the like of the outer query, by name."""
    return {
        item.alias_or_name.lower(): window
        for branch in list_outer_scopes(query.root)
        for item in branch.expression.expressions
        for window in [item.unalias()]
        if isinstance(window, exp.Window) and isinstance(window.this, _PICKING)
    }


def _does_window_leave_ties(window: exp.Expr, models: Mapping[str, Model]) -> bool:
    """Whether known keys show that rows may be equal in a window: no table's key is in it."""
    select = window.find_ancestor(exp.Select)
    source = select.args.get(FROM) if select is not None else None
    if select is None or source is None or select.args.get("group") or select.args.get("distinct"):
        return False
    tables = [source.this, *(join.this for join in select.args.get("joins") or ())]
    keys = [
        key
        for table in tables
        if isinstance(table, exp.Table)
        for key in list_unique_keys(models.get(table_name(table)))
    ]
    function = window.this
    ordered = {key.find(exp.Column) for key in getattr(window.args.get("order"), "expressions", ())}
    if function.this in ordered:
        return False  # equal rows have the same value
    clauses = [*(window.args.get("partition_by") or ()), window.args.get("order")]
    held = {
        column.name.lower()
        for clause in clauses
        if clause is not None
        for column in clause.find_all(exp.Column)
    }
    return bool(keys) and not any(key <= held for key in keys)


# The pick of one row among several: WHERE n = 1, or QUALIFY.


_RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank)
_TRUNCATED = (exp.TimestampTrunc, exp.DateTrunc, exp.DatetimeTrunc)
# Many rows share a day, or one of few texts; a text may also be another key.
_COARSE = {"date", "boolean"}


class _Pick(NamedTuple):
    subject: str
    window: exp.Window
    scope: Scope


def _observe_picks(
    model: Model, query: ModelQuery, known: set[str], inputs: RuleInputs
) -> Iterator[RuleObservation]:
    models = {plain_name(inputs.names.short_name(fqn)): one for fqn, one in inputs.after.items()}
    models |= {plain_name(fqn): one for fqn, one in inputs.after.items()}
    types = ValueTypes(models, ModelQueries(inputs.after))
    for pick in _list_picks(query):
        if pick.subject in known or not _may_tie(pick, model):
            continue
        severity = _weigh_pick(pick, models, types)
        if severity is None:
            continue
        is_rank = not isinstance(pick.window.this, exp.RowNumber)
        yield RuleObservation(
            TIES,
            "The query keeps the first row "
            + ("of a key " if pick.window.args.get("partition_by") else "")
            + "in an order that does not tell every row from the others: of equal rows, "
            + (
                "each stays, so a key that the model declares has several."
                if is_rank
                else "chance decides which one stays, and the next run may keep another."
            ),
            DECIDES_ORDER,
            severity=severity,
            model=model,
            subject=(pick.subject,),
            anchors=("ORDER BY", "OVER", "QUALIFY"),
        )


def _list_picks(query: ModelQuery) -> Iterator[_Pick]:
    """Yields windows of which a condition keeps the first row."""
    tree = query.rendered_query
    tests = list(tree.find_all(exp.EQ, exp.LTE, exp.LT)) if tree is not None else []
    firsts = [test.this.unnest() for test in tests if _keeps_first(test)]
    names = {node.name.lower() for node in firsts if isinstance(node, exp.Column)}
    for scope in iterate_selects(query.root):
        for window in scope.expression.find_all(exp.Window):
            item = window.parent
            named = isinstance(item, exp.Alias) and item.alias.lower() in names
            if window.find_ancestor(exp.Select) is not scope.expression or not (
                isinstance(window.this, _RANKING)
                and (named or any(window is node for node in firsts))
            ):
                continue
            columns = [
                ", ".join(
                    column.name.lower() for node in nodes for column in node.find_all(exp.Column)
                )
                for nodes in (window.args.get("partition_by") or (), _list_order(window))
            ]
            subject = f"{window.this.sql_name()} by {columns[0] or 'nothing'}, order {columns[1]}"
            yield _Pick(subject, window, scope)


def _keeps_first(test: exp.Expr) -> bool:
    """Whether a comparison is `= 1`, `<= 1` or `< 2`."""
    number = "2" if isinstance(test, exp.LT) else "1"
    other = test.expression
    return isinstance(other, exp.Literal) and not other.is_string and other.name == number


def _list_order(window: exp.Window) -> list[exp.Expr]:
    order = window.args.get("order")
    return [key.this for key in order.expressions] if order is not None else []


def _may_tie(pick: _Pick, model: Model) -> bool:
    """Whether equal rows matter: they differ in a column, or RANK keeps several of one key."""
    parts = list(pick.window.args.get("partition_by") or ())
    if not isinstance(pick.window.this, exp.RowNumber):
        names = {part.name.lower() for part in parts if isinstance(part, exp.Column)}
        return any(key <= names for key in list_unique_keys(model))
    shared = {*parts, *_list_order(pick.window)}
    return any(
        item.unalias() not in shared
        for item in pick.scope.expression.expressions
        if item.unalias() is not pick.window
    )


def _weigh_pick(pick: _Pick, models: Mapping[str, Model], types: ValueTypes) -> Severity | None:
    """The severity of a pick by its order: a day has many rows, a moment hardly ever two."""
    select = pick.scope.expression
    start = select.args.get(FROM)
    if start is None or select.args.get("group") or select.args.get("distinct"):
        return None
    aliases = [start.this.alias_or_name]
    aliases += [join.this.alias_or_name for join in select.args.get("joins") or ()]
    keys = [
        key for alias in aliases for key in list_source_keys(pick.scope.sources.get(alias), models)
    ]
    parts = pick.window.args.get("partition_by") or []
    order = [
        node
        for node in _list_order(pick.window)
        if node not in parts and any(node.find_all(exp.Column))
    ]
    held = {
        column.name.lower() for node in (*parts, *order) for column in node.find_all(exp.Column)
    }
    if any(key <= held for key in keys):
        return None
    if not order:
        return "high"
    families = [
        "date" if isinstance(node, _TRUNCATED) else name_family(types.find_type(pick.scope, node))
        for node in order
    ]
    if set(families) <= (_COARSE | {"text"} if keys else _COARSE):
        return "high"
    return "low" if keys else None
