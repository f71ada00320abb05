"""Opening a SQLMesh project for one run: configuration, state, models, and Spark asleep."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlglot import exp
from sqlmesh.core import constants as c
from sqlmesh.core.config import Config, DuckDBConnectionConfig
from sqlmesh.core.config.common import ALL_CONFIG_FILENAMES
from sqlmesh.core.config.connection import SparkConnectionConfig
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context
from sqlmesh.core.state_sync import StateSync
from sqlmesh.utils.errors import ConfigError, SQLMeshError

from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.report import Baseline
from ci_bot.contracts.places import Places
from ci_bot.errors import BadInput
from ci_bot.worker import compat
from ci_bot.worker.plan import requested
from ci_bot.worker.project.loading import load
from ci_bot.worker.rules.config_facts import ConfigFacts
from ci_bot.worker.words.causes import cause_of
from ci_bot.worker.words.problems import LINE_NUMBER, sentence
from ci_bot.worker.words.state_failures import missing_variables, unset_variables, unusable_state

_NO_CONFIGURATION = re.compile(r"SQLMesh (?:project )?config could not be found")
# libpq reads this variable, so that every PostgreSQL connection of a review refuses to write.
PG_READ_ONLY = "-c default_transaction_read_only=on"


@dataclass
class Clock:
    """Seconds by phase, in the order in which the phases first ran."""

    now: Callable[[], float] = time.perf_counter
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = self.now()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + self.now() - start, 3)


@dataclass(frozen=True)
class StateFacts:
    """What is known of the state without reading a snapshot."""

    schema_version: int
    sqlmesh_version: str | None
    engine: str


@dataclass
class OpenProject:
    """A loaded project with its state, ready to be planned."""

    context: Context
    baseline: Baseline
    state: StateFacts
    clock: Clock
    spark_starts: list[float]
    config_before: ConfigFacts | None = None
    base_failures: tuple[Failure, ...] = ()

    @property
    def has_prod(self) -> bool:
        return self.context.state_reader.get_environment(c.PROD) is not None

    def close(self) -> None:
        """Closes the state: an open DuckDB file leaves a write-ahead log beside it."""
        self.context.close()

    @property
    def spark_started(self) -> bool:
        return bool(self.spark_starts)


@dataclass(frozen=True)
class ProjectPlace:
    """Where a run reads and writes: the project's directories and the run's private ones.

    `repository` is the root of the tree that the projects lie in: the checkout, or the base
    branch's files.
    """

    projects: tuple[Path, ...]
    repository: Path
    cache_dir: Path
    scratch_dir: Path
    gateway: str | None
    own: bool = False
    python_path: tuple[str, ...] = ()


def configure(
    place: ProjectPlace,
    on_spark_start: Callable[[], None],
    *,
    clock: Clock,
    read: Callable[[Sequence[Path]], dict[Path, Config]] = compat.read_configs,
) -> tuple[dict[Path, Config], list[float]]:
    """Reads the configuration, and prepares it for a run of ours.

    Returns:
        The configurations by directory, and a list that receives the moment of every Spark start.

    Raises:
        BadInput: a directory is missing, or the configuration is absent or broken.
    """
    for path in place.projects:
        if not path.is_dir():
            raise BadInput(
                f"The project directory {named(path, place)} does not exist.",
                hint="`project` names the directory with config.yaml or config.py.",
                reason_code="no_project",
            )
    compat.analytics_off()
    compat.scan_packages_once()
    set_console(NoopConsole())
    starts: list[float] = []

    def started() -> None:
        # Every thread makes a connection of its own on the one session of the process.
        if not starts:
            starts.append(clock.now())
            on_spark_start()

    with clock.phase("configuration"):
        try:
            configs = read(place.projects)
        except (Exception, SystemExit) as error:
            # Reading runs Jinja, YAML and perhaps config.py, each with errors of its own.
            raise bad_configuration(error, place) from error
        requested.check_project_keys(configs, [shown(path, place) for path in configs])
        compat.make_spark_lazy(configs, started)
        compat.prepare_configs(configs, place.cache_dir)
    return configs, starts


def bad_configuration(error: BaseException, place: ProjectPlace) -> BadInput:
    """The failure where a configuration could not be read, with its file and what would mend it."""
    text = str(error)
    if _NO_CONFIGURATION.match(text):
        names = ", ".join(named(path, place) for path in place.projects)
        return BadInput(
            f"There is no SQLMesh configuration (config.yaml or config.py) in {names}.",
            hint="`project` names the directory that holds it.",
            reason_code="no_config",
        )
    cause = cause_of(error, place.repository)
    path = cause.path or _configuration_file(error, place)
    line = int(found.group(1)) if (found := LINE_NUMBER.search(text)) else None
    where = f" in {path}" if path else ""
    said = cause.message or Places({place.repository: ""}).text(sentence(error))
    unset = unset_variables(place.projects, os.environ) if "Invalid field" in text else []
    hint = missing_variables(unset) if unset else cause.hint
    return BadInput(
        f"The SQLMesh configuration{where} is not valid: {said}",
        hint=hint or "Correct the configuration; `sqlmesh info` shows the same error locally.",
        reason_code="bad_config",
        path=path,
        line=cause.line or line,
    )


def _configuration_file(error: BaseException, place: ProjectPlace) -> str | None:
    """The file that the error names, else the only one that it can be about."""
    location = getattr(error, "location", None)
    if location:
        return shown(Path(location), place)
    files = [path / name for path in place.projects for name in ALL_CONFIG_FILENAMES]
    present = [file for file in files if file.is_file()]
    return shown(present[0], place) if len(present) == 1 else None


def shown(path: Path, place: ProjectPlace) -> str:
    """A path as the reader knows it: relative to the repository."""
    if path == place.repository:
        return "."
    if path.is_relative_to(place.repository):
        return str(path.relative_to(place.repository))
    return str(path)


def named(path: Path, place: ProjectPlace) -> str:
    """A directory where "." would say nothing: the whole path, unless it is a copy's."""
    if place.own:
        return str(path)
    return "the repository's root" if path == place.repository else shown(path, place)


