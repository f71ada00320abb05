"""Variables without a value, and variables whose value depends on the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule
from ci_bot.redaction import is_suspect
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.sql import (
    ModelQuery,
    find_environment_reads,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_PYTHON_VAR = re.compile(
    r"(?:context|evaluator)\.(?:var|blueprint_var)\(\s*['\"]([^'\"]+)['\"]\s*(,)?"
)


@on_model
class UndefinedVariable(ModelRule):
    """A variable without a value and without a default is NULL."""

    spec = find_rule("undefined-variable")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        known = (self.project.variables or frozenset()) | _list_own_variables(model)
        required: list[str] = []
        if model.is_sql:
            query = self.query_of(model)
            required = _list_required_variables(query) if query is not None else []
        elif model.is_python:
            payloads = "\n".join(item.payload for item in model.python_env.values())
            required = [name for name, default in _PYTHON_VAR.findall(payloads) if not default]
        gone = sorted({name for name in required if name.lower() not in known})
        if gone:
            yield self.make_observation(
                model,
                lambda variables: (
                    f"{quote_names(variables)} have neither a value in the configuration "
                    "nor a default, so they are NULL."
                ),
                "the variable is in `variables`, or the call gives a default",
                subject=gone,
                anchors=tuple(gone),
            )


@on_model
class EnvironmentVariable(ModelRule):
    """A variable of the machine's environment is no part of the project, but changes results."""

    spec = find_rule("environment-variable")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        # Environment variables are the right place for credentials.
        found = [name for name in find_environment_reads(model) if not is_suspect(name)]
        if found:
            yield self.make_observation(
                model,
                lambda variables: (
                    f"The {'Python model' if model.is_python else 'macros of the model'} "
                    f"{'reads' if model.is_python else 'read'} {quote_names(variables)} from the "
                    "environment of whichever machine loads the project: two machines may plan "
                    "and compute two results, and no plan shows which."
                ),
                "the value is a variable of the project (`variables`), or is in the code",
                subject=found,
                severity="medium" if model.is_python else None,
                anchors=tuple(found),
            )


def _list_required_variables(query: ModelQuery) -> list[str]:
    """Lists names in calls of @VAR without a default."""
    calls = [call.this for call in query.written_tree.find_all(d.MacroFunc)]
    return [
        call.expressions[0].name
        for call in calls
        if call.name.upper() == "VAR" and len(call.expressions) == 1
    ]


def _list_own_variables(model: Model) -> frozenset[str]:
    """Lists variables that SQLMesh stored with the model: gateway, defaults and blueprints."""
    found: set[str] = set()
    for name in ("__sqlmesh__vars__", "__sqlmesh__blueprint__vars__"):
        item = model.python_env.get(name)
        if item is not None:
            found |= {key.lower() for key in re.findall(r"['\"](\w+)['\"]\s*:", item.payload)}
    return frozenset(found)
