"""Changes of what a row stands for, and of how often equal rows count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.worker.rules.changes.windows import shown
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.keys import grain_of
from ci_bot.worker.rules.models.shape import UnionColumnOrder, list_moved_names
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql.meaning import Meaning
from ci_bot.worker.rules.sql.positions import (
    describe_moved,
    item_text,
    list_clauses,
    list_keys,
)
from ci_bot.worker.rules.sql.queries import outer, table_name

GRAIN = rule("grain-changed")
DISTINCT = rule("distinct-changed")
UNION = rule("union-changed")


@on_change(GRAIN)
def grain(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """What one row stands for."""
    told = ""
    if pair.meanings is not None:
        old, new = pair.meanings
        if (
            old.groups
            and new.groups
            and old.groups[-1] != new.groups[-1]
            and (len(old.groups) == len(new.groups))
        ):
            less = {shown(old, text, inputs) for text in old.groups[-1] - new.groups[-1]}
            more = {shown(new, text, inputs) for text in new.groups[-1] - old.groups[-1]}
            parts = [
                f"without {names(less)}" if less else "",
                f"with {names(more)}" if more else "",
            ]
            # Where the words are the same, a key of that name is computed differently.
            if less != more:
                told = f"Rows are grouped {' and '.join(part for part in parts if part)}."
        elif bool(old.groups) != bool(new.groups):
            told = "Rows are grouped now." if new.groups else "Rows are no longer grouped."
    moved = _list_moved_groups(pair)
    if moved:
        told = f"{told} {'; '.join(moved)}.".lstrip()
    declared_old, declared_new = set(grain_of(pair.before)), set(grain_of(pair.after))
    if told:
        yield Observation(
            GRAIN,
            f"{told} One row stands for something else than before.",
            "the owner confirms the new meaning of a row, and readers do not sum it twice",
            model=pair.after,
            anchors=("GROUP BY",),
        )
    elif declared_old and declared_old != declared_new:
        yield Observation(
            GRAIN,
            "The declared grain changes from "
            f"{names(column for key in declared_old for column in key)} to "
            f"{names(column for key in declared_new for column in key) or 'none'}.",
            "the declared grain is what identifies a row",
            severity="medium" if declared_new else "low",
            model=pair.after,
            anchors=("grain", "grains", "name"),
        )


def _list_moved_groups(pair: Pair) -> list[str]:
    """Positions in GROUP BY that mean another column, so that the groups are others."""
    if pair.query_before is None or pair.query_after is None or pair.same_text:
        return []
    found: list[str] = []
    for old, new in list_clauses(pair.query_before, pair.query_after, "group"):
        before, after = list_keys(old, "group"), list_keys(new, "group")
        if not all(any(was.means(now) for now in after) for was in before):
            found += describe_moved(before, after, "GROUP BY")
    return found


@on_change(DISTINCT)
def distinct(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """DISTINCT that hides duplicates, or no longer removes them."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    if new.distincts > old.distincts:
        joined = len(new.joins) > len(old.joins)
        yield Observation(
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
        yield Observation(
            DISTINCT,
            "DISTINCT is gone: rows that were dropped as duplicates now count.",
            "the rows are unique without it",
            severity="high",
            model=pair.after,
            anchors=("SELECT",),
        )


@on_change(UNION)
def unions(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """UNION against UNION ALL, and branches that come or go."""
    if pair.meanings is None:
        return
    old, new = pair.meanings
    if old.unions == new.unions:
        return
    lost, came = old.unions - new.unions, new.unions - old.unions
    told = [f"{n} {kind} gone" for kind, n in lost.items()]
    told += [f"{n} {kind} new" for kind, n in came.items()]
    dedups = came["UNION"] > 0
    in_parts = _is_full_join_in_parts(old, new) or _is_full_join_in_groups(pair, old, new)
    yield Observation(
        UNION,
        f"Set operations change: {names(told)}."
        + (" UNION without ALL drops equal rows of all branches." if dedups else "")
        + (" The same tables were brought together by a full join." if in_parts else ""),
        "the owner confirms which rows come together, and whether equal ones count once",
        severity="low" if in_parts else None,
        model=pair.after,
        anchors=("UNION", "EXCEPT", "INTERSECT", "FROM"),
    )


@on_change(UnionColumnOrder.spec)
def branches(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Branches of a union that were in line: one gets a column at another place than the other.

    In a model that reads whole tables, a table does it whose columns are others now.
    """
    query = pair.query_after
    by_name = query.tree.all(exp.SetOperation) if query is not None else ()
    if not pair.same_text and not any(map(list_moved_names, by_name)):
        yield from _moved_in_branches(pair.after, *pair.trees)
    if list(pair.before.columns_to_types or ()) == list(pair.after.columns_to_types or ()):
        return
    for reader in pair.readers:
        before = inputs.before.get(reader.fqn)
        if before is None or before.data_hash != reader.data_hash:
            continue  # it has a pair of its own
        old, new = pair.queries.of(before), pair.queries.of(reader)
        if old is not None and new is not None:
            yield from _moved_in_branches(reader, old.rendered, new.rendered)


def _moved_in_branches(model: Any, *trees: Any) -> Iterator[Observation]:
    old, new = map(_list_branches, trees)
    moved: set[str] = set()
    for before, after in zip(old, new, strict=True) if len(old) == len(new) else ():
        was, now = dict(before), dict(after)
        partners, kept = ({part: name for name, part in side} for side in (before, after))
        if len(was) != len(before) or len(partners) != len(before) or len(kept) != len(after):
            continue  # a name or an expression that stands twice has no one partner
        moved |= {
            name
            for name in was.keys() & now.keys()
            if was[name] != now[name] and kept.get(was[name], name) != name
        }
    if moved:
        yield Observation(
            UnionColumnOrder.spec,
            f"A union goes by position, and its branches are no longer in line: {names(moved)} "
            f"{'takes its' if len(moved) == 1 else 'take their'} values from another column of "
            "the other branch.",
            "all branches list their columns in the same order",
            model=model,
            subject=(", ".join(sorted(moved)),),
            anchors=("UNION", "EXCEPT", "INTERSECT"),
        )


def _list_branches(tree: Any) -> list[list[tuple[str, str]]]:
    """For each set operation the result columns, each with what the other branch gives for it."""
    if not isinstance(tree, exp.Query):
        return []
    return [
        [
            (first.alias_or_name.lower(), item_text(second))
            for first, second in zip(union.left.selects, union.right.selects, strict=False)
        ]
        for union in tree.find_all(exp.SetOperation)
        if not union.args.get("by_name")
    ]


def _is_full_join_in_parts(old: Meaning, new: Meaning) -> bool:
    """Whether UNION ALL stands where full joins stood, over the same tables."""
    tables = [{join.target for join in side.joins} | set(+side.reads) for side in (old, new)]
    return _stand_for_full_joins(old, new) and tables[0] == tables[1]


def _is_full_join_in_groups(pair: Pair, old: Meaning, new: Meaning) -> bool:
    """Whether a GROUP BY over UNION ALL brings together what full joins brought together.

    The parts are grouped after the union, where each was grouped before the join; without a group
    at the end a row of each part stands for itself.
    """
    query, (before, after) = pair.query_after, pair.trees
    grouped = outer(query.root) if query is not None else []
    return (
        _stand_for_full_joins(old, new)
        and len(grouped) == 1
        and grouped[0].expression.args.get("group") is not None
        and not new.joins
        and _list_tables(before) == _list_tables(after)
    )


def _stand_for_full_joins(old: Meaning, new: Meaning) -> bool:
    lost, came = old.unions - new.unions, new.unions - old.unions
    fulls = [sum(join.how == "FULL" for join in side.joins) for side in (old, new)]
    return not lost and set(came) == {"UNION ALL"} and fulls[0] - fulls[1] >= came["UNION ALL"]


def _list_tables(tree: Any) -> list[str]:
    """The tables that a query reads, each as often as it does; a CTE is none."""
    return sorted(table_name(table) for table in tree.find_all(exp.Table) if table.db)
