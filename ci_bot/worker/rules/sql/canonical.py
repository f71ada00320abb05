"""A query as a bag of meanings, so that two versions can be compared.

Aliases, CTE names and the order of operands do not change what a query means. Each column is
written out as the stored column, or the expression, that it comes from; what is left are filters,
joins, groupings, unions and results that are equal exactly where they mean the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ci_bot.worker.rules.sql.interval import is_interval_predicate
from ci_bot.worker.rules.sql.queries import Query, outer, projection, selects, table_name

MAX_DEPTH = 10
MAX_TEXT = 4_000
_SWAPPED = {exp.GT: "lt", exp.GTE: "lte"}
_COMMUTATIVE = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.And, exp.Or, exp.Add, exp.Mul)
_PLAIN = frozenset({"this", "expression", "expressions"})
_NESTED = (exp.Subquery, exp.Select, exp.SetOperation)


@dataclass(frozen=True)
class Join:
    """One join: what is joined, how, and on which conditions."""

    target: str
    how: str
    on: frozenset[str]
    node: Any = field(compare=False, hash=False, default=None)


@dataclass
class Meaning:
    """What a query does, as sets and bags that do not depend on names or order.

    The texts in it are for comparing; `show` turns one back into SQL for a reader.
    """

    dialect: str
    filters: Counter[str] = field(default_factory=Counter)
    joins: list[Join] = field(default_factory=list)
    groups: list[frozenset[str]] = field(default_factory=list)
    distincts: int = 0
    unions: Counter[str] = field(default_factory=Counter)
    results: dict[str, tuple[str, ...]] = field(default_factory=dict)
    quotients: dict[str, Counter[str]] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    skeleton: list[tuple[Any, ...]] = field(default_factory=list)

    def show(self, text: str) -> str:
        """The SQL that `text` stands for, without quotes."""
        node = self.nodes.get(text)
        if node is None:
            return text.removeprefix("using ")
        return unquoted(node.sql(dialect=self.dialect, comments=False))

    def proves_same(self, other: Meaning) -> bool:
        """Whether both give the same rows: SELECT by SELECT, in the same nesting.

        Names of aliases and CTEs and the order of operands and result columns may differ, and
        nothing else: a filter that moves past a window function changes what passes.
        """
        return self.results == other.results and self.skeleton == other.skeleton


def meaning(
    query: Query, dialect: str, new_names: Mapping[str, str] | None = None
) -> Meaning | None:
    """The meaning of a query; None where it cannot be taken apart.

    `new_names` gives tables that only got another name, so that both sides call them alike.
    """
    if query.root is None:
        return None
    try:
        return _Reader(dialect, new_names or {}).read(query.root)
    except (RecursionError, AttributeError, KeyError, IndexError):
        return None


class _Reader:
    def __init__(self, dialect: str, new_names: Mapping[str, str]) -> None:
        self.new_names = new_names
        self.known: dict[tuple[int, str], str] = {}
        self.found = Meaning(dialect)

    def read(self, root: Any) -> Meaning:
        for scope in root.traverse():
            if isinstance(scope.expression, exp.SetOperation):
                self._union(scope.expression)
        for scope in selects(root):
            self._select(scope)
        for branch in outer(root):
            for item in branch.expression.expressions:
                name = item.alias_or_name.lower()
                text = self.text(item.unalias(), branch)
                self.found.results[name] = (*self.found.results.get(name, ()), text)
                self._quotients(name, item, branch)
        return self.found

    def _union(self, union: Any) -> None:
        kind = type(union).__name__.upper()
        distinct = bool(union.args.get("distinct"))
        self.found.unions[f"{kind}{'' if distinct else ' ALL'}"] += 1
        parts = [union.args.get(name) for name in ("order", "limit", "offset", "by_name")]
        texts = [part.sql() if isinstance(part, exp.Expression) else str(part) for part in parts]
        self.found.skeleton.append((kind, distinct, texts))

    def _quotients(self, name: str, item: Any, scope: Any) -> None:
        """How many divisions of a result are whole, and what each divides by."""
        bag = self.found.quotients.setdefault(name, Counter())
        for node in item.find_all(exp.Div, exp.IntDiv):
            bag["whole"] += int(isinstance(node, exp.IntDiv))
            bag[f"/{self.text(_unguarded(node.expression), scope)}"] += 1

    def _select(self, scope: Any) -> None:
        select = scope.expression
        clauses: list[Any] = []
        for name, part in sorted(select.args.items()):
            if name in {"expressions", "with_", "from_", "joins", "group"} or not part:
                continue
            if name in {"where", "having", "qualify"}:
                clauses.append((name, self._filters(part.this, scope)))
            else:
                items = part if isinstance(part, list) else [part]
                clauses.append((name, [self.text(item, scope) for item in items]))
        group = select.args.get("group")
        keys = frozenset(self._noted(k, scope) for k in group.expressions) if group else None
        if keys is not None:
            self.found.groups.append(keys)
        joins = [self._join(join, scope) for join in select.args.get("joins") or []]
        distinct = select.args.get("distinct") is not None
        self.found.distincts += int(distinct)
        sources = [
            self._table(source) if isinstance(source, exp.Table) else "query"
            for _, source in scope.selected_sources.values()
        ]
        returned = (
            [self.text(item.unalias(), scope) for item in select.expressions]
            if distinct or scope.is_union
            else []
        )
        self.found.skeleton.append((scope.scope_type.name, sources, joins, clauses, keys, returned))

    def _noted(self, node: Any, scope: Any) -> str:
        text = self.text(node, scope)
        self.found.nodes.setdefault(text, node)
        return text

    def _filters(self, condition: Any, scope: Any) -> Counter[str]:
        parts: Counter[str] = Counter()
        for part in conjuncts(condition):
            text = self._noted(part, scope)
            parts[text] += 1
            if not is_interval_predicate(part):
                self.found.filters[text] += 1
        return parts

    def _join(self, join: Any, scope: Any) -> tuple[Any, ...]:
        on = join.args.get("on")
        parts = conjuncts(on) if on is not None else []
        conditions = {self._noted(part, scope) for part in parts}
        conditions |= {f"using {key.name.lower()}" for key in join.args.get("using") or []}
        side, kind = join.side or "", join.kind or ""
        how = " ".join(part for part in (side, "" if kind in {"INNER", "OUTER"} else kind) if part)
        how = how or ("INNER" if conditions else "CROSS")
        target = self._target(scope.sources.get(join.this.alias_or_name), join.this)
        self.found.joins.append(Join(target, how, frozenset(conditions), join))
        return side, kind, join.method, target, frozenset(conditions)

    def _table(self, table: Any) -> str:
        name = table_name(table)
        return self.new_names.get(name, name)

    def _target(self, source: Any, node: Any) -> str:
        if isinstance(source, exp.Table):
            return self._table(source)
        if isinstance(source, Scope):
            tables = sorted(
                {self._table(table) for table in source.expression.find_all(exp.Table) if table.db}
            )
            return f"subquery of {', '.join(tables)}" if tables else "subquery"
        return str(node.key)

    def text(  # noqa: PLR0911 - one line for each kind of node reads best
        self, node: Any, scope: Any, depth: int = 0
    ) -> str:
        """`node` as text for comparing: columns by where they come from, operands in one order."""
        if isinstance(node, exp.Column):
            return self._column(node, scope, depth)
        if isinstance(node, exp.Paren | exp.Alias):
            return self.text(node.this, scope, depth)
        if isinstance(node, exp.Literal):
            return f"'{node.this}'" if node.is_string else str(node.this)
        if isinstance(node, exp.Identifier):
            return str(node.this).lower()
        if isinstance(node, _NESTED):
            return f"({unquoted(node.sql(dialect=self.found.dialect, comments=False))})"
        swapped = _SWAPPED.get(type(node))
        if swapped is not None:
            sides = (node.expression, node.this)
            return f"{swapped}({','.join(self.text(side, scope, depth) for side in sides)})"
        if isinstance(node, _COMMUTATIVE):
            operands = node.flatten() if isinstance(node, exp.Connector) else node.unnest_operands()
            return f"{node.key}({','.join(sorted(self._arg(o, scope, depth) for o in operands))})"
        return self._generic(node, scope, depth)

    def _generic(self, node: Any, scope: Any, depth: int) -> str:
        parts = []
        for name, value in node.args.items():
            if value is None or value is False or (isinstance(value, list) and not value):
                continue
            text = self._arg(value, scope, depth)
            parts.append(text if name in _PLAIN else f"{name}={text}")
        return f"{node.key}({','.join(parts)})"

    def _arg(self, value: Any, scope: Any, depth: int) -> str:
        if isinstance(value, list):
            return ",".join(self._arg(item, scope, depth) for item in value)
        if isinstance(value, exp.Expression):
            return self.text(value, scope, depth)
        return str(value)

    def _column(self, column: Any, scope: Any, depth: int) -> str:
        name: str = column.name.lower()
        source = scope.sources.get(column.table) if column.table else None
        if source is None and len(scope.selected_sources) == 1:
            source = next(iter(scope.selected_sources.values()))[1]
        if isinstance(source, exp.Table):
            return f"{self._table(source)}.{name}"
        if not isinstance(source, Scope) or depth >= MAX_DEPTH:
            return name
        key = (id(source), name)
        if key not in self.known:
            self.known[key] = name  # a recursive CTE meets itself here
            texts = [
                self.text(item, branch, depth + 1)
                for branch in outer(source)
                if (item := projection(branch, name)) is not None
            ]
            text = " | ".join(texts) if texts else name
            if len(text) > MAX_TEXT:
                text = hashlib.sha256(text.encode()).hexdigest()
            self.known[key] = text
        return self.known[key]


def conjuncts(condition: Any) -> list[Any]:
    """The parts of a condition that all have to hold."""
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return [condition]


def unquoted(text: str) -> str:
    """SQL without the quotes of identifiers: views are rendered without, tables with them."""
    return text.replace("`", "").replace('"', "")


def _unguarded(node: Any) -> Any:
    """A denominator without its guard against zero, which changes no quotient."""
    while True:
        zero = isinstance(node, exp.Nullif) and node.expression.name in {"0", "0.0"}
        if not zero and not isinstance(node, exp.Paren | exp.Cast):
            return node
        node = node.this
