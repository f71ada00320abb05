"""Changes that only a run shows: other renderings than in the load, and models not waited for.

SQLMesh compares the queries that the load renders. A run renders them again, with its interval, its
stage and the results of earlier runs. If the load renders the same text twice, SQLMesh treats the
edit as metadata and builds nothing. The next run computes other rows anyway.
(`SqlModel.is_metadata_only_change`)

SQLMesh finds in a query which models it reads. For statements, audits and code of the project it
knows only the names in `depends_on`: in a run it waits for these models, and replaces their names
by the tables of the environment. (`_Model.full_depends_on`, `Scheduler._dag`)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import nodes
from sqlglot import exp
from sqlglot.tokens import Tokenizer
from sqlmesh.core import dialect as d
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.dialect import find_tables
from sqlmesh.core.macros import RuntimeStage

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.rules.changes.results import is_proved_at_all_times
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.runtime import silence_worker_log
from ci_bot.worker.sql import JINJA_PARSER, RUN_DATES, list_jinja_macros, plain_name
from ci_bot.worker.sqlmesh_compat import is_sql_model

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, SqlModel

CHANGED_IN_RUNS = find_rule("changed-in-runs")
BUILT_AGAIN = (
    "the owner confirms what the next runs write, or adds a `stamp` to the model, so that the plan "
    "builds it again"
)

# Names that have another value in a run than while the project is loaded.
_KNOWN_TO_RUNS = re.compile(
    RUN_DATES
    + r"|\b(runtime_stage|is_incremental|engine_adapter|adapter|locals|snapshots?|intervals"
    r"|execute|run_query|load_relation|this_env|gateway)\b",
    re.IGNORECASE,
)
# An interval before all data and one after: on both sides of each date that a query may name.
_INTERVALS = (("1971-03-05", "1971-03-06"), ("2199-07-09", "2199-07-10"))
_STAGES = (RuntimeStage.EVALUATING, RuntimeStage.CREATING)

RunDifference = Literal["shown", "unknown"]


@on_change(CHANGED_IN_RUNS)
def find_changed_renderings(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds queries and statements with the same text in the load, and another one in a run."""
    before, after = pair.before, pair.after
    if not (is_sql_model(before) and is_sql_model(after) and _is_metadata_change(before, after)):
        return
    found = compare_changed_renderings_in_runs(pair)
    if found is None:
        return
    what = (
        "The next run computes it otherwise"
        if found == "shown"
        else "The next run may compute it otherwise"
    )
    why = (
        "SQLMesh's cache has one entry for both queries (`ELEMENT_AT(x, 1)` and `x[1]` are one "
        "there), so SQLMesh calls this edit metadata"
        if sqlmesh_compat.share_query_that_sqlmesh_rendered(before, after)
        else "the edit changes what a run renders (its dates, its stage, or what earlier runs "
        "left). SQLMesh compares texts without a run, calls this edit metadata"
    )
    yield RuleObservation(
        CHANGED_IN_RUNS,
        f"{what}: {why} and builds nothing, so an apply does not show it.",
        BUILT_AGAIN,
        model=after,
        anchors=("@runtime_stage", "is_incremental", "@start_", "@end_", "start_ds", "end_ds"),
    )


def _is_metadata_change(before: Model, after: Model) -> bool:
    """Whether SQLMesh treats the edit as metadata; SQLMesh renders both sides to decide."""
    try:
        return bool(after.is_metadata_only_change(before))
    except Exception:  # a macro of the project may raise anything; the plan reports it
        return False


def compare_changed_renderings_in_runs(pair: ModelPair) -> RunDifference | None:
    """Whether runs render two definitions differently although the load does not; None if not.

    "shown" if two renderings differ; "unknown" if two texts differ in a part that no rendering has
    reached, or if a side cannot be rendered.
    """
    before, after = pair.before, pair.after
    if not (is_sql_model(before) and is_sql_model(after)):
        return None
    if _list_written_texts(before) == _list_written_texts(after):
        return None
    if not (
        any(_KNOWN_TO_RUNS.search(_collect_code_of_model(model)) for model in (before, after))
        or sqlmesh_compat.share_query_that_sqlmesh_rendered(before, after)
    ):
        return None  # a run renders the same text as the load
    for render in _list_renderings_of_run(before, after):
        old = _render_engine_text_of_run(render, before)
        new = _render_engine_text_of_run(render, after)
        if old is None or new is None:
            return "unknown"
        if old != new:
            return "shown"
    return None if _has_one_meaning(pair, before, after) else "unknown"


