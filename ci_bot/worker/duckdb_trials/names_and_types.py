"""What a query's text means to the judge: Spark's types, how two become one, how a text is parsed,
and the names that a query can use: its sources with columns, types and texts.

Functions are known by their names, and operators bind as in Spark's grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from ci_bot.worker.sql import read_as_spark

MOST_DIGITS = 38
# What Spark keeps of a scale that does not fit (`DecimalType.MINIMUM_ADJUSTED_SCALE`).
_LEAST_SCALE = 6


class UntriedError(Exception):
    """A query that the judge does not run; its text names the construct, for a sentence."""


@dataclass(frozen=True)
class ValueType:
    """A type: `decimal` with its digits and scale, `array` with the type of its items, `struct`
    with its fields as parts, and `map` with its `key` and `value` as parts.
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
        """Whether the judge can make values of it; a table may have columns of other types."""
        if self.parts:
            return all(part.is_known for _, part in self.parts)
        if self.item is not None:
            return self.item.is_known
        return self.name == "decimal" or self.name in _DUCKDB

    @property
    def is_interval(self) -> bool:
        return self.name.startswith("interval ")

    def find_part(self, name: str) -> ValueType:
        """The type of a struct's field. Raises UntriedError if it has no such field."""
        for part, kind in self.parts if self.name == "struct" else ():
            if part == name:
                return kind
        raise UntriedError(f"the field {name} of {self}")

    @property
    def is_whole(self) -> bool:
        return self.name in _WHOLE_DIGITS

    @property
    def duckdb(self) -> str:
        """The name that DuckDB has for it."""
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
    # Of days and times: between two dates, and between two times.
    **dict.fromkeys(("interval day", "interval hour", "interval minute"), "INTERVAL"),
    **dict.fromkeys(("interval second", "interval day to second"), "INTERVAL"),
}
# How many digits a whole number of a type has at most, which is the decimal that holds it.
_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
NULL, BOOLEAN, STRING, DATE, TIMESTAMP = map(
    ValueType, ("null", "boolean", "string", "date", "timestamp")
)
INT, BIGINT, DOUBLE = map(ValueType, ("int", "bigint", "double"))
DAYS, INTERVAL = map(ValueType, ("interval day", "interval day to second"))
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


# What a map is to DuckDB: a list of structs with these fields.
MAP_PARTS = ("key", "value")


def make_duckdb_array_type(item: ValueType) -> ValueType:
    return ValueType("array", item=item)


def make_duckdb_struct_type(parts: Iterable[tuple[str, ValueType]]) -> ValueType:
    """A struct. Raises UntriedError if a field has no type or two have one name."""
    found = tuple(parts)
    if any(kind.name == "null" for _, kind in found) or len(dict(found)) != len(found):
        raise UntriedError("a struct whose fields have no types or one name")
    return ValueType("struct", parts=found)


def make_duckdb_decimal(digits: int, scale: int) -> ValueType:
    """A decimal whose digits Spark adjusts where they are too many (`adjustPrecisionScale`)."""
    if digits > MOST_DIGITS:
        scale = max(MOST_DIGITS - (digits - scale), min(scale, _LEAST_SCALE))
        digits = MOST_DIGITS
    return ValueType("decimal", digits, scale)


def read_duckdb_type(kind: Any) -> ValueType:
    """The type that SQLGlot's `DataType` stands for. Raises UntriedError for others."""
    name = str(getattr(kind.this, "value", kind.this))
    if name == "DECIMAL":
        sizes = [int(size.name) for size in kind.expressions]
        digits, scale = (sizes + [10, 0][len(sizes) :])[:2]
        return ValueType("decimal", digits, scale)
    if name == "ARRAY" and len(kind.expressions) == 1:
        return make_duckdb_array_type(read_duckdb_type(kind.expressions[0]))
    if name == "MAP" and len(kind.expressions) == len(MAP_PARTS):
        kinds = map(read_duckdb_type, kind.expressions)
        return ValueType("map", parts=tuple(zip(MAP_PARTS, kinds, strict=True)))
    if name == "STRUCT" and kind.expressions:
        fields = [one for one in kind.expressions if isinstance(one, exp.ColumnDef) and one.kind]
        if len(fields) == len(kind.expressions):
            return make_duckdb_struct_type(
                (one.name.lower(), read_duckdb_type(one.kind)) for one in fields
            )
    # Of VARCHAR(n) Spark cuts or refuses what is longer.
    if name in _READ and not kind.expressions:
        return _READ[name]
    raise UntriedError(f"the type {kind.sql(dialect='spark').lower()}")


