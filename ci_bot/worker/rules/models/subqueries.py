"""Subqueries that stand for one value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.worker.compat.parsing.trees import FROM
from ci_bot.worker.rules.models.base import ModelRule, on_model
from ci_bot.worker.rules.models.joining import keys_of
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.sql.places import place_of
from ci_bot.worker.rules.sql.queries import conjuncts, table_name

_LISTS = (exp.In, exp.Exists, exp.From, exp.Join, exp.SetOperation, exp.CTE, exp.Lateral, exp.Array,
          exp.Any, exp.All, exp.Subquery)  # fmt: skip


@on_model
class ScalarSubqueryRows(ModelRule):
    """A subquery in the place of a value may give one row and no more."""

    spec = rule("scalar-subquery-rows")

    def see(self, model: Any) -> Iterator[Observation]:
        query = self.query(model)
        if query is None or not query.tree.has(exp.Subquery):
            return
        tree = query.rendered_tree if query.rendered is not None else query.tree
        found = {
            f"subquery in {place_of(node, query)}": node
            for node in tree.all(exp.Subquery)
            if not isinstance(node.parent, _LISTS)
            and isinstance(node.parent, exp.Expression)
            and not isinstance(node.parent, exp.Query)
            | (isinstance(node.parent, exp.Select) and node.arg_key == "expressions")
            and isinstance(node.this, exp.Select)
            and not self._is_one_row(node.this)
        }
        if found:
            yield self.observation(
                model,
                lambda subjects: (
                    f"The {names(subjects)} stands for one value, and nothing keeps it to one "
                    "row: with two rows the run fails, or Spark refuses the query."
                ),
                "the subquery has an aggregate without GROUP BY, or compares a whole key",
                subject=found,
                anchors=("(SELECT", "SELECT"),
            )

    def _is_one_row(self, select: Any) -> bool:
        if select.args.get(FROM) is None:
            return True
        limit = select.args.get("limit")
        if limit is not None and getattr(limit, "expression", None) is not None:
            return str(limit.expression.name) == "1"
        if select.args.get("group") is None and any(
            node.find_ancestor(exp.Window) is None and node.find_ancestor(exp.Select) is select
            for item in select.expressions
            for node in item.find_all(exp.AggFunc)
        ):
            return True
        source = select.args[FROM].this
        if select.args.get("joins") or not isinstance(source, exp.Table):
            return False
        fixed = _fixed(select, source.alias_or_name)
        keys = keys_of(self.project.by_table.get(table_name(source)))
        return any(key <= fixed for key in keys)


def _fixed(select: Any, alias: str) -> set[str]:
    """Columns that equal something from outside of the subquery."""
    where = select.args.get("where")
    found: set[str] = set()
    for part in conjuncts(where.this) if where is not None else []:
        if not isinstance(part, exp.EQ | exp.NullSafeEQ):
            continue
        for side, other in ((part.this, part.expression), (part.expression, part.this)):
            if (
                isinstance(side, exp.Column)
                and side.table in {alias, ""}
                and not any(column.table in {alias, ""} for column in other.find_all(exp.Column))
            ):
                found.add(side.name.lower())
    return found
