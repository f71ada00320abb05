"""SQLMesh's state: opening it, and rows that its own interface does not return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.config import Config, DuckDBConnectionConfig
from sqlmesh.core.config.connection import ConnectionConfig, PostgresConnectionConfig
from sqlmesh.core.context import Context
from sqlmesh.core.engine_adapter import EngineAdapter
from sqlmesh.core.environment import Environment
from sqlmesh.core.snapshot import (
    Snapshot,
    SnapshotId,
    SnapshotTableCleanupTask,
    SnapshotTableInfo,
    missing_intervals,
)
from sqlmesh.core.state_sync import EngineAdapterStateSync, StateSync
from sqlmesh.core.state_sync.db.utils import fetchall, snapshot_name_filter

if TYPE_CHECKING:
    from sqlmesh.core.snapshot import Node

# Kinds of models that have no table of their own.
_WITHOUT_TABLE = frozenset({"embedded", "external"})


def find_sqlmesh_state_connection(config: Config, gateway: str | None) -> ConnectionConfig:
    """Finds the connection of SQLMesh's state, or the warehouse's if no other is configured."""
    connection: ConnectionConfig = config.get_state_connection(gateway) or config.get_connection(
        gateway
    )
    return connection


def open_duckdb_state_read_only(connection: DuckDBConnectionConfig) -> EngineAdapter:
    """Opens an adapter on a DuckDB state file that cannot write to it.

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


def make_sqlmesh_state_on(
    adapter: EngineAdapter, context: Context, schema: str | None = None
) -> EngineAdapterStateSync:
    """Makes SQLMesh's state on `adapter`, in `schema` or in the project's configured schema."""
    return EngineAdapterStateSync(
        adapter,
        schema=schema or context.config.get_state_schema(context.gateway),
        cache_dir=context.cache_dir,
        console=context.console,
    )


def make_throwaway_sqlmesh_state(path: Path, context: Context) -> StateSync:
    """Makes a fresh, migrated state in our own file. No other state is ever migrated here."""
    state = open_throwaway_sqlmesh_state(path, context)
    state.migrate()
    return state


def open_throwaway_sqlmesh_state(path: Path, context: Context) -> StateSync:
    """Opens the state in `path`, which another process made and has closed."""
    connection = DuckDBConnectionConfig(database=str(path), concurrent_tasks=4)
    return make_sqlmesh_state_on(connection.create_engine_adapter(), context, schema=c.SQLMESH)


def make_sqlmesh_state(context: Context) -> StateSync:
    """Makes the project's state, without the check and the migration of `Context.state_sync`."""
    state: StateSync = context._scheduler.create_state_sync(context)
    return state


def make_sqlmesh_transactions_read_only() -> None:
    """Makes every transaction on a PostgreSQL server read-only, from the next connection on.

    For a server behind a pooler, where the next client would inherit a session's settings.
    (`PostgresConnectionConfig._connection_factory`)
    """
    connect = vars(PostgresConnectionConfig)["_connection_factory"].fget

    def make_read_only_factory(config: PostgresConnectionConfig) -> Callable[..., Any]:
        def read_only(*args: Any, **options: Any) -> Any:
            connection = connect(config)(*args, **options)
            # Without autocommit psycopg2 sends it with each BEGIN, so the session keeps no setting.
            connection.set_session(readonly=True)
            return connection

        return read_only

    configuration: Any = PostgresConnectionConfig
    configuration._connection_factory = property(make_read_only_factory)


def give_sqlmesh_state(context: Context, state: StateSync) -> None:
    """Makes `context` use `state`; must come before anything reads `context.state_sync`."""
    context._provided_state_sync = state


def get_sqlmesh_state_adapter(context: Context) -> EngineAdapter:
    """Returns the engine adapter below SQLMesh's state, for the ledger beside it."""
    return unwrap_sqlmesh_state_adapter(context.state_sync)


def unwrap_sqlmesh_state_adapter(state: StateSync) -> EngineAdapter:
    """Returns the engine adapter of a state, also of one that SQLMesh has wrapped in its cache."""
    adapter: EngineAdapter = _unwrap_sqlmesh_state(state).engine_adapter
    return adapter


