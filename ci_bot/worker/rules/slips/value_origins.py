"""What a value is made of, through CTEs, subqueries and the models that a query reads; and the
texts that it can be, as functions, constants, audits and seeds of the project show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from ci_bot.worker.sql import ModelQueries, ScopedQuery, ScopedSelect, list_column_names, table_name
from ci_bot.worker.sqlmesh_compat import is_seed_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SeedModel

# A value is followed through at most this many queries.
_MOST_LEVELS = 12
# A longer seed is no list of codes.
_LONGEST_SEED = 50_000
_PASSING = (
    exp.Paren, exp.Max, exp.Min, exp.AnyValue, exp.First, exp.Last, exp.FirstValue, exp.LastValue,
    exp.Window, exp.IgnoreNulls, exp.RespectNulls, exp.Distinct, exp.Nullif,
)  # fmt: skip
# The letters of a text stay as they are.
_KEEPING_CASE = (exp.Trim, exp.Substring, exp.Left, exp.Right)
_Case = Literal["upper", "lower"]


@dataclass(frozen=True)
class KnownTexts:
    """The texts that a value can be beside NULL: some of a list, or any in letters of one case.

    Attributes:
        why: the expression or declaration that shows it.
    """

    why: str
    texts: frozenset[str] | None = None
    case: _Case | None = None

    def includes_text(self, text: str) -> bool:
        if self.texts is not None:
            return text in self.texts
        return text == (text.upper() if self.case == "upper" else text.lower())

    def add_texts(self, other: KnownTexts) -> KnownTexts | None:
        """The texts of both; None if that may be any text."""
        if self.texts is not None and other.texts is not None:
            return replace(self, texts=self.texts | other.texts)
        cased, listed = (self, other) if self.texts is None else (other, self)
        if listed.texts is None:
            return self if self.case == other.case else None
        return cased if all(map(cased.includes_text, listed.texts)) else None


class ValueOrigins:
    """Follows values to the expressions that make them, in the queries of a project."""

    def __init__(self, by_table: Mapping[str, Model], queries: ModelQueries) -> None:
        self._by_table = by_table
        self._queries = queries

    def find_expression(
        self, select: ScopedSelect, node: exp.Expr, depth: int = 0
    ) -> tuple[ScopedSelect, exp.Expr]:
        """Finds the expression that makes a value, and the SELECT that it is in."""
        if not isinstance(node, exp.Column) or depth >= _MOST_LEVELS:
            return select, node
        query = self._find_query(select, node)
        branch = query.only_branch if query is not None else None
        item = branch.find_result(node.name) if branch is not None else None
        if branch is None or item is None:
            return select, node
        return self.find_expression(branch, item, depth + 1)

    def _find_query(self, select: ScopedSelect, column: exp.Column) -> ScopedQuery | None:
        source = select.find_source(column)
        if not isinstance(source, exp.Table):
            return source
        model = self._by_table.get(table_name(source))
        query = self._queries.query_of(model) if model is not None else None
        return query.root if query is not None else None

    def find_largest_number_of_seed(
        self, select: ScopedSelect, column: exp.Column
    ) -> Decimal | None:
        """Finds the largest number in a column of a seed; None for another table."""
        source = select.find_source(column)
        model = self._by_table.get(table_name(source)) if isinstance(source, exp.Table) else None
        if model is None or not is_seed_model(model):
            return None
        kind = (model.columns_to_types or {}).get(column.name.lower())
        if kind is None or kind.this not in exp.DataType.NUMERIC_TYPES:
            return None
        numbers = [Decimal(str(value)) for value in _read_seed_column(model, column.name.lower())]
        return max((one for one in numbers if one.is_finite()), default=None)

    def find_texts(  # noqa: PLR0911 - one branch for each kind of node reads best
        self, select: ScopedSelect, node: exp.Expr, depth: int = 0
    ) -> KnownTexts | None:
        """Finds the texts that a value can be; None if nothing limits them."""
        if isinstance(node, exp.Literal):
            shown = f"'{node.name}'"
            return KnownTexts(shown, frozenset({node.name})) if node.is_string else None
        if isinstance(node, exp.Upper | exp.Lower):
            case: _Case = "upper" if isinstance(node, exp.Upper) else "lower"
            return KnownTexts(f"made by {case.upper()}", case=case)
        if isinstance(node, exp.Column):
            return self._find_texts_of_column(select, node, depth)
        if isinstance(node, exp.Cast | exp.TryCast):
            is_text = node.to.this in exp.DataType.TEXT_TYPES
            return self.find_texts(select, node.this, depth) if is_text else None
        if isinstance(node, exp.Case | exp.If | exp.Coalesce):
            return self._find_texts_of_any(select, _list_alternatives(node), depth)
        if isinstance(node, _PASSING) and isinstance(node.this, exp.Expression):
            return self.find_texts(select, node.this, depth)
        if isinstance(node, _KEEPING_CASE):
            found = self.find_texts(select, node.this, depth)
            return found if found is not None and found.texts is None else None
        return None

    def _find_texts_of_any(
        self, select: ScopedSelect, nodes: Iterable[exp.Expr], depth: int
    ) -> KnownTexts | None:
        known: KnownTexts | None = None
        for node in nodes:
            if isinstance(node, exp.Null):
                continue
            found = self.find_texts(select, node, depth)
            known = found if known is None or found is None else known.add_texts(found)
            if known is None:
                return None
        return known

    def _find_texts_of_column(
        self, select: ScopedSelect, column: exp.Column, depth: int
    ) -> KnownTexts | None:
        source, name = select.find_source(column), column.name.lower()
        if depth >= _MOST_LEVELS or source is None:
            return None
        if isinstance(source, exp.Table):
            model = self._by_table.get(table_name(source))
            declared = _find_declared_texts(model, name) if model is not None else None
            if declared is not None:
                return declared
        query = self._find_query(select, column)
        found: KnownTexts | None = None
        for number, branch in enumerate(query.branches if query is not None else ()):
            item = branch.find_result(name)
            texts = self.find_texts(branch, item, depth + 1) if item is not None else None
            found = (
                texts if number == 0 or texts is None or found is None else found.add_texts(texts)
            )
            if found is None:
                return None
        return found


def _list_alternatives(node: exp.Expr) -> list[exp.Expr]:
    """Lists the values of which an expression gives one; a missing ELSE gives NULL."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.If):
        return [node.args["true"], node.args.get("false") or exp.null()]
    branches = [branch.args["true"] for branch in node.args.get("ifs") or ()]
    return [*branches, node.args.get("default") or exp.null()]


