"""The key of a model, from its grain, or else from its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.worker.sqlmesh_compat import is_scd_type_2

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


def list_grain_columns(grains: Sequence[exp.Expr]) -> tuple[str, ...]:
    """The unquoted columns of a model's grain (`model.grains`); empty if it has none.

    Each of several grains is a key by itself, so the first is enough. SQLMesh's own `model.on`
    joins on all of them together, and on the model's references, too. With it, a row whose
    reference changed would count as one dropped and one added row.
    """
    if not grains:
        return ()
    grain = grains[0]
    if isinstance(grain, exp.Alias):
        grain = grain.this
    grain = grain.unnest()
    parts = grain.expressions if isinstance(grain, (exp.Tuple, exp.Array)) else [grain]
    return tuple((part.this.name if isinstance(part, exp.Alias) else part.name) for part in parts)


def list_key_columns(model: Model) -> tuple[str, ...]:
    """The unquoted columns that identify a row of a model; empty if it names none.

    Without a grain these are the columns by which SQLMesh itself identifies rows: the unique key,
    and the start of validity if a key has one row for each version (SCD type 2). If the key
    contains an expression, the list is empty. dbt's `unique_key` becomes `ModelMeta.unique_key`,
    too.
    """
    if grain := list_grain_columns(model.grains):
        return grain
    unique, kind = list(model.unique_key), model.kind
    if unique and is_scd_type_2(kind):
        unique.append(kind.valid_from_name)
    if not all(isinstance(part, (exp.Column, exp.Identifier)) for part in unique):
        return ()
    return tuple(part.name for part in unique)
