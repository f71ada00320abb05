"""Whether a value can be NULL, if a query and its project show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from ci_bot.worker.sql.audit_promises import list_column_names, read_audit_promises
from ci_bot.worker.sql.selects import ScopedQuery, ScopedSelect, table_name
from ci_bot.worker.sql.spark_sql import enter_expression

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

    from ci_bot.worker.sql.model_query import ModelQueries

MAX_DEPTH = 12
NEVER = "never"
# Nobody knows whether it can be NULL. Every other text is the reason why it can.
UNKNOWN = ""

_PASSING_ON = (
    exp.Cast, exp.Paren, exp.Upper, exp.Lower, exp.Trim, exp.Max, exp.Min, exp.AnyValue, exp.First,
    exp.Last, exp.SHA2, exp.MD5, exp.Abs, exp.Alias, exp.Distinct,
)  # fmt: skip
_NEVER = (exp.Literal, exp.Count, exp.CountIf, exp.RowNumber, exp.Boolean, exp.CurrentDate,
          exp.CurrentTimestamp, exp.Is, exp.NullSafeEQ, exp.Exists)  # fmt: skip
_TESTS = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.ILike,
    exp.RegexpLike,
)  # fmt: skip


@dataclass(frozen=True)
class NullDefault:
    """A constant that replaces NULL.

    Attributes:
        constant: Its SQL.
        reason: Why there can be rows that get it; UNKNOWN if only the constant suggests it.
    """

    constant: str
    reason: str


class ProjectQueries(Protocol):
    """The facts of a project that this module needs: models, queries, and names for messages."""

    @property
    def models(self) -> Mapping[str, Model]: ...

    @property
    def by_table(self) -> Mapping[str, Model]: ...

    @property
    def queries(self) -> ModelQueries: ...

    def name_of_table(self, table: str) -> str: ...


def find_null_reason(model: Model, column: str, project: ProjectQueries) -> str:
    """Explains why a result column of `model` can be NULL; `NEVER` or `UNKNOWN` otherwise."""
    if read_audit_promises(model).not_null.get(column.lower()):
        return NEVER
    query = project.queries.query_of(model)
    return _NullReasons(project).find_in_result(query.root, column, 0) if query else UNKNOWN


def find_value_null_reason(select: ScopedSelect, node: exp.Expr, project: ProjectQueries) -> str:
    """Explains the same for a value of a SELECT; the tests of other models do not count."""
    return _NullReasons(project, reads_tests=False).find_in_value(select, node)


def find_missing_value_reason(
    select: ScopedSelect, column: exp.Column, project: ProjectQueries
) -> str:
    """Explains why rows of a table or a query have no value in a column; empty without a reason.

    The joins and conditions of the SELECT that reads the column do not count.
    """
    source = select.find_source(column)
    search = _NullReasons(project, reads_descriptions=True)
    name = column.name.lower()
    if isinstance(source, ScopedQuery):
        reason = search.find_in_result(source, name, 0)
    elif isinstance(source, exp.Table):
        reason = search.find_in_table(table_name(source), name, 0)
    else:
        reason = UNKNOWN
    return "" if reason == NEVER else reason


def find_null_default(model: Model, part: exp.Expr, project: ProjectQueries) -> NullDefault | None:
    """Finds the constant that a part of a key gets in each row without a value.

    Args:
        part: A column of the model's result, or an expression over such columns.

    Returns:
        The constant; None if the part has no such constant, or is never NULL without it.
    """
    if not isinstance(part, exp.Column):
        return _read_default(
            part,
            lambda value: _choose_worst_reason(
                find_null_reason(model, c, project) for c in list_column_names([value])
            ),
        )
    query = project.queries.query_of(model)
    for branch in query.root.branches if query is not None else ():
        item = branch.find_result(part.name)
        found = item and _read_default(item, partial(_NullReasons(project).find_in_value, branch))
        if found:
            return found
    return None


def _read_default(node: exp.Expr, reason_of: Callable[[exp.Expr], str]) -> NullDefault | None:
    while isinstance(node, _PASSING_ON) and not isinstance(node, exp.AggFunc):
        node = node.this
    if not isinstance(node, exp.Coalesce):
        return None
    values = [node.this, *node.expressions]
    constant = last = values.pop()
    if not isinstance(enter_expression(last, exp.Neg, exp.Cast, exp.Paren), exp.Literal):
        return None
    reasons = [reason_of(value) for value in values]
    if NEVER in reasons:
        return None
    return NullDefault(constant.sql(), reasons[0] if UNKNOWN not in reasons else UNKNOWN)


def _choose_worst_reason(reasons: Iterable[str]) -> str:
    found = list(reasons)
    named = [one for one in found if one not in {NEVER, UNKNOWN}]
    if named:
        return named[0]
    return NEVER if found and all(one == NEVER for one in found) else UNKNOWN


@dataclass(frozen=True)
class _NullReasons:
    """A search for reasons through the queries of a project.

    Attributes:
        reads_tests: if any query tests a column for NULL, that is a reason; all queries are
            rendered.
        reads_descriptions: if the description of a table says that a column is NULL, that is a
            reason, and an SCD type 2 model has no end of the rows that are valid now.
    """

    project: ProjectQueries
    reads_tests: bool = True
    reads_descriptions: bool = False

    def find_in_result(self, query: ScopedQuery, column: str, depth: int) -> str:
        items = [(branch, branch.find_result(column)) for branch in query.branches]
        return _choose_worst_reason(
            UNKNOWN if item is None else self.find_in_value(branch, item, depth)
            for branch, item in items
        )

    def find_in_value(  # noqa: PLR0911, PLR0912 - one branch for each kind of node reads best
        self, select: ScopedSelect, node: exp.Expr, depth: int = 0
    ) -> str:
        if depth > MAX_DEPTH:
            return UNKNOWN
        if isinstance(node, exp.Null):
            return "it is NULL in a branch"
        if isinstance(node, _NEVER):
            return NEVER
        if isinstance(node, exp.Column):
            return self._find_in_column(select, node, depth)
        # The parser also makes TryCast of Spark's plain CAST; only `safe` means TRY_CAST.
        if isinstance(node, exp.TryCast) and node.args.get("safe"):
            return "TRY_CAST gives NULL for what it cannot read"
        if isinstance(node, exp.Coalesce):
            values = (node.this, *node.expressions)
            parts = [self.find_in_value(select, value, depth + 1) for value in values]
            if NEVER in parts:
                return NEVER
            return parts[0] if UNKNOWN not in parts else UNKNOWN
        if isinstance(node, exp.Nullif):
            return "NULLIF gives NULL"
        if isinstance(node, exp.Case):
            results = [branch.args["true"] for branch in node.args.get("ifs") or []]
            default = node.args.get("default")
            if default is None:
                return "its CASE has no ELSE"
            return _choose_worst_reason(
                self.find_in_value(select, part, depth + 1) for part in (*results, default)
            )
        if isinstance(node, exp.If):
            other = node.args.get("false")
            if other is None:
                return "its IF has no other value"
            sides = (node.args["true"], other)
            return _choose_worst_reason(
                self.find_in_value(select, side, depth + 1) for side in sides
            )
        if isinstance(node, _PASSING_ON):
            return self.find_in_value(select, node.this, depth + 1)
        if isinstance(node, exp.Concat | exp.DPipe | exp.Binary):
            columns = [
                self.find_in_value(select, one, depth + 1) for one in node.find_all(exp.Column)
            ]
            return _choose_worst_reason(columns)
        return UNKNOWN

    def _find_in_column(self, select: ScopedSelect, column: exp.Column, depth: int) -> str:
        filled = chain.from_iterable(map(list_filled_columns, select.list_conditions()))
        if any(_is_same_column(one, column) for one in filled):
            return NEVER
        alias, source = column.table, select.find_source(column)
        if not alias and source is not None:
            alias = next(name for name, one in select.sources.items() if one is source)
        how = select.find_outer_join(alias)
        if how:
            return f"rows without a match have none (`{alias}` comes by {how})"
        name = column.name.lower()
        if isinstance(source, ScopedQuery):
            return self.find_in_result(source, name, depth + 1)
        if isinstance(source, exp.Table):
            return self.find_in_table(table_name(source), name, depth)
        return UNKNOWN

    def find_in_table(self, table: str, name: str, depth: int) -> str:
        model = self.project.by_table.get(table)
        if model is None:
            return self._find_test(table, name)
        if self.reads_descriptions:
            reason = _find_declared_reason(model, name, self.project.name_of_table(model.fqn))
            if reason:
                return reason
        if read_audit_promises(model).not_null.get(name) or any(
            name in list_column_names(grain) for grain in model.grains
        ):
            return NEVER
        query = self.project.queries.query_of(model)
        if query is not None:
            above = self.find_in_result(query.root, name, depth + 1)
            if above != UNKNOWN:
                return above
        return self._find_test(table, name)

    def _find_test(self, table: str, name: str) -> str:
        """Returns a reason if another query tests the column for NULL, else UNKNOWN."""
        for model in self.project.models.values() if self.reads_tests else ():
            query = self.project.queries.query_of(model)
            tables = query.rendered_tree.find_all(exp.Table) if query is not None else ()
            if query is None or not any(table_name(one) == table for one in tables):
                continue
            if any(_tests_null(select, table, name) for select in query.root.selects):
                called = self.project.name_of_table(model.fqn)
                return f"`{called}` tests whether it is NULL in its source"
        return UNKNOWN


def _find_declared_reason(model: Model, name: str, called: str) -> str:
    """Finds the reason in a model's descriptions or its kind; empty without one."""
    if model.kind.is_scd_type_2:
        end = getattr(model.kind, "valid_to_name", None)
        if end is not None and end.name.lower() == name:
            return f"`{called}` has none in the rows that are valid now"
    own = (model.column_descriptions or {}).get(name, "")
    for clause in re.split(r"[.;]", model.description or ""):
        if re.search(rf"\b{re.escape(name)}\b", clause):
            own += f". {clause}"
    says = re.search(r"\bNULL\b", own) and not re.search(r"\b(?:never|not|no) NULL", own)
    return f"the description of `{called}` says when it is NULL" if says else ""


