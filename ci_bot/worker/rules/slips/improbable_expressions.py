"""Expressions that run without an error, but probably do not mean what they say.

Examples are comparisons that are never true, months that are minutes, and outer joins that WHERE
turns into inner ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.queries.mixed_types import MixedTypes, ModelValueTypes
from ci_bot.worker.rules.queries.value_parts import read_constant_number_or_day
from ci_bot.worker.rules.slips.constant_slips import iterate_constant_slips
from ci_bot.worker.rules.slips.conversion_slips import iterate_conversion_slips
from ci_bot.worker.rules.slips.join_slips import iterate_join_slips
from ci_bot.worker.rules.slips.misnamed_slips import iterate_misnamed_slips
from ci_bot.worker.rules.slips.missing_partner_slips import iterate_missing_partner_slips
from ci_bot.worker.rules.slips.null_slips import iterate_null_slips
from ci_bot.worker.rules.slips.order_slips import iterate_order_slips
from ci_bot.worker.rules.slips.query_slips import iterate_slips
from ci_bot.worker.rules.slips.row_slips import iterate_row_slips
from ci_bot.worker.rules.slips.total_slips import iterate_total_slips
from ci_bot.worker.rules.slips.unit_slips import iterate_unit_slips
from ci_bot.worker.rules.slips.value_origins import ValueOrigins
from ci_bot.worker.rules.slips.value_slips import iterate_value_slips
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedSelect,
    enter_expression,
    list_filled_columns,
    name_query_part,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


_CHOOSING = (exp.Where, exp.Having, exp.Qualify)
_VALUES = (exp.Case, exp.If, exp.Select)
_ALTERNATIVES = 2
_LATER = (exp.DateAdd, exp.TsOrDsAdd, exp.TimestampAdd, exp.AddMonths)
_EARLIER = (exp.DateSub, exp.TimestampSub)
_TRUTHS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.Is,
    exp.And, exp.Or, exp.RegexpLike,
)  # fmt: skip


def find_loose_or(node: exp.Or) -> tuple[str, str, Severity | None] | None:
    """Describes an OR without brackets beside an AND, which binds first; None if it is clear.

    If each alternative has an AND of its own, the OR is a list of whole alternatives. In ON each of
    them must also tie the two tables.

    Returns:
        The description, the condition that clears it, and the severity if it is not the rule's.
    """
    if isinstance(node.parent, exp.Or):
        return None
    parts = list(node.flatten(unnest=False))
    if not any(isinstance(part, exp.And) for part in parts):
        return None
    clause = _find_clause(node)
    whole = all(isinstance(part.unnest(), exp.And) for part in parts)
    if whole and not (clause == "ON" and any(not _ties_tables(part) for part in parts)):
        return None
    return (
        f"is without brackets{f' in {clause}' if clause else ''}: AND binds before OR, so the "
        "conditions beside AND do not hold for the rows that OR lets in",
        "brackets say which conditions belong together",
        None if clause else "medium",
    )


def _find_clause(node: exp.Expr) -> str | None:
    """Names the clause in which a condition selects rows; None inside a value."""
    above = node.parent
    while above is not None and not isinstance(above, _VALUES):
        if isinstance(above, _CHOOSING):
            return type(above).__name__.upper()
        if isinstance(above, exp.Join):
            return "ON"
        above = above.parent
    return None


def _ties_tables(part: exp.Expr) -> bool:
    tables = {column.table for column in part.find_all(exp.Column)}
    return len(tables) >= _ALTERNATIVES or "" in tables


def describe_condition(node: exp.Expr) -> tuple[str, str] | None:
    """Describes a condition that is the same for each row, or a COUNT of such a value.

    Returns:
        The description and the condition that clears it; None if there is nothing to report.
    """
    if isinstance(node, exp.Count):
        return _describe_improbable_count(node)
    if isinstance(node, exp.Between):
        return _describe_range(node)
    if isinstance(node.parent, type(node)):
        return None
    parts = [part.unnest() for part in node.flatten()]
    if isinstance(node, exp.Or) and _list_rivals(parts, exp.NEQ):
        return "is always true: a value differs from one of them", "AND or NOT IN is used"
    if isinstance(node, exp.And) and _list_rivals(parts, exp.EQ):
        return "is never true: one value cannot equal both", "IN is used"
    return None


def _list_rivals(parts: Sequence[exp.Expr], kind: type[exp.Expr]) -> list[str]:
    """Lists columns that are compared with at least two different constants."""
    values: dict[str, set[str]] = {}
    for part in parts:
        if isinstance(part, kind):
            for side, other in ((part.this, part.expression), (part.expression, part.this)):
                if isinstance(side, exp.Column) and isinstance(other, exp.Literal):
                    values.setdefault(side.sql().lower(), set()).add(other.sql())
    return [column for column, of in values.items() if len(of) >= _ALTERNATIVES]


def _describe_range(node: exp.Between) -> tuple[str, str] | None:
    ends = list(node.iter_expressions())[1:]
    low, high = map(read_constant_number_or_day, ends)
    reversed_ = (
        low is not None and high is not None and type(low) is type(high) and low > high  # type: ignore[operator]
    )
    later, earlier = (exp.Add, *_LATER), (exp.Sub, *_EARLIER)
    reversed_ = (
        reversed_ or _moves_from(ends[0], later, ends[1]) or _moves_from(ends[1], earlier, ends[0])
    )
    if not reversed_ or node.args.get("symmetric"):
        return None
    return "is never true: its lower end is above its upper end", "the lower end comes first"


def _moves_from(node: exp.Expr, kinds: tuple[type[exp.Expr], ...], start: exp.Expr) -> bool:
    """Whether a value is another one and something more, or something less."""
    moved = node.unnest()
    if not isinstance(moved, kinds) or _drop_day_casts(moved.this) != _drop_day_casts(start):
        return False
    by = moved.expression
    return isinstance(by, exp.Expression) and by.find(exp.Neg) is None


def _drop_day_casts(node: exp.Expr) -> exp.Expr:
    return enter_expression(node, exp.Cast, exp.Paren, exp.TsOrDsToDate)


def _describe_improbable_count(node: exp.Count) -> tuple[str, str] | None:
    counted = node.this.unnest() if isinstance(node.this, exp.Expression) else None
    if counted is None or node.expressions or not _is_never_null(counted):
        return None
    return (
        "counts each row: FALSE and 0 are values, and COUNT leaves out only NULL",
        "COUNT_IF is used, or the CASE has no ELSE",
    )


def _is_never_null(node: exp.Expr) -> bool:
    """Whether a value is never NULL, because it is a condition or only has constants as results."""
    if isinstance(node, exp.Not):
        return _is_never_null(node.this.unnest())
    if isinstance(node, exp.Case):
        results = [one.args.get("true") for one in node.args.get("ifs") or ()]
        return all(isinstance(one, exp.Literal) for one in [*results, node.args.get("default")])
    if isinstance(node, exp.If):
        return all(isinstance(node.args.get(name), exp.Literal) for name in ("true", "false"))
    return isinstance(node, _TRUTHS)


_EQUALITIES = (exp.EQ, exp.NEQ)
_FORMATTED = (
    exp.TimeToStr, exp.StrToTime, exp.StrToDate, exp.StrToUnix, exp.UnixToStr, exp.TsOrDsToDate,
)  # fmt: skip
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)
# Functions that give NULL a meaning of its own, or leave it out.
_HANDLING_NULL = (exp.Coalesce, exp.Case, exp.If, exp.Nullif, exp.AggFunc)
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
        for select in query.known_root.selects:
            found.update(_iterate_undone_joins(select, query))
            found.update(_iterate_uncovered_nulls(select, query))
        by_table, queries = self.project.by_table, self.project.queries
        types = ModelValueTypes(by_table, queries)
        origins = ValueOrigins(by_table, queries)
        for node, what, clears in chain(
            iterate_slips(model, query, by_table, types),
            iterate_value_slips(query, origins, types),
            iterate_conversion_slips(model, query, self.project, origins, types),
            iterate_row_slips(model, query, self.project),
            iterate_unit_slips(query, self.project, origins, types),
            iterate_null_slips(query, self.project, types),
            iterate_constant_slips(query, origins, types),
            iterate_misnamed_slips(query, origins, types),
            iterate_join_slips(query, self.project, origins),
            iterate_missing_partner_slips(query, self.project, origins, types),
            iterate_total_slips(query, self.project, origins, types),
            iterate_order_slips(query, self.project, origins, types),
        ):
            found.update([_make_finding(node, query, what, clears)])
        for node, why in MixedTypes(types).find_mixed(query.root):
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


class _ImprobableExpression(NamedTuple):
    text: str
    what: str
    clears: str
    severity: Severity | None
    first_column: str


# The text without the names of tables and the position, and the finding.
_Found = tuple[tuple[str, str], _ImprobableExpression]
_SHOWN = 80


def _make_finding(
    node: exp.Expr, query: ModelQuery, what: str, clears: str, severity: Severity | None = None
) -> _Found:
    """Makes a finding whose subject does not change with the alias of a table."""
    simple = _drop_quotes_and_catalogs(node)
    plain = simple.copy()
    for column in plain.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)
    named = node.find(exp.Column)
    shown, subject = (one.sql(dialect="spark")[:_SHOWN] for one in (simple, plain))
    place = name_query_part(node, query)
    first = named.name if named is not None else shown
    return (subject, place), _ImprobableExpression(shown, what, clears, severity, first)


def _drop_quotes_and_catalogs(node: exp.Expr) -> exp.Expr:
    """Copies an expression without the quotes and catalogs that SQLMesh's rendering adds."""
    plain = node.copy()
    for identifier in plain.find_all(exp.Identifier):
        identifier.set("quoted", False)
    for table in plain.find_all(exp.Table):
        table.set("catalog", None)
    return plain