def parse_duckdb_type(text: str) -> ValueType:
    """The type of a text such as `decimal(10,2)`. Raises UntriedError for others."""
    return read_duckdb_type(exp.DataType.build(text, dialect="spark"))


def read_duckdb_columns(columns: Mapping[str, Any]) -> dict[str, ValueType]:
    """The columns of a table, by name in lower case: those of other types are known by name only.

    Args:
        columns: SQLGlot's `DataType` or a text, by name.
    """
    found: dict[str, ValueType] = {}
    for name, kind in columns.items():
        try:
            found[name.lower()] = (
                parse_duckdb_type(kind) if isinstance(kind, str) else read_duckdb_type(kind)
            )
        except UntriedError:
            text = kind if isinstance(kind, str) else kind.sql(dialect="spark")
            found[name.lower()] = ValueType(text.lower())
    return found


def widen_to_duckdb_decimal(kind: ValueType) -> ValueType:
    """The decimal that holds every value of a whole number's type."""
    if kind.is_whole:
        return ValueType("decimal", _WHOLE_DIGITS[kind.name], 0)
    return kind


def find_common_duckdb_type(one: ValueType, other: ValueType) -> ValueType | None:
    """The type to which Spark brings two values that meet; None if it is none of these."""
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
    # Not adjusted, but cut: `DecimalPrecision.widerDecimalType`.
    return ValueType("decimal", min(whole + scale, MOST_DIGITS), min(scale, MOST_DIGITS))


# What the time of a run is for both sides.
NOW = "2024-03-31 10:20:30"
LARGEST_TEXT = 200_000
_CLOCK_CALLS = {"current_timestamp", "now", "current_date", "curdate"}
_KEPT_PARSERS = ("CAST", "TRY_CAST", "EXTRACT")


@cache
def _make_plain_duckdb_parser() -> Any:
    """Spark's parser, with each function under the name that Spark reads.

    ARRAY keeps its class: before an index, SQLGlot takes its bare name for the start of a list.
    SQLGlot has classes of its own for functions, others in other versions, and arguments in
    another order.
    """
    own = Spark.Parser
    kept = {name: own.FUNCTION_PARSERS[name] for name in _KEPT_PARSERS}

    class PlainParser(own):  # type: ignore[misc, valid-type]
        # As sqlglot declares them: builders of more than one shape.
        FUNCTIONS: ClassVar[dict[str, Any]] = {"ARRAY": own.FUNCTIONS["ARRAY"]}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = kept

    return PlainParser


def parse_duckdb_plainly(text: str) -> exp.Expr:
    """The tree that Spark makes of a query's text. Raises UntriedError where it is not clear."""
    if len(text) > LARGEST_TEXT:
        raise UntriedError(f"a text of {len(text):,} characters")
    dialect = Spark()
    try:
        (tree,) = _make_plain_duckdb_parser()(dialect=dialect).parse(dialect.tokenize(text), text)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise UntriedError("a text that cannot be read again") from error
    reading = read_as_spark(tree)
    if reading.gaps:
        raise UntriedError(reading.gaps[0])
    return _freeze_duckdb_time(reading.tree)


