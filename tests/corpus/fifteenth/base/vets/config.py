import os

from sqlmesh.core.config import (
    CategorizerConfig,
    AutoCategorizationMode,
    Config,
    DuckDBConnectionConfig,
    GatewayConfig,
    LinterConfig,
    ModelDefaultsConfig,
    PlanConfig,
    SparkConnectionConfig,
)

SPARK = {
    "spark.app.name": "vets",
    "spark.sql.session.timeZone": "Europe/Vienna",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
}

config = Config(
    project="vets",
    gateways={
        "main": GatewayConfig(
            connection=SparkConnectionConfig(catalog="spark_catalog", config=SPARK),
            state_connection=DuckDBConnectionConfig(database=os.getenv("STATE_FILE", "state/vets.db")),
        ),
    },
    default_gateway="main",
    model_defaults=ModelDefaultsConfig(
        dialect="spark",
        start="2022-07-01",
        cron="@daily",
        owner="vet-analytics",
        storage_format="delta",
    ),
    plan=PlanConfig(
        auto_categorize_changes=CategorizerConfig(
            sql=AutoCategorizationMode.FULL, python=AutoCategorizationMode.SEMI
        ),
    ),
    variables={"reminder_days": 30, "fiscal_start_month": 7},
    linter=LinterConfig(enabled=True, rules=["ambiguousorinvalidcolumn"]),
    environment_suffix_target="schema",
)