class ClosedSqlmeshConnections:
    """Stands in for the connection pools of adapters, and refuses every use.

    It keeps the pools: if the last reference to one went, its connection would be ended, also for
    the process from which this one was forked.
    """

    def __init__(self) -> None:
        self._kept: list[object] = []
        self.was_used = False

    def keep_pool(self, pool: object) -> None:
        self._kept.append(pool)

    def __getattr__(self, name: str) -> Any:
        self.was_used = True
        raise RuntimeError("This process may not use the connections of the one that forked it.")


def close_off_sqlmesh_connections(context: Context) -> ClosedSqlmeshConnections:
    """Makes every use of the context's state and engines an error, in a forked process."""
    closed = ClosedSqlmeshConnections()
    adapters = [*context.__dict__.get("engine_adapters", {}).values(), context._engine_adapter]
    for adapter in (*adapters, get_sqlmesh_state_adapter(context)):
        if adapter is not None and adapter._connection_pool is not closed:
            closed.keep_pool(adapter._connection_pool)
            adapter._connection_pool = closed
    return closed


def forget_cached_sqlmesh_snapshots(context: Context) -> None:
    """Lets the next plan read every snapshot from the state again. (`CachingStateSync`, 120 s)"""
    clear = getattr(context.state_sync, "clear_cache", None)
    if clear is not None:
        clear()


def count_sqlmesh_snapshots(state: StateSync) -> int:
    """Counts the snapshots of a state, old ones included. (`EngineAdapterStateSync.schema`)"""
    store = _unwrap_sqlmesh_state(state)
    table = exp.table_("_snapshots", db=store.schema)
    row = store.engine_adapter.fetchone(exp.select("COUNT(*)").from_(table))
    return int(row[0]) if row else 0


def mark_sqlmesh_environment_unfinished(
    context: Context, stored: Environment, *, lives_until: int
) -> None:
    """Marks an environment in the state as unfinished, as if its promotion had not ended. The next
    plan makes every view again, and no run counts it as complete.

    It is not invalidated, because then the janitor of any `sqlmesh run` would drop its schema with
    CASCADE, with other people's objects. (`EnvironmentState.finalize`)

    Args:
        stored: The environment as it was read; nothing happens if it was planned again since.
        lives_until: If it expires earlier, it now expires at this time, in milliseconds.
    """
    state: Any = _get_sqlmesh_state_store(context).environment_state
    expires = exp.column("expiration_ts")
    soonest = exp.Literal.number(lives_until)
    state.engine_adapter.update_table(
        state.environments_table,
        {
            "finalized_ts": None,
            "expiration_ts": exp.case().when(expires < soonest, soonest).else_(expires),
        },
        where=exp.and_(
            exp.column("name").eq(exp.Literal.string(stored.name)),
            exp.column("plan_id").eq(exp.Literal.string(stored.plan_id)),
        ),
    )


def delete_sqlmesh_environment_record(context: Context, stored: Environment) -> bool:
    """Deletes the state's record of an environment that was marked as unfinished, and of no other.

    (`EnvironmentState.delete_expired_environments`, which takes a name since 0.235 only.)

    Args:
        stored: The environment as it was read.

    Returns:
        Whether the record is gone; False if somebody has planned it again since.
    """
    state: Any = _get_sqlmesh_state_store(context).environment_state
    named = exp.Literal.string(stored.name)
    with state.engine_adapter.transaction():
        now = state.get_environment(stored.name, lock_for_update=True)
        if now is not None and (now.plan_id != stored.plan_id or now.finalized_ts):
            return False
        state.engine_adapter.delete_from(
            state.environments_table, where=exp.column("name").eq(named)
        )
        state.engine_adapter.delete_from(
            state.environment_statements_table, where=exp.column("environment_name").eq(named)
        )
    return True


