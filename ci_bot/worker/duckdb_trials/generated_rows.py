"""Rows for two queries: only a few, with values for which different queries differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from random import Random
from typing import Any

from ci_bot.worker.duckdb_trials.query_constants import JsonMembers, QueryConstants
from ci_bot.worker.duckdb_trials.value_types import STRING, UntriedError, ValueType

MOST_ROWS = 8
# The most combinations of rows of all tables in a wide data set: a join has no more.
_WIDE_PRODUCT = 4_096
_WIDE_ROWS = 64
_WIDE_VALUES = 16
# The columns that queries read, by table; and the rows by table, in the order of these columns.
ReadColumns = Mapping[str, Mapping[str, ValueType]]
DataSet = dict[str, list[tuple[Any, ...]]]

_PLAIN: Mapping[str, Sequence[Any]] = {
    # Orders are mostly not cancelled and rows not deleted, so a flag is mostly false.
    "boolean": (False, True),
    "tinyint": (1, 2, 0, -1),
    "smallint": (1, 2, 0, -1, 10),
    "int": (1, 2, 3, 0, -1, 10, -7),
    "bigint": (1, 2, 3, 0, -1, 10, -7),
    # Quarters, because their sums are exact in any order.
    "double": (1.0, 0.5, 2.25, 0.0, -1.5, 10.0),
    "string": ("a", "b", "A", "", " a", "a b", "1", "ab_c"),
    "date": tuple(
        date.fromisoformat(text)
        for text in (
            "2024-01-31",
            "2024-02-29",
            "2024-02-01",
            "2023-12-31",
            "2024-03-15",
            "2024-01-01",
        )
    ),
    "timestamp": tuple(
        datetime.fromisoformat(text)
        for text in (
            "2024-01-31 12:30:00",
            "2024-01-31 23:59:59",
            "2024-02-01 00:00:00",
            "2023-12-31 23:30:00.500",
            "2024-02-29 06:00:00",
        )
    ),
}
_ZONE = re.compile("[A-Z][a-z]+/[A-Za-z_]+")
_TIMES_OF_ZONES = tuple(
    datetime.fromisoformat(text)
    for text in ("2024-07-15 22:30:00", "2024-03-31 01:30:00", "2024-10-27 00:30:00")
)
_DECIMALS = ("1", "2.5", "0.01", "0", "-1", "10", "0.05")
# The ends of whole types, and whole numbers that a double does not hold.
_ENDS: Mapping[str, Sequence[int]] = {
    "tinyint": (127, -128),
    "smallint": (32767, -32768),
    "int": (2147483647, -2147483648),
    "bigint": (9007199254740993, 9007199254740992, -9223372036854775808),
}
# How often a cell takes a value that stands near the end of its type, in data about these.
_END_SHARE = 0.5
# How often an array has items that are drawn, and how often a struct has nothing but NULL.
_DRAWN_SHARE, _HOLLOW_SHARE = 0.5, 0.1
# The share of cells with a value that the queries themselves compare with, and the shares of NULL.
_OWN_SHARE = 0.7
_NULL_SHARES = (0.0, 0.0, 0.15, 0.4)
_NULL_SHARE = 0.15
_SAME_SHARE = 0.4
_EMPTY_SHARE = 0.06
# The limits for a row's change: removed, doubled, doubled with other cells; otherwise one cell
# changes.
_REMOVED, _DOUBLED, _VARIED = 0.1, 0.2, 0.5
# The number of values that are drawn for a column whose values must differ.
_DRAWS = 24


# A bigint may be a time in milliseconds.
_WHOLE_LIMITS = {"tinyint": 2**7, "smallint": 2**15, "bigint": 2**50}


class DuckdbRowGenerator:
    """A generator of data sets for the columns that two queries read.

    The same seed gives the same data sets.
    """

    def __init__(
        self,
        columns: ReadColumns,
        constants: QueryConstants,
        seed: str,
        is_private: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._is_private = is_private
        self._columns = columns
        self._constants = constants
        self._dice = Random(seed)  # noqa: S311 - the same rows in each review  # nosec B311
        self._own: dict[tuple[str, ValueType], list[Any]] = {}
        self._all: dict[ValueType, list[Any]] = {}

    def make_distinct_data(self) -> DataSet:
        """Makes new rows whose columns have each value once, besides NULL, so their order is clear.

        In half of the data sets, some columns have only one value, so rows belong together.
        """
        dice = self._dice
        data: DataSet = {}
        same = dice.choice((0.0, _SAME_SHARE))
        for table, columns in self._columns.items():
            pools = []
            for name, kind in columns.items():
                drawn = [self._draw_value(name, kind) for _ in range(_DRAWS)]
                pool = [value for at, value in enumerate(drawn) if value not in drawn[:at]]
                dice.shuffle(pool)
                pools.append(pool[:1] * MOST_ROWS if dice.random() < same else pool)
            size = min([MOST_ROWS, *map(len, pools)])
            data[table] = [
                tuple(None if dice.random() < _NULL_SHARE else pool[row] for pool in pools)
                for row in range(size)
            ]
        return data

    def make_data(self, *, wide: bool = False) -> DataSet:
        """Makes new rows with few values in each column, so keys match and rows occur twice.

        Args:
            wide: many rows instead of at most eight, so nearly every combination of two columns'
                values occurs, also with NULL.
        """
        dice = self._dice
        nulls = _NULL_SHARES[-1] if wide else dice.choice(_NULL_SHARES)
        widest = min(_WIDE_ROWS, int(_WIDE_PRODUCT ** (1 / max(len(self._columns), 1))))
        narrow: dict[tuple[str, ValueType], list[Any]] = {}
        data: DataSet = {}
        for table, columns in self._columns.items():
            size = widest if wide and columns else dice.choice((1, 1, 2, 2, 3, 3, 4, 5, MOST_ROWS))
            if not wide and dice.random() < _EMPTY_SHARE:
                size = 0
            pools = []
            for name, kind in columns.items():
                key = (self._constants.twins.get(name, name), kind)
                if key not in narrow:
                    count = _WIDE_VALUES if wide else dice.choice((1, 2, 2, 3, 4, MOST_ROWS))
                    narrow[key] = [self._draw_value(name, kind) for _ in range(count)]
                pools.append(narrow[key])
            rows = [
                tuple(None if dice.random() < nulls else dice.choice(pool) for pool in pools)
                for _ in range(size)
            ]
            data[table] = rows
        return data

    @property
    def has_ends(self) -> bool:
        """Whether a column may hold values near the end of its type."""
        return any(
            name in self._constants.far_columns and kind.name in _ENDS
            for columns in self._columns.values()
            for name, kind in columns.items()
        )

    def make_data_of_ends(self) -> DataSet:
        """Fresh rows, of which many hold a value near the end of its type, one for each column.

        If DuckDB computes a number that its type does not hold, it fails, and the data say nothing.
        """
        data = self.make_data()
        for table, columns in self._columns.items():
            for place, (name, kind) in enumerate(columns.items()):
                is_far = name in self._constants.far_columns and kind.name in _ENDS
                if is_far and not self._is_private(name):
                    data[table] = self._put_end(data[table], place, kind)
        return data

    def _put_end(
        self, rows: Sequence[tuple[Any, ...]], place: int, kind: ValueType
    ) -> list[tuple[Any, ...]]:
        end = self._dice.choice(_ENDS[kind.name])
        return [
            (*row[:place], end, *row[place + 1 :]) if self._dice.random() < _END_SHARE else row
            for row in rows
        ]

    def make_dense_data(self) -> DataSet:
        """Makes new rows for queries that let few rows through.

        They have one key for all tables, large groups, and NULL in columns that are tested for it.
        """
        dice = self._dice
        keys = {name for pair in self._constants.twins.items() for name in pair}
        data: DataSet = {}
        shared: dict[tuple[str, ValueType], list[Any]] = {}
        for table, columns in self._columns.items():
            pools, nulls = [], []
            for name, kind in columns.items():
                key = (self._constants.twins.get(name, name), kind)
                if key not in shared:
                    count = 1 if name in keys else dice.choice((1, 1, 2, 4))
                    shared[key] = [self._draw_value(name, kind) for _ in range(count)]
                pools.append(shared[key])
                nulls.append(0.6 if name in self._constants.sought_nulls else 0.05)
            data[table] = [
                tuple(
                    None if dice.random() < null else dice.choice(pool)
                    for pool, null in zip(pools, nulls, strict=True)
                )
                for _ in range(MOST_ROWS)
            ]
        return data

    def change_data(self, data: DataSet) -> DataSet:
        """Copies `data` with one row or cell changed."""
        dice = self._dice
        changed = {table: list(rows) for table, rows in data.items()}
        filled = [table for table, rows in changed.items() if rows and self._columns[table]]
        if not filled:
            return self.make_data()
        table = dice.choice(filled)
        rows, columns = changed[table], list(self._columns[table].items())
        place = dice.randrange(len(rows))
        how = dice.random()
        if how < _REMOVED and len(rows) > 1:
            del rows[place]
            return changed
        row = list(rows[place])
        for _ in range(dice.choice((1, 1, 2))):
            cell = dice.randrange(len(columns))
            row[cell] = None if dice.random() < _NULL_SHARE else self._draw_value(*columns[cell])
        if how < _VARIED and len(rows) < MOST_ROWS:
            rows.append(rows[place] if how < _DOUBLED else tuple(row))
        else:
            rows[place] = tuple(row)
        return changed

    def _draw_value(self, name: str, kind: ValueType) -> Any:
        if self._is_private(name):
            return self._dice.choice(list_plain_values(kind))
        if name in self._constants.json_members and kind.name == "string":
            return self._draw_json(name)
        if kind.parts or (kind.item is not None and kind.item.parts):
            return self._draw_parts(name, kind)
        if kind.item is not None and self._dice.random() < _DRAWN_SHARE:
            sizes = (1, 2, 2, 3)
            return [self._draw_part(name, kind.item) for _ in range(self._dice.choice(sizes))]
        key = (name, kind)
        if key not in self._own:
            texts = self._constants.by_column.get(name, frozenset())
            self._own[key] = [
                *_list_constant_values(sorted(texts), kind),
                *self._cast_values(name, kind),
                *self._span_values(kind),
                *self._zone_values(kind),
            ]
        own = self._own[key]
        if own and self._dice.random() < _OWN_SHARE:
            return self._dice.choice(own)
        if kind not in self._all:
            self._all[kind] = [
                *list_plain_values(kind),
                *_list_constant_values(sorted(self._constants.others), kind),
            ]
        # Plain values come first: a text has many constants that never occur with this column.
        plain = list_plain_values(kind)
        return self._dice.choice(plain if self._dice.random() < _OWN_SHARE else self._all[kind])

    def _draw_parts(self, name: str, kind: ValueType) -> Any:
        """Draws a struct, a map, or an array of them; each part as a column of its name."""
        dice = self._dice
        if kind.item is not None:
            return [self._draw_parts(name, kind.item) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
        if kind.name == "map":
            (_, key), (_, value) = kind.parts
            keys = [self._draw_value(name, key) for _ in range(dice.choice((0, 1, 2, 3)))]
            return {one: self._draw_part(name, value) for one in keys}
        if dice.random() < _HOLLOW_SHARE:
            return dict.fromkeys(part for part, _ in kind.parts)
        return {part: self._draw_part(part, inner) for part, inner in kind.parts}

    def _draw_part(self, name: str, kind: ValueType) -> Any:
        return None if self._dice.random() < _NULL_SHARE else self._draw_value(name, kind)

    def _draw_json(self, name: str) -> str:
        """Draws a JSON text with some of the members that the queries read."""
        members = self._constants.json_members[name]
        document: dict[str, object] = {}
        for path, kinds in sorted(members.items()):
            _, *names = path.split(".")
            inner = document
            for part in names[:-1]:
                below = inner.setdefault(part, {})
                inner = below if isinstance(below, dict) else {}
            if names and self._dice.random() >= _NULL_SHARE:
                inner[names[-1]] = self._draw_json_value(name, kinds, members)
        return json.dumps(document, separators=(",", ":"), default=str)

    def _draw_json_value(self, name: str, kinds: frozenset[ValueType], members: JsonMembers) -> Any:
        texts = sorted(self._constants.by_column.get(name, frozenset()) - set(members))
        if not kinds:
            return self._dice.choice([*texts, *list_plain_values(STRING), 1, 2.5, None])
        kind = self._dice.choice(sorted(kinds, key=str))
        own = _list_constant_values(texts, kind)
        use_own = own and self._dice.random() < _OWN_SHARE
        value = self._dice.choice(own if use_own else list_plain_values(kind))
        return float(value) if isinstance(value, Decimal) else value

    def _span_values(self, kind: ValueType) -> list[Any]:
        """Lists times whose distances are the lengths of the queries' intervals."""
        if kind.name != "timestamp" or not self._constants.spans:
            return []
        start = _PLAIN["timestamp"][0]
        seconds = (span + step for span in sorted(self._constants.spans) for step in (0, 1, -1))
        return [start, *(start + timedelta(seconds=one) for one in seconds)]

    def _zone_values(self, kind: ValueType) -> list[Any]:
        """Lists times in summer, and beside a change of clocks, if the queries name a time zone."""
        is_asked = any(
            re.fullmatch("[A-Z][a-z]+/[A-Za-z_]+", one) for one in self._constants.others
        )
        return list(_TIMES_OF_ZONES) if kind.name == "timestamp" and is_asked else []

    def _cast_values(self, name: str, kind: ValueType) -> list[Any]:
        """Lists texts of values of the types to which a column is cast."""
        if kind.name != "string":
            return []
        targets = self._constants.casts.get(name, frozenset())
        return [
            str(value) for target in sorted(targets, key=str) for value in list_plain_values(target)
        ]


