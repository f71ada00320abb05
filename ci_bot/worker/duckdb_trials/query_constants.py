"""What two queries compare their columns with, so that generated rows meet it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from sqlglot import exp

from ci_bot.worker.duckdb_trials.value_types import STRING, UntriedError, ValueType, read_spark_type

_CLIMB = 5
_COMPARING = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between, exp.Like,
    exp.Case, exp.If, exp.Anonymous, exp.RegexpLike, exp.NullSafeEQ, exp.ILike, exp.Bracket,
)  # fmt: skip
# Functions that read a number as a time, with the units in a second.
_EPOCH_UNITS = {"timestamp_seconds": 1, "timestamp_millis": 1_000, "timestamp_micros": 1_000_000}
_TRIMMING = frozenset({"trim", "ltrim", "rtrim"})
Found = TypeVar("Found")
JsonMembers = Mapping[str, frozenset[ValueType]]


@dataclass(frozen=True)
class QueryConstants:
    """The constants in two queries, by the columns that they belong to.

    Attributes:
        by_column: constants that occur beside a column, by its name.
        others: all constants.
        casts: the types to which a column is cast, by its name.
        twins: the first name of columns that are compared with each other, by the name of each.
        json_members: the paths that are read from a column with JSON texts, by its name, each with
            the types to which the value is cast.
        spans: the intervals in the queries, in seconds.
        sought_nulls: names of columns that are tested for NULL.
        far_columns: names of columns of which each use is known far from zero, too.
    """

    by_column: Mapping[str, frozenset[str]]
    others: frozenset[str]
    casts: Mapping[str, frozenset[ValueType]]
    twins: Mapping[str, str]
    json_members: Mapping[str, JsonMembers]
    spans: frozenset[int]
    sought_nulls: frozenset[str]
    far_columns: frozenset[str]


def read_constants(written: Iterable[exp.Expr]) -> QueryConstants:
    """Reads the constants of queries, with the columns beside which they occur."""
    trees = list(written)
    by_column: dict[str, set[str]] = {}
    others: set[str] = set()
    casts: dict[str, set[ValueType]] = {}
    twins: dict[str, str] = {}
    members: dict[str, dict[str, set[ValueType]]] = {}
    spans: set[int] = set()
    sought_nulls: set[str] = set()
    for tree in trees:
        spans |= {span for one in tree.find_all(exp.Interval) if (span := _read_span(one))}
        tests = tree.find_all(exp.Is)
        sought_nulls |= {one.this.name.lower() for one in tests if isinstance(one.this, exp.Column)}
        for literal in tree.find_all(exp.Literal):
            text = str(literal.this)[:200]
            others.add(text)
            for name in _find_columns_beside(literal):
                by_column.setdefault(name, set()).add(text)
        for cast in tree.find_all(exp.Cast, exp.TryCast):
            if isinstance(cast.this, exp.Column):
                try:
                    casts.setdefault(cast.this.name.lower(), set()).add(read_spark_type(cast.to))
                except UntriedError:
                    continue
        for equal in tree.find_all(exp.EQ):
            if isinstance(equal.this, exp.Column) and isinstance(equal.expression, exp.Column):
                _join_twins(equal.this.name.lower(), equal.expression.name.lower(), twins)
        for dot in tree.find_all(exp.Dot):
            _note_json_field(dot, members)
        for call in tree.find_all(exp.Anonymous):
            _note_json_member(call, members)
            unit = _EPOCH_UNITS.get(call.name.lower(), 0)
            for column in call.find_all(exp.Column) if unit else ():
                found = by_column.setdefault(column.name.lower(), set())
                found |= {str(moment * unit) for text in others if (moment := _read_epoch(text))}
    for name in _find_trimmed_columns(trees):
        found = by_column.setdefault(name, set())
        found |= {f" {text} " for text in found}
    _share_among_twins(by_column, twins)
    _share_among_twins(casts, twins)
    return QueryConstants(
        {name: frozenset(found) for name, found in by_column.items()},
        frozenset(others),
        {name: frozenset(found) for name, found in casts.items()},
        twins,
        {
            name: {path: frozenset(kinds) for path, kinds in paths.items()}
            for name, paths in members.items()
        },
        frozenset(spans),
        frozenset(sought_nulls),
        _find_far_columns(trees),
    )


def _find_trimmed_columns(trees: Iterable[exp.Expr]) -> set[str]:
    calls = (call for tree in trees for call in tree.find_all(exp.Anonymous))
    return {
        column.name.lower()
        for call in calls
        if call.name.lower() in _TRIMMING
        for column in call.find_all(exp.Column)
    }


def _find_far_columns(trees: Iterable[exp.Expr]) -> frozenset[str]:
    near: set[str] = set()
    made_of: list[tuple[str, str]] = []
    names: set[str] = set()
    for tree in trees:
        for column in tree.find_all(exp.Column):
            names.add(column.name.lower())
            if not _is_known_far_away(column):
                near.add(column.name.lower())
        made_of += [
            (one.alias.lower(), column.name.lower())
            for one in tree.find_all(exp.Alias)
            for column in one.find_all(exp.Column)
        ]
    return frozenset(names - _close_over(near, made_of))


def _close_over(names: set[str], made_of: Sequence[tuple[str, str]]) -> set[str]:
    """Names, and those of the columns that they are made of."""
    found = set(names)
    more = names
    while more:
        more = {column for name, column in made_of if name in more} - found
        found |= more
    return found


# In these each number is either what Spark computes or an error.
_FAR_NODES = (
    exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Paren, exp.Alias, exp.Cast, exp.TryCast,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.In, exp.Between,
    exp.And, exp.Or, exp.Not, exp.Is, exp.Case, exp.If, exp.Div, exp.IntDiv, exp.Tuple,
    exp.Where, exp.Having, exp.Join, exp.Group, exp.Order, exp.Ordered, exp.Window,
    exp.Query, exp.Subquery, exp.From, exp.CTE, exp.With, exp.Exists, exp.Qualify,
)  # fmt: skip
_FAR_CALLS = frozenset(
    (
        "abs",
        "coalesce",
        "count",
        "greatest",
        "if",
        "ifnull",
        "least",
        "max",
        "min",
        "nullif",
        "nvl",
        "sum",
    )
)
_EXACT_CASTS = (*exp.DataType.INTEGER_TYPES, exp.DataType.Type.DOUBLE)


def _is_known_far_away(column: exp.Expr) -> bool:
    """Whether all that is computed of a column here is known for numbers far from zero."""
    node = column.parent
    while node is not None:
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in _FAR_CALLS:
                return False
        elif not isinstance(node, _FAR_NODES):
            return False
        if isinstance(node, exp.Cast | exp.TryCast) and not node.to.is_type(*_EXACT_CASTS):
            return False
        node = node.parent
    return True


def _join_twins(one: str, other: str, twins: dict[str, str]) -> None:
    """Gives two names, and all names that are compared with them, the first of these names."""
    first, second = sorted((twins.get(one, one), twins.get(other, other)))
    for name in (second, *(known for known, root in twins.items() if root == second)):
        twins[name] = first


def _share_among_twins(found: dict[str, set[Found]], twins: Mapping[str, str]) -> None:
    """Gives all columns that are compared with each other the values of each of them."""
    for name, first in twins.items():
        found.setdefault(first, set()).update(found.get(name, ()))
    for name, first in twins.items():
        found[name] = found[first]


def _note_json_member(call: exp.Expr, members: dict[str, dict[str, set[ValueType]]]) -> None:
    if call.name.lower() != "get_json_object" or len(call.expressions) != len(("text", "path")):
        return
    column, path = call.expressions
    if not isinstance(column, exp.Column) or not isinstance(path, exp.Literal):
        return
    kinds = members.setdefault(column.name.lower(), {}).setdefault(str(path.this), set())
    if isinstance(call.parent, exp.Cast | exp.TryCast):
        with suppress(UntriedError):
            kinds.add(read_spark_type(call.parent.to))


def _note_json_field(dot: exp.Expr, members: dict[str, dict[str, set[ValueType]]]) -> None:
    call = dot.this
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "from_json":
        return
    if call.expressions and isinstance(call.expressions[0], exp.Column):
        paths = members.setdefault(call.expressions[0].name.lower(), {})
        paths.setdefault(f"$.{dot.expression.name}", set()).add(STRING)


_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def _read_span(interval: exp.Expr) -> int:
    """Reads the seconds of an interval with a plain number of units; 0 for others."""
    unit = str(interval.args.get("unit") or "").lower().removesuffix("s")
    amount = interval.this
    if not isinstance(amount, exp.Literal) or not re.fullmatch("[0-9]{1,6}", amount.name):
        return 0
    return int(amount.name) * _SECONDS.get(unit, 0)


def _read_epoch(text: str) -> int:
    """Reads the seconds from 1970 to the date or time in a constant; 0 if there is none."""
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())
    except ValueError:
        return 0


def _find_columns_beside(literal: exp.Expr) -> set[str]:
    node = literal
    for _ in range(_CLIMB):
        above = node.parent
        if above is None or isinstance(above, exp.Query):
            break
        node = above
        if isinstance(node, _COMPARING):
            found = {column.name.lower() for column in node.find_all(exp.Column)}
            if found:
                return found
    return set()
