"""A project's configuration: reading it, the run's own changes to it, and its settings for
SQLMesh's own CI bot.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from dotenv import load_dotenv
from pydantic import ValidationError
from sqlmesh.core import analytics, context_diff
from sqlmesh.core.config import Config, connection, loader
from sqlmesh.core.config.common import DBT_PROJECT_FILENAME, YAML_CONFIG_FILENAMES
from sqlmesh.core.config.loader import load_configs
from sqlmesh.core.config.model import ModelDefaultsConfig
from sqlmesh.core.context import Context, GenericContext
from sqlmesh.core.engine_adapter import create_engine_adapter
from sqlmesh.core.renderer import ExpressionRenderer
from sqlmesh.core.snapshot import SnapshotId
from sqlmesh.utils import merge_dicts
from sqlmesh.utils.errors import ConfigError
from sqlmesh.utils.pydantic import validation_error_message

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlmesh.core.environment import EnvironmentStatements
    from sqlmesh.core.model import Model, SqlModel


def disable_sqlmesh_analytics() -> None:
    """Stops SQLMesh's usage statistics, whatever the project's setting.

    It also removes the wrapper around a context's methods, which reads the source of every frame
    and imports IPython: 0.1 s of a review. (`python_api_analytics`)
    """
    analytics.disable_analytics()
    for name, found in list(vars(GenericContext).items()):
        if getattr(found, "__globals__", None) is vars(analytics):
            setattr(GenericContext, name, inspect.unwrap(found))


class _LazySqlmeshDistributions(Mapping[str, list[str]]):
    """The distributions of each module, computed at the first lookup."""

    @functools.cached_property
    def _found(self) -> Mapping[str, list[str]]:
        found: Mapping[str, list[str]] = _metadata.packages_distributions()
        return found

    def __getitem__(self, module: str) -> list[str]:
        return self._found[module]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


_metadata: Any = context_diff.metadata


def let_sqlmesh_scan_packages_once() -> None:
    """Lets the plans of this process share one scan of the installed packages; if no model imports
    a package, there is no scan.

    Every `ContextDiff` reads the metadata of all packages again to infer requirements
    (`_build_requirements`), 0.3 s each, although they cannot change while the process runs.
    """
    if context_diff.metadata is _metadata:
        module: Any = context_diff
        known = _LazySqlmeshDistributions()
        module.metadata = SimpleNamespace(
            packages_distributions=lambda: known,
            version=_metadata.version,
            PackageNotFoundError=_metadata.PackageNotFoundError,
        )


def skip_engine_import_of_sqlmesh() -> None:
    """Makes a connection's check for an installed engine pass for PySpark.

    A review starts no Spark, so it needs no PySpark, and importing it takes 0.1 s. A PySpark that
    is missing or cannot be imported is reported when Spark starts
    (`java.check_spark_jars_before_java_starts`).
    """
    module: Any = connection
    if module.importlib is importlib:
        module.importlib = SimpleNamespace(import_module=_import_engine_or_find)


def _import_engine_or_find(name: str) -> ModuleType | None:
    if name == "pyspark" and name not in sys.modules:
        return None
    return importlib.import_module(name)


def read_sqlmesh_configs(paths: Iterable[Path]) -> dict[Path, Config]:
    """Reads the configuration of each project directory, as `sqlmesh` itself would."""
    configs: dict[Path, Config] = load_configs(None, Config, list(paths))
    return configs


def prepare_sqlmesh_configs(configs: dict[Path, Config], cache_dir: Path) -> None:
    """Applies the run's own settings to the configurations.

    An ephemeral cache, no analytics, and plans that compare with prod even if the PR environment
    exists. None of them takes part in a fingerprint.
    """
    for config in configs.values():
        config.cache_dir = str(cache_dir)
        config.disable_anonymized_analytics = True
        config.plan.always_recreate_environment = True


def read_default_catalog_of_sqlmesh(context: Context) -> str | None:
    """Returns the default catalog of the selected gateway; None if it has none."""
    catalog: str | None = context.default_catalog
    return catalog


class DbtProjectError(ConfigError):
    """The error for a project that needs SQLMesh's dbt loader, if that loader is not used."""


