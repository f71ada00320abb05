"""Everything that reaches into SQLMesh's internals, for the versions that are supported.

Each function says which internal it leans on. tests/integration/test_compat.py runs each one
against the installed version, so that an upgrade that moves an internal fails there first.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from dotenv import load_dotenv
from pydantic import PrivateAttr, ValidationError
from sqlglot import exp
from sqlmesh.core import analytics, context_diff
from sqlmesh.core import constants as c
from sqlmesh.core.config import Config, DuckDBConnectionConfig, loader
from sqlmesh.core.config.common import YAML_CONFIG_FILENAMES
from sqlmesh.core.config.connection import ConnectionConfig, SparkConnectionConfig
from sqlmesh.core.config.loader import load_configs
from sqlmesh.core.config.model import ModelDefaultsConfig
from sqlmesh.core.console import Console
from sqlmesh.core.context import Context
from sqlmesh.core.dialect import to_schema
from sqlmesh.core.engine_adapter import EngineAdapter, SparkEngineAdapter
from sqlmesh.core.engine_adapter.shared import DataObject, DataObjectType
from sqlmesh.core.plan import BuiltInPlanEvaluator, Plan, PlanBuilder
from sqlmesh.core.scheduler import Scheduler
from sqlmesh.core.snapshot import (
    Snapshot,
    SnapshotEvaluator,
    SnapshotId,
    SnapshotTableCleanupTask,
    SnapshotTableInfo,
)
from sqlmesh.core.state_sync import EngineAdapterStateSync, StateSync
from sqlmesh.core.state_sync.db.utils import fetchall, snapshot_name_filter
from sqlmesh.utils import merge_dicts
from sqlmesh.utils.date import now_timestamp
from sqlmesh.utils.errors import ConfigError, NodeAuditsErrors
from sqlmesh.utils.pydantic import validation_error_message

from ci_bot.worker.catalog import SESSION_CATALOG, AdapterSql, Catalog
from ci_bot.worker.problems import spark_not_started

SUPPORTED = ("0.236",)


class ListingSparkAdapter(SparkEngineAdapter):
    """SQLMesh's adapter, which also sees what catalogs other than Spark's own hold.

    SQLMesh asks with SHOW TABLE EXTENDED, which Spark 3.5 refuses for every catalog but
    `spark_catalog`, and takes the refusal for "nothing there". Tables survive that (CREATE TABLE IF
    NOT EXISTS), views do not: an apply that is repeated after the physical view of a VIEW model was
    made would fail for ever with VIEW_ALREADY_EXISTS. (`_get_data_objects`)
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
            for name, kind in Catalog(AdapterSql(self)).objects(catalog, schema.db).items()
            if wanted is None or name.lower() in wanted
        ]


class LazySparkConnectionConfig(SparkConnectionConfig):
    """A Spark connection whose session starts at the first statement, not at the first look.

    SQLMesh builds the session while it computes the keyword arguments of the connection factory
    (`_static_connection_kwargs`), long before anything is executed. Here the arguments are computed
    inside the factory, and the default catalog is known without asking Spark.
    """

    # Not registered as a type of its own: the project's own `type: spark` is replaced by it.
    type_: Literal["spark"] = "spark"
    DISPLAY_ORDER: ClassVar[Literal[8]] = 8
    _known_catalog: str | None = PrivateAttr(default=None)
    _on_start: Callable[[], None] | None = PrivateAttr(default=None)

    @property
    def _engine_adapter(self) -> type[EngineAdapter]:
        return ListingSparkAdapter

    @property
    def _connection_factory_with_kwargs(self) -> Callable[[], Any]:
        return partial(self._start_and_connect)

    def _start_and_connect(self) -> Any:
        if self._on_start is not None:
            self._on_start()
        try:
            return super()._connection_factory_with_kwargs()
        except Exception as error:
            raise spark_not_started(error) from error

    def get_catalog(self) -> str | None:
        return self._known_catalog or super().get_catalog()


def analytics_off() -> None:
    """No run of ours sends SQLMesh's usage statistics, whatever the project says."""
    analytics.disable_analytics()


def scan_packages_once() -> None:
    """Lets the plans of this process share one scan of the installed packages.

    Every `ContextDiff` reads the metadata of all of them anew to infer requirements
    (`_build_requirements`), 0.3 s each, although they cannot change while the process runs.
    """
    metadata: Any = context_diff.metadata
    if not hasattr(metadata.packages_distributions, "cache_info"):
        metadata.packages_distributions = functools.cache(metadata.packages_distributions)


