"""Models that statements, audits and code read, and that `depends_on` does not name.

SQLMesh finds in a query which models it reads. For statements, audits and code of the project it
knows only the names in `depends_on`: in a run it waits for these models, and replaces their names
by the tables of the environment. (`_Model.full_depends_on`, `Scheduler._dag`)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.dialect import find_tables

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.runtime import silence_log
from ci_bot.worker.sql import list_jinja_macros, plain_name
from ci_bot.worker.sqlmesh_compat import is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SqlModel

MISSING = find_rule("statement-dependency-missing")
_CLEARS = "`depends_on` names every model that statements, audits and code read"
_CONSEQUENCE = (
    "SQLMesh does not wait for it in a run, and in a PR environment the name leads to the table of "
    "prod"
)
_UNWAITED = (
    "A statement or an audit reads {}, which neither the query nor `depends_on` names: "
    f"{_CONSEQUENCE}."
)
_LOST = "`depends_on` no longer names {}, and "
_MAY_READ = (
    f"{_LOST}its code may read that, since it queries the engine itself or names it: "
    f"{_CONSEQUENCE}."
)
_NOT_READ = f"{_LOST}nothing here reads that, so only the order of runs changes."

_SLOTS = ("render_pre_statements", "render_post_statements", "render_on_virtual_update")
_WRITTEN_SLOTS = ("pre_statements_", "post_statements_", "on_virtual_update_")
# They name a table and do not read its rows.
_NOT_READING = (exp.Refresh, exp.Analyze, exp.Drop, exp.Alter, exp.Uncache, exp.Describe)
_NOT_READING_COMMANDS = frozenset(
    {"MSCK", "REPAIR", "OPTIMIZE", "VACUUM", "REFRESH", "ANALYZE", "ALTER", "DROP", "UNCACHE"}
    | {"COMMENT", "CALL", "SET", "USE", "GRANT", "REVOKE", "TRUNCATE", "SHOW", "DESCRIBE"}
)
# From the beginning of a word: otherwise a long word without a dot is searched again at each
# letter.
_NAME = re.compile(r"(?<!\w)[`\"]?\w+[`\"]?(?:\.[`\"]?\w+[`\"]?)+")
# Code that queries the engine itself, in Python and in Jinja.
_ASKS_THE_ENGINE = re.compile(
    r"engine_adapter|\.fetch\w+\(|\brun_query\b|\badapter\.|\bexecute\(|\bspark\.(sql|table)\("
)


@on_change(MISSING)
def find_lost_dependencies(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Models that statements read, and that the model no longer waits for or never did."""
    before, after = pair.before, pair.after
    lost = {name for name in before.depends_on - after.depends_on if name in inputs.after}
    sure: set[str] = set()
    if is_sql_model(after):
        known = set(_list_unwaited(before, inputs)) if is_sql_model(before) else set()
        sure = set(_list_unwaited(after, inputs)) - known
        sure |= lost & set(_list_models(_list_audited_tables(after), inputs))
        if sure:
            yield _observe_unwaited(after, sure, inputs)
    # SQLMesh adds the tables of the query to the written list.
    named = lost & (before.depends_on_ or set()) - sure - _list_queried(before)
    may_read = {name for name in named if _may_be_read(after, name, inputs)}
    if may_read:
        yield _make_missing(after, may_read, inputs, _MAY_READ)
    if named - may_read:
        yield _make_missing(after, named - may_read, inputs, _NOT_READ, severity="medium")