def _tests_null(select: ScopedSelect, table: str, name: str) -> bool:
    """Whether a SELECT tests a table's column for NULL, and no outer join adds that column."""
    for test in select.node.find_all(exp.Coalesce, exp.Is):
        column = enter_expression(test.this, exp.Cast, exp.Trim, exp.Upper, exp.Lower, exp.Paren)
        is_test = isinstance(test, exp.Coalesce) or isinstance(test.expression, exp.Null)
        if is_test and isinstance(column, exp.Column) and column.name.lower() == name:
            source = select.find_table(column.table)
            is_same = source is not None and table_name(source) == table
            if is_same and not select.find_outer_join(column.table):
                return True
    return False


def list_filled_columns(condition: exp.Expr) -> Iterator[exp.Column]:
    """Yields the columns that are not NULL in a row for which a condition is true."""
    test = condition.unnest()
    if isinstance(test, exp.Not):
        test = test.this.unnest()
        is_telling = isinstance(test, _TESTS) or isinstance(test.args.get("expression"), exp.Null)
    else:
        is_telling = isinstance(test, _TESTS)
    for side in (test.this, test.args.get("expression")) if is_telling else ():
        inner = enter_expression(side, exp.Cast, exp.Paren) if side is not None else None
        if isinstance(inner, exp.Column):
            yield inner


def _is_same_column(one: exp.Column, other: exp.Column) -> bool:
    is_one_table = not one.table or not other.table or one.table.lower() == other.table.lower()
    return is_one_table and one.name.lower() == other.name.lower()
