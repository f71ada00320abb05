"""Loads a project's models, and finds everything that prevents it; finds whether a state holds this
project's prod.

The cause may be a Git LFS pointer in place of a file's content: a text of three lines, which
everything that reads the file as data or as code gets instead.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlmesh
from pydantic import ValidationError
from sqlmesh.core import constants as c
from sqlmesh.core.config import Config, DuckDBConnectionConfig
from sqlmesh.core.context import Context
from sqlmesh.core.environment import Environment
from sqlmesh.core.state_sync import StateSync

from ci_bot.errors import BadInput, BotError
from ci_bot.protocol.base import Failure
from ci_bot.protocol.files import POINTER_BYTES, is_lfs_pointer
from ci_bot.protocol.review_report import ProdNotFound
from ci_bot.redaction import quote_value, redact_shapes
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import (
    MessageNames,
    NotLoaded,
    describe_missing_variables_in_hint,
    find_file_named_by_load_failure,
    list_unset_variables_for_state_error,
    make_failure_of_error,
)
from ci_bot.worker.project.configuration import (
    ProjectPlace,
    configure_projects,
    create_project_context,
    display_project_path,
)
from ci_bot.worker.runtime import WorkerPhaseClock, exclude_from_load_trace
from ci_bot.worker.sqlmesh_compat import is_seed_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SeedModel

HINT = "Correct it and push; `sqlmesh info` shows the same locally."
# Each round loads the project once more, without the files that failed so far.
MAX_ROUNDS = 10

MAX_FAILURES = 1_000
# SQLMesh's formatter writes a SQL model's name first; in Python it always comes first.
_MODEL_NAME = re.compile(
    r"^\s*MODEL\s*\(\s*(?:[^;]*?,\s*)?name\s+([\w.]+)"
    r"|^@model\(\s*(?:name\s*=\s*)?[\"']([\w.]+)",
    re.IGNORECASE | re.MULTILINE,
)

LONGEST_READ = 64 * 1024


def load_project(context: Context, phase: AbstractContextManager[None], repository: Path) -> None:
    """Loads models, macros, audits and tests into `context`.

    Args:
        phase: Measures the time of the load.
        repository: The root of the tree that has the project.

    Raises:
        NotLoaded: the project does not load; the error has the file, the line and the cause.
    """
    with (
        phase,
        sqlmesh_compat.restore_sqlmesh_registries(),
        sqlmesh_compat.cache_types_that_sqlglot_parses(),
    ):
        try:
            context.load()
            sqlmesh_compat.order_sqlmesh_models(context)
        except BotError:
            raise
        except (Exception, SystemExit) as error:
            unit = find_file_named_by_load_failure(error, repository)
            raise NotLoaded(
                [_make_project_load_failure(error, repository)], units=[unit] if unit else []
            ) from error


def find_all_project_load_failures(
    first: NotLoaded,
    repository: Path,
    again: Callable[[Sequence[Path]], object],
    *,
    rounds: int = MAX_ROUNDS,
) -> list[Failure]:
    """Lists every failure that keeps the project from loading, as far as they can be distinguished.

    SQLMesh stops at the first failure, and the files of a directory have no order, so the first is
    random. To know whether a failure is new, all of them are needed.

    Args:
        again: Loads the project without some files; raises as `load_project` does.
        rounds: The most rounds of loading; a single one finds all models that do not parse.
    """
    found = {(failure.path, failure.message): failure for failure in first.failures}
    ignored: list[Path] = []
    units = list(first.units)
    for _ in range(rounds):
        fresh = [unit for unit in units if unit not in ignored]
        if not fresh or len(found) >= MAX_FAILURES:
            break
        ignored += fresh
        units = []
        recorded: list[tuple[Path, BaseException]] = []
        try:
            with sqlmesh_compat.collect_sqlmesh_model_failures(recorded):
                again(ignored)
        except NotLoaded as error:
            units += error.units
            more = [*error.failures]
        except BotError:
            break
        else:
            break
        for path, problem in recorded:
            units.append(path)
            more.append(
                _make_project_load_failure(
                    sqlmesh_compat.make_sqlmesh_load_error(path, problem), repository
                )
            )
        for failure in more:
            found.setdefault((failure.path, failure.message), failure)
    return list(found.values())[:MAX_FAILURES]


def _make_project_load_failure(error: BaseException, repository: Path) -> Failure:
    failure = make_failure_of_error(error, stage="load", repository=repository, hint=HINT)
    if failure.model is not None or failure.path is None:
        return failure
    return failure.model_copy(
        update={"model": _guess_model_name_of_project_file(repository / failure.path)}
    )


def _guess_model_name_of_project_file(file: Path) -> str | None:
    """Reads the name of a file's model from its text, because the file itself does not load."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            named = _MODEL_NAME.search(opened.read(LONGEST_READ))
    except OSError:
        return None
    return (named[1] or named[2]) if named else None


