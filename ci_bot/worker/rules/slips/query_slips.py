"""Mistakes that run without an error, in CASE, in patterns, in joins and in windows.

Examples are branches that no row reaches, patterns that are compared as texts, joins by one column
or another, and windows that mix the rows of several things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from ci_bot.protocol.rules import quote_names
from ci_bot.worker.rules.models.declared_keys import (
    find_column_alias_and_name,
    list_grains,
    split_column_name_into_words,
)
from ci_bot.worker.rules.queries.fan_outs import list_source_keys
from ci_bot.worker.rules.queries.mixed_types import TIMES_OF_DAY, ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import VALUE_WRAPPERS, read_constant_number_or_day
from ci_bot.worker.sql import (
    EPOCH,
    ModelQuery,
    ScopedQuery,
    ScopedSelect,
    enter_expression,
    split_conditions,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


class QuerySlip(NamedTuple):
    """An expression, its effect, and how to write what is meant."""

    node: exp.Expr
    what: str
    clears: str


# A number, a day as text, or any other text with a mark before it.
_Constant = Decimal | str
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TEXT_MARK = "'"
_PATTERN = re.compile(r"^%[^\W\d]|[^\W\d]%$")
_LIST_IN_ONE_TEXT = re.compile(r"^\w+(?:,\s?\w+)+$")
_ABOVE = frozenset({exp.GT, exp.GTE})
_BELOW = frozenset({exp.LT, exp.LTE})
_INCLUSIVE = frozenset({exp.GTE, exp.LTE})
_TURNED: Mapping[type, type] = {
    exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ,
}  # fmt: skip
# Characters that mean something else in a regular expression.
_SPECIAL = frozenset(".|*+?$^")
_BY_ORDER = (exp.Lag, exp.Lead, exp.Sum, exp.Avg, exp.FirstValue, exp.LastValue)
_NUMBERS_OF_THINGS = frozenset({"id", "no", "number", "nr", "key", "code"})
_ALTERNATIVES = 2


def iterate_slips(
    model: Model, query: ModelQuery, by_table: Mapping[str, Model], types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields the slips of a query, in all of its parts."""
    for describe, kinds in (
        (_describe_unreached_branch, (exp.Case,)),
        (_describe_equal_branches, (exp.Case, exp.If)),
        (_describe_distinct_total, (exp.Sum, exp.Avg)),
        (_describe_compared_like_pattern, (exp.EQ, exp.NEQ, exp.In)),
        (_describe_regular_expression, (exp.RegexpSplit, exp.RegexpReplace)),
        (_describe_precedence, (exp.Add, exp.Sub)),
        (_describe_hash, (exp.MD5, exp.SHA, exp.SHA2)),
    ):
        for node in query.tree.find_all(*kinds):
            what = describe(node)
            if what is not None:
                yield QuerySlip(node, *what)
    # The optimizer writes IN with one value as an equality.
    written = query.written if query.written is not None else query.rendered_as_written
    for node in written.find_all(exp.In) if written is not None else ():
        if len(node.expressions) == 1 and _is_list_in_one_text(node.expressions[0]):
            yield QuerySlip(
                node,
                "compares with one text that has commas in it, and not with a list",
                "each value is a text of its own",
            )
    for select in query.known_root.selects:
        yield from _iterate_false_filters(select)
        yield from _iterate_alternative_joins(select)
        yield from _iterate_mixing_windows(select, by_table)
        yield from _iterate_filters_up_to_a_day(select, types)
    for operation in query.root.set_operations:
        yield from _iterate_repeated_branches(operation)
    grain = frozenset(name for one in list_grains(model) for name in one)
    # The written query is read: a value that a variable fixes is meant, for example in a model of
    # each shop.
    for select in query.scopes.branches if grain else ():
        yield from _iterate_fixed_grains(select, grain)


def _describe_distinct_total(node: exp.Expr) -> tuple[str, str] | None:
    if not isinstance(node.this, exp.Distinct):
        return None
    return (
        "leaves out equal values, and two rows may have the same amount",
        "rows are made distinct before, by their key",
    )


def _describe_compared_like_pattern(node: exp.Expr) -> tuple[str, str] | None:
    texts = node.expressions if isinstance(node, exp.In) else [node.this, node.expression]
    if any(isinstance(one, exp.Literal) and _is_like_pattern(one) for one in texts):
        return "compares with the % itself, which is a pattern only in LIKE", "LIKE is used"
    return None