def is_dbt_project(path: Path) -> bool:
    """Whether SQLMesh recognizes a directory as a dbt project. (`load_config_from_paths`)"""
    return (path / DBT_PROJECT_FILENAME).is_file() and not (path / "config.py").is_file()


def read_sqlmesh_configs_without_state(paths: Iterable[Path]) -> dict[Path, Config]:
    """Reads the configuration of each directory without its `state_connection`.

    A state connection with missing variables fails the validation of the whole configuration, so it
    is removed first. Everything else is read as in `read_sqlmesh_configs`, so that both baselines
    give the same plan: the project's `.env`, `SQLMESH__` variables, unknown keys. (`load_configs`
    and `load_config_from_paths`, without the user's own file and without dbt)

    Raises:
        DbtProjectError: a directory holds a dbt project.
    """
    paths = list(paths)
    for path in paths:
        if is_dbt_project(path):
            raise DbtProjectError(str(path))
    for path in paths:
        if (path / ".env").is_file():
            load_dotenv(dotenv_path=path / ".env", override=True)
    return {path: _read_sqlmesh_config_without_state(path) for path in paths}


def _read_sqlmesh_config_without_state(path: Path) -> Config:
    settings: dict[str, Any] = {}  # what people wrote; SQLMesh judges it
    for name in YAML_CONFIG_FILENAMES:
        if (path / name).is_file():
            settings = loader.load_config_from_yaml(path / name)
            break
    module = path / "config.py"
    if not settings and not module.is_file():
        raise ConfigError("SQLMesh project config could not be found.")
    settings = merge_dicts(settings, loader.load_config_from_env())
    _drop_sqlmesh_state_connections(settings)
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


def _drop_sqlmesh_state_connections(settings: dict[str, Any]) -> None:
    """Removes state connections in all three spellings: gateways by name, `gateways` as the only
    one, and `gateway`.

    Args:
        settings: The settings as written, not validated yet.
    """
    for key in ("gateways", "gateway"):
        gateways = settings.get(key)
        if not isinstance(gateways, dict):
            continue
        gateways.pop("state_connection", None)
        for gateway in gateways.values():
            if isinstance(gateway, dict):
                gateway.pop("state_connection", None)


class _OwnKeys(frozenset[str]):
    """The keys of the loaded projects; iterating over them yields none, see
    `load_sqlmesh_context_without_state`.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(())


def load_sqlmesh_context_without_state(context: Context) -> None:
    """Makes a context load only what is in its directories. Call it before loading.

    With a `project:` key, SQLMesh adds the models of other projects from prod's state
    (`Context.load`). In a state made of the base branch these are the base branch's own models,
    under the key that it has there.

    All versions of SQLMesh ask `any(self._projects)` for that; `load_state`, which does the same,
    exists only since 0.236. `in self._projects` still says which project a model belongs to.
    """
    keys: Any = _OwnKeys(context._projects)
    context._projects = keys


def is_sqlmesh_state_shared(context: Context) -> bool:
    """Whether the state may hold other projects; a state made of the base branch does not.

    (`load_sqlmesh_context_without_state`)
    """
    return not isinstance(context._projects, _OwnKeys)


def needs_sqlmesh_format(context: Context, node: Any) -> bool:
    """Whether `sqlmesh format` would change the file of a model or audit. (`Context._format`)"""
    before = Path(node._path).read_text(encoding="utf-8")
    return bool(context._format(node, before) != before)


def list_written_sqlmesh_bot_settings(config: Config) -> dict[str, object]:
    """Lists the keys that a configuration writes under `cicd_bot:`, with their values.

    Null counts as not written. A value that SQLMesh copies there from `plan:` does not count
    either; it is recognized because it is the same object. A configuration of the project's own
    class arrives with every default set, so a value in it that equals a default was probably not
    written.
    (`GithubCICDBotConfig`, `Config._inherit_project_config_in_cicd_bot`, `convert_config_type`)
    """
    bot = getattr(config, "cicd_bot", None)
    if bot is None:
        return {}
    inherited = {
        "auto_categorize_changes": config.plan.auto_categorize_changes,
        "pr_include_unmodified": config.plan.include_unmodified,
    }
    fields = type(bot).model_fields
    whole = {name for name, info in fields.items() if info.default is not None} <= bot.fields_set
    found: dict[str, object] = {}
    for field in sorted(bot.fields_set & set(fields)):
        name, value = fields[field].alias or field, getattr(bot, field)
        copied = name in inherited and value is inherited[name]
        default = whole and value in (fields[field].default, inherited.get(name))
        if value is not None and not copied and not default:
            found[name] = value
    return found


def list_known_sqlmesh_bot_settings(bot: Any) -> set[str]:
    """Returns the keys that the installed SQLMesh's bot knows. (`GithubCICDBotConfig`)"""
    return {info.alias or name for name, info in type(bot).model_fields.items()}


