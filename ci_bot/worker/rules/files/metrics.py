"""Metrics: expressions that people and tools use by their names.

SQLMesh replaces a metric in a query by its expression (`sqlmesh rewrite`, `Context.rewrite`). No
model contains it, so no plan shows its change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlmesh.core import dialect as d

from ci_bot.protocol.limits import is_read
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_file
from ci_bot.worker.runtime import silence_log

if TYPE_CHECKING:
    from sqlglot import exp

CHANGED = find_rule("metric-changed")
_METRIC = re.compile(r"^[^\S\n]*METRIC\s*\(", re.IGNORECASE | re.MULTILINE)


@on_file(CHANGED)
def find_changed_metrics(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Metrics with another expression, and metrics that are gone."""
    for path in _list_metric_files(inputs):
        after = inputs.read_text_after(path) or ""
        dialect = inputs.default_dialect or "spark"
        old = _read_metrics(inputs.read_text_before(path) or "", dialect)
        new = _read_metrics(after, dialect)
        if old is None or new is None:
            continue  # a file that cannot be parsed fails the load
        for name, expression in old.items():
            if new.get(name) == expression or (name, expression) in inputs.compute_once(
                _list_metrics_after
            ):
                continue
            now = f"is `{new[name]}`, and was `{expression}`" if name in new else "is gone"
            yield RuleObservation(
                CHANGED,
                f"The metric `{name}` {now}: everybody who uses it gets another result. No model "
                "changes, so no plan shows it.",
                "the owner of the metric confirms it, and those who read it know",
                path=path,
                line=find_anchor_line(after, (name,)),
                subject=(name,),
            )


def _list_metric_files(inputs: RuleInputs) -> list[str]:
    return [path for path in inputs.changed_files or () if path.endswith(".sql") and is_read(path)]


def _list_metrics_after(inputs: RuleInputs) -> frozenset[tuple[str, str]]:
    """Lists (name, expression) of the metrics in changed files: a metric may move between them."""
    dialect = inputs.default_dialect or "spark"
    texts = (inputs.read_text_after(path) or "" for path in _list_metric_files(inputs))
    return frozenset(one for text in texts for one in (_read_metrics(text, dialect) or {}).items())


def _read_metrics(text: str, dialect: str) -> Mapping[str, str] | None:
    """Reads the expressions of the metrics in a file, by name; None if it cannot be parsed."""
    with silence_log("sqlglot"):
        try:
            trees = d.parse(text, default_dialect=dialect) if _METRIC.search(text) else []
        except Exception:  # any text may come here, and may fail in any way
            return None
        return {
            str(fields["name"]): fields["expression"]
            for tree in trees
            if isinstance(tree, d.Metric)
            and (fields := _read_fields(tree, dialect)).keys() >= {"name", "expression"}
        }


def _read_fields(tree: exp.Expr, dialect: str) -> dict[str, str]:
    return {
        each.name.lower(): each.args["value"].sql(dialect=dialect, comments=False)
        for each in tree.expressions
        if each.args.get("value") is not None
    }
