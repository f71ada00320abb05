"""The types of a seed that declares none: its values decide them, so one new value changes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sqlglot import exp

from ci_bot.worker.rules.changes.results import RETYPED, observe_retyped
from ci_bot.worker.rules.files.seed_values import list_cells, quote_some
from ci_bot.worker.rules.files.seeds import seeds_changed, table
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.models.keys import grain_of
from ci_bot.worker.rules.observation import Observation
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql.columns import known_types

_WHOLE_NUMBER = re.compile(r"^[+-]?\d+$")
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
_TRUTH = re.compile(r"^(true|false)$", re.IGNORECASE)


@on_change(RETYPED)
def inferred_types(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Columns of another type, with the value that made it so."""
    if not pair.has_inferred_types:
        return
    for found in observe_retyped(pair, inputs):
        columns = found.subject
        yield replace(
            found,
            evidence=found.told + _describe_cause(pair.after, columns, inputs),
            clears=f"{found.clears}, or the seed's model declares its `columns`",
            severity=found.severity
            if any(_needs_whole_numbers(pair, name) for name in columns)
            else "medium",
        )


def _describe_cause(model: Any, columns: Iterable[str], inputs: RuleInputs) -> str:
    """Why columns of a seed have other types although nobody declares any: their values do it."""
    told = " The model declares no `columns`, so SQLMesh takes the types from the values"
    path = next((path for path, reader in seeds_changed(inputs) if reader is model), None)
    if path is None:
        return f"{told}."
    before, after = (list_cells(table(inputs, path, model, before=side)) for side in (True, False))
    # What all old values were, and a new one is not.
    for name in columns:
        was = [value for value in before.get(name, ()) if value.strip()]
        for shape in (_WHOLE_NUMBER, _NUMBER, _TRUTH):
            if was and all(shape.match(value.strip()) for value in was):
                others = {v.strip() for v in after.get(name, ()) if not shape.match(v.strip())}
                if others:
                    which = "an empty one" if others == {""} else quote_some(sorted(others - {""}))
                    return f"{told}, and all of them change with {which}."
                break
    return f"{told}."


def _needs_whole_numbers(pair: Pair, name: str) -> bool:
    """Whether readers see more of a column's new type than that numbers may have fractions."""
    old, new = known_types(pair.before) or {}, known_types(pair.after) or {}
    if not (old[name].this in exp.DataType.INTEGER_TYPES and new[name].is_type("DOUBLE")):
        return True
    if any(name in grain for grain in grain_of(pair.after)):
        return True
    for reader in pair.readers:
        query = pair.queries.of(reader)
        for column in query.rendered_tree.all(exp.Column) if query is not None else ():
            cast = column.find_ancestor(exp.Cast, exp.TryCast)
            if column.name.lower() == name and (
                column.find_ancestor(exp.Join, exp.Concat, exp.ConcatWs, exp.DPipe) is not None
                or (cast is not None and cast.to.this in exp.DataType.TEXT_TYPES)
            ):
                return True
    return False
