"""The types of values in a query, if casts and declared columns prove them, and their rules.

The rules find money in types that do not hold cents, and values of different types that Spark casts
without a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.declared_keys import split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ModelRule, is_computed_table, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import ModelQueries, ScopedQuery, ScopedSelect, list_known_types, table_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


_Type = exp.DataType.Type
# A value is followed through at most this many queries.
_MOST_LEVELS = 12
_KEEPING_TYPE = (
    exp.Paren, exp.Alias, exp.Max, exp.Min, exp.AnyValue, exp.First, exp.Last, exp.FirstValue,
    exp.LastValue, exp.Lag, exp.Lead, exp.Window, exp.IgnoreNulls, exp.Neg, exp.Abs, exp.Distinct,
)  # fmt: skip
_MADE: Mapping[Any, tuple[type[exp.Expr], ...]] = {
    _Type.DATE: (exp.TsOrDsToDate, exp.Date, exp.CurrentDate, exp.LastDay, exp.DateTrunc),
    _Type.TIMESTAMP: (exp.CurrentTimestamp, exp.TimestampTrunc),
    _Type.TEXT: (
        exp.Lower, exp.Upper, exp.Trim, exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring,
        exp.TimeToStr, exp.RegexpReplace, exp.RegexpExtract, exp.Initcap,
    ),
    _Type.BIGINT: (exp.Count, exp.RowNumber),
    _Type.INT: (exp.Year, exp.Month, exp.Day, exp.Extract, exp.Length, exp.DateDiff),
}  # fmt: skip
_TYPE_BY_CLASS = {node: kind for kind, nodes in _MADE.items() for node in nodes}
_FLOATS = frozenset({_Type.FLOAT, _Type.DOUBLE})
TIMES_OF_DAY = frozenset(exp.DataType.TEMPORAL_TYPES) - {_Type.DATE}


class ModelValueTypes:
    """The types of values in the queries of a project."""

    def __init__(self, by_table: Mapping[str, Model], queries: ModelQueries) -> None:
        self._by_table = by_table
        self._queries = queries

    def find_type(
        self, select: ScopedSelect, node: exp.Expr, depth: int = 0
    ) -> exp.DataType | None:
        """Finds the type of a value; None if nothing proves it."""
        if isinstance(node, exp.Cast | exp.TryCast):
            return node.to
        if isinstance(node, exp.Literal):
            return _read_literal_type(node)
        if isinstance(node, exp.Column):
            return self._find_column_type(select, node, depth)
        if isinstance(node, _KEEPING_TYPE):
            inner = node.this if not isinstance(node, exp.Distinct) else node.expressions[0]
            return (
                self.find_type(select, inner, depth) if isinstance(inner, exp.Expression) else None
            )
        if isinstance(node, exp.Coalesce):
            return self._find_shared_type(select, [node.this, *node.expressions], depth)
        kind = _TYPE_BY_CLASS.get(type(node))
        return exp.DataType(this=kind) if kind is not None else None

    def is_time(self, select: ScopedSelect, column: exp.Expr, words: frozenset[str]) -> bool:
        """Whether a column holds a time: by its type, or by words of its name without a type."""
        if not isinstance(column, exp.Column):
            return False
        kind = self.find_type(select, column)
        if kind is None:
            return not words.isdisjoint(split_column_name_into_words(column.name))
        return kind.this in exp.DataType.TEMPORAL_TYPES

    def _find_column_type(
        self, select: ScopedSelect, column: exp.Column, depth: int
    ) -> exp.DataType | None:
        source, name = select.find_source(column), column.name.lower()
        if depth >= _MOST_LEVELS:
            return None
        if isinstance(source, ScopedQuery):
            return self._find_type_of_result_column(source, name, depth)
        model = self._by_table.get(table_name(source)) if source is not None else None
        if model is None:
            return None
        query = None if declares_types(model) else self._queries.query_of(model)
        if query is None:
            return (list_known_types(model) or {}).get(name)
        return self._find_type_of_result_column(query.root, name, depth)

    def _find_type_of_result_column(
        self, query: ScopedQuery, name: str, depth: int
    ) -> exp.DataType | None:
        """Finds the type of a query's result column; None if branches of a UNION do not agree."""
        items = [(branch, branch.find_result(name)) for branch in query.branches]
        found = [
            self.find_type(branch, item, depth + 1) if item is not None else None
            for branch, item in items
        ]
        return found[0] if found and all(kind == found[0] for kind in found) else None

    def _find_shared_type(
        self, select: ScopedSelect, nodes: Iterable[exp.Expr], depth: int
    ) -> exp.DataType | None:
        """Finds the type that several values share; None if they differ. NULL has each type."""
        kinds = [
            self.find_type(select, node, depth) for node in nodes if not isinstance(node, exp.Null)
        ]
        return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else None


