"""Opens a SQLMesh project for one run: configuration, state and models, without starting Spark."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot
import sqlmesh
from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.config import DuckDBConnectionConfig
from sqlmesh.core.context import Context
from sqlmesh.core.state_sync import StateSync
from sqlmesh.utils.errors import ConfigError, SQLMeshError

import ci_bot
from ci_bot.errors import BadInput
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.review_inputs import KnownFile
from ci_bot.protocol.review_report import Baseline, ProdNotFound, Project
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import NotLoaded, make_other_version_error, make_state_error
from ci_bot.worker.project.configuration import (
    ProjectPlace,
    configure_projects,
    create_project_context,
    display_project_path,
    make_project_configuration_error,
    require_spark_gateway_of_project,
)
from ci_bot.worker.project.loading import (
    attribute_project_load_failure,
    find_missing_prod_of_project,
    load_project,
)
from ci_bot.worker.project.merge_support import GatewayFacts, list_gateways_of_project
from ci_bot.worker.runtime import WorkerPhaseClock

if TYPE_CHECKING:
    from sqlmesh.core.config import Config
    from sqlmesh.core.engine_adapter import EngineAdapter

UNPIN_HINT = "Take it out of `pinned_environments` first."

# The settings of two configurations that the rules compare, as plain values.
#
# The base branch's configuration is read in another process, and its objects cannot leave it: they
# may be of classes that its own `config.py` defines.


def _iterate_plan_settings(config: Config) -> Iterator[tuple[str, object]]:
    """Yields the settings of plans, by the keys of a config.yaml."""
    for name, value in config.plan.model_dump(mode="json").items():
        if isinstance(value, dict):
            yield from ((f"plan\x00{name}\x00{key}", one) for key, one in value.items())
        else:
            yield f"plan\x00{name}", value


def _iterate_engine_settings(config: Config) -> Iterator[tuple[str, object]]:
    """Yields the settings that a connection gives to Spark, by the keys of a config.yaml."""
    for name, gateway in config.gateways.items():
        given = getattr(gateway.connection, "config", None)
        for key, value in (given if isinstance(given, dict) else {}).items():
            yield f"gateways\x00{name}\x00connection\x00config\x00{key}", str(value)


@dataclass(frozen=True)
class ProjectConfigFacts:
    """The settings of one configuration that change models or data.

    Attributes:
        settings: values by key, whose parts are separated by NUL; None if one is not set.
        variables: the names of all variables, including those of gateways, in lower case.
        gateways: the settings of each gateway that decide the format of its tables.
    """

    settings: dict[str, object] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    gateways: dict[str, GatewayFacts] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: Config, gateway: str | None = None) -> ProjectConfigFacts:
        """Reads the facts from SQLMesh's configuration object.

        Args:
            gateway: the gateway of models that name none, if it is not the configuration's default.
        """
        names = set(config.variables)
        for each in config.gateways.values():
            names |= set(each.variables)
        start = config.model_defaults.start
        return cls(
            settings={
                "project": config.project,
                "default_gateway": config.default_gateway,
                "model_defaults\x00dialect": config.model_defaults.dialect,
                "model_defaults\x00start": None if start is None else str(start),
                "linter\x00enabled": config.linter.enabled,
                "linter\x00rules": sorted(config.linter.rules),
                "physical_table_naming_convention": str(
                    config.physical_table_naming_convention.value
                ),
                "physical_schema_mapping": {
                    pattern.pattern: name
                    for pattern, name in config.physical_schema_mapping.items()
                },
                "ignore_patterns": list(config.ignore_patterns),
                "environment_suffix_target": str(config.environment_suffix_target.value),
                **dict(_iterate_plan_settings(config)),
                **dict(_iterate_engine_settings(config)),
            },
            variables=frozenset(name.lower() for name in names),
            gateways=list_gateways_of_project(config, gateway),
        )

    def as_values(self) -> dict[str, object]:
        """Returns the facts as JSON values, for `from_values`."""
        return {**asdict(self), "variables": sorted(self.variables)}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> ProjectConfigFacts:
        """Reads the facts that `as_values` wrote."""
        return cls(
            dict(values["settings"]),
            frozenset(values["variables"]),
            {name: GatewayFacts(**facts) for name, facts in values["gateways"].items()},
        )


# libpq reads this variable, so that every PostgreSQL connection of a review refuses to write.
PG_READ_ONLY = "-c default_transaction_read_only=on"

_READ_BY_PLANS = ("_environments", "_snapshots", "_intervals")


@dataclass(frozen=True)
class ProjectStateFacts:
    """The facts about a state that need no snapshot."""

    schema_version: int
    sqlmesh_version: str | None
    engine: str


@dataclass
class OpenProject:
    """A loaded project with its state, ready to be planned."""

    context: Context
    baseline: Baseline
    state: ProjectStateFacts
    clock: WorkerPhaseClock
    spark_starts: list[float]
    config_before: ProjectConfigFacts | None = None
    base_failures: tuple[Failure, ...] = ()
    prod_not_found: ProdNotFound | None = None

    @property
    def has_prod(self) -> bool:
        return self.context.state_reader.get_environment(c.PROD) is not None

    @property
    def base_models(self) -> int | None:
        """Counts the base branch's models; None if prod is not the base branch."""
        if self.baseline != "base-branch" or self.base_failures:
            return None
        base = self.context.state_reader.get_environment(c.PROD)
        return sum(info.is_model for info in base.snapshots) if base is not None else 0

    def close_state(self) -> None:
        """Closes the state: an open DuckDB file leaves a write-ahead log beside it."""
        self.context.close()

    @property
    def spark_started(self) -> bool:
        return bool(self.spark_starts)


