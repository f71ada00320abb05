"""Changes of rows: which rows there are, what a row means, and how often equal rows count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.redaction import redact_shapes, shorten_redacted
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import list_grains, list_unique_keys
from ci_bot.worker.rules.observation import SAME_COLUMN_ORDER, RuleObservation
from ci_bot.worker.rules.queries.query_shape import UnionColumnOrder, list_moved_names
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import (
    ClauseKey,
    ModelQuery,
    QueryMeaning,
    TermKey,
    describe_moved_positions,
    enter_expression,
    find_interval_bounds,
    list_clause_keys,
    pair_clause_queries,
    plain_name,
    render_expression_text,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# Changes of filters and limits, and of the rows that window functions read.


FILTER = find_rule("filter-changed")
TIES = find_rule("nondeterministic-order")
DECIDES_ORDER = "the order ends with columns that tell every row from the others"
SHOWN = 200

# Functions that give another value if two rows that are equal in ORDER BY change places.
_PICKING = (
    exp.RowNumber, exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.NthValue,
    exp.Lag, exp.Lead, exp.Ntile,
)  # fmt: skip


def render_condition(meaning: QueryMeaning, key: TermKey, inputs: RuleInputs) -> str:
    """Renders a condition of a query as it is written, with the models' names for reports."""
    return shorten_redacted(
        redact_shapes(inputs.names.shorten_in_text(meaning.show_key(key))), SHOWN
    )


