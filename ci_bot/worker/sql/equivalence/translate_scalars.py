"""Translates the parser's expressions into terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from sqlglot import exp

from ci_bot.worker.sql import spark_sql
from ci_bot.worker.sql.equivalence.blocks import (
    ArgumentOrder,
    NestedQuery,
    SourceColumn,
    TableRead,
    Term,
    TermOperation,
    UnknownName,
    make_comparison,
    make_junction,
    make_leaf,
    negate_term,
)
from ci_bot.worker.sql.equivalence.choices import find_counted_condition
from ci_bot.worker.sql.equivalence.conditions import simplify_condition
from ci_bot.worker.sql.equivalence.known_types import find_known_type, name_certain_type
from ci_bot.worker.sql.equivalence.replacements import (
    compares_one_by_one,
    has_type_of_query,
    is_written_as_text,
    replace_expression,
)
from ci_bot.worker.sql.equivalence.select_frames import NamedResult, SelectFrame
from ci_bot.worker.sql.equivalence.select_notes import QueryHost
from ci_bot.worker.sql.equivalence.whole_bounds import settle_bound
from ci_bot.worker.sql.equivalence.windows import (
    list_computed_frame_ends,
    make_window_function,
    write_frame_in_full,
)
from ci_bot.worker.sqlmesh_compat import Tree

_COMPARISONS: dict[type, str] = {
    exp.EQ: "eq",
    exp.NEQ: "neq",
    exp.GT: "gt",
    exp.GTE: "gte",
    exp.LT: "lt",
    exp.LTE: "lte",
}
# The operands may change places, but not their nesting: sums of decimals and floats are rounded.
_COMMUTATIVE = (exp.Add, exp.Mul)


class ScalarTranslator:
    """A reader of the expressions of one SELECT.

    Args:
        host: reads subqueries, and collects the parts that are not understood.
        frame: the meaning of names.

    Attributes:
        results_first: a bare name first means a result, as in ORDER BY.
        is_behind: the clause comes after the results, where a result may hide a column of its name.
            Among the results themselves a column hides them.
        windows: the windows of the SELECT's WINDOW clause, by name.
    """

    def __init__(self, host: QueryHost, frame: SelectFrame) -> None:
        self.host = host
        self.frame = frame
        self.results_first = False
        self.is_behind = False
        self.windows: dict[str, exp.Expr] = {}
        self._bound: dict[str, str] = {}

    def translate_scalar(self, node: exp.Expr) -> Term:
        """Translates an expression; a part that is not understood is a gap in the proof."""
        replaced = replace_expression(node, on_spark=self.host.on_spark)
        if replaced is not None:
            return self.translate_scalar(replaced)
        special, comparison = _SPECIAL.get(type(node)), _COMPARISONS.get(type(node))
        if special is not None:
            return special(self, node)
        if comparison is not None:
            sides = self.translate_scalar(node.this), self.translate_scalar(node.expression)
            return self._compare(comparison, *sides)
        if isinstance(node, exp.Query):
            return self._translate_query_value(node)
        if not spark_sql.is_known(node):
            self.host.add_gap(f"{node.key} is not understood")
        # NOT LIKE ANY asks for one text that is not like it: it is not the opposite of LIKE ANY.
        if node.args.get("negate") and not isinstance(node.expression, exp.Any | exp.All):
            return negate_term(self._translate_generic(node, without="negate"))
        return self._translate_generic(node)

    def translate_condition(self, node: exp.Expr) -> Term:
        """The term of a condition that rows have to meet, where NULL is as good as FALSE."""
        return self.translate_scalar(node if self.host.as_written else simplify_condition(node))

    def _compare(self, op: str, left: Term, right: Term) -> Term:
        compared = make_comparison(op, left, right)
        is_settled = self.host.on_spark and not self.host.as_written
        return settle_bound(compared) if is_settled else compared

    def translate_call(self, node: exp.Expr) -> Term:
        """Translates a function that generates rows, without the alias of the rows."""
        if isinstance(node, exp.Unnest | exp.Lateral):
            return self._translate_generic(node, without="alias")
        return self.translate_scalar(node)

    def _translate_generic(self, node: exp.Expr, without: str = "") -> Term:
        """Makes an operation from its name and the names of its arguments, which sort its parts."""
        names: list[str] = []
        parts: list[Term] = []
        for name in sorted(node.args, key=lambda arg: _FIRST.get(arg, arg)):
            value = node.args[name]
            items = value if isinstance(value, list) else [value]
            if value is not None and items and name != without:
                names.append(f"{name}{len(items) if isinstance(value, list) else ''}")
                parts += [self._translate_argument(item) for item in items]
        fields = spark_sql.list_field_names(node)
        return TermOperation(
            f"{node.key}({','.join(names)}){','.join(fields)}",
            tuple(parts),
            ArgumentOrder.FREE if isinstance(node, _COMMUTATIVE) else ArgumentOrder.MATTERS,
            ordered=spark_sql.depends_on_order(node),
            aggregate=spark_sql.is_aggregate(node),
        )

    def _translate_argument(self, value: exp.Expr) -> Term:
        if isinstance(value, Tree):
            return self.translate_scalar(value)
        return make_leaf("text", str(value.value if isinstance(value, Enum) else value))

    def _translate_both(self, node: exp.Expr) -> list[Term]:
        return [self.translate_scalar(part) for part in node.flatten()]

    def _translate_column(self, node: exp.Column) -> Term:
        parts = [part.name.lower() for part in node.parts]
        if isinstance(node.this, exp.Star) or node.args.get("join_mark"):
            self.host.add_gap(_STAR_WITHIN)
            item = self.frame.find_item(".".join(parts[:-1]))
            if isinstance(node.this, exp.Star) and item is not None:
                return item.find_all_named()
            parts = parts[:-1] if isinstance(node.this, exp.Star) else parts
        found, place = self.frame.resolve_qualified(parts)
        if found is None and len(parts) > 1 and parts[0] not in self._bound:
            self.host.add_gap(f"it is not known what {node.table} is")
        if found is None:
            found = self._translate_bare_name(node, parts[0])
        if found is not None and place and place == len(parts) - 1:
            return _add_kind(found, node) if self.host.on_spark else found
        if isinstance(found, UnknownName):
            return UnknownName(f"unknown:{'.'.join(parts)}")
        for field in parts[place + 1 :]:
            found = TermOperation("field", (found, make_leaf("name", field)))
        return found

    def _translate_star(self, node: exp.Expr) -> Term:
        self.host.add_gap(_STAR_WITHIN)
        everything = [item.find_all_named() for item in self.frame.iterate_visible()]
        return TermOperation("star", (self._translate_generic(node), *everything))

    def _refuse_table(self, node: exp.Expr) -> Term:
        self.host.refuse_query("a table inside of an expression")
        return UnknownName(f"unknown:{node.sql().lower()}")

    def _translate_name(self, node: exp.Expr) -> Term:
        name = node.name.lower()
        return (
            make_leaf("bound", self._bound[name])
            if name in self._bound
            else make_leaf("name", name)
        )

    def _translate_field(self, node: exp.Expr) -> Term:
        if not isinstance(node.expression, exp.Identifier):
            return self._translate_generic(node)
        return TermOperation(
            "field",
            (self.translate_scalar(node.this), make_leaf("name", node.expression.name.lower())),
        )

    def _translate_lambda(self, node: exp.Expr) -> Term:
        """Translates a function within an expression: its parameters count by their places."""
        return self._translate_with_names(node, node.expressions, {"this", "expressions"})

    def _translate_comprehension(self, node: exp.Expr) -> Term:
        self.host.add_gap("a comprehension")
        return self._translate_with_names(node, [node.expression], set())

    def _translate_with_names(
        self, node: exp.Expr, names: Sequence[exp.Expr], understood: set[str]
    ) -> Term:
        around, depth = self._bound, len(self._bound)
        places = enumerate(names, depth)
        self._bound = {**around, **{item.name.lower(): f"{depth}.{n}" for n, item in places}}
        try:
            if any(value for name, value in node.args.items() if name not in understood):
                return self._translate_generic(node)
            return TermOperation(f"lambda{len(names)}", (self.translate_scalar(node.this),))
        finally:
            self._bound = around

    def _translate_bare_name(self, node: exp.Expr, name: str) -> Term:
        if name in self._bound:
            return make_leaf("bound", self._bound[name])
        result = self.frame.results.get(name)
        if result is not None and self.results_first:
            return self.translate_result(result)
        found, is_sure = self.frame.resolve_unqualified(name)
        if result is not None and not result.is_column(name):
            # A result hides a column of its name in some clauses and engines, and not in others.
            is_sure = False
            if self.is_behind or not self.frame.is_listed(name):
                candidates = [self.translate_result(result), *([found] if found else ())]
                found = TermOperation("one of", tuple(candidates))
        if not is_sure:
            self.host.add_gap(f"it is not known whose column {name} is")
        return found if found is not None else UnknownName(f"unknown:{node.sql().lower()}")

    def translate_result(self, result: NamedResult) -> Term:
        """Translates a result; a name in it means a column, and not a result again."""
        if result.term is not None:
            return result.term
        kept, self.frame.results = self.frame.results, {}
        before, self.results_first = self.results_first, False
        try:
            return self.translate_scalar(result.item)
        finally:
            self.frame.results, self.results_first = kept, before

    def _translate_null_safe(self, node: exp.Expr) -> Term:
        return TermOperation(
            "same",
            (self.translate_scalar(node.this), self.translate_scalar(node.expression)),
            ArgumentOrder.FREE,
        )

    def _translate_between(self, node: exp.Expr) -> Term:
        value = self.translate_scalar(node.this)
        if node.args.get("symmetric"):
            self.host.add_gap("BETWEEN SYMMETRIC")
            return self._translate_generic(node)
        return make_junction(
            "and",
            [
                self._compare("gte", value, self.translate_scalar(node.args["low"])),
                self._compare("lte", value, self.translate_scalar(node.args["high"])),
            ],
        )

    def _translate_in(self, node: exp.In) -> Term:
        value, query = self.translate_scalar(node.this), node.args.get("query")
        if query is not None:
            # Spark compares values of two types in another way than `=` does.
            name = "in query" if has_type_of_query(node.this, query) else "in query of other types"
            return TermOperation(name, (value, self._translate_nested(self._drop_copies(query), 1)))
        if node.args.get("unnest") or node.args.get("field"):
            self.host.add_gap("IN of an array")
            return self._translate_generic(node)
        items = tuple(self.translate_scalar(item) for item in node.expressions)
        if compares_one_by_one(node):
            return make_junction("or", [make_comparison("eq", value, item) for item in items])
        return TermOperation(
            "in", (value, TermOperation("list", items, ArgumentOrder.FREE_AND_ONCE))
        )

    def _translate_case(self, node: exp.Expr) -> Term:
        asked = node.this
        parts: list[Term] = []
        for branch in node.args["ifs"]:
            condition = (
                self.translate_condition(branch.this)
                if asked is None
                else make_comparison(
                    "eq", self.translate_scalar(asked), self.translate_scalar(branch.this)
                )
            )
            parts += [condition, self.translate_scalar(branch.args["true"])]
        return self._make_choice(parts, node.args.get("default"))

    def _translate_if(self, node: exp.Expr) -> Term:
        parts = [self.translate_condition(node.this), self.translate_scalar(node.args["true"])]
        return self._make_choice(parts, node.args.get("false"))

    def _make_choice(self, parts: list[Term], otherwise: exp.Expr | None) -> Term:
        if otherwise is not None and not isinstance(otherwise, exp.Null):
            parts = [*parts, self.translate_scalar(otherwise)]
        return TermOperation("case", tuple(parts))

    def _translate_coalesce(self, node: exp.Expr) -> Term:
        asked = [node.this, *node.expressions]
        items = [self.translate_scalar(item) for item in asked]
        types = [item.type for item in asked]
        # SQLMesh's qualifying makes this from the key of USING: if the first is NULL, the others
        # are, too.
        if (
            all(self.frame.adds_nothing(items[0], item) for item in items[1:])
            and types[0] is not None
            and not types[0].is_type(exp.DataType.Type.UNKNOWN)
            and all(kind == types[0] for kind in types)
        ):
            return items[0]
        return TermOperation("coalesce", tuple(items))

    def _translate_count(self, node: exp.Expr) -> Term:
        counted = node.this
        met = find_counted_condition(node)
        if met is not None:
            return TermOperation("count_if(this)", (self.translate_condition(met),), aggregate=True)
        if isinstance(counted, exp.Star) or (
            isinstance(counted, exp.Literal) and not node.expressions
        ):
            return TermOperation("count(*)", aggregate=True)
        return self._translate_generic(node)

    def _translate_concatenation(self, node: exp.Expr) -> Term:
        """Translates CONCAT and `||`, which are one function of Spark.

        For binary values and arrays, their nesting decides about the type
        (https://spark.apache.org/docs/3.5.6/api/sql/).
        """
        items = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
        is_one = self.host.on_spark and not node.args.get("coalesce")
        if not is_one or not all(is_written_as_text(item) for item in items):
            return self._translate_generic(node)
        terms = [self.translate_scalar(item) for item in items]
        flat = [
            part
            for term in terms
            for part in (
                term.parts
                if isinstance(term, TermOperation) and term.op == "concatenated"
                else (term,)
            )
        ]
        return TermOperation("concatenated", tuple(flat))

    def _translate_window(self, node: exp.Expr) -> Term:
        called = node.this
        function = self.translate_scalar(called)
        named = node.args.get("alias")
        has_more = any(node.args.get(name) for name in ("partition_by", "order", "spec"))
        written: tuple[Term, ...] = ()
        if named is not None and not has_more:
            node = self.windows.get(named.name.lower(), node)
        if node.args.get("alias") is not None or node.args.get("first") is not None:
            self.host.add_gap("a named window")
            about = [*self.windows.values(), *([] if named is None else [node])]
            written = tuple(self._translate_generic(item) for item in about)
        by = [self.translate_scalar(item) for item in node.args.get("partition_by") or []]
        order, frame = node.args.get("order"), node.args.get("spec")
        keys = (
            [self.translate_scalar(item) for item in order.expressions] if order is not None else []
        )
        ends = [self.translate_scalar(end) for end in list_computed_frame_ends(frame)]
        parts = (
            make_window_function(function),
            TermOperation("by", tuple(by), ArgumentOrder.FREE_AND_ONCE),
            TermOperation("order", tuple(keys)),
            make_leaf("frame", write_frame_in_full(frame, called, ordered=order is not None)),
            *ends,
            *written,
        )
        is_range = frame is None or str(frame.args.get("kind") or "").upper() == "RANGE"
        by_rows = not is_range and spark_sql.find_only_frame(called) is None
        return TermOperation("window", parts, windowed=True, ordered=by_rows)

    def _translate_ordered(self, node: exp.Expr) -> Term:
        if node.args.get("with_fill"):
            self.host.add_gap("WITH FILL")
            return self._translate_generic(node)
        way = "desc" if node.args.get("desc") else "asc"
        nulls = "first" if node.args.get("nulls_first") else "last"
        return TermOperation(f"ordered {way} {nulls}", (self.translate_scalar(node.this),))

    def _translate_named(self, node: exp.Expr) -> Term:
        """Translates a name that is a part of the value, such as the name of a field."""
        name = node.alias if isinstance(node, exp.Alias) else node.this.name
        value = node.this if isinstance(node, exp.Alias) else node.expression
        return TermOperation(f"named:{name}", (self.translate_scalar(value),))

    def _translate_cast(self, node: exp.Expr) -> Term:
        """Translates a cast; returns the value itself if it already has this type."""
        cast = self._translate_generic(node)
        value = cast.parts[0] if isinstance(cast, TermOperation) else cast
        kind = find_known_type(value) if self.host.on_spark and not self.host.as_written else ""
        return value if kind and kind == find_known_type(cast) else cast

    def _translate_nested(self, query: exp.Expr, columns: int | None) -> NestedQuery:
        return NestedQuery(self.host.read_nested(query, self.frame, columns))

    def _translate_query_value(self, node: exp.Expr) -> Term:
        return TermOperation("value of", (self._translate_nested(node, 1),))

    def _translate_exists(self, node: exp.Expr) -> Term:
        if not isinstance(node.this.unnest(), exp.Query):
            return self._translate_generic(node)
        return TermOperation("exists", (self._translate_nested(self._drop_copies(node.this), 0),))

    def _drop_copies(self, query: exp.Expr) -> exp.Expr:
        """Drops the DISTINCT of a query whose reader only asks whether it has a row."""
        select = query.unnest()
        distinct = select.args.get("distinct") if isinstance(select, exp.Select) else None
        is_cut = any(one.args.get(name) for one in (query, select) for name in ("limit", "offset"))
        if distinct is None or distinct.args.get("on") or is_cut or self.host.as_written:
            return query
        copied = select.copy()
        copied.set("distinct", None)
        return copied


_SPECIAL: dict[type, Callable[[ScalarTranslator, Any], Term]] = {
    exp.Column: ScalarTranslator._translate_column,
    exp.Paren: lambda self, node: self.translate_scalar(node.this),
    exp.Literal: lambda _, node: _translate_literal(node),
    exp.Boolean: lambda _, node: make_leaf("boolean", str(bool(node.this)).lower()),
    exp.Not: lambda self, node: negate_term(self.translate_scalar(node.this)),
    exp.NullSafeEQ: ScalarTranslator._translate_null_safe,
    exp.And: lambda self, node: make_junction("and", self._translate_both(node)),
    exp.Or: lambda self, node: make_junction("or", self._translate_both(node)),
    exp.Between: ScalarTranslator._translate_between,
    exp.Cast: ScalarTranslator._translate_cast,
    exp.TryCast: ScalarTranslator._translate_cast,
    exp.In: ScalarTranslator._translate_in,
    exp.Case: ScalarTranslator._translate_case,
    exp.If: ScalarTranslator._translate_if,
    exp.Coalesce: ScalarTranslator._translate_coalesce,
    exp.Window: ScalarTranslator._translate_window,
    exp.Ordered: ScalarTranslator._translate_ordered,
    exp.Star: ScalarTranslator._translate_star,
    exp.Table: ScalarTranslator._refuse_table,
    exp.TableColumn: lambda self, node: self._translate_bare_name(node, node.name.lower()),
    exp.Exists: ScalarTranslator._translate_exists,
    exp.Count: ScalarTranslator._translate_count,
    exp.Concat: ScalarTranslator._translate_concatenation,
    exp.DPipe: ScalarTranslator._translate_concatenation,
    exp.Alias: ScalarTranslator._translate_named,
    exp.PropertyEQ: ScalarTranslator._translate_named,
    exp.DataType: lambda _, node: make_leaf("type", node.sql(dialect="spark")),
    exp.Var: lambda _, node: make_leaf("var", node.name.upper()),
    exp.Identifier: ScalarTranslator._translate_name,
    exp.Dot: ScalarTranslator._translate_field,
    exp.Lambda: ScalarTranslator._translate_lambda,
    exp.Comprehension: ScalarTranslator._translate_comprehension,
}
_STAR_WITHIN = "a star within an expression"
# Two equal values of these types have one spelling: a zero has no sign, and a number has no scale.
_OF_ONE_FORM = (
    exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT,
    exp.DataType.Type.TEXT, exp.DataType.Type.DATE, exp.DataType.Type.BOOLEAN,
)  # fmt: skip
_FIRST = {"this": "0", "expression": "1", "expressions": "2"}


def _add_kind(term: Term, column: exp.Column) -> Term:
    """Adds its type to a stored column; `kind` only if equal values cannot be distinguished."""
    kind = column.type
    is_stored = isinstance(term, SourceColumn) and isinstance(term.source, TableRead)
    if kind is None or not isinstance(term, SourceColumn) or not is_stored:
        return term
    stored = name_certain_type(kind.sql(dialect="spark"))
    if kind.is_type(*_OF_ONE_FORM) and not (kind.expressions or kind.args.get("collate")):
        return replace(term, kind=kind.this.name, stored_type=stored)
    return replace(term, stored_type=stored)


def _translate_literal(node: exp.Expr) -> Term:
    return make_leaf("string" if node.is_string else "number", str(node.this))