def declares_types(model: Model) -> bool:
    """Whether a model names the types of its columns, or has no query from which to take them."""
    return getattr(model, "columns_to_types_", None) is not None or not model.is_sql


def name_family(kind: exp.DataType | None) -> str | None:
    """Names the family of a type: text, number, date, time, boolean; None for others.

    Spark casts between these families without a message.
    """
    if kind is None:
        return None
    if kind.this in exp.DataType.TEXT_TYPES:
        return "text"
    if kind.this in exp.DataType.NUMERIC_TYPES:
        return "number"
    if kind.this == _Type.DATE:
        return "date"
    if kind.this in TIMES_OF_DAY:
        return "time"
    return "boolean" if kind.this == _Type.BOOLEAN else None


def is_float(kind: exp.DataType | None) -> bool:
    """Whether a type holds binary fractions, in which 0.1 has no exact value."""
    return kind is not None and kind.this in _FLOATS


def is_decimal(kind: exp.DataType | None) -> bool:
    """Whether a type is a DECIMAL."""
    return kind is not None and kind.this == _Type.DECIMAL


def _read_literal_type(node: exp.Literal) -> exp.DataType:
    if node.is_string:
        return exp.DataType(this=_Type.TEXT)
    return exp.DataType(this=_Type.INT if node.name.isdigit() else _Type.DECIMAL)