def _describe_regular_expression(node: exp.Expr) -> tuple[str, str] | None:
    pattern = node.args.get("expression")
    if not isinstance(pattern, exp.Literal) or pattern.name not in _SPECIAL:
        return None
    return (
        f"takes `{pattern.name}` for a regular expression, in which it is no character of the text",
        f"the character is written as [{pattern.name}]",
    )


def _describe_equal_branches(node: exp.Expr) -> tuple[str, str] | None:
    branches = node.args.get("ifs") if isinstance(node, exp.Case) else [node]
    values = [branch.args.get("true") for branch in branches or ()]
    otherwise = node.args.get("default" if isinstance(node, exp.Case) else "false")
    if otherwise is None or any(value != otherwise for value in values):
        return None
    return "has one value in all of its branches", "the branches have values of their own"


def _describe_precedence(node: exp.Expr) -> tuple[str, str] | None:
    """Describes `f(a) - f(b) / 60` and `a - b / a`: the division comes first."""
    part = node.expression
    if not isinstance(part, exp.Div):
        return None
    first, second = node.this.unnest(), part.this.unnest()
    whole = enter_expression(part.expression, *VALUE_WRAPPERS, exp.Nullif)
    is_span = (
        isinstance(node, exp.Sub)
        and isinstance(part.expression, exp.Literal)
        and type(first) is type(second)
        and isinstance(first, exp.Func)
    )
    is_share = enter_expression(first, *VALUE_WRAPPERS) == whole and whole.find(exp.Column)
    if not is_span and not is_share:
        return None
    if isinstance(node, exp.Add):
        return "divides only what is added", "brackets are around the sum"
    return "divides only what is taken away", "brackets are around the difference"


def _describe_hash(node: exp.Expr) -> tuple[str, str] | None:
    inner = node.this.unnest() if isinstance(node.this, exp.Expression) else None
    if isinstance(inner, exp.Concat) and not isinstance(inner, exp.ConcatWs):
        parts = inner.expressions
    elif isinstance(inner, exp.DPipe):
        parts = list(inner.flatten())
    else:
        return None
    reads = [part.find(exp.Column) is not None for part in parts]
    if not any(one and other for one, other in pairwise(reads)):
        return None  # a constant or a variable is between any two values
    return (
        "is the same for other values: a and bc make one text with ab and c",
        "a separator is between the values, as in CONCAT_WS",
    )


def _is_like_pattern(literal: exp.Literal) -> bool:
    return bool(literal.is_string and _PATTERN.search(literal.name))


def _is_list_in_one_text(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Literal) or not node.is_string:
        return False
    words = node.name.split(",")
    # "Smith, John" is a name; the values of one list have the same kind of first letters.
    alike = len({(word.strip()[:1].isupper(), word.strip().isupper()) for word in words}) == 1
    is_name = all(word.strip().istitle() for word in words)
    return bool(_LIST_IN_ONE_TEXT.match(node.name)) and alike and not is_name


# A CASE takes its first branch that holds.


@dataclass(frozen=True)
class _ComparisonWithConstants:
    """A comparison of an expression with a list of values or one end of a range."""

    compared: str
    values: frozenset[_Constant] = frozenset()
    above: _Constant | None = None
    below: _Constant | None = None
    inclusive: bool = False

    def implies_comparison(self, other: _ComparisonWithConstants) -> bool:
        """Whether each value that passes this test passes the other one."""
        if self.compared != other.compared:
            return False
        if other.values:
            return bool(self.values) and self.values <= other.values
        if self.values:
            return all(other.includes_value(value) for value in self.values)
        if other.above is not None and self.above is not None:
            return other.includes_value(self.above) or (
                self.above == other.above and not self.inclusive
            )
        if other.below is not None and self.below is not None:
            return other.includes_value(self.below) or (
                self.below == other.below and not self.inclusive
            )
        return False

    def includes_value(self, value: _Constant) -> bool:
        """Whether a value is within the range."""
        end = self.above if self.above is not None else self.below
        if end is None or type(end) is not type(value):
            return False
        if isinstance(value, str) and value.startswith(_TEXT_MARK):
            return False  # a collation may order texts in another way
        if value == end:
            return self.inclusive
        return (value > end) == (self.above is not None)  # type: ignore[operator]


