"""New columns of row numbers and neighbours, in an order that leaves them to chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.worker.rules.changes.rows import DECIDES_ORDER, TIES
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import list_unique_keys
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.sql import ModelQueries, ModelQuery, list_outer_scopes, plain_name, table_name
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# Of equal rows, these take one, or number them.
_PICKING = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)


@on_change(TIES)
def find_new_numbers(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Row numbers as a new column, in an order that does not decide between rows."""
    if pair.query_before is None or pair.query_after is None or pair.has_same_text:
        return
    known = _list_numbers(pair.query_before)
    yield from _observe_numbers(pair.after, pair.query_after, known, inputs)


@on_new_model(TIES)
def find_numbers_in_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Row numbers as a column of a new model."""
    query = ModelQueries().query_of(model)
    if query is not None:
        yield from _observe_numbers(model, query, {}, inputs)


def _observe_numbers(
    model: Model, query: ModelQuery, known: Mapping[str, exp.Expr], inputs: RuleInputs
) -> Iterator[RuleObservation]:
    models = {plain_name(fqn): one for fqn, one in inputs.after.items()}
    for name, window in _list_numbers(query).items():
        if name not in known and _leaves_ties(window, models):
            yield RuleObservation(
                TIES,
                f"`{name}` hangs on an order that does not tell every row from the others: of "
                "equal rows, chance decides which comes first, and the next run may do otherwise.",
                DECIDES_ORDER,
                model=model,
                subject=(name,),
                anchors=(name, "ORDER BY", "OVER"),
            )


def _list_numbers(query: ModelQuery) -> dict[str, exp.Expr]:
    """Lists result columns that are a ROW_NUMBER, LAG and the like of the outer query, by name."""
    return {
        item.alias_or_name.lower(): window
        for branch in list_outer_scopes(query.root)
        for item in branch.expression.expressions
        for window in [item.unalias()]
        if isinstance(window, exp.Window) and isinstance(window.this, _PICKING)
    }


def _leaves_ties(window: exp.Expr, models: Mapping[str, Model]) -> bool:
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