# Usual names of amounts of money, also with a currency or the like at the end; rates and shares are
# none.
_MONEY = re.compile(
    r"(?:^|_)(?:amount|amt|price|revenue|costs?|fees?|salary|wages?|balance|payment|payout|turnover|"
    r"spend|spending|income|expenses?|profit|charges?|premium|commission|refunds?|invoiced|billed|"
    r"paid|turnover|gmv|arpu|mrr|arr)(?:_(?:eur|usd|gbp|chf|jpy|net|gross|total|sum|due))*$",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(
    r"(?:^|_)(?:avg|average|mean|median|ratio|rate|share|pct|percent|score|log|index|days?|count|"
    r"number|num|n|std|stddev|zscore|forecast|predicted|cents?)(?:_|$)",
    re.IGNORECASE,
)
_PASSING = (
    exp.Paren, exp.Alias, exp.Sum, exp.Max, exp.Min, exp.Abs, exp.Neg, exp.AnyValue, exp.Round,
    exp.First, exp.Last, exp.Window,
)  # fmt: skip
_JOINING = (exp.Add, exp.Sub, exp.Mul)
# 100 cents are one unit of most currencies; some have 1,000.
_CENTS = frozenset({"100", "1000"})
_CENT_DIGITS = 2
# Currencies whose smallest amount is one unit.
_WITHOUT_CENTS = re.compile(r"(?:^|_)(?:jpy|krw|vnd|clp|isk)(?:_|$)", re.IGNORECASE)
_WHOLE = frozenset(exp.DataType.INTEGER_TYPES)
_FRACTIONS = (
    "a binary fraction, in which 0.10 has no exact value: sums differ by cents and by the order of "
    "rows"
)


@on_model
class ImpreciseMoney(ModelRule):
    """A DOUBLE has no exact value for most amounts, and a DECIMAL without digits has no cents."""

    spec = find_rule("imprecise-money")

    @cached_property
    def _types(self) -> ModelValueTypes:
        return ModelValueTypes(self.project.by_table, self.project.queries)

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not (is_computed_table(model) or model.kind.is_view):
            return
        declared = getattr(model, "columns_to_types_", None) or {}
        found: dict[str, str] = {}
        for branch in query.root.branches:
            for name, item in branch.results:
                why = self._find_any_loss(branch, name, item, declared.get(name))
                if why is not None:
                    found.setdefault(name, why)
        for name, why in found.items():
            yield self.make_observation(
                model,
                f"`{name}` is an amount of money and becomes {why}.",
                "the column is a DECIMAL with digits enough, such as DECIMAL(18, 2)",
                subject=[name],
                severity=self._choose_severity(model),
                anchors=(name,),
            )

    def _find_any_loss(
        self, select: ScopedSelect, name: str, item: exp.Expr, declared: exp.DataType | None
    ) -> str | None:
        """Describes how the query, or the declared type, makes an amount less exact.

        None if the name is no amount, or if nothing is lost.
        """
        if not is_money_name(name):
            return None
        if declared is not None:
            source = self._types.find_type(select, item)
            if source is not None and source != declared:
                # SQLMesh casts the column to the declared type.
                item = exp.Cast(this=item, to=declared)
        loss = self._find_loss(select, item, 0)
        return None if loss != _FRACTIONS and _WITHOUT_CENTS.search(name) else loss

    def _find_loss(self, select: ScopedSelect, node: exp.Expr, depth: int) -> str | None:
        """Describes how the query itself makes an amount less exact; None if it does not."""
        if isinstance(node, exp.Cast | exp.TryCast):
            return self._find_loss_of_cast(select, node, depth)
        if isinstance(node, exp.Div):
            return self._find_loss_of_division(select, node)
        if isinstance(node, exp.Column):
            return self._find_loss_below(select, node, depth)
        sides = [node.this] if isinstance(node, (*_PASSING, exp.Coalesce)) else []
        sides += [node.this, node.expression] if isinstance(node, _JOINING) else []
        return next(filter(None, (self._find_loss(select, one, depth) for one in sides)), None)

    def _find_loss_of_division(self, select: ScopedSelect, node: exp.Div) -> str | None:
        """Describes whole cents that become a fraction, because Spark divides them as DOUBLE."""
        kind = self._types.find_type(select, node.this)
        is_whole = kind is not None and kind.this in _WHOLE
        return _FRACTIONS if is_whole and node.expression.unnest().name in _CENTS else None

    def _find_loss_below(self, select: ScopedSelect, node: exp.Column, depth: int) -> str | None:
        """Describes how a CTE or subquery of the same query makes the amount less exact."""
        source = select.find_source(node)
        if depth >= _MOST_LEVELS or not isinstance(source, ScopedQuery):
            return None
        for branch in source.branches:
            item = branch.find_result(node.name)
            if item is not None:
                return self._find_loss(branch, item, depth + 1)
        return None

    def _find_loss_of_cast(
        self, select: ScopedSelect, node: exp.Cast | exp.TryCast, depth: int
    ) -> str | None:
        kind, inner = node.to, node.this.unnest()
        source = self._types.find_type(select, inner)
        if is_float(kind):
            exact = isinstance(inner, exp.Count) or is_float(source)
            return None if exact else _FRACTIONS
        if is_decimal(kind) and not kind.expressions:
            return "a DECIMAL(10, 0), which is Spark's default: cents are rounded away"
        is_rounded = is_decimal(kind) and _count_decimals(kind) < _CENT_DIGITS
        if is_rounded and isinstance(inner, exp.Column) and _count_decimals(source) >= _CENT_DIGITS:
            return f"a {kind.sql(dialect='spark')}: cents are rounded away"
        if kind.this in _WHOLE and isinstance(inner, exp.Column) and _has_cents(source):
            return "a whole number: cents are cut off"
        return self._find_loss(select, inner, depth) if not is_decimal(kind) else None

    def _choose_severity(self, model: Model) -> Severity | None:
        """Returns a lower severity if the project keeps its money only in floats."""
        kinds = [
            kind
            for other in self.project.models.values()
            if other.fqn != model.fqn
            for name, kind in (list_known_types(other) or {}).items()
            if is_money_name(name)
        ]
        if any(map(is_decimal, kinds)) or not any(map(is_float, kinds)):
            return None
        return "medium"


def is_money_name(name: str) -> bool:
    return bool(_MONEY.search(name)) and not _NO_MONEY.search(name)


def _has_cents(kind: exp.DataType | None) -> bool:
    if is_float(kind):
        return True
    return _count_decimals(kind) > 0


def _count_decimals(kind: exp.DataType | None) -> int:
    """Counts the digits behind the point of a DECIMAL; 0 for any other type."""
    digits = kind.expressions if kind is not None and is_decimal(kind) else []
    return int(digits[1].name) if len(digits) > 1 and digits[1].name.isdigit() else 0


# The fault, and the condition that clears it.
_Why = tuple[str, str]
_EQUALITIES = (exp.EQ, exp.NullSafeEQ)
_COMPARISONS = (*_EQUALITIES, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CASTS_ON_PURPOSE = "a CAST on one side says how the other one is read"
# By Spark's documentation of casts, a number may have an exponent, blanks and a letter.
_NUMBER = re.compile(
    r"\s*([+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[dfl]?|[+-]?(inf|infinity)|nan)\s*", re.IGNORECASE
)
_TIME = re.compile(
    r"\s*(?:[+-]?\d{4,7}(?:-(?:0?[1-9]|1[0-2])(?:-(?:0?[1-9]|[12]\d|3[01])(?:[ T].*)?)?)?"
    r"|T?\d{1,2}:\d{1,2}.*|(?:epoch|now|today|yesterday|tomorrow)(?:\s.*)?)\s*",
    re.IGNORECASE,
)
_TEMPORAL = {"date", "time"}
_READABLE = {"number": _NUMBER, "date": _TIME, "time": _TIME}
_WORDS = {
    "text": "a text", "number": "a number", "date": "a date", "time": "a time",
    "boolean": "true or false",
}  # fmt: skip


class MixedTypes:
    """Comparisons, lists and unions of different types in a query."""

    def __init__(self, types: ModelValueTypes) -> None:
        self._types = types

    def find_mixed(self, root: ScopedQuery) -> Iterator[tuple[exp.Expr, _Why]]:
        """Finds expressions of a query whose sides have different types.

        A type counts only if it is proved.

        Yields:
            Each expression with the fault, and the condition that clears it.
        """
        for select in root.selects:
            for node in select.find_all(*_COMPARISONS, exp.In, exp.Between, exp.Is):
                why = self._describe_comparison(select, node)
                if why is not None:
                    yield node, why
        for union in root.set_operations:
            yield from self._find_mixed_branches(union)

    def _describe_comparison(self, select: ScopedSelect, node: exp.Expr) -> _Why | None:
        if isinstance(node, exp.In):
            return self._describe_list(select, node)
        if isinstance(node, exp.Is):
            is_flag = isinstance(node.expression, exp.Boolean)
            return _describe_text_flag(self._find_family(select, node.this)) if is_flag else None
        left = self._find_family(select, node.this)
        if isinstance(node, exp.Between):
            return _describe_unreadable(left, list(node.iter_expressions())[1:])
        right = self._find_family(select, node.expression)
        for family, other in ((left, node.expression), (right, node.this)):
            if isinstance(other.unnest(), exp.Boolean):
                return _describe_text_flag(family)
            if isinstance(other.unnest(), exp.Literal):
                return _describe_unreadable(family, [other])
        return _describe_compared_types(
            left, right, is_equality=isinstance(node, (*_EQUALITIES, exp.NEQ))
        )

    def _describe_list(self, select: ScopedSelect, node: exp.In) -> _Why | None:
        left = self._find_family(select, node.this)
        query = node.args.get("query")
        if query is None:
            has_flag = any(isinstance(one, exp.Boolean) for one in node.expressions)
            return (_describe_text_flag(left) if has_flag else None) or _describe_unreadable(
                left, node.expressions
            )
        rights = [
            self._find_family(branch, item)
            for branch in select.find_nested(query).branches
            for _, item in branch.results
        ]
        pairs = (_describe_compared_types(left, right, is_equality=True) for right in rights)
        return next(filter(None, pairs), None)

    def _find_family(self, select: ScopedSelect, node: exp.Expr) -> str | None:
        return name_family(self._types.find_type(select, node))

    def _find_mixed_branches(self, union: ScopedQuery) -> Iterator[tuple[exp.Expr, _Why]]:
        """Yields columns that have different types in the branches of a UNION."""
        first, others = union.sides[0].branches[:1], union.sides[1].branches
        for left, right in product(first, others):
            for (_, one), (_, other) in zip(left.results, right.results, strict=False):
                if isinstance(one, exp.Literal) or isinstance(other, exp.Literal):
                    continue
                families = [self._find_family(left, one), self._find_family(right, other)]
                if None not in families and not _fit_one_column({*families}):
                    yield (
                        other,
                        (
                            f"is {_WORDS[str(families[1])]} in one branch of a UNION and "
                            f"{_WORDS[str(families[0])]} in another: Spark casts both to one type",
                            "each branch casts the column to the same type",
                        ),
                    )


def _describe_compared_types(
    left: str | None, right: str | None, *, is_equality: bool
) -> _Why | None:
    if left is None or right is None or left == right:
        return None
    if {left, right} == {"date", "time"}:
        if not is_equality:
            return None
        return (
            "compares a date with a time: Spark reads the date as midnight, so only rows of that "
            "second meet",
            "the time is cast to DATE",
        )
    if not is_equality and {left, right} & {"date", "time"}:
        return None
    return (
        f"compares {_WORDS[left]} with {_WORDS[right]}: Spark casts one of them in silence, so "
        "'007' may meet 7, and what it cannot read meets nothing or stops the run",
        _CASTS_ON_PURPOSE,
    )


def _describe_text_flag(family: str | None) -> _Why | None:
    """Describes a text that is compared with TRUE or FALSE."""
    if family != "text":
        return None
    return (
        "compares a text with TRUE or FALSE: Spark reads 'true', 'yes', '1' and their like, and "
        "any other text meets neither of them or stops the run",
        "the text is compared with the texts that mean yes",
    )


def _fit_one_column(families: set[str | None]) -> bool:
    """Whether values fit one column: a date beside a time becomes midnight, as it means."""
    return len(families) == 1 or families <= _TEMPORAL


def _describe_unreadable(family: str | None, constants: Sequence[exp.Expr]) -> _Why | None:
    """Describes texts that Spark cannot read in the type of the other side; None if it can."""
    readable = _READABLE.get(family or "")
    texts = [one.name for one in constants if isinstance(one, exp.Literal) and one.is_string]
    if readable is None or all(readable.fullmatch(text) for text in texts):
        return None
    return (
        f"compares {_WORDS[str(family)]} with a text that is none: Spark makes NULL of it, which "
        "equals nothing, or stops the run",
        "the text has the form of the column's type",
    )