@on_change(FILTER)
def find_changed_filters(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed conditions on rows, anywhere in the query; not those on the interval."""
    if pair.both_meanings is None:
        return
    old, new = pair.both_meanings
    # The conditions of an inner join filter rows like WHERE, so a move between them is no change.
    lost = [key for key in (old.filters - new.filters) if key not in new.inner_conditions]
    added = [key for key in (new.filters - old.filters) if key not in old.inner_conditions]
    if not lost and not added:
        return
    gone = Counter(render_condition(old, key, inputs) for key in lost)
    fresh = Counter(render_condition(new, key, inputs) for key in added)
    changes = [f"removed {text}" for text in gone - fresh]
    changes += [f"added {text}" for text in fresh - gone]
    if not changes and _only_decides_more(pair):
        return
    # The text is the same, but one of its names is computed in another way.
    changes += [f"{text}, of other values" for text in gone & fresh]
    yield RuleObservation(
        FILTER,
        f"The conditions on rows differ: {quote_names(changes, 4)}.",
        "the owner confirms which rows belong to the model",
        model=pair.after,
        anchors=(*(new.show_key(key)[:60] for key in added), "WHERE", "HAVING", "QUALIFY", "FROM"),
    )


@on_change(FILTER)
def find_moved_filters(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds conditions that moved from before a window function to after it, or the reverse."""
    if pair.both_meanings is None:
        return
    old, new = pair.both_meanings
    for key in sorted(old.filters.keys() & new.filters.keys()):
        if old.filters[key] != new.filters[key]:
            continue  # reported as a condition that comes or goes
        was, now = old.before_windows[key], new.before_windows[key]
        if was != now:
            text = render_condition(new, key, inputs)
            where = "before" if now > was else "after"
            yield RuleObservation(
                FILTER,
                f"`{text}` is applied {where} a window function reads the rows now: its ranks, "
                "sums or neighbours are those of other rows than before.",
                "the owner confirms which rows the window function is to see",
                model=pair.after,
                subject=("around a window function",),
                anchors=(new.show_key(key)[:60], "WHERE", "OVER"),
            )


@on_change(FILTER)
def find_changed_limits(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds LIMIT after another ORDER BY: it keeps the first rows of the order."""
    if pair.query_before is None or pair.query_after is None or pair.has_same_text:
        return
    if not pair.query_after.rendered_tree.has_any(exp.Limit, exp.Fetch):
        return
    for old, new in pair_clause_queries(pair.query_before, pair.query_after, "order"):
        if old.args.get("limit") is None or new.args.get("limit") is None:
            continue
        before, after = list_clause_keys(old, "order"), list_clause_keys(new, "order")
        same = [was.means_same_column(now) for was, now in zip(before, after, strict=False)]
        if all(same) and len(before) <= len(after):
            continue
        changes = describe_moved_positions(before, after, "ORDER BY") or [
            f"the order is {_render_sort_keys(after)}, no longer {_render_sort_keys(before)}"
        ]
        yield RuleObservation(
            FILTER,
            f"LIMIT keeps other rows: {'; '.join(changes)}.",
            "the owner confirms which rows belong to the model, and ORDER BY names its columns",
            model=pair.after,
            subject=("rows that LIMIT keeps",),
            anchors=("ORDER BY", "LIMIT"),
        )


@on_change(FILTER)
def find_other_interval_columns(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds another column that the interval limits.

    In a model without a time column only the filter says which rows a run reads: a merge by key
    that reads by creation never sees a correction. With a time column another rule compares the
    two; it accepts a filter on both, although one more column can keep late rows out.
    """
    if pair.query_before is None or pair.query_after is None or pair.is_proved_same:
        return
    was, now = (
        {name for _, name in find_interval_bounds(query).columns}
        for query in (pair.query_before, pair.query_after)
    )
    has_time_column = pair.before.time_column is not None or pair.after.time_column is not None
    if not was or not (was < now if has_time_column else now - was):
        return
    yield RuleObservation(
        FILTER,
        f"A run reads rows by {quote_names(now)}, and did by {quote_names(was)}: rows that are in "
        "the interval by one time and not by the other are read in another run, or in none.",
        "the owner confirms which rows each run has to read",
        model=pair.after,
        subject=(f"interval by {', '.join(sorted(now))}",),
        anchors=("@start_ds", "@start_ts", "@start_dt", "@start_date", "WHERE"),
    )


def _render_sort_keys(keys: list[ClauseKey]) -> str:
    return ", ".join(f"`{redact_shapes(key.name)}{key.direction}`" for key in keys) or "any"


@on_change(TIES)
def find_lost_tie_breakers(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds a window's ORDER BY that no longer decides which row comes first."""
    if pair.both_meanings is None or pair.query_before is None or pair.query_after is None:
        return
    models = {plain_name(fqn): model for fqn, model in inputs.after.items()}
    old, new = _map_orders_of_query(pair.query_before), _map_orders_of_query(pair.query_after)
    for what, windows in new.items():
        earlier = old.get(what, [])
        if len(earlier) != len(windows):
            continue  # the pairs are unknown
        for before, after in zip(earlier, windows, strict=True):
            lost = _list_order_columns_of_window(before) - _list_order_columns_of_window(after)
            if not lost or not _list_order_columns_of_window(after) < _list_order_columns_of_window(
                before
            ):
                continue
            if not _does_changed_order_decide(after, models) and not _has_equal_value_for_ties(
                after
            ):
                yield RuleObservation(
                    TIES,
                    f"The window of {what[0].upper()} is no longer ordered by "
                    f"{quote_names(lost)}: of rows that are equal in what is left, chance decides "
                    "which comes first, and the next run may decide differently.",
                    DECIDES_ORDER,
                    model=pair.after,
                    subject=tuple(sorted(lost)),
                    anchors=("ORDER BY", "OVER"),
                )


def _only_decides_more(pair: ModelPair) -> bool:
    """Whether windows that pick rows changed, and each only got more columns in its ORDER BY."""
    if pair.query_before is None or pair.query_after is None:
        return False
    old, new = _map_orders_of_query(pair.query_before), _map_orders_of_query(pair.query_after)
    if old.keys() != new.keys() or any(len(old[what]) != len(new[what]) for what in old):
        return False
    sides = [pair for what in old for pair in zip(old[what], new[what], strict=True)]
    written = [(_list_written_order(before), _list_written_order(after)) for before, after in sides]
    return any(before != after for before, after in written) and all(
        after[: len(before)] == before for before, after in written
    )


def _list_written_order(window: exp.Expr) -> list[str]:
    order = window.args.get("order")
    return [render_expression_text(key) for key in order.expressions] if order is not None else []


def _has_equal_value_for_ties(window: exp.Expr) -> bool:
    """Whether the function returns a column of its ORDER BY: equal rows have the same value."""
    function = window.this
    value = function.this if isinstance(function.this, exp.Expression) else None
    if value is None or isinstance(function, exp.RowNumber | exp.Ntile):
        return False
    known = _list_order_columns_of_window(window) | {
        render_expression_text(part) for part in window.args.get("partition_by") or []
    }
    return render_expression_text(value) in known


def _map_orders_of_query(query: ModelQuery) -> dict[tuple[str, frozenset[str]], list[exp.Expr]]:
    """Maps function and partition to the windows that pick rows, in written order."""
    found: dict[tuple[str, frozenset[str]], list[exp.Expr]] = {}
    for window in query.rendered_tree.find_all(exp.Window):
        function = enter_expression(window.this, exp.IgnoreNulls, exp.RespectNulls)
        if isinstance(function, _PICKING):
            parts = frozenset(map(render_expression_text, window.args.get("partition_by") or []))
            found.setdefault((render_expression_text(function), parts), []).append(window)
    return found


def _list_order_columns_of_window(window: exp.Expr) -> set[str]:
    order = window.args.get("order")
    keys = order.expressions if order is not None else []
    return {
        render_expression_text(key.this if isinstance(key, exp.Ordered) else key)
        for key in keys
        if key.find(exp.Column) is not None
    }


def _does_changed_order_decide(window: exp.Expr, models: Mapping[str, Model]) -> bool:
    """Whether partition and order together contain a key of the only table."""
    select = window.find_ancestor(exp.Select)
    source = select.args.get(FROM) if select is not None else None
    if select is None or source is None:
        return False
    if select.args.get("joins") or not isinstance(source.this, exp.Table):
        return False
    held = {column.name.lower() for column in window.find_all(exp.Column)}
    return any(key <= held for key in list_unique_keys(models.get(table_name(source.this))))


GRAIN = find_rule("grain-changed")
DISTINCT = find_rule("distinct-changed")
UNION = find_rule("union-changed")


@on_change(GRAIN)
def find_grain_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds another meaning of a row: other groups, or another declared grain."""
    sentence = ""
    if pair.both_meanings is not None:
        old, new = pair.both_meanings
        if (
            old.groups
            and new.groups
            and old.groups[-1] != new.groups[-1]
            and len(old.groups) == len(new.groups)
        ):
            less = {render_condition(old, text, inputs) for text in old.groups[-1] - new.groups[-1]}
            more = {render_condition(new, text, inputs) for text in new.groups[-1] - old.groups[-1]}
            parts = [
                f"without {quote_names(less)}" if less else "",
                f"with {quote_names(more)}" if more else "",
            ]
            # If the names are the same, a key of that name is computed in another way.
            if less != more:
                sentence = f"Rows are grouped {' and '.join(part for part in parts if part)}."
        elif bool(old.groups) != bool(new.groups):
            sentence = "Rows are grouped now." if new.groups else "Rows are no longer grouped."
    moved = _list_moved_groups(pair)
    if moved:
        sentence = f"{sentence} {'; '.join(moved)}.".lstrip()
    declared_old, declared_new = set(list_grains(pair.before)), set(list_grains(pair.after))
    if sentence:
        yield RuleObservation(
            GRAIN,
            f"{sentence} One row means something else than before.",
            "the owner confirms the new meaning of a row, and readers do not sum it twice",
            model=pair.after,
            anchors=("GROUP BY",),
        )
    elif declared_old and declared_old != declared_new:
        yield RuleObservation(
            GRAIN,
            "The declared grain changes from "
            f"{quote_names(column for key in declared_old for column in key)} to "
            f"{quote_names(column for key in declared_new for column in key) or 'none'}.",
            "the declared grain is what identifies a row",
            severity="medium" if declared_new else "low",
            model=pair.after,
            anchors=("grain", "grains", "name"),
        )


def _list_moved_groups(pair: ModelPair) -> list[str]:
    """Lists positions in GROUP BY that now mean another column."""
    if pair.query_before is None or pair.query_after is None or pair.has_same_text:
        return []
    found: list[str] = []
    for old, new in pair_clause_queries(pair.query_before, pair.query_after, "group"):
        before, after = list_clause_keys(old, "group"), list_clause_keys(new, "group")
        if not all(any(was.means_same_column(now) for now in after) for was in before):
            found += describe_moved_positions(before, after, "GROUP BY")
    return found


@on_change(DISTINCT)
def find_distinct_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds DISTINCT that is new and hides duplicates, or is gone and no longer removes them."""
    if pair.both_meanings is None:
        return
    old, new = pair.both_meanings
    if new.distincts > old.distincts:
        joined = len(new.joins) > len(old.joins)
        yield RuleObservation(
            DISTINCT,
            "DISTINCT is new"
            + (
                ", together with a join: it hides rows that the join multiplies until two of them "
                "differ."
                if joined
                else ": equal rows are dropped from here on."
            ),
            "the duplicates are understood, or removed where they arise",
            severity="high" if joined else None,
            model=pair.after,
            anchors=("DISTINCT",),
        )
    elif new.distincts < old.distincts and not len(new.groups) > len(old.groups):
        yield RuleObservation(
            DISTINCT,
            "DISTINCT is gone: rows that were dropped as duplicates now count.",
            "the rows are unique without it",
            severity="high",
            model=pair.after,
            anchors=("SELECT",),
        )


@on_change(UNION)
def find_union_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds UNION instead of UNION ALL or the reverse, and branches that are added or removed."""
    if pair.both_meanings is None:
        return
    old, new = pair.both_meanings
    if old.unions == new.unions:
        return
    lost, added = old.unions - new.unions, new.unions - old.unions
    changes = [f"{n} {kind} gone" for kind, n in lost.items()]
    changes += [f"{n} {kind} new" for kind, n in added.items()]
    dedups = added["UNION"] > 0
    in_parts = _is_full_join_in_parts(old, new) or _is_full_join_in_groups(pair, old, new)
    yield RuleObservation(
        UNION,
        f"Set operations change: {quote_names(changes)}."
        + (" UNION without ALL drops equal rows of all branches." if dedups else "")
        + (" The same tables were brought together by a full join." if in_parts else ""),
        "the owner confirms which rows come together, and whether equal ones count once",
        severity="low" if in_parts else None,
        model=pair.after,
        anchors=("UNION", "EXCEPT", "INTERSECT", "FROM"),
    )


@on_change(UnionColumnOrder.spec)
def find_branch_order_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds branches of a union whose columns no longer have the same order.

    In a model that reads whole tables, a change of a table's columns has this effect.
    """
    query = pair.query_after
    by_name = query.tree.find_all(exp.SetOperation) if query is not None else ()
    if not pair.has_same_text and not any(map(list_moved_names, by_name)):
        yield from _observe_moved_columns(pair.after, *pair.both_trees)
    if list(pair.before.columns_to_types or ()) == list(pair.after.columns_to_types or ()):
        return
    for reader in pair.readers:
        before = inputs.before.get(reader.fqn)
        if before is None or before.data_hash != reader.data_hash:
            continue  # it has its own pair
        old, new = pair.queries.query_of(before), pair.queries.query_of(reader)
        if old is not None and new is not None:
            yield from _observe_moved_columns(reader, old.rendered_query, new.rendered_query)


def _observe_moved_columns(model: Model, *trees: Any) -> Iterator[RuleObservation]:
    old, new = map(_list_branches_of_unions, trees)
    moved: set[str] = set()
    for before, after in zip(old, new, strict=True) if len(old) == len(new) else ():
        was, now = dict(before), dict(after)
        partners, kept = ({part: name for name, part in side} for side in (before, after))
        if len(was) != len(before) or len(partners) != len(before) or len(kept) != len(after):
            continue  # a name or an expression that occurs twice has no single partner
        moved |= {
            name
            for name in was.keys() & now.keys()
            if was[name] != now[name] and kept.get(was[name], name) != name
        }
    if moved:
        yield RuleObservation(
            UnionColumnOrder.spec,
            "A union pairs columns by position, and its branches are no longer in line: "
            f"{quote_names(moved)} {'takes its' if len(moved) == 1 else 'take their'} values from "
            "another column of the other branch.",
            SAME_COLUMN_ORDER,
            model=model,
            subject=(", ".join(sorted(moved)),),
            anchors=("UNION", "EXCEPT", "INTERSECT"),
        )


def _list_branches_of_unions(tree: exp.Expr) -> list[list[tuple[str, str]]]:
    """Lists the result columns of each set operation, with the expressions of the other branch."""
    if not isinstance(tree, exp.Query):
        return []
    return [
        [
            (first.alias_or_name.lower(), render_expression_text(second))
            for first, second in zip(union.left.selects, union.right.selects, strict=False)
        ]
        for union in tree.find_all(exp.SetOperation)
        if not union.args.get("by_name")
    ]


def _is_full_join_in_parts(old: QueryMeaning, new: QueryMeaning) -> bool:
    """Whether UNION ALL replaces full joins, over the same tables."""
    tables = [{join.target for join in side.joins} | set(+side.reads) for side in (old, new)]
    return _replace_full_joins(old, new) and tables[0] == tables[1]


def _is_full_join_in_groups(pair: ModelPair, old: QueryMeaning, new: QueryMeaning) -> bool:
    """Whether a GROUP BY over UNION ALL replaces full joins.

    Before, each part was grouped and then joined; now the union is grouped. Without that last
    group, the rows of the parts are not combined.
    """
    query, (before, after) = pair.query_after, pair.both_trees
    grouped = query.root.only_branch if query is not None else None
    return (
        _replace_full_joins(old, new)
        and grouped is not None
        and grouped.node.args.get("group") is not None
        and not new.joins
        and _list_tables_of_query(before) == _list_tables_of_query(after)
    )


def _replace_full_joins(old: QueryMeaning, new: QueryMeaning) -> bool:
    lost, added = old.unions - new.unions, new.unions - old.unions
    fulls = [sum(join.how == "FULL" for join in side.joins) for side in (old, new)]
    return not lost and set(added) == {"UNION ALL"} and fulls[0] - fulls[1] >= added["UNION ALL"]


def _list_tables_of_query(tree: exp.Expr | None) -> list[str]:
    """Lists the tables that a query reads, each as often as it reads them; a CTE is no table."""
    found = tree.find_all(exp.Table) if tree is not None else ()
    return sorted(table_name(table) for table in found if table.db)
