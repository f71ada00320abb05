"""The types of values in a query, as far as casts and declared columns prove them; money in types
that do not hold cents, and values of different types that Spark casts in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.linter_rule import ModelRule, is_computed_table, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import (
    ModelQueries,
    find_column_source,
    find_projection,
    iterate_selects,
    list_known_types,
    list_outer_scopes,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


_Type = exp.DataType.Type
# A value is followed through at most so many queries.
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
_TIMES = frozenset(exp.DataType.TEMPORAL_TYPES) - {_Type.DATE}


class ValueTypes:
    """Finds the types of values in the queries of a project."""

    def __init__(self, by_table: Mapping[str, Model], queries: ModelQueries) -> None:
        self._by_table = by_table
        self._queries = queries

    def find_type(self, scope: Scope, node: exp.Expr, depth: int = 0) -> exp.DataType | None:
        """Finds the type of a value; None if nothing proves it."""
        if isinstance(node, exp.Cast | exp.TryCast):
            return node.to
        if isinstance(node, exp.Literal):
            return _read_literal_type(node)
        if isinstance(node, exp.Column):
            return self._find_column_type(scope, node, depth)
        if isinstance(node, _KEEPING_TYPE):
            inner = node.this if not isinstance(node, exp.Distinct) else node.expressions[0]
            return (
                self.find_type(scope, inner, depth) if isinstance(inner, exp.Expression) else None
            )
        if isinstance(node, exp.Coalesce):
            return self._agree(scope, [node.this, *node.expressions], depth)
        kind = _TYPE_BY_CLASS.get(type(node))
        return exp.DataType(this=kind) if kind is not None else None

    def _find_column_type(
        self, scope: Scope, column: exp.Column, depth: int
    ) -> exp.DataType | None:
        source, reader = find_column_source(scope, column), scope
        while source is None and column.table and reader.parent is not None:
            # A subquery may read the tables of the query around it.
            reader = reader.parent
            source = reader.sources.get(column.table)
        name = column.name.lower()
        if depth >= _MOST_LEVELS:
            return None
        if isinstance(source, Scope):
            return self._find_result_type(source, name, reader, depth)
        model = self._by_table.get(table_name(source)) if isinstance(source, exp.Table) else None
        if model is None:
            return None
        query = None if declares_types(model) else self._queries.query_of(model)
        if query is None:
            return (list_known_types(model) or {}).get(name)
        return self._find_result_type(query.root, name, reader, depth)

    def _find_result_type(
        self, root: Scope | None, name: str, reader: Scope, depth: int
    ) -> exp.DataType | None:
        """Finds the type of a query's result column, if all branches of a UNION agree on it."""
        found: list[exp.DataType | None] = []
        for branch in list_outer_scopes(root):
            item = find_projection(branch, name)
            if item is None or branch is reader:
                return None
            found.append(self.find_type(branch, item, depth + 1))
        return found[0] if found and all(kind == found[0] for kind in found) else None

    def _agree(self, scope: Scope, nodes: Iterable[exp.Expr], depth: int) -> exp.DataType | None:
        """Finds the type that several values share; NULL has each type."""
        kinds = [
            self.find_type(scope, node, depth) for node in nodes if not isinstance(node, exp.Null)
        ]
        return kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else None


def declares_types(model: Model) -> bool:
    """Whether a model names the types of its columns, or has no query that would show them."""
    return getattr(model, "columns_to_types_", None) is not None or not model.is_sql


def name_family(kind: exp.DataType | None) -> str | None:
    """Names the types between which Spark casts in silence: text, number, date, time, boolean."""
    if kind is None:
        return None
    if kind.this in exp.DataType.TEXT_TYPES:
        return "text"
    if kind.this in exp.DataType.NUMERIC_TYPES:
        return "number"
    if kind.this == _Type.DATE:
        return "date"
    if kind.this in _TIMES:
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


