"""The clauses of a SELECT beside its sources and conditions: results, groups, order."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from ci_bot.worker.rules.sql.algebra.blocks import Block, Group
from ci_bot.worker.rules.sql.algebra.functions import is_aggregate, makes_rows
from ci_bot.worker.rules.sql.algebra.terms import Operation, Term, leaf
from ci_bot.worker.rules.sql.translation import scan
from ci_bot.worker.rules.sql.translation.frame import Frame
from ci_bot.worker.rules.sql.translation.scalars import Host, Scalars

# What only says where rows are stored.
LAYOUT = ("sort", "cluster", "distribute")


class Clauses:
    """Reads clauses of one SELECT, or of a set operation.

    Args:
        host: is told what is not understood.
        scalars: reads expressions with the names of this SELECT.
    """

    def __init__(self, host: Host, scalars: Scalars) -> None:
        self.host = host
        self.scalars = scalars

    def outputs(self, select: Any, used: frozenset[str] | None) -> dict[str, Term]:
        """The results by name; of those that are named, only the used ones."""
        found: dict[str, Term] = {}
        for place, item in enumerate(select.expressions):
            name = item.alias_or_name.lower() or f"_{place}"
            if isinstance(item.unalias(), exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                self._star(item, self.scalars.frame, found)
                continue
            if used is not None and name not in used:
                continue
            # Two results of one name cannot be told apart by it.
            found[f"{name}#{place}" if name in found else name] = self.scalars.read(item.unalias())
            if item.alias:
                self.scalars.frame.results[name] = item.this
        return found

    def _star(self, item: Any, frame: Frame, found: dict[str, Term]) -> None:
        star = item.this if isinstance(item, exp.Column) else item
        if any(star.args.values()):
            self.host.gap("a star with exceptions")
        alias = item.table.lower() if isinstance(item, exp.Column) else ""
        meant = [frame.items[alias]] if alias in frame.items else []
        if not alias:
            meant = [source for source in frame.items.values() if not source.is_hidden]
        if not meant:
            self.host.gap("it is not known what a star stands for")
        for source in meant:
            for name in source.results():
                term = source.column(name)
                told = f"*{len(found)}" if name.startswith("*") else name
                if term is None or told in found:
                    self.host.gap(f"two results are called {name}")
                else:
                    found[told] = term

    def group(self, select: Any, own: scan.Mentions) -> Group | None:
        """GROUP BY; a group of everything where there are only aggregates."""
        node = select.args.get("group")
        if node is None:
            return Group() if own.aggregates else None
        group = Group()
        for item in node.expressions:
            chosen = _numbered_result(item, select)
            if chosen is not None:
                results, self.scalars.frame.results = self.scalars.frame.results, {}
                group.keys.append(self.scalars.read(chosen))
                self.scalars.frame.results = results
            else:
                group.keys.append(self.scalars.read(item))
        if node.args.get("all"):
            group.keys += [
                self.scalars.read(item.unalias())
                for item in select.expressions
                if not scan.does(item, is_aggregate) and not isinstance(item.unalias(), exp.Star)
            ]
        if node.args.get("totals"):
            self.host.gap("GROUP BY WITH TOTALS")
        for name in ("rollup", "cube", "grouping_sets"):
            for item in node.args.get(name) or []:
                # Without keys of its own it is one of all keys, in their order.
                inside = [self.scalars.read(key) for key in item.expressions] or group.keys
                group.sets.append(Operation(name, tuple(inside)))
        return group

    def generators(self, select: Any) -> list[Term]:
        """The results that make another number of rows."""
        return [
            self.scalars.read(item.unalias())
            for item in select.expressions
            if scan.does(item, makes_rows)
        ]

    def layout(self, select: Any) -> list[Term]:
        """Hints, and what only says where rows are stored."""
        found: list[Term] = []
        hint = select.args.get("hint")
        if hint is not None:
            found.append(leaf("hint", hint.sql()))
        self.scalars.results_first = True
        for name in LAYOUT:
            node = select.args.get(name)
            if node is not None:
                keys = tuple(self.scalars.read(item) for item in node.expressions)
                found.append(Operation(name, keys))
        self.scalars.results_first = False
        return found

    def order(self, block: Block, query: Any, items: list[Any], results: list[Term]) -> None:
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
                self.host.gap(f"{node.key} instead of LIMIT")
            block.limits.append(Operation(name, (self.scalars.read(node.expression),)))
        self.scalars.results_first = False

    def _order_key(self, item: Any, results: list[Term]) -> Term:
        asked = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(asked, exp.Literal) and not asked.is_string:
            place = int(asked.this) - 1
            term = self.scalars.read(item)
            if 0 <= place < len(results) and isinstance(term, Operation):
                return Operation(term.op, (results[place],))
            self.host.gap("ORDER BY a number of a result that is not known")
        return self.scalars.read(item)

    def by_place(self, select: Any) -> list[Term]:
        """The results by place, where a number in ORDER BY may mean one."""
        order = select.args.get("order")
        if order is None or not any(item.find(exp.Literal) for item in order.expressions):
            return []
        kept, self.scalars.frame.results = self.scalars.frame.results, {}
        found = [self.scalars.read(item.unalias()) for item in select.expressions]
        self.scalars.frame.results = kept
        return found


def _names_all(keys: list[Any], items: list[Any]) -> bool:
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


def _numbered_result(item: Any, select: Any) -> Any:
    """The result that a number in GROUP BY means; None where it is no number."""
    if not isinstance(item, exp.Literal) or item.is_string:
        return None
    place = int(item.this) - 1
    return select.expressions[place].unalias() if 0 <= place < len(select.expressions) else None