def open_project_state(
    context: Context, place: ProjectPlace, *, write: bool
) -> tuple[StateSync | None, ProjectStateFacts]:
    """Opens the project's state and checks it; never creates or migrates it.

    Returns:
        The state (None if there is none yet: an absent file, or no schema), and its facts.

    Raises:
        BadInput: the state is of another version, cannot be reached, or SQLMesh refuses its
            connection.
        RequestRefused: the DuckDB file is locked by another process.
    """
    connection = sqlmesh_compat.find_sqlmesh_state_connection(context.config, context.gateway)
    engine = str(connection.type_)
    absent = ProjectStateFacts(schema_version=0, sqlmesh_version=None, engine=engine)
    if isinstance(connection, DuckDBConnectionConfig):
        database = connection.database
        if not database or database == ":memory:":
            return None, absent
        if database == "None":
            # A template turns an unset variable into this text; nobody means it as a file name.
            error = ValueError("the name of its file is None")
            raise make_state_error(error, engine, place.projects, os.environ)
        if not Path(database).exists():
            return None, absent
    try:
        state: StateSync
        if isinstance(connection, DuckDBConnectionConfig) and not write:
            state = sqlmesh_compat.make_sqlmesh_state_on(
                sqlmesh_compat.open_duckdb_state_read_only(connection), context
            )
            sqlmesh_compat.unwrap_sqlmesh_state_adapter(state).fetchone("SELECT 1")
        else:
            state = _connect_project_state(context)
        versions = state.get_versions(validate=False)
    except ConfigError as error:
        raise make_project_configuration_error(error, place) from error
    except Exception as error:
        raise make_state_error(error, engine, place.projects, os.environ) from error
    facts = ProjectStateFacts(
        schema_version=int(versions.schema_version),
        sqlmesh_version=str(versions.sqlmesh_version) if versions.schema_version else None,
        engine=engine,
    )
    if facts.schema_version == 0:
        return None, facts
    try:
        state.get_versions(validate=True)
    except SQLMeshError as error:
        raise make_other_version_error(
            versions.sqlmesh_version, facts.schema_version, installed=sqlmesh.__version__
        ) from error
    try:
        _try_to_read_project_state(state, context)
    except Exception as error:
        raise make_state_error(error, engine, place.projects, os.environ) from error
    return state, facts


def _try_to_read_project_state(state: StateSync, context: Context) -> None:
    """Raises if the account may read the state's version but not the tables that a plan needs.

    One query, so that it costs one round trip.
    """
    schema = context.config.get_state_schema(context.gateway) or c.SQLMESH
    first, *others = (exp.table_(name, db=schema) for name in _READ_BY_PLANS)
    query = exp.select("1").from_(first).where(exp.false())
    for table in others:
        query = query.join(table, join_type="cross")
    sqlmesh_compat.unwrap_sqlmesh_state_adapter(state).fetchone(query)