# Usual names of amounts of money, with a currency or the like behind; a rate or a share is none.
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
    def _types(self) -> ValueTypes:
        return ValueTypes(self.project.by_table, self.project.queries)

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not (is_computed_table(model) or model.kind.is_view):
            return
        declared = getattr(model, "columns_to_types_", None) or {}
        found: dict[str, str] = {}
        for branch in list_outer_scopes(query.root):
            for item in branch.expression.expressions:
                name = item.alias_or_name
                why = self._find_any_loss(branch, item, declared.get(name)) if name else None
                if why is not None:
                    found.setdefault(name, why)
        for name, why in found.items():
            yield self.make_observation(
                model,
                f"`{name}` is an amount of money and becomes {why}.",
                "the column is a DECIMAL with digits enough, such as DECIMAL(18, 2)",
                subject=[name],
                severity=self._weigh(model),
                anchors=(name,),
            )

    def _find_any_loss(
        self, scope: Scope, item: exp.Expr, declared: exp.DataType | None
    ) -> str | None:
        """What the query, or the type that the model declares, makes of an amount."""
        if not _is_money(item.alias_or_name):
            return None
        if declared is not None:
            # SQLMesh casts the column to the declared type.
            item = exp.Cast(this=item.unalias(), to=declared)
            source = self._types.find_type(scope, item.this)
            if source is None or source == declared:
                return self._find_loss(scope, item.this, 0)
        return self._find_loss(scope, item.unalias(), 0)

    def _find_loss(self, scope: Scope, node: exp.Expr, depth: int) -> str | None:
        """What the query itself makes of an amount; None if it is as exact as its source."""
        if isinstance(node, exp.Cast | exp.TryCast):
            return self._find_loss_of_cast(scope, node, depth)
        if isinstance(node, exp.Div):
            return self._find_loss_of_division(scope, node)
        if isinstance(node, exp.Column):
            return self._find_loss_below(scope, node, depth)
        sides = [node.this] if isinstance(node, (*_PASSING, exp.Coalesce)) else []
        sides += [node.this, node.expression] if isinstance(node, _JOINING) else []
        return next(filter(None, (self._find_loss(scope, one, depth) for one in sides)), None)

    def _find_loss_of_division(self, scope: Scope, node: exp.Div) -> str | None:
        """Whole cents that become a number with a fraction; Spark divides them as DOUBLE."""
        kind = self._types.find_type(scope, node.this)
        is_whole = kind is not None and kind.this in _WHOLE
        return _FRACTIONS if is_whole and node.expression.unnest().name in _CENTS else None

    def _find_loss_below(self, scope: Scope, node: exp.Column, depth: int) -> str | None:
        """What a CTE or subquery of the same query makes of the amount."""
        source = find_column_source(scope, node)
        if depth >= _MOST_LEVELS or not isinstance(source, Scope):
            return None
        for branch in list_outer_scopes(source):
            item = find_projection(branch, node.name)
            if item is not None and branch is not scope:
                return self._find_loss(branch, item, depth + 1)
        return None

    def _find_loss_of_cast(
        self, scope: Scope, node: exp.Cast | exp.TryCast, depth: int
    ) -> str | None:
        kind, inner = node.to, node.this.unnest()
        source = self._types.find_type(scope, inner)
        if is_float(kind):
            exact = isinstance(inner, exp.Count) or is_float(source)
            return None if exact else _FRACTIONS
        if is_decimal(kind) and not kind.expressions:
            return "a DECIMAL(10, 0), which is Spark's default: cents are rounded away"
        if kind.this in _WHOLE and isinstance(inner, exp.Column) and _has_cents(source):
            return "a whole number: cents are cut off"
        return self._find_loss(scope, inner, depth) if not is_decimal(kind) else None

    def _weigh(self, model: Model) -> Severity | None:
        """A note, if the project keeps its money in floats and has no DECIMAL for it."""
        kinds = [
            kind
            for other in self.project.models.values()
            if other.fqn != model.fqn
            for name, kind in (list_known_types(other) or {}).items()
            if _is_money(name)
        ]
        if any(map(is_decimal, kinds)) or not any(map(is_float, kinds)):
            return None
        return "medium"


def _is_money(name: str) -> bool:
    return bool(_MONEY.search(name)) and not _NO_MONEY.search(name)


