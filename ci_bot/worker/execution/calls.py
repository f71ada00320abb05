"""Calls of Spark as DuckDB's text: functions of the table, aggregates, windows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from ci_bot.worker.execution.arithmetic import (
    write_average,
    write_cast,
    write_even_round,
    write_round,
)
from ci_bot.worker.execution.expressions import OperatorWriter, name_construct, quote_text
from ci_bot.worker.execution.functions import (
    AGGREGATE_NAMES,
    AGGREGATES,
    CONSTANTS,
    FUNCTIONS,
    FunctionRow,
    read_constant,
)
from ci_bot.worker.execution.names_and_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    QueryScope,
    TypedText,
    UntriedError,
    ValueType,
    find_common_type,
    make_array_type,
    make_decimal,
    parse_type,
    quote_name,
)

_NUMBERED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
_MOVED = {"lag", "lead"}
_CASTS = {"string", "int", "bigint", "double", "boolean", "tinyint", "smallint", "decimal"}
# Before the names of variables, which no column has.
_VARIABLE = "ci_each_"
# Stands where the window of a function follows.
_OVER = "\0over\0"
_PARTS = {*("year", "quarter", "month", "day", "hour", "minute"), "dayofweek", "dayofyear"}
_PARTS |= {"weekofyear"}
_PART_NAMES = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}


class ExpressionWriter(OperatorWriter):
    """Writes expressions; what is no operator is a call."""

    def _write_extract(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        unit = _PART_NAMES.get(node.name.lower(), node.name.lower())
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
        value, places = self._read_rounding(arguments, scope)
        return TypedText(*write_round(value.text, value.kind, places))

    def _call_bround(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, places = self._read_rounding(arguments, scope)
        return TypedText(*write_even_round(value.text, value.kind, places))

    def _read_rounding(
        self, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> tuple[TypedText, int]:
        value = self.write_expression(arguments[0], scope)
        places = self.write_expression(arguments[1], scope).literal if len(arguments) > 1 else "0"
        if places is None or not re.fullmatch(r"-?[0-9]{1,2}", places):
            raise UntriedError("rounding to places that are no number")
        return value, int(places)

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

    def _call_pmod(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        rest = self._call_mod(arguments, scope)
        if not rest.kind.is_whole:
            raise UntriedError(f"pmod() of {rest.kind}")
        divisor = self.write_expression(arguments[1], scope).text
        moved = f"({rest.text} + {divisor}) % {divisor}"
        return TypedText(
            f"(CASE WHEN {rest.text} < 0 THEN {moved} ELSE {rest.text} END)", rest.kind
        )

    def _call_decode(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, *pairs = arguments
        if not pairs[1:]:
            raise UntriedError("decode() of bytes")
        ifs = [
            exp.If(this=exp.NullSafeEQ(this=value, expression=search), true=result)
            for search, result in zip(pairs[::2], pairs[1::2], strict=False)
        ]
        default = pairs[-1] if len(pairs) % 2 else None
        found = self._write_case(exp.Case(ifs=ifs, default=default), scope)
        if default is None and found.kind != STRING:  # Spark makes it a text
            raise UntriedError(f"decode() to {found.kind} without a default")
        return found

    def _call_grouping(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        texts = [self.write_expression(argument, scope).text for argument in arguments]
        if len(texts) != 1 or texts[0] not in (scope.groups or ()):
            raise UntriedError("grouping()")
        return TypedText(f"CAST(grouping({texts[0]}) AS TINYINT)", ValueType("tinyint"))

    def _call_get(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, place = arguments
        return self._write_bracket(exp.Bracket(this=value, expressions=[place]), scope)

    def _call_try_element_at(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._call_element_at(arguments, scope)

    def _call_array_max(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_extreme_item("list_max", arguments, scope)

    def _call_array_min(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_extreme_item("list_min", arguments, scope)

    def _write_extreme_item(
        self, name: str, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        (value,) = (self.write_expression(argument, scope) for argument in arguments)
        if value.kind.item is None:
            raise UntriedError(f"an item of {value.kind}")
        return TypedText(f"{name}({value.text})", value.kind.item)

    def _write_transform(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._call_transform([node.this, node.expression], scope)

    def _call_transform(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, text, computed = self._write_lambda(arguments, scope)
        kind = make_array_type(computed.kind)
        if not kind.is_known:
            raise UntriedError(f"transform() to {computed.kind}")
        return TypedText(f"list_transform({value.text}, {text})", kind)

    def _call_filter(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, text, kept = self._write_lambda(arguments, scope)
        if kept.kind != BOOLEAN:
            raise UntriedError(f"filter() by {kept.kind}")
        return TypedText(f"list_filter({value.text}, {text})", value.kind)

    def _call_exists(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_condition_on_items("ci_any", arguments, scope)

    def _call_forall(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_condition_on_items("ci_every", arguments, scope)

    def _write_condition_on_items(
        self, name: str, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        value, text, met = self._write_lambda(arguments, scope)
        if met.kind != BOOLEAN:
            raise UntriedError(f"a condition on items that is {met.kind}")
        return TypedText(f"{name}(list_transform({value.text}, {text}))", BOOLEAN)

    def _write_lambda(
        self, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> tuple[TypedText, str, TypedText]:
        """An array, DuckDB's function of its items, and what that gives."""
        value = self.write_expression(arguments[0], scope)
        function, item = arguments[1], value.kind.item
        if item is None or not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
            raise UntriedError("a function of an array's items and more")
        name = function.expressions[0].name.lower()
        variable = TypedText(quote_name(f"{_VARIABLE}{name}"), item)
        inner = QueryScope(parent=scope, aliases={name: lambda: variable}, aliases_first=True)
        found = self.write_expression(function.this, inner)
        return value, f"lambda {variable.text}: {found.text}", found

    def _write_identifier(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return scope.find_column("", node.name.lower())

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
            fits = value.kind.is_numeric if wanted == "number" else wanted != "boolean"
            if not fits and value.kind.name not in {wanted, "null"}:
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
            node = self._resolve_named_window(node)
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
        frame = "" if spec is None else self._write_frame(spec, order, scope)
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

    def _write_frame(self, spec: exp.Expr, order: exp.Expr | None, scope: QueryScope) -> str:
        kind, unit = str(spec.args.get("kind")), ""
        ends = [spec.args.get(name) for name in ("start", "end")]
        if kind == "RANGE" and any(isinstance(end, exp.Expression) for end in ends):
            keys = order.expressions if order is not None else []
            found = [self.write_expression(key.this, scope).kind for key in keys]
            if len(found) != 1 or not (found[0].is_whole or found[0] in _RANGES):
                raise UntriedError("a window with a range of values")
            unit = _RANGES.get(found[0], "")
        elif kind not in {"ROWS", "RANGE"}:
            raise UntriedError(f"a window with {kind}")
        end = _write_bound(spec, "end", unit) if ends[1] else "CURRENT ROW"
        return f"{kind} BETWEEN {_write_bound(spec, 'start', unit)} AND {end}"

    def _resolve_named_window(self, node: exp.Expr) -> exp.Expr:
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


# What a range counts, by the type of its order: days of dates, and intervals of times.
_RANGES = {DATE: "day", TIMESTAMP: "interval"}
_SPANS = {"day", "hour", "minute", "second"}
_FRAME_NUMBER = re.compile(r"[0-9]{1,6}")


def _write_bound(spec: exp.Expr, name: str, unit: str) -> str:
    """One end of a frame.

    Args:
        unit: what a plain number counts in a range, or what an interval has to be of.
    """
    value, side = spec.args.get(name), spec.args.get(f"{name}_side") or ""
    if isinstance(value, exp.Interval):
        named = str(value.args.get("unit") or "").lower().removesuffix("s")
        unit, value = (named if unit == "interval" and named in _SPANS else "none"), value.this
    if value in {"UNBOUNDED", "CURRENT ROW"}:
        return f"{value} {side}".strip()
    if (
        not isinstance(value, exp.Literal)
        or not _FRAME_NUMBER.fullmatch(value.name)
        or unit in {"interval", "none"}
    ):
        raise UntriedError("a window whose frame is no plain number of rows or values")
    return f"{f'INTERVAL {value.name} {unit}' if unit else value.name} {side}"


def _write_constant(row: FunctionRow, kind: str, argument: exp.Expr) -> str:
    """DuckDB's text for an argument that has to be a constant; a unit may be a bare name."""
    text = argument.name if isinstance(argument, exp.Literal | exp.Column | exp.Var) else ""
    if not isinstance(argument, exp.Literal) and kind not in {"span", "months"}:
        raise UntriedError(f"{row.name}() with an argument that is no constant")
    found = read_constant(kind, text)
    if found is None:
        raise UntriedError(f"{row.name}() with '{text[:40]}'")
    return found if kind in {"bits", "digit", "months"} else quote_text(found)
