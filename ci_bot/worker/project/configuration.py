"""Reads a project's configuration, and prepares it for a run that leaves no trace.

SQLMesh reads dbt projects with a separate part; this also finds why that part cannot read one.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlmesh
from sqlmesh.core.config import Config
from sqlmesh.core.config.common import ALL_CONFIG_FILENAMES
from sqlmesh.core.config.connection import SparkConnectionConfig
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context
from sqlmesh.utils.errors import ConfigError, SQLMeshError

from ci_bot.errors import BadInput
from ci_bot.protocol.files import PrivateDirectories
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import (
    LINE_NUMBER,
    describe_missing_variables_in_hint,
    extract_sentence_of_error,
    find_load_cause,
    iterate_causes_of_error,
    list_unset_variables_for_state_error,
)
from ci_bot.worker.runtime import WorkerPhaseClock
from ci_bot.yaml_reader import EndlessYaml, UnfitYaml, read_yaml

_DBT_PART = Path(sqlmesh.__file__).parent / "dbt"
# SQLMesh's message for a dbt target that it has no class for. (`TargetConfig.load`)
_NO_TARGET = re.compile(r"^(?P<target>[\w-]+) not supported\.?$")


def find_dbt_project_failure(error: BaseException) -> BadInput | None:
    """Makes the failure of SQLMesh's dbt reader; None if `error` has another source."""
    for link in iterate_causes_of_error(error):
        if not _was_raised_by_dbt_project_part(link):
            continue
        if isinstance(link, ModuleNotFoundError):
            return BadInput(
                f"This is a dbt project, which needs dbt, and `{link.name}` is not installed here.",
                hint="Add `sqlmesh[dbt]` and the dbt adapter of the project's target to the file "
                "that the input `requirements` names.",
                reason_code="dbt_project",
            )
        if (found := _NO_TARGET.match(str(link).strip())) is not None:
            return BadInput(
                f"This is a dbt project, which has the target `{found['target']}`, and SQLMesh "
                "knows no such target of dbt's.",
                hint="SQLMesh has none for Spark. A project that is to be built on Spark takes a "
                "target that SQLMesh knows, and a gateway with `type: spark` beside it.",
                reason_code="dbt_project",
            )
    return None


