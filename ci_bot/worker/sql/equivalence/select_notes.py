"""The clauses of a query, one by one, for the rules that report changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import GroupClause, QueryBlock, Term
from ci_bot.worker.sql.equivalence.select_frames import Ctes, FromItem, QueryRead, SelectFrame
from ci_bot.worker.sql.selects import table_name
from ci_bot.worker.sqlmesh_compat import FROM


def list_spellings(tree: exp.Expr | None) -> tuple[dict[str, str], bool]:
    """Lists the names in a query by their lower case, and whether each has only one spelling.

    Names are read in lower case. If a project distinguishes capital and small letters, its
    rendering keeps them, and another spelling is another name.
    """
    found: dict[str, str] = {}
    is_clear = True
    for identifier in tree.find_all(exp.Identifier) if tree is not None else ():
        name = str(identifier.this)
        is_clear = found.setdefault(name.lower(), name) == name and is_clear
    return found, is_clear


def is_spelled_alike(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether the names that two queries share have the same spelling in both."""
    return all(other.get(lower, name) == name for lower, name in one.items())


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
    """A join as it was read.

    `turned` is the source that a RIGHT JOIN joins to its item if it is read as a LEFT JOIN.
    """

    node: exp.Expr
    way: str
    item: FromItem
    frame: SelectFrame
    on: list[tuple[Term, exp.Expr]]
    turned: FromItem | None = None


@dataclass(frozen=True)
class JoinNote:
    """The known facts about a join.

    Attributes:
        on: each condition, the expression that it was read from, and the (target, column) pairs of
            several queries that it compares; no pairs if a stored table is among them.
    """

    node: exp.Expr
    how: str
    target: str
    on: list[tuple[Term, exp.Expr, frozenset[ClausePlace]]]


@dataclass
class QueryNotes:
    """Clauses in the order in which they are read: a query's clauses come before its reader's.

    Attributes:
        first: the first source of each FROM.
        joined: the joins; `joins` describes them, and is computed on first use.
        blocks: every block; the sources of a block that was merged into another one are also in
            that one.
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
        """Whether a part of the query is read for the first time; a CTE may be read often."""
        is_first = id(node) not in self._seen
        self._seen.add(id(node))
        return is_first

    @cached_property
    def joins(self) -> list[JoinNote]:
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
    def reads(self) -> Counter[str]:
        """Counts the sources that FROM and inner joins read."""
        found = Counter(item.read_target for item in self.first)
        for join in self.joined:
            if join.turned is not None:
                found[join.turned.read_target] -= 1
            if join.way == "inner" or join.turned is not None:
                found[join.item.read_target] += 1
        return found

    @cached_property
    def joined_columns(self) -> dict[str, set[str]]:
        """Maps the sources of joined queries to the columns of these queries."""
        found: dict[str, set[str]] = {}
        for join in self.joined:
            for item in join.frame.items.values():
                if item.query is not None:
                    found.setdefault(item.read_target, set()).update(
                        list_written_names(item.query.query, item.query.ctes)
                    )
        return found

    def note_first(self, node: exp.Expr, item: FromItem) -> None:
        if self.begin_part(node):
            self.first.append(item)

    def note_join(self, join: JoinNoteSource) -> None:
        if self.begin_part(join.node):
            self.joined.append(join)

    def note_set_operation(self, node: exp.Expr) -> None:
        if self.begin_part(node):
            kind = type(node).__name__.upper()
            self.unions[f"{kind}{'' if node.args.get('distinct') else ' ALL'}"] += 1

    def note_select(self, select: exp.Select, group: GroupClause | None) -> None:
        """Notes GROUP BY and DISTINCT of a SELECT that is read for the first time."""
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
    """Whether every key of a GROUP BY is a result: no rows are equal, so DISTINCT has no effect."""
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


def list_written_names(query: exp.Expr, ctes: Ctes) -> set[str]:
    """Lists the names of a query's columns that are written in some place of it."""
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
                found |= list_written_names(cte.query, cte.ctes)
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


class UnreadableError(Exception):
    """A query of a kind that cannot be read here."""


class QueryHost:
    """The state that all readers of one query share; a part that they do not understand is a gap.

    Attributes:
        gaps: the parts that were not understood, in words; empty if the keys are complete.
        notes: joins, filters and so on in the order of reading, for the rules that report changes.
        on_spark: Spark runs the query; another engine may compute its functions in another way.
        as_written: queries in FROM and joins stay apart, so each part is read alone. Otherwise they
            merge into the queries that read them, and conditions move, if the result stays the
            same.

    Args:
        new_names: new names of renamed tables by their old ones, so both sides have the same names.
        list_columns: returns the columns of a stored table; if it is given, the query is read as
            written.
    """

    def __init__(
        self,
        new_names: Mapping[str, str],
        *,
        on_spark: bool = True,
        list_columns: Callable[[str], Sequence[str] | None] | None = None,
    ) -> None:
        self.gaps: list[str] = []
        self.notes = QueryNotes()
        self.on_spark = on_spark
        self.as_written = list_columns is not None
        self.list_columns = list_columns or (lambda _: None)
        self._new_names = new_names

    def add_gap(self, why: str) -> None:
        if why not in self.gaps:
            self.gaps.append(why)

    def refuse_query(self, why: str) -> None:
        """Notes that a part of the query cannot be read at all.

        Raises:
            UnreadableError: If the query is read as written, so this part would be missing.
        """
        self.add_gap(why)
        if self.as_written:
            raise UnreadableError(why)

    def resolve_table_name(self, table: exp.Table) -> str:
        name = table_name(table)
        return self._new_names.get(name, name)

    def read_nested(self, query: exp.Expr, frame: SelectFrame, columns: int | None) -> QueryBlock:
        """Reads a subquery in an expression.

        Args:
            columns: the number of its columns that are used; None for any number.
        """
        raise NotImplementedError

    def read_source(
        self, read: QueryRead, used: frozenset[str] | None, *, fresh: bool
    ) -> QueryBlock:
        """Reads a query in FROM; its columns get their new names, if there are any.

        The block belongs to the reader, who may still change it, if `fresh` is set or if it only
        joins and filters. Other blocks are read once for all equal reads.
        """
        raise NotImplementedError