@on_new_model(MISSING)
def find_missing_dependencies(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Models that statements of a new model read, and that it does not wait for."""
    if is_sql_model(model) and (unwaited := set(_list_unwaited(model, inputs))):
        yield _observe_unwaited(model, unwaited, inputs)


def _observe_unwaited(model: Model, names: set[str], inputs: RuleInputs) -> RuleObservation:
    found = _make_missing(model, names, inputs, _UNWAITED)
    return replace(found, anchors=("depends_on", *found.subject))


def _make_missing(
    model: Model,
    names: set[str],
    inputs: RuleInputs,
    sentence: str,
    severity: Severity | None = None,
) -> RuleObservation:
    """Makes a finding about models that nobody waits for; `{}` in the sentence is their names."""
    called = {inputs.names.short_name(name) for name in names}
    return RuleObservation(
        MISSING,
        sentence.format(quote_names(called)),
        _CLEARS,
        severity=severity,
        model=model,
        subject=tuple(sorted(called)),
        anchors=("depends_on",),
    )


def _list_unwaited(model: SqlModel, inputs: RuleInputs) -> Iterator[str]:
    """Lists the models that its statements read, and that it does not depend on."""
    waited = {plain_name(name) for name in (*model.depends_on, model.fqn)}
    for name in _list_models(_list_statement_tables(model), inputs):
        if plain_name(name) not in waited:
            yield name


def _list_queried(model: Model) -> set[str]:
    """Lists the tables that the model's query reads, by full name."""
    if not is_sql_model(model):
        return set()
    try:
        query = model.render_query(needs_optimization=False)
    except Exception:  # a macro of the project may raise anything
        return set()
    if query is None:
        return set()
    found = find_tables(query, default_catalog=model.default_catalog, dialect=model.dialect)
    return set(found)


def _list_models(tables: Iterator[str], inputs: RuleInputs) -> Iterator[str]:
    """Lists the models of the head among the tables, by full name; a seed is a model, too."""
    for name in {plain_name(table) for table in tables}:
        yield from inputs.models_by_plain_name.get(name, ())


def _list_statement_tables(model: SqlModel) -> Iterator[str]:
    if not any(getattr(model, slot, None) for slot in _WRITTEN_SLOTS):
        return
    for method in _SLOTS:
        for tree in _render_or_none(getattr(model, method)) or ():
            yield from _list_read_tables(tree)


def _list_audited_tables(model: SqlModel) -> Iterator[str]:
    for audit, _ in model.audits_with_args:
        if audit.name not in BUILT_IN_AUDITS:
            query = _parse_or_none(audit)
            yield from _list_read_tables(query) if query is not None else ()


def _parse_or_none(audit: Any) -> exp.Expr | None:
    try:
        query = audit.query
    except Exception:  # SQLMesh refuses an audit that cannot be parsed
        return None
    return query if isinstance(query, exp.Expression) else None


def _list_read_tables(tree: exp.Expr) -> Iterator[str]:
    """Lists the tables that a statement reads, without its target."""
    if isinstance(tree, _NOT_READING):
        return
    if isinstance(tree, exp.Command):  # kept as text
        text = tree.sql()
        word = text.split(maxsplit=1)[0].upper() if text.strip() else ""
        yield from () if word in _NOT_READING_COMMANDS else _NAME.findall(text)
        return
    target = tree.find(exp.Table) if not isinstance(tree, exp.Query) else None
    for table in tree.find_all(exp.Table):
        if table is not target or isinstance(target.parent, (exp.From, exp.Join)):
            yield exp.table_name(table)


def _render_or_none(render: Callable[[], Any]) -> list[exp.Expr] | None:
    """Renders statements as the load does; None if that needs the engine."""
    with silence_log("sqlmesh.core.renderer"):
        try:
            return list(render())
        except Exception:  # a macro of the project may raise anything
            return None


def _may_be_read(model: Model, name: str, inputs: RuleInputs) -> bool:
    """Whether code names a model, or may read it by its own queries to the engine."""
    code = [str(item.payload) for item in model.python_env.values()]
    if is_sql_model(model):
        code += list_jinja_macros(model)
        if any(_render_or_none(getattr(model, method)) is None for method in _SLOTS):
            return True
    text = "\n".join(code)
    short = plain_name(inputs.names.short_name(name))
    named = re.compile(rf"(?<![\w.]){re.escape(short)}(?!\w)", re.IGNORECASE)
    return bool(named.search(text) or (is_sql_model(model) and _ASKS_THE_ENGINE.search(text)))
