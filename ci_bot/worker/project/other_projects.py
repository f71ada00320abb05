"""Whose doing it is that a project does not load together with what its state holds of others.

With a `project:` key SQLMesh loads the models that prod has of other projects on the same state,
and runs their macros as they were recorded. What fails there is in no file of this checkout.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import sqlmesh
from pydantic import ValidationError
from sqlmesh.core.config import Config
from sqlmesh.core.state_sync import StateSync

from ci_bot.contracts.base import Failure
from ci_bot.errors import BotError
from ci_bot.worker import compat
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project.configuring import new_context
from ci_bot.worker.project.directories import ProjectPlace
from ci_bot.worker.project.loading import load
from ci_bot.worker.words.names import Names
from ci_bot.worker.words.problems import NotLoaded, failure_of

_HINT = (
    "Plan prod of {project} with the versions of Python and SQLMesh that are used here, or use its "
    "versions here (input `requirements`)."
)
_MODULE_HINT = "Add what {project} needs to the file that the input `requirements` names."


def with_failures_of_others(
    error: NotLoaded, configs: Mapping[Path, Config], place: ProjectPlace, state: StateSync
) -> NotLoaded:
    """The same error, or the one that names the other projects' models that it comes from.

    They are why where the project loads without them, and they fail by themselves. So what this
    pull request breaks is never taken for theirs.
    """
    context = new_context(dict(configs), place)
    compat.merge_nothing_from_state(context)
    try:
        load(context, Clock().phase("load"), place.repository)
    except BotError:
        return error
    names = Names(context.default_catalog, context.default_dialect)
    failures = [
        _failure(found, names, place.repository)
        for found in compat.failing_nodes_of_others(context, state)
    ]
    return NotLoaded(failures, base=failures) if failures else error


def _failure(found: compat.FailingNode, names: Names, repository: Path) -> Failure:
    model, owner = names.of(found.name), found.project
    failure = failure_of(found.error, stage="load", repository=repository)
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