# A project loaded without any state: none is read, and none is left behind.


def load_project_alone(
    place: ProjectPlace, clock: WorkerPhaseClock, on_spark_start: Callable[[], None], *, name: str
) -> Context:
    """Loads a project without its state and returns SQLMesh's context.

    Args:
        name: Name of the throw-away state, among those of this run.

    Raises:
        BadInput: the configuration cannot be read.
        NotLoaded: the project does not load.
    """
    configs, _ = configure_projects(
        place, on_spark_start, clock=clock, read=sqlmesh_compat.read_sqlmesh_configs_without_state
    )
    context = create_project_context(configs, place)
    state = sqlmesh_compat.make_throwaway_sqlmesh_state(
        place.scratch_dir / f"{name}.duckdb", context
    )
    sqlmesh_compat.give_sqlmesh_state(context, state)
    sqlmesh_compat.load_sqlmesh_context_without_state(context)
    load_project(context, clock.time_phase("load"), place.repository)
    return context


# `oid` and `size` have at least this length together with the first line.
_SHORTEST = 60
_SKIPPED = frozenset({".git", ".cache", ".venv", "__pycache__", "node_modules"})
# Files beyond this number are not checked: a project has some thousands.
_MOST_FILES = 200_000
# The kinds of files that SQLMesh loads from a project's directories.
_LOADED = (".sql", ".py", ".yaml", ".yml", ".csv", ".tsv")
_TEXTS = (".sql", ".py", ".yaml", ".yml")
FIX = (
    "the workflow checks out with `lfs: true` in the `with:` of actions/checkout; on a laptop "
    "`git lfs pull` gets the files"
)


def list_lfs_pointers(paths: Iterable[str | Path]) -> list[Path]:
    """Lists the files that are pointers, each once, sorted.

    Only small files are opened, and of them only the first bytes are read.
    """
    found = {
        Path(os.path.normpath(path))
        for path in paths
        if _is_lfs_pointer_of_project(os.fspath(path))
    }
    return sorted(found)


def list_seed_files_of_project(models: Iterable[Model]) -> dict[Path, SeedModel]:
    """Lists the files of the seed models, each with its model."""
    # A model of another project comes from the state and has no file here.
    own = (model for model in models if is_seed_model(model) and model._path is not None)
    return {Path(os.path.normpath(model.seed_path)): model for model in own}


def list_project_files_below(directories: Iterable[Path]) -> set[Path]:
    """Lists the files in and below these directories, without caches and git's own files."""
    return {
        Path(os.path.normpath(path))
        for directory in directories
        for path in _iterate_project_files(str(directory))
    }


def list_lfs_pointers_that_project_loads(pointers: Iterable[Path]) -> list[Path]:
    """Lists the pointers of a kind of file that SQLMesh loads."""
    return [path for path in pointers if path.suffix.lower() in _LOADED]


