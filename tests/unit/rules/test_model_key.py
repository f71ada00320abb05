"""The key that a model names by its grain or its kind, and the rule that asks for one."""

from __future__ import annotations

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.sql.model_query import list_grain_columns, list_key_columns
from tests.unit.rules.world import change, seen


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
    assert list_grain_columns(model.grains) == columns


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
    assert list_key_columns(load_sql_based_model(parse(text, default_dialect="spark"))) == columns


@pytest.mark.parametrize(
    ("properties", "weights"),
    [
        ("kind FULL", ["low"]),
        ("kind VIEW", ["info"]),
        ("kind FULL, grain id", []),
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", []),
        ("kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns [ds])", []),
        # No column holds what is computed, so it pairs nothing.
        ("kind INCREMENTAL_BY_UNIQUE_KEY (unique_key COALESCE(id, 0))", ["low"]),
    ],
)
def test_missing_grain__is_a_model_whose_rows_nothing_pairs(
    properties: str, weights: list[str]
) -> None:
    text = f"MODEL (name db.m, {properties});\nSELECT o.id, o.ds FROM raw.o AS o"
    found = seen(change({}, {"models/m.sql": text}), "missing-grain")
    assert [one.severity for one in found] == weights
