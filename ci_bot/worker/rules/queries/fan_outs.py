"""Rows of a join that determine each other, and totals and counts over rows that a join repeats.

A row determines another one by equalities, constants and declared keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.declared_keys import (
    Place,
    find_column_alias_and_name,
    is_range_join,
    iterate_equalities,
    keeps_only_unmatched,
    list_column_aliases_and_names,
    list_unique_keys,
    make_singular,
    may_model_deduplicate,
    split_column_name_into_words,
)
from ci_bot.worker.rules.models.linter_rule import ModelRule, ProjectView, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import ScopedSelect, SelectSource, table_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


_MOST_LEVELS = 12


@dataclass
class JoinedRows:
    """The sources that a SELECT joins, and the conditions that determine a row of each.

    Attributes:
        first: the alias after FROM.
        keys: the keys of each source; a source without a known key is left out, and counts as one
            row.
        names: the table of each source, or the alias of a query.
        optional: sources that a LEFT JOIN adds.
        generated: sources that repeat a row of another one for each element of an array.
        equal: columns that conditions make equal to something, with the columns on the other side.
        fixed: sources from which a condition selects by a range; this counts as one row.
        grouped: columns that have one value in each group.
    """

    first: str
    keys: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    generated: dict[str, frozenset[str]] = field(default_factory=dict)
    equal: list[tuple[Place, frozenset[Place]]] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    grouped: frozenset[Place] = frozenset()

    def find_determined(self, start: Iterable[str]) -> set[str]:
        """Finds the sources that have one row for a row of all of `start` in one group."""
        found = {*start, *self.fixed} | (self.names.keys() - self.keys.keys())
        changed = True
        while changed:
            for alias in tuple(found & self.generated.keys()):
                found |= self.generated[alias]
            left = self.keys.keys() - found
            known = {alias for alias in left if self._is_determined(alias, found)}
            changed = bool(known)
            found |= known
        return found

    def find_determining(self) -> set[str]:
        """Finds the sources with a known key whose row determines the rows of all others."""
        known = self.keys.keys()
        return {alias for alias in known if known <= self.find_determined([alias])}

    def list_fixed(self, alias: str, found: Iterable[str] = ()) -> frozenset[str]:
        """Lists columns of a source that have one value if a row of each of `found` is given."""
        sources = set(found)
        return frozenset(
            column
            for (owner, column), others in self.equal
            if owner == alias
            and all(place[0] in sources or place in self.grouped for place in others)
        ) | {column for owner, column in self.grouped if owner == alias}

    def _is_determined(self, alias: str, found: set[str]) -> bool:
        fixed = self.list_fixed(alias, found)
        return any(key <= fixed for key in self.keys[alias])


def read_joined_rows(select: ScopedSelect, by_table: Mapping[str, Model]) -> JoinedRows | None:
    """Reads the sources of a SELECT; None if it reads one source only."""
    if select.start is None or not (select.joins or select.laterals):
        return None
    rows = JoinedRows(select.start.alias_or_name.lower())
    for alias in (rows.first, *(join.alias for join in select.joins if join.adds_columns)):
        table = select.find_table(alias)
        rows.names[alias] = table_name(table) if table is not None else alias
        keys = _list_keys_by_alias(select, alias, by_table)
        if keys:
            rows.keys[alias] = keys
    for join in select.joins:
        rows.equal += iterate_equalities(join.conditions)
    rows.equal += iterate_equalities(select.list_clause_conditions("where"))
    for join in select.joins:
        rows.equal += [((join.alias, name), frozenset()) for name in join.using]
        if join.node.side == "LEFT" and join.alias in rows.names:
            rows.optional.add(join.alias)
        tied = any(place[0] == join.alias for place, _ in rows.equal)
        is_one = is_range_join(join) or keeps_only_unmatched(select, join)
        if is_one or (join.node.kind == "CROSS" and not tied):
            rows.fixed.add(join.alias)  # another rule is about a join without a condition
    for lateral in select.laterals:
        _add_generated(rows, lateral)
    keys_of_group = select.list_group_keys()
    rows.grouped = frozenset(
        find_column_alias_and_name(k) for k in keys_of_group if isinstance(k, exp.Column)
    )
    return rows


def _add_generated(rows: JoinedRows, lateral: exp.Expr) -> None:
    """Adds the rows of LATERAL VIEW EXPLODE: one for each element of an array."""
    alias = lateral.args.get("alias")
    columns = frozenset(column.name.lower() for column in getattr(alias, "columns", ()) or ())
    if alias is None or not alias.name or not columns:
        return
    rows.names[alias.name.lower()] = alias.name
    rows.keys[alias.name.lower()] = [columns]
    made_of = {owner for owner, _ in list_column_aliases_and_names(lateral.this)} - {""}
    rows.generated[alias.name.lower()] = frozenset(made_of or {rows.first})


def _list_keys_by_alias(
    select: ScopedSelect, alias: str, by_table: Mapping[str, Model], depth: int = 0
) -> list[frozenset[str]]:
    is_known = alias in select.sources and alias not in select.pivoted
    return list_source_keys(select.sources[alias], by_table, depth) if is_known else []


def list_source_keys(
    source: SelectSource | None, by_table: Mapping[str, Model], depth: int = 0
) -> list[frozenset[str]]:
    """Lists the keys of a table, or of a query that groups, numbers or passes on its rows."""
    if isinstance(source, exp.Table):
        return list_unique_keys(by_table.get(table_name(source)))
    branch = source.only_branch if source is not None else None
    if branch is None or branch.groups_by_sets or depth >= _MOST_LEVELS:
        return []
    if branch.node.args.get("group") is not None:
        shown = {item: name for name, item in branch.results}
        names = [shown.get(part) for part in branch.list_group_keys()]
        return [] if None in names else [frozenset(name for name in names if name)]
    if branch.start is None or branch.joins or branch.laterals:
        return []
    alone = branch.start.alias_or_name.lower()
    inner = _list_keys_by_alias(branch, alone, by_table, depth + 1) + _list_numbered_keys(branch)
    where = iterate_equalities(branch.list_clause_conditions("where"))
    fixed = {name for (_, name), others in where if not others}
    outer = [_rename_key_of_source(branch, key - fixed) for key in inner]
    return [key for key in outer if key is not None]


def _list_numbered_keys(branch: ScopedSelect) -> list[frozenset[str]]:
    """Lists the columns by which ROW_NUMBER numbers rows, each with the number itself.

    A `#` is before the number's name.
    """
    found = []
    for name, window in branch.results:
        if isinstance(window, exp.Window) and isinstance(window.this, exp.RowNumber):
            parts = window.args.get("partition_by") or []
            if all(isinstance(part, exp.Column) for part in parts):
                names = {part.name.lower() for part in parts}
                found.append(frozenset({*names, f"#{name}"}))
    return found


def _rename_key_of_source(branch: ScopedSelect, key: Iterable[str]) -> frozenset[str] | None:
    """Returns the result columns that hold a key of the source; None if one is not returned."""
    shown = {
        item.name.lower(): name for name, item in branch.results if isinstance(item, exp.Column)
    }
    found = set()
    for name in key:
        # A number is a result column of this query, not of its source.
        mine = name.removeprefix("#") if name.startswith("#") else shown.get(name)
        if mine is None or branch.find_result(mine) is None:
            return None
        found.add(mine)
    return frozenset(found)


_ADDING = (
    exp.Sum, exp.Avg, exp.Count, exp.CountIf, exp.Stddev, exp.StddevSamp, exp.StddevPop,
    exp.Variance, exp.VariancePop,
)  # fmt: skip
_BOTH_SIDES = 2
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NEQ)
_CLEARS = "the partner is reduced to one row first, or summed up in a CTE of its own"


@on_model
class FanOutTotal(ModelRule):
    """If a join multiplies rows, a sum over them counts them several times."""

    spec = find_rule("fan-out-total")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Join, exp.Lateral):
            return
        if not query.tree.has_any(*_ADDING):
            return
        for select in query.known_root.selects:
            totals = [
                (item.alias_or_name, node)
                for item in select.node.expressions
                for node in item.find_all(*_ADDING)
                if not isinstance(node.this, exp.Distinct)
                and node.find_ancestor(exp.Window) is None
                and node.find_ancestor(exp.Select) is select.node
            ]
            rows = read_joined_rows(select, self.project.by_table) if totals else None
            if rows is not None:
                yield from self._observe_totals(model, rows, totals)
                yield from self._observe_counts(model, rows, totals)

    def _observe_totals(
        self, model: Model, rows: JoinedRows, totals: Sequence[tuple[str, exp.Expr]]
    ) -> Iterator[RuleObservation]:
        """Observes totals of columns that another source repeats, once for each such source."""
        counted: dict[str, dict[str, str]] = {}
        for column, node in totals:
            read = {alias for alias, _ in list_column_aliases_and_names(node)}
            if not read or "" in read:
                continue
            for alias in rows.keys.keys() - rows.find_determined(read):
                called = _name_joined_source(self.project, rows, alias)
                text = node.sql(dialect=model.dialect)
                counted.setdefault(alias, {})[f"{column} by {called}"] = text
        for alias, texts in sorted(counted.items()):
            called = _name_joined_source(self.project, rows, alias)
            key = min(rows.keys[alias], key=lambda one: (len(one), sorted(one)))
            fixed = rows.list_fixed(alias, rows.names)
            yield self.make_observation(
                model,
                partial(_describe_fan_out, texts, called, key, fixed),
                _CLEARS,
                subject=texts,
                anchors=(f"JOIN {called}", "JOIN"),
            )

    def _observe_counts(
        self, model: Model, rows: JoinedRows, totals: Sequence[tuple[str, exp.Expr]]
    ) -> Iterator[RuleObservation]:
        """Observes COUNT(*) over rows of another table than its reader would think."""
        for column, node in totals:
            if any(node.find_all(exp.Column)) or not rows.keys:
                continue
            why = self._describe_count(rows, column)
            if why is not None:
                text, severity = why
                yield self.make_observation(
                    model,
                    f"`{node.sql(dialect=model.dialect)}` in `{column}` {text}.",
                    "COUNT names a column of the table whose rows count, with DISTINCT for one "
                    "that the join repeats",
                    subject=[f"{column} counts rows of the join"],
                    severity=severity,
                    anchors=(column, "COUNT"),
                )

    def _describe_count(self, rows: JoinedRows, column: str) -> tuple[str, Severity | None] | None:
        known = rows.keys.keys()
        counted = rows.find_determining()
        others = known - counted
        called = partial(_name_joined_source, self.project, rows)
        tables = [quote_names(map(called, one)) for one in (known, others)]
        if not counted:
            return (
                f"counts pairs: the rows of {tables[0]} repeat each other, because none of them "
                "determines the others",
                None,
            )
        if not others:
            return None
        shown = quote_names(map(called, counted))
        is_called = partial(_is_called_after, column, rows)
        if is_called(others) and not is_called(counted):
            return f"is called after {tables[1]}, and counts the rows of {shown}", None
        # A row without a partner is no row of it, whatever the count is called.
        if rows.first in others and (not is_called(counted) or counted <= rows.optional):
            # If each group has one row of these tables, only the rows of the partner can be meant.
            is_clear = others <= rows.find_determined([])
            found = _describe_repeats(rows, counted, shown, tables[1])
            return None if found is not None and found[1] and is_clear else found
        return None


@on_model
class ManyToManyJoin(ModelRule):
    """A join that identifies a row of neither side lets each row meet several of the other side."""

    spec = find_rule("many-to-many-join")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Join) or may_model_deduplicate(query):
            return
        if list_unique_keys(model):
            return  # the declared key says what a row is, and other rules compare it with the joins
        for select in query.root.branches:
            rows = read_joined_rows(select, self.project.by_table)
            if rows is None or len(rows.keys) < _BOTH_SIDES or _orders_two_sources(select):
                continue
            if rows.find_determining():
                continue
            known = rows.keys.keys()
            by = {name for alias in known for name in rows.list_fixed(alias, known)}
            if not by:
                continue  # no equality, so nothing is known of its condition
            tables = [_name_joined_source(self.project, rows, alias) for alias in sorted(known)]
            yield self.make_observation(
                model,
                f"Rows of {quote_names(dict.fromkeys(tables))} meet by {quote_names(by)}, which "
                "identifies a row of none of these tables: each row is there once for each pair.",
                "the join compares a key of one side, or `grain` says that a row is a pair",
                subject=tables,
                anchors=("JOIN",),
            )


def _name_joined_source(project: ProjectView, rows: JoinedRows, alias: str) -> str:
    name = rows.names[alias]
    return project.name_of_table(name) if "." in name else name


def _orders_two_sources(select: ScopedSelect) -> bool:
    """Whether a condition orders rows of two sources, as `a.id < b.id`: then pairs are meant."""
    conditions = [part for join in select.joins for part in join.conditions]
    return any(
        len({alias for alias, _ in list_column_aliases_and_names(test)}) >= _BOTH_SIDES
        for part in [*conditions, *select.list_clause_conditions("where")]
        for test in part.find_all(*_ORDERS)
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


def _describe_repeats(
    rows: JoinedRows, counted: Collection[str], shown: str, repeated: str
) -> tuple[str, Severity | None] | None:
    """Describes a count of rows that repeat those of the table after FROM; None if it is meant."""
    if set(counted) <= rows.optional:
        return (
            f"counts a row of {repeated} without a partner as one, and any other as often as it "
            f"has partners in {shown}",
            None,
        )
    if rows.generated.keys() & set(counted):
        return None
    return f"counts the rows of {shown}, and not those of {repeated}", "medium"


def _is_called_after(column: str, rows: JoinedRows, aliases: Collection[str]) -> bool:
    words = _list_singular_words(column)
    return any(words & _list_singular_words(rows.names[alias], last=True) for alias in aliases)


def _list_singular_words(name: str, *, last: bool = False) -> set[str]:
    """Lists the words of a name, in the singular; with `last` only the last one."""
    words = split_column_name_into_words(name.rpartition(".")[2])
    return {make_singular(word) for word in (words[-1:] if last else words) if word}
