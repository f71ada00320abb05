"""Sums over amounts of several currencies, and over quantities of several units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.declared_keys import (
    find_column_alias_and_name,
    split_column_name_into_words,
)
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.queries.fan_outs import list_source_keys
from ci_bot.worker.rules.queries.mixed_types import is_money_name
from ci_bot.worker.rules.queries.value_parts import VALUE_WRAPPERS
from ci_bot.worker.sql import (
    ScopedSelect,
    SelectSource,
    enter_expression,
    split_conditions,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_ADDING = (exp.Sum, exp.Avg)
_TERMS = (exp.Add, exp.Sub)
_CURRENCY = re.compile(r"^(?:\w+_)?(?:currency|ccy)(?:_code|_iso)?$", re.IGNORECASE)
# The codes of the most traded currencies (ISO 4217), and words for "converted into our currency".
_CONVERTED = re.compile(
    r"(?:^|_)(?:eur|usd|gbp|jpy|chf|cny|aud|cad|hkd|sgd|sek|nok|dkk|pln|czk|inr|brl|mxn|zar|krw|"
    r"euros?|dollars?|base|home|group|reporting|converted|normali[sz]ed|cents?)(?:_|$)",
    re.IGNORECASE,
)
_OF_ONE_CURRENCY = re.compile(
    r"_(?:eur|usd|gbp|jpy|chf|cny|aud|cad|sek|nok|dkk|pln|czk|inr|brl|euros?|dollars?)$",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"^(?:\w+_)?(?:uom|unit_of_measure|measure_unit|quantity_unit|qty_unit)(?:_code)?$",
    re.IGNORECASE,
)
# How many pieces a price is for, in the words of purchasing systems.
_PRICE_UNIT = re.compile(
    r"^(?:\w+_)?price_(?:per|unit|base|basis)(?:_qty|_quantity)?$", re.IGNORECASE
)
_MEASURED = frozenset({"quantity", "qty"})
# Each of these has one unit: pieces of a screw, litres of a paint.
_OF_ONE_UNIT = frozenset({
    "part", "item", "product", "sku", "article", "material", "ingredient", "component", "good",
    "goods", "commodity", "substance", "drug", "medicine", "meter", "sensor", "resource",
})  # fmt: skip
_QUANTITIES = frozenset({"quantity", "qty", "units", "count", "pieces", "items", "nights", "seats"})


@on_model
class MixedCurrencies(ModelRule):
    """A sum of euros and yen is an amount of nothing."""

    spec = find_rule("mixed-currencies")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(*_ADDING, *_TERMS):
            return
        found: dict[tuple[str, str], tuple[str, bool]] = {}
        for select in query.root.selects:
            for name, item in select.results:
                for node in item.find_all(*_ADDING):
                    if node.find_ancestor(exp.Select) is select.node:
                        for amount, currency in self._iterate_mixed(select, node):
                            found[name, amount] = currency, True
                        for quantity, unit in (
                            *self._iterate_mixed_units(select, node),
                            *self._iterate_prices_of_other_pieces(select, node),
                        ):
                            found[name, quantity] = unit, False
        for (column, amount), (measure, is_money) in found.items():
            yield self.make_observation(
                model,
                f"`{column}` adds up `{amount}` over rows of all "
                f"{'currencies' if is_money else 'units'}: `{measure}` says which one each amount "
                "is in.",
                f"`{measure}` is among the groups or fixed by a filter, or the amount is "
                "converted before",
                subject=[f"{column} of {amount}"],
                anchors=(column, amount),
            )
        for select in query.root.selects:
            for name, item in select.results:
                for own, amount, currency in self._iterate_foreign_terms(select, item):
                    yield self.make_observation(
                        model,
                        f"`{name}` adds `{amount}` to `{own}`, or takes it away, and "
                        f"`{currency}` says which currency `{amount}` is in.",
                        f"`{amount}` is converted before, or a filter fixes `{currency}`",
                        subject=[f"{name} of {amount}"],
                        anchors=(name, amount),
                    )

    def _iterate_foreign_terms(
        self, select: ScopedSelect, item: exp.Expr
    ) -> Iterator[tuple[str, str, str]]:
        """Yields an amount of one currency, another amount beside it, and its currency."""
        read = {one.name.lower() for one in select.find_all(exp.Column)}
        for node in item.find_all(*_TERMS):
            sides = [enter_expression(one, *VALUE_WRAPPERS) for one in (node.this, node.expression)]
            for own, other in (sides, sides[::-1]):
                if not isinstance(own, exp.Column) or not isinstance(other, exp.Column):
                    continue
                if not _OF_ONE_CURRENCY.search(own.name) or _CONVERTED.search(other.name):
                    continue
                columns = self._list_columns(select.find_source(other))
                currency = next(filter(_CURRENCY.match, columns), None)
                if currency is not None and currency not in read:
                    yield own.name, other.name, currency

    def _iterate_mixed_units(
        self, select: ScopedSelect, total: exp.Expr
    ) -> Iterator[tuple[str, str]]:
        """Yields quantities that a total adds up as they are, each with the column of its unit."""
        column = enter_expression(total.this, exp.Paren, exp.Abs, exp.Coalesce)
        words = split_column_name_into_words(column.name)
        if not isinstance(column, exp.Column) or _MEASURED.isdisjoint(words):
            return
        keys = [key.name for key in select.list_group_keys() if isinstance(key, exp.Column)]
        if any(not _OF_ONE_UNIT.isdisjoint(split_column_name_into_words(key)) for key in keys):
            return
        source = select.find_source(column)
        unit = next(filter(_UNIT.match, self._list_columns(source)), None)
        if unit is None or self._is_fixed(select, total, column, unit):
            return
        # Whoever shows the unit of the group knows that it has one.
        read = {one.name.lower() for one in select.find_all(exp.Column)}
        if unit not in read:
            yield column.name, unit

    def _iterate_prices_of_other_pieces(
        self, select: ScopedSelect, total: exp.Expr
    ) -> Iterator[tuple[str, str]]:
        """Yields prices that are multiplied by a quantity, and are for 1 or 100 pieces of it."""
        read = {one.name.lower() for one in select.find_all(exp.Column)}
        for product in total.find_all(exp.Mul):
            factors = [one.unnest() for one in product.iter_expressions()]
            words = [split_column_name_into_words(one.name) for one in factors]
            for price, other in zip(factors, reversed(words), strict=True):
                if not isinstance(price, exp.Column) or _QUANTITIES.isdisjoint(other):
                    continue
                if "price" not in split_column_name_into_words(price.name):
                    continue
                pieces = filter(_PRICE_UNIT.match, self._list_columns(select.find_source(price)))
                unit = next(pieces, None)
                if unit is not None and unit not in read:
                    yield price.name, unit

    def _iterate_mixed(self, select: ScopedSelect, total: exp.Expr) -> Iterator[tuple[str, str]]:
        """Yields amounts that a total adds up, each with the column of its currency."""
        read = list(total.find_all(exp.Column))
        if _may_convert(total) or _reads_currency(read):
            return  # it is converted, or chosen by the currency
        for column in read:
            if not is_money_name(column.name) or _CONVERTED.search(column.name):
                continue
            source = select.find_source(column)
            currency = next(filter(_CURRENCY.match, self._list_columns(source)), None)
            if currency is not None and not self._is_fixed(select, total, column, currency):
                yield column.name, currency

    def _list_columns(self, source: SelectSource | None) -> list[str]:
        """Lists the columns of a table or of a query, in lower case."""
        if isinstance(source, exp.Table):
            model = self.project.by_table.get(table_name(source))
            return [name.lower() for name in (model.columns_to_types or ())] if model else []
        return list(source.branches[0].names) if source is not None and source.branches else []

    def _is_fixed(
        self, select: ScopedSelect, total: exp.Expr, amount: exp.Column, currency: str
    ) -> bool:
        """Whether all rows that one total adds up have one currency."""
        window = total.find_ancestor(exp.Window, exp.Select)
        keys = (
            window.args.get("partition_by") or ()
            if isinstance(window, exp.Window)
            else select.list_group_keys()
        )
        groups = {find_column_alias_and_name(key) for key in keys if isinstance(key, exp.Column)}
        mine = {name for alias, name in groups if alias in {amount.table.lower(), ""}}
        unique = list_source_keys(select.find_source(amount), self.project.by_table)
        if currency in {name for _, name in groups} or any(key <= mine for key in unique):
            return True
        conditions = select.list_clause_conditions("where")
        filtered = total.find_ancestor(exp.Filter, exp.Select)
        if isinstance(filtered, exp.Filter):
            conditions = [*conditions, *split_conditions(filtered.expression)]
        return any(_reads_currency(one.find_all(exp.Column)) for one in conditions)


def _may_convert(total: exp.Expr) -> bool:
    """Whether a total multiplies or divides by something else than a quantity."""
    if not all(map(_divides_by_quantity, total.find_all(exp.Div))):
        return True
    factors = [
        factor.unnest()
        for product in total.find_all(exp.Mul)
        for factor in (product.this, product.expression)
    ]
    return not all(
        isinstance(factor, exp.Mul | exp.Column)
        and (
            isinstance(factor, exp.Mul)
            or is_money_name(factor.name)
            or not _QUANTITIES.isdisjoint(split_column_name_into_words(factor.name))
        )
        for factor in factors
    )


def _divides_by_quantity(node: exp.Div) -> bool:
    """Whether a division is by a whole number, or by the number of pieces that a price is for."""
    divisor = enter_expression(node.expression, exp.Paren, exp.Cast, exp.Nullif)
    if isinstance(divisor, exp.Literal):
        return bool(divisor.is_int)
    if not isinstance(divisor, exp.Column):
        return False
    words = split_column_name_into_words(divisor.name)
    # Units per euro are a rate of exchange; `price_per` ends with the word.
    return "per" not in words[:-1] and (words[-1] == "per" or not _QUANTITIES.isdisjoint(words))


def _reads_currency(columns: Iterable[exp.Column]) -> bool:
    return any(_CURRENCY.match(column.name) for column in columns)