# The SQL that SQLMesh would send to an engine, rendered without one.


@functools.cache
def _make_sqlmesh_adapter(dialect: str) -> Any:
    """Makes an adapter that renders SQL; it has no connection."""
    return create_engine_adapter(lambda: None, dialect)


def render_as_sqlmesh_executes(tree: exp.Expr, dialect: str) -> str:
    """Renders a statement or query as the adapter of `dialect` executes it (`_to_sql`)."""
    text: str = _make_sqlmesh_adapter(dialect)._to_sql(tree)
    return text


def render_sqlmesh_table_clauses(model: Model, properties: Mapping[str, Any], dialect: str) -> str:
    """Renders the clauses of a model's CREATE TABLE except name, columns and query.

    Args:
        properties: The rendered properties: the physical ones, or those of the view.

    Returns:
        The clauses as SQL; "" if there are none.
    """
    clauses = _make_sqlmesh_adapter(dialect)._build_table_properties_exp(
        table_format=model.table_format,
        storage_format=model.storage_format,
        table_properties=dict(properties),
    )
    return render_as_sqlmesh_executes(clauses, dialect) if clauses is not None else ""


def render_sqlmesh_statement(model: Model, tree: exp.Expr, **context: Any) -> list[exp.Expr] | None:
    """Renders one statement of a model as SQLMesh does (`_statement_renderer`).

    Returns:
        The trees, empty if a condition leaves none; None if rendering needs the engine.
    """
    rendered: list[Any] | None = model._statement_renderer(tree).render(**context)
    return rendered


def render_sqlmesh_model_on_earlier_runs(model: SqlModel) -> exp.Expr | None:
    """Renders a model's query as in a run after earlier runs.

    SQLMesh passes the model's snapshot to Jinja, and dbt's `is_incremental` reads its intervals.
    (`create_builtin_globals` of `sqlmesh.dbt.builtin`)

    Returns:
        The tree; None if rendering needs the engine.
    """
    snapshot = SimpleNamespace(
        is_incremental=model.kind.is_incremental,
        intervals=[(0, 1)],
        dev_intervals=[(0, 1)],
        snapshot_id=SnapshotId(name=model.fqn, identifier=""),
    )
    return model.render_query(snapshot=snapshot)


def render_sqlmesh_environment_statements(
    item: EnvironmentStatements, tree: exp.Expr, dialect: str, catalog: str | None, **context: Any
) -> list[str] | None:
    """Renders one statement of `EnvironmentStatements` as its `render_statements` does.

    Returns:
        The SQL texts, empty if a condition leaves none; None if rendering needs the engine.
    """
    rendered = ExpressionRenderer(
        tree,
        dialect,
        [],
        jinja_macro_registry=item.jinja_macros,
        python_env=item.python_env,
        default_catalog=catalog,
        quote_identifiers=False,
        normalize_identifiers=False,
    ).render(**context)
    return None if rendered is None else [one.sql(dialect=dialect) for one in rendered]
