"""What the names in a SELECT mean (aliases, columns, results), and what the query does, clause by
clause, for whoever tells what changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    DerivedTable,
    GroupClause,
    QueryBlock,
    QuerySource,
    SourceColumn,
    Term,
)
from ci_bot.worker.sqlmesh_compat import FROM


@dataclass(eq=False)
class FromItem:
    """What an alias in FROM stands for.

    Attributes:
        source: whose columns are meant, where they are none of `block`.
        block: a query whose results stand for themselves; nothing is left of its alias.
        names: the columns, by place, where they are known.
        tell: says what is read, for a reader.
        query: the query behind it, and what is in WITH for that; None for what is stored.
        is_hidden: whether other parts of the SELECT cannot name its columns.
    """

    source: QuerySource | None = None
    block: QueryBlock | None = None
    names: list[str] | None = None
    tell: Callable[[], str] = lambda: ""
    query: tuple[exp.Expr, Mapping[str, CteEntry | None]] | None = None
    is_hidden: bool = False
    by_place: bool = False

    @cached_property
    def read_target(self) -> str:
        """What is read."""
        return self.tell()

    def list_results(self) -> list[str]:
        """The columns that `*` stands for; `*` itself for those of a stored table."""
        block = self.source.block if isinstance(self.source, DerivedTable) else self.block
        if block is not None:
            return list(block.outputs)
        return self.names if self.names is not None else ["*"]

    def find_column(self, name: str) -> Term | None:
        """The column called `name`; None if there is none."""
        if self.block is not None:
            return self.block.find_output(name)
        if self.source is None or (self.names is not None and name not in self.names):
            return None
        place = str(self.names.index(name)) if self.by_place and self.names is not None else name
        return SourceColumn(self.source, place)


@dataclass(frozen=True)
class CteEntry:
    """A query in WITH, and the names that it sees itself."""

    query: exp.Expr
    names: tuple[str, ...]
    around: Mapping[str, CteEntry | None]


@dataclass(eq=False)
class SelectFrame:
    """The names of one SELECT.

    Attributes:
        ctes: the queries in WITH that can be read here; None for one that is being read.
        outer: the SELECT around a subquery, whose columns can be used, too.
        results: results by name, as far as they can be named in other clauses.
        equal: pairs of columns of which a join has made the second equal to the first, or NULL.
    """

    ctes: Mapping[str, CteEntry | None]
    outer: SelectFrame | None = None
    items: dict[str, FromItem] = field(default_factory=dict)
    results: dict[str, exp.Expr] = field(default_factory=dict)
    equal: set[tuple[tuple[int, str], tuple[int, str]]] = field(default_factory=set)

    def resolve_qualified(self, alias: str, name: str, schema: str = "") -> Term | None:
        """`alias.name` or `schema.alias.name`, here or in a SELECT around this one."""
        item = self.items.get(alias)
        if item is not None:
            # Two parts before a name may be a schema and a table, or a table and a structure.
            is_meant = not schema or f".{item.read_target}".endswith(f".{schema}.{alias}")
            return item.find_column(name) if is_meant else None
        return self.outer.resolve_qualified(alias, name, schema) if self.outer is not None else None

    def resolve_unqualified(self, name: str) -> tuple[Term | None, bool]:
        """A column by its bare name, and whether it can be no other one."""
        seen = [item for item in self.items.values() if not item.is_hidden]
        sure = [item for item in seen if item.names is not None and name in item.names]
        open_ = [item for item in seen if item.names is None]
        if len(sure) == 1:
            return sure[0].find_column(name), not open_
        if sure or len(open_) > 1:
            return None, False
        if open_:
            return open_[0].find_column(name), self.outer is None
        return self.outer.resolve_unqualified(name) if self.outer is not None else (None, False)

    def make_equal(self, kept: SourceColumn, other: SourceColumn) -> None:
        """Notes that in each row `other` equals `kept`, or is NULL because there is no match."""
        self.equal.add((_column_position(kept), _column_position(other)))

    def adds_nothing(self, kept: Term, other: Term) -> bool:
        """Whether COALESCE(kept, other) is `kept`."""
        if not isinstance(kept, SourceColumn) or not isinstance(other, SourceColumn):
            return False
        return (_column_position(kept), _column_position(other)) in self.equal


def list_spellings(tree: exp.Expr | None) -> tuple[dict[str, str], bool]:
    """The names in a query by their lower case, and whether each has one spelling.

    Names are read in lower case. If a project tells capital letters from small ones, they are not
    lower case in its rendering, and a name is another one if its spelling is.
    """
    found: dict[str, str] = {}
    is_clear = True
    for identifier in tree.find_all(exp.Identifier) if tree is not None else ():
        name = str(identifier.this)
        is_clear = found.setdefault(name.lower(), name) == name and is_clear
    return found, is_clear


def is_spelled_alike(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether the names that two queries share are spelled alike in both."""
    return all(other.get(lower, name) == name for lower, name in one.items())


def _column_position(column: SourceColumn) -> tuple[int, str]:
    return id(column.source), column.name


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
