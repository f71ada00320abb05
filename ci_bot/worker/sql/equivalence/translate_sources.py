"""FROM and JOIN: which sources a SELECT has, and how they hang together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    ArgumentOrder,
    DependentSource,
    DerivedTable,
    GeneratedRows,
    Hanging,
    OuterJoin,
    QueryBlock,
    QuerySource,
    SourceColumn,
    SourcePart,
    TableRead,
    Term,
    TermOperation,
    ValuesTable,
    make_comparison,
    split_conjuncts,
)
from ci_bot.worker.sql.equivalence.select_notes import (
    CLAUSES_BEHIND_SUBQUERY,
    CteEntry,
    FromItem,
    JoinNoteSource,
    SelectFrame,
)
from ci_bot.worker.sql.equivalence.translate_clauses import ClauseMentions
from ci_bot.worker.sql.equivalence.translate_scalars import ScalarTranslator
from ci_bot.worker.sql.model_query import split_conditions as written_parts
from ci_bot.worker.sqlmesh_compat import FROM

# What stands in FROM under one alias: a table, a query, rows that are written out or made.


Role = Literal["inner", "hung", "outer"]

_TABLE = frozenset({"this", "db", "catalog", "alias", "version", "when", "system_time"})


class SourceHost(Protocol):
    """The reader of queries, for those that stand in FROM."""

    def from_query(
        self,
        query: exp.Expr,
        ctes: Mapping[str, CteEntry | None],
        names: tuple[str, ...],
        used: frozenset[str] | None,
        *,
        fresh: bool,
    ) -> QueryBlock: ...

    def resolve_table_name(self, table: exp.Table) -> str: ...

    def add_gap(self, why: str) -> None: ...


class FromEntries:
    """Reads what stands in FROM into a frame.

    Args:
        used: which columns the SELECT uses.
    """

    def __init__(
        self, host: SourceHost, frame: SelectFrame, scalars: ScalarTranslator, used: ClauseMentions
    ) -> None:
        self.host = host
        self.frame = frame
        self.scalars = scalars
        self.used = used

    def enter_source(
        self, node: exp.Expr, role: Role, may_stand_for: Callable[[QueryBlock], bool] | None = None
    ) -> tuple[FromItem, SourcePart | None]:
        """What stands in FROM, and its part; None if its query stands for the whole SELECT."""
        found = self._query_of(node)
        if found is None:
            source, item = self._enter_stored(node)
            self._name_entry(node, item)
            return item, SourcePart([source])
        query, ctes, names = found
        used = self.used.columns_of_alias(node.alias_or_name.lower())
        block = self.host.from_query(query, ctes, names, used, fresh=may_stand_for is not None)
        part: SourcePart | None = None
        table = ""
        if may_stand_for is not None and not block.is_simple and may_stand_for(block):
            item = FromItem(block=block)
        elif _may_melt(block, role):
            item, part = FromItem(block=block), block.part
            table = _find_only_table(part)
        else:
            derived = DerivedTable(block)
            item, part = FromItem(source=derived), SourcePart([derived])
        item.tell = lambda: table or self._describe_target(query, ctes)
        item.query = (query, ctes)
        item.names = None if block.has_star else list(block.outputs)
        self._name_entry(node, item)
        return item, part

    def _query_of(
        self, node: exp.Expr
    ) -> tuple[exp.Expr, Mapping[str, CteEntry | None], tuple[str, ...]] | None:
        names = tuple(name.lower() for name in node.alias_column_names)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            if any(value for name, value in node.args.items() if name not in {"this", "alias"}):
                self.host.add_gap(CLAUSES_BEHIND_SUBQUERY)
            return node.this, self.frame.ctes, names
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in self.frame.ctes:
            self._known_clauses(node)
            cte = self.frame.ctes[node.name.lower()]
            if cte is not None:
                return cte.query, cte.around, names or cte.names
            self.host.add_gap("a query in WITH that reads itself")
        return None

    def _enter_stored(self, node: exp.Expr) -> tuple[QuerySource, FromItem]:
        """A table, or rows that are written out."""
        names = [name.lower() for name in node.alias_column_names]
        if isinstance(node, exp.Values):
            rows = tuple(self.scalars.translate_scalar(row) for row in node.expressions)
            source: QuerySource = ValuesTable(TermOperation("values", rows, ArgumentOrder.FREE))
            return source, FromItem(
                source=source, names=names or None, by_place=bool(names), tell=lambda: "values"
            )
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or names:
            self.host.add_gap(f"{node.key} in FROM")
            source = TableRead(node.sql().lower())
            return source, FromItem(source=source, tell=lambda: str(node.key))
        self._known_clauses(node)
        version = " ".join(
            node.args[name].sql()
            for name in ("version", "when", "system_time")
            if node.args.get(name) is not None
        )
        name = self.host.resolve_table_name(node)
        source = TableRead(name, version)
        return source, FromItem(source=source, tell=lambda: name)

    def _known_clauses(self, table: exp.Table) -> None:
        for name, value in table.args.items():
            if value and name not in _TABLE:
                self.host.add_gap(f"a table with {name}")

    def enter_generated(self, node: exp.Expr) -> DependentSource:
        """LATERAL VIEW or UNNEST: rows that a function makes of each row before it."""
        how: Literal["lateral", "lateral outer"] = "lateral"
        names = [name.lower() for name in node.alias_column_names]
        if isinstance(node, exp.Lateral):
            how = "lateral outer" if node.args.get("outer") else how
            if isinstance(node.this.unnest(), exp.Query) or node.args.get("ordinality"):
                self.host.add_gap("a lateral subquery")
                call: Term = TermOperation(f"lateral:{node.sql().lower()}")
            else:
                call = self.scalars.translate_scalar(node.this)
            if node.args.get("cross_apply") is not None:
                self.host.add_gap("CROSS APPLY")
        else:
            if node.args.get("offset"):
                self.host.add_gap("UNNEST with positions")
            call = TermOperation(
                "unnest", tuple(self.scalars.translate_scalar(item) for item in node.expressions)
            )
        source = GeneratedRows(call)
        item = FromItem(
            source, names=names or None, by_place=bool(names), tell=lambda: str(node.key)
        )
        self._name_entry(node, item)
        return DependentSource(source, how, [call])

    def _name_entry(self, node: exp.Expr, item: FromItem) -> None:
        alias = node.alias_or_name.lower() or f"#{len(self.frame.items)}"
        if alias in self.frame.items:
            self.host.add_gap(f"two sources are called {alias}")
        self.frame.items[alias] = item

    def _describe_target(self, query: exp.Expr, ctes: Mapping[str, CteEntry | None]) -> str:
        """What a query reads, for a reader."""
        tables = sorted(self._list_tables(query, ctes))
        return f"subquery of {', '.join(tables)}" if tables else "subquery"

    def _list_tables(self, query: exp.Expr, ctes: Mapping[str, CteEntry | None]) -> set[str]:
        found: set[str] = set()
        for table in query.find_all(exp.Table):
            cte = ctes.get(table.name.lower()) if not table.db else None
            if table.db:
                found.add(self.host.resolve_table_name(table))
            elif cte is not None:
                found |= self._list_tables(cte.query, cte.around)
        return found


def _may_melt(block: QueryBlock, role: Role) -> bool:
    """Whether a query's own sources and conditions can stand in the SELECT that reads it."""
    if not block.is_simple:
        return False
    if role == "inner":
        return True
    part = block.part
    if len(part.inner) != 1 or part.hung or isinstance(part.inner[0], OuterJoin):
        return False
    # If there is no match, a column is NULL, and what is computed of NULLs may be something.
    is_plain = all(isinstance(term, SourceColumn) for term in block.outputs.values())
    return is_plain and (role == "hung" or not part.where)


