"""Structs, maps and intervals of Spark as DuckDB's text.

For DuckDB a map is a list of structs, `key` and `value`, so its order is Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ci_bot.worker.duckdb_trials.arithmetic import write_duckdb_cast
from ci_bot.worker.duckdb_trials.expressions import quote_duckdb_text, write_duckdb_field
from ci_bot.worker.duckdb_trials.query_scopes import QueryScope, TypedText
from ci_bot.worker.duckdb_trials.totals import DuckdbTotalWriter
from ci_bot.worker.duckdb_trials.value_types import (
    BOOLEAN,
    DAYS,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    UntriedError,
    ValueType,
    make_duckdb_array_type,
    make_duckdb_decimal,
    make_duckdb_struct_type,
    parse_duckdb_type,
    quote_duckdb_name,
)

# It begins the names of variables; no column's name begins so.
VARIABLE = "ci_each_"
_MICROSECONDS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
}
# Each part of an interval except the first only has what the next larger part leaves.
_INTERVAL_PARTS = {
    "day": ("{0} // 86400000000", INT),
    "hour": ("({0} // 3600000000) % 24", ValueType("tinyint")),
    "minute": ("({0} // 60000000) % 60", ValueType("tinyint")),
    "second": ("CAST({0} % 60000000 AS DECIMAL(18, 0)) / 1000000", make_duckdb_decimal(8, 6)),
}


class DuckdbNestedWriter(DuckdbTotalWriter):
    """A writer of values that have parts."""

    # Structs.

    def _write_dot(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        value, name = node.this, node.expression.name.lower()
        if isinstance(value, exp.Anonymous) and value.name.lower() == "from_json":
            return self._write_json_member(value, name, scope)
        return write_duckdb_field(self.write_expression(value, scope), name)

    def _write_json_member(self, call: exp.Expr, name: str, scope: QueryScope) -> TypedText:
        """Writes a text in a JSON text.

        Other types are refused: a field that does not fit may make the others NULL, too.
        """
        text, schema = call.expressions if len(call.expressions) == len(("text", "schema")) else []
        if not isinstance(schema, exp.Literal):
            raise UntriedError("from_json() without a schema as text")
        kind = parse_duckdb_type(f"STRUCT<{schema.name}>")
        if any(part != STRING for _, part in kind.parts):
            raise UntriedError("from_json() to other types than texts")
        fields = [one.name for one in exp.DataType.build(str(kind), dialect="spark").expressions]
        written = [one for one in schema.name.replace(",", " ").split() if one.lower() == name]
        if name not in fields or len(written) != 1:
            raise UntriedError(f"the field {name} of from_json()")
        value = self.write_expression(text, scope)
        if value.kind != STRING:
            raise UntriedError(f"from_json() of {value.kind}")
        return TypedText(f"ci_json({value.text}, {quote_duckdb_text(f'$.{written[0]}')})", STRING)

    def _write_struct(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._call_struct(node.expressions, scope)

    def _call_struct(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        named = []
        for place, one in enumerate(arguments, start=1):
            is_named = isinstance(one, exp.Alias | exp.Column | exp.Dot)
            named.append((one.alias_or_name.lower() if is_named else f"col{place}", one.unalias()))
        return self._write_fields(named, scope)

    def _call_named_struct(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        names, values = arguments[::2], arguments[1::2]
        if len(names) != len(values) or not all(isinstance(one, exp.Literal) for one in names):
            raise UntriedError("named_struct() with names that are no constants")
        pairs = zip(names, values, strict=True)
        return self._write_fields([(name.name.lower(), value) for name, value in pairs], scope)

    def _write_fields(self, named: Sequence[tuple[str, exp.Expr]], scope: QueryScope) -> TypedText:
        values = [(name, self.write_expression(one, scope)) for name, one in named]
        kind = make_duckdb_struct_type((name, value.kind) for name, value in values)
        inner = ", ".join(f"{quote_duckdb_text(name)}: {value.text}" for name, value in values)
        return TypedText(f"{{{inner}}}", kind)

    # Maps.

    def write_item(self, value: TypedText, key: TypedText) -> TypedText:
        """Writes the value of a map for a key; NULL if the map has none."""
        (_, key_kind), (_, kind) = value.kind.parts
        if key.kind != key_kind:
            raise UntriedError(f"an item of {value.kind} by {key.kind}")
        entry = quote_duckdb_name(f"{VARIABLE}entry")
        sought = f"lambda {entry}: {entry}.key = {key.text}"
        return TypedText(f"list_filter({value.text}, {sought})[1].value", kind)

    def _call_map_keys(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_map_parts("key", arguments, scope)

    def _call_map_values(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        return self._write_map_parts("value", arguments, scope)

    def _write_map_parts(
        self, name: str, arguments: Sequence[exp.Expr], scope: QueryScope
    ) -> TypedText:
        (value,) = (self.write_expression(one, scope) for one in arguments)
        return write_duckdb_map_parts(value, name)

    def _call_map_contains_key(self, arguments: Sequence[exp.Expr], scope: QueryScope) -> TypedText:
        value, key = (self.write_expression(one, scope) for one in arguments)
        keys = write_duckdb_map_parts(value, "key")
        if keys.kind != make_duckdb_array_type(key.kind):
            raise UntriedError(f"a key of {value.kind} that is {key.kind}")
        return TypedText(f"list_contains({keys.text}, {key.text})", BOOLEAN)

    # Intervals of days and times.

    def _write_interval(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        unit = str(node.args.get("unit") or "").lower().removesuffix("s")
        amount = node.this
        is_plain = isinstance(amount, exp.Literal) and amount.name.isascii()
        if unit not in _MICROSECONDS or not is_plain or not amount.name.isdigit():
            raise UntriedError("an interval that is no plain number of days, hours or less")
        micros = int(amount.name) * _MICROSECONDS[unit]
        return TypedText(f"to_microseconds({micros})", ValueType(f"interval {unit}"))

    def _write_difference(self, one: TypedText, other: TypedText) -> TypedText | None:
        """Writes the interval between two dates or times; None for other values."""
        names = {one.kind.name, other.kind.name}
        if names == {"date"}:
            days = f"CAST({one.text} - {other.text} AS BIGINT)"
            return TypedText(f"to_microseconds({days} * {_MICROSECONDS['day']})", DAYS)
        if names in ({"timestamp"}, {"date", "timestamp"}):
            end, start = (
                write_duckdb_cast(side.text, side.kind, TIMESTAMP) for side in (one, other)
            )
            return TypedText(f"to_microseconds(epoch_us({end}) - epoch_us({start}))", INTERVAL)
        return None

    def write_interval_part(self, unit: str, value: TypedText) -> TypedText:
        """Writes EXTRACT of an interval: one part of it, not its whole length."""
        if unit not in _INTERVAL_PARTS:
            raise UntriedError(f"EXTRACT of {unit} of {value.kind}")
        text, kind = _INTERVAL_PARTS[unit]
        part = text.format(f"epoch_us({value.text})")
        return TypedText(f"CAST({part} AS {kind.duckdb})", kind)


def write_duckdb_map_parts(value: TypedText, name: str) -> TypedText:
    """Writes the keys or values of a map.

    Raises:
        UntriedError: The value is no map.
    """
    if value.kind.name != "map":
        raise UntriedError(f"the keys or values of {value.kind}")
    entry = quote_duckdb_name(f"{VARIABLE}entry")
    text = f"list_transform({value.text}, lambda {entry}: {entry}.{name})"
    return TypedText(text, make_duckdb_array_type(dict(value.kind.parts)[name]))
