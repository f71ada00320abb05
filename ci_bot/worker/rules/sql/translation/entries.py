"""What stands in FROM under one alias: a table, a query, rows that are written out or made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from sqlglot import exp

from ci_bot.worker.rules.sql.algebra.blocks import (
    Block,
    Derived,
    Generated,
    Hung,
    Outer,
    Part,
    TableRead,
    Values,
)
from ci_bot.worker.rules.sql.algebra.terms import Operation, Order, QuerySource, SourceColumn, Term
from ci_bot.worker.rules.sql.translation.frame import Cte, Frame, Item
from ci_bot.worker.rules.sql.translation.scalars import Scalars
from ci_bot.worker.rules.sql.translation.scan import Mentions

Role = Literal["inner", "hung", "outer"]
_TABLE = frozenset({"this", "db", "catalog", "alias", "version", "when", "system_time"})


class SourceHost(Protocol):
    """The reader of queries, for those that stand in FROM."""

    def from_query(
        self,
        query: Any,
        ctes: Mapping[str, Cte | None],
        names: tuple[str, ...],
        used: frozenset[str] | None,
        *,
        fresh: bool,
    ) -> Block: ...

    def table_name(self, table: Any) -> str: ...

    def gap(self, why: str) -> None: ...


class Entries:
    """Reads what stands in FROM into a frame.

    Args:
        used: which columns the SELECT uses.
    """

    def __init__(self, host: SourceHost, frame: Frame, scalars: Scalars, used: Mentions) -> None:
        self.host = host
        self.frame = frame
        self.scalars = scalars
        self.used = used

    def enter(
        self, node: Any, role: Role, may_stand_for: Callable[[Block], bool] | None = None
    ) -> tuple[Item, Part | None]:
        """What stands in FROM, and its part; None where its query stands for the whole SELECT."""
        found = self._query_of(node)
        if found is None:
            source, item = self._stored(node)
            self._name(node, item)
            return item, Part([source])
        query, ctes, names = found
        used = self.used.of(node.alias_or_name.lower())
        block = self.host.from_query(query, ctes, names, used, fresh=may_stand_for is not None)
        part: Part | None = None
        table = ""
        if may_stand_for is not None and not block.is_simple and may_stand_for(block):
            item = Item(block=block)
        elif _may_melt(block, role):
            item, part = Item(block=block), block.part
            table = _only_table(part)
        else:
            derived = Derived(block)
            item, part = Item(source=derived), Part([derived])
        item.tell = lambda: table or self._target(query, ctes)
        item.query = (query, ctes)
        item.names = None if block.has_star else list(block.outputs)
        self._name(node, item)
        return item, part

    def _query_of(self, node: Any) -> tuple[Any, Mapping[str, Cte | None], tuple[str, ...]] | None:
        names = tuple(name.lower() for name in node.alias_column_names)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            if any(value for name, value in node.args.items() if name not in {"this", "alias"}):
                self.host.gap("clauses behind a subquery")
            return node.this, self.frame.ctes, names
        if isinstance(node, exp.Table) and not node.db and node.name.lower() in self.frame.ctes:
            self._known_clauses(node)
            cte = self.frame.ctes[node.name.lower()]
            if cte is not None:
                return cte.query, cte.around, names or cte.names
            self.host.gap("a query in WITH that reads itself")
        return None

    def _stored(self, node: Any) -> tuple[QuerySource, Item]:
        """A table, or rows that are written out."""
        names = [name.lower() for name in node.alias_column_names]
        if isinstance(node, exp.Values):
            rows = tuple(self.scalars.read(row) for row in node.expressions)
            source: QuerySource = Values(Operation("values", rows, Order.FREE))
            return source, Item(
                source=source, names=names or None, by_place=bool(names), tell=lambda: "values"
            )
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or names:
            self.host.gap(f"{node.key} in FROM")
            source = TableRead(node.sql().lower())
            return source, Item(source=source, tell=lambda: str(node.key))
        self._known_clauses(node)
        version = " ".join(
            node.args[name].sql()
            for name in ("version", "when", "system_time")
            if node.args.get(name) is not None
        )
        name = self.host.table_name(node)
        source = TableRead(name, version)
        return source, Item(source=source, tell=lambda: name)

    def _known_clauses(self, table: Any) -> None:
        for name, value in table.args.items():
            if value and name not in _TABLE:
                self.host.gap(f"a table with {name}")

    def generated(self, node: Any) -> Hung:
        """LATERAL VIEW or UNNEST: rows that a function makes of each row before it."""
        how: Literal["lateral", "lateral outer"] = "lateral"
        names = [name.lower() for name in node.alias_column_names]
        if isinstance(node, exp.Lateral):
            how = "lateral outer" if node.args.get("outer") else how
            if isinstance(node.this.unnest(), exp.Query) or node.args.get("ordinality"):
                self.host.gap("a lateral subquery")
                call: Term = Operation(f"lateral:{node.sql().lower()}")
            else:
                call = self.scalars.read(node.this)
            if node.args.get("cross_apply") is not None:
                self.host.gap("CROSS APPLY")
        else:
            if node.args.get("offset"):
                self.host.gap("UNNEST with positions")
            call = Operation("unnest", tuple(self.scalars.read(item) for item in node.expressions))
        source = Generated(call)
        item = Item(source, names=names or None, by_place=bool(names), tell=lambda: str(node.key))
        self._name(node, item)
        return Hung(source, how, [call])

    def _name(self, node: Any, item: Item) -> None:
        alias = node.alias_or_name.lower() or f"#{len(self.frame.items)}"
        if alias in self.frame.items:
            self.host.gap(f"two sources are called {alias}")
        self.frame.items[alias] = item

    def _target(self, query: Any, ctes: Mapping[str, Cte | None]) -> str:
        """What a query reads, for a reader."""
        tables = sorted(self._tables(query, ctes))
        return f"subquery of {', '.join(tables)}" if tables else "subquery"

    def _tables(self, query: Any, ctes: Mapping[str, Cte | None]) -> set[str]:
        found: set[str] = set()
        for table in query.find_all(exp.Table):
            cte = ctes.get(table.name.lower()) if not table.db else None
            if table.db:
                found.add(self.host.table_name(table))
            elif cte is not None:
                found |= self._tables(cte.query, cte.around)
        return found


def _may_melt(block: Block, role: Role) -> bool:
    """Whether a query's own sources and conditions can stand in the SELECT that reads it."""
    if not block.is_simple:
        return False
    if role == "inner":
        return True
    part = block.part
    if len(part.inner) != 1 or part.hung or isinstance(part.inner[0], Outer):
        return False
    # Where there is no match, a column is NULL, and what is computed of NULLs may be something.
    is_plain = all(isinstance(term, SourceColumn) for term in block.outputs.values())
    return is_plain and (role == "hung" or not part.where)


def _only_table(part: Part) -> str:
    only = part.inner[0] if len(part.inner) == 1 and not part.hung and not part.where else None
    return only.name if isinstance(only, TableRead) else ""
