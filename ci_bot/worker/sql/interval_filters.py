"""Whether a query reads only the interval that SQLMesh computes.

SQLMesh deletes and writes the rows of an interval. A query without a filter on the interval reads
the whole history in each run. A query that filters another column computes rows that SQLMesh does
not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.worker.sql.joins import RowParts
from ci_bot.worker.sql.model_query import EPOCH, SENTINEL_END, SENTINEL_START, ModelQuery
from ci_bot.worker.sql.selects import ScopedQuery, ScopedSelect
from ci_bot.worker.sql.spark_sql import enter_expression

MAX_DEPTH = 12
_DATES = {
    "start": (EPOCH, SENTINEL_START),
    "end": (EPOCH, SENTINEL_END),
}
# SQLMesh does not render Jinja inside a text, unless the whole query is Jinja.
_JINJA = {
    "start": re.compile(r"\{\{\s*start_"),
    "end": re.compile(r"\{\{\s*(end|execution)_"),
}


@dataclass(frozen=True)
class IntervalBounds:
    """The bounds of the interval in a predicate, and the columns that they limit."""

    lower: bool = False
    upper: bool = False
    columns: frozenset[tuple[str, str]] = frozenset()

    def combine_both(self, other: IntervalBounds) -> IntervalBounds:
        """Combines two predicates that both hold for every row: all bounds of both count."""
        return IntervalBounds(
            self.lower or other.lower, self.upper or other.upper, self.columns | other.columns
        )

    def combine_either(self, other: IntervalBounds) -> IntervalBounds:
        """Combines two predicates if only one must hold for a row: only common bounds count."""
        return IntervalBounds(
            self.lower and other.lower, self.upper and other.upper, self.columns | other.columns
        )

    @property
    def is_bounded(self) -> bool:
        return self.lower or self.upper


NONE = IntervalBounds()


def find_interval_bounds(query: ModelQuery) -> IntervalBounds:
    """Finds the bounds that every row of the query's result meets.

    The written form is read if it shows the structure, otherwise the rendered one.
    """
    if not query.scopes:
        return IntervalBounds(True, True)  # unknown, so there is no finding
    return _find_query_bounds(query.scopes, 0)


def mentions_interval(query: ModelQuery) -> bool:
    """Whether the query contains start or end of the interval in any place."""
    names = [var.name.lower() for var in query.written_tree.find_all(d.MacroVar)]
    if any(name.startswith(("start_", "end_")) for name in names):
        return True
    return query.hides_structure and _has_marker(query.rendered_query, "start")


def is_interval_predicate(node: exp.Expr) -> bool:
    """Whether a predicate, written or rendered, compares with start or end of the interval."""
    return bool(_has_marker(node, "start") or _has_marker(node, "end"))


def _has_marker(node: exp.Expr | None, side: str) -> bool:
    if node is None:
        return False
    for var in node.find_all(d.MacroVar):
        name = var.name.lower()
        if name.startswith(f"{side}_") or (
            side == "end" and name.startswith(("execution_", "latest_"))
        ):
            return True
    return any(
        literal.is_string
        and (literal.name.startswith(_DATES[side]) or _JINJA[side].search(literal.name) is not None)
        for literal in node.find_all(exp.Literal)
    )


def _find_query_bounds(query: ScopedQuery, depth: int) -> IntervalBounds:
    if depth > MAX_DEPTH:
        return NONE
    if query.sides:
        first, second = (_find_query_bounds(side, depth + 1) for side in query.sides)
        is_first_alone = isinstance(query.expression, exp.Except | exp.Intersect)
        return first if is_first_alone or _is_recursive(query) else first.combine_either(second)
    branch = query.only_branch
    return _find_select_bounds(branch, depth) if branch is not None else NONE


def _is_recursive(query: ScopedQuery) -> bool:
    """Whether a CTE reads itself: its rows begin with those of the first branch."""
    cte: Any = query.expression.find_ancestor(exp.CTE) if query.expression is not None else None
    if cte is None or not cte.parent.args.get("recursive"):
        return False
    return any(table.name.lower() == cte.alias.lower() for table in cte.find_all(exp.Table))


def _find_select_bounds(select: ScopedSelect, depth: int) -> IntervalBounds:
    rows = [_find_row_bounds(select, parts, depth) for parts in select.list_row_parts()]
    if not rows:
        return IntervalBounds(True, True)  # it reads no table
    result = reduce(IntervalBounds.combine_either, rows)
    for part in select.list_clause_conditions("where", "qualify", "having"):
        result = result.combine_both(_find_predicate_bounds(select, part))
    for lateral in select.laterals:
        result = result.combine_both(_find_series_bounds(lateral))
    return result


def _find_row_bounds(select: ScopedSelect, parts: RowParts, depth: int) -> IntervalBounds:
    found = [_find_source_bounds(select, node, depth) for node in parts.sources]
    found += [_find_predicate_bounds(select, condition) for condition in parts.conditions]
    return reduce(IntervalBounds.combine_both, found)


def _find_source_bounds(select: ScopedSelect, node: exp.Expr, depth: int) -> IntervalBounds:
    source = select.sources.get(node.alias_or_name.lower())
    if isinstance(source, ScopedQuery):
        inner = _find_query_bounds(source, depth + 1)
        return inner if inner.is_bounded else _find_series_bounds(source.expression)
    return NONE if isinstance(node, exp.Table) else _find_series_bounds(node)


def _find_series_bounds(node: exp.Expr | None) -> IntervalBounds:
    """Finds the bounds of a list of dates that start and end limit: SEQUENCE(start, end)."""
    if node is None or node.find(exp.Table) is not None:
        return NONE
    return IntervalBounds(_has_marker(node, "start"), _has_marker(node, "end"))


def _find_predicate_bounds(select: ScopedSelect, node: exp.Expr) -> IntervalBounds:
    """Finds the bounds of the interval in one boolean expression."""
    if isinstance(node, exp.Paren):
        return _find_predicate_bounds(select, node.this)
    if isinstance(node, exp.And):
        return _find_predicate_bounds(select, node.this).combine_both(
            _find_predicate_bounds(select, node.expression)
        )
    if isinstance(node, exp.Or):
        return _find_predicate_bounds(select, node.this).combine_either(
            _find_predicate_bounds(select, node.expression)
        )
    if isinstance(node, exp.Not):
        return NONE
    return _find_comparison_bounds(select, node)


def _find_comparison_bounds(select: ScopedSelect, node: exp.Expr) -> IntervalBounds:
    if isinstance(node, exp.Between):
        low, high = _has_marker(node.args["low"], "start"), _has_marker(node.args["high"], "end")
        if low or high or is_interval_predicate(node):
            return IntervalBounds(
                low,
                high or _has_marker(node.args["high"], "start"),
                frozenset(select.find_origins(node.this)),
            )
        return NONE
    if not is_interval_predicate(node):
        return NONE
    columns = frozenset(select.find_origins(node))
    if isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE):
        left = is_interval_predicate(node.this)
        at_least = isinstance(node, exp.GT | exp.GTE) is not left
        return IntervalBounds(lower=at_least, upper=not at_least, columns=columns)
    # Equality, IN, and functions over the interval count as bounds of both ends.
    return IntervalBounds(True, True, columns)


def read_day_macro(node: exp.Expr) -> str | None:
    """Reads `start_ds`, `end_ds` or the dates, with or without a cast; None for other expressions.

    A shifted date, such as `@end_ds - 1`, is no edge of the interval.
    """
    node = enter_expression(node, exp.Cast, exp.TryCast, exp.Paren, exp.TsOrDsToDate, exp.Date)
    name = node.name.lower() if isinstance(node, d.MacroVar) else ""
    return name if name in {"start_ds", "end_ds", "start_date", "end_date"} else None


def list_last_days(query: ModelQuery) -> Iterator[tuple[ScopedSelect, exp.Expr, str]]:
    """Yields columns and casts that a comparison limits to the interval's last day.

    Each has three values: the SELECT, the column or cast, and the macro of the day.
    """
    for select in query.written_root.selects:
        for test in select.find_all(exp.Between, exp.LTE, exp.GTE):
            if isinstance(test, exp.Between):
                side, day = test.this, test.args["high"]
            elif isinstance(test, exp.LTE):
                side, day = test.this, test.expression
            else:
                side, day = test.expression, test.this
            name = read_day_macro(day)
            if name in {"end_ds", "end_date"} and isinstance(
                side, exp.Column | exp.Cast | exp.TryCast
            ):
                yield select, side, name
