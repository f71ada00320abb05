"""Changes of which rows pass, and of what window functions make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.secrets import hide
from ci_bot.secrets.cutting import shortened
from ci_bot.worker.compat.parsing.trees import FROM
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.joining import keys_of
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql.algebra.terms import TermKey
from ci_bot.worker.rules.sql.meaning import Meaning
from ci_bot.worker.rules.sql.positions import ClauseKey, describe_moved, list_clauses, list_keys
from ci_bot.worker.rules.sql.queries import Query, plain, table_name

FILTER = rule("filter-changed")
TIES = rule("nondeterministic-order")

SHOWN = 200

# Functions whose value of a row depends on which of two equal rows comes first.
_PICKING = (
    exp.RowNumber, exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.NthValue,
    exp.Lag, exp.Lead, exp.Ntile,
)  # fmt: skip


def shown(meaning: Meaning, key: TermKey, inputs: RuleInputs) -> str:
    """A condition of a query as it is written there, with the models in it called as everywhere."""
    return shortened(hide(inputs.names.within(meaning.show(key))), SHOWN)


@on_change(FILTER)
def filters(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Conditions on rows, wherever in the query they stand; not those on the interval."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    # An inner join's own conditions filter like a WHERE: moving one there changes nothing.
    lost = [key for key in (old.filters - new.filters) if key not in new.inner_conditions]
    came = [key for key in (new.filters - old.filters) if key not in old.inner_conditions]
    if not lost and not came:
        return
    gone = Counter(shown(old, key, inputs) for key in lost)
    fresh = Counter(shown(new, key, inputs) for key in came)
    told = [f"removed {text}" for text in gone - fresh]
    told += [f"added {text}" for text in fresh - gone]
    if not told and _only_decides_more(pair):
        return
    # The words are the same, and what stands behind one of them is computed differently.
    told += [f"{text}, of other values" for text in gone & fresh]
    yield Observation(
        FILTER,
        f"The conditions on rows differ: {names(told, 4)}.",
        "the owner confirms which rows belong to the model",
        model=pair.after,
        anchors=(*(new.show(key)[:60] for key in came), "WHERE", "HAVING", "QUALIFY", "FROM"),
    )


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
            text = shown(new, key, inputs)
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


@on_change(FILTER)
def limited(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """LIMIT keeps the first rows of an order; of another order these are other rows."""
    if pair.query_before is None or pair.query_after is None or pair.same_text:
        return
    if not pair.query_after.rendered_tree.has(exp.Limit, exp.Fetch):
        return
    for old, new in list_clauses(pair.query_before, pair.query_after, "order"):
        if old.args.get("limit") is None or new.args.get("limit") is None:
            continue
        before, after = list_keys(old, "order"), list_keys(new, "order")
        same = [was.means(now) for was, now in zip(before, after, strict=False)]
        if all(same) and len(before) <= len(after):
            continue
        told = describe_moved(before, after, "ORDER BY") or [
            f"the order is {_in_order(after)}, no longer {_in_order(before)}"
        ]
        yield Observation(
            FILTER,
            f"LIMIT keeps other rows: {'; '.join(told)}.",
            "the owner confirms which rows belong to the model, and ORDER BY names its columns",
            model=pair.after,
            subject=("rows that LIMIT keeps",),
            anchors=("ORDER BY", "LIMIT"),
        )


def _in_order(keys: list[ClauseKey]) -> str:
    return ", ".join(f"`{hide(key.name)}{key.direction}`" for key in keys) or "any"


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
            if not lost or not _order(after) < _order(before):
                continue
            if not _decides(after, models) and not _equal_among_equals(after):
                yield Observation(
                    TIES,
                    f"The window of {what[0].upper()} is no longer ordered by {names(lost)}: of "
                    "rows that are equal in what is left, chance decides which comes first, and "
                    "the next run may decide differently.",
                    "the order ends with columns that tell every row from the others",
                    model=pair.after,
                    subject=tuple(sorted(lost)),
                    anchors=("ORDER BY", "OVER"),
                )


def _only_decides_more(pair: Pair) -> bool:
    """Whether picking windows changed, and each only in that its order goes on where it ended."""
    if pair.query_before is None or pair.query_after is None:
        return False
    old, new = _orders(pair.query_before), _orders(pair.query_after)
    if old.keys() != new.keys() or any(len(old[what]) != len(new[what]) for what in old):
        return False
    sides = [pair for what in old for pair in zip(old[what], new[what], strict=True)]
    written = [(_written_order(before), _written_order(after)) for before, after in sides]
    return any(before != after for before, after in written) and all(
        after[: len(before)] == before for before, after in written
    )


def _written_order(window: Any) -> list[str]:
    order = window.args.get("order")
    return [_text(key) for key in order.expressions] if order is not None else []


def _equal_among_equals(window: Any) -> bool:
    """Whether the function gives a value of the order itself, which is one for all equal rows."""
    function = window.this
    value = function.this if isinstance(function.this, exp.Expression) else None
    if value is None or isinstance(function, exp.RowNumber | exp.Ntile):
        return False
    known = _order(window) | {_text(part) for part in window.args.get("partition_by") or []}
    return _text(value) in known


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
    source = select.args.get(FROM) if select is not None else None
    if source is None or select.args.get("joins") or not isinstance(source.this, exp.Table):
        return False
    held = {column.name.lower() for column in window.find_all(exp.Column)}
    return any(key <= held for key in keys_of(models.get(table_name(source.this))))
