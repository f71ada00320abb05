"""Whether a query reads only the interval that SQLMesh computes.

SQLMesh deletes and writes the rows of an interval. A query without a filter on it reads the whole
history in each run. A query that filters another column computes rows that SQLMesh does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope
from sqlmesh.core import dialect as d

from ci_bot.worker.sql.model_query import (
    EPOCH,
    SENTINEL_END,
    SENTINEL_START,
    ModelQuery,
    find_origins,
    find_projection,
    iterate_selects,
    list_outer_scopes,
)
from ci_bot.worker.sqlmesh_compat import FROM

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
        """Combines two predicates of which one holds for a row: only common bounds count."""
        return IntervalBounds(
            self.lower and other.lower, self.upper and other.upper, self.columns | other.columns
        )

    @property
    def is_bounded(self) -> bool:
        return self.lower or self.upper


NONE = IntervalBounds()


def find_interval_bounds(query: ModelQuery) -> IntervalBounds:
    """Finds the bounds that every row of the query's result meets.

    The written form is read if it shows the structure, else the rendered one.
    """
    if query.scopes is None:
        return IntervalBounds(True, True)  # unknown, so there is no finding
    return _find_scope_bounds(query.scopes, 0)


def mentions_interval(query: ModelQuery) -> bool:
    """Whether the query contains start or end of the interval anywhere."""
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


def _find_scope_bounds(scope: Scope, depth: int) -> IntervalBounds:
    expression = scope.expression
    if depth > MAX_DEPTH:
        return NONE
    if isinstance(expression, exp.SetOperation):
        branches = [_find_scope_bounds(branch, depth + 1) for branch in scope.union_scopes or []]
        if not branches:
            return NONE
        if isinstance(expression, exp.Except | exp.Intersect) or _is_recursive(scope):
            return branches[0]
        result = branches[0]
        for branch in branches[1:]:
            result = result.combine_either(branch)
        return result
    leaves = list_outer_scopes(scope)
    if not isinstance(expression, exp.Select):
        return _find_scope_bounds(leaves[0], depth + 1) if leaves else NONE
    return _find_select_bounds(scope, expression, depth)


def _is_recursive(scope: Scope) -> bool:
    with_ = scope.expression.find_ancestor(exp.With)
    return bool(with_ is not None and with_.args.get("recursive"))


def _find_select_bounds(scope: Scope, select: exp.Select, depth: int) -> IntervalBounds:
    result = NONE
    for clause in ("where", "qualify", "having"):
        part = select.args.get(clause)
        if part is not None:
            result = result.combine_both(find_predicate_bounds(scope, part.this))
    from_ = select.args.get(FROM)
    joins = select.args.get("joins") or []
    if from_ is None:
        return IntervalBounds(True, True) if not joins else result
    only_right = any(join.side == "RIGHT" for join in joins)
    if not only_right:
        result = result.combine_both(_find_source_bounds(scope, from_.this, depth))
    for join in joins:
        if join.side in {"LEFT", "FULL"}:
            continue
        on = join.args.get("on")
        if on is not None and not join.side:
            result = result.combine_both(find_predicate_bounds(scope, on))
        result = result.combine_both(_find_source_bounds(scope, join.this, depth))
    for lateral in select.args.get("laterals") or []:
        result = result.combine_both(_find_series_bounds(lateral))
    return result


def _find_source_bounds(scope: Scope, node: exp.Expr, depth: int) -> IntervalBounds:
    source = scope.sources.get(node.alias_or_name)
    if isinstance(source, Scope):
        inner = _find_scope_bounds(source, depth + 1)
        return inner if inner.is_bounded else _find_series_bounds(source.expression)
    return NONE if isinstance(node, exp.Table) else _find_series_bounds(node)


def _find_series_bounds(node: exp.Expr) -> IntervalBounds:
    """Finds the bounds of a list of dates that start and end limit, as in SEQUENCE(start, end)."""
    tables = list(node.find_all(exp.Table))
    if tables:
        return NONE
    return IntervalBounds(_has_marker(node, "start"), _has_marker(node, "end"))


def find_predicate_bounds(scope: Scope, node: exp.Expr) -> IntervalBounds:
    """Finds the bounds of the interval in one boolean expression."""
    if isinstance(node, exp.Paren):
        return find_predicate_bounds(scope, node.this)
    if isinstance(node, exp.And):
        return find_predicate_bounds(scope, node.this).combine_both(
            find_predicate_bounds(scope, node.expression)
        )
    if isinstance(node, exp.Or):
        return find_predicate_bounds(scope, node.this).combine_either(
            find_predicate_bounds(scope, node.expression)
        )
    if isinstance(node, exp.Not):
        return NONE
    return _find_comparison_bounds(scope, node)


def _find_comparison_bounds(scope: Scope, node: exp.Expr) -> IntervalBounds:
    if isinstance(node, exp.Between):
        low, high = _has_marker(node.args["low"], "start"), _has_marker(node.args["high"], "end")
        if low or high or is_interval_predicate(node):
            return IntervalBounds(
                low,
                high or _has_marker(node.args["high"], "start"),
                _list_interval_columns(scope, node.this),
            )
        return NONE
    if not is_interval_predicate(node):
        return NONE
    columns = _list_interval_columns(scope, node)
    if isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE):
        left = is_interval_predicate(node.this)
        at_least = isinstance(node, exp.GT | exp.GTE) is not left
        return IntervalBounds(lower=at_least, upper=not at_least, columns=columns)
    # Equality, IN, and functions over the interval count as bounds of both ends.
    return IntervalBounds(True, True, columns)


def _list_interval_columns(scope: Scope, node: exp.Expr) -> frozenset[tuple[str, str]]:
    return frozenset(find_origins(scope, node))


def read_day_macro(node: exp.Expr) -> str | None:
    """Reads `start_ds`, `end_ds` or the dates, with or without a cast; None for all else.

    A shifted date, such as `@end_ds - 1`, is no edge of the interval.
    """
    while isinstance(node, exp.Cast | exp.TryCast | exp.Paren | exp.TsOrDsToDate | exp.Date):
        node = node.this
    name = node.name.lower() if isinstance(node, d.MacroVar) else ""
    return name if name in {"start_ds", "end_ds", "start_date", "end_date"} else None


def list_last_days(query: ModelQuery) -> Iterator[tuple[Scope, exp.Expr, str]]:
    """Columns and casts that a comparison limits to the interval's last day.

    Yields the scope, the column or cast, and the macro of the day.
    """
    for scope in iterate_selects(query.written_root):
        for test in scope.find_all(exp.Between, exp.LTE, exp.GTE):
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
                yield scope, side, name


def find_time_column_origins(roots: Iterable[Scope], name: str) -> set[tuple[str, str]]:
    """Finds the table columns from which the result's time column is computed."""
    found: set[tuple[str, str]] = set()
    for root in roots:
        for branch in list_outer_scopes(root):
            item = find_projection(branch, name)
            if item is not None:
                found |= find_origins(branch, item)
    return found
