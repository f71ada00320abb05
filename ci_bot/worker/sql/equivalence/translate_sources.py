"""FROM and JOIN: the sources of a SELECT, and how they depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from sqlglot import exp

from ci_bot.worker.sql.equivalence.block_rewrites import SourceRole, find_only_table, may_merge
from ci_bot.worker.sql.equivalence.blocks import (
    ArgumentOrder,
    DependentSource,
    DerivedTable,
    GeneratedRows,
    MadeRows,
    OuterJoin,
    QueryBlock,
    QuerySource,
    SourceColumn,
    SourcePart,
    TableRead,
    Term,
    TermOperation,
    ValuesTable,
    WrittenResults,
    make_comparison,
    split_conjuncts,
)
from ci_bot.worker.sql.equivalence.select_frames import Ctes, FromItem, QueryRead, SelectFrame
from ci_bot.worker.sql.equivalence.select_notes import (
    CLAUSES_BEHIND_SUBQUERY,
    JoinNoteSource,
    QueryHost,
)
from ci_bot.worker.sql.equivalence.translate_clauses import ClauseMentions
from ci_bot.worker.sql.equivalence.translate_scalars import ScalarTranslator
from ci_bot.worker.sql.joins import split_conditions as written_parts
from ci_bot.worker.sql.selects import table_name
from ci_bot.worker.sqlmesh_compat import FROM, Tree

# An entry of FROM is a table, a query, or rows that are written out or generated.


_VERSION = ("version", "when", "system_time")
_NAMES = frozenset({"this", "db", "catalog", "alias"})
_INSIDE = frozenset({"joins", "laterals", "pivots", "hints"})


# Whether a query can take the place of the SELECT that only reads this query.
StandsFor = Callable[[QueryBlock], bool]
Way = Literal["inner", "left", "right", "full", "semi", "anti"]

_BOTH = 2
_JOIN = frozenset({"this", "on", "using", "side", "kind"})
_ODD_JOIN = _JOIN | {"method", "hint"}
# Words that the conditions and the side of a join already express.
_IMPLICIT = frozenset({"", "INNER", "CROSS", "OUTER"})

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


class SourceTranslator:
    """A reader that adds FROM, JOIN and LATERAL VIEW of one SELECT to its frame.

    Args:
        used: the names that the SELECT's clauses use.
    """

    def __init__(
        self, host: QueryHost, frame: SelectFrame, scalars: ScalarTranslator, used: ClauseMentions
    ) -> None:
        self.host = host
        self.frame = frame
        self.scalars = scalars
        self.used = used
        self.part = SourcePart()

    def _enter_source(
        self,
        node: exp.Expr,
        role: SourceRole,
        alone: StandsFor | None = None,
    ) -> tuple[FromItem, SourcePart | None]:
        """Reads one entry of FROM; its part is None if its query takes the place of the SELECT."""
        read = self._find_query(node)
        part: SourcePart | None
        if read is None:
            item = self._read_rows(node)
            part = make_part(item)
        elif self.host.as_written:
            item = self._keep_query(read)
            part = make_part(item)
        else:
            item, part = self._enter_query(node, read, role, alone)
        if isinstance(node, exp.Table) and part is not None:
            self._check_clauses(node)
            if self.host.as_written:
                item = pivot_rows(self.host, item, node)
                part = SourcePart(make_part(item).inner, where=self._translate_clauses(node))
        return self._name_entry(node, item), part

    def _enter_query(
        self,
        node: exp.Expr,
        read: QueryRead,
        role: SourceRole,
        alone: StandsFor | None,
    ) -> tuple[FromItem, SourcePart | None]:
        """Reads a query, which may merge into the SELECT or take its place."""
        used = self.used.columns_of_alias(node.alias_or_name.lower())
        block = self.host.read_source(read, used, fresh=alone is not None)
        part: SourcePart | None = None
        table = ""
        if alone is not None and not block.is_simple and alone(block):
            item = FromItem(block=block)
        elif may_merge(block, role):
            item, part = FromItem(block=block), block.part
            table = find_only_table(part)
        else:
            item = FromItem(DerivedTable(block))
            part = make_part(item)
        item.describe = lambda: table or self._describe_target(read.query, read.ctes)
        item.query = read
        item.is_open = block.has_star
        item.names = () if block.has_star else list(block.outputs)
        return item, part

    def _keep_query(self, read: QueryRead) -> FromItem:
        """Makes the item of a query that stays apart."""
        block = self.host.read_source(read, None, fresh=read.outer is not None)
        item = make_item(DerivedTable(block), block.written)
        if read.reads_itself and item.source is not None:
            # Each part of it may depend on everything that it reads.
            item = replace(item, source=MadeRows("recursive", [item.source]), is_open=True)
        return rename_columns(item, read.names) if read.names else item

    def _find_query(self, node: exp.Expr) -> QueryRead | None:
        names = tuple(name.lower() for name in node.alias_column_names)
        kept = self.host.as_written
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Query) and kept:
            return QueryRead(node.this, self.frame.ctes, names, self.frame)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            outer = self.frame.outer if kept else None
            if any(value for name, value in node.args.items() if name not in {"this", "alias"}):
                self.host.add_gap(CLAUSES_BEHIND_SUBQUERY)
                return QueryRead(node if kept else node.this, self.frame.ctes, names, outer)
            return QueryRead(node.this, self.frame.ctes, names, outer)
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in self.frame.ctes:
            cte = self.frame.ctes[node.name.lower()]
            if cte is not None:
                return QueryRead(
                    cte.query, cte.ctes, names or cte.names, cte.outer, cte.reads_itself
                )
            self.host.add_gap("a query in WITH that reads itself")
        return None

    def _read_rows(self, node: exp.Expr) -> FromItem:
        """Reads rows that are stored, written out or generated."""
        names = [name.lower() for name in node.alias_column_names]
        if isinstance(node, exp.Values):
            rows = tuple(self.scalars.translate_scalar(row) for row in node.expressions)
            source: QuerySource = ValuesTable(TermOperation("values", rows, ArgumentOrder.FREE))
            return FromItem(
                source, None, names, not names, describe=lambda: "values", by_place=True
            )
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            item = self._read_table(node)
        else:
            self.host.add_gap(f"{node.key} in FROM")
            made = node.this if isinstance(node, exp.Table) else node
            item = FromItem(
                MadeRows(type(made).__name__, terms=[self.scalars.translate_call(made)]),
                describe=lambda: str(node.key),
            )
        if names:
            self.host.add_gap(f"{node.key} in FROM")
            item = rename_columns(item, names)
        return item

    def _read_table(self, node: exp.Table) -> FromItem:
        name = self.host.resolve_table_name(node)
        if self.host.as_written and not node.db and name in self.frame.ctes:
            return FromItem(MadeRows("rows of the query itself"), describe=lambda: name)
        version = " ".join(node.args[one].sql() for one in _VERSION if node.args.get(one))
        columns, source = self.host.list_columns(name), TableRead(name, version)
        is_open = columns is None
        return FromItem(source, names=columns or (), is_open=is_open, describe=lambda: name)

    def _check_clauses(self, table: exp.Table) -> None:
        for name, value in table.args.items():
            if value and name not in _NAMES and name not in _VERSION:
                self.host.add_gap(f"a table with {name}")

    def _translate_clauses(self, table: exp.Table) -> list[Term]:
        """Lists the other clauses with which a table is read, such as a sample."""
        return [
            self.scalars.translate_scalar(value)
            for name, value in table.args.items()
            if name not in _NAMES | _INSIDE and isinstance(value, Tree)
        ]

    def _enter_generated(self, node: exp.Expr) -> DependentSource:
        """Reads LATERAL VIEW or UNNEST: rows that a function makes from each row before it."""
        how: Literal["lateral", "lateral outer"] = "lateral"
        names = [name.lower() for name in node.alias_column_names]
        if isinstance(node, exp.Lateral):
            how = "lateral outer" if node.args.get("outer") else how
            is_query = isinstance(node.this.unnest(), exp.Query)
            odd = next((n for n in ("ordinality", "cross_apply") if node.args.get(n)), None)
            if is_query or odd is not None:
                self.host.add_gap("a lateral subquery" if is_query else f"LATERAL with {odd}")
            call = (
                TermOperation(f"lateral:{node.sql().lower()}")
                if is_query
                else self.scalars.translate_call(node if odd is not None else node.this)
            )
        else:
            if node.args.get("offset"):
                self.host.add_gap("UNNEST with positions")
            call = self.scalars.translate_call(node)
        source = GeneratedRows(call)
        item = FromItem(
            source, None, names, not names, describe=lambda: str(node.key), by_place=bool(names)
        )
        self._name_entry(node, item)
        return DependentSource(source, how, [call])

    def _name_entry(self, node: exp.Expr, item: FromItem) -> FromItem:
        """Adds a source to the frame, with the names that qualify its columns."""
        alias = node.alias_or_name.lower() or f"#{len(self.frame.items)}"
        item.known_as = frozenset({alias})
        if isinstance(node, exp.Table) and not node.alias and isinstance(node.this, exp.Identifier):
            parts = table_name(node).split(".")
            item.known_as = frozenset(".".join(parts[index:]) for index in range(len(parts)))
        item.known_as |= {one.alias.lower() for one in node.args.get("pivots") or () if one.alias}
        if alias in self.frame.items:
            self.host.add_gap(f"two sources are called {alias}")
            alias = f"{alias}#{len(self.frame.items)}"
        self.frame.items[alias] = item
        return item

    def _describe_target(self, query: exp.Expr, ctes: Ctes) -> str:
        """Describes the tables that a query reads, for a reader."""
        tables = sorted(self._list_tables(query, ctes))
        return f"subquery of {', '.join(tables)}" if tables else "subquery"

    def _list_tables(self, query: exp.Expr, ctes: Ctes) -> set[str]:
        found: set[str] = set()
        for table in query.find_all(exp.Table):
            cte = ctes.get(table.name.lower()) if not table.db else None
            if table.db:
                found.add(self.host.resolve_table_name(table))
            elif cte is not None:
                found |= self._list_tables(cte.query, cte.ctes)
        return found

    def translate_sources(
        self, select: exp.Select, may_stand_for: StandsFor
    ) -> tuple[SourcePart, QueryBlock | None]:
        """Reads the sources of `select`, and its only query if that takes its place (or None)."""
        first = select.args.get(FROM)
        joins, laterals = select.args.get("joins") or [], select.args.get("laterals") or []
        ways = [self._find_join_way(join) for join in joins]
        if first is not None:
            alone = None if joins or laterals else may_stand_for
            item, part = self._enter(first.this, _find_source_role("inner", ways), alone)
            self.host.notes.note_first(first.this, item)
            if part is None:
                return SourcePart(), item.block
            self.part.add_part(part)
        self._translate_more(joins, ways, laterals)
        return self.part, None

    def _enter(
        self,
        node: exp.Expr,
        role: SourceRole,
        alone: StandsFor | None = None,
    ) -> tuple[FromItem, SourcePart | None]:
        """Reads one entry of FROM, with the joins within it."""
        if not isinstance(node, exp.Subquery) or isinstance(node.this, exp.Query):
            item, part = self._enter_source(node, role, alone)
            if isinstance(node, exp.Table) and part is not None:
                part = self._add_inside(node, part)
            return item, part
        self.host.add_gap("joins in brackets")
        if not node.alias and not node.args.get("pivots"):
            return self._enter_unnamed(node, role)
        inside = SelectFrame(self.frame.ctes, self.frame.outer)
        scalars = ScalarTranslator(self.host, inside)
        reader = SourceTranslator(self.host, inside, scalars, self.used)
        _, whole = reader._enter_unnamed(node, "outer")
        sources, terms = list(whole.iterate_sources()), list(whole.iterate_terms())
        item = FromItem(MadeRows("group", sources, terms))
        self.frame.is_mixed = self.frame.is_mixed or bool(node.args.get("pivots"))
        return self._name_entry(node, item), make_part(item)

    def _enter_unnamed(self, node: exp.Expr, role: SourceRole) -> tuple[FromItem, SourcePart]:
        """Reads joins in brackets that have no alias."""
        item, part = self._enter(node.this, role)
        return item, self._add_inside(node, part or SourcePart())

    def _add_inside(self, node: exp.Expr, part: SourcePart) -> SourcePart:
        """Adds the joins that belong to one entry of FROM to its part."""
        joins, laterals = node.args.get("joins") or [], node.args.get("laterals") or []
        kept, self.part = self.part, part
        self._translate_more(joins, [self._find_join_way(join) for join in joins], laterals)
        part, self.part = self.part, kept
        return part

    def _translate_more(
        self, joins: Sequence[exp.Expr], ways: Sequence[Way], laterals: Sequence[exp.Expr]
    ) -> None:
        for place, (join, way) in enumerate(zip(joins, ways, strict=True)):
            if isinstance(join, exp.Join):
                self._translate_join(join, way, _find_source_role(way, ways[place + 1 :]))
            else:  # a macro
                self.part.where.append(self.scalars.translate_scalar(join))
                self.frame.is_mixed = True
        for lateral in laterals:
            self.part.hung.append(self._enter_generated(lateral))

    def _find_join_way(self, join: exp.Expr) -> Way:
        for name, value in join.args.items():
            if value and name not in _JOIN:
                self.host.add_gap(f"a join with {name}")
        side, kind = join.text("side").upper(), join.text("kind").upper()
        way = _WAYS.get((side, kind))
        if way is None:
            self.host.add_gap(f"a {side} {kind} join")
        return way or "inner"

    def _translate_join(self, join: exp.Join, way: Way, role: SourceRole) -> None:
        before = list(self.frame.iterate_visible())
        how = " ".join(word for word in _list_words(join) if word not in _IMPLICIT)
        if _makes_rows(join.this, self.host):
            if way != "inner" or join.args.get("on") is not None or join.args.get("using"):
                self.host.add_gap("a join of a function with a condition")
            made = self._enter_generated(join.this)
            made.how = f"{made.how} {how}".strip()
            made.on += [term for term, _ in self._translate_conditions(join, before, None)]
            self.part.hung.append(made)
            return
        item, part = self._enter(join.this, role)
        if part is None:
            raise AssertionError("unreachable: a joined query never is the SELECT itself")
        read = self._translate_conditions(join, before, item)
        on = [term for term, _ in read]
        turned = way == "right" and self._find_only_source() is not None
        other = before[0] if turned else None
        self.host.notes.note_join(JoinNoteSource(join, way, item, self.frame, read, other))
        if self.host.as_written:
            item.is_hidden = "SEMI" in how or "ANTI" in how
            is_odd = any(value for name, value in join.args.items() if name not in _ODD_JOIN)
            self.frame.is_mixed = self.frame.is_mixed or is_odd or "POSITIONAL" in how
            inside = f"{how} with {len(part.hung)}" if part.hung else how  # joins in its brackets
            self.part.hung.append(DependentSource(part.inner[0], inside, [*on, *part.where]))
            self.part.hung += part.hung
        elif way == "inner":
            self.part.add_part(part)
            self.part.where += on
        elif way in {"right", "full"}:
            self._add_outer_join(part, on, full=way == "full")
        else:
            item.is_hidden = way != "left"
            self.part.hung.append(DependentSource(part.inner[0], way, [*on, *part.where]))
        self._note_equal(way, on, part.inner)

    def _translate_conditions(
        self, join: exp.Join, before: list[FromItem], item: FromItem | None
    ) -> list[tuple[Term, exp.Expr]]:
        """Reads the conditions of a join, each with the expression that it was read from."""
        on = join.args.get("on")
        parts = written_parts(on) if on is not None else []
        read = [(self.scalars.translate_condition(part), part) for part in parts]
        found = [(term, part) for whole, part in read for term in split_conjuncts(whole)]
        for key in join.args.get("using") or []:
            # In other parts of the SELECT the bare name is one column of both sides.
            self.host.add_gap(f"USING {key.name.lower()}, which is not written out")
            found.append((self._merge_column(key.name.lower(), before, item), key))
        if "NATURAL" in _list_words(join) and item is not None:
            common = {name for one in before for name in one.names}
            for name in sorted(common.intersection(item.names)):
                found.append((self._merge_column(name, before, item), join))
            open_ones = [one for one in (*before, item) if one.is_open]
            found += [(one.find_all(), join) for one in open_ones]
        return found

    def _merge_column(self, name: str, before: list[FromItem], item: FromItem | None) -> Term:
        """Makes the condition that a column of this name is equal on both sides."""
        self.frame.merged.add(name)
        sides = [one.find_column(name) for one in (*before, *([item] if item is not None else ()))]
        found = [side for side in sides if side is not None]
        if len(before) == 1 and len(found) == len(sides) == _BOTH:
            return make_comparison("eq", *found)
        return TermOperation(f"using:{name}", tuple(found))

    def _note_equal(self, way: Way, on: list[Term], joined: list[QuerySource]) -> None:
        may_note = way in {"inner", "left"} and not self.host.as_written
        for term in on if may_note else ():
            if not isinstance(term, TermOperation) or term.op != "eq":
                continue
            left, right = term.parts
            if not isinstance(left, SourceColumn) or not isinstance(right, SourceColumn):
                continue
            for kept, other in ((left, right), (right, left)):
                if way == "inner" or (other.source in joined and kept.source not in joined):
                    self.frame.make_equal(kept, other)

    def _add_outer_join(self, part: SourcePart, on: list[Term], *, full: bool) -> None:
        only = self._find_only_source()
        if not full and only is not None:
            # A RIGHT JOIN of one source is a LEFT JOIN from the other side.
            self.part = SourcePart(
                part.inner, [*part.hung, DependentSource(only, "left", on)], part.where
            )
        else:
            self.part = SourcePart([OuterJoin(part, self.part, full, on)])

    def _find_only_source(self) -> QuerySource | None:
        """Returns the source before a join, if it is the only one and has no conditions."""
        return self.part.only_source if not self.part.where else None


def _makes_rows(node: exp.Expr, host: QueryHost) -> bool:
    """Whether a joined function generates rows; a query does so only if it cannot stay a query."""
    is_query = isinstance(node, exp.Lateral) and isinstance(node.this, exp.Query)
    return isinstance(node, exp.Unnest | exp.Lateral) and not (is_query and host.as_written)


def _list_words(join: exp.Expr) -> list[str]:
    return [str(join.args.get(part) or "").upper() for part in ("method", "side", "kind")]


def _find_source_role(way: Way, later: Sequence[Way]) -> SourceRole:
    """Finds whether a source's rows can be without a match, by its own join or a later one."""
    if way == "full" or any(other in {"right", "full"} for other in later):
        return "outer"
    return "inner" if way in {"inner", "right"} else "hung"