def list_lfs_pointers_named_in_project(
    pointers: Sequence[Path], directories: Iterable[Path]
) -> list[Path]:
    """Lists the pointers whose names appear in a model, macro or configuration below
    `directories`.
    """
    if not pointers:
        return []
    texts = [
        _read_content_of_project_file(path)
        for directory in directories
        for path in _iterate_project_files(str(directory))
        if path.endswith(_TEXTS)
    ]
    return [path for path in pointers if any(os.fsencode(path.name) in text for text in texts)]


def _iterate_project_files(directory: str) -> Iterator[str]:
    # A copy of a checkout links to large directories of data.
    seen: set[str] = set()
    todo, left = [directory], _MOST_FILES
    while todo and left > 0:
        here = todo.pop()
        real = os.path.realpath(here)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = list(os.scandir(here))
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            if entry.name in _SKIPPED:
                continue
            try:
                is_directory = entry.is_dir()
            except OSError:
                continue  # a link that leads to itself
            if is_directory:
                todo.append(entry.path)
            else:
                yield entry.path


def _is_lfs_pointer_of_project(path: str) -> bool:
    try:
        status = os.stat(path)  # noqa: PTH116 - of each file of a project, and in half the time
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(status.st_mode) or not _SHORTEST <= status.st_size < POINTER_BYTES:
        return False
    return is_lfs_pointer(_read_content_of_project_file(path, POINTER_BYTES))


def _read_content_of_project_file(path: str, at_most: int = -1) -> bytes:
    try:
        # This read is not part of loading the project, so the load trace leaves it out.
        with exclude_from_load_trace(), Path(path).open("rb") as file:
            return file.read(at_most)
    except OSError:
        return b""


_SHOWN = 3

_LONGEST_PATH = 200

_CHECK = (
    "If prod has been built, check the gateway's `state_connection` and its `state_schema`, their "
    "variables, and what the account of this run may read. If this is the first deployment, say so "
    "with `baseline: state`, or build prod."
)


def make_missing_prod_of_project_error(missing: ProdNotFound | None, consequence: str) -> BadInput:
    """Makes the failure of work that needs prod; `consequence` is a sentence on what cannot be
    done.
    """
    absence = missing.describe_absence() if missing else "There is no prod."
    return BadInput(
        f"{absence} {consequence}",
        hint=f"{missing.hint if missing else ''} `sqlmesh plan` builds prod.".strip(),
        reason_code="no_prod",
    )


def find_missing_prod_of_project(
    context: Context, *, has_tables: bool, place: ProjectPlace
) -> ProdNotFound | None:
    """Finds why the state's prod holds no model of this project; None if it holds one.

    Call it after the project is loaded. An empty state may be the wrong one: a file that was never
    checked out, another schema, an account that sees no table. So empty does not mean that prod is
    empty.

    Args:
        has_tables: Whether the state that the project configures has SQLMesh's tables.
    """
    why = _find_why_project_has_no_prod(context) if has_tables else "no table of SQLMesh is there"
    if why is None:
        return None
    unset = list_unset_variables_for_state_error(place.projects, os.environ)
    hint = f"{describe_missing_variables_in_hint(unset)} {_CHECK}" if unset else _CHECK
    return ProdNotFound(
        state=_describe_state_location_of_project(context, place), why=why, hint=hint
    )


def _find_why_project_has_no_prod(context: Context) -> str | None:
    reader = context.state_reader
    prod = reader.get_environment(c.PROD)
    if prod is None:
        others = sorted(str(known.name) for known in reader.get_environments_summary())
        if not others:
            return "it holds no environment"
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        shown = ", ".join(quote_value(name) for name in others[:_SHOWN])
        noun = "the environment" if len(others) == 1 else "the environments"
        return f"it holds {noun} {shown}{more}, and no `{c.PROD}`"
    return _describe_other_projects_in_prod(context, prod)


