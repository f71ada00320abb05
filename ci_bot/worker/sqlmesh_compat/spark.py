"""Spark below SQLMesh: a connection that starts it late, and an adapter that sees every catalog."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from pydantic import PrivateAttr
from sqlmesh.core.config import Config
from sqlmesh.core.config.connection import SparkConnectionConfig
from sqlmesh.core.context import Context
from sqlmesh.core.dialect import to_schema
from sqlmesh.core.engine_adapter import EngineAdapter, SparkEngineAdapter
from sqlmesh.core.engine_adapter.shared import DataObject, DataObjectType
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.worker.messages import extract_headline_of_error, make_spark_start_error
from ci_bot.worker.runtime import (
    SESSION_CATALOG,
    WATCH,
    SparkCatalog,
    SparkCatalogAdapterSql,
    early_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ListingSqlmeshSparkAdapter(SparkEngineAdapter):
    """SQLMesh's adapter, which also lists objects in catalogs other than Spark's own.

    SQLMesh asks with SHOW TABLE EXTENDED, which Spark 3.5 refuses for every catalog except
    `spark_catalog`, and reads the refusal as "nothing there". Tables survive that (CREATE TABLE IF
    NOT EXISTS), views do not: a repeated apply would always fail with VIEW_ALREADY_EXISTS if the
    physical view of a VIEW model already exists. (`_get_data_objects`)
    """

    def _get_data_objects(
        self, schema_name: Any, object_names: set[str] | None = None
    ) -> list[DataObject]:
        schema = to_schema(schema_name)
        catalog = schema.catalog or str(self.get_current_catalog())
        if catalog == SESSION_CATALOG:
            found: list[DataObject] = super()._get_data_objects(schema_name, object_names)
            return found
        wanted = None if object_names is None else {name.lower() for name in object_names}
        return [
            DataObject(
                catalog=catalog, schema=schema.db, name=name, type=DataObjectType.from_str(kind)
            )
            for name, kind in SparkCatalog(SparkCatalogAdapterSql(self))
            .list_objects(catalog, schema.db)
            .items()
            if wanted is None or name.lower() in wanted
        ]


class LazySqlmeshSparkConnection(SparkConnectionConfig):
    """A Spark connection whose session starts at the first statement, not when the connection is
    read.

    SQLMesh builds the session while it computes the keyword arguments of the connection factory
    (`_static_connection_kwargs`), long before anything is executed. Here the arguments are computed
    inside the factory, and the default catalog is known without asking Spark.
    """

    # Not a registered type of its own: it replaces the project's own `type: spark`.
    type_: Literal["spark"] = "spark"
    DISPLAY_ORDER: ClassVar[Literal[8]] = 8
    _known_catalog: str | None = PrivateAttr(default=None)
    _on_start: Callable[[], None] | None = PrivateAttr(default=None)

    @property
    def _engine_adapter(self) -> type[EngineAdapter]:
        return ListingSqlmeshSparkAdapter

    @property
    def _connection_factory_with_kwargs(self) -> Callable[[], Any]:
        return partial(self._start_and_connect)

    def _start_and_connect(self) -> Any:
        if self._on_start is not None:
            self._on_start()
        WATCH.start_watching()
        try:
            return super()._connection_factory_with_kwargs()
        except Exception as error:
            raise make_spark_start_error(error, os.environ) from error

    @property
    def _static_connection_kwargs(self) -> Any:
        session = None if self.config_dir else early_session.claim_session(self.config)
        return super()._static_connection_kwargs if session is None else {"spark": session}

    def get_catalog(self) -> str | None:
        return self._known_catalog or super().get_catalog()


def let_sqlmesh_start_spark_late(configs: dict[Path, Config], on_start: Callable[[], None]) -> None:
    """Replaces every Spark connection, also of unit tests, by one that starts on first use.

    `on_start` is called right before a session is made. Connections are no part of any model's
    fingerprint, so the plan does not change.
    """
    for config in configs.values():
        for gateway in config.gateways.values():
            if isinstance(gateway.connection, SparkConnectionConfig):
                gateway.connection = _make_sqlmesh_connection_lazy(gateway.connection, on_start)
            if isinstance(gateway.test_connection, SparkConnectionConfig):
                gateway.test_connection = _make_sqlmesh_connection_lazy(
                    gateway.test_connection, on_start
                )
        if isinstance(config.default_connection, SparkConnectionConfig):
            config.default_connection = _make_sqlmesh_connection_lazy(
                config.default_connection, on_start
            )
        if isinstance(config.default_test_connection_, SparkConnectionConfig):
            config.default_test_connection_ = _make_sqlmesh_connection_lazy(
                config.default_test_connection_, on_start
            )


def announce_sqlmesh_tests_on_spark(context: Context, tests: Iterable[Any]) -> None:
    """Announces the start of Spark if the connection of one of `tests` is Spark.

    SQLMesh connects inside a test, so that a failed start would count as that test's failure. This
    reports a failure with other causes earlier. (`create_testing_engine_adapters`)

    Raises:
        BadInput: Spark cannot start here.
    """
    for gateway in {test.body.get("gateway") or context.selected_gateway for test in tests}:
        try:
            connection = context.config.get_test_connection(gateway)
        except SQLMeshError:
            continue  # no such gateway: the test itself reports it
        if isinstance(connection, LazySqlmeshSparkConnection) and connection._on_start is not None:
            connection._on_start()


def _make_sqlmesh_connection_lazy(
    connection: SparkConnectionConfig, on_start: Callable[[], None]
) -> LazySqlmeshSparkConnection:
    lazy = LazySqlmeshSparkConnection(
        **{name: getattr(connection, name) for name in connection.model_fields_set - {"type_"}}
    )
    lazy._on_start = on_start
    lazy._known_catalog = read_catalog_of_sqlmesh_connection(connection)
    return lazy


def read_catalog_of_sqlmesh_connection(connection: SparkConnectionConfig) -> str:
    """Reads the default catalog that Spark will have from its configuration alone.

    In order: `catalog` of the connection, `spark.sql.defaultCatalog` in its `config`,
    spark-defaults.conf of `config_dir`, SPARK_CONF_DIR or SPARK_HOME, Spark's own default.
    """
    if connection.catalog:
        return str(connection.catalog)
    key = "spark.sql.defaultCatalog"
    if key in connection.config:
        return str(connection.config[key])
    for path in _list_spark_defaults_files(connection):
        if found := _read_spark_defaults(path).get(key):
            return found
    return SESSION_CATALOG


def read_spark_settings_of_sqlmesh(context: Context) -> dict[str, str]:
    """Reads the settings of the gateway's session: its `config`, which overrides
    spark-defaults.conf.

    Of several files of that name Spark reads the first. (`SparkConnectionConfig.config`)
    """
    connection = context.config.get_connection(context.gateway)
    if not isinstance(connection, SparkConnectionConfig):
        return {}
    defaults = next(
        (path for path in _list_spark_defaults_files(connection) if path.is_file()), None
    )
    given = {str(key): _format_spark_value(value) for key, value in connection.config.items()}
    return {**(_read_spark_defaults(defaults) if defaults else {}), **given}


def _format_spark_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list_spark_defaults_files(connection: SparkConnectionConfig) -> list[Path]:
    directories = [
        connection.config_dir,
        os.environ.get("SPARK_CONF_DIR"),
        f"{home}/conf" if (home := os.environ.get("SPARK_HOME")) else None,
    ]
    return [Path(directory) / "spark-defaults.conf" for directory in directories if directory]


def _read_spark_defaults(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if value.strip() and not name.startswith("#"):
            found.setdefault(name, value.strip())
    return found


def set_known_catalog_of_sqlmesh(configs: dict[Path, Config], catalog: str) -> None:
    """Corrects a wrong guess of `read_catalog_of_sqlmesh_connection` once Spark has reported its
    catalog.
    """
    for config in configs.values():
        connections = [gateway.connection for gateway in config.gateways.values()]
        for connection in [*connections, config.default_connection]:
            if isinstance(connection, LazySqlmeshSparkConnection):
                connection._known_catalog = catalog


def has_lazy_sqlmesh_spark(configs: dict[Path, Config]) -> bool:
    """Whether any gateway is a Spark connection that `let_sqlmesh_start_spark_late` replaced."""
    return any(
        isinstance(gateway.connection, LazySqlmeshSparkConnection)
        for config in configs.values()
        for gateway in config.gateways.values()
    )


def try_spark_job_of_sqlmesh(context: Context, seconds: float) -> str | None:
    """Runs a tiny job; returns why no executor did it in time, None if one did.

    The job has its own group, which is cancelled when the time is over: Spark itself waits forever.
    (`SparkContext.setJobGroup`)
    """
    spark = get_spark_session_of_sqlmesh(context.engine_adapter)
    group = "ci-bot-doctor"
    spark.sparkContext.setJobGroup(group, "whether an executor answers", True)
    too_late = threading.Event()

    def cancel_job() -> None:
        too_late.set()
        spark.sparkContext.cancelJobGroup(group)

    timer = threading.Timer(seconds, cancel_job)
    timer.daemon = True
    timer.start()
    try:
        spark.range(1).count()
    except Exception as error:
        if not too_late.is_set():
            raise
        return extract_headline_of_error(error)
    finally:
        timer.cancel()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # takes it away
    return None


def get_spark_session_of_sqlmesh(adapter: EngineAdapter) -> SparkSession:
    """Returns the session of a Spark adapter, and starts it if there is none.

    (`SparkEngineAdapter.spark`; the base of all adapters declares None, and also Spark Connect)
    """
    return cast("SparkSession", adapter.spark)


def count_spark_executors_of_sqlmesh(context: Context) -> int:
    """Counts Spark's executors; 1 in local mode, with the driver as executor.

    (`SparkContext.getExecutorMemoryStatus`, which lists the driver, too)
    """
    context_of_spark = get_spark_session_of_sqlmesh(context.engine_adapter).sparkContext
    known = context_of_spark._jsc.sc().getExecutorMemoryStatus().size()
    return max(1, int(known) - 1)