def read_configs(paths: Iterable[Path]) -> dict[Path, Config]:
    """The configuration of each project directory, as `sqlmesh` itself would read it."""
    configs: dict[Path, Config] = load_configs(None, Config, list(paths))
    return configs


def make_spark_lazy(configs: dict[Path, Config], on_start: Callable[[], None]) -> None:
    """Replaces every Spark connection by one that starts on first use.

    `on_start` is called right before a session is made. Connections are no part of any model's
    fingerprint, so the plan does not change.
    """
    for config in configs.values():
        for gateway in config.gateways.values():
            if isinstance(gateway.connection, SparkConnectionConfig):
                gateway.connection = _lazy(gateway.connection, on_start)
        if isinstance(config.default_connection, SparkConnectionConfig):
            config.default_connection = _lazy(config.default_connection, on_start)


def _lazy(
    connection: SparkConnectionConfig, on_start: Callable[[], None]
) -> LazySparkConnectionConfig:
    lazy = LazySparkConnectionConfig(
        **{name: getattr(connection, name) for name in connection.model_fields_set - {"type_"}}
    )
    lazy._on_start = on_start
    lazy._known_catalog = configured_catalog(connection)
    return lazy


def configured_catalog(connection: SparkConnectionConfig) -> str:
    """The default catalog that Spark will have, from its configuration alone.

    In order: `catalog` of the connection, `spark.sql.defaultCatalog` in its `config`,
    spark-defaults.conf of `config_dir`, SPARK_CONF_DIR or SPARK_HOME, Spark's own default.
    """
    if connection.catalog:
        return str(connection.catalog)
    key = "spark.sql.defaultCatalog"
    if key in connection.config:
        return str(connection.config[key])
    directories = [
        connection.config_dir,
        os.environ.get("SPARK_CONF_DIR"),
        f"{home}/conf" if (home := os.environ.get("SPARK_HOME")) else None,
    ]
    for directory in filter(None, directories):
        found = _from_spark_defaults(Path(directory) / "spark-defaults.conf", key)
        if found:
            return found
    return SESSION_CATALOG


def _from_spark_defaults(path: Path, key: str) -> str | None:
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if name == key and value.strip():
            return value.strip()
    return None


def set_known_catalog(configs: dict[Path, Config], catalog: str) -> None:
    """Corrects a wrong guess of `configured_catalog` after Spark was asked."""
    for config in configs.values():
        connections = [gateway.connection for gateway in config.gateways.values()]
        for connection in [*connections, config.default_connection]:
            if isinstance(connection, LazySparkConnectionConfig):
                connection._known_catalog = catalog


def prepare_configs(configs: dict[Path, Config], cache_dir: Path) -> None:
    """Settings of the run that must not be written into the project.

    An ephemeral cache, no analytics, and plans that compare with prod also when the PR environment
    exists. None of them takes part in a fingerprint.
    """
    for config in configs.values():
        config.cache_dir = str(cache_dir)
        config.disable_anonymized_analytics = True
        config.plan.always_recreate_environment = True


def state_connection(config: Config, gateway: str | None) -> ConnectionConfig:
    """The connection that holds SQLMesh's state (the warehouse's own where none is configured)."""
    connection: ConnectionConfig = config.get_state_connection(gateway) or config.get_connection(
        gateway
    )
    return connection


def open_duckdb_read_only(connection: DuckDBConnectionConfig) -> EngineAdapter:
    """An adapter on a DuckDB state file that cannot write a byte of it.

    `connector_config` is applied with SET after connecting, which is too late for the access mode,
    so the connection is made with `read_only`.
    """
    import duckdb
    from sqlmesh.core.engine_adapter import DuckDBEngineAdapter

    database = str(connection.database)
    return DuckDBEngineAdapter(
        lambda: duckdb.connect(database, read_only=True),
        multithreaded=True,
        shared_connection=True,
        cursor_init=connection._cursor_init,
    )


def state_sync_on(
    adapter: EngineAdapter, context: Context, schema: str | None = None
) -> EngineAdapterStateSync:
    """SQLMesh's state on `adapter`, in `schema` or in the schema that the project configures."""
    return EngineAdapterStateSync(
        adapter,
        schema=schema or context.config.get_state_schema(context.gateway),
        cache_dir=context.cache_dir,
        console=context.console,
    )


def throwaway_state(path: Path, context: Context) -> StateSync:
    """A fresh, migrated state in a file of our own. The only state that is ever migrated here."""
    connection = DuckDBConnectionConfig(database=str(path), concurrent_tasks=4)
    state = state_sync_on(connection.create_engine_adapter(), context, schema=c.SQLMESH)
    state.migrate()
    return state


