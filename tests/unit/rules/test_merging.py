"""Models that SQLMesh merges into, on formats and catalogs with and without MERGE."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.worker.project.merge_support import GatewayFacts, describe_merge_obstacle_in_project
from ci_bot.worker.project.opening import ProjectConfigFacts
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.models.storage import MergeUnsupported
from tests.unit.rules.world import models

PLAIN = GatewayFacts("spark", "spark_catalog")
BY_KEY = "INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id)"
WHEN_MATCHED = (
    "INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id, "
    "when_matched (WHEN MATCHED THEN UPDATE SET target.amount = source.amount))"
)


def made(kind: str = BY_KEY, properties: str = "", name: str = "stg.campaigns") -> Any:
    text = f"MODEL (name {name}, kind {kind}{properties});\nSELECT o.order_id, o.amount FROM raw.orders AS o"
    return next(m for m in models({"m.sql": text}).values() if m.name.endswith("campaigns"))


def spark(catalog: str | None = "spark_catalog", **settings: str) -> GatewayFacts:
    named = {key.replace("_of_", "."): value for key, value in settings.items()}
    return GatewayFacts("spark", catalog, {f"spark.sql.{k}": v for k, v in named.items()})


@pytest.mark.parametrize(
    ("model", "gateway"),
    [
        (made(), PLAIN),
        (made(WHEN_MATCHED), PLAIN),
        (made(properties=", storage_format parquet"), PLAIN),
        (made(properties=", storage_format orc"), spark(sources_of_default="delta")),
        (made(), GatewayFacts("spark")),
        (made(), spark(sources_of_default="parquet")),
        (made(), GatewayFacts("spark", None, {"spark.sql.catalog.lake": "org.x.SparkCatalog"})),
        (made(), GatewayFacts("spark", None,
            {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"})),
        (made(properties=", storage_format parquet"), GatewayFacts("databricks")),
    ],
)  # fmt: skip
def test_merge__that_fails(model: Any, gateway: GatewayFacts) -> None:
    why = describe_merge_obstacle_in_project(model, {"": gateway})

    assert why is not None
    assert why.startswith("Spark cannot MERGE into a table")


@pytest.mark.parametrize(
    ("model", "gateway"),
    [
        *((made(properties=f", table_format {name}"), PLAIN) for name in ("iceberg", "DELTA", "hudi")),
        (made(properties=", table_format iceberg, storage_format parquet"), PLAIN),
        (made(properties=", storage_format delta"), PLAIN),
        (made(properties=", storage_format iceberg"), PLAIN),
        (made(), spark(sources_of_default="delta")),
        (made(), GatewayFacts("spark", None,
            {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"})),
        (made(name="lake.stg.campaigns"), PLAIN),
        (made(), GatewayFacts("spark", complete=False)),
        (made(), GatewayFacts("databricks")),
        (made(), GatewayFacts("duckdb")),
        (made(properties=", gateway other"), PLAIN),
        (made("FULL"), PLAIN),
        (made("INCREMENTAL_BY_PARTITION", ", partitioned_by (order_id)"), PLAIN),
        (made("SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns [amount])"), PLAIN),
        (made("INCREMENTAL_UNMANAGED"), PLAIN),
    ],
)  # fmt: skip
def test_merge__that_works_or_is_none(model: Any, gateway: GatewayFacts) -> None:
    assert describe_merge_obstacle_in_project(model, {"": gateway}) is None


def test_merge__of_a_gateway_that_a_model_names() -> None:
    model = made(properties=", gateway lake")

    assert (
        describe_merge_obstacle_in_project(model, {"": GatewayFacts("duckdb"), "lake": PLAIN})
        is not None
    )


def test_rule__says_what_fails_when() -> None:
    model = made()
    view = ProjectView({model.fqn: model}, gateways={"": PLAIN})

    (observation,) = MergeUnsupported(view).find_observations(model)

    assert observation.weight == "high"
    assert "each later one fails" in observation.described_text
    assert list(MergeUnsupported(ProjectView({model.fqn: model})).find_observations(model)) == []


def test_facts__come_back_as_they_went() -> None:
    facts = ProjectConfigFacts(gateways={"": PLAIN, "lake": spark(sources_of_default="delta")})

    assert ProjectConfigFacts.from_values(facts.as_values()) == facts
