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


def list_key_columns(model: Model) -> tuple[str, ...]:
    """The unquoted columns that tell a model's rows apart; empty if it names none.

    Without a grain these are the columns that SQLMesh itself keeps rows apart by: the unique key,
    and with it the start of validity where each key has a row for every version. A key with an
    expression is no list of columns, so nothing is paired by it. (`ModelMeta.unique_key`, which
    dbt's `unique_key` becomes, too)
    """
    if grain := list_grain_columns(model.grains):
        return grain
    unique, kind = list(model.unique_key), model.kind
    if unique and is_scd_type_2(kind):
        unique.append(kind.valid_from_name)
    if not all(isinstance(part, (exp.Column, exp.Identifier)) for part in unique):
        return ()
    return tuple(part.name for part in unique)
