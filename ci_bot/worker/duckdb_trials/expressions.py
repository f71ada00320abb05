"""Operators of Spark as DuckDB's text, with their types.

An operator without a rule is not tried.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from ci_bot.worker.duckdb_trials.arithmetic import write_duckdb_arithmetic, write_duckdb_cast
from ci_bot.worker.duckdb_trials.functions import AGGREGATE_NAMES, PLAIN_PATTERN
from ci_bot.worker.duckdb_trials.query_scopes import (
    QueryScope,
    TypedText,
    WrittenRelation,
    select_from_duckdb,
)
from ci_bot.worker.duckdb_trials.value_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UntriedError,
    ValueType,
    find_common_duckdb_type,
    make_duckdb_decimal,
    read_spark_type,
)

_COMPARED = {exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_COMPUTED = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_INT_LIMIT, _BIGINT_LIMIT = 2**31, 2**63
_DATE_UNITS = {"day", "week", "month", "year"}
_TIME_UNITS = {*_DATE_UNITS, "hour", "minute", "second"}


def quote_duckdb_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def name_duckdb_construct(node: exp.Expr) -> str:
    """Names a construct for a sentence."""
    if isinstance(node, exp.Anonymous):
        return f"{str(node.this).lower()}()"
    return node.key.upper()


class DuckdbOperatorWriter(ABC):
    """Writes expressions; `depends_on_order` once a result may depend on the order of rows."""

    def __init__(self, write_query: Callable[[Any, QueryScope], WrittenRelation]) -> None:
        self._write_query = write_query
        self.depends_on_order = False
        self._windows: dict[str, exp.Expr] = {}

    def write_expression(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        """Returns the text and type of an expression.

        Raises:
            UntriedError: There is no rule for a part of it.
        """
        if isinstance(node, exp.Binary) and type(node) in _COMPUTED:
            return self._write_computed(node, scope)
        if isinstance(node, exp.Binary) and type(node) in _COMPARED:
            sides = (
                self.write_expression(node.this, scope),
                self.write_expression(node.expression, scope),
            )
            if type(node) not in {exp.EQ, exp.NEQ}:
                refuse_duckdb_order_of_parts(sides[0].kind)
            one, other = self.bring_together(*sides)
            return TypedText(f"({one} {_COMPARED[type(node)]} {other})", BOOLEAN)
        rule = getattr(self, f"_write_{type(node).__name__.lower()}", None)
        if rule is None:
            raise UntriedError(name_duckdb_construct(node))
        found: TypedText = rule(node, scope)
        return found

    def write_condition(self, node: exp.Expr, scope: QueryScope) -> str:
        found = self.write_expression(node, scope)
        if found.kind.name not in {"boolean", "null"}:
            raise UntriedError(f"a condition of type {found.kind}")
        return found.text

    # Leaves.

    def _write_paren(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self.write_expression(node.this, scope)

    def _write_alias(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self.write_expression(node.this, scope)

    def _write_null(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return TypedText("NULL", NULL)

    def _write_boolean(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return TypedText("TRUE" if node.this else "FALSE", BOOLEAN)

    def _write_literal(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        text = str(node.this)
        if node.is_string:
            return TypedText(quote_duckdb_text(text), STRING, text)
        if re.fullmatch(r"[0-9]+", text):
            if int(text) >= _BIGINT_LIMIT:
                raise UntriedError(f"the number {text}")
            kind = INT if int(text) < _INT_LIMIT else BIGINT
            return TypedText(
                f"{text}::{kind.duckdb}", kind, text, make_duckdb_decimal(len(str(int(text))), 0)
            )
        if match := re.fullmatch(r"([0-9]*)\.([0-9]*)", text):
            whole, part = match[1].lstrip("0"), match[2]
            kind = make_duckdb_decimal(max(len(whole) + len(part), 1), len(part))
            return TypedText(f"CAST('{text}' AS {kind.duckdb})", kind, text)
        if re.fullmatch(r"[0-9.]+[eE][+-]?[0-9]+", text):
            return TypedText(f"CAST('{text}' AS DOUBLE)", DOUBLE, text)
        raise UntriedError(f"the number {text}")

    def _write_column(self, node: exp.Column, scope: QueryScope) -> TypedText:
        if isinstance(node.this, exp.Star):
            raise UntriedError("a star inside an expression")
        first, *fields = [part.name.lower() for part in node.parts]
        if fields and any(source.alias == first for source in scope.list_sources()):
            found = scope.find_column(first, fields.pop(0))
        else:
            found = scope.find_column("", first)
        for name in fields:
            found = write_duckdb_field(found, name)
        return found

    # Operators.

    def _write_computed(self, node: exp.Binary, scope: QueryScope) -> TypedText:
        sign = _COMPUTED[type(node)]
        if isinstance(node.expression, exp.Interval):
            return self._write_moved(sign, node, scope)
        one = self.write_expression(node.this, scope)
        other = self.write_expression(node.expression, scope)
        if sign == "-" and (difference := self._write_difference(one, other)) is not None:
            return difference
        if sign in {"+", "-"} and one.kind == TIMESTAMP and other.kind.is_interval:
            return TypedText(f"({one.text} {sign} {other.text})", TIMESTAMP)
        if sign in {"+", "-"} and one.kind == DATE and other.kind.is_whole:
            return TypedText(
                f"({one.text} {sign} {write_duckdb_cast(other.text, other.kind, INT)})", DATE
            )
        kinds = [one.kind, other.kind]
        if "decimal" in {kind.name for kind in kinds}:
            kinds = [side.least or side.kind for side in (one, other)]
        return TypedText(*write_duckdb_arithmetic(sign, one.text, kinds[0], other.text, kinds[1]))

    @abstractmethod
    def _write_difference(self, one: TypedText, other: TypedText) -> TypedText | None:
        """Writes the interval between two dates or times; None for other values."""

    def _write_moved(self, sign: str, node: exp.Expr, scope: QueryScope) -> TypedText:
        """Writes a date or time plus or minus an interval."""
        base, interval = self.write_expression(node.this, scope), node.expression
        unit = str(interval.args.get("unit") or "").lower().removesuffix("s")
        amount = interval.this
        if (
            sign not in {"+", "-"}
            or not isinstance(amount, exp.Literal)
            or (not re.fullmatch(r"[0-9]{1,4}", amount.name))
        ):
            raise UntriedError("an interval that is no plain number of units")
        if base.kind == DATE and unit in _DATE_UNITS:
            return TypedText(
                f"CAST({base.text} {sign} INTERVAL {amount.name} {unit} AS DATE)", DATE
            )
        if base.kind.name in {"date", "timestamp"} and unit in _TIME_UNITS:
            text = write_duckdb_cast(base.text, base.kind, TIMESTAMP)
            return TypedText(f"({text} {sign} INTERVAL {amount.name} {unit})", TIMESTAMP)
        raise UntriedError(f"{base.kind} {sign} an interval of {unit or 'no unit'}")

    def _write_neg(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        inner = self.write_expression(node.this, scope)
        if not inner.kind.is_numeric:
            raise UntriedError(f"minus before {inner.kind}")
        literal = f"-{inner.literal}" if inner.literal is not None else None
        return TypedText(f"(-{inner.text})", inner.kind, literal, inner.least)

    def _write_bitwiseand(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_bits("{0} & {1}", node, scope)

    def _write_bitwiseor(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_bits("{0} | {1}", node, scope)

    def _write_bitwisexor(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_bits("xor({0}, {1})", node, scope)

    def _write_bits(self, text: str, node: exp.Expr, scope: QueryScope) -> TypedText:
        sides = (
            self.write_expression(node.this, scope),
            self.write_expression(node.expression, scope),
        )
        kind, texts = self.unify_types(sides)
        if not kind.is_whole:
            raise UntriedError(f"{name_duckdb_construct(node)} of {kind}")
        return TypedText(f"({text.format(*texts)})", kind)

    def _write_not(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return TypedText(f"(NOT {self.write_condition(node.this, scope)})", BOOLEAN)

    def _write_and(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_connected("AND", node, scope)

    def _write_or(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_connected("OR", node, scope)

    def _write_connected(self, word: str, node: exp.Expr, scope: QueryScope) -> TypedText:
        parts = [
            self.write_condition(part, scope) for part in _list_duckdb_operands(node, type(node))
        ]
        return TypedText(f"({f' {word} '.join(parts)})", BOOLEAN)

    def _write_is(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        word = {exp.Null: "NULL", exp.Boolean: str(node.expression.this).upper()}.get(
            type(node.expression)
        )
        if word is None:
            raise UntriedError("IS")
        return TypedText(f"({self.write_expression(node.this, scope).text} IS {word})", BOOLEAN)

    def _write_nullsafeeq(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        one, other = self.bring_together(
            self.write_expression(node.this, scope), self.write_expression(node.expression, scope)
        )
        return TypedText(f"({one} IS NOT DISTINCT FROM {other})", BOOLEAN)

    def _write_nullsafeneq(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return TypedText(f"(NOT {self._write_nullsafeeq(node, scope).text})", BOOLEAN)

    def _write_between(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        value = self.write_expression(node.this, scope)
        bounds = (self.write_expression(node.args[name], scope) for name in ("low", "high"))
        (first, low), (second, high) = (self.bring_together(value, bound) for bound in bounds)
        return TypedText(f"({first} >= {low} AND {second} <= {high})", BOOLEAN)

    def _write_in(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        value = self.write_expression(node.this, scope)
        query = node.args.get("query")
        if query is not None:
            _refuse_duckdb_total_of_outer_rows(query)
            inner = self._write_query(
                query.this if isinstance(query, exp.Subquery) else query, scope
            )
            if len(inner.columns) != 1:
                raise UntriedError("IN with several columns")
            one, other = self.bring_together(value, TypedText('q."c"', inner.columns[0][1]))
            chosen = select_from_duckdb(other, f"({inner.text}) AS q(c)")
            return TypedText(f"({one} IN ({chosen}))", BOOLEAN)
        if node.args.get("field") is not None or not node.expressions:
            raise UntriedError("IN")
        items = [self.write_expression(item, scope) for item in node.expressions]
        _kind, texts = self.unify_types([value, *items])
        return TypedText(f"({texts[0]} IN ({', '.join(texts[1:])}))", BOOLEAN)

    def _write_like(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_pattern_match("LIKE", node, scope)

    def _write_ilike(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_pattern_match("ILIKE", node, scope)

    def _write_escape(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        word = {exp.Like: "LIKE", exp.ILike: "ILIKE"}.get(type(node.this))
        if word is None or len(node.expression.name) != 1:
            raise UntriedError("ESCAPE")
        return self._write_pattern_match(word, node.this, scope, node.expression.name)

    def _write_pattern_match(
        self, word: str, node: exp.Expr, scope: QueryScope, escape: str = "\\"
    ) -> TypedText:
        if isinstance(node.expression, exp.Any | exp.All):
            listed = node.expression.this
            matched = [
                self._write_pattern_match(
                    word, type(node)(this=node.this, expression=one), scope, escape
                ).text
                for one in (listed.expressions or [listed.unnest()])
            ]
            between = " OR " if isinstance(node.expression, exp.Any) else " AND "
            return TypedText(f"({between.join(matched)})", BOOLEAN)
        value = self.write_expression(node.this, scope)
        pattern = self.write_expression(node.expression, scope)
        sign = re.escape(escape)
        known = rf"(?:[^{sign}\\]|{sign}[%_{sign}])*"
        if value.kind != STRING or not re.fullmatch(known, pattern.literal or "\\", re.DOTALL):
            raise UntriedError(f"{word} with a pattern that is no plain text")
        return TypedText(
            f"({value.text} {word} {pattern.text} ESCAPE {quote_duckdb_text(escape)})", BOOLEAN
        )

    def _write_regexplike(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        value = self.write_expression(node.this, scope)
        pattern = self.write_expression(node.expression, scope)
        if value.kind != STRING or not re.fullmatch(PLAIN_PATTERN, pattern.literal or "\0"):
            raise UntriedError("RLIKE with a pattern of other signs")
        return TypedText(f"regexp_matches({value.text}, {pattern.text})", BOOLEAN)

    def _write_dpipe(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        parts = [
            self.coerce_value(self.write_expression(part, scope), STRING)
            for part in _list_duckdb_operands(node, exp.DPipe)
        ]
        return TypedText(f"({' || '.join(parts)})", STRING)

    def _write_cast(self, node: exp.Cast, scope: QueryScope) -> TypedText:
        inner, kind = self.write_expression(node.this, scope), read_spark_type(node.to)
        return TypedText(write_duckdb_cast(inner.text, inner.kind, kind), kind)

    def _write_trycast(self, node: exp.TryCast, scope: QueryScope) -> TypedText:
        return self._write_cast(node, scope)

    def _write_case(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        compared = self.write_expression(node.this, scope) if node.this is not None else None
        conditions, values = [], []
        for branch in node.args["ifs"]:
            if compared is None:
                conditions.append(self.write_condition(branch.this, scope))
            else:
                conditions.append(
                    " = ".join(
                        self.bring_together(compared, self.write_expression(branch.this, scope))
                    )
                )
            values.append(self.write_expression(branch.args["true"], scope))
        default = node.args.get("default")
        values.append(
            self.write_expression(default, scope)
            if default is not None
            else TypedText("NULL", NULL)
        )
        kind, texts = self.unify_types(values)
        whens = " ".join(
            f"WHEN {condition} THEN {text}"
            for condition, text in zip(conditions, texts, strict=False)
        )
        return TypedText(f"(CASE {whens} ELSE {texts[-1]} END)", kind)

    def _write_if(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        return self._write_case(exp.Case(ifs=[node], default=node.args.get("false")), scope)

    def _write_bracket(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        items = node.expressions
        value = self.write_expression(node.this, scope)
        if len(items) == 1 and value.kind.name == "map":
            return self.write_item(value, self.write_expression(items[0], scope))
        if value.kind.item is None or len(items) != 1:
            raise UntriedError(f"an item of {value.kind}")
        place = self.write_expression(items[0], scope)
        if not place.kind.is_whole:
            raise UntriedError(f"an item by {place.kind}")
        text = f"(CASE WHEN {place.text} >= 0 THEN {value.text}[{place.text} + 1] END)"
        return TypedText(text, value.kind.item)

    @abstractmethod
    def write_item(self, value: TypedText, key: TypedText) -> TypedText:
        """Writes the value of a map for a key; NULL if the map has none."""

    # Subqueries.

    def _write_subquery(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        inner = self._write_query(node.this, scope)
        if len(inner.columns) != 1:
            raise UntriedError("a subquery of several columns")
        return TypedText(f"({inner.text})", inner.columns[0][1])

    def _write_exists(self, node: exp.Expr, scope: QueryScope) -> TypedText:
        _refuse_duckdb_total_of_outer_rows(node.this)
        return TypedText(f"EXISTS ({self._write_query(node.this, scope).text})", BOOLEAN)

    def write_ordered(self, node: exp.Expr, scope: QueryScope) -> str:
        """Writes a key of ORDER BY, with NULL in the place that Spark gives it."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        descends = bool(node.args.get("desc")) if isinstance(node, exp.Ordered) else False
        first = node.args.get("nulls_first") if isinstance(node, exp.Ordered) else None
        first = (not descends) if first is None else bool(first)
        found = self.write_expression(inner, scope)
        refuse_duckdb_order_of_parts(found.kind)
        text = found.text
        return f"{text} {'DESC' if descends else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"

    # Types of values that are used together.

    def coerce_value(self, value: TypedText, kind: ValueType, name: str = "") -> str:
        """Writes a value as a type to which Spark converts it automatically."""
        source = value.kind
        is_known = (
            source == kind
            or source.name == "null"
            or (kind == STRING and source.name in {"date", "timestamp", "decimal", "int", "bigint"})
            or (kind.is_numeric and source.is_numeric and (kind == DOUBLE or source.is_whole))
            or (
                kind.name in {"date", "timestamp"}
                and source.name in {"date", "timestamp", "string"}
            )
        )
        if not is_known:
            raise UntriedError(f"{name + '() of ' if name else ''}{source} as {kind}")
        return write_duckdb_cast(value.text, source, kind)

    def bring_together(self, one: TypedText, other: TypedText) -> tuple[str, str]:
        """Writes both values as the type in which Spark compares them."""
        kind = find_common_duckdb_type(one.kind, other.kind)
        if kind is None:
            kinds = {one.kind.name, other.kind.name}
            text, value = (one, other) if one.kind == STRING else (other, one)
            if ("string" in kinds and kinds & {"date", "timestamp"}) or (
                "string" in kinds
                and value.kind.is_whole
                and re.fullmatch(r"-?[0-9]{1,9}", text.literal or "")
            ):
                kind = value.kind
            else:
                raise UntriedError(f"a comparison of {one.kind} with {other.kind}")
        return write_duckdb_cast(one.text, one.kind, kind), write_duckdb_cast(
            other.text, other.kind, kind
        )

    def unify_types(self, values: Sequence[TypedText]) -> tuple[ValueType, list[str]]:
        """Returns the type that Spark makes of several values, and their texts as that type."""
        kind = NULL
        for value in values:
            found = find_common_duckdb_type(kind, value.kind)
            if (
                found is None
                and STRING in (kind, value.kind)
                and {kind.name, value.kind.name}
                <= ({"string", "date", "timestamp", "int", "bigint", "decimal"})
            ):
                found = STRING
            if found is None:
                raise UntriedError(f"{kind} beside {value.kind}")
            kind = found
        return kind, [write_duckdb_cast(value.text, value.kind, kind) for value in values]