def _connect_project_state(context: Context) -> StateSync:
    """Connects to the state, and raises if its server does not answer.

    SQLMesh reads every error of "is there a versions table?" as no, so a locked or unreachable
    state would look empty. So the connection is tried first.
    """
    try:
        state = sqlmesh_compat.make_sqlmesh_state(context)
        sqlmesh_compat.unwrap_sqlmesh_state_adapter(state).fetchone("SELECT 1")
    except Exception as error:
        options = os.environ.get("PGOPTIONS", "")
        if PG_READ_ONLY not in options or "unsupported startup parameter" not in str(error):
            raise
        # A pooler (PgBouncer) drops options; then each transaction itself sets read-only.
        os.environ["PGOPTIONS"] = options.replace(PG_READ_ONLY, "").strip()
        sqlmesh_compat.make_sqlmesh_transactions_read_only()
        state = sqlmesh_compat.make_sqlmesh_state(context)
        sqlmesh_compat.unwrap_sqlmesh_state_adapter(state).fetchone("SELECT 1")
    return state


def refuse_postgres_writes_of_project() -> None:
    """Makes every PostgreSQL session of this process refuse writes. Call it before connecting."""
    options = os.environ.get("PGOPTIONS", "")
    if PG_READ_ONLY not in options:
        os.environ["PGOPTIONS"] = f"{options} {PG_READ_ONLY}".strip()


def list_prod_catalogs_of_project(state: StateSync) -> set[str]:
    """Lists the catalogs in the names of prod's models."""
    prod = state.get_environment(c.PROD)
    if prod is None:
        return set()
    return {
        catalog
        for info in prod.snapshots
        if info.is_model and (catalog := exp.to_table(info.name, dialect="spark").catalog)
    }


def ask_spark_for_project_catalog(context: Context) -> str:
    """Starts Spark and asks it for its default catalog."""
    adapter: EngineAdapter = context.engine_adapter
    return str(adapter.get_current_catalog())


def open_project(
    place: ProjectPlace,
    *,
    write: bool,
    clock: WorkerPhaseClock,
    on_spark_start: Callable[[], None],
    only_spark: bool = False,
    known: Sequence[KnownFile] = (),
) -> OpenProject:
    """Opens a project against its own state.

    If the state is empty, a throw-away state replaces it, and nothing is created in the project's
    own. `baseline` is "empty" if the state holds no prod.

    Args:
        only_spark: Refuse a gateway of another engine before anything is opened.
        known: Facts about files that the default branch's run found; used for files that are the
            same.

    Raises:
        BadInput, RequestRefused: see `configure_projects`, `create_project_context` and
            `open_project_state`.
        NotLoaded: the project does not load.
    """
    if not write:
        refuse_postgres_writes_of_project()
    configs, starts = configure_projects(place, on_spark_start, clock=clock)
    context = create_project_context(configs, place)
    if only_spark:
        require_spark_gateway_of_project(context)
    with clock.time_phase("state"):
        state, facts = open_project_state(context, place, write=write)
        has_tables = state is not None
        if state is None:
            state = sqlmesh_compat.make_throwaway_sqlmesh_state(
                place.scratch_dir / "empty-state.duckdb", context
            )
    sqlmesh_compat.give_sqlmesh_state(context, state)
    catalogs = list_prod_catalogs_of_project(state)
    guess = sqlmesh_compat.read_default_catalog_of_sqlmesh(context)
    if catalogs and guess not in catalogs and sqlmesh_compat.has_lazy_sqlmesh_spark(configs):
        # Under another catalog's name all models would look removed and added.
        with clock.time_phase("spark"):
            sqlmesh_compat.set_known_catalog_of_sqlmesh(
                configs, ask_spark_for_project_catalog(context)
            )
        context = create_project_context(configs, place)
        sqlmesh_compat.give_sqlmesh_state(context, state)
    files = {file.path: file for file in known}
    try:
        with sqlmesh_compat.let_sqlmesh_reuse_prod_models(
            context,
            lambda stored: sqlmesh_compat.load_known_files_into_sqlmesh(
                files, stored, place.repository
            ),
        ):
            load_project(context, clock.time_phase("load"), place.repository)
    except NotLoaded as error:
        raise attribute_project_load_failure(error, configs, place, state) from error
    opened = OpenProject(context, "state", facts, clock, starts)
    opened.baseline = "state" if opened.has_prod else "empty"
    opened.prod_not_found = find_missing_prod_of_project(
        context, has_tables=has_tables, place=place
    )
    return opened


