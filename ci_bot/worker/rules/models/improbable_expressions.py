"""Expressions that run without an error and hardly mean what they say: comparisons that are never
true, months that are minutes, outer joins that WHERE makes inner ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.improbable_conditions import describe_condition, find_loose_or
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.models.mixed_types import MixedTypes
from ci_bot.worker.rules.models.value_types import ValueTypes
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import ModelQuery, iterate_selects, name_query_part, split_conditions

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope
    from sqlmesh.core.model import Model

_EQUALITIES = (exp.EQ, exp.NEQ)
_REJECTING = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like,
    exp.RegexpLike,
)  # fmt: skip
_FORMATTED = (
    exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.StrToUnix, exp.UnixToStr, exp.TsOrDsToDate,
)  # fmt: skip
_CONDITIONS = (exp.And, exp.Or, exp.Between, exp.Count)


@on_model
class ImprobableExpression(ModelRule):
    """Spark runs such an expression, and its result is hardly ever the wanted one."""

    spec = find_rule("improbable-expression")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        found = dict(_iterate_findings(query))
        for scope in iterate_selects(query.root or query.written_root):
            found.update(_iterate_undone_joins(scope, query))
        types = MixedTypes(ValueTypes(self.project.by_table, self.project.queries))
        for node, why in types.find_mixed(query.root):
            found.update([_make_finding(node, query, *why)])
        for (subject, place), one in found.items():
            yield self.make_observation(
                model,
                f"`{one.text}` {one.what}.",
                one.clears,
                subject=[f"{subject} in {place}"],
                severity=one.severity,
                anchors=(one.text, one.text.partition("(")[0], one.first_column),
            )


class _Improbable(NamedTuple):
    text: str
    what: str
    clears: str
    severity: Severity | None
    first_column: str


# Its text without the names of tables, and its position; what it is.
_Found = tuple[tuple[str, str], _Improbable]
_SHOWN = 80


def _make_finding(
    node: exp.Expr, query: ModelQuery, what: str, clears: str, severity: Severity | None = None
) -> _Found:
    """Makes a finding that another alias of a table leaves the same."""
    simple = _simplify(node)
    plain = simple.copy()
    for column in plain.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)
    named = node.find(exp.Column)
    shown, subject = (one.sql(dialect="spark")[:_SHOWN] for one in (simple, plain))
    place = name_query_part(node, query)
    first = named.name if named is not None else shown
    return (subject, place), _Improbable(shown, what, clears, severity, first)


def _simplify(node: exp.Expr) -> exp.Expr:
    """The expression without the quotes and catalogs that SQLMesh's rendering adds."""
    plain = node.copy()
    for identifier in plain.find_all(exp.Identifier):
        identifier.set("quoted", False)
    for table in plain.find_all(exp.Table):
        table.set("catalog", None)
    return plain


def _iterate_findings(query: ModelQuery) -> Iterator[_Found]:
    """Yields expressions that are wrong wherever they are."""
    for node in query.tree.find_all(
        *_EQUALITIES, exp.In, exp.Case, *_FORMATTED, exp.Window, *_CONDITIONS
    ):
        why = _describe_expression(node)
        if why is not None:
            yield _make_finding(node, query, *why)
    # SQLMesh's rendering adds brackets.
    written = query.written if query.written is not None else query.rendered_as_written
    for node in written.find_all(exp.Or) if written is not None else ():
        loose = find_loose_or(node)
        if loose is not None:
            yield _make_finding(node, query, *loose)


def _describe_expression(node: exp.Expr) -> tuple[str, str] | None:
    if isinstance(node, _FORMATTED):
        return _describe_format(node)
    if isinstance(node, exp.Window):
        return _describe_window(node)
    if isinstance(node, _CONDITIONS):
        return describe_condition(node)
    return _describe_comparison(node)


def _describe_comparison(node: exp.Expr) -> tuple[str, str] | None:
    if isinstance(node, _EQUALITIES):
        sides = [node.this.unnest(), node.expression.unnest()]
        if any(isinstance(side, exp.Null) for side in sides):
            return "compares with NULL, so it is never true", "IS NULL or IS NOT NULL is used"
        if isinstance(sides[0], exp.Column) and sides[0] == sides[1]:
            return (
                "compares a column with itself, so it is the same for each value",
                "the other side is of another table",
            )
        return None
    listed = node.expressions if isinstance(node.parent, exp.Not) else ()
    if isinstance(node, exp.In) and any(isinstance(item, exp.Null) for item in listed):
        return "is never true in NOT IN: the list has a NULL", "the NULL leaves the list"
    cases = (node.args.get("ifs") or ()) if node.this is not None else ()
    if isinstance(node, exp.Case) and any(isinstance(one.this, exp.Null) for one in cases):
        return "never takes the branch of NULL: nothing equals NULL", "WHEN x IS NULL is used"
    return None


def _describe_window(node: exp.Window) -> tuple[str, str] | None:
    function = node.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    unframed = node.args.get("order") is not None and node.args.get("spec") is None
    if isinstance(function, exp.LastValue) and unframed:
        return (
            "ends at the current row, because it has no frame: its last value is the row's own",
            "the frame goes to UNBOUNDED FOLLOWING, or FIRST_VALUE reads the other order",
        )
    return None


def _describe_format(node: exp.Expr) -> tuple[str, str] | None:
    pattern = node.args.get("format")
    if not isinstance(pattern, exp.Literal):
        return None
    text = pattern.name
    if "%M" in text and ("%Y" in text or "%d" in text) and not ("%H" in text or "%I" in text):
        return "has minutes (mm) where a date has its month", "the month is MM"
    if "%j" in text and ("%m" in text or "%b" in text):
        return "has the day of the year (D) beside a month", "the day of the month is dd"
    if "%I" in text and "%p" not in text:
        return "has hours of 12 (hh) without a for AM and PM", "hours of 24 are HH"
    return None


def _iterate_undone_joins(scope: Scope, query: ModelQuery) -> Iterator[_Found]:
    """Yields conditions of WHERE that drop the rows which a LEFT JOIN keeps."""
    select = scope.expression
    where = select.args.get("where")
    outer = {
        join.this.alias_or_name
        for join in select.args.get("joins") or ()
        if join.side == "LEFT" and join.kind not in {"SEMI", "ANTI"}
    }
    for part in split_conditions(where.this) if where is not None and outer else ():
        bare = part.unnest()
        test = bare.this.unnest() if isinstance(bare, exp.Not) else bare
        if not isinstance(test, _REJECTING):
            continue
        sides = [test.this, test.args.get("expression")]
        if any(isinstance(side, exp.Column) and side.table in outer for side in sides):
            yield _make_finding(
                part,
                query,
                "in WHERE drops each row for which the LEFT JOIN found no partner, so it is an "
                "inner join",
                "the condition is in ON, or the join is an INNER JOIN",
            )