def _list_written_texts(model: SqlModel) -> tuple[str, ...]:
    statements = (*(model.pre_statements_ or ()), *(model.post_statements_ or ()))
    return (model.query_.sql, *(item.sql for item in statements))


def _collect_code_of_model(model: SqlModel) -> str:
    """Collects the texts of the query, its statements and definitions, and of their macros."""
    python = (item.payload for item in model.python_env.values() if item.payload)
    return "\n".join([*_list_written_texts(model), *map(str, python), *list_jinja_macros(model)])


RunRendering = Callable[[Any], list[Any]]


def _list_renderings_of_run(before: SqlModel, after: SqlModel) -> Iterator[RunRendering]:
    for stage in _STAGES:
        for start, end in _INTERVALS:
            run = {"start": start, "end": end, "execution_time": end, "runtime_stage": stage}
            yield partial(_render_run_on_both_sides, run)
    if isinstance(before.query, d.JinjaQuery) or isinstance(after.query, d.JinjaQuery):
        yield lambda model: [sqlmesh_compat.render_sqlmesh_model_on_earlier_runs(model)]


def _render_run_on_both_sides(run: Mapping[str, Any], model: Model) -> list[exp.Expr | None]:
    return [
        *model.render_pre_statements(**run),
        model.render_query(**run),
        *model.render_post_statements(**run),
    ]


def _render_engine_text_of_run(render: RunRendering, model: Model) -> str | None:
    """Renders the text that the engine gets; None if a part cannot be rendered without it."""
    try:
        parts = render(model)
    except Exception:  # a macro of the project may raise anything
        return None
    if any(part is None for part in parts):
        return None
    return ";\n".join(part.sql(dialect=model.dialect, comments=False) for part in parts)


def _has_one_meaning(pair: ModelPair, before: SqlModel, after: SqlModel) -> bool:
    """Whether two texts with the same renderings so far always have the same rendering."""
    if not any(
        isinstance(part, d.Jinja) for model in (before, after) for part in _iterate_parsed(model)
    ):
        return is_proved_at_all_times(pair)
    old, new = _list_written_texts(before), _list_written_texts(after)
    return len(old) == len(new) and all(map(_is_one_template, old, new))


def _iterate_parsed(model: SqlModel) -> Iterator[exp.Expr]:
    yield model.query
    yield from model.pre_statements
    yield from model.post_statements


def _is_one_template(before: str, after: str) -> bool:
    """Whether two templates differ only in blanks and comments."""
    try:
        return _split_template(before) == _split_template(after)
    except Exception:  # a template that cannot be split is the same only if its text is
        return before == after


def _split_template(text: str) -> list[object]:
    parts: list[object] = []
    tree = JINJA_PARSER.parse(text)
    for data in tree.find_all(nodes.TemplateData):
        tokens = Tokenizer(dialect="spark").tokenize(data.data)
        parts.append([(token.token_type, token.text) for token in tokens])
        data.data = ""
    return [*parts, tree]


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
# These statements name a table and do not read its rows.
_NOT_READING = (exp.Refresh, exp.Analyze, exp.Drop, exp.Alter, exp.Uncache, exp.Describe)
_NOT_READING_COMMANDS = frozenset(
    {"MSCK", "REPAIR", "OPTIMIZE", "VACUUM", "REFRESH", "ANALYZE", "ALTER", "DROP", "UNCACHE"}
    | {"COMMENT", "CALL", "SET", "USE", "GRANT", "REVOKE", "TRUNCATE", "SHOW", "DESCRIBE"}
)
# It begins at the beginning of a word: otherwise a long word without a dot is searched again at
# each letter.
_NAME = re.compile(r"(?<!\w)[`\"]?\w+[`\"]?(?:\.[`\"]?\w+[`\"]?)+")
# Code that queries the engine itself, in Python and in Jinja.
_ASKS_THE_ENGINE = re.compile(
    r"engine_adapter|\.fetch\w+\(|\brun_query\b|\badapter\.|\bexecute\(|\bspark\.(sql|table)\("
)


