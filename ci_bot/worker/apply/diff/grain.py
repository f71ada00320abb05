"""The key of a model, from its grain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp


def grain_columns(grains: Sequence[Any]) -> tuple[str, ...]:
    """The unquoted columns of a model's grain (`model.grains`); empty where it has none.

    Several grains are several keys, each unique by itself, so the first is enough. SQLMesh's own
    `model.on` joins on all of them together, and on the model's references too; then a row whose
    reference changed counts as gone and new instead of as changed.
    """
    if not grains:
        return ()
    grain = grains[0]
    if isinstance(grain, exp.Alias):
        grain = grain.this
    grain = grain.unnest()
    parts = grain.expressions if isinstance(grain, (exp.Tuple, exp.Array)) else [grain]
    return tuple((part.this.name if isinstance(part, exp.Alias) else part.name) for part in parts)