def refuse_duckdb_order_of_parts(kind: ValueType) -> None:
    """Refuses to order values with parts: the engines put NULL in them in different places."""
    if kind.parts or (kind.item is not None and kind.item.parts):
        raise UntriedError(f"an order of {kind}")


def write_duckdb_field(value: TypedText, name: str) -> TypedText:
    """Writes a struct's field.

    Raises:
        UntriedError: The struct has no field of this name.
    """
    kind = value.kind.find_part(name)
    return TypedText(f"struct_extract({value.text}, {quote_duckdb_text(name)})", kind)


def _refuse_duckdb_total_of_outer_rows(query: exp.Expr) -> None:
    """Refuses a total without GROUP BY in EXISTS or IN, over rows that an outer query chooses.

    If no rows are left, the total is a row by the standard. Spark 3.5 reads the query as a semi
    join and finds none (the pair `equal_rewrites.exists_of_a_total` shows it).
    """
    select = query.unnest()
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return
    own = {part.alias_or_name for part in select.find_all(exp.Table, exp.Subquery, exp.CTE)}
    calls = [call for item in select.expressions for call in item.find_all(exp.Func)]
    totals = any(
        isinstance(call, exp.AggFunc) or call.name.lower() in AGGREGATE_NAMES for call in calls
    )
    if totals and any(c.table and c.table not in own for c in select.find_all(exp.Column)):
        raise UntriedError("a total in EXISTS or IN over rows of the query around it")


def _list_duckdb_operands(node: exp.Expr, kind: Any) -> list[exp.Expr]:
    """Lists the operands of a chain of one operator, without recursion: chains may be long."""
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        one = pending.pop()
        if type(one) is kind:
            pending += [one.expression, one.this]
        else:
            found.append(one)
    return found
