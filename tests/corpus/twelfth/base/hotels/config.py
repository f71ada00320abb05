from sqlmesh.core.config import (
    Config,
    DuckDBConnectionConfig,
    GatewayConfig,
    LinterConfig,
    ModelDefaultsConfig,
    SparkConnectionConfig,
)

config = Config(
    project="hotels",
    gateways={
        "spark": GatewayConfig(
            connection=SparkConnectionConfig(
                catalog="spark_catalog", config={"spark.sql.session.timeZone": "UTC"}
            ),
            state_connection=DuckDBConnectionConfig(database="state/hotels.db"),
        )
    },
    default_gateway="spark",
    model_defaults=ModelDefaultsConfig(dialect="spark", start="2023-01-01", cron="@daily"),
    variables={"vat_rate": 0.09, "active_statuses": ["BOOKED", "IN_HOUSE", "DEPARTED"]},
    linter=LinterConfig(enabled=True, rules=["ambiguousorinvalidcolumn"]),
)
