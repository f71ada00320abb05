"""Which row of a join determines which other one, by equalities, constants and declared keys; and
totals and counts over rows that a join repeats.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.declared_keys import is_range_join, list_unique_keys
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.sql import (
    find_projection,
    iterate_selects,
    list_outer_scopes,
    split_conditions,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


# A table's alias and its column.
_Place = tuple[str, str]
_VALIDITY = {"valid_from", "valid_to"}
_MOST_LEVELS = 12


@dataclass
class JoinedRows:
    """The sources that a SELECT joins, and what determines a row of each.

    Attributes:
        first: the alias after FROM.
        keys: the keys of each source; a source without a known key is not in it, and counts as one
            row.
        names: the table of each source, or the alias of a query.
        optional: sources that a LEFT JOIN adds.
        generated: sources that repeat a row of another one for each element of an array.
        equal: columns that conditions make equal to something, with the columns of that.
        fixed: sources that a condition picks by a range, which counts as one row.
        grouped: columns that are one in each group.
    """

    first: str
    keys: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    optional: set[str] = field(default_factory=set)
    generated: dict[str, frozenset[str]] = field(default_factory=dict)
    equal: list[tuple[_Place, frozenset[_Place]]] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    grouped: frozenset[_Place] = frozenset()

    def find_determined(self, start: Iterable[str]) -> set[str]:
        """Finds the sources of which one row belongs to a row of all of `start` in one group."""
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

    def list_fixed(self, alias: str, found: Iterable[str] = ()) -> frozenset[str]:
        """Lists columns of a source that have one value beside a row of each of `found`."""
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


def read_joined_rows(scope: Scope, by_table: Mapping[str, Model]) -> JoinedRows | None:
    """Reads the sources of a SELECT; None if it reads one source only."""
    select = scope.expression
    start = select.args.get(FROM)
    joins, laterals = select.args.get("joins") or [], select.args.get("laterals") or []
    if start is None or not (joins or laterals):
        return None
    rows = JoinedRows(start.this.alias_or_name)
    for node in [start.this, *(join.this for join in joins if _adds_rows(join))]:
        alias = node.alias_or_name
        source = scope.sources.get(alias)
        rows.names[alias] = table_name(source) if isinstance(source, exp.Table) else alias
        keys = list_source_keys(source, by_table)
        if keys:
            rows.keys[alias] = keys
    conditions = [part for join in joins for part in _split(join.args.get("on"))]
    where = select.args.get("where")
    conditions += _split(where.this if where is not None else None)
    for part in conditions:
        rows.equal += _list_equalities(part)
    for join in joins:
        alias = join.this.alias_or_name
        rows.equal += [
            ((alias, key.name.lower()), frozenset()) for key in join.args.get("using") or ()
        ]
        if join.side == "LEFT" and alias in rows.names:
            rows.optional.add(alias)
        tied = any(place[0] == alias for place, _ in rows.equal)
        if is_range_join(join, alias) or (join.kind == "CROSS" and not tied):
            rows.fixed.add(alias)  # another rule is about a join without a condition
    for lateral in laterals:
        _add_generated(rows, lateral)
    rows.grouped = frozenset(_list_grouped(select))
    return rows


def _adds_rows(join: exp.Join) -> bool:
    """Whether a join may repeat rows: LEFT SEMI and ANTI never do."""
    return join.kind not in {"SEMI", "ANTI"}


def _split(condition: exp.Expr | None) -> list[exp.Expr]:
    return [] if condition is None else [part.unnest() for part in split_conditions(condition)]


def _list_equalities(part: exp.Expr) -> Iterator[tuple[_Place, frozenset[_Place]]]:
    """Lists columns that a condition makes equal to something, and the columns of that."""
    if isinstance(part, exp.EQ | exp.NullSafeEQ):
        for side, other in ((part.this, part.expression), (part.expression, part.this)):
            column = side.unnest()
            if isinstance(column, exp.Column):
                places = frozenset(map(_find_place, other.find_all(exp.Column)))
                if not any(alias == column.table for alias, _ in places):
                    yield _find_place(column), places
    elif isinstance(part, exp.Is) and isinstance(part.this, exp.Column):
        # valid_to IS NULL selects the current row of a history.
        column = part.this
        for name in {column.name.lower(), *_VALIDITY}:
            yield (column.table, name), frozenset()


def _find_place(column: exp.Column) -> _Place:
    return column.table, column.name.lower()


def _add_generated(rows: JoinedRows, lateral: exp.Expr) -> None:
    """Adds the rows of LATERAL VIEW EXPLODE: one for each element of an array."""
    alias = lateral.args.get("alias")
    columns = frozenset(column.name.lower() for column in getattr(alias, "columns", ()) or ())
    if alias is None or not alias.name or not columns:
        return
    rows.names[alias.name] = alias.name
    rows.keys[alias.name] = [columns]
    made_of = {column.table for column in lateral.this.find_all(exp.Column)} - {""}
    rows.generated[alias.name] = frozenset(made_of or {rows.first})


def _list_grouped(select: exp.Expr) -> Iterator[_Place]:
    """Lists columns that are one in each group; positions and result names are resolved."""
    group = select.args.get("group")
    results = {item.alias_or_name.lower(): item.unalias() for item in select.expressions}
    for key in group.expressions if group is not None else ():
        node = key.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) - 1
            if not 0 <= place < len(select.expressions):
                continue
            node = select.expressions[place].unalias()
        elif isinstance(node, exp.Column) and not node.table:
            node = results.get(node.name.lower(), node)
        if isinstance(node, exp.Column):
            yield _find_place(node)


def list_source_keys(
    source: exp.Expr | Scope | None, by_table: Mapping[str, Model], depth: int = 0
) -> list[frozenset[str]]:
    """Lists the keys of a table, or of a query that groups, numbers or passes on its rows."""
    if isinstance(source, exp.Table):
        return list_unique_keys(by_table.get(table_name(source)))
    branches = list_outer_scopes(source) if isinstance(source, Scope) else []
    if len(branches) != 1 or depth >= _MOST_LEVELS:
        return []
    branch, select = branches[0], branches[0].expression
    shown = {item.unalias(): item.alias_or_name.lower() for item in select.expressions}
    group = select.args.get("group")
    if group is not None:
        if set(group.args) - {"expressions"}:
            return []
        parts = [_resolve_key(key, select) for key in group.expressions]
        names = [shown.get(part) for part in parts]
        return [] if None in names else [frozenset(name for name in names if name)]
    start = select.args.get(FROM)
    if start is None or select.args.get("joins") or select.args.get("laterals"):
        return []
    alone = start.this.alias_or_name
    inner = list_source_keys(branch.sources.get(alone), by_table, depth + 1)
    inner += _list_numbered_keys(branch)
    fixed = _list_constants(select)
    outer = [_rename_key(branch, key - fixed) for key in inner]
    return [key for key in outer if key is not None]


def _resolve_key(key: exp.Expr, select: exp.Expr) -> exp.Expr:
    if isinstance(key, exp.Literal) and not key.is_string:
        place = int(key.name) - 1
        if 0 <= place < len(select.expressions):
            found: exp.Expr = select.expressions[place].unalias()
            return found
    return key


def _list_constants(select: exp.Expr) -> frozenset[str]:
    """Lists columns that WHERE makes equal to a constant."""
    where = select.args.get("where")
    return frozenset(
        place[1]
        for part in _split(where.this if where is not None else None)
        for place, others in _list_equalities(part)
        if not others
    )


def _list_numbered_keys(branch: Scope) -> list[frozenset[str]]:
    """Lists the columns by which ROW_NUMBER numbers rows, each with the number itself."""
    found = []
    for item in branch.expression.expressions:
        window = item.unalias()
        if isinstance(window, exp.Window) and isinstance(window.this, exp.RowNumber):
            parts = window.args.get("partition_by") or []
            if all(isinstance(part, exp.Column) for part in parts):
                names = {part.name.lower() for part in parts}
                found.append(frozenset({*names, f"#{item.alias_or_name.lower()}"}))
    return found


def _rename_key(branch: Scope, key: Iterable[str]) -> frozenset[str] | None:
    """The result columns that hold a key of the source; None if one is not returned."""
    shown = {
        item.unalias().name.lower(): item.alias_or_name.lower()
        for item in branch.expression.expressions
        if isinstance(item.unalias(), exp.Column)
    }
    found = set()
    for name in key:
        # A number is a result column of this query, not of its source.
        mine = name.removeprefix("#") if name.startswith("#") else shown.get(name)
        if mine is None or find_projection(branch, mine) is None:
            return None
        found.add(mine)
    return frozenset(found)


_ADDING = (
    exp.Sum, exp.Avg, exp.Count, exp.CountIf, exp.Stddev, exp.StddevSamp, exp.StddevPop,
    exp.Variance, exp.VariancePop,
)  # fmt: skip
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
        for scope in iterate_selects(query.root or query.written_root):
            totals = [
                (item.alias_or_name, node)
                for item in scope.expression.expressions
                for node in item.find_all(*_ADDING)
                if not isinstance(node.this, exp.Distinct)
                and node.find_ancestor(exp.Window) is None
                and node.find_ancestor(exp.Select) is scope.expression
            ]
            rows = read_joined_rows(scope, self.project.by_table) if totals else None
            if rows is not None:
                yield from self._observe_totals(model, rows, totals)
                yield from self._observe_counts(model, rows, totals)

    def _observe_totals(
        self, model: Model, rows: JoinedRows, totals: Sequence[tuple[str, exp.Expr]]
    ) -> Iterator[RuleObservation]:
        """Totals of columns that another source repeats, by that source."""
        counted: dict[str, dict[str, str]] = {}
        for column, node in totals:
            read = {inner.table for inner in node.find_all(exp.Column)}
            if not read or "" in read:
                continue
            for alias in rows.keys.keys() - rows.find_determined(read):
                called = self._name_source(rows, alias)
                text = node.sql(dialect=model.dialect)
                counted.setdefault(alias, {})[f"{column} by {called}"] = text
        for alias, texts in sorted(counted.items()):
            called = self._name_source(rows, alias)
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
        """COUNT(*) over rows that are not those of the table that its reader thinks of."""
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
        counted = {alias for alias in known if known <= rows.find_determined([alias])}
        others = known - counted
        tables = [
            quote_names(map(partial(self._name_source, rows), one)) for one in (known, others)
        ]
        if not counted:
            return (
                f"counts pairs: the rows of {tables[0]} repeat each other, because none of them "
                "determines the others",
                None,
            )
        if not others:
            return None
        shown = quote_names(map(partial(self._name_source, rows), counted))
        is_called = partial(_is_called_after, column, rows)
        if is_called(others) and not is_called(counted):
            return f"is called after {tables[1]}, and counts the rows of {shown}", None
        if rows.first in others and not is_called(counted):
            # With one row of these in each group, only those of the partner can be meant.
            is_clear = others <= rows.find_determined([])
            found = _describe_repeats(rows, counted, shown, tables[1])
            return None if found is not None and found[1] and is_clear else found
        return None

    def _name_source(self, rows: JoinedRows, alias: str) -> str:
        name = rows.names[alias]
        return self.project.name_of_table(name) if "." in name else name


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
    """Describes a count of rows that repeat those of the table after FROM."""
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
    words = _list_words(column)
    return any(words & _list_words(rows.names[alias], last=True) for alias in aliases)


def _list_words(name: str, *, last: bool = False) -> set[str]:
    """The words of a name, in the singular; of a table only the last one."""
    words = re.split(r"[\W_]+", name.rpartition(".")[2].lower())
    return {_make_singular(word) for word in (words[-1:] if last else words) if word}


def _make_singular(word: str) -> str:
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    return word.removesuffix("es") if word.endswith(("sses", "xes")) else word.removesuffix("s")
