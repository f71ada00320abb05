"""Aggregates and windows of Spark as DuckDB's text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from ci_bot.worker.duckdb_trials.arithmetic import write_duckdb_average
from ci_bot.worker.duckdb_trials.expressions import (
    DuckdbOperatorWriter,
    name_duckdb_construct,
    quote_duckdb_text,
    refuse_duckdb_order_of_parts,
)
from ci_bot.worker.duckdb_trials.functions import AGGREGATE_NAMES, AGGREGATES
from ci_bot.worker.duckdb_trials.query_scopes import QueryScope, TypedText
from ci_bot.worker.duckdb_trials.value_types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    UntriedError,
    make_duckdb_decimal,
)

_NUMBERED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"}
_MOVED = {"lag", "lead"}
# It marks the place where the window of a function follows.
_OVER = "\0over\0"


class DuckdbTotalWriter(DuckdbOperatorWriter):
    """A writer of values that are computed from several rows."""

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
        if called in {"min", "max"} and values and values[0].kind.parts:
            return self._write_extreme_struct(called, values[0], over)
        row = AGGREGATES.get(called)
        if row is None or len(values) != len(row.takes):
            raise UntriedError(f"{name}()")
        if (over and row.depends_on_order) or (distinct and "{distinct}" not in row.text):
            raise UntriedError(f"{name}() over a window" if over else f"{name}(DISTINCT)")
        for wanted, value in zip(row.takes, values, strict=True):
            fits = value.kind.is_numeric if wanted == "number" else wanted != "boolean"
            if not fits and value.kind.name not in {wanted, "null"}:
                raise UntriedError(f"{name}() of {value.kind}")
        if called in {"min", "max", "max_by", "min_by"}:
            refuse_duckdb_order_of_parts(values[-1].kind)
        self.depends_on_order = self.depends_on_order or row.depends_on_order
        text = row.text.format(
            *(value.text for value in values), distinct=distinct, tie=scope.write_tie(rows=True)
        )
        return TypedText(f"{text}{over}", row.gives(values[0].kind))

    def _write_extreme_struct(self, name: str, value: TypedText, over: str) -> TypedText:
        """Writes the first or last struct, compared field by field; NULL is the smallest value."""
        if over or any(kind.parts or kind.item for _, kind in value.kind.parts):
            raise UntriedError(f"{name}() of {value.kind}")
        direction = "ASC NULLS FIRST" if name == "min" else "DESC NULLS LAST"
        keys = ", ".join(
            f"struct_extract({value.text}, {quote_duckdb_text(part)}) {direction}"
            for part, _ in value.kind.parts
        )
        known = f"FILTER (WHERE {value.text} IS NOT NULL)"
        return TypedText(f"(list({value.text} ORDER BY {keys}) {known})[1]", value.kind)

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
                found = make_duckdb_decimal(kind.digits + 10, kind.scale)
                return TypedText(f"CAST({total} AS {found.duckdb})", found)
            found = DOUBLE if kind == DOUBLE else BIGINT
            return TypedText(f"CAST({total} AS {found.duckdb})", found)
        if kind.name == "decimal":
            return TypedText(*write_duckdb_average(total, f"count({distinct}{text}){over}", kind))
        return TypedText(f"avg({distinct}{text}){over}", DOUBLE)

    def _write_filter(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        # Rows that do not count become NULL inside of the aggregate.
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
        return self._write_aggregate(
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
            raise UntriedError(f"{name_duckdb_construct(function)} over a window")
        name = str(function.this).lower()
        order, spec = node.args.get("order"), node.args.get("spec")
        if spec is not None and name in _NUMBERED | _MOVED:
            # Spark accepts the own frame of a rank, which changes nothing, and refuses any other
            # frame.
            if name in _MOVED | {"cume_dist"} or not _is_up_to_row(spec):
                raise UntriedError(f"a frame of {name}()")
            spec = None
        by_rows = spec is not None and str(spec.args.get("kind")) == "ROWS"
        keys = [self.write_ordered(key, scope) for key in (order.expressions if order else ())]
        found = self._write_over(name, function.expressions, ignores, scope, bool(keys))
        frame = "" if spec is None else self._write_frame(spec, order, scope)
        first_rows = name in {"first_value", "first"} and spec is None
        if name in _MOVED or name in {"row_number", "ntile"} or by_rows or first_rows:
            self.depends_on_order = True
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
        end = _write_duckdb_bound(spec, "end", unit) if ends[1] else "CURRENT ROW"
        return f"{kind} BETWEEN {_write_duckdb_bound(spec, 'start', unit)} AND {end}"

    def _resolve_named_window(self, node: exp.Expr) -> exp.Expr:
        """Replaces a window's name by its definition."""
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
        """Writes the function of a window, with `_OVER` in the place of the window."""
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


def _is_up_to_row(spec: exp.Expr) -> bool:
    """Whether a frame is ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW."""
    ends = (spec.args.get("kind"), spec.args.get("start"), spec.args.get("start_side"))
    until = spec.args.get("end") or "CURRENT ROW"
    return ends == ("ROWS", "UNBOUNDED", "PRECEDING") and until == "CURRENT ROW"


# The unit of a range, by the type of its order: days for dates, and intervals for times.
_RANGES = {DATE: "day", TIMESTAMP: "interval"}
_SPANS = {"day", "hour", "minute", "second"}
_FRAME_NUMBER = re.compile(r"[0-9]{1,6}")


def _write_duckdb_bound(spec: exp.Expr, name: str, unit: str) -> str:
    """Writes one end of a frame.

    Args:
        unit: the unit of a plain number in a range; "interval" if it must be an interval.
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