def list_plain_values(kind: ValueType) -> list[Any]:
    """Lists values of a type, the plainest first.

    Raises:
        UntriedError: The judge has no values of this type.
    """
    if kind.name == "decimal":
        unit = Decimal(1).scaleb(-kind.scale)
        fitting = [Decimal(text).quantize(unit) for text in _DECIMALS]
        return list(dict.fromkeys(value for value in fitting if _fits_type(value, kind)))
    if kind.item is not None:
        first, *rest = list_plain_values(kind.item)
        return [[first], [], [first, first], [first, *rest[:1]], [None, *rest[:1]]]
    if kind.name == "map":
        (_, key), (_, value) = kind.parts
        return [{list_plain_values(key)[0]: list_plain_values(value)[0]}, {}]
    if kind.name == "struct":
        firsts = {name: list_plain_values(part)[0] for name, part in kind.parts}
        return [firsts, dict.fromkeys(firsts)]
    if kind.name in _PLAIN:
        return list(_PLAIN[kind.name])
    raise UntriedError(f"a table with a column of type {kind}")


def _list_constant_values(texts: Sequence[str], kind: ValueType) -> list[Any]:
    """Lists the values of constants as a type, each with its neighbours."""
    found: list[Any] = []
    for text in texts:
        try:
            found += [value for value in _list_neighbours(text, kind) if _fits_type(value, kind)]
        except (ValueError, OverflowError, InvalidOperation):
            continue
    return list(dict.fromkeys(found))