def new_state_sync(context: Context) -> StateSync:
    """The project's state, without the check and the migration that `Context.state_sync` makes."""
    state: StateSync = context._scheduler.create_state_sync(context)
    return state


def give_state(context: Context, state: StateSync) -> None:
    """Makes `context` use `state`; must come before anything reads `context.state_sync`."""
    context._provided_state_sync = state


def prod_interval_ends(context: Context) -> dict[str, datetime]:
    """How far prod's tables reach, by model name; empty without prod.

    The frontier of a plan is the latest of them. (`_get_max_interval_end_per_model`)
    """
    ends: dict[str, datetime] = context._get_max_interval_end_per_model(context.snapshots, None)
    return ends


def keep_model_caps(builder: PlanBuilder) -> None:
    """Keeps every model's own end at prod's frontier although the plan's end was given.

    With an explicit `end` SQLMesh drops the caps per model (`override_end`), and then backfills
    unmodified models into the very tables that prod reads.
    """
    builder.override_end = False


def note_refused_models(builder: PlanBuilder) -> list[str]:
    """A list that gets the model for which `build` refuses a destructive or additive change.

    The exception does not name it, only the console is told.
    (`PlanBuilder._check_destructive_additive_changes`)
    """
    refused: list[str] = []
    told: Any = builder._console

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return getattr(told, name)

        def log_destructive_change(self, model: str, *args: Any, error: bool = True) -> None:
            if error:
                refused.append(model)

        log_additive_change = log_destructive_change

    listening: Any = Noting()
    builder._console = listening
    return refused


def plan_models_to_backfill(plan: Plan, names: set[str]) -> Plan:
    """The same plan, restricted to building data for `names`. Views are not restricted."""
    restricted: Plan = plan.model_copy(update={"models_to_backfill": names})
    return restricted


def default_catalog(context: Context) -> str | None:
    """The default catalog of the selected gateway."""
    catalog: str | None = context.default_catalog
    return catalog


def has_lazy_spark(configs: dict[Path, Config]) -> bool:
    """Whether any gateway is a Spark connection that `make_spark_lazy` replaced."""
    return any(
        isinstance(gateway.connection, LazySparkConnectionConfig)
        for config in configs.values()
        for gateway in config.gateways.values()
    )


def read_configs_without_state(paths: Iterable[Path]) -> dict[Path, Config]:
    """The configuration of each directory with every `state_connection` taken out unread.

    A state connection whose variables are missing fails the validation of the whole configuration,
    so it goes before anything is validated. All else is as `read_configs` reads it, so that both
    baselines plan alike: the project's `.env`, `SQLMESH__` variables, keys that do not exist.
    (`load_configs` and `load_config_from_paths`, without the user's own file and without dbt)
    """
    paths = list(paths)
    for path in paths:
        if (path / ".env").is_file():
            load_dotenv(dotenv_path=path / ".env", override=True)
    return {path: _config_without_state(path) for path in paths}


def _config_without_state(path: Path) -> Config:
    settings: dict[str, Any] = {}
    for name in YAML_CONFIG_FILENAMES:
        if (path / name).is_file():
            settings = loader.load_config_from_yaml(path / name)
            break
    module = path / "config.py"
    if not settings and not module.is_file():
        raise ConfigError("SQLMesh project config could not be found.")
    settings = merge_dicts(settings, loader.load_config_from_env())
    _drop_state_connections(settings)
    unknown = set(settings.get("model_defaults") or {}) - ModelDefaultsConfig.all_fields()
    if unknown:
        raise ConfigError(f"{sorted(unknown)[0]!r} is not a valid model default configuration key.")
    try:
        found: Config = Config.parse_obj(settings)
    except ValidationError as error:
        raise ConfigError(validation_error_message(error, "Invalid project config:")) from error
    if module.is_file():
        try:
            from_python = loader.load_config_from_python_module(Config, module)
        except ValidationError as error:
            raise ConfigError(validation_error_message(error, "Invalid project config:")) from error
        for item in from_python.gateways.values():
            item.state_connection = None
        found = from_python.update_with(found)
    if found.model_defaults.dialect is None:
        raise ConfigError("The model default `dialect` is required; set it in `model_defaults`.")
    return found


def _drop_state_connections(settings: dict[str, Any]) -> None:
    """In all three spellings: gateways by name, `gateways` as the only one, and `gateway`."""
    for key in ("gateways", "gateway"):
        gateways = settings.get(key)
        if not isinstance(gateways, dict):
            continue
        gateways.pop("state_connection", None)
        for gateway in gateways.values():
            if isinstance(gateway, dict):
                gateway.pop("state_connection", None)