def new_context(configs: dict[Path, Config], place: ProjectPlace) -> Context:
    """A context that has read no model and no state yet.

    Raises:
        BadInput: the gateway does not exist.
    """
    try:
        return Context(
            paths=[str(path) for path in configs], config=configs, gateway=place.gateway, load=False
        )
    except (ConfigError, SQLMeshError, KeyError) as error:
        names = sorted({name for config in configs.values() for name in config.gateways})
        if place.gateway and place.gateway not in names:
            raise BadInput(
                f"The gateway `{place.gateway}` is not in the project's configuration.",
                hint=f"Known gateways: {', '.join(names) or 'none'}; `gateway` names one of them.",
                reason_code="unknown_gateway",
            ) from error
        raise bad_configuration(error, place) from error


def require_spark(context: Context) -> None:
    """What is built or removed here is on Spark.

    Raises:
        BadInput: the gateway's engine is another one.
    """
    connection = context.config.get_connection(context.gateway)
    if not isinstance(connection, SparkConnectionConfig):
        raise BadInput(
            f"The engine of the gateway `{context.selected_gateway}` is {connection.type_}, and "
            "environments are built and removed on Spark only.",
            hint="`gateway` may be one whose connection has `type: spark`.",
            reason_code="not_spark",
        )


def open_state(
    context: Context, place: ProjectPlace, *, write: bool
) -> tuple[StateSync | None, StateFacts]:
    """The project's state, checked but never created or migrated.

    Returns:
        The state (None where there is none yet: an absent file, or no schema) and what is known
        of it.

    Raises:
        BadInput: the state is of another version, cannot be reached, or may not be held there.
        Refused: the DuckDB file is locked by another process.
    """
    connection = compat.state_connection(context.config, context.gateway)
    engine = str(connection.type_)
    absent = StateFacts(schema_version=0, sqlmesh_version=None, engine=engine)
    if isinstance(connection, DuckDBConnectionConfig):
        database = connection.database
        if not database or database == ":memory:":
            return None, absent
        if database == "None":
            # What a template makes of a variable that is not set; no state is meant by it.
            error = ValueError("the name of its file is None")
            raise unusable_state(error, engine, place.projects, os.environ)
        if not Path(database).exists():
            return None, absent
    try:
        state: StateSync
        if isinstance(connection, DuckDBConnectionConfig) and not write:
            state = compat.state_sync_on(compat.open_duckdb_read_only(connection), context)
        else:
            state = compat.new_state_sync(context)
        # SQLMesh takes every error of "is there a versions table?" for a no, and a state that is
        # locked or out of reach would look empty. So the connection is tried first.
        compat.state_adapter_of(state).fetchone("SELECT 1")
        versions = state.get_versions(validate=False)
    except ConfigError as error:
        raise bad_configuration(error, place) from error
    except Exception as error:
        raise unusable_state(error, engine, place.projects, os.environ) from error
    facts = StateFacts(
        schema_version=int(versions.schema_version),
        sqlmesh_version=str(versions.sqlmesh_version) if versions.schema_version else None,
        engine=engine,
    )
    if facts.schema_version == 0:
        return None, facts
    try:
        state.get_versions(validate=True)
    except SQLMeshError as error:
        raise BadInput(
            f"The state database was written by another version of SQLMesh: {error}",
            hint="Pin the version that the state was written with in the input `requirements`, or "
            "let whoever owns prod run `sqlmesh migrate`; this action never migrates a state.",
            reason_code="state_version",
        ) from error
    return state, facts


