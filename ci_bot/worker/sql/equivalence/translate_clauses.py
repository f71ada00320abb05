"""The clauses of a SELECT except its sources and conditions: results, groups, order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from ci_bot.worker.sql.equivalence.blocks import (
    DependentSource,
    GeneratedRows,
    GroupClause,
    QueryBlock,
    QuerySource,
    SourceColumn,
    StarRead,
    Term,
    TermOperation,
    WrittenResults,
    make_leaf,
)
from ci_bot.worker.sql.equivalence.select_frames import NamedResult
from ci_bot.worker.sql.equivalence.select_notes import QueryHost
from ci_bot.worker.sql.equivalence.translate_scalars import ScalarTranslator
from ci_bot.worker.sql.spark_sql import generates_rows, is_aggregate
from ci_bot.worker.sqlmesh_compat import EXCEPT, FROM, WITH, Tree

# The names in a SELECT's own clauses, which one walk finds.


# These clauses are read alone, because their names are not those of this SELECT.
_ELSEWHERE = frozenset({WITH, FROM})


@dataclass
class ClauseMentions:
    """The names and kinds of functions in a SELECT's clauses, without the queries that it reads.

    Attributes:
        columns: the columns that are used by their alias, also within subqueries.
        bare: columns without an alias.
        all_of: aliases of which every column is used; "" for all aliases.
        column_lists: an expression means several columns that it does not list.
    """

    columns: dict[str, set[str]] = field(default_factory=dict)
    bare: set[str] = field(default_factory=set)
    all_of: set[str] = field(default_factory=set)
    column_lists: bool = False
    aggregates: bool = False
    windows: bool = False
    generators: bool = False

    def columns_of_alias(self, alias: str) -> frozenset[str] | None:
        """Returns the columns of `alias` that may be used; None for all of them."""
        if self.all_of & {"", alias}:
            return None
        return frozenset(self.columns.get(alias, set()) | self.bare)


def find_mentions(select: exp.Select) -> ClauseMentions:
    """Finds the names and kinds of functions in the clauses of `select`."""
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
        elif kind == "column list":
            found.column_lists = True
        else:
            found.aggregates = found.aggregates or not _is_of_a_window(node)
    for join in select.args.get("joins") or []:
        for key in join.args.get("using") or []:
            found.bare.add(key.name.lower())
    return found


def _starred_alias(item: exp.Expr) -> str:
    """Returns the alias whose columns a star means; "" for all."""
    return item.table.lower() if isinstance(item, exp.Column) else ""


def _name_node_kind(node: exp.Expr) -> str:
    """Names the kind of a node: column, window, generator, aggregate or column list; "" for others.

    Most kinds are kept by the node's type.
    """
    kind = _KINDS.get(type(node))
    if kind is None:
        kind = (
            "column"
            if isinstance(node, exp.Column)
            else "window"
            if isinstance(node, exp.Window)
            else "column list"
            if isinstance(node, exp.Columns)
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
    """Whether `what` is true for an expression or a part of it; subqueries are left out."""
    return any(what(part) for part, is_own in _walk_clauses([(node, True)]) if is_own)


def _iterate_clauses(select: exp.Select) -> Iterator[tuple[exp.Expr, bool]]:
    queue: list[tuple[exp.Expr, bool]] = []
    for name, value in select.args.items():
        if name in _ELSEWHERE or value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                # A function that generates rows uses columns of the sources before it.
                made = None if isinstance(item.this, exp.Table | exp.Subquery) else item.this
                queue += [(part, False) for part in (item.args.get("on"), made) if part is not None]
            elif isinstance(item, Tree):
                queue.append((item, name != "laterals"))
    yield from _walk_clauses(queue)


def _walk_clauses(queue: list[tuple[exp.Expr, bool]]) -> Iterator[tuple[exp.Expr, bool]]:
    while queue:
        node, is_own = queue.pop()
        yield node, is_own
        is_own = is_own and not isinstance(node, exp.Query)
        for value in node.args.values():
            if isinstance(value, Tree):
                queue.append((value, is_own))
            elif isinstance(value, list):
                queue += [(item, is_own) for item in value if isinstance(item, Tree)]


def _is_of_a_window(node: exp.Expr) -> bool:
    """Whether a window computes this function, and does not only order or partition by it."""
    while isinstance(
        node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup
    ):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


# These clauses only decide where rows are stored.
LAYOUT = ("sort", "cluster", "distribute")


class ClauseTranslator:
    """A reader of the clauses of one SELECT, or of a set operation.

    Args:
        host: collects the parts that are not understood.
        scalars: reads expressions with the names of this SELECT.
    """

    def __init__(self, host: QueryHost, scalars: ScalarTranslator) -> None:
        self.host = host
        self.scalars = scalars
        self.written = WrittenResults()
        self.ungrouped: list[Term] = []  # the keys of GROUP BY ALL
        self._has_star = self._groups_by_all = False

    def translate_outputs(self, select: exp.Select, used: frozenset[str] | None) -> dict[str, Term]:
        """Reads the results by name; of the named ones only those that are used."""
        frame, found = self.scalars.frame, dict[str, Term]()
        group = select.args.get("group")
        self._groups_by_all = group is not None and bool(group.args.get("all"))
        clauses = [select.args[name] for name in ("group", "order") if select.args.get(name)]
        if self._groups_by_all or any(clause.find(exp.Literal) for clause in clauses):
            used = None  # the other results count, too
        for place, item in enumerate(select.expressions):
            name = item.alias_or_name.lower() or f"_{place}"
            star = find_star(item)
            if star is not None:
                self._translate_star(item, star, found)
                continue
            term = None
            if used is None or name in used:
                # A number distinguishes a second result of the same name.
                key = f"{name}#{place}" if name in found else name
                term = found[key] = self._add_result(item, place)
            if item.alias:
                frame.results[name] = NamedResult(item.this, term)
        self.written.is_mixed = self.written.is_mixed or frame.is_mixed
        self.written.is_unplaced = bool(frame.merged) and self._has_star
        return found

    def _add_result(self, item: exp.Expr, place: int) -> Term:
        """Notes the columns of a result, and returns its term."""
        made = item.this if isinstance(item, exp.Aliases) else item.unalias()
        term = self.scalars.translate_scalar(made)
        if self._groups_by_all and not has_trait(item, is_aggregate):
            self.ungrouped.append(term)
        if not isinstance(item, exp.Aliases):
            self.written.columns.append((item.output_name.lower() or f"\n{place}", term))
            return term
        self.host.add_gap("several names of one result")
        for number, name in enumerate(item.args["expressions"]):
            named = TermOperation("at place", (term, make_leaf("place", str(number))))
            self.written.columns.append((name.name.lower(), named))
            self.scalars.frame.results.setdefault(name.name.lower(), NamedResult(item, named))
        return term

    def _translate_star(self, item: exp.Expr, star: exp.Expr, found: dict[str, Term]) -> None:
        self._has_star = True
        if any(star.args.values()):
            self.host.add_gap("a star with exceptions")
        meant = list(self.scalars.frame.iterate_visible())
        if isinstance(item, exp.Column):
            qualifier = ".".join(part.name.lower() for part in item.parts[:-1])
            meant = [source for source in meant if qualifier in source.known_as]
        if not meant:
            self.host.add_gap("it is not known which columns a star means")
            self.written.is_mixed = True  # perhaps the fields of a structure
        changes = self._read_changes(star)
        for source in meant:
            if source.source is not None:
                self.written.stars.append(
                    replace(changes, source=source.source, is_open=source.is_open)
                )
            for name in source.list_results():
                term = source.find_all() if name == "*" else source.find_column(name)
                key = f"*{len(found)}" if name.startswith("*") else name
                if term is None or key in found:
                    self.host.add_gap(f"two results are called {name}")
                else:
                    found[key] = term
            for place, name in enumerate(source.names):
                column = changes.replaced.get(name) or source.find_place(place)
                if name not in changes.left_out and column is not None:
                    self.written.columns.append((changes.renamed.get(name, name), column))
                    self.ungrouped.append(column)

    def _read_changes(self, star: exp.Expr) -> StarRead:
        """Reads the changes that EXCEPT, RENAME and REPLACE make to the columns of a star."""
        replaced = {}
        for entry in star.args.get("replace") or ():
            replaced[entry.alias.lower()] = self.scalars.translate_scalar(entry.unalias())
            if has_trait(entry, is_aggregate) or has_trait(entry, generates_rows):
                self.written.is_mixed = True
        return StarRead(
            QuerySource(),
            frozenset(name.name.lower() for name in star.args.get(EXCEPT) or ()),
            {one.this.name.lower(): one.alias.lower() for one in star.args.get("rename") or ()},
            replaced,
        )

    def translate_group(self, select: exp.Select, own: ClauseMentions) -> GroupClause | None:
        """Reads GROUP BY; if there are only aggregates, all rows are one group.

        None without groups.
        """
        node = select.args.get("group")
        if node is None:
            # HAVING alone also puts all rows into one group.
            if own.aggregates or select.args.get("having") is not None:
                return GroupClause(is_written=False)
            return None
        group = GroupClause()
        if not isinstance(node, exp.Group):  # a macro
            self.host.add_gap(f"{node.key} instead of GROUP BY")
            return GroupClause(sets=[self.scalars.translate_scalar(node)])
        group.keys = [self._translate_group_key(item) for item in node.expressions]
        if node.args.get("all"):
            group.keys += self.ungrouped
        if node.args.get("totals"):
            self.host.add_gap("GROUP BY WITH TOTALS")
            group.sets.append(make_leaf("group", "with totals"))
        for name in ("rollup", "cube", "grouping_sets"):
            for item in node.args.get(name) or []:
                # Without keys of its own it contains all keys, in their order.
                inside = [
                    self.scalars.translate_scalar(key) for key in item.expressions
                ] or group.keys
                if item.find(exp.Literal) is not None:
                    self.host.add_gap(f"a number in {name}")
                    inside = [*inside, *(term for _, term in self.written.columns)]
                group.sets.append(TermOperation(name, tuple(inside)))
        return group

    def _translate_group_key(self, item: exp.Expr) -> Term:
        if not (isinstance(item, exp.Literal) and item.is_int):
            return self.scalars.translate_scalar(item)
        return self._find_result_at(item, "GROUP BY")

    def _find_result_at(self, number: exp.Expr, clause: str) -> Term:
        """Finds the result that a number means; if it is unknown, it may be any."""
        columns = [term for _, term in self.written.columns]
        place = int(number.this) - 1
        if 0 <= place < len(columns) and not self.written.is_open:
            return columns[place]
        self.host.add_gap(f"{clause} a number of a result that is not known")
        return TermOperation("some", tuple(columns))

    def translate_generators(self, select: exp.Select) -> list[Term]:
        """Lists the results that make another number of rows."""
        return [
            self.scalars.translate_scalar(item.unalias())
            for item in select.expressions
            if has_trait(item, generates_rows)
        ]

    def read_generator_as_source(
        self, select: exp.Select, block: QueryBlock, own: ClauseMentions
    ) -> None:
        """Reads EXPLODE among plain results as the LATERAL VIEW that it is."""
        made = [item for item in select.expressions if has_trait(item, generates_rows)]
        explode = made[0].unalias() if len(made) == 1 else None
        is_plain = block.group is None and block.distinct is None
        if not is_plain or own.windows or block.order or not isinstance(explode, exp.Explode):
            return
        name, of = made[0].alias.lower(), explode.this.type
        is_outer = isinstance(explode, exp.ExplodeOuter)
        if type(explode) is not exp.Explode and not is_outer:
            return  # with positions
        if name not in block.outputs or of is None or not of.is_type(exp.DataType.Type.ARRAY):
            return
        call = self.scalars.translate_call(exp.Explode(this=explode.this.copy()))
        source = GeneratedRows(call)
        how = "lateral outer" if is_outer else "lateral"
        block.part.hung.append(DependentSource(source, how, [call]))
        block.outputs[name], block.generators = SourceColumn(source, "0"), []

    def translate_others(self, node: exp.Expr, known: Collection[str]) -> list[Term]:
        """Lists the arguments of a clause or a query that are not among the known ones."""
        found: list[Term] = []
        for name, argument in sorted(node.args.items()):
            items = argument if isinstance(argument, list) else [argument]
            trees = [item for item in items if isinstance(item, Tree)] if name not in known else []
            parts = [self.scalars.translate_scalar(tree) for tree in trees]
            if parts:
                found.append(TermOperation(name, tuple(parts)))
        return found

    def translate_layout(self, select: exp.Select) -> list[Term]:
        """Lists hints and clauses that only decide where rows are stored."""
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
        self, block: QueryBlock, query: exp.Expr, items: Sequence[exp.Expr]
    ) -> None:
        """Reads ORDER BY, LIMIT and OFFSET into `block`.

        A number in ORDER BY means one of `items`, the results.
        """
        order = query.args.get("order")
        self.scalars.results_first = True
        if isinstance(order, exp.Order):
            block.order = [self._translate_order_key(item) for item in order.expressions]
            block.has_whole_order = _names_all(order.expressions, items)
        elif order is not None:
            self.host.add_gap(f"{order.key} instead of ORDER BY")
            block.order = [self.scalars.translate_scalar(order)]
        for name in ("limit", "offset"):
            node = query.args.get(name)
            if node is None:
                continue
            if not isinstance(node, exp.Limit | exp.Offset) or node.args.get("expressions"):
                self.host.add_gap(f"{node.key} instead of LIMIT")
                block.limits.append(self.scalars.translate_scalar(node))
            else:
                limit = self.scalars.translate_scalar(node.expression)
                block.limits.append(TermOperation(name, (limit,)))
        self.scalars.results_first = False

    def _translate_order_key(self, item: exp.Expr) -> Term:
        asked = item.this if isinstance(item, exp.Ordered) else item
        term = self.scalars.translate_scalar(item)
        if (
            isinstance(asked, exp.Literal)
            and not asked.is_string
            and isinstance(term, TermOperation)
        ):
            return TermOperation(term.op, (self._find_result_at(asked, "ORDER BY"),))
        if isinstance(asked, exp.Var):  # ALL
            self.host.add_gap("ORDER BY ALL")
            return TermOperation("all", (term, *(column for _, column in self.written.columns)))
        return term


def find_star(item: exp.Expr) -> exp.Expr | None:
    """Returns the star of a result, `*` or `o.*`; None if it is no star."""
    star = item.this if isinstance(item, exp.Column) else item
    return star if isinstance(star, exp.Star) else None


def _names_all(keys: list[exp.Expr], items: Sequence[exp.Expr]) -> bool:
    """Whether ORDER BY names every result, so rows whose order it leaves open are equal."""
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