def make_item(source: QuerySource, written: WrittenResults) -> FromItem:
    """Makes the item of a query that stays apart."""
    return FromItem(source, names=[name for name, _ in written.columns], is_open=written.is_open)


def make_part(item: FromItem) -> SourcePart:
    """Makes a part that is only one source."""
    return SourcePart([item.source] if item.source is not None else [])


def rename_columns(item: FromItem, names: Sequence[str]) -> FromItem:
    """Gives the first columns of a source the names `names`."""
    if item.source is None:
        return item
    is_open = item.is_open or len(names) > len(item.names)
    listed = [*names, *(() if is_open else item.names[len(names) :])]
    source = MadeRows("renamed", [item.source], names=list(names))
    return replace(item, source=source, names=listed, is_open=is_open)


def pivot_rows(host: QueryHost, item: FromItem, node: exp.Expr) -> FromItem:
    """Puts a source under the PIVOT or UNPIVOT of `node`: any column may depend on all of it."""
    pivots = node.args.get("pivots") or ()
    if not pivots or item.source is None:
        return item
    if any(pivot.find(exp.Query) for pivot in pivots):
        host.refuse_query("a PIVOT over what a query gives")
    text = " ".join(_keep_alias_columns(pivot).sql(comments=False) for pivot in pivots)
    return FromItem(MadeRows(text, [item.source]), describe=item.describe)


def _keep_alias_columns(pivot: exp.Expr) -> exp.Expr:
    """Copies a PIVOT without the name of its alias, but with the columns of it."""
    copied = pivot.copy()
    alias = copied.args.get("alias")
    if alias is not None:
        alias.set("this", None)
    return copied
