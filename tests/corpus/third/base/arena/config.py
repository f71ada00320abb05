from sqlmesh.core.config import (
    Config,
    DuckDBConnectionConfig,
    GatewayConfig,
    ModelDefaultsConfig,
    SparkConnectionConfig,
)

config = Config(
    gateways={
        "spark": GatewayConfig(
            connection=SparkConnectionConfig(
                config={"spark.app.name": "arena", "spark.sql.session.timeZone": "UTC"}
            ),
            state_connection=DuckDBConnectionConfig(database="state/arena.db"),
        )
    },
    default_gateway="spark",
    model_defaults=ModelDefaultsConfig(dialect="spark", start="2024-01-01", cron="@daily"),
    variables={"session_gap": 1800},
)