@dataclass(frozen=True)
class StoredSnapshot:
    """A row of the state's snapshots; the times are milliseconds."""

    name: str
    identifier: str
    version: str
    dev_version: str
    updated_ts: int
    ttl_ms: int


def list_stored_sqlmesh_snapshots(context: Context, names: Iterable[str]) -> list[StoredSnapshot]:
    """Lists every row that the state has of these models, without reading a model.
    (`SnapshotState`)
    """
    store: Any = _get_sqlmesh_state_store(context).snapshot_state
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


@dataclass(frozen=True)
class UnusedVersion:
    """A version of a model's table that no environment of the state refers to."""

    name: str
    version: str
    ended_ts: int


def list_unused_sqlmesh_versions(state: StateSync) -> list[UnusedVersion]:
    """Lists versions of models that no environment refers to, with the time (ms) from which
    SQLMesh's janitor may remove them. No model is read. (`SnapshotState.get_expired_snapshots`)
    """
    store: Any = _unwrap_sqlmesh_state(state).snapshot_state
    used = {
        (info.name, info.version)
        for environment in state.get_environments()
        for info in environment.snapshots
    }
    columns = ("name", "version", "updated_ts", "ttl_ms", "kind_name")
    ends: dict[tuple[str, str], int] = {}
    query = exp.select(*columns).from_(store.snapshots_table)
    for name, version, updated_ts, ttl_ms, kind in fetchall(store.engine_adapter, query):
        key = (str(name), str(version))
        if key not in used and kind and str(kind).lower() not in _WITHOUT_TABLE:
            ends[key] = max(ends.get(key, 0), int(updated_ts) + int(ttl_ms))
    return [UnusedVersion(name, version, end) for (name, version), end in sorted(ends.items())]


def list_missing_sqlmesh_intervals(state: StateSync, until: int) -> dict[str, tuple[int, int]]:
    """Lists the gaps of prod's models before a moment: from the first to the last missing interval,
    in milliseconds, by the model's own name. (`Scheduler.run`)
    """
    prod = state.get_environment(c.PROD)
    if prod is None:
        return {}
    snapshots = state.get_snapshots(prod.snapshots)
    found = missing_intervals(snapshots, execution_time=until, end=until)
    lacking = {
        str(snapshot.node.name): [interval for interval in intervals if interval[1] <= until]
        for snapshot, intervals in found.items()
        if snapshot.is_model and not snapshot.is_symbolic and not snapshot.is_seed
    }
    return {
        name: (min(start for start, _ in intervals), max(end for _, end in intervals))
        for name, intervals in lacking.items()
        if intervals
    }


def lock_sqlmesh_environments(context: Context) -> None:
    """Makes every promotion wait for the end of the transaction in which this is called.

    A promotion locks the row of its environment before it writes
    (`EngineAdapterStateSync.promote`); this locks the rows of all environments. DuckDB has no such
    lock and needs none.
    """
    store: Any = _get_sqlmesh_state_store(context).environment_state
    fetchall(store.engine_adapter, exp.select("name").from_(store.environments_table).lock())


def list_sqlmesh_environment_snapshots(context: Context) -> dict[str, list[SnapshotTableInfo]]:
    """Lists the snapshots that each environment uses, expired ones too. An unfinished promotion
    adds those that it used before, as `get_expired_snapshots` counts them.
    """
    return {
        str(environment.name): [
            *environment.snapshots,
            *(
                (environment.previous_finalized_snapshots or [])
                if not environment.finalized_ts
                else []
            ),
        ]
        for environment in _get_sqlmesh_state_store(context).get_environments()
    }


def read_full_sqlmesh_snapshots(
    context: Context, keys: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Snapshot]:
    """Reads those of the snapshots (name, identifier) that the state has."""
    ids = [SnapshotId(name=name, identifier=identifier) for name, identifier in keys]
    found = _get_sqlmesh_state_store(context).get_snapshots(ids) if ids else {}
    return {(str(item.name), str(item.identifier)): item for item in found.values()}


