"""Amounts of money in types that do not hold cents: binary fractions, and whole numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.linter_rule import ModelRule, is_computed_table, on_model
from ci_bot.worker.rules.models.value_types import ValueTypes, is_decimal, is_float
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import (
    find_column_source,
    find_projection,
    list_known_types,
    list_outer_scopes,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

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
_MOST_LEVELS = 12
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
