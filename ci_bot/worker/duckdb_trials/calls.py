"""Calls of Spark as DuckDB's text: functions of the table, and functions with their own code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from ci_bot.worker.duckdb_trials.arithmetic import (
    write_duckdb_cast,
    write_duckdb_even_round,
    write_duckdb_round,
)
from ci_bot.worker.duckdb_trials.expressions import quote_duckdb_text, refuse_duckdb_order_of_parts
from ci_bot.worker.duckdb_trials.functions import (
    AGGREGATE_NAMES,
    CONSTANTS,
    FUNCTIONS,
    DuckdbFunctionRow,
    read_duckdb_constant,
)
from ci_bot.worker.duckdb_trials.nested import VARIABLE, DuckdbNestedWriter
from ci_bot.worker.duckdb_trials.query_scopes import QueryScope, TypedText
from ci_bot.worker.duckdb_trials.value_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    UntriedError,
    ValueType,
    find_common_duckdb_type,
    make_duckdb_array_type,
    make_duckdb_decimal,
    parse_duckdb_type,
    quote_duckdb_name,
)

_CASTS = {"string", "int", "bigint", "double", "boolean", "tinyint", "smallint", "decimal"}
_PARTS = {
    "year", "quarter", "month", "day", "hour", "minute", "dayofweek", "dayofyear", "weekofyear",
}  # fmt: skip
_PART_NAMES = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}


class DuckdbExpressionWriter(DuckdbNestedWriter):
    """A writer of expressions; an expression that is no operator is a call."""

    def _write_extract(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        unit = _PART_NAMES.get(node.name.lower(), node.name.lower())
        value = self.write_expression(node.expression, scope)
        if value.kind.is_interval:
            return self.write_interval_part(unit, value)
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
        self, row: DuckdbFunctionRow, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        takes = [*row.takes, *(row.takes[-1:] * (len(arguments) - len(row.takes)))]
        texts: list[str] = []
        typed: list[TypedText] = []
        for wanted, argument in zip(takes, arguments, strict=True):
            if wanted in CONSTANTS:
                texts.append(_write_duckdb_constant(row, wanted, argument))
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
        self, row: DuckdbFunctionRow, wanted: str, value: TypedText, first: ValueType
    ) -> str:
        """Writes an argument as the type that a function takes."""
        fits = {
            "T": True,
            "any": True,
            "number": value.kind.is_numeric,
            "whole": value.kind.is_whole,
            "array": value.kind.item is not None and row.takes_items(value.kind.item),
            "map": value.kind.name == "map",
            "moment": None if value.kind.name in {"date", "timestamp"} else False,
            "item": first.item is not None
            and find_common_duckdb_type(first.item, value.kind) == first.item,
        }.get(wanted)
        if fits is False:
            raise UntriedError(f"{row.name}() of {value.kind}")
        if wanted == "item" and first.item is not None:
            return write_duckdb_cast(value.text, value.kind, first.item)
        if fits:
            return value.text
        return self.coerce_value(
            value, TIMESTAMP if wanted == "moment" else parse_duckdb_type(wanted), row.name
        )

    def _call_round(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, places = self._read_rounding(arguments, scope)
        return TypedText(*write_duckdb_round(value.text, value.kind, places))

    def _call_bround(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, places = self._read_rounding(arguments, scope)
        return TypedText(*write_duckdb_even_round(value.text, value.kind, places))

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
        kind = make_duckdb_decimal(value.kind.digits - value.kind.scale + 1, 0)
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
        if default is None and found.kind != STRING:  # Spark turns it into a text
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
        refuse_duckdb_order_of_parts(value.kind)
        return TypedText(f"{name}({value.text})", value.kind.item)

    def _write_transform(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._call_transform([node.this, node.expression], scope)

    def _call_transform(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, text, computed = self._write_lambda(arguments, scope)
        kind = make_duckdb_array_type(computed.kind)
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
        """Writes a function of an array's items.

        Returns:
            The array, DuckDB's lambda, and the result for one item.
        """
        value = self.write_expression(arguments[0], scope)
        function, item = arguments[1], value.kind.item
        if item is None or not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
            raise UntriedError("a function of an array's items and more")
        name = function.expressions[0].name.lower()
        variable = TypedText(quote_duckdb_name(f"{VARIABLE}{name}"), item)
        inner = QueryScope(parent=scope, aliases={name: lambda: variable}, aliases_first=True)
        found = self.write_expression(function.this, inner)
        return value, f"lambda {variable.text}: {found.text}", found

    def _write_identifier(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return scope.find_column("", node.name.lower())

    def _write_array(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._call_array(node.expressions, scope)

    def _call_array(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        kind, texts = self.unify_types(
            [self.write_expression(argument, scope) for argument in arguments]
        )
        if kind.name == "null":
            raise UntriedError("array() without a type")
        return TypedText(f"[{', '.join(texts)}]", make_duckdb_array_type(kind))

    def _call_element_at(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, place = (self.write_expression(argument, scope) for argument in arguments)
        if value.kind.name == "map":
            return self.write_item(value, place)
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


def _write_duckdb_constant(row: DuckdbFunctionRow, kind: str, argument: exp.Expr) -> str:
    """Writes an argument that must be a constant as DuckDB's text; a unit may be a bare name."""
    text = argument.name if isinstance(argument, exp.Literal | exp.Column | exp.Var) else ""
    if not isinstance(argument, exp.Literal) and kind not in {"span", "months"}:
        raise UntriedError(f"{row.name}() with an argument that is no constant")
    found = read_duckdb_constant(kind, text)
    if found is None:
        raise UntriedError(f"{row.name}() with '{text[:40]}'")
    return found if kind in {"bits", "digit", "months"} else quote_duckdb_text(found)