def delete_sqlmesh_snapshots(
    context: Context, snapshots: Iterable[tuple[Snapshot, Literal["version", "preview", "row"]]]
) -> None:
    """Deletes the rows of snapshots, and their intervals, from the state.

    The interval rows of others stay byte for byte: SQLMesh's own `cleanup_intervals` would compact
    all of them first. (`_delete_intervals_by_version`, `_delete_intervals_by_dev_version`)

    Args:
        snapshots: Each with the intervals to delete: of its whole version, of its preview, which
            another plan would otherwise count as built, or none.
    """
    chosen = list(snapshots)
    if not chosen:
        return
    tasks = [
        SnapshotTableCleanupTask(snapshot=item.table_info, dev_table_only=part == "preview")
        for item, part in chosen
        if part != "row"
    ]
    store: Any = _get_sqlmesh_state_store(context)
    store.snapshot_state.delete_snapshots([item.table_info for item, _ in chosen])
    store.interval_state._delete_intervals_by_version(tasks)
    store.interval_state._delete_intervals_by_dev_version(tasks)


def _get_sqlmesh_state_store(context: Context) -> EngineAdapterStateSync:
    return _unwrap_sqlmesh_state(context.state_sync)


def _unwrap_sqlmesh_state(state: Any) -> EngineAdapterStateSync:
    """Returns the state below SQLMesh's cache."""
    store: EngineAdapterStateSync = getattr(state, "state_sync", state)
    return store


# Two checkouts of one project, compared as if they had the same path.
#
# A configuration may put its own directory into a variable, and a module may do the same. SQLMesh
# keeps such values with each model that uses them, and they count in fingerprints: the base
# branch's project is in another directory, so it would differ in every such model.
#
# Uses `Context._models`, `_standalone_audits`, and the hashes that nodes keep once computed.


Moved = Callable[[str], str]
MovedNode = TypeVar("MovedNode", bound="Node")


def rewrite_checkout_paths_in_sqlmesh(context: Context, here: Path, there: Path) -> None:
    """Replaces `here` by `there` in a loaded project's values.

    Args:
        here: The root of the checkout that was loaded.
        there: The root of the one that it will be compared with.
    """
    moved = _make_sqlmesh_path_mover(here, there)
    _move_all_sqlmesh_paths(context._models, moved)
    _move_all_sqlmesh_paths(context._standalone_audits, moved)


def _move_all_sqlmesh_paths(named: dict[str, MovedNode], moved: Moved) -> None:
    for name, node in list(named.items()):
        changed = _move_sqlmesh_node_paths(node, moved)
        if changed:
            copy = cast("MovedNode", node.copy(update=changed))
            copy._data_hash = copy._metadata_hash = None
            named.update({name: copy})


def _make_sqlmesh_path_mover(here: Path, there: Path) -> Moved:
    """Makes the function that replaces paths, also without their first slash, as after a scheme."""
    named = re.compile(
        "|".join(
            rf"(?<![\w.-]){re.escape(str(path).lstrip('/'))}(?![\w.-])"
            for path in dict.fromkeys((here, here.resolve()))
        )
    )
    new = str(there).lstrip("/")
    return lambda text: named.sub(lambda _: new, text)


def _move_sqlmesh_node_paths(node: Node, moved: Moved) -> dict[str, object]:
    """Returns the changed fields of a model or audit that hold a path."""
    changed: dict[str, object] = {}
    values = {
        name: item.copy(update={"payload": moved(item.payload)})
        for name, item in node.python_env.items()
        if moved(item.payload) != item.payload
    }
    if values:
        changed["python_env"] = {**node.python_env, **values}
    shared = node.jinja_macros.global_objs
    rewritten = _rewrite_sqlmesh_value(shared, moved)
    if rewritten != shared:
        changed["jinja_macros"] = node.jinja_macros.copy(update={"global_objs": rewritten})
    return changed


def _rewrite_sqlmesh_value(value: Any, moved: Moved) -> Any:
    if isinstance(value, str):
        return moved(value)
    if isinstance(value, dict):
        return {key: _rewrite_sqlmesh_value(item, moved) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_rewrite_sqlmesh_value(item, moved) for item in value)
    return value