def _describe_other_projects_in_prod(context: Context, prod: Environment) -> str | None:
    """Describes the other projects that share this prod; None if a model of it is loaded here.

    Projects that share a state have one prod, and a new project has no model in it.
    """
    if not prod.snapshots:
        return f"its `{c.PROD}` holds no model"
    projects = {
        name: str(node.project)
        for nodes in (context._models, context._standalone_audits)
        for name, node in nodes.items()
        if node.project not in context._projects
    }
    if not all(info.name in projects for info in prod.snapshots):
        return None
    named = sorted({projects[info.name] for info in prod.snapshots})
    shown = ", ".join(quote_value(name) for name in named[:_SHOWN])
    return f"its `{c.PROD}` holds models of other projects only ({shown})"


def _describe_state_location_of_project(context: Context, place: ProjectPlace) -> str:
    """Describes where the state is: server, database and schema, or file. Never a user or
    password.
    """
    connection: Any = sqlmesh_compat.find_sqlmesh_state_connection(context.config, context.gateway)
    if isinstance(connection, DuckDBConnectionConfig):
        file = connection.database
        if not file or file == ":memory:":
            return "DuckDB, in memory"
        return (
            f"DuckDB, file {_quote_state_path(display_project_path(Path(file).absolute(), place))}"
        )
    parts = [str(connection.type_)]
    host, port = getattr(connection, "host", None), getattr(connection, "port", None)
    if host:
        parts.append(f"host {quote_value(f'{host}:{port}' if port else str(host))}")
    database = getattr(connection, "database", None) or getattr(connection, "project", None)
    if database:
        parts.append(f"database {quote_value(str(database))}")
    schema = context.config.get_state_schema(context.gateway) or c.SQLMESH
    parts.append(f"schema {quote_value(schema)}")
    gateway = context.gateway or context.config.default_gateway_name
    return ", ".join([*parts, f"gateway {quote_value(gateway)}"])


def _quote_state_path(path: str) -> str:
    """Quotes a path. A long one keeps its end, which distinguishes it from others."""
    text = redact_shapes(path)
    return repr(text if len(text) <= _LONGEST_PATH else f"…{text[-_LONGEST_PATH:]}")


# Which project causes a load failure if the state also holds models of other projects.
#
# With a `project:` key SQLMesh also loads prod's models of other projects on the same state, and
# runs their macros as they were recorded. A failure there is in no file of this checkout.


_HINT = (
    "Plan prod of {project} with the versions of Python and SQLMesh that are used here, or use its "
    "versions here (input `requirements`)."
)

_MODULE_HINT = "Add what {project} needs to the file that the input `requirements` names."


def attribute_project_load_failure(
    error: NotLoaded, configs: Mapping[Path, Config], place: ProjectPlace, state: StateSync
) -> NotLoaded:
    """Returns the same error, or one that names the other projects' models that cause it.

    They are the cause only if the project loads without them and they fail on their own. So a
    failure of this pull request never counts as theirs.
    """
    context = create_project_context(dict(configs), place)
    sqlmesh_compat.load_sqlmesh_context_without_state(context)
    try:
        load_project(context, WorkerPhaseClock().time_phase("load"), place.repository)
    except BotError:
        return error
    names = MessageNames(context.default_catalog, context.default_dialect)
    failures = [
        _make_failure_of_project_load(found, names, place.repository)
        for found in sqlmesh_compat.find_failing_sqlmesh_nodes_of_others(context, state)
    ]
    return NotLoaded(failures, base=failures) if failures else error


def _make_failure_of_project_load(
    found: sqlmesh_compat.FailingNode, names: MessageNames, repository: Path
) -> Failure:
    model, owner = names.short_name(found.name), found.project
    failure = make_failure_of_error(found.error, stage="load", repository=repository)
    project = f"the project `{owner}`" if owner else "another project"
    can = "does not load here" if owner else f"cannot be read by SQLMesh {sqlmesh.__version__}"
    why = failure.message
    if isinstance(found.error, ValidationError):
        first = found.error.errors()[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    hint = _MODULE_HINT if failure.reason_code == "missing_module" else _HINT
    return failure.model_copy(
        update={
            "message": f"`{model}`, which the state holds for {project}, {can}: {why}",
            "hint": hint.format(project=project),
            "model": model,
            "project": owner or "",
            "path": None,
            "line": None,
        }
    )
