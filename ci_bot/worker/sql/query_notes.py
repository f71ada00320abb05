"""What a query does, clause by clause, for whoever tells what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ci_bot.worker.sql.algebra_blocks import GroupClause, QueryBlock, Term
from ci_bot.worker.sql.name_scopes import CteEntry, FromItem, SelectFrame
from ci_bot.worker.sqlmesh_compat import FROM

CLAUSES_BEHIND_SUBQUERY = "clauses behind a subquery"

ClausePlace = tuple[str, str]
_HOW = {
    "left": "LEFT",
    "right": "RIGHT",
    "full": "FULL",
    "semi": "LEFT SEMI",
    "anti": "LEFT ANTI",
}


@dataclass(frozen=True)
class JoinNoteSource:
    """A join as it was met; `turned` is what a RIGHT JOIN joins to its item, told as LEFT JOIN."""

    node: exp.Expr
    way: str
    item: FromItem
    frame: SelectFrame
    on: list[tuple[Term, exp.Expr]]
    turned: FromItem | None = None


@dataclass(frozen=True)
class JoinNote:
    """A join as it can be known.

    Attributes:
        on: each condition, what it was read from, and the (target, column) pairs of several queries
            that it compares; none if a stored table is among them.
    """

    node: exp.Expr
    how: str
    target: str
    on: list[tuple[Term, exp.Expr, frozenset[ClausePlace]]]


@dataclass
class QueryNotes:
    """Clauses in the order in which they are met: those of a query come before its reader's.

    Attributes:
        first: what stands first in each FROM.
        joined: the joins; `joins` says the same in words, and is worked out when it is asked for.
        blocks: every block; the sources of one that was melted into another come again there.
    """

    filters: list[tuple[Term, exp.Expr]] = field(default_factory=list)
    first: list[FromItem] = field(default_factory=list)
    joined: list[JoinNoteSource] = field(default_factory=list)
    groups: list[list[tuple[Term, exp.Expr]]] = field(default_factory=list)
    distincts: int = 0
    unions: Counter[str] = field(default_factory=Counter)
    blocks: list[QueryBlock] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def begin_part(self, node: exp.Expr) -> bool:
        """Whether a part of the query is met for the first time: a CTE may be read often."""
        is_first = id(node) not in self._seen
        self._seen.add(id(node))
        return is_first

    @cached_property
    def list_joins(self) -> list[JoinNote]:
        found: list[JoinNote] = []
        for join in self.joined:
            how = _HOW.get(join.way) or ("INNER" if join.on else "CROSS")
            target = join.item.read_target
            if join.turned is not None:
                how, target = "LEFT", join.turned.read_target
            on = [(term, node, _list_places(node, join.frame)) for term, node in join.on]
            found.append(JoinNote(join.node, how, target, on))
        return found

    @cached_property
    def count_reads(self) -> Counter[str]:
        """What stands in FROM or is joined by inner joins, and how often."""
        found = Counter(item.read_target for item in self.first)
        for join in self.joined:
            if join.turned is not None:
                found[join.turned.read_target] -= 1
            if join.way == "inner" or join.turned is not None:
                found[join.item.read_target] += 1
        return found

    @cached_property
    def list_joined_columns(self) -> dict[str, set[str]]:
        """The columns of queries that are joined, by what they read themselves."""
        found: dict[str, set[str]] = {}
        for join in self.joined:
            for item in join.frame.items.values():
                if item.query is not None:
                    found.setdefault(item.read_target, set()).update(
                        list_written_names(*item.query)
                    )
        return found

    def set_operation(self, node: exp.Expr) -> None:
        if self.begin_part(node):
            kind = type(node).__name__.upper()
            self.unions[f"{kind}{'' if node.args.get('distinct') else ' ALL'}"] += 1

    def note_select(self, select: exp.Select, group: GroupClause | None) -> None:
        """Notes GROUP BY and DISTINCT of a SELECT that is met for the first time."""
        self.distincts += int(
            select.args.get("distinct") is not None and not _shows_its_groups(select)
        )
        written = select.args.get("group")
        if group is None or written is None:
            return
        nodes = list(written.find_all(exp.Column)) if group.sets else written.expressions
        keys: list[tuple[Term, exp.Expr]] = []
        for place, term in enumerate((*group.keys, *group.sets)):
            keys.append((term, nodes[place] if place < len(nodes) else written))
        self.groups.append(keys)


def _shows_its_groups(select: exp.Select) -> bool:
    """Whether every key of a GROUP BY is a result: no two rows are equal, and DISTINCT is idle."""
    group = select.args.get("group")
    if group is None or not group.expressions:
        return False
    if any(group.args.get(sets) for sets in ("grouping_sets", "rollup", "cube", "all", "totals")):
        return False
    results = [item.unalias() for item in select.expressions]
    names = {item.alias_or_name.lower() for item in select.expressions}
    return all(
        key in results
        or (isinstance(key, exp.Column) and not key.table and key.name.lower() in names)
        or (isinstance(key, exp.Literal) and not key.is_string)
        for key in group.expressions
    )


def list_written_names(query: exp.Expr, ctes: Mapping[str, CteEntry | None]) -> set[str]:
    """The names of a query's columns, as far as they are written somewhere in it."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    found: set[str] = set()
    for item in query.expressions if isinstance(query, exp.Select) else ():
        if not item.is_star:
            found.add(item.alias_or_name.lower())
            continue
        of = item.table.lower() if isinstance(item, exp.Column) else ""
        sources = [query.args[FROM].this] if query.args.get(FROM) is not None else []
        sources += [join.this for join in query.args.get("joins") or []]
        for source in sources:
            if of and source.alias_or_name.lower() != of:
                continue
            cte = ctes.get(source.name.lower()) if isinstance(source, exp.Table) else None
            if cte is not None and not source.db:
                found |= list_written_names(cte.query, cte.around)
            elif isinstance(source, exp.Subquery):
                found |= list_written_names(source.this, ctes)
    return found


def _list_places(node: exp.Expr, frame: SelectFrame) -> frozenset[ClausePlace]:
    found: dict[str, ClausePlace] = {}
    for column in node.find_all(exp.Column):
        alias = column.table.lower()
        item = frame.items.get(alias)
        if item is None or item.query is None:
            return frozenset()
        found[f"{alias}.{column.name}"] = (item.read_target, column.name.lower())
    aliases = {name.partition(".")[0] for name in found}
    return frozenset(found.values()) if len(aliases) > 1 else frozenset()