def _describe_unreached_branch(node: exp.Expr) -> tuple[str, str] | None:
    if node.this is not None:
        return None
    earlier: list[list[_ComparisonWithConstants]] = []
    for branch in node.args.get("ifs") or ():
        parts = [part.unnest() for part in split_conditions(branch.this)]
        read = [_read_comparisons(part) for part in parts]
        tests = [test for some in read for test in some or ()]
        for before in earlier:
            if all(any(test.implies_comparison(one) for test in tests) for one in before):
                shown = branch.this.sql(dialect="spark")[:60]
                return (
                    f"never takes its branch for `{shown}`: an earlier branch takes these rows",
                    "the narrower condition comes first",
                )
        if all(some is not None for some in read):
            earlier.append(tests)
    return None


def _read_comparisons(node: exp.Expr) -> list[_ComparisonWithConstants] | None:
    """Reads the constants that a condition compares with; None for any other condition."""
    if isinstance(node, exp.Between):
        return _read_range(node)
    if isinstance(node, exp.In):
        values = [_read_constant(one) for one in node.expressions]
        known = frozenset(value for value in values if value is not None)
        return (
            [_ComparisonWithConstants(node.this.sql(), known)]
            if known and None not in values
            else None
        )
    kind, side, other = type(node), node.this, node.args.get("expression")
    if kind not in _TURNED:
        return None
    if _read_constant(side) is not None:
        kind, side, other = _TURNED[kind], other, side
    value = _read_constant(other)
    if value is None or not isinstance(side, exp.Expression):
        return None
    return [
        _ComparisonWithConstants(
            side.sql(),
            values=frozenset({value} if kind is exp.EQ else ()),
            above=value if kind in _ABOVE else None,
            below=value if kind in _BELOW else None,
            inclusive=kind in _INCLUSIVE,
        )
    ]


def _read_range(node: exp.Between) -> list[_ComparisonWithConstants] | None:
    low, high = map(_read_constant, list(node.iter_expressions())[1:])
    if low is None or high is None or node.args.get("symmetric"):
        return None
    text = node.this.sql()
    return [
        _ComparisonWithConstants(text, above=low, inclusive=True),
        _ComparisonWithConstants(text, below=high, inclusive=True),
    ]


def _read_constant(node: exp.Expr | None) -> _Constant | None:
    found = read_constant_number_or_day(node)
    if found is None and isinstance(node, exp.Cast | exp.TryCast | exp.Paren):
        return _read_constant(node.this)
    is_text = isinstance(node, exp.Literal) and node.is_string
    return f"{_TEXT_MARK}{node.name}" if found is None and is_text and node is not None else found


# The conditions that choose the rows of a SELECT.


def _iterate_false_filters(select: ScopedSelect) -> Iterator[QuerySlip]:
    for part in _list_filters(select):
        sides = [part.this, part.args.get("expression")]
        both = all(isinstance(side, exp.Literal) for side in sides)
        differ = isinstance(part, exp.EQ) and both and sides[0] != sides[1]
        if differ or (isinstance(part, exp.Boolean) and not part.this):
            yield QuerySlip(
                part, "in WHERE is never true, so there are no rows", "the condition goes"
            )


def _iterate_filters_up_to_a_day(
    select: ScopedSelect, types: ModelValueTypes
) -> Iterator[QuerySlip]:
    """Yields filters that include the first moment of a day, but no moment after it."""
    for part in _list_filters(select):
        side, end = part.this, part.args.get("high")
        if isinstance(part, exp.LTE):
            end = part.expression
        day = read_constant_number_or_day(end)
        is_day = isinstance(day, str) and _DAY.fullmatch(day) and day != EPOCH
        if not is_day or not isinstance(side, exp.Column):
            continue
        kind = types.find_type(select, side)
        if kind is not None and kind.this in TIMES_OF_DAY:
            yield QuerySlip(
                part,
                f"ends at midnight: `{side.name}` is a time, so the rest of {day} is left out",
                "the time is below the next day",
            )


def _iterate_repeated_branches(operation: ScopedQuery) -> Iterator[QuerySlip]:
    """Yields a branch of UNION ALL that is the same as the other branch."""
    node = operation.expression
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        return
    first, second = (_spell_rows(side) for side in (node.this, node.expression))
    if first == second:
        yield QuerySlip(
            node.expression,
            "in UNION ALL gives the rows of the other branch once more",
            "the branch goes, or reads what it was written for",
        )


def _spell_rows(query: exp.Expr) -> str:
    """Spells a SELECT; if it reads one table, without that table's alias."""
    plain = query.unnest().copy()
    tables = list(plain.find_all(exp.Table))
    if len(tables) == 1:
        tables[0].set("alias", None)
        for column in plain.find_all(exp.Column):
            column.set("table", None)
    return plain.sql(dialect="spark")