def _iterate_findings(query: ModelQuery) -> Iterator[_Found]:
    """Yields expressions that are wrong in any place."""
    for node in query.tree.find_all(
        *_EQUALITIES, exp.In, exp.Case, *_FORMATTED, exp.Window, *_CONDITIONS
    ):
        why = _describe_expression(node)
        if why is not None:
            yield _make_finding(node, query, *why)
    # The written query is read, because SQLMesh's rendering adds brackets.
    written = query.written if query.written is not None else query.rendered_as_written
    for node in written.find_all(exp.Or) if written is not None else ():
        loose = find_loose_or(node)
        if loose is not None:
            yield _make_finding(node, query, *loose)


def _describe_expression(node: exp.Expr) -> tuple[str, str] | None:
    if isinstance(node, _FORMATTED):
        return _describe_improbable_format(node)
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
    # With IGNORE NULLS it is the last value so far, which fills gaps.
    function = enter_expression(node.this, exp.RespectNulls)
    unframed = node.args.get("order") is not None and node.args.get("spec") is None
    if isinstance(function, exp.LastValue) and unframed:
        return (
            "ends at the current row, because it has no frame: its last value is the row's own",
            "the frame goes to UNBOUNDED FOLLOWING, or FIRST_VALUE reads the other order",
        )
    return None