def _has_cents(kind: exp.DataType | None) -> bool:
    if is_float(kind):
        return True
    digits = kind.expressions if kind is not None and is_decimal(kind) else []
    return len(digits) > 1 and digits[1].name != "0"


# What is wrong, and what clears it.
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
    """Finds comparisons, lists and unions of different types."""

    def __init__(self, types: ValueTypes) -> None:
        self._types = types

    def find_mixed(self, root: Scope | None) -> Iterator[tuple[exp.Expr, _Why]]:
        """Finds expressions of a query whose sides have different types.

        A type counts only if it is proved.
        """
        for scope in iterate_selects(root):
            for node in scope.expression.find_all(*_COMPARISONS, exp.In, exp.Between):
                if node.find_ancestor(exp.Select) is not scope.expression:
                    continue
                why = self._describe(scope, node)
                if why is not None:
                    yield node, why
        for union in root.traverse() if root is not None else ():
            if isinstance(union.expression, exp.SetOperation):
                yield from self._find_mixed_branches(union)

    def _describe(self, scope: Scope, node: exp.Expr) -> _Why | None:
        if isinstance(node, exp.In):
            return self._describe_list(scope, node)
        left = self._find_family(scope, node.this)
        if isinstance(node, exp.Between):
            return _describe_unreadable(left, list(node.iter_expressions())[1:])
        right = self._find_family(scope, node.expression)
        for family, other in ((left, node.expression), (right, node.this)):
            if isinstance(other.unnest(), exp.Literal):
                return _describe_unreadable(family, [other])
        return _describe_pair(left, right, is_equality=isinstance(node, (*_EQUALITIES, exp.NEQ)))

    def _describe_list(self, scope: Scope, node: exp.In) -> _Why | None:
        left = self._find_family(scope, node.this)
        query = node.args.get("query")
        if query is None:
            return _describe_unreadable(left, node.expressions)
        inner = query.unnest()
        below = next((one for one in scope.subquery_scopes if one.expression is inner), None)
        if below is None or len(below.expression.expressions) != 1:
            return None
        right = self._find_family(below, below.expression.expressions[0].unalias())
        return _describe_pair(left, right, is_equality=True)

    def _find_family(self, scope: Scope, node: exp.Expr) -> str | None:
        return name_family(self._types.find_type(scope, node))

    def _find_mixed_branches(self, union: Scope) -> Iterator[tuple[exp.Expr, _Why]]:
        """Yields columns of which the branches of a UNION have different types."""
        first, *others = list_outer_scopes(union)
        for branch in others:
            pairs = zip(first.expression.expressions, branch.expression.expressions, strict=False)
            for one, other in pairs:
                if isinstance(one.unalias(), exp.Literal) or isinstance(
                    other.unalias(), exp.Literal
                ):
                    continue
                families = [
                    self._find_family(scope, item.unalias())
                    for scope, item in ((first, one), (branch, other))
                ]
                if None not in families and not _fit_one_column({*families}):
                    yield (
                        other,
                        (
                            f"is {_WORDS[str(families[1])]} in one branch of a UNION and "
                            f"{_WORDS[str(families[0])]} in another: Spark casts both to one type",
                            "each branch casts the column to the same type",
                        ),
                    )


def _describe_pair(left: str | None, right: str | None, *, is_equality: bool) -> _Why | None:
    if left is None or right is None or _are_alike(left, right):
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


def _fit_one_column(families: set[str | None]) -> bool:
    """Whether values fit one column: a date beside a time becomes midnight, as it means."""
    return len(families) == 1 or families <= _TEMPORAL


def _are_alike(left: str | None, right: str | None) -> bool:
    return left == right


def _describe_unreadable(family: str | None, constants: Sequence[exp.Expr]) -> _Why | None:
    """Describes texts that Spark cannot read in the type of the other side."""
    readable = _READABLE.get(family or "")
    texts = [one.name for one in constants if isinstance(one, exp.Literal) and one.is_string]
    if readable is None or all(readable.fullmatch(text) for text in texts):
        return None
    return (
        f"compares {_WORDS[str(family)]} with a text that is none: Spark makes NULL of it, which "
        "equals nothing, or stops the run",
        "the text has the form of the column's type",
    )