def _was_raised_by_dbt_project_part(error: BaseException) -> bool:
    return any(
        Path(frame.f_code.co_filename).is_relative_to(_DBT_PART)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


# The directories in which one run finds the project and may write, and their names in reports.


@dataclass(frozen=True)
class ProjectPlace:
    """The directories that a run reads and writes: the project's, and the run's private ones.

    `repository` is the root of the tree that has the projects: the checkout, or the base branch's
    files.
    """

    projects: tuple[Path, ...]
    repository: Path
    cache_dir: Path
    scratch_dir: Path
    gateway: str | None
    own: bool = False
    python_path: tuple[str, ...] = ()


def make_project_place(
    request: Any, projects: list[str], cache_name: str = "", root: Path | None = None
) -> ProjectPlace:
    """Makes the directories of a run from its request; `root` replaces the checkout's tree."""
    workplace = request.workplace
    cache = Path(workplace.cache_dir)
    return ProjectPlace(
        projects=tuple(Path(path) for path in projects),
        repository=root or Path(workplace.repository),
        cache_dir=cache / cache_name if cache_name else cache,
        scratch_dir=Path(workplace.scratch_dir),
        gateway=request.gateway,
        own=workplace.own,
        python_path=tuple(workplace.python_path),
    )


def display_project_path(path: Path, place: ProjectPlace) -> str:
    """Returns a path as reports show it: relative to the repository."""
    if path == place.repository:
        return "."
    if path.is_relative_to(place.repository):
        return str(path.relative_to(place.repository))
    return str(path)


def name_project_directory(path: Path, place: ProjectPlace) -> str:
    """Names a directory in a sentence, never as ".": its whole path, except in a copy."""
    if place.own:
        return str(path)
    return (
        "the repository's root" if path == place.repository else display_project_path(path, place)
    )


# Deeper ones are seldom meant, and nobody wants a search of the whole disk.
_BELOW = ("*", "*/*")
_CONFIGURATIONS = ("config.yaml", "config.yml", "config.py", "sqlmesh.yaml")
_MOST_BELOW = 3


def _name_projects_above(place: ProjectPlace) -> str:
    """Writes a sentence about the configuration above a directory without one; "" if none is."""
    for project in place.projects:
        for directory in project.parents:
            if not directory.is_relative_to(place.repository):
                break
            for file in (directory / name for name in _CONFIGURATIONS):
                if file.is_file():
                    return f"Above it there is {display_project_path(file, place)}. "
    return ""


def _name_projects_below(place: ProjectPlace) -> str:
    """Writes a sentence about the configurations below a directory without one; "" if none are."""
    found = sorted(
        {
            file
            for project in place.projects
            for below in _BELOW
            for name in _CONFIGURATIONS
            for file in project.glob(f"{below}/{name}")
        }
    )
    if not found:
        return ""
    names = ", ".join(display_project_path(file, place) for file in found[:_MOST_BELOW])
    more = f" and {len(found) - _MOST_BELOW} more" if len(found) > _MOST_BELOW else ""
    return f"Below it there is {names}{more}. "


_NO_CONFIGURATION = re.compile(r"SQLMesh (?:project )?config could not be found")


def configure_projects(
    place: ProjectPlace,
    on_spark_start: Callable[[], None],
    *,
    clock: WorkerPhaseClock,
    read: Callable[[Sequence[Path]], dict[Path, Config]] = sqlmesh_compat.read_sqlmesh_configs,
) -> tuple[dict[Path, Config], list[float]]:
    """Reads the configuration, and adapts it so that a run leaves no trace.

    Returns:
        The configurations by directory, and a list that receives the time of Spark's first start,
        in seconds of `clock`.

    Raises:
        BadInput: a directory is missing, or the configuration is absent or broken.
    """
    for path in place.projects:
        if not path.is_dir():
            raise BadInput(
                f"The project directory {name_project_directory(path, place)} does not exist.",
                hint="`project` names the directory with config.yaml or config.py.",
                reason_code="no_project",
            )
    sqlmesh_compat.disable_sqlmesh_analytics()
    sqlmesh_compat.let_sqlmesh_scan_packages_once()
    set_console(NoopConsole())
    starts: list[float] = []

    def note_spark_start() -> None:
        # Every thread makes a connection of its own on the one session of the process.
        if not starts:
            starts.append(clock.now())
            on_spark_start()

    with clock.time_phase("configuration"):
        configs = read_project_configuration(place, read)
        check_project_keys(configs, [display_project_path(path, place) for path in configs])
        sqlmesh_compat.let_sqlmesh_start_spark_late(configs, note_spark_start)
        sqlmesh_compat.prepare_sqlmesh_configs(configs, place.cache_dir)
    return configs, starts


def read_project_configuration(
    place: ProjectPlace, read: Callable[[Sequence[Path]], dict[Path, Config]]
) -> dict[Path, Config]:
    """Reads the configurations of a tree's projects, by directory.

    Raises:
        BadInput: one is absent, broken, or larger than any reasonable one.
    """
    _check_project_yaml_is_not_endless(place)
    sqlmesh_compat.skip_engine_import_of_sqlmesh()
    try:
        return read(place.projects)
    except (Exception, SystemExit) as error:
        # Reading runs Jinja, YAML and perhaps config.py, each with errors of its own.
        raise make_project_configuration_error(error, place) from error


def _check_project_yaml_is_not_endless(place: ProjectPlace) -> None:
    """Refuses a configuration that YAML aliases make huge: SQLMesh's messages expand every alias.

    Raises:
        BadInput: a configuration is larger than any reasonable one.
    """
    for file in (path / name for path in place.projects for name in ALL_CONFIG_FILENAMES):
        if file.suffix not in (".yaml", ".yml") or not file.is_file():
            continue
        try:
            read_yaml(file.read_text(encoding="utf-8", errors="replace"))
        except EndlessYaml as error:
            raise BadInput(
                f"The SQLMesh configuration in {display_project_path(file, place)} is not valid: "
                f"{error}.",
                hint="Write it without aliases of aliases.",
                reason_code="bad_config",
                path=display_project_path(file, place),
            ) from error
        except UnfitYaml:
            continue  # Jinja, perhaps; SQLMesh reports what is wrong with it


def check_project_keys(configs: dict[Path, Config], paths: Sequence[str]) -> None:
    """Requires a `project:` key of each project if several are planned together.

    Without keys SQLMesh does not know which project a model belongs to: a later plan of one project
    alone would remove the models of all others.

    Raises:
        BadInput: one has no key, or two have the same.
    """
    keys = [str(config.project or "") for config in configs.values()]
    if len(keys) > 1 and (not all(keys) or len(set(keys)) < len(keys)):
        without = [name for name, key in zip(paths, keys, strict=True) if not key]
        why = f"{' and '.join(without)} have none" if without else "two of them have the same"
        raise BadInput(
            f"Several projects on one state database need a `project:` key each; {why}.",
            hint="Add `project: <a name of its own>` to each configuration, and plan prod once.",
            reason_code="project_keys",
        )


def make_project_configuration_error(error: BaseException, place: ProjectPlace) -> BadInput:
    """Makes the failure of a configuration that cannot be read, with its file and the fix."""
    text = str(error)
    if _NO_CONFIGURATION.match(text):
        names = ", ".join(name_project_directory(path, place) for path in place.projects)
        if any(map(sqlmesh_compat.is_dbt_project, place.projects)):
            return BadInput(
                f"This is a dbt project, and there is no configuration of SQLMesh in {names}.",
                hint="`sqlmesh init --template dbt` writes one beside `dbt_project.yml`. SQLMesh "
                "has no dbt target for Spark: a gateway with `type: spark` goes beside the target.",
                reason_code="dbt_project",
            )
        return BadInput(
            f"There is no SQLMesh configuration (config.yaml or config.py) in {names}.",
            hint=f"{_name_projects_above(place)}{_name_projects_below(place)}Name its directory: "
            "`--project DIR` on a laptop, the input `project` in a workflow.",
            reason_code="no_config",
        )
    if isinstance(error, sqlmesh_compat.DbtProjectError):
        dbt = [
            display_project_path(path, place)
            for path in place.projects
            if sqlmesh_compat.is_dbt_project(path)
        ]
        names = ", ".join(f"`{name}`" for name in dbt)
        return BadInput(
            f"There is a dbt project without a config.py in {names}, and such a project cannot be "
            "compared with the base branch.",
            hint="`baseline: state` compares it with prod in SQLMesh's state. With a config.py "
            "that calls `sqlmesh_config` it can be compared with the base branch, too.",
            reason_code="dbt_project",
        )
    if (failure := find_dbt_project_failure(error)) is not None:
        return failure
    cause = find_load_cause(error, place.repository)
    path = cause.path or _find_project_configuration_file(error, place)
    line = int(found.group(1)) if (found := LINE_NUMBER.search(text)) else None
    where = f" in {path}" if path else ""
    wrong = "is not valid"
    if cause.message and path is not None and Path(path).name not in ALL_CONFIG_FILENAMES:
        # The error is in a file that the configuration imports; the message names that file.
        where, wrong = "", "does not load"
    detail = cause.message or PrivateDirectories({place.repository: ""}).hide_in_text(
        extract_sentence_of_error(error)
    )
    unset = (
        list_unset_variables_for_state_error(place.projects, os.environ)
        if "Invalid field" in text
        else []
    )
    hint = describe_missing_variables_in_hint(unset) if unset else cause.hint
    return BadInput(
        f"The SQLMesh configuration{where} {wrong}: {detail}",
        hint=hint or "Correct the configuration; `sqlmesh info` shows the same error locally.",
        reason_code="bad_config",
        path=path,
        line=cause.line or line,
    )


def _find_project_configuration_file(error: BaseException, place: ProjectPlace) -> str | None:
    """Returns the file that the error names, else the only one that can have caused it."""
    location = getattr(error, "location", None)
    if location:
        return display_project_path(Path(location), place)
    files = [path / name for path in place.projects for name in ALL_CONFIG_FILENAMES]
    present = [file for file in files if file.is_file()]
    return display_project_path(present[0], place) if len(present) == 1 else None


def create_project_context(configs: dict[Path, Config], place: ProjectPlace) -> Context:
    """Creates SQLMesh's context, which has read no model and no state yet.

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
        raise make_project_configuration_error(error, place) from error


def is_spark_gateway_of_project(context: Context, gateway: str | None) -> bool:
    """Whether a gateway's engine is Spark; None is the project's default."""
    return isinstance(context.config.get_connection(gateway), SparkConnectionConfig)


def require_spark_gateway_of_project(context: Context) -> None:
    """Refuses a gateway whose engine is not Spark: this bot builds and removes on Spark only.

    Raises:
        BadInput: the gateway's engine is another one.
    """
    if not is_spark_gateway_of_project(context, context.gateway):
        engine = context.config.get_connection(context.gateway).type_
        raise BadInput(
            f"The engine of the gateway `{context.selected_gateway}` is {engine}, and "
            "environments are built and removed on Spark only.",
            hint="`gateway` may be one whose connection has `type: spark`.",
            reason_code="not_spark",
        )
