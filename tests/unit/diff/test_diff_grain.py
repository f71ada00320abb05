"""The key that a model's grain names, read from real model definitions."""

from __future__ import annotations

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.data_diff.column_layout import grain_columns, key_columns


@pytest.mark.parametrize(
    ("grain", "columns"),
    [
        ("", ()),
        ("grain id,", ("id",)),
        ("grain (id),", ("id",)),
        ("grain (id, ds),", ("id", "ds")),
        ("grain `Order Id`,", ("Order Id",)),
        ("grains [id, (a, b)],", ("id",)),
        ("grains [(a, b), id],", ("a", "b")),
        ("grain (id AS customer_id),", ("id",)),
        ("grains [id AS customer_id, ds],", ("id",)),
        ("grain (id AS customer_id, ds),", ("id", "ds")),
        ("grain id, references other,", ("id",)),
    ],
)
def test_grain_columns__as_models_write_it(grain: str, columns: tuple[str, ...]) -> None:
    text = f"MODEL (name db.m, dialect spark, {grain} kind FULL); SELECT 1 AS id, 2 AS ds"
    model = load_sql_based_model(parse(text, default_dialect="spark"))
    assert grain_columns(model.grains) == columns


@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", ("id",)),
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, `the day`))", ("id", "the day")),
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), grain ds", ("ds",)),
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key COALESCE(id, 0))", ()),
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, COALESCE(ds, 0)))", ()),
        ("kind SCD_TYPE_2_BY_TIME (unique_key id)", ("id", "valid_from")),
        (
            "kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [ds], valid_from_name since)",
            ("id", "since"),
        ),
        ("kind INCREMENTAL_BY_PARTITION, partitioned_by ds", ()),
        ("kind FULL", ()),
        ("kind VIEW", ()),
    ],
)
def test_key_columns__without_a_grain__are_those_of_the_kind(
    properties: str, columns: tuple[str, ...]
) -> None:
    text = f"MODEL (name db.m, dialect spark, {properties}); SELECT 1 AS id, 2 AS ds"
    assert key_columns(load_sql_based_model(parse(text, default_dialect="spark"))) == columns