def _find_declared_texts(model: Model, name: str) -> KnownTexts | None:
    """Finds the texts that a blocking audit accepts, or that the file of a seed has."""
    for audit, arguments in model.audits:
        listed = arguments.get("is_in")
        if audit.lower() != "accepted_values" or audit in model.audit_definitions:
            continue
        if list_column_names(arguments.get("column")) != [name] or not isinstance(
            listed, exp.Tuple | exp.Array | exp.Paren
        ):
            continue
        values = [listed.this] if isinstance(listed, exp.Paren) else listed.expressions
        if values and set(arguments) == {"column", "is_in"} and all(map(_is_text, values)):
            texts = frozenset(value.name for value in values)
            return KnownTexts("limited by the audit ACCEPTED_VALUES", texts)
    return _find_texts_of_seed(model, name) if is_seed_model(model) else None


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _find_texts_of_seed(model: SeedModel, name: str) -> KnownTexts | None:
    kind = (model.columns_to_types or {}).get(name)
    if kind is None or kind.this not in exp.DataType.TEXT_TYPES:
        return None
    texts = frozenset(map(str, _read_seed_column(model, name)))
    return KnownTexts(f"a column of the seed `{model.name}`", texts) if texts else None


def _read_seed_column(model: SeedModel, name: str) -> list[Any]:
    """Reads the values of a seed's column; empty if the file is too long or cannot be read."""
    if not model.is_hydrated or len(model.seed.content) > _LONGEST_SEED:
        return []
    try:
        frames: Iterable[Any] = model.render_seed()
        return [row for frame in frames for row in frame[name] if row is not None]
    except Exception:  # pandas raises many types; `seed-broken` reports a file that it cannot read
        return []
