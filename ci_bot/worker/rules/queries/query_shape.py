"""The shape of a query: joins without a condition, limits, recursion, unions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.declared_keys import (
    iterate_equalities,
    list_column_aliases_and_names,
    list_unique_keys,
)
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import SAME_COLUMN_ORDER, RuleObservation
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedJoin,
    ScopedQuery,
    ScopedSelect,
    name_query_part,
    split_conditions,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import FROM

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_GENERATORS = (exp.Unnest, exp.Explode, exp.Lateral, exp.Values, exp.GenerateSeries)
_BOUNDS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


@on_model
class CrossJoin(ModelRule):
    """A join without a condition multiplies rows."""

    spec = find_rule("cross-join")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not any(
            _may_join_be_untied(join) for join in query.tree.find_all(exp.Join)
        ):
            return
        for node, select in iterate_unconditional_joins(query):
            target = self.project.name_of_source(select, node.alias_or_name)
            yield self.make_observation(
                model,
                f"`{target}` is joined without a condition that ties it to the other tables, so "
                "every row meets every row.",
                "the join has a condition on both sides, or the other side has one row",
                subject=[target],
                anchors=("CROSS JOIN", f"JOIN {target}", target.rpartition(".")[2], "JOIN"),
            )


def _may_join_be_untied(join: exp.Join) -> bool:
    """Whether a join may lack a condition: its ON has no equality of two columns."""
    on = join.args.get("on")
    return on is None or not any(
        isinstance(test.this, exp.Column) and isinstance(test.expression, exp.Column)
        for test in on.find_all(exp.EQ)
    )


def iterate_unconditional_joins(query: ModelQuery) -> Iterator[tuple[exp.Expr, ScopedSelect]]:
    """Yields (joined source, its SELECT) of each join that pairs every row with every other row."""
    for select in query.known_root.selects:
        left = [select.start] if select.start is not None else []
        for join in select.joins if left else ():
            if (
                not _is_join_tied(join, select, left)
                and not _has_source_one_row(join.target, select)
                and not all(_has_source_one_row(item, select) for item in left)
            ):
                yield join.target, select
            left.append(join.target)


def _is_join_tied(join: ScopedJoin, select: ScopedSelect, left: list[exp.Expr]) -> bool:
    if join.using or join.node.method == "NATURAL" or isinstance(join.target, _GENERATORS):
        return True
    others = {item.alias_or_name.lower() for item in left}
    for part in (*join.conditions, *select.list_clause_conditions("where")):
        tables = {alias for alias, _ in list_column_aliases_and_names(part)}
        if "" in tables or (join.aliases & tables and tables & others):
            return True
    # A correlated LATERAL has its condition inside.
    return isinstance(join.target, exp.Subquery) and any(
        alias in others for alias, _ in list_column_aliases_and_names(join.target)
    )


def _has_source_one_row(node: exp.Expr, select: ScopedSelect) -> bool:
    """Whether a source has at most one row, or is a written or generated list."""
    source = select.sources.get(node.alias_or_name.lower())
    expression = source.expression if isinstance(source, ScopedQuery) else node
    if isinstance(expression, _GENERATORS) or isinstance(node, _GENERATORS):
        return True
    if not isinstance(source, ScopedQuery) or not isinstance(expression, exp.Select):
        return False
    return expression.find(exp.Table) is None or _gives_one_row(expression)


def _gives_one_row(select: exp.Select) -> bool:
    """Whether a query has at most one row for any input: LIMIT 1, a total, or no table."""
    limit = select.args.get("limit")
    if limit is not None and getattr(limit, "expression", None) is not None:
        return str(limit.expression.name) == "1"
    totals = (
        node.find_ancestor(exp.Window) is None and node.find_ancestor(exp.Select) is select
        for item in select.expressions
        for node in item.find_all(exp.AggFunc)
    )
    return select.args.get(FROM) is None or (select.args.get("group") is None and any(totals))


@on_model
class LimitInModel(ModelRule):
    """LIMIT keeps arbitrary rows."""

    spec = find_rule("limit-in-model")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Limit):
            return
        for limit in query.tree.find_all(exp.Limit):
            limited = limit.parent
            if not isinstance(limited, exp.Query) or (
                limit.expression is not None and limit.expression.name == "1"
            ):
                continue
            ranked = limited.args.get("order") is not None
            count = limit.expression.sql() if limit.expression is not None else "n"
            yield self.make_observation(
                model,
                f"LIMIT {count} after an ORDER BY keeps the first rows of "
                + ("each interval." if model.kind.is_incremental else "the result.")
                if ranked
                else f"LIMIT {count} keeps an arbitrary choice of rows"
                + (" of every interval." if model.kind.is_incremental else "."),
                "the LIMIT is gone, or the ranking is what the model is for",
                subject=[name_query_part(limit, query)],
                severity="low" if ranked and not model.kind.is_incremental else None,
                anchors=("LIMIT",),
            )


@on_model
class UnboundedRecursion(ModelRule):
    """A recursion without a bound ends only if the data have no cycle."""

    spec = find_rule("unbounded-recursion")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        for with_ in query.tree.find_all(exp.With):
            if not with_.args.get("recursive"):
                continue
            for cte in with_.expressions:
                if _is_model_cte_recursive(cte) and not _is_model_cte_bounded(cte):
                    yield self.make_observation(
                        model,
                        f"Nothing bounds the recursion of `{cte.alias}`: a cycle in the data, or a "
                        "condition that stays true, never ends.",
                        "the recursive part counts its depth and stops at a number, or keeps the "
                        "path and leaves out what is on it",
                        subject=[
                            ", ".join(
                                sorted(
                                    map(
                                        self.project.name_of_table,
                                        _list_tables_stored_under_cte(cte),
                                    )
                                )
                            )
                            or "itself"
                        ],
                        anchors=("RECURSIVE", cte.alias),
                    )


def _list_tables_stored_under_cte(cte: exp.Expr) -> set[str]:
    """Lists the stored tables that a CTE reads, without the CTE itself."""
    return {table_name(table) for table in cte.this.find_all(exp.Table)} - {cte.alias.lower()}


def _list_cte_members(cte: exp.Expr) -> list[exp.Query]:
    union = cte.this
    if not isinstance(union, exp.SetOperation):
        return []
    return [
        side
        for side in (union.left, union.right)
        if any(table.name.lower() == cte.alias.lower() for table in side.find_all(exp.Table))
    ]


def _is_model_cte_recursive(cte: exp.Expr) -> bool:
    return bool(_list_cte_members(cte))


def _is_model_cte_bounded(cte: exp.Expr) -> bool:
    if (
        isinstance(cte.this, exp.Union)
        and cte.this.args.get("distinct")
        and not _does_cte_compute_values(cte)
    ):
        return True  # equal rows are dropped, so it ends if there are finitely many values
    return all(_does_recursion_stop(member, cte.alias.lower()) for member in _list_cte_members(cte))


def _does_cte_compute_values(cte: exp.Expr) -> bool:
    return any(
        not isinstance(item.unalias(), exp.Column | exp.Literal)
        for member in _list_cte_members(cte)
        for item in member.selects
    )


def _does_recursion_stop(member: exp.Expr, name: str) -> bool:
    own = {name} | {
        table.alias_or_name.lower()
        for table in member.find_all(exp.Table)
        if table.name.lower() == name
    }
    conditions = [where.this for where in member.find_all(exp.Where)]
    conditions += [
        join.args["on"] for join in member.find_all(exp.Join) if join.args.get("on") is not None
    ]
    for condition in conditions:
        for test in condition.find_all(*_BOUNDS):
            columns = list(test.find_all(exp.Column))
            if columns and all(
                column.table.lower() in own or not column.table for column in columns
            ):
                return True
        for test in condition.find_all(exp.Not):
            # The path so far does not contain the next step.
            if test.find(exp.ArrayContains, exp.In, exp.Like, exp.StrPosition, exp.Exists):
                return True
        if any(
            test.find(exp.StrPosition, exp.ArrayContains) for test in condition.find_all(exp.EQ)
        ):
            return True
    return False


@on_model
class UnionColumnOrder(ModelRule):
    """A union pairs columns by position, not by name."""

    spec = find_rule("union-column-order")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        for union in query.tree.find_all(exp.SetOperation):
            if union.args.get("by_name"):
                continue
            moved = list_moved_names(union)
            if moved:
                yield self.make_observation(
                    model,
                    "The branches of a UNION order their columns differently "
                    f"({quote_names(moved)}): values end up in each other's columns.",
                    SAME_COLUMN_ORDER,
                    subject=[", ".join(sorted(moved))],
                    anchors=("UNION", "EXCEPT", "INTERSECT"),
                )


def list_moved_names(union: exp.SetOperation) -> list[str]:
    """Lists the columns that both branches have, at different positions."""
    left, right = _list_names_of_union_side(union.left), _list_names_of_union_side(union.right)
    if sorted(left) != sorted(right) or len(set(left)) != len(left):
        return []
    return [a for a, b in zip(left, right, strict=True) if a != b]


def _list_names_of_union_side(side: exp.Expr) -> list[str]:
    found = [item.alias_or_name.lower() for item in getattr(side, "selects", [])]
    return found if all(found) and "*" not in found else []


# Parents of a subquery that is not used as one value.


_LISTS = (exp.In, exp.Exists, exp.From, exp.Join, exp.SetOperation, exp.CTE, exp.Lateral, exp.Array,
          exp.Any, exp.All, exp.Subquery)  # fmt: skip


@on_model
class ScalarSubqueryRows(ModelRule):
    """A subquery in the place of a value may return only one row."""

    spec = find_rule("scalar-subquery-rows")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Subquery):
            return
        tree = query.rendered_tree if query.rendered_query is not None else query.tree
        found = {
            f"subquery in {name_query_part(node, query)}": node
            for node in tree.find_all(exp.Subquery)
            if not isinstance(node.parent, _LISTS)
            and isinstance(node.parent, exp.Expression)
            and not isinstance(node.parent, exp.Query)
            | (isinstance(node.parent, exp.Select) and node.arg_key == "expressions")
            and isinstance(node.this, exp.Select)
            and not self._is_one_row(node.this)
        }
        if found:
            yield self.make_observation(
                model,
                lambda subjects: (
                    f"The {quote_names(subjects)} is used as one value, and nothing limits it to "
                    "one row: with two rows the run fails, or Spark refuses the query."
                ),
                "the subquery has an aggregate without GROUP BY, or compares a whole key",
                subject=found,
                anchors=("(SELECT", "SELECT"),
            )

    def _is_one_row(self, select: exp.Select) -> bool:
        if _gives_one_row(select):
            return True
        source = select.args[FROM].this
        if select.args.get("joins") or not isinstance(source, exp.Table):
            return False
        where, own = select.args.get("where"), {source.alias_or_name.lower(), ""}
        fixed = {
            name
            for (alias, name), others in iterate_equalities(split_conditions(where and where.this))
            if alias in own and not any(other in own for other, _ in others)
        }
        keys = list_unique_keys(self.project.by_table.get(table_name(source)))
        return any(key <= fixed for key in keys)
