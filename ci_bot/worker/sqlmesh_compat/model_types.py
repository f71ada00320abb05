"""SQLMesh's own properties of a model and its kind, as questions that narrow its type.

`model.is_sql` and `kind.is_scd_type_2` are plain booleans, so a type checker does not learn from
them which fields are there. (`_Model.is_sql`, `ModelKindMixin.is_scd_type_2` and their sisters)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, ModelKind, PythonModel, SeedModel, SqlModel
    from sqlmesh.core.model.kind import (
        IncrementalByTimeRangeKind,
        IncrementalByUniqueKeyKind,
        IncrementalUnmanagedKind,
        SCDType2ByColumnKind,
        SCDType2ByTimeKind,
        ViewKind,
    )


def is_sql_model(model: Model) -> TypeGuard[SqlModel]:
    """Whether a model is a query, which has `query` and its statements."""
    return bool(model.is_sql)


def is_python_model(model: Model) -> TypeGuard[PythonModel]:
    """Whether a model is a function, which `entrypoint` names."""
    return bool(model.is_python)


def is_seed_model(model: Model) -> TypeGuard[SeedModel]:
    """Whether a model is a file of rows."""
    return bool(model.is_seed)


def is_scd_type_2(kind: ModelKind) -> TypeGuard[SCDType2ByColumnKind | SCDType2ByTimeKind]:
    """Whether each key has a row for every version, with the time from and to which it held."""
    return bool(kind.is_scd_type_2)


def is_scd_type_2_by_column(kind: ModelKind) -> TypeGuard[SCDType2ByColumnKind]:
    """Whether a version ends if one of the watched columns changes."""
    return bool(kind.is_scd_type_2_by_column)


def is_view_kind(kind: ModelKind) -> TypeGuard[ViewKind]:
    """Whether a model is a view, which may be materialized."""
    return bool(kind.is_view)


def is_incremental_by_time_range(kind: ModelKind) -> TypeGuard[IncrementalByTimeRangeKind]:
    """Whether a run replaces the rows of its interval, by a column of the time."""
    return bool(kind.is_incremental_by_time_range)


def is_incremental_by_unique_key(kind: ModelKind) -> TypeGuard[IncrementalByUniqueKeyKind]:
    """Whether a run merges its rows into the table, by a key."""
    return bool(kind.is_incremental_by_unique_key)


def is_incremental_unmanaged(kind: ModelKind) -> TypeGuard[IncrementalUnmanagedKind]:
    """Whether a run adds rows, or replaces partitions, by the query alone."""
    return bool(kind.is_incremental_unmanaged)