def open_project_without_state(
    place: ProjectPlace,
    *,
    clock: WorkerPhaseClock,
    on_spark_start: Callable[[], None],
    ignored: Sequence[Path] = (),
) -> OpenProject:
    """Loads a project from its files alone; it needs a state before it is planned.

    Args:
        ignored: Files that are left out.

    Raises:
        BadInput: see `configure_projects` and `create_project_context`.
        NotLoaded: the project does not load.
    """
    configs, starts = configure_projects(
        place, on_spark_start, clock=clock, read=sqlmesh_compat.read_sqlmesh_configs_without_state
    )
    sqlmesh_compat.let_sqlmesh_ignore_files(configs, ignored)
    context = create_project_context(configs, place)
    sqlmesh_compat.load_sqlmesh_context_without_state(context)
    load_project(context, clock.time_phase("load"), place.repository)
    facts = ProjectStateFacts(schema_version=0, sqlmesh_version=None, engine="none")
    return OpenProject(context, "base-branch", facts, clock, starts)


@contextmanager
def open_project_state_to_write(
    place: ProjectPlace, on_spark_start: Callable[[], None], clock: WorkerPhaseClock
) -> Iterator[Context]:
    """Opens a context with a project's state, to write there; loads no model.

    Raises:
        BadInput: the configuration is broken, or there is no state yet.
    """
    configs, _ = configure_projects(place, on_spark_start, clock=clock)
    context = create_project_context(configs, place)
    state, _ = open_project_state(context, place, write=True)
    if state is None:
        raise make_project_without_prod_error("so nothing can be written down")
    sqlmesh_compat.give_sqlmesh_state(context, state)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def open_project_state_to_read(
    place: ProjectPlace,
    on_spark_start: Callable[[], None],
    clock: WorkerPhaseClock,
    *,
    without: str,
) -> Iterator[tuple[Context, StateSync]]:
    """Opens a context and the state of its project, only to read there; loads no model.

    Args:
        without: The consequence if there is no state yet, as a clause of the message.

    Raises:
        BadInput: the configuration is broken, or there is no state yet.
    """
    refuse_postgres_writes_of_project()
    configs, _ = configure_projects(place, on_spark_start, clock=clock)
    context = create_project_context(configs, place)
    state, _ = open_project_state(context, place, write=False)
    if state is None:
        raise make_project_without_prod_error(without)
    try:
        yield context, state
    finally:
        state.close()


def make_project_without_prod_error(therefore: str) -> BadInput:
    """Makes the error for a missing prod; `therefore` is a clause with the consequence."""
    return BadInput(
        f"There is no prod yet, {therefore}.", hint="Build prod first.", reason_code="no_prod"
    )


def describe_project(opened: OpenProject, place: ProjectPlace) -> Project:
    """Describes the loaded project for a report."""
    context = opened.context
    return Project(
        paths=[display_project_path(path, place) for path in place.projects],
        gateway=context.selected_gateway,
        dialect=context.default_dialect,
        models=len(context.models),
    )


def collect_versions_of_project(opened: OpenProject | None) -> Versions:
    """Collects the versions of the programs in use. PySpark's is read without importing it."""
    from importlib import metadata

    try:
        pyspark: str | None = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        pyspark = None
    return Versions(
        ci_bot=ci_bot.__version__,
        python=platform.python_version(),
        sqlmesh=sqlmesh.__version__,
        sqlglot=sqlglot.__version__,
        pyspark=pyspark,
        state_schema=opened.state.schema_version if opened else None,
        state_sqlmesh=opened.state.sqlmesh_version if opened else None,
        state_engine=opened.state.engine if opened else None,
    )