def _list_filters(select: ScopedSelect) -> list[exp.Expr]:
    return [part.unnest() for part in select.list_clause_conditions("where")]


def _iterate_alternative_joins(select: ScopedSelect) -> Iterator[QuerySlip]:
    for join in select.joins:
        parts = join.conditions
        condition = parts[0].unnest() if len(parts) == 1 else None
        if not isinstance(condition, exp.Or):
            continue
        tied = [_list_tied(part.unnest(), join.alias) for part in condition.flatten()]
        if sum(map(bool, tied)) >= _ALTERNATIVES and len(set().union(*tied)) > 1:
            yield QuerySlip(
                condition,
                "joins by one column or by another: a row meets partners of both kinds, and Spark "
                "compares every row with every row",
                "there is one join for each, or one key for both",
            )


def _list_tied(part: exp.Expr, mine: str) -> frozenset[str]:
    """Lists columns of a table that a condition makes equal to something of another table."""
    return frozenset(
        side.name.lower()
        for test in part.find_all(exp.EQ)
        for side, other in ((test.this, test.expression), (test.expression, test.this))
        if isinstance(side, exp.Column)
        and side.table.lower() == mine
        and any(column.table.lower() != mine for column in other.find_all(exp.Column))
    )


def _iterate_fixed_grains(select: ScopedSelect, grain: frozenset[str]) -> Iterator[QuerySlip]:
    """Yields filters that leave one value of a grain's column: somebody tried the query out."""
    shown = {
        find_column_alias_and_name(item)
        for name, item in select.results
        if name in grain and isinstance(item, exp.Column)
    }
    for part in _list_filters(select):
        side, value = part.this, part.args.get("expression")
        if isinstance(part, exp.In) and len(part.expressions) == 1:
            value = part.expressions[0]
        elif not isinstance(part, exp.EQ):
            continue
        if not isinstance(side, exp.Column) or not isinstance(value, exp.Literal):
            continue
        is_id = not value.is_string or side.name.lower().endswith("_id")
        if is_id and find_column_alias_and_name(side) in shown:
            yield QuerySlip(
                part,
                f"leaves the rows of one `{side.name}`, which is a column of the grain",
                "the filter goes, or the grain has no such column",
            )


def _iterate_mixing_windows(
    select: ScopedSelect, by_table: Mapping[str, Model]
) -> Iterator[QuerySlip]:
    """Yields windows without PARTITION BY over rows of several things, ordered by their time."""
    if select.node.args.get("group") is not None:
        return
    shown = {item.name.lower() for _, item in select.results if isinstance(item, exp.Column)}
    for _, item in select.results:
        for window in item.find_all(exp.Window):
            order = window.args.get("order")
            if order is None or window.args.get("partition_by"):
                continue
            columns = list(order.find_all(exp.Column))
            if not isinstance(window.this, _BY_ORDER) or len({one.table for one in columns}) != 1:
                continue
            by = {column.name.lower() for column in columns}
            keys = list_source_keys(select.find_source(columns[0]), by_table)
            rest = _find_rest_of_key(keys, by)
            if not rest and isinstance(window.this, exp.Lag | exp.Lead):
                rest = _find_shown_thing(shown, keys, frozenset(by))
            if rest & shown:
                yield QuerySlip(
                    window,
                    f"goes from one {quote_names(rest)} to the next: it has no PARTITION BY, and "
                    f"{quote_names(by)} alone identifies no row",
                    f"the window has PARTITION BY {quote_names(rest)}",
                )


def _find_shown_thing(
    shown: Iterable[str], keys: Sequence[frozenset[str]], by: frozenset[str]
) -> frozenset[str]:
    """Finds the number of a thing that has several rows: it is shown, and in no key of a row."""
    if not keys or any(key & by for key in keys):
        return frozenset()
    things = [
        name
        for name in sorted(shown)
        if name not in by
        and not any(name in key for key in keys)
        and split_column_name_into_words(name)[-1] in _NUMBERS_OF_THINGS
    ]
    return frozenset(things[:1])


def _find_rest_of_key(keys: Sequence[frozenset[str]], by: Iterable[str]) -> frozenset[str]:
    """Finds the other columns of a key that has some of `by`; empty if `by` holds a whole key."""
    ordered = frozenset(by)
    if any(key <= ordered for key in keys):
        return frozenset()
    return next((key - ordered for key in keys if key & ordered), frozenset())
