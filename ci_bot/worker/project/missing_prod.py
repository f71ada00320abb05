"""Whether a state holds this project's prod, and which project's models fail to load."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlmesh
from pydantic import ValidationError
from sqlmesh.core import constants as c
from sqlmesh.core.config import Config, DuckDBConnectionConfig
from sqlmesh.core.context import Context
from sqlmesh.core.environment import Environment
from sqlmesh.core.state_sync import StateSync

from ci_bot.errors import BadInput, BotError
from ci_bot.protocol.base import Failure
from ci_bot.protocol.review_report import ProdNotFound
from ci_bot.redaction import hide_shapes, quote_value
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import (
    ModelNames,
    NotLoaded,
    describe_missing_variables,
    list_unset_variables,
    make_failure_of_error,
)
from ci_bot.worker.project.configuration import ProjectPlace, create_context, display_path
from ci_bot.worker.project.loading import load_project
from ci_bot.worker.runtime import PhaseClock

_SHOWN = 3

_LONGEST_PATH = 200

_CHECK = (
    "If prod has been built, check the gateway's `state_connection` and its `state_schema`, their "
    "variables, and what the account of this run may read. If this is the first deployment, say so "
    "with `baseline: state`, or build prod."
)


def make_missing_prod_error(missing: ProdNotFound | None, consequence: str) -> BadInput:
    """Makes the failure of work that needs prod; `consequence` is a sentence on what cannot be
    done.
    """
    absence = missing.describe_absence() if missing else "There is no prod."
    return BadInput(
        f"{absence} {consequence}",
        hint=f"{missing.hint if missing else ''} `sqlmesh plan` builds prod.".strip(),
        reason_code="no_prod",
    )


def find_missing_prod(
    context: Context, *, has_tables: bool, place: ProjectPlace
) -> ProdNotFound | None:
    """Finds why the state's prod holds no model of this project; None if it holds one.

    Call it after the project is loaded. An empty state may be the wrong one: a file that was never
    checked out, another schema, an account that sees no table. So empty does not mean that prod is
    empty.

    Args:
        has_tables: Whether the state that the project configures has SQLMesh's tables.
    """
    why = _find_missing(context) if has_tables else "no table of SQLMesh is there"
    if why is None:
        return None
    unset = list_unset_variables(place.projects, os.environ)
    hint = f"{describe_missing_variables(unset)} {_CHECK}" if unset else _CHECK
    return ProdNotFound(state=_describe_state_location(context, place), why=why, hint=hint)


def _find_missing(context: Context) -> str | None:
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
    return _describe_other_projects(context, prod)


def _describe_other_projects(context: Context, prod: Environment) -> str | None:
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


def _describe_state_location(context: Context, place: ProjectPlace) -> str:
    """Describes where the state is: server, database and schema, or file. Never a user or
    password.
    """
    connection: Any = sqlmesh_compat.find_state_connection(context.config, context.gateway)
    if isinstance(connection, DuckDBConnectionConfig):
        file = connection.database
        if not file or file == ":memory:":
            return "DuckDB, in memory"
        return f"DuckDB, file {_quote_path(display_path(Path(file).absolute(), place))}"
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


def _quote_path(path: str) -> str:
    """Quotes a path. A long one keeps its end, which tells files apart."""
    text = hide_shapes(path)
    return repr(text if len(text) <= _LONGEST_PATH else f"…{text[-_LONGEST_PATH:]}")


# Which project causes a load failure if the state also holds models of other projects.
#
# With a `project:` key SQLMesh loads the models that prod has of other projects on the same state,
# and runs their macros as they were recorded. A failure there is in no file of this checkout.


_HINT = (
    "Plan prod of {project} with the versions of Python and SQLMesh that are used here, or use its "
    "versions here (input `requirements`)."
)

_MODULE_HINT = "Add what {project} needs to the file that the input `requirements` names."


def attribute_load_failure(
    error: NotLoaded, configs: Mapping[Path, Config], place: ProjectPlace, state: StateSync
) -> NotLoaded:
    """Returns the same error, or one that names the other projects' models that cause it.

    They are the cause only if the project loads without them and they fail by themselves. So a
    failure of this pull request never counts as theirs.
    """
    context = create_context(dict(configs), place)
    sqlmesh_compat.load_without_state_models(context)
    try:
        load_project(context, PhaseClock().time_phase("load"), place.repository)
    except BotError:
        return error
    names = ModelNames(context.default_catalog, context.default_dialect)
    failures = [
        _make_failure(found, names, place.repository)
        for found in sqlmesh_compat.find_failing_nodes_of_others(context, state)
    ]
    return NotLoaded(failures, base=failures) if failures else error


def _make_failure(
    found: sqlmesh_compat.FailingNode, names: ModelNames, repository: Path
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
