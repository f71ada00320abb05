"""Row numbers and neighbours in new columns, and new picks of one row among several.

Both are risks if their order leaves the result to chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.worker.rules.changes.rows import DECIDES_ORDER, TIES
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import (
    iterate_equalities,
    list_column_aliases_and_names,
    list_unique_keys,
)
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.queries.fan_outs import list_source_keys
from ci_bot.worker.rules.queries.mixed_types import ModelValueTypes, name_family
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.sql import ModelQueries, ModelQuery, ScopedSelect, plain_name, table_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# These functions take one of several equal rows, or number them.
_PICKING = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)


@on_change(TIES)
def find_new_numbers(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds row numbers in a new column, in an order that does not decide between rows."""
    if pair.query_before is None or pair.query_after is None or pair.has_same_text:
        return
    known = _list_row_numbers_of_query(pair.query_before)
    yield from _observe_numbers(pair.after, pair.query_after, known, inputs)
    picked = {pick.subject for pick in _list_picks(pair.query_before)}
    yield from _observe_picks(pair.after, pair.query_after, picked, inputs)


@on_new_model(TIES)
def find_numbers_in_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds row numbers in a column of a new model, and picks by them."""
    query = ModelQueries().query_of(model)
    if query is not None:
        yield from _observe_numbers(model, query, {}, inputs)
        yield from _observe_picks(model, query, set(), inputs)


def _observe_numbers(
    model: Model, query: ModelQuery, known: Collection[str], inputs: RuleInputs
) -> Iterator[RuleObservation]:
    models = {plain_name(fqn): one for fqn, one in inputs.after.items()}
    for name, (select, window) in _list_row_numbers_of_query(query).items():
        if name not in known and _does_window_leave_ties(window, select, models):
            yield RuleObservation(
                TIES,
                f"`{name}` hangs on an order that does not tell every row from the others: of "
                "equal rows, chance decides which comes first, and the next run may do otherwise.",
                DECIDES_ORDER,
                model=model,
                subject=(name,),
                anchors=(name, "ORDER BY", "OVER"),
            )


def _list_row_numbers_of_query(query: ModelQuery) -> dict[str, tuple[ScopedSelect, exp.Window]]:
    """Maps result columns to their ROW_NUMBER, LAG or similar window in the outer query."""
    return {
        name: (branch, window)
        for branch in query.root.branches
        for name, window in branch.results
        if isinstance(window, exp.Window) and isinstance(window.this, _PICKING)
    }


def _does_window_leave_ties(
    window: exp.Window, select: ScopedSelect, models: Mapping[str, Model]
) -> bool:
    """Whether rows may be equal in a window: keys are known, and the window contains none."""
    if _combines_rows(select):
        return False
    tables = [one for one in select.sources.values() if isinstance(one, exp.Table)]
    keys = [key for table in tables for key in list_unique_keys(models.get(table_name(table)))]
    order = _list_order_of_row_numbers(window)
    if window.this.this in {node.find(exp.Column) for node in order}:
        return False  # equal rows have the same value
    held = _list_column_names_of_nodes((*(window.args.get("partition_by") or ()), *order))
    return bool(keys) and not any(key <= held for key in keys)


def _combines_rows(select: ScopedSelect) -> bool:
    args = select.node.args
    return select.start is None or bool(args.get("group") or args.get("distinct"))


def _list_column_names_of_nodes(nodes: Iterable[exp.Expr]) -> set[str]:
    return {name for node in nodes for _, name in list_column_aliases_and_names(node)}


# The pick of one row among several: WHERE n = 1, or QUALIFY.


_RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank)
_TRUNCATED = (exp.TimestampTrunc, exp.DateTrunc, exp.DatetimeTrunc)
# Many rows share a day, or one of few texts; but a text may also be another key.
_COARSE = {"date", "boolean"}


class _PickByRowNumber(NamedTuple):
    subject: str
    window: exp.Window
    select: ScopedSelect


def _observe_picks(
    model: Model, query: ModelQuery, known: set[str], inputs: RuleInputs
) -> Iterator[RuleObservation]:
    models = {plain_name(inputs.names.short_name(fqn)): one for fqn, one in inputs.after.items()}
    models |= {plain_name(fqn): one for fqn, one in inputs.after.items()}
    types = ModelValueTypes(models, ModelQueries(inputs.after))
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


def _list_picks(query: ModelQuery) -> Iterator[_PickByRowNumber]:
    """Lists windows whose first row a condition keeps."""
    tree = query.rendered_query
    tests = list(tree.find_all(exp.EQ, exp.LTE, exp.LT)) if tree is not None else []
    firsts = [test.this.unnest() for test in tests if _keeps_first(test)]
    names = {node.name.lower() for node in firsts if isinstance(node, exp.Column)}
    for select in query.root.selects:
        for window in select.find_all(exp.Window):
            item = window.parent
            named = isinstance(item, exp.Alias) and item.alias.lower() in names
            is_picked = named or any(window is node for node in firsts)
            if not (isinstance(window.this, _RANKING) and is_picked):
                continue
            columns = [
                ", ".join(
                    column.name.lower() for node in nodes for column in node.find_all(exp.Column)
                )
                for nodes in (
                    window.args.get("partition_by") or (),
                    _list_order_of_row_numbers(window),
                )
            ]
            subject = f"{window.this.sql_name()} by {columns[0] or 'nothing'}, order {columns[1]}"
            yield _PickByRowNumber(subject, window, select)


def _keeps_first(test: exp.Expr) -> bool:
    """Whether a comparison is `= 1`, `<= 1` or `< 2`."""
    number = "2" if isinstance(test, exp.LT) else "1"
    other = test.expression
    return isinstance(other, exp.Literal) and not other.is_string and other.name == number


def _list_order_of_row_numbers(window: exp.Window) -> list[exp.Expr]:
    order = window.args.get("order")
    return [key.this for key in order.expressions] if order is not None else []


def _may_tie(pick: _PickByRowNumber, model: Model) -> bool:
    """Whether equal rows matter: they differ in a column, or RANK keeps several of one key."""
    parts = list(pick.window.args.get("partition_by") or ())
    if not isinstance(pick.window.this, exp.RowNumber):
        names = {part.name.lower() for part in parts if isinstance(part, exp.Column)}
        return any(key <= names for key in list_unique_keys(model))
    shared = {*parts, *_list_order_of_row_numbers(pick.window)}
    return any(item not in shared for _, item in pick.select.results if item is not pick.window)


def _weigh_pick(
    pick: _PickByRowNumber, models: Mapping[str, Model], types: ModelValueTypes
) -> Severity | None:
    """Returns the severity of a pick by its order; None if it is no risk.

    A day has many rows, a moment hardly ever has two.
    """
    if _combines_rows(pick.select):
        return None
    where = iterate_equalities(pick.select.list_clause_conditions("where"))
    fixed = {place for place, others in where if not others}
    keys = [
        frozenset(name for name in key if (alias.lower(), name) not in fixed)
        for alias, source in pick.select.sources.items()
        for key in list_source_keys(source, models)
    ]
    parts = pick.window.args.get("partition_by") or []
    order = [
        node
        for node in _list_order_of_row_numbers(pick.window)
        if node not in parts and any(node.find_all(exp.Column))
    ]
    held = _list_column_names_of_nodes((*parts, *order))
    if any(key <= held for key in keys):
        return None
    if not order:
        return "high"
    families = [
        "date" if isinstance(node, _TRUNCATED) else name_family(types.find_type(pick.select, node))
        for node in order
    ]
    if set(families) <= (_COARSE | {"text"} if keys else _COARSE):
        return "high"
    return "low" if keys else None
