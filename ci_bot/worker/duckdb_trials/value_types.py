"""The types of values in a trial: Spark's types as DuckDB holds them, and their common types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

MOST_DIGITS = 38
# The part of a scale that Spark keeps if it does not fit (`DecimalType.MINIMUM_ADJUSTED_SCALE`).
_LEAST_SCALE = 6


class UntriedError(Exception):
    """A query that the judge does not run; the message names the construct, for a sentence."""


@dataclass(frozen=True)
class ValueType:
    """A type, with its parts.

    `decimal` has digits and scale, `array` the type of its items, `struct` its fields as parts, and
    `map` its `key` and `value` as parts.
    """

    name: str
    digits: int = 0
    scale: int = 0
    item: ValueType | None = None
    parts: tuple[tuple[str, ValueType], ...] = ()

    @property
    def is_numeric(self) -> bool:
        return self.name in {*_WHOLE_DIGITS, "decimal", "double"}

    @property
    def is_known(self) -> bool:
        """Whether the judge can make values of it; a table may also have columns of other types."""
        if self.parts:
            return all(part.is_known for _, part in self.parts)
        if self.item is not None:
            return self.item.is_known
        return self.name == "decimal" or self.name in _DUCKDB

    @property
    def is_interval(self) -> bool:
        return self.name.startswith("interval ")

    def find_part(self, name: str) -> ValueType:
        """Returns the type of a struct's field.

        Raises:
            UntriedError: It has no such field.
        """
        for part, kind in self.parts if self.name == "struct" else ():
            if part == name:
                return kind
        raise UntriedError(f"the field {name} of {self}")

    @property
    def is_whole(self) -> bool:
        return self.name in _WHOLE_DIGITS

    @property
    def duckdb(self) -> str:
        """The name of the type in DuckDB."""
        if self.name == "decimal":
            return f"DECIMAL({self.digits}, {self.scale})"
        if self.item is not None:
            return f"{self.item.duckdb}[]"
        if self.parts:
            parts = ", ".join(
                f"{quote_duckdb_name(name)} {kind.duckdb}" for name, kind in self.parts
            )
            return f"STRUCT({parts})" + ("[]" if self.name == "map" else "")
        return _DUCKDB[self.name]

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.digits},{self.scale})"
        if self.parts:
            named = self.name == "struct"
            parts = (f"{name}:{kind}" if named else str(kind) for name, kind in self.parts)
            return f"{self.name}<{','.join(parts)}>"
        return f"array<{self.item}>" if self.item is not None else self.name


_DAYS_AND_TIMES = "interval day to second"
_DUCKDB = {
    "null": "INTEGER",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    # Intervals of days and times: between two dates, and between two times.
    **dict.fromkeys(("interval day", "interval hour", "interval minute"), "INTERVAL"),
    **dict.fromkeys(("interval second", _DAYS_AND_TIMES), "INTERVAL"),
}
# The most digits of a whole number of a type, which are those of the decimal that holds it.
_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
NULL, BOOLEAN, STRING, DATE, TIMESTAMP = map(
    ValueType, ("null", "boolean", "string", "date", "timestamp")
)
INT, BIGINT, DOUBLE = map(ValueType, ("int", "bigint", "double"))
DAYS, INTERVAL = map(ValueType, ("interval day", _DAYS_AND_TIMES))
_READ = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": ValueType("tinyint"),
    "SMALLINT": ValueType("smallint"),
    "INT": INT,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
}


# In DuckDB a map is a list of structs with these fields.
MAP_PARTS = ("key", "value")


def make_duckdb_array_type(item: ValueType) -> ValueType:
    return ValueType("array", item=item)


def make_duckdb_struct_type(parts: Iterable[tuple[str, ValueType]]) -> ValueType:
    """Makes a struct type.

    Raises:
        UntriedError: A field has no type, or two fields have one name.
    """
    found = tuple(parts)
    if any(kind.name == "null" for _, kind in found) or len(dict(found)) != len(found):
        raise UntriedError("a struct whose fields have no types or one name")
    return ValueType("struct", parts=found)


def make_duckdb_decimal(digits: int, scale: int) -> ValueType:
    """Makes a decimal type; if it has too many digits, they are adjusted as in Spark.

    (`adjustPrecisionScale`)
    """
    if digits > MOST_DIGITS:
        scale = max(MOST_DIGITS - (digits - scale), min(scale, _LEAST_SCALE))
        digits = MOST_DIGITS
    return ValueType("decimal", digits, scale)


def read_spark_type(kind: Any) -> ValueType:
    """Returns the type of SQLGlot's `DataType`.

    Raises:
        UntriedError: The judge does not know the type.
    """
    name = str(getattr(kind.this, "value", kind.this))
    if name == "DECIMAL":
        sizes = [int(size.name) for size in kind.expressions]
        digits, scale = (sizes + [10, 0][len(sizes) :])[:2]
        return ValueType("decimal", digits, scale)
    if name == "ARRAY" and len(kind.expressions) == 1:
        return make_duckdb_array_type(read_spark_type(kind.expressions[0]))
    if name == "MAP" and len(kind.expressions) == len(MAP_PARTS):
        kinds = map(read_spark_type, kind.expressions)
        return ValueType("map", parts=tuple(zip(MAP_PARTS, kinds, strict=True)))
    if name == "STRUCT" and kind.expressions:
        fields = [one for one in kind.expressions if isinstance(one, exp.ColumnDef) and one.kind]
        if len(fields) == len(kind.expressions):
            return make_duckdb_struct_type(
                (one.name.lower(), read_spark_type(one.kind)) for one in fields
            )
    # Spark cuts or refuses longer texts in VARCHAR(n).
    if name in _READ and not kind.expressions:
        return _READ[name]
    raise UntriedError(f"the type {kind.sql(dialect='spark').lower()}")


def parse_duckdb_type(text: str) -> ValueType:
    """Returns the type of a text such as `decimal(10,2)`.

    Raises:
        UntriedError: The judge does not know the type.
    """
    return read_spark_type(exp.DataType.build(text, dialect="spark"))


def read_duckdb_columns(columns: Mapping[str, Any]) -> dict[str, ValueType]:
    """Reads the columns of a table, by name in lower case; for unknown types only the name is kept.

    Args:
        columns: SQLGlot's `DataType` or a text, by name.
    """
    found: dict[str, ValueType] = {}
    for name, kind in columns.items():
        try:
            found[name.lower()] = (
                parse_duckdb_type(kind) if isinstance(kind, str) else read_spark_type(kind)
            )
        except UntriedError:
            text = kind if isinstance(kind, str) else kind.sql(dialect="spark")
            found[name.lower()] = ValueType(text.lower())
    return found


def widen_to_duckdb_decimal(kind: ValueType) -> ValueType:
    """Returns the decimal that holds all values of a whole type; other types unchanged."""
    if kind.is_whole:
        return ValueType("decimal", _WHOLE_DIGITS[kind.name], 0)
    return kind


def find_common_duckdb_type(one: ValueType, other: ValueType) -> ValueType | None:
    """Finds the common type to which Spark converts two values; None if there is no rule for it."""
    if one == other or other.name == "null":
        return one
    if one.name == "null":
        return other
    if one.is_numeric and other.is_numeric:
        return _find_common_duckdb_number(one, other)
    if one.item is not None and other.item is not None:
        item = find_common_duckdb_type(one.item, other.item)
        return make_duckdb_array_type(item) if item is not None else None
    if one.is_interval and other.is_interval:
        return INTERVAL
    return TIMESTAMP if {one.name, other.name} == {"date", "timestamp"} else None


def _find_common_duckdb_number(one: ValueType, other: ValueType) -> ValueType:
    if "double" in {one.name, other.name}:
        return DOUBLE
    if one.is_whole and other.is_whole:
        return max(one, other, key=lambda kind: _WHOLE_DIGITS[kind.name])
    first, second = widen_to_duckdb_decimal(one), widen_to_duckdb_decimal(other)
    scale = max(first.scale, second.scale)
    whole = max(first.digits - first.scale, second.digits - second.scale)
    # It is cut and not adjusted: `DecimalPrecision.widerDecimalType`.
    return ValueType("decimal", min(whole + scale, MOST_DIGITS), min(scale, MOST_DIGITS))


def quote_duckdb_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