def _list_neighbours(text: str, kind: ValueType) -> Iterator[Any]:
    if kind.is_whole:
        number = int(Decimal(text))
        yield from (number, number + 1, number - 1)
    elif kind.name == "decimal":
        unit = Decimal(1).scaleb(-kind.scale)
        value = Decimal(text).quantize(unit)
        yield from (value, value + unit, value - unit)
    elif kind.name == "double":
        value_ = float(text)
        yield from (value_, value_ + 0.25, value_ - 0.25)
    elif kind.name == "date":
        day = date.fromisoformat(text[:10])
        yield from (day, day + timedelta(days=1), day - timedelta(days=1))
    elif kind.name == "timestamp":
        moment = datetime.fromisoformat(text).replace(tzinfo=None)
        seconds = (0, 1, -1, 86_399, 86_400, 43_200)
        yield from (moment + timedelta(seconds=second) for second in seconds)
    elif kind.name == "string":
        plain = text.replace("%", "")
        yield from (plain, plain.swapcase(), f"{plain}x")
        if not plain:
            yield " "
        elif plain != text:  # a pattern of LIKE
            yield f"x{plain}"
        if "_" in text:  # a wildcard of LIKE
            yield plain.replace("_", "x")
        try:
            day = date.fromisoformat(text)
        except ValueError:
            return
        yield from (str(day + timedelta(days=1)), str(day - timedelta(days=1)))


def _fits_type(value: Any, kind: ValueType) -> bool:
    """Whether a type holds a value; large numbers are left out, because sums of them overflow."""
    if kind.name == "decimal":
        return bool(abs(value) < Decimal(10) ** (kind.digits - kind.scale))
    if kind.is_whole:
        return bool(abs(value) < _WHOLE_LIMITS.get(kind.name, 2**30))
    return True