def merge_nothing_from_state(context: Context) -> None:
    """Loads only what lies in the context's directories.

    With a `project:` key, SQLMesh adds the models that prod's state holds of other projects
    (`Context.load`). In a state that stands for the base branch these are the base branch's own,
    under the key that they had there. Call it before loading.
    """
    context._load_state = False


def state_is_shared(context: Context) -> bool:
    """Whether other projects may live in the state: not in one that stands for a base branch.

    (`merge_nothing_from_state`)
    """
    return bool(context._load_state)


class RecordingScheduler(Scheduler):
    """SQLMesh's scheduler, which also hands on the result of every audit.

    It has no notification targets: an apply to a PR environment must not ring the alarms that the
    project configured for prod. (`Scheduler._audit_snapshot`)
    """

    def __init__(self, *args: Any, on_audits: AuditListener, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._on_audits = on_audits

    def _audit_snapshot(self, snapshot: Snapshot, *args: Any, **kwargs: Any) -> list[Any]:
        try:
            results: list[Any] = super()._audit_snapshot(snapshot, *args, **kwargs)
        except NodeAuditsErrors as error:
            failed = [AuditOutcome(item.audit_name, True, int(item.count)) for item in error.errors]
            self._on_audits(snapshot, failed)
            raise
        self._on_audits(
            snapshot,
            [
                AuditOutcome(
                    result.audit.name,
                    bool(result.blocking),
                    None if result.skipped else int(result.count or 0),
                )
                for result in results
            ],
        )
        return results


@dataclass(frozen=True)
class AuditOutcome:
    """One audit of one batch; `failed_rows` is None where the audit was skipped."""

    audit: str
    blocking: bool
    failed_rows: int | None


AuditListener = Callable[[Snapshot, Sequence[AuditOutcome]], None]


class LeasedPlanEvaluator(BuiltInPlanEvaluator):
    """SQLMesh's evaluator, which asks before it promotes: a circuit breaker is asked between
    batches only. (`visit_environment_record_update_stage`, `visit_virtual_layer_update_stage`)
    """

    promotion: Callable[[], AbstractContextManager[None]] = nullcontext

    def visit_environment_record_update_stage(self, stage: Any, plan: Any) -> None:
        with self.promotion():
            super().visit_environment_record_update_stage(stage, plan)

    def visit_virtual_layer_update_stage(self, stage: Any, plan: Any) -> None:
        with self.promotion():
            # The views take their time on Spark; no transaction on the state waits for that.
            pass
        super().visit_virtual_layer_update_stage(stage, plan)


def plan_evaluator(
    context: Context,
    console: Console,
    on_audits: AuditListener,
    *,
    max_workers: int | None,
    promotion: Callable[[], AbstractContextManager[None]],
) -> BuiltInPlanEvaluator:
    """What executes a plan's stages, with our console and our scheduler.

    Args:
        max_workers: How many batches run at once; None takes the connection's setting.
        promotion: Entered around the write that promotes the environment in the state, and once
            more before its views are made. What it raises stops the plan.
    """

    def scheduler(snapshots: Iterable[Snapshot], evaluator: SnapshotEvaluator) -> Scheduler:
        return RecordingScheduler(
            snapshots,
            evaluator,
            context.state_sync,
            default_catalog=context.default_catalog,
            max_workers=max_workers or context.concurrent_tasks,
            console=console,
            on_audits=on_audits,
        )

    evaluator = LeasedPlanEvaluator(
        state_sync=context.state_sync,
        snapshot_evaluator=context.snapshot_evaluator,
        create_scheduler=scheduler,
        default_catalog=context.default_catalog,
        console=console,
    )
    evaluator.promotion = promotion
    return evaluator


def state_adapter(context: Context) -> EngineAdapter:
    """The engine adapter below SQLMesh's state, for the ledger that lives beside it."""
    return state_adapter_of(context.state_sync)


def state_adapter_of(state: StateSync) -> EngineAdapter:
    """The engine adapter of a state, also of one that SQLMesh has wrapped in its cache."""
    inner: Any = getattr(state, "state_sync", state)
    adapter: EngineAdapter = inner.engine_adapter
    return adapter


def forget_cached_snapshots(context: Context) -> None:
    """Lets the next plan read every snapshot from the state again. (`CachingStateSync`, 120 s)"""
    clear = getattr(context.state_sync, "clear_cache", None)
    if clear is not None:
        clear()


def count_snapshots(state: StateSync) -> int:
    """How many snapshots a state holds, old ones included. (`EngineAdapterStateSync.schema`)"""
    inner: Any = getattr(state, "state_sync", state)
    table = exp.table_("_snapshots", db=inner.schema)
    row = inner.engine_adapter.fetchone(exp.select("COUNT(*)").from_(table))
    return int(row[0]) if row else 0


def delete_environment_record(context: Context, name: str) -> None:
    """Deletes the state's record of one expired environment, and of no other.

    (`delete_expired_environments` takes a name since 0.236; older versions delete all expired.)
    """
    context.state_sync.delete_expired_environments(current_ts=now_timestamp(), name=name)


def needs_format(context: Context, node: Any) -> bool:
    """Whether `sqlmesh format` would change the file of a model or audit. (`Context._format`)"""
    before = Path(node._path).read_text(encoding="utf-8")
    return bool(context._format(node, before) != before)


def executor_count(context: Context) -> int:
    """How many executors Spark has now; 1 in local mode, where the driver is the executor.

    (`SparkContext.getExecutorMemoryStatus`, which lists the driver, too)
    """
    adapter: Any = context.engine_adapter
    known = adapter.spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    return max(1, int(known) - 1)


@dataclass(frozen=True)
class StoredSnapshot:
    """A row of the state's snapshots; the times are milliseconds."""

    name: str
    identifier: str
    version: str
    dev_version: str
    updated_ts: int
    ttl_ms: int


def stored_snapshots(context: Context, names: Iterable[str]) -> list[StoredSnapshot]:
    """Every row that the state has of these models, without reading a model. (`SnapshotState`)"""
    store: Any = _store(context).snapshot_state
    columns = ("name", "identifier", "version", "dev_version", "updated_ts", "ttl_ms")
    found = []
    for where in snapshot_name_filter(sorted(set(names)), batch_size=store.SNAPSHOT_BATCH_SIZE):
        query = exp.select(*columns).from_(store.snapshots_table).where(where)
        for name, identifier, version, dev_version, updated_ts, ttl_ms in fetchall(
            store.engine_adapter, query
        ):
            found.append(
                StoredSnapshot(
                    str(name),
                    str(identifier),
                    str(version),
                    str(dev_version or version),
                    int(updated_ts),
                    int(ttl_ms),
                )
            )
    return found


def lock_environments(context: Context) -> None:
    """Makes every promotion wait until the transaction ends that this is called in.

    A promotion locks the row of its environment before it writes (`EngineAdapterStateSync.promote`)
    and so does this, with all of them. DuckDB has no such lock and needs none.
    """
    store: Any = _store(context).environment_state
    fetchall(store.engine_adapter, exp.select("name").from_(store.environments_table).lock())


def environment_snapshots(context: Context) -> dict[str, list[SnapshotTableInfo]]:
    """What each environment uses, expired ones too. Of one whose promotion has not ended also what
    it used before, as `get_expired_snapshots` counts it."""
    return {
        str(environment.name): [
            *environment.snapshots,
            *(
                (environment.previous_finalized_snapshots or [])
                if not environment.finalized_ts
                else []
            ),
        ]
        for environment in _store(context).get_environments()
    }


def whole_snapshots(
    context: Context, keys: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Snapshot]:
    """Those of the snapshots (name, identifier) that the state has."""
    ids = [SnapshotId(name=name, identifier=identifier) for name, identifier in keys]
    found = _store(context).get_snapshots(ids) if ids else {}
    return {(str(item.name), str(item.identifier)): item for item in found.values()}


def forget_snapshots(context: Context, snapshots: Iterable[tuple[Snapshot, bool]]) -> None:
    """Deletes the rows of snapshots, and their intervals, from the state.

    The interval rows of others stay byte for byte: SQLMesh's own `cleanup_intervals` would compact
    all of them first. (`_delete_intervals_by_version`, `_delete_intervals_by_dev_version`)

    Args:
        snapshots: True: nobody shares the snapshot's version, so all of its intervals go. False:
            only those of its preview.
    """
    tasks = [
        SnapshotTableCleanupTask(snapshot=item.table_info, dev_table_only=not whole)
        for item, whole in snapshots
    ]
    if not tasks:
        return
    store: Any = _store(context)
    store.snapshot_state.delete_snapshots([task.snapshot for task in tasks])
    store.interval_state._delete_intervals_by_version(tasks)
    store.interval_state._delete_intervals_by_dev_version(tasks)


def _store(context: Context) -> EngineAdapterStateSync:
    """The state below the cache that SQLMesh wraps it in."""
    state: Any = context.state_sync
    store: EngineAdapterStateSync = getattr(state, "state_sync", state)
    return store
