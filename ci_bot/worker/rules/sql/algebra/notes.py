"""What a query does, clause by clause, for whoever tells what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from ci_bot.worker.rules.sql.algebra.blocks import Block, Group
from ci_bot.worker.rules.sql.algebra.frames import Cte, Frame, Item
from ci_bot.worker.rules.sql.algebra.terms import Term

ClausePlace = tuple[str, str]
_HOW = {
    "left": "LEFT",
    "right": "RIGHT",
    "full": "FULL",
    "semi": "LEFT SEMI",
    "anti": "LEFT ANTI",
}


@dataclass(frozen=True)
class JoinNote:
    """A join as it is written.

    Attributes:
        on: each condition, what it was read from, and the (target, column) pairs of several
            queries that it compares; none where a stored table is among them.
    """

    node: Any
    how: str
    target: str
    on: list[tuple[Term, Any, frozenset[ClausePlace]]]


@dataclass
class Notes:
    """Clauses in the order in which they are met: those of a query come before its reader's.

    Attributes:
        reads: what stands in FROM or is joined by inner joins, and how often.
        columns: the columns of queries that are read, by what they read themselves.
        blocks: every block; the sources of one that was melted into another come again there.
    """

    filters: list[tuple[Term, Any]] = field(default_factory=list)
    joins: list[JoinNote] = field(default_factory=list)
    groups: list[list[tuple[Term, Any]]] = field(default_factory=list)
    distincts: int = 0
    unions: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    columns: dict[str, set[str]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def begin(self, node: Any) -> bool:
        """Whether a part of the query is met for the first time: a CTE may be read often."""
        is_first = id(node) not in self._seen
        self._seen.add(id(node))
        return is_first

    def read(self, node: Any, item: Item) -> None:
        """Notes what stands first in a FROM."""
        if self.begin(node):
            self.reads[item.target] += 1

    def join(
        self,
        join: Any,
        way: str,
        item: Item,
        frame: Frame,
        on: list[tuple[Term, Any]],
        turned: Item | None,
    ) -> None:
        """Notes a join; `turned` is what a RIGHT JOIN joins to `item`, told as a LEFT JOIN."""
        if not self.begin(join):
            return
        target = item.target
        if turned is not None:
            self.reads[turned.target] -= 1
            way, target = "left", turned.target
        if way == "inner" or turned is not None:
            self.reads[item.target] += 1
        how = _HOW.get(way) or ("INNER" if on else "CROSS")
        conditions = [(term, node, _places(node, frame)) for term, node in on]
        for source in frame.items.values():
            if source.query is not None:
                names = written_names(*source.query)
                self.columns.setdefault(source.target, set()).update(names)
        self.joins.append(JoinNote(join, how, target, conditions))

    def set_operation(self, node: Any) -> None:
        if self.begin(node):
            kind = type(node).__name__.upper()
            self.unions[f"{kind}{'' if node.args.get('distinct') else ' ALL'}"] += 1

    def select(self, select: Any, group: Group | None) -> None:
        """Notes GROUP BY and DISTINCT of a SELECT that is met for the first time."""
        self.distincts += int(select.args.get("distinct") is not None)
        written = select.args.get("group")
        if group is None or written is None:
            return
        nodes = list(written.find_all(exp.Column)) if group.sets else written.expressions
        keys: list[tuple[Term, Any]] = []
        for place, term in enumerate((*group.keys, *group.sets)):
            keys.append((term, nodes[place] if place < len(nodes) else written))
        self.groups.append(keys)


def written_names(query: Any, ctes: Mapping[str, Cte | None]) -> set[str]:
    """The names of a query's columns, as far as they are written somewhere in it."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    found: set[str] = set()
    for item in query.expressions if isinstance(query, exp.Select) else ():
        if not item.is_star:
            found.add(item.alias_or_name.lower())
            continue
        of = item.table.lower() if isinstance(item, exp.Column) else ""
        sources = [query.args["from_"].this] if query.args.get("from_") is not None else []
        sources += [join.this for join in query.args.get("joins") or []]
        for source in sources:
            if of and source.alias_or_name.lower() != of:
                continue
            cte = ctes.get(source.name.lower()) if isinstance(source, exp.Table) else None
            if cte is not None and not source.db:
                found |= written_names(cte.query, cte.around)
            elif isinstance(source, exp.Subquery):
                found |= written_names(source.this, ctes)
    return found


def _places(node: Any, frame: Frame) -> frozenset[ClausePlace]:
    found: dict[str, ClausePlace] = {}
    for column in node.find_all(exp.Column):
        alias = column.table.lower()
        item = frame.items.get(alias)
        if item is None or item.query is None:
            return frozenset()
        found[f"{alias}.{column.name}"] = (item.target, column.name.lower())
    aliases = {name.partition(".")[0] for name in found}
    return frozenset(found.values()) if len(aliases) > 1 else frozenset()
