"""From the parser's expressions to terms."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from sqlglot import exp

from ci_bot.worker.sql import functions
from ci_bot.worker.sql.algebra_blocks import (
    Block,
    Nested,
    Operation,
    Order,
    Term,
    comparison,
    junction,
    leaf,
    negation,
)
from ci_bot.worker.sql.name_scopes import Frame

_COMPARISONS: dict[type, str] = {
    exp.EQ: "eq",
    exp.NEQ: "neq",
    exp.GT: "gt",
    exp.GTE: "gte",
    exp.LT: "lt",
    exp.LTE: "lte",
}
# Their operands may change places, but not their nesting: sums of decimals and floats are rounded.
_COMMUTATIVE = (exp.Add, exp.Mul)


class Host(Protocol):
    """The reader of queries, for what an expression cannot say by itself."""

    def nested(self, query: Any, frame: Frame, columns: int | None) -> Block: ...

    def gap(self, why: str) -> None: ...


class Scalars:
    """Reads the expressions of one SELECT.

    Args:
        host: reads subqueries, and is told what is not understood.
        frame: what names stand for.
        results_first: a bare name is first looked for among the results, as in ORDER BY.
        windows: what the SELECT names in its WINDOW clause.
    """

    def __init__(self, host: Host, frame: Frame) -> None:
        self.host = host
        self.frame = frame
        self.results_first = False
        self.windows: dict[str, Any] = {}
        self._bound: dict[str, str] = {}
        self._special: dict[type, Callable[[Any], Term]] = {
            exp.Column: self._column,
            exp.Paren: lambda node: self.read(node.this),
            exp.Literal: _literal,
            exp.Boolean: lambda node: leaf("boolean", str(bool(node.this)).lower()),
            exp.Not: lambda node: negation(self.read(node.this)),
            exp.NullSafeEQ: self._same,
            exp.NullSafeNEQ: lambda node: negation(self._same(node)),
            exp.And: lambda node: junction("and", self._both(node)),
            exp.Or: lambda node: junction("or", self._both(node)),
            exp.Between: self._between,
            exp.In: self._in,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Coalesce: self._coalesce,
            exp.Window: self._window,
            exp.Ordered: self._ordered,
            exp.Subquery: self._value_of_query,
            exp.Select: self._value_of_query,
            exp.Exists: self._exists,
            exp.Count: self._count,
            exp.Alias: self._named,
            exp.PropertyEQ: self._named,
            exp.DataType: lambda node: leaf("type", node.sql(dialect="spark")),
            exp.Var: lambda node: leaf("var", node.name.upper()),
            exp.Identifier: self._name,
            exp.Dot: self._field,
            exp.Lambda: self._lambda,
        }

    def read(self, node: Any) -> Term:
        """The term of an expression; what is not understood is a gap in the proof."""
        kind = type(node)
        special = self._special.get(kind)
        if special is not None:
            return special(node)
        if kind in _COMPARISONS:
            return comparison(_COMPARISONS[kind], self.read(node.this), self.read(node.expression))
        if not functions.is_known(node):
            self.host.gap(f"{node.key} is not understood")
        if node.args.get("negate"):
            return negation(self._generic(node, without="negate"))
        return self._generic(node)

    def _generic(self, node: Any, without: str = "") -> Term:
        """An operation by its name and those of its arguments, in whose order its parts stand."""
        names: list[str] = []
        parts: list[Term] = []
        for name in sorted(node.args, key=lambda arg: _FIRST.get(arg, arg)):
            value = node.args[name]
            items = value if isinstance(value, list) else [value]
            if value is not None and items and name != without:
                names.append(f"{name}{len(items) if isinstance(value, list) else ''}")
                parts += [self._argument(item) for item in items]
        fields = functions.field_names(node)
        return Operation(
            f"{node.key}({','.join(names)}){','.join(fields)}",
            tuple(parts),
            Order.FREE if isinstance(node, _COMMUTATIVE) else Order.MATTERS,
            ordered=functions.looks_at_order(node),
            aggregate=functions.is_aggregate(node),
        )

    def _argument(self, value: Any) -> Term:
        if isinstance(value, exp.Expression):
            return self.read(value)
        return leaf("text", str(value.value if isinstance(value, Enum) else value))

    def _both(self, node: Any) -> list[Term]:
        return [self.read(part) for part in node.flatten()]

    def _column(self, node: Any) -> Term:
        name = node.name.lower()
        if isinstance(node.this, exp.Star) or node.args.get("join_mark"):
            self.host.gap("a star within an expression")
        elif node.table:
            found = self.frame.qualified(node.table.lower(), name, node.text("db").lower())
            if found is not None:
                return found
            self.host.gap(f"it is not known what {node.table} is")
        elif name in self._bound:
            return leaf("bound", self._bound[name])
        else:
            return self._bare(node, name)
        return leaf("unknown", node.sql().lower())

    def _name(self, node: Any) -> Term:
        name = node.name.lower()
        return leaf("bound", self._bound[name]) if name in self._bound else leaf("name", name)

    def _field(self, node: Any) -> Term:
        if not isinstance(node.expression, exp.Identifier):
            return self._generic(node)
        return Operation(
            "field", (self.read(node.this), leaf("name", node.expression.name.lower()))
        )

    def _lambda(self, node: Any) -> Term:
        """A function within an expression: its parameters count by their places."""
        if any(value for name, value in node.args.items() if name not in {"this", "expressions"}):
            return self._generic(node)
        around, depth = self._bound, len(self._bound)
        places = enumerate(node.expressions, depth)
        self._bound = {**around, **{item.name.lower(): f"{depth}.{n}" for n, item in places}}
        try:
            return Operation(f"lambda{len(node.expressions)}", (self.read(node.this),))
        finally:
            self._bound = around

    def _bare(self, node: Any, name: str) -> Term:
        result = self.frame.results.get(name)
        if result is not None and self.results_first:
            return self._result(result)
        found, sure = self.frame.unqualified(name)
        if result is not None and not _is_column(result, name):
            # A result hides a column of its name in some clauses and engines, and not in others.
            found, sure = self._result(result), False
        if not sure:
            self.host.gap(f"it is not known whose column {name} is")
        return found if found is not None else leaf("unknown", node.sql().lower())

    def _result(self, item: Any) -> Term:
        """What a result stands for: its own names are columns, not results again."""
        kept, self.frame.results = self.frame.results, {}
        before, self.results_first = self.results_first, False
        try:
            return self.read(item)
        finally:
            self.frame.results, self.results_first = kept, before

    def _same(self, node: Any) -> Term:
        return Operation("same", (self.read(node.this), self.read(node.expression)), Order.FREE)

    def _between(self, node: Any) -> Term:
        value = self.read(node.this)
        if node.args.get("symmetric"):
            self.host.gap("BETWEEN SYMMETRIC")
        return junction(
            "and",
            [
                comparison("gte", value, self.read(node.args["low"])),
                comparison("lte", value, self.read(node.args["high"])),
            ],
        )

    def _in(self, node: Any) -> Term:
        value, query = self.read(node.this), node.args.get("query")
        if query is not None:
            return Operation("in query", (value, self._nested(query, 1)))
        if node.args.get("unnest") or node.args.get("field"):
            self.host.gap("IN of an array")
            return self._generic(node)
        items = tuple(self.read(item) for item in node.expressions)
        return Operation("in", (value, Operation("list", items, Order.FREE_AND_ONCE)))

    def _case(self, node: Any) -> Term:
        asked = node.this
        parts: list[Term] = []
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            if asked is not None:
                condition = comparison("eq", self.read(asked), condition)
            parts += [condition, self.read(branch.args["true"])]
        return self._choice(parts, node.args.get("default"))

    def _if(self, node: Any) -> Term:
        parts = [self.read(node.this), self.read(node.args["true"])]
        return self._choice(parts, node.args.get("false"))

    def _choice(self, parts: list[Term], otherwise: Any) -> Term:
        if otherwise is not None and not isinstance(otherwise, exp.Null):
            parts = [*parts, self.read(otherwise)]
        return Operation("case", tuple(parts))

    def _coalesce(self, node: Any) -> Term:
        asked = [node.this, *node.expressions]
        items = [self.read(item) for item in asked]
        types = [item.type for item in asked]
        # What qualifying makes of the key of USING: where the first is NULL, so are the others.
        if (
            all(self.frame.adds_nothing(items[0], item) for item in items[1:])
            and types[0] is not None
            and not types[0].is_type(exp.DataType.Type.UNKNOWN)
            and all(kind == types[0] for kind in types)
        ):
            return items[0]
        return Operation("coalesce", tuple(items))

    def _count(self, node: Any) -> Term:
        counted = node.this
        if isinstance(counted, exp.Star) or (
            isinstance(counted, exp.Literal) and not node.expressions
        ):
            return Operation("count(*)", aggregate=True)
        return self._generic(node)

    def _window(self, node: Any) -> Term:
        function = self.read(node.this)
        named = node.args.get("alias")
        if named is not None:
            node = self.windows.get(named.name.lower(), node)
        if node.args.get("alias") is not None or node.args.get("first") is not None:
            self.host.gap("a named window")
        by = [self.read(item) for item in node.args.get("partition_by") or []]
        order, frame = node.args.get("order"), node.args.get("spec")
        keys = [self.read(item) for item in order.expressions] if order is not None else []
        ends = [self.read(frame.args[n]) for n in _ENDS if frame and not _is_text(frame, n)]
        parts = (
            _within(function),
            Operation("by", tuple(by), Order.FREE_AND_ONCE),
            Operation("order", tuple(keys)),
            leaf("frame", _frame_in_full(frame, ordered=order is not None)),
            *ends,
        )
        by_rows = frame is not None and str(frame.args.get("kind") or "").upper() != "RANGE"
        return Operation("window", parts, windowed=True, ordered=by_rows)

    def _ordered(self, node: Any) -> Term:
        if node.args.get("with_fill"):
            self.host.gap("WITH FILL")
        way = "desc" if node.args.get("desc") else "asc"
        nulls = "first" if node.args.get("nulls_first") else "last"
        return Operation(f"ordered {way} {nulls}", (self.read(node.this),))

    def _named(self, node: Any) -> Term:
        """A name that is a part of the value, as that of a field."""
        name = node.alias if isinstance(node, exp.Alias) else node.this.name
        value = node.this if isinstance(node, exp.Alias) else node.expression
        return Operation(f"named:{name}", (self.read(value),))

    def _nested(self, query: Any, columns: int | None) -> Nested:
        return Nested(self.host.nested(query, self.frame, columns))

    def _value_of_query(self, node: Any) -> Term:
        return Operation("value of", (self._nested(node, 1),))

    def _exists(self, node: Any) -> Term:
        if not isinstance(node.this.unnest(), exp.Query):
            return self._generic(node)
        return Operation("exists", (self._nested(node.this, 0),))


_FIRST = {"this": "0", "expression": "1", "expressions": "2"}
_FRAME = ("kind", "start", "start_side", "end", "end_side", "exclude")
_ENDS = ("start", "end")
_WHOLE = "UNBOUNDED PRECEDING UNBOUNDED FOLLOWING"
_UP_TO_PEERS = "RANGE UNBOUNDED PRECEDING CURRENT ROW"


def _frame_in_full(frame: Any, *, ordered: bool) -> str:
    """The frame with what SQL means where it is left out: up to the current row, and without any
    frame up to its peers, or the whole partition where nothing orders it."""
    if frame is None:
        return _UP_TO_PEERS if ordered else _WHOLE
    told = [str(frame.args.get(name) or "") for name in _FRAME if _is_text(frame, name)]
    if frame.args.get("end") is None:
        told += ["CURRENT ROW"]
    text = " ".join(part.upper() for part in told if part)
    kind, _, extent = text.partition(" ")
    return _WHOLE if extent == _WHOLE and kind in ("ROWS", "RANGE", "GROUPS") else text


def _is_text(frame: Any, name: str) -> bool:
    return not isinstance(frame.args.get(name), exp.Expression)


def _literal(node: Any) -> Term:
    return leaf("string" if node.is_string else "number", str(node.this))


def _is_column(item: Any, name: str) -> bool:
    return isinstance(item, exp.Column) and item.name.lower() == name


def _within(function: Term) -> Term:
    """The function of a window, which is no aggregate of the SELECT."""
    if not isinstance(function, Operation):
        return function
    plain = Operation(function.op, function.parts, function.order, ordered=function.ordered)
    plain.aggregated = any(isinstance(p, Operation) and p.aggregated for p in function.parts)
    return plain
