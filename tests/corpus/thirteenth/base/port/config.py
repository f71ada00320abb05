from sqlmesh.core.config import (
    Config,
    DuckDBConnectionConfig,
    GatewayConfig,
    LinterConfig,
    ModelDefaultsConfig,
    PlanConfig,
    SparkConnectionConfig,
)

SPARK = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

config = Config(
    project="port",
    gateways={
        "terminal": GatewayConfig(
            connection=SparkConnectionConfig(catalog="spark_catalog", config=SPARK),
            state_connection=DuckDBConnectionConfig(database="state/port.db"),
            variables={"landing": "tos"},
        ),
        "archive": GatewayConfig(
            connection=SparkConnectionConfig(catalog="spark_catalog", config=SPARK),
            state_connection=DuckDBConnectionConfig(database="state/port.db"),
            variables={"landing": "tos_archive"},
        ),
    },
    default_gateway="terminal",
    model_defaults=ModelDefaultsConfig(
        dialect="spark",
        start="2023-01-01",
        cron="@daily",
        storage_format="delta",
        on_destructive_change="error",
    ),
    variables={"free_days": 5, "reefer_surcharge": 18.5},
    linter=LinterConfig(enabled=True, rules=["ambiguousorinvalidcolumn", "nomissingexternalmodels"]),
    plan=PlanConfig(enable_preview=True),
    physical_schema_mapping={"^mart$": "mart_tables"},
)
