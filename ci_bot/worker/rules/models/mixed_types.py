"""Values of different types that a query compares or puts into one column: Spark casts one of them
in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from ci_bot.worker.rules.models.value_types import ValueTypes, name_family
from ci_bot.worker.sql import iterate_selects, list_outer_scopes

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
