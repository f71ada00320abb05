"""Declarations of a model: named columns, types, registered sources, dependencies, variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.linter.rules.builtin import AmbiguousOrInvalidColumn

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.redaction import is_name_of_secret
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedSelect,
    find_environment_reads,
    iterate_code_trees,
    list_missing_columns,
    plain_name,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_SYSTEM_SCHEMAS = frozenset({"information_schema", "system", "pg_catalog", "sys"})


@on_model
class ExternalUnregistered(ModelRule):
    """A table that SQLMesh does not know can change, and no plan shows it."""

    spec = find_rule("external-unregistered")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.kind.is_external:
            return
        unknown = [
            name
            for name in sorted(model.depends_on)
            if self.project.get_model(name) is None and not _is_system_table(name)
        ]
        if not unknown:
            return
        registers = any(item.kind.is_external for item in self.project.models.values())
        for name in unknown:
            called = self.project.name_of_table(name)
            yield self.make_observation(
                model,
                f"`{called}` is no model and is not in external_models.yaml: its columns are "
                "not known, and no plan sees it change.",
                "`sqlmesh create_external_models` has added it, with its columns",
                subject=[called],
                # If a project registers no table at all, this change is not the cause.
                severity=None if registers else "medium",
                anchors=(called, plain_name(name).rpartition(".")[2]),
            )


def _is_system_table(name: str) -> bool:
    parts = plain_name(name).split(".")
    return any(part in _SYSTEM_SCHEMAS for part in parts[:-1])


@on_model
class ExternalWithoutAudits(ModelRule):
    """Data that enters a project should be checked first."""

    spec = find_rule("external-without-audits")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.kind.is_external and not model.audits:
            yield self.make_observation(
                model,
                "Nothing checks what arrives in this table.",
                "the entry in external_models.yaml has audits, for instance not_null on its key",
                anchors=(model.name,),
            )


@on_model
class SelectStar(ModelRule):
    """A star passes on all columns that the source has today."""

    spec = find_rule("select-star")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        root = query.written_root if query.written is not None else query.root
        tree = query.written_tree if query.written is not None else query.rendered_tree
        if not any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
            return
        for select in root.selects:
            for item in select.node.expressions:
                if not item.is_star or isinstance(item.unalias(), exp.Count):
                    continue
                tables = sorted(set(_iterate_tables_under_star(item, select)))
                if not tables:
                    continue
                known = [self.project.by_table.get(name) for name in tables]
                called = [self.project.name_of_table(name) for name in tables]
                all_known = all(m is not None and m.columns_to_types for m in known)
                yield self.make_observation(
                    model,
                    f"SELECT * takes every column that {quote_names(called)} "
                    + (
                        "has today; a new one appears here without a change."
                        if all_known
                        else "has, and SQLMesh does not know them."
                    ),
                    "the columns are named",
                    subject=[f"* of {', '.join(called)}"],
                    severity="low" if all_known else None,
                    anchors=("SELECT *", "*"),
                )


def _iterate_tables_under_star(item: exp.Expr, select: ScopedSelect) -> Iterator[str]:
    """Yields tables that a star reads directly; a CTE is not one of them."""
    table = item.table.lower() if isinstance(item, exp.Column) else ""
    for alias, source in select.read_sources.items():
        if isinstance(source, exp.Table) and table in {"", alias}:
            yield table_name(source)


@on_model
class UncastProjection(ModelRule):
    """If the type of a column is unknown, the engine chooses it."""

    spec = find_rule("uncast-projection")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if not model.is_sql or model.kind.is_external:
            return
        types = model.columns_to_types
        if not types or "*" in types:
            return
        if any(name not in self.project.models for name in model.depends_on):
            return  # with an unknown source every type is unknown; another rule reports that
        unknown = [name for name, kind in types.items() if kind.is_type(exp.DataType.Type.UNKNOWN)]
        if unknown and not model.violated_rules_for_query:
            yield self.make_observation(
                model,
                lambda columns: (
                    f"The types of {quote_names(columns)} are not known from the query."
                ),
                "the columns are cast in the outermost SELECT",
                subject=unknown,
                anchors=tuple(unknown),
            )


@on_model
class MissingColumn(ModelRule):
    """A column that does not exist in any table of the query."""

    spec = find_rule("missing-column")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        query = self.query_of(model)
        if query is None:
            return
        # SQLMesh could not qualify the query with the schemas that it knows.
        violated = model.violated_rules_for_query
        if not violated.get(AmbiguousOrInvalidColumn):
            return
        missing = list_missing_columns(query.known_root, self.project.columns_of)
        for table, column in sorted({(table, name) for name, table in missing if table}):
            called = self.project.name_of_table(table)
            yield self.make_observation(
                model,
                f"`{column}` is read from `{called}`, which has no such column.",
                "the column exists there, or is no longer read",
                subject=[f"{called} {column}"],
                anchors=(column,),
            )


# The tables that a Python model reads, which are compared with its `depends_on`.


# Methods of SQLMesh's ExecutionContext and of the Spark session behind it.
_BY_NAME = frozenset({"resolve_table", "table"})
_BY_QUERY = frozenset({"fetchdf", "fetch_pyspark_df", "sql", "fetchall", "fetchone"})
_READS = re.compile(r"\b(?:FROM|JOIN)\s+([`\"\w.]+)", re.IGNORECASE)


@on_model
class PythonDependencyMissing(ModelRule):
    """SQLMesh waits only for the models in `depends_on`, and rebuilds this model after them."""

    spec = find_rule("python-dependency-missing")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if not model.is_python:
            return
        known = {plain_name(name) for name in model.depends_on} | {plain_name(model.fqn)}
        missing = {
            self.project.name_of_table(found.fqn): text
            for tree in iterate_code_trees(model)
            for text in _iterate_read_names(tree)
            if (found := self.project.by_table.get(plain_name(text))) is not None
            and plain_name(found.fqn) not in known
        }
        if missing:
            yield self.make_observation(
                model,
                f"The code reads {quote_names(missing)}, which `depends_on` does not name: "
                "SQLMesh does not wait for it, and does not compute this model again when it "
                "changes.",
                "`depends_on` names every model that the code reads, or is left out where the "
                "code names them as text in `context.resolve_table`",
                subject=sorted(missing),
                anchors=("depends_on", *missing.values()),
            )


def _iterate_read_names(tree: ast.AST) -> Iterator[str]:
    """Yields names of tables that the code contains as text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        first = node.args[0] if node.args else None
        if node.func.attr in _BY_NAME:
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value
        elif node.func.attr in _BY_QUERY and first is not None:
            for part in ast.walk(first):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield from _READS.findall(part.value)


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
        found = [name for name in find_environment_reads(model) if not is_name_of_secret(name)]
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
    """Lists the names in calls of @VAR that have no default."""
    calls = [call.this for call in query.written_tree.find_all(d.MacroFunc)]
    return [
        call.expressions[0].name
        for call in calls
        if call.name.upper() == "VAR" and len(call.expressions) == 1
    ]


def _list_own_variables(model: Model) -> frozenset[str]:
    """Lists variables that SQLMesh stored with the model, in lower case; also blueprints."""
    found: set[str] = set()
    for name in ("__sqlmesh__vars__", "__sqlmesh__blueprint__vars__"):
        item = model.python_env.get(name)
        if item is not None:
            found |= {key.lower() for key in re.findall(r"['\"](\w+)['\"]\s*:", item.payload)}
    return frozenset(found)