def read_only_environment() -> None:
    """Makes every PostgreSQL session of this process refuse writes. Call it before connecting."""
    options = os.environ.get("PGOPTIONS", "")
    if PG_READ_ONLY not in options:
        os.environ["PGOPTIONS"] = f"{options} {PG_READ_ONLY}".strip()


def prod_catalogs(state: StateSync) -> set[str]:
    """The catalogs in the names of prod's models."""
    prod = state.get_environment(c.PROD)
    if prod is None:
        return set()
    return {
        catalog
        for info in prod.snapshots
        if info.is_model and (catalog := exp.to_table(info.name, dialect="spark").catalog)
    }


def ask_spark_for_catalog(context: Context) -> str:
    """Starts Spark and asks it for its default catalog."""
    adapter: Any = context.engine_adapter
    return str(adapter.get_current_catalog())


def open_project(
    place: ProjectPlace,
    *,
    write: bool,
    clock: Clock,
    on_spark_start: Callable[[], None],
) -> OpenProject:
    """Opens a project against its own state.

    Where the state is empty, an empty throw-away state takes its place, and nothing is created in
    the project's own (`baseline` is "empty").

    Raises:
        BadInput, Refused: see `configure`, `new_context` and `open_state`.
        NotLoaded: the project does not load.
    """
    if not write:
        read_only_environment()
    configs, starts = configure(place, on_spark_start, clock=clock)
    context = new_context(configs, place)
    if write:
        require_spark(context)
    with clock.phase("state"):
        state, facts = open_state(context, place, write=write)
        baseline: Baseline = "state" if state is not None else "empty"
        if state is None:
            state = compat.throwaway_state(place.scratch_dir / "empty-state.duckdb", context)
    compat.give_state(context, state)
    catalogs = prod_catalogs(state)
    guess = compat.default_catalog(context)
    if catalogs and guess not in catalogs and compat.has_lazy_spark(configs):
        # Models would all look removed and added under another catalog's name.
        with clock.phase("spark"):
            compat.set_known_catalog(configs, ask_spark_for_catalog(context))
        context = new_context(configs, place)
        compat.give_state(context, state)
    load(context, clock.phase("load"), place.repository)
    return OpenProject(context, baseline, facts, clock, starts)


def open_without_state(
    place: ProjectPlace,
    *,
    clock: Clock,
    on_spark_start: Callable[[], None],
    ignored: Sequence[Path] = (),
) -> OpenProject:
    """Loads a project from its files alone; `stand_on` gives it a state before it is planned.

    Args:
        ignored: Files that are left out.

    Raises:
        BadInput: see `configure` and `new_context`.
        NotLoaded: the project does not load.
    """
    configs, starts = configure(
        place, on_spark_start, clock=clock, read=compat.read_configs_without_state
    )
    compat.ignore_files(configs, ignored)
    context = new_context(configs, place)
    compat.merge_nothing_from_state(context)
    load(context, clock.phase("load"), place.repository)
    facts = StateFacts(schema_version=0, sqlmesh_version=None, engine="none")
    return OpenProject(context, "base-branch", facts, clock, starts)
