"""Totals and counts over rows that a join repeats."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.joined_rows import JoinedRows, read_joined_rows
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.sql import iterate_selects

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_ADDING = (
    exp.Sum, exp.Avg, exp.Count, exp.CountIf, exp.Stddev, exp.StddevSamp, exp.StddevPop,
    exp.Variance, exp.VariancePop,
)  # fmt: skip
_CLEARS = "the partner is reduced to one row first, or summed up in a CTE of its own"


@on_model
class FanOutTotal(ModelRule):
    """If a join multiplies rows, a sum over them counts them several times."""

    spec = find_rule("fan-out-total")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None or not query.tree.has_any(exp.Join, exp.Lateral):
            return
        if not query.tree.has_any(*_ADDING):
            return
        for scope in iterate_selects(query.root or query.written_root):
            totals = [
                (item.alias_or_name, node)
                for item in scope.expression.expressions
                for node in item.find_all(*_ADDING)
                if not isinstance(node.this, exp.Distinct)
                and node.find_ancestor(exp.Window) is None
                and node.find_ancestor(exp.Select) is scope.expression
            ]
            rows = read_joined_rows(scope, self.project.by_table) if totals else None
            if rows is not None:
                yield from self._observe_totals(model, rows, totals)
                yield from self._observe_counts(model, rows, totals)

    def _observe_totals(
        self, model: Model, rows: JoinedRows, totals: Sequence[tuple[str, exp.Expr]]
    ) -> Iterator[RuleObservation]:
        """Totals of columns that another source repeats, by that source."""
        counted: dict[str, dict[str, str]] = {}
        for column, node in totals:
            read = {inner.table for inner in node.find_all(exp.Column)}
            if not read or "" in read:
                continue
            for alias in rows.keys.keys() - rows.find_determined(read):
                called = self._name_source(rows, alias)
                text = node.sql(dialect=model.dialect)
                counted.setdefault(alias, {})[f"{column} by {called}"] = text
        for alias, texts in sorted(counted.items()):
            called = self._name_source(rows, alias)
            key = min(rows.keys[alias], key=lambda one: (len(one), sorted(one)))
            fixed = rows.list_fixed(alias, rows.names)
            yield self.make_observation(
                model,
                partial(_describe_fan_out, texts, called, key, fixed),
                _CLEARS,
                subject=texts,
                anchors=(f"JOIN {called}", "JOIN"),
            )

    def _observe_counts(
        self, model: Model, rows: JoinedRows, totals: Sequence[tuple[str, exp.Expr]]
    ) -> Iterator[RuleObservation]:
        """COUNT(*) over rows that are not those of the table that its reader thinks of."""
        for column, node in totals:
            if any(node.find_all(exp.Column)) or not rows.keys:
                continue
            why = self._describe_count(rows, column)
            if why is not None:
                text, severity = why
                yield self.make_observation(
                    model,
                    f"`{node.sql(dialect=model.dialect)}` in `{column}` {text}.",
                    "COUNT names a column of the table whose rows count, with DISTINCT for one "
                    "that the join repeats",
                    subject=[f"{column} counts rows of the join"],
                    severity=severity,
                    anchors=(column, "COUNT"),
                )

    def _describe_count(self, rows: JoinedRows, column: str) -> tuple[str, Severity | None] | None:
        known = rows.keys.keys()
        counted = {alias for alias in known if known <= rows.find_determined([alias])}
        others = known - counted
        tables = [
            quote_names(map(partial(self._name_source, rows), one)) for one in (known, others)
        ]
        if not counted:
            return (
                f"counts pairs: the rows of {tables[0]} repeat each other, because none of them "
                "determines the others",
                None,
            )
        if not others:
            return None
        shown = quote_names(map(partial(self._name_source, rows), counted))
        is_called = partial(_is_called_after, column, rows)
        if is_called(others) and not is_called(counted):
            return f"is called after {tables[1]}, and counts the rows of {shown}", None
        if rows.first in others and not is_called(counted):
            # With one row of these in each group, only those of the partner can be meant.
            is_clear = others <= rows.find_determined([])
            found = _describe_repeats(rows, counted, shown, tables[1])
            return None if found is not None and found[1] and is_clear else found
        return None

    def _name_source(self, rows: JoinedRows, alias: str) -> str:
        name = rows.names[alias]
        return self.project.name_of_table(name) if "." in name else name


def _describe_fan_out(
    counted: Mapping[str, str],
    table: str,
    key: Collection[str],
    fixed: Collection[str],
    subjects: Sequence[str],
) -> str:
    return (
        f"{quote_names(counted[subject] for subject in subjects)} adds up rows that the join of "
        f"`{table}` multiplies: that is identified by {quote_names(key)}, and the join fixes "
        f"{quote_names(fixed) or 'none of it'}."
    )


def _describe_repeats(
    rows: JoinedRows, counted: Collection[str], shown: str, repeated: str
) -> tuple[str, Severity | None] | None:
    """Describes a count of rows that repeat those of the table after FROM."""
    if set(counted) <= rows.optional:
        return (
            f"counts a row of {repeated} without a partner as one, and any other as often as it "
            f"has partners in {shown}",
            None,
        )
    if rows.generated.keys() & set(counted):
        return None
    return f"counts the rows of {shown}, and not those of {repeated}", "medium"


def _is_called_after(column: str, rows: JoinedRows, aliases: Collection[str]) -> bool:
    words = _list_words(column)
    return any(words & _list_words(rows.names[alias], last=True) for alias in aliases)


def _list_words(name: str, *, last: bool = False) -> set[str]:
    """The words of a name, in the singular; of a table only the last one."""
    words = re.split(r"[\W_]+", name.rpartition(".")[2].lower())
    return {_make_singular(word) for word in (words[-1:] if last else words) if word}


def _make_singular(word: str) -> str:
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    return word.removesuffix("es") if word.endswith(("sses", "xes")) else word.removesuffix("s")