@on_change(MISSING)
def find_lost_dependencies(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds models that statements read, and that the model no longer waits for or never did."""
    before, after = pair.before, pair.after
    lost = {name for name in before.depends_on - after.depends_on if name in inputs.after}
    sure: set[str] = set()
    if is_sql_model(after):
        known = set(_list_unwaited_tables(before, inputs)) if is_sql_model(before) else set()
        sure = set(_list_unwaited_tables(after, inputs)) - known
        sure |= lost & set(_list_read_models(_list_audited_tables(after), inputs))
        if sure:
            yield _observe_unwaited(after, sure, inputs)
    # SQLMesh adds the tables of the query to the written list.
    named = lost & (before.depends_on_ or set()) - sure - _list_queried_tables(before)
    may_read = {name for name in named if _may_be_read(after, name, inputs)}
    if may_read:
        yield _make_missing_after_change(after, may_read, inputs, _MAY_READ)
    if named - may_read:
        yield _make_missing_after_change(
            after, named - may_read, inputs, _NOT_READ, severity="medium"
        )


@on_new_model(MISSING)
def find_missing_dependencies(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds models that statements of a new model read, and that it does not wait for."""
    if is_sql_model(model) and (unwaited := set(_list_unwaited_tables(model, inputs))):
        yield _observe_unwaited(model, unwaited, inputs)


def _observe_unwaited(model: Model, names: set[str], inputs: RuleInputs) -> RuleObservation:
    found = _make_missing_after_change(model, names, inputs, _UNWAITED)
    return replace(found, anchors=("depends_on", *found.subject))


def _make_missing_after_change(
    model: Model,
    names: set[str],
    inputs: RuleInputs,
    sentence: str,
    severity: Severity | None = None,
) -> RuleObservation:
    """Makes a finding about models that a run does not wait for.

    `{}` in the sentence is replaced by their names.
    """
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


def _list_unwaited_tables(model: SqlModel, inputs: RuleInputs) -> Iterator[str]:
    """Lists the models that a model's statements read, and that the model does not depend on."""
    waited = {plain_name(name) for name in (*model.depends_on, model.fqn)}
    for name in _list_read_models(_list_statement_tables(model), inputs):
        if plain_name(name) not in waited:
            yield name


def _list_queried_tables(model: Model) -> set[str]:
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


def _list_read_models(tables: Iterator[str], inputs: RuleInputs) -> Iterator[str]:
    """Lists the head's models among the tables, by full name; a seed is a model, too."""
    for name in {plain_name(table) for table in tables}:
        yield from inputs.models_by_plain_name.get(name, ())


def _list_statement_tables(model: SqlModel) -> Iterator[str]:
    if not any(getattr(model, slot, None) for slot in _WRITTEN_SLOTS):
        return
    for method in _SLOTS:
        for tree in _render_statement_trees_of_run(getattr(model, method)) or ():
            yield from _list_tables_read_by_run(tree)


def _list_audited_tables(model: SqlModel) -> Iterator[str]:
    for audit, _ in model.audits_with_args:
        if audit.name not in BUILT_IN_AUDITS:
            query = _parse_audit_of_run(audit)
            yield from _list_tables_read_by_run(query) if query is not None else ()


def _parse_audit_of_run(audit: Any) -> exp.Expr | None:
    try:
        query = audit.query
    except Exception:  # SQLMesh refuses an audit that cannot be parsed
        return None
    return query if isinstance(query, exp.Expression) else None


def _list_tables_read_by_run(tree: exp.Expr) -> Iterator[str]:
    """Lists the tables that a statement reads; its target is left out."""
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


def _render_statement_trees_of_run(render: Callable[[], Any]) -> list[exp.Expr] | None:
    """Renders statements as the load does; None if that fails, for example without the engine."""
    with silence_worker_log("sqlmesh.core.renderer"):
        try:
            return list(render())
        except Exception:  # a macro of the project may raise anything
            return None


def _may_be_read(model: Model, name: str, inputs: RuleInputs) -> bool:
    """Whether code names a model, or may read it with queries of its own to the engine."""
    code = [str(item.payload) for item in model.python_env.values()]
    if is_sql_model(model):
        code += list_jinja_macros(model)
        if any(_render_statement_trees_of_run(getattr(model, method)) is None for method in _SLOTS):
            return True
    text = "\n".join(code)
    short = plain_name(inputs.names.short_name(name))
    named = re.compile(rf"(?<![\w.]){re.escape(short)}(?!\w)", re.IGNORECASE)
    return bool(named.search(text) or (is_sql_model(model) and _ASKS_THE_ENGINE.search(text)))
