"""Slowly changing dimensions: their validity columns, and rows that count as deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.current_time import does_model_read_clock
from ci_bot.worker.rules.models.declared_keys import list_grains
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import NOT_RETURNED, RuleObservation
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedQuery,
    ScopedSelect,
    is_interval_predicate,
    list_column_names,
    reads_argument,
    table_name,
)
from ci_bot.worker.sqlmesh_compat import is_python_model, is_scd_type_2

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

    from ci_bot.protocol.plan import Severity

MAX_DEPTH = 8
_LIMITED = ("limit", "the query ends with a LIMIT")
# Names of tables that hold only changed rows.
_CHANGES = re.compile(
    r"(^|_)(delta|deltas|changes?|changed|changelog|cdc|updates|updated|increments?|incremental)($|_)"
)


@on_model
class ScdValidity(ModelRule):
    """SQLMesh writes the validity columns of an SCD type 2 model, so the query must not."""

    spec = find_rule("scd-validity")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        kind = model.kind
        if not is_scd_type_2(kind) or not (query := self.query_of(model)):
            return
        reserved = {kind.valid_from_name.name.lower(), kind.valid_to_name.name.lower()}
        results = [one for branch in query.known_root.branches for one in branch.results]
        returned = {name for name, _ in results}
        star = any(item.is_star for _, item in results)
        if returned & reserved:
            yield self.make_observation(
                model,
                lambda columns: (
                    f"The query returns {quote_names(columns)}, which SQLMesh writes itself."
                ),
                "the query leaves the validity columns out, or they have other names",
                subject=sorted(returned & reserved),
                anchors=tuple(returned & reserved),
            )
        if star or not returned:
            return
        needed = set(list_column_names(model.unique_key))
        if kind.updated_at_name is not None:
            needed.add(kind.updated_at_name.name.lower())
        watched = getattr(kind, "columns", None)
        if isinstance(watched, list):
            needed |= set(list_column_names(watched))
        if gone := needed - returned:
            yield self.make_observation(
                model,
                lambda columns: f"The kind names {quote_names(columns)}, {NOT_RETURNED}.",
                "the query returns key, time and watched columns",
                subject=sorted(gone),
                severity="blocker",
                anchors=tuple(gone),
            )
        for grain in list_grains(model):
            if grain and grain <= set(list_column_names(model.unique_key)):
                yield self.make_observation(
                    model,
                    f"The grain {quote_names(grain)} has no validity column, but a key has one "
                    "row for each of its versions.",
                    f"the grain includes `{kind.valid_from_name.name}`",
                    subject=[f"({', '.join(sorted(grain))})"],
                    severity="low",
                    anchors=("grain",),
                )


@on_model
class HardDeletesPartialSource(ModelRule):
    """With invalidate_hard_deletes, a row that the query does not deliver counts as deleted."""

    spec = find_rule("hard-deletes-partial-source")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        kind = model.kind
        if not is_scd_type_2(kind) or not kind.invalidate_hard_deletes:
            return
        if is_python_model(model):
            if reads_argument(model, "start"):
                yield self._observe_partial(model, "window", "the code reads by `start`")
            return
        query = self.query_of(model)
        if query is None:
            return
        found = dict(self._iterate_losses(query, 0))
        if "window" in found:
            found.pop("changes", None)  # a table is named for its window
        for what, words in found.items():
            if not what.startswith("join "):
                yield self._observe_partial(model, what, words)
        joins = {what: words for what, words in found.items() if what.startswith("join ")}
        for what, words in joins.items():
            yield self._observe_partial(model, what, words, severity="medium")

    def _observe_partial(
        self, model: Model, what: str, words: str, severity: Severity | None = None
    ) -> RuleObservation:
        return self.make_observation(
            model,
            f"`invalidate_hard_deletes` is set, and {words}: each run closes the history of all "
            "keys that are not delivered, as if they had been deleted.",
            "the query delivers every key that still exists, or `invalidate_hard_deletes` is false",
            subject=[what],
            severity=severity,
            anchors=("WHERE", "LIMIT", "JOIN", "FROM", "invalidate_hard_deletes"),
        )

    def _iterate_losses(self, query: ModelQuery, depth: int) -> Iterator[tuple[str, str]]:
        """Yields the causes for which the query leaves rows out: (short key, words for it)."""
        yield from self._iterate_losses_of_query(query.scopes, depth)

    def _iterate_losses_of_query(self, query: ScopedQuery, depth: int) -> Iterator[tuple[str, str]]:
        if query.expression is not None and query.expression.args.get("limit") is not None:
            yield _LIMITED
        for branch in query.branches if depth <= MAX_DEPTH else ():
            yield from self._iterate_losses_of_select(branch, depth)

    def _iterate_losses_of_select(
        self, select: ScopedSelect, depth: int
    ) -> Iterator[tuple[str, str]]:
        if select.node.args.get("limit") is not None:
            yield _LIMITED
        for join in select.joins:
            is_deliberate = join.node.side == "RIGHT" or join.node.kind in {"CROSS", "ANTI"}
            if not (join.keeps_left or is_deliberate):
                name = self.project.name_of_source(select, join.target.alias_or_name)
                yield f"join {name}", f"rows without a match in `{name}` are left out"
        if any(_does_condition_move_with_time(part) for part in select.list_conditions()):
            yield "window", "the query delivers only the rows of a time window that moves"
        for node in dict.fromkeys(one for row in select.list_row_parts() for one in row.sources):
            yield from self._iterate_source_losses(node, select, depth)

    def _iterate_source_losses(
        self, node: exp.Expr, select: ScopedSelect, depth: int
    ) -> Iterator[tuple[str, str]]:
        if node.find(exp.TableSample) is not None:
            yield "sample", "the query delivers a sample of its source"
        source = select.sources.get(node.alias_or_name.lower())
        if isinstance(source, ScopedQuery):
            yield from self._iterate_losses_of_query(source, depth + 1)
            return
        if not isinstance(source, exp.Table):
            return
        parent = self.project.by_table.get(table_name(source))
        if _CHANGES.search(source.name.lower()):
            called = self.project.name_of_table(table_name(source))
            yield "changes", f"`{called}` holds changes only, as its name says"
        # A model that is computed whole each time has only the rows of its query.
        if parent is not None and (
            parent.kind.is_view or parent.kind.is_full or parent.kind.is_embedded
        ):
            inner = self.project.queries.query_of(parent)
            if inner is not None:
                for what, words in self._iterate_losses(inner, depth + 1):
                    if not what.startswith("join "):
                        yield (
                            what,
                            words.replace(
                                "the query", f"`{self.project.name_of_table(parent.fqn)}`"
                            ),
                        )


def _does_condition_move_with_time(condition: exp.Expr) -> bool:
    """Whether rows stop to meet a condition as time passes, or it selects one interval.

    `x <= now` selects more rows from day to day, and each row stays selected.
    """
    if isinstance(condition, exp.LT | exp.LTE) and _is_time_of_version(condition.expression):
        return _is_time_of_version(condition.this)
    if isinstance(condition, exp.GT | exp.GTE) and _is_time_of_version(condition.this):
        return _is_time_of_version(condition.expression)
    if isinstance(condition, exp.Or):
        return any(_does_condition_move_with_time(part) for part in condition.flatten())
    if isinstance(condition, exp.Between):
        _, begin, _ = condition.iter_expressions()
        return _is_time_of_version(begin)
    return _is_time_of_version(condition)


def _is_time_of_version(node: exp.Expr) -> bool:
    return is_interval_predicate(node) or does_model_read_clock(node)
