"""Calls of Spark as DuckDB's text: functions of the table, aggregates, windows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from ci_bot.worker.execution.arithmetic import write_average, write_cast, write_round
from ci_bot.worker.execution.expressions import OperatorWriter, name_construct, quote_text
from ci_bot.worker.execution.functions import (
    AGGREGATE_NAMES,
    AGGREGATES,
    CONSTANTS,
    FUNCTIONS,
    FunctionRow,
    read_constant,
)
from ci_bot.worker.execution.scopes import QueryScope, TypedText
from ci_bot.worker.execution.spark_types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    UntriedError,
    ValueType,
    find_common_type,
    make_array_type,
    make_decimal,
    parse_type,
)

_NUMBERED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
_MOVED = {"lag", "lead"}
_CASTS = {"string", "int", "bigint", "double", "boolean", "tinyint", "smallint", "decimal"}
# Stands where the window of a function follows.
_OVER = "\0over\0"
_PARTS = {"year", "quarter", "month", "day", "hour", "minute", "dayofweek", "dayofyear"}


class ExpressionWriter(OperatorWriter):
    """Writes expressions; what is no operator is a call."""

    def _write_extract(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        unit = {"dow": "dayofweek", "doy": "dayofyear"}.get(node.name.lower(), node.name.lower())
        if unit not in _PARTS:
            raise UntriedError(f"EXTRACT of {unit}")
        return self._write_named(unit, [node.expression], scope)

    def _write_anonymous(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_named(str(node.this).lower(), node.expressions, scope)

    def _write_named(
        self, name: str, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        if name in AGGREGATE_NAMES:
            return self._write_aggregate(name, arguments, scope)
        special = getattr(self, f"_call_{name}", None)
        if special is not None:
            found: TypedText = special(arguments, scope)
            return found
        rows = [row for row in FUNCTIONS.get(name, ()) if row.count_fits(len(arguments))]
        if name in _CASTS and len(arguments) == 1:
            return self._write_cast(exp.cast(arguments[0], name, dialect="spark"), scope)
        if not rows:
            raise UntriedError(f"{name}()")
        for row in rows[:-1]:
            try:
                return self._write_row(row, arguments, scope)
            except UntriedError:
                continue
        return self._write_row(rows[-1], arguments, scope)

    def _write_row(
        self, row: FunctionRow, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        takes = [*row.takes, *(row.takes[-1:] * (len(arguments) - len(row.takes)))]
        texts: list[str] = []
        typed: list[TypedText] = []
        for wanted, argument in zip(takes, arguments, strict=True):
            if wanted in CONSTANTS:
                texts.append(_write_constant(row, wanted, argument))
                continue
            value = self.write_expression(argument, scope)
            typed.append(value)
            texts.append(self._write_argument(row, wanted, value, typed[0].kind))
        kind = row.gives or typed[0].kind
        if "T" in takes:  # all of them, or all but the first
            first = takes.index("T")
            found, texts[first:] = self.unify_types(typed[first:])
            kind = row.gives or found
        text = row.text.format(
            *texts, all=", ".join(texts), joined=" || ".join(texts), name=row.name
        )
        return TypedText(text, kind)

    def _write_argument(
        self, row: FunctionRow, wanted: str, value: TypedText, first: ValueType
    ) -> str:
        """The text of an argument as the type that a function takes."""
        fits = {
            "T": True,
            "any": True,
            "number": value.kind.is_numeric,
            "whole": value.kind.is_whole,
            "array": value.kind.item is not None,
            "moment": None if value.kind.name in {"date", "timestamp"} else False,
            "item": first.item is not None
            and find_common_type(first.item, value.kind) == first.item,
        }.get(wanted)
        if fits is False:
            raise UntriedError(f"{row.name}() of {value.kind}")
        if wanted == "item" and first.item is not None:
            return write_cast(value.text, value.kind, first.item)
        if fits:
            return value.text
        return self.coerce_value(
            value, TIMESTAMP if wanted == "moment" else parse_type(wanted), row.name
        )

    def _call_round(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value = self.write_expression(arguments[0], scope)
        places = self.write_expression(arguments[1], scope).literal if len(arguments) > 1 else "0"
        if places is None or not re.fullmatch(r"-?[0-9]{1,2}", places):
            raise UntriedError("round() to places that are no number")
        return TypedText(*write_round(value.text, value.kind, int(places)))

    def _call_ceil(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_whole_part("ceil", arguments, scope)

    def _call_floor(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_whole_part("floor", arguments, scope)

    def _write_whole_part(
        self, name: str, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        if len(arguments) != 1:
            raise UntriedError(f"{name}() to places")
        value = self.write_expression(arguments[0], scope)
        if value.kind.is_whole or value.kind == DOUBLE:
            return TypedText(f"CAST({name}({value.text}) AS BIGINT)", BIGINT)
        if value.kind.name != "decimal":
            raise UntriedError(f"{name}() of {value.kind}")
        kind = make_decimal(value.kind.digits - value.kind.scale + 1, 0)
        return TypedText(f"CAST({name}({value.text}) AS {kind.duckdb})", kind)

    def _call_nullif(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, other = (self.write_expression(argument, scope) for argument in arguments)
        one, two = self.bring_together(value, other)
        return TypedText(f"(CASE WHEN {one} = {two} THEN NULL ELSE {value.text} END)", value.kind)

    def _call_if(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        condition, yes, no = arguments
        return self._write_case(exp.Case(ifs=[exp.If(this=condition, true=yes)], default=no), scope)

    def _call_mod(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_computed(exp.Mod(this=arguments[0], expression=arguments[1]), scope)

    def _call_array(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        kind, texts = self.unify_types(
            [self.write_expression(argument, scope) for argument in arguments]
        )
        if kind.name == "null":
            raise UntriedError("array() without a type")
        return TypedText(f"[{', '.join(texts)}]", make_array_type(kind))

    def _call_element_at(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, place = (self.write_expression(argument, scope) for argument in arguments)
        if value.kind.item is None or not place.kind.is_whole or place.literal in {None, "0"}:
            raise UntriedError("element_at()")
        return TypedText(f"{value.text}[{place.text}]", value.kind.item)

    def _call_to_date(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value = self.write_expression(arguments[0], scope)
        if len(arguments) > 1:
            pattern = self.write_expression(arguments[1], scope).literal
            if pattern != "yyyy-MM-dd" or value.kind == STRING:
                raise UntriedError("to_date() with a pattern")
        return TypedText(self.coerce_value(value, DATE, "to_date"), DATE)

    # Aggregates and windows.

    def _write_aggregate(
        self, name: str, arguments: Sequence[exp.Expr], scope: QueryScope, *, over: str = ""
    ) -> TypedText:
        called = AGGREGATE_NAMES[name]
        distinct = ""
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            arguments, distinct = arguments[0].expressions, "DISTINCT "
        if called == "count" and (len(arguments) != 1 or isinstance(arguments[0], exp.Star)):
            return self._write_row_count(arguments, distinct, scope, over)
        values = [self.write_expression(argument, scope) for argument in arguments]
        if called in {"sum", "avg"} and len(values) == 1:
            return self._write_total(called, values[0], distinct, over)
        row = AGGREGATES.get(called)
        if row is None or len(values) != len(row.takes):
            raise UntriedError(f"{name}()")
        if (over and row.hangs_on_order) or (distinct and "{distinct}" not in row.text):
            raise UntriedError(f"{name}() over a window" if over else f"{name}(DISTINCT)")
        for wanted, value in zip(row.takes, values, strict=True):
            if wanted == "boolean" and value.kind.name not in {"boolean", "null"}:
                raise UntriedError(f"{name}() of {value.kind}")
        self.hangs_on_order = self.hangs_on_order or row.hangs_on_order
        text = row.text.format(
            *(value.text for value in values), distinct=distinct, tie=scope.write_tie(rows=True)
        )
        return TypedText(f"{text}{over}", row.gives(values[0].kind))

    def _write_row_count(
        self, arguments: Sequence[exp.Expr], distinct: str, scope: QueryScope, over: str
    ) -> TypedText:
        if any(isinstance(argument, exp.Star) for argument in arguments) or not arguments:
            return TypedText(f"count(*){over}", BIGINT)
        texts = [self.write_expression(argument, scope).text for argument in arguments]
        known = " AND ".join(f"{text} IS NOT NULL" for text in texts)
        counted = f"CASE WHEN {known} THEN ({', '.join(texts)}) END"
        return TypedText(f"count({distinct}{counted}){over}", BIGINT)

    def _write_total(self, name: str, value: TypedText, distinct: str, over: str) -> TypedText:
        kind, text = value.kind, value.text
        if kind == STRING or not kind.is_numeric:
            raise UntriedError(f"{name}() of {kind}")
        total = f"sum({distinct}{text}){over}"
        if name == "sum":
            if kind.name == "decimal":
                found = make_decimal(kind.digits + 10, kind.scale)
                return TypedText(f"CAST({total} AS {found.duckdb})", found)
            found = DOUBLE if kind == DOUBLE else BIGINT
            return TypedText(f"CAST({total} AS {found.duckdb})", found)
        if kind.name == "decimal":
            return TypedText(*write_average(total, f"count({distinct}{text}){over}", kind))
        return TypedText(f"avg({distinct}{text}){over}", DOUBLE)

    def _write_filter(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        # Inside of an aggregate what does not count is NULL.
        name = str(node.this.this).lower() if isinstance(node.this, exp.Anonymous) else ""
        arguments = node.this.expressions
        if name not in {"count", "sum", "avg", "mean", "min", "max"} or len(arguments) != 1:
            raise UntriedError("FILTER of another aggregate")
        inner, distinct = arguments[0], isinstance(arguments[0], exp.Distinct)
        if distinct:
            (inner,) = inner.expressions
        if isinstance(inner, exp.Star):
            inner = exp.Literal.number(1)
        kept = exp.Case(ifs=[exp.If(this=node.expression.this, true=inner)])
        return self._write_named(
            name, [exp.Distinct(expressions=[kept]) if distinct else kept], scope
        )

    def _write_window(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        if node.args.get("alias") is not None:
            node = self._named_window(node)
        function, ignores = node.this, ""
        if isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
            ignores = " IGNORE NULLS" if isinstance(function, exp.IgnoreNulls) else ""
            function = function.this
        if not isinstance(function, exp.Anonymous):
            raise UntriedError(f"{name_construct(function)} over a window")
        name = str(function.this).lower()
        order, spec = node.args.get("order"), node.args.get("spec")
        by_rows = spec is not None and str(spec.args.get("kind")) == "ROWS"
        keys = [self.write_ordered(key, scope) for key in (order.expressions if order else ())]
        found = self._write_over(name, function.expressions, ignores, scope, bool(keys))
        frame = "" if spec is None else _write_frame(spec)
        first_rows = name in {"first_value", "first"} and spec is None
        if name in _MOVED or name in {"row_number", "ntile"} or by_rows or first_rows:
            self.hangs_on_order = True
            keys.append(scope.write_tie())
            if first_rows:
                frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        elif name in {"first_value", "last_value", "first", "last"}:
            raise UntriedError(f"{name}() over a range")
        within = [
            self.write_expression(part, scope).text for part in node.args.get("partition_by") or ()
        ]
        parts = [
            f"PARTITION BY {', '.join(within)}" if within else "",
            f"ORDER BY {', '.join(keys)}" if keys else "",
            frame,
        ]
        over = f" OVER ({' '.join(part for part in parts if part)})"
        return TypedText(found.text.replace(_OVER, over), found.kind)

    def _named_window(self, node: exp.Expr) -> exp.Expr:
        """The window with what its name stands for."""
        select = node.find_ancestor(exp.Select)
        for named in (select.args.get("windows") or ()) if select is not None else ():
            if named.name.lower() == node.alias.lower():
                found = exp.Window(this=node.this)
                for name in ("partition_by", "order", "spec"):
                    found.set(name, named.args.get(name))
                return found
        raise UntriedError("a window with a name")

    def _write_over(
        self,
        name: str,
        arguments: Sequence[exp.Expr],
        ignores: str,
        scope: QueryScope,
        ordered: bool,
    ) -> TypedText:
        """The function of a window, with `_OVER` where the window follows."""
        if name in _NUMBERED:
            if name == "ntile" and len(arguments) != 1:
                raise UntriedError("ntile()")
            inner = self.write_expression(arguments[0], scope).text if arguments else ""
            kind = DOUBLE if name in {"percent_rank", "cume_dist"} else INT
            return TypedText(f"CAST({name}({inner}){_OVER} AS {kind.duckdb})", kind)
        if name in {*_MOVED, "first_value", "last_value", "first", "last"}:
            values = [self.write_expression(argument, scope) for argument in arguments]
            called = name if name in _MOVED or name.endswith("_value") else f"{name}_value"
            kind = values[0].kind
            if len(values) > (len(("value", "rows", "default")) if name in _MOVED else 1):
                raise UntriedError(f"{name}() with so many arguments")
            texts = [value.text for value in values]
            if values[2:]:
                kind, (texts[0], texts[2]) = self.unify_types([values[0], values[2]])
            return TypedText(f"{called}({', '.join(texts)}{ignores}){_OVER}", kind)
        if name not in AGGREGATE_NAMES or ignores:
            raise UntriedError(f"{name}() over a window")
        return self._write_aggregate(name, arguments, scope, over=_OVER)


def _write_constant(row: FunctionRow, kind: str, argument: exp.Expr) -> str:
    """DuckDB's text for an argument that has to be a constant; a unit may be a bare name."""
    text = argument.name if isinstance(argument, exp.Literal | exp.Column | exp.Var) else ""
    if not isinstance(argument, exp.Literal) and kind != "span":
        raise UntriedError(f"{row.name}() with an argument that is no constant")
    found = read_constant(kind, text)
    if found is None:
        raise UntriedError(f"{row.name}() with '{text[:40]}'")
    return found if kind in {"bits", "digit"} else quote_text(found)


def _write_frame(spec: Any) -> str:
    def write_bound(name: str) -> str:
        value, side = spec.args.get(name), spec.args.get(f"{name}_side") or ""
        if isinstance(value, exp.Literal) and re.fullmatch(r"[0-9]{1,6}", value.name):
            value = value.name
        if value not in {"UNBOUNDED", "CURRENT ROW"} and not str(value).isdigit():
            raise UntriedError("a window whose frame is no plain number of rows")
        return f"{value} {side}".strip()

    kind = str(spec.args.get("kind"))
    if kind not in {"ROWS", "RANGE"} or (
        kind == "RANGE" and any(str(spec.args.get(name)).isdigit() for name in ("start", "end"))
    ):
        raise UntriedError("a window with a range of values")
    end = write_bound("end") if spec.args.get("end") else "CURRENT ROW"
    return f"{kind} BETWEEN {write_bound('start')} AND {end}"
