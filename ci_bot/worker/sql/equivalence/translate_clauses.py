"""The clauses of a SELECT beside its sources and conditions: results, groups, order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    GroupClause,
    QueryBlock,
    Term,
    TermOperation,
    make_leaf,
)
from ci_bot.worker.sql.equivalence.select_notes import SelectFrame
from ci_bot.worker.sql.equivalence.translate_scalars import ScalarHost, ScalarTranslator
from ci_bot.worker.sql.spark_sql import generates_rows, is_aggregate
from ci_bot.worker.sqlmesh_compat import FROM, WITH

# What a SELECT's own clauses mention, found by one walk.


# Clauses that are read on their own: their names are not those of this SELECT.
_ELSEWHERE = frozenset({WITH, FROM})


@dataclass
class ClauseMentions:
    """What the clauses of a SELECT name and do, without the queries that it reads from.

    Attributes:
        columns: per alias the columns that are used, also within subqueries.
        bare: columns without an alias.
        all_of: aliases whose every column is used; "" for all aliases.
    """

    columns: dict[str, set[str]] = field(default_factory=dict)
    bare: set[str] = field(default_factory=set)
    all_of: set[str] = field(default_factory=set)
    aggregates: bool = False
    windows: bool = False
    generators: bool = False

    def columns_of_alias(self, alias: str) -> frozenset[str] | None:
        """The columns of `alias` that may be used; None for all of them."""
        if self.all_of & {"", alias}:
            return None
        return frozenset(self.columns.get(alias, set()) | self.bare)


def find_mentions(select: exp.Select) -> ClauseMentions:
    """The names and kinds of functions in the clauses of `select`."""
    found = ClauseMentions(
        all_of={_starred_alias(item) for item in select.expressions if item.is_star}
    )
    for node, is_own in _iterate_clauses(select):
        kind = _name_node_kind(node)
        if kind == "column":
            table = node.args.get("table")
            if table is None:
                found.bare.add(node.name.lower())
            else:
                found.columns.setdefault(table.this.lower(), set()).add(node.name.lower())
        elif not kind or not is_own:
            continue
        elif kind == "window":
            found.windows = True
        elif kind == "generator":
            found.generators = True
        else:
            found.aggregates = found.aggregates or not _is_of_a_window(node)
    for join in select.args.get("joins") or []:
        for key in join.args.get("using") or []:
            found.bare.add(key.name.lower())
    return found


def _starred_alias(item: exp.Expr) -> str:
    """The alias whose columns a star means; "" for all."""
    return item.table.lower() if isinstance(item, exp.Column) else ""


def _name_node_kind(node: exp.Expr) -> str:
    """Names the kind of a node; for most nodes it is their type."""
    kind = _KINDS.get(type(node))
    if kind is None:
        kind = (
            "column"
            if isinstance(node, exp.Column)
            else "window"
            if isinstance(node, exp.Window)
            else "generator"
            if generates_rows(node)
            else "aggregate"
            if is_aggregate(node)
            else ""
        )
        if not isinstance(node, exp.Anonymous):
            _KINDS[type(node)] = kind
    return kind


_KINDS: dict[type, str] = {}


def has_trait(node: exp.Expr, what: Any) -> bool:
    """Whether `what` holds of an expression or a part of it, leaving out subqueries."""
    return any(what(part) for part, is_own in _walk_clauses([(node, True)]) if is_own)


def _iterate_clauses(select: exp.Select) -> Iterator[tuple[exp.Expr, bool]]:
    queue: list[tuple[exp.Expr, bool]] = []
    for name, value in select.args.items():
        if name in _ELSEWHERE or value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                # A function that makes rows uses columns of what stands before it.
                made = None if isinstance(item.this, exp.Table | exp.Subquery) else item.this
                queue += [(part, False) for part in (item.args.get("on"), made) if part is not None]
            elif isinstance(item, exp.Expression):
                queue.append((item, name != "laterals"))
    yield from _walk_clauses(queue)


def _walk_clauses(queue: list[tuple[exp.Expr, bool]]) -> Iterator[tuple[exp.Expr, bool]]:
    while queue:
        node, is_own = queue.pop()
        yield node, is_own
        is_own = is_own and not isinstance(node, exp.Query)
        for value in node.args.values():
            if isinstance(value, exp.Expression):
                queue.append((value, is_own))
            elif isinstance(value, list):
                queue += [(item, is_own) for item in value if isinstance(item, exp.Expression)]


def _is_of_a_window(node: exp.Expr) -> bool:
    """Whether a function is the one that a window computes, and not in its order or partition."""
    while isinstance(
        node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup
    ):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


# What only says where rows are stored.
LAYOUT = ("sort", "cluster", "distribute")


class ClauseTranslator:
    """Reads clauses of one SELECT, or of a set operation.

    Args:
        host: collects what is not understood.
        scalars: reads expressions with the names of this SELECT.
    """

    def __init__(self, host: ScalarHost, scalars: ScalarTranslator) -> None:
        self.host = host
        self.scalars = scalars

    def translate_outputs(self, select: exp.Select, used: frozenset[str] | None) -> dict[str, Term]:
        """The results by name; of those that are named, only the used ones."""
        found: dict[str, Term] = {}
        for place, item in enumerate(select.expressions):
            name = item.alias_or_name.lower() or f"_{place}"
            if isinstance(item.unalias(), exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                self._translate_star(item, self.scalars.frame, found)
                continue
            if used is None or name in used:
                # Two results of one name cannot be told apart by it.
                told = f"{name}#{place}" if name in found else name
                found[told] = self.scalars.translate_scalar(item.unalias())
            if item.alias:
                self.scalars.frame.results[name] = item.this
        return found

    def _translate_star(self, item: exp.Expr, frame: SelectFrame, found: dict[str, Term]) -> None:
        star = item.this if isinstance(item, exp.Column) else item
        if any(star.args.values()):
            self.host.add_gap("a star with exceptions")
        alias = item.table.lower() if isinstance(item, exp.Column) else ""
        meant = [frame.items[alias]] if alias in frame.items else []
        if not alias:
            meant = [source for source in frame.items.values() if not source.is_hidden]
        if not meant:
            self.host.add_gap("it is not known which columns a star means")
        for source in meant:
            for name in source.list_results():
                term = source.find_column(name)
                told = f"*{len(found)}" if name.startswith("*") else name
                if term is None or told in found:
                    self.host.add_gap(f"two results are called {name}")
                else:
                    found[told] = term

    def translate_group(self, select: exp.Select, own: ClauseMentions) -> GroupClause | None:
        """GROUP BY; a group of everything if there are only aggregates."""
        node = select.args.get("group")
        if node is None:
            # HAVING alone makes one group of everything, too.
            return (
                GroupClause() if own.aggregates or select.args.get("having") is not None else None
            )
        group = GroupClause()
        for item in node.expressions:
            chosen = _numbered_result(item, select)
            if chosen is not None:
                results, self.scalars.frame.results = self.scalars.frame.results, {}
                group.keys.append(self.scalars.translate_scalar(chosen))
                self.scalars.frame.results = results
            else:
                group.keys.append(self.scalars.translate_scalar(item))
        if node.args.get("all"):
            group.keys += [
                self.scalars.translate_scalar(item.unalias())
                for item in select.expressions
                if not has_trait(item, is_aggregate) and not isinstance(item.unalias(), exp.Star)
            ]
        if node.args.get("totals"):
            self.host.add_gap("GROUP BY WITH TOTALS")
        for name in ("rollup", "cube", "grouping_sets"):
            for item in node.args.get(name) or []:
                if any(_numbered_result(part, select) for part in item.find_all(exp.Literal)):
                    self.host.add_gap(f"a number in {name}")
                # Without keys of its own it is one of all keys, in their order.
                inside = [
                    self.scalars.translate_scalar(key) for key in item.expressions
                ] or group.keys
                group.sets.append(TermOperation(name, tuple(inside)))
        return group

    def translate_generators(self, select: exp.Select) -> list[Term]:
        """The results that make another number of rows."""
        return [
            self.scalars.translate_scalar(item.unalias())
            for item in select.expressions
            if has_trait(item, generates_rows)
        ]

    def translate_layout(self, select: exp.Select) -> list[Term]:
        """Hints, and what only says where rows are stored."""
        found: list[Term] = []
        hint = select.args.get("hint")
        if hint is not None:
            found.append(make_leaf("hint", hint.sql()))
        self.scalars.results_first = True
        for name in LAYOUT:
            node = select.args.get(name)
            if node is not None:
                keys = tuple(self.scalars.translate_scalar(item) for item in node.expressions)
                found.append(TermOperation(name, keys))
        self.scalars.results_first = False
        return found

    def translate_order(
        self, block: QueryBlock, query: exp.Expr, items: Sequence[exp.Expr], results: list[Term]
    ) -> None:
        """ORDER BY, LIMIT and OFFSET; a number in ORDER BY means a result.

        Args:
            items: the results as they are written.
            results: the same as terms, as far as they are needed.
        """
        order = query.args.get("order")
        self.scalars.results_first = True
        if order is not None:
            block.order = [self._order_key(item, results) for item in order.expressions]
            block.has_whole_order = _names_all(order.expressions, items)
        for name in ("limit", "offset"):
            node = query.args.get(name)
            if node is None:
                continue
            if not isinstance(node, exp.Limit | exp.Offset) or node.args.get("expressions"):
                self.host.add_gap(f"{node.key} instead of LIMIT")
            block.limits.append(
                TermOperation(name, (self.scalars.translate_scalar(node.expression),))
            )
        self.scalars.results_first = False

    def _order_key(self, item: exp.Expr, results: list[Term]) -> Term:
        asked = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(asked, exp.Literal) and not asked.is_string:
            place = int(asked.this) - 1
            term = self.scalars.translate_scalar(item)
            if 0 <= place < len(results) and isinstance(term, TermOperation):
                return TermOperation(term.op, (results[place],))
            self.host.add_gap("ORDER BY a number of a result that is not known")
        return self.scalars.translate_scalar(item)

    def by_place(self, select: exp.Select) -> list[Term]:
        """The results by place, where a number in ORDER BY may mean one."""
        order = select.args.get("order")
        if order is None or not any(item.find(exp.Literal) for item in order.expressions):
            return []
        kept, self.scalars.frame.results = self.scalars.frame.results, {}
        found = [self.scalars.translate_scalar(item.unalias()) for item in select.expressions]
        self.scalars.frame.results = kept
        return found


def _names_all(keys: list[exp.Expr], items: Sequence[exp.Expr]) -> bool:
    """Whether ORDER BY names every result, so that rows which it cannot tell apart are equal."""
    named: set[int] = set()
    for key in keys:
        asked = key.this if isinstance(key, exp.Ordered) else key
        for place, item in enumerate(items):
            if (
                (isinstance(asked, exp.Literal) and asked.this == str(place + 1))
                or (isinstance(asked, exp.Column) and not asked.table and asked.name == item.alias)
                or asked.sql() == item.unalias().sql()
            ):
                named.add(place)
    return len(named) == len(items) and not any(item.is_star for item in items)


def _numbered_result(item: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """The result that a number in GROUP BY means; None if it is no number."""
    if not isinstance(item, exp.Literal) or item.is_string:
        return None
    place = int(item.this) - 1
    return select.expressions[place].unalias() if 0 <= place < len(select.expressions) else None