def _describe_improbable_format(node: exp.Expr) -> tuple[str, str] | None:
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


def _iterate_undone_joins(select: ScopedSelect, query: ModelQuery) -> Iterator[_Found]:
    """Yields conditions of WHERE that drop the rows that a LEFT JOIN keeps."""
    outer = {join.alias for join in select.joins if join.node.side == "LEFT" and join.adds_columns}
    for part in select.list_clause_conditions("where") if outer else ():
        # Anyone who writes IS NOT NULL knows which rows it drops.
        is_meant = isinstance(part, exp.Not) and isinstance(part.this.unnest(), exp.Is)
        if not is_meant and any(c.table.lower() in outer for c in list_filled_columns(part)):
            yield _make_finding(
                part,
                query,
                "in WHERE drops each row for which the LEFT JOIN found no partner, so it is an "
                "inner join",
                "the condition is in ON, or the join is an INNER JOIN",
            )


def _iterate_uncovered_nulls(select: ScopedSelect, query: ModelQuery) -> Iterator[_Found]:
    """Yields arithmetic with a column of a LEFT JOIN whose NULL is replaced in another column."""
    outer = {
        join.alias
        for join in select.joins
        if join.node.side in {"LEFT", "FULL"} and join.adds_columns
    }
    covered = {
        node.this
        for _, item in (select.results if outer else ())
        for node in item.find_all(exp.Coalesce)
        if isinstance(node.this, exp.Column) and node.this.table.lower() in outer
    }
    for _, item in select.results if covered else ():
        for node in item.find_all(*_ARITHMETIC):
            is_part = isinstance(node.parent, (*_ARITHMETIC, exp.Paren))
            if is_part and node.find_ancestor(*_ARITHMETIC):
                continue
            if node.find_ancestor(*_HANDLING_NULL, exp.Select) is not select.node:
                continue
            bare = next((one for one in _iterate_operands(node) if one in covered), None)
            if bare is not None:
                yield _make_finding(
                    node,
                    query,
                    f"is NULL if the join finds no partner: `{bare.name}` is NULL there, "
                    "and another column of this query replaces that",
                    "COALESCE is used here, too",
                )


def _iterate_operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the operands of an arithmetic expression, through brackets and casts."""
    if isinstance(node, _ARITHMETIC):
        yield from _iterate_operands(node.this)
        yield from _iterate_operands(node.expression)
    elif isinstance(node, exp.Paren | exp.Cast):
        yield from _iterate_operands(node.this)
    else:
        yield node