def _find_only_table(part: SourcePart) -> str:
    only = part.inner[0] if len(part.inner) == 1 and not part.hung and not part.where else None
    return only.name if isinstance(only, TableRead) else ""


Way = Literal["inner", "left", "right", "full", "semi", "anti"]

_JOIN = frozenset({"this", "on", "using", "side", "kind"})

_WAYS: dict[tuple[str, str], Way] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("", "SEMI"): "semi",
    ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
}


class JoinHost(SourceHost, Protocol):
    """The reader of queries, which also takes notes."""

    def note_first(self, node: exp.Expr, item: FromItem) -> None:
        """Notes what stands first in FROM."""

    def note_join(self, join: JoinNoteSource) -> None:
        """Notes a join for whoever tells changes."""


@dataclass(frozen=True)
class TranslatedFrom:
    """What FROM holds; `alone` is its only query, where that stands for the whole SELECT."""

    part: SourcePart
    alone: QueryBlock | None = None


class SourceTranslator:
    """Reads FROM, JOIN and LATERAL VIEW of one SELECT into its frame."""

    def __init__(
        self, host: JoinHost, frame: SelectFrame, scalars: ScalarTranslator, used: ClauseMentions
    ) -> None:
        self.host = host
        self.frame = frame
        self.scalars = scalars
        self.entries = FromEntries(host, frame, scalars, used)
        self.part = SourcePart()

    def translate_sources(
        self, select: exp.Select, may_stand_for: Callable[[QueryBlock], bool]
    ) -> TranslatedFrom:
        """The sources of `select`.

        `may_stand_for` says whether a query can take the place of the SELECT that reads it alone.
        """
        first = select.args.get(FROM)
        joins = select.args.get("joins") or []
        laterals = select.args.get("laterals") or []
        ways = [self._join_way(join) for join in joins]
        if first is not None:
            alone = None if joins or laterals else may_stand_for
            item, part = self.entries.enter_source(first.this, _source_role("inner", ways), alone)
            if part is None:
                self.host.note_first(first.this, item)
                return TranslatedFrom(SourcePart(), item.block)
            self.host.note_first(first.this, item)
            self.part.add_part(part)
        for place, (join, way) in enumerate(zip(joins, ways, strict=True)):
            self._translate_join(join, way, _source_role(way, ways[place + 1 :]))
        for lateral in laterals:
            self.part.hung.append(self.entries.enter_generated(lateral))
        return TranslatedFrom(self.part)

    def _join_way(self, join: exp.Join) -> Way:
        for name, value in join.args.items():
            if value and name not in _JOIN:
                self.host.add_gap(f"a join with {name}")
        way = _WAYS.get((join.side or "", join.kind or ""))
        if way is None:
            self.host.add_gap(f"a {join.side} {join.kind} join")
        return way or "inner"

    def _translate_join(self, join: exp.Join, way: Way, role: Role) -> None:
        if isinstance(join.this, exp.Unnest | exp.Lateral):
            if way != "inner" or join.args.get("on") is not None or join.args.get("using"):
                self.host.add_gap("a join of a function with a condition")
            self.part.hung.append(self.entries.enter_generated(join.this))
            return
        before = [item for item in self.frame.items.values() if not item.is_hidden]
        item, part = self.entries.enter_source(join.this, role)
        if part is None:
            raise AssertionError("unreachable: a joined query never is the SELECT itself")
        read = self._translate_conditions(join, before, item)
        on = [term for term, _ in read]
        turned = way == "right" and self._only_source() is not None
        other = before[0] if turned else None
        self.host.note_join(JoinNoteSource(join, way, item, self.frame, read, other))
        if way == "inner":
            self.part.add_part(part)
            self.part.where += on
        elif way in {"right", "full"}:
            self._add_outer_join(part, on, full=way == "full")
        else:
            item.is_hidden = way != "left"
            how: Hanging = "left" if way == "left" else "semi" if way == "semi" else "anti"
            self.part.hung.append(DependentSource(part.inner[0], how, [*on, *part.where]))
        self._note_equal(way, on, part.inner)

    def _translate_conditions(
        self, join: exp.Join, before: list[FromItem], item: FromItem
    ) -> list[tuple[Term, exp.Expr]]:
        """The conditions of a join, each with what it was read from."""
        on = join.args.get("on")
        parts = written_parts(on) if on is not None else []
        read = [(self.scalars.translate_scalar(part), part) for part in parts]
        found = [(term, part) for whole, part in read for term in split_conjuncts(whole)]
        for key in join.args.get("using") or []:
            name = key.name.lower()
            left = before[0].find_column(name) if len(before) == 1 else None
            right = item.find_column(name)
            # Elsewhere in the SELECT the bare name is one column of both sides.
            self.host.add_gap(f"USING {name}, which is not written out")
            if left is None or right is None:
                found.append((TermOperation(f"using:{name}"), key))
            else:
                found.append((make_comparison("eq", left, right), key))
        return found

    def _note_equal(self, way: Way, on: list[Term], joined: list[QuerySource]) -> None:
        for term in on if way in {"inner", "left"} else ():
            if not isinstance(term, TermOperation) or term.op != "eq":
                continue
            left, right = term.parts
            if not isinstance(left, SourceColumn) or not isinstance(right, SourceColumn):
                continue
            for kept, other in ((left, right), (right, left)):
                if way == "inner" or (other.source in joined and kept.source not in joined):
                    self.frame.make_equal(kept, other)

    def _add_outer_join(self, part: SourcePart, on: list[Term], *, full: bool) -> None:
        only = self._only_source()
        if not full and only is not None:
            # A RIGHT JOIN of one source is a LEFT JOIN, told from the other side.
            self.part = SourcePart(
                part.inner, [*part.hung, DependentSource(only, "left", on)], part.where
            )
        else:
            self.part = SourcePart([OuterJoin(part, self.part, full, on)])

    def _only_source(self) -> QuerySource | None:
        """What stands before a join, if that is one source without conditions."""
        part = self.part
        only = part.inner[0] if len(part.inner) == 1 and not part.hung and not part.where else None
        return None if isinstance(only, OuterJoin) else only


def _source_role(way: Way, later: Sequence[Way]) -> Role:
    """Whether the rows of a source can be without a match, by its own join or by a later one."""
    if way == "full" or any(other in {"right", "full"} for other in later):
        return "outer"
    return "inner" if way in {"inner", "right"} else "hung"
