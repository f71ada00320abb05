"""Changes of what a window function looks at, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.secrets import hide
from ci_bot.secrets.cutting import shortened
from ci_bot.worker.rules.changes.rows import FILTER, SHOWN
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.joining import keys_of
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql.queries import Query, plain, table_name

TIES = rule("nondeterministic-order")

# Functions whose value of a row depends on which of two equal rows comes first.
_PICKING = (
    exp.RowNumber, exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.NthValue,
    exp.Lag, exp.Lead, exp.Ntile,
)  # fmt: skip


@on_change(FILTER)
def moved(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Conditions that stay, and go to the other side of a window function."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    for key in sorted(old.filters.keys() & new.filters.keys()):
        if old.filters[key] != new.filters[key]:
            continue  # told as a condition that comes or goes
        was, now = old.before_windows[key], new.before_windows[key]
        if was != now:
            text = shortened(hide(inputs.names.within(new.show(key))), SHOWN)
            where = "before" if now > was else "after"
            yield Observation(
                FILTER,
                f"`{text}` is applied {where} a window function looks at the rows now: its ranks, "
                "sums or neighbours are those of other rows than before.",
                "the owner confirms which rows the window function is to see",
                model=pair.after,
                subject=("around a window function",),
                anchors=(new.show(key)[:60], "WHERE", "OVER"),
            )


@on_change(TIES)
def ties(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """An ORDER BY of a window that decided which row comes first, and does so no more."""
    if pair.meanings is None or pair.query_before is None or pair.query_after is None:
        return
    models = {plain(fqn): model for fqn, model in inputs.after.items()}
    old, new = _orders(pair.query_before), _orders(pair.query_after)
    for what, windows in new.items():
        earlier = old.get(what, [])
        if len(earlier) != len(windows):
            continue  # which of them is which is not known
        for before, after in zip(earlier, windows, strict=True):
            lost = _order(before) - _order(after)
            if lost and _order(after) < _order(before) and not _decides(after, models):
                yield Observation(
                    TIES,
                    f"The window of {what[0].upper()} is no longer ordered by {names(lost)}: of "
                    "rows that are equal in what is left, chance decides which comes first, and "
                    "the next run may decide otherwise.",
                    "the order ends with columns that tell every row from the others",
                    model=pair.after,
                    subject=tuple(sorted(lost)),
                    anchors=("ORDER BY", "OVER"),
                )


def _orders(query: Query) -> dict[tuple[str, frozenset[str]], list[Any]]:
    """The picking windows by their function and partition, as they stand."""
    found: dict[tuple[str, frozenset[str]], list[Any]] = {}
    for window in query.rendered_tree.all(exp.Window):
        function = window.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
            function = function.this
        if isinstance(function, _PICKING):
            parts = frozenset(map(_text, window.args.get("partition_by") or []))
            found.setdefault((_text(function), parts), []).append(window)
    return found


def _order(window: Any) -> set[str]:
    order = window.args.get("order")
    keys = order.expressions if order is not None else []
    return {
        _text(key.this if isinstance(key, exp.Ordered) else key)
        for key in keys
        if key.find(exp.Column) is not None
    }


def _text(node: Any) -> str:
    """An expression without the names of its tables."""
    bare = node.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
        column.set("db", None)
        column.set("catalog", None)
        column.this.set("quoted", False)
    return str(bare.sql(dialect="spark", comments=False)).lower()


def _decides(window: Any, models: dict[str, Any]) -> bool:
    """Whether partition and order together hold a key of the only table that is read."""
    select = window.find_ancestor(exp.Select)
    source = select.args.get("from_") if select is not None else None
    if source is None or select.args.get("joins") or not isinstance(source.this, exp.Table):
        return False
    held = {column.name.lower() for column in window.find_all(exp.Column)}
    return any(key <= held for key in keys_of(models.get(table_name(source.this))))