def _freeze_duckdb_time(tree: exp.Expr) -> exp.Expr:
    """The query as if it ran at one moment: both sides of a pair run at the same one."""
    for node in list(tree.find_all(exp.Anonymous, exp.CurrentDate, exp.CurrentTimestamp)):
        name = (str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
        if name in _CLOCK_CALLS and not node.expressions:
            is_date = name in {"current_date", "curdate"}
            text = NOW[:10] if is_date else NOW
            node.replace(exp.cast(exp.Literal.string(text), "date" if is_date else "timestamp"))
    return tree


# Stands in DuckDB's text for the number of the run; another one breaks ties in another way.
MODE = "/*mode*/0"
TypedColumns = tuple[tuple[str, ValueType], ...]


@dataclass(frozen=True)
class TypedText:
    """DuckDB's text of an expression, with the type that Spark gives it.

    Attributes:
        literal: the digits or characters of what is written as a constant.
        least: for a whole number that is written as a constant, the smallest decimal for it, which
            Spark takes beside decimals.
    """

    text: str
    kind: ValueType
    literal: str | None = None
    least: ValueType | None = None


@dataclass(frozen=True)
class WrittenRelation:
    """DuckDB's text of a query, and its columns in their order."""

    text: str
    columns: TypedColumns


def select_from_duckdb(items: str, source: str) -> str:
    """`SELECT items FROM source`, of parts that are DuckDB's text already."""
    return " ".join(("SELECT", items, "FROM", source))


def quote_duckdb_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class ScopedSource:
    """A table or query in FROM.

    Attributes:
        shared: the texts of columns that USING has made one with earlier ones, by name, in order.
        table: the source table that it is; empty for queries.
    """

    alias: str
    columns: TypedColumns
    shared: Mapping[str, str] = field(default_factory=dict)
    table: str = ""


@dataclass
class QueryScope:
    """The names that an expression may use.

    Attributes:
        aliases: what a name of the SELECT list stands for, as far as it is known.
        groups: the texts of the groups, in a SELECT with groups; None in others.
        aliases_first: whether a name means one of the SELECT list before it means a column.
        reads: the columns that were asked for, by source table.
    """

    sources: list[ScopedSource] = field(default_factory=list)
    parent: QueryScope | None = None
    aliases: dict[str, Callable[[], TypedText]] = field(default_factory=dict)
    groups: list[str] | None = None
    aliases_first: bool = False
    reads: dict[str, set[str]] = field(default_factory=dict)

    def list_sources(self) -> list[ScopedSource]:
        """The sources of this scope and of those around it."""
        return [*self.sources, *(self.parent.list_sources() if self.parent is not None else ())]

    def find_column(self, table: str, name: str) -> TypedText:
        """The column that a name means. Raises UntriedError if its table is not known."""
        if not table and self.aliases_first and name in self.aliases:
            self.aliases_first = False  # what stands in the list means columns
            try:
                return self.aliases[name]()
            finally:
                self.aliases_first = True
        found = [
            (source, kind)
            for source in self.sources
            if table in {"", source.alias}
            for column, kind in source.columns
            if column == name and not (table == "" and name in source.shared)
        ]
        if len(found) > 1:
            raise UntriedError(f"`{name}`, which several tables have")
        if found:
            source, kind = found[0]
            self._note_read(source, name, kind)
            made_one = [other for other in self.sources if not table and name in other.shared]
            for other in made_one:
                self._note_read(other, name, kind)
            text = f"{quote_duckdb_name(source.alias)}.{quote_duckdb_name(name)}"
            return TypedText(made_one[-1].shared[name] if made_one else text, kind)
        if not table and name in self.aliases:
            return self.aliases[name]()
        if self.parent is not None:
            return self.parent.find_column(table, name)
        raise UntriedError(
            f"the column {f'{table}.' if table else ''}{name}, whose table is not known"
        )

    def _note_read(self, source: ScopedSource, name: str, kind: ValueType) -> None:
        if not kind.is_known:
            raise UntriedError(f"a column of type {kind}")
        if source.table:
            self.reads.setdefault(source.table, set()).add(name)

    def list_columns(self, table: str = "", *, noted: bool = False) -> list[tuple[str, TypedText]]:
        """The columns that a star stands for, in Spark's order."""
        found: list[tuple[str, TypedText]] = []
        shared = dict.fromkeys(name for source in self.sources for name in source.shared)
        if not table:
            found = [(name, self.find_column("", name)) for name in shared]
        for source in self.sources:
            if table in {"", source.alias}:
                for name, kind in source.columns if noted else ():
                    self._note_read(source, name, kind)
                found += [
                    (
                        name,
                        TypedText(
                            f"{quote_duckdb_name(source.alias)}.{quote_duckdb_name(name)}", kind
                        ),
                    )
                    for name, kind in source.columns
                    if table or name not in shared
                ]
        return found

    def write_tie(self, rows: bool = False) -> str:
        """An order of the rows that no query asks for.

        Args:
            rows: of the rows below the groups.
        """
        if self.groups is not None and not rows:
            return write_duckdb_order(self.groups)
        return write_duckdb_order(
            typed.text for _, typed in self.list_columns() if typed.kind.is_known
        )


def write_duckdb_order(texts: Iterable[str]) -> str:
    """An order by so many values, another one for each mode."""
    return f"hash({', '.join((MODE, *texts))})"


@dataclass(frozen=True)
class SourceTable:
    """A table that queries read: DuckDB's name for it, and its columns by name."""

    name: str
    columns: Mapping[str, ValueType]
