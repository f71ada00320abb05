"""Edits that only a run shows: SQLMesh compares the queries that the load renders.

A run renders them again, with its interval, its stage and the results of earlier runs. If the load
renders the same text twice, SQLMesh treats the edit as metadata and builds nothing. The next run
computes other rows anyway. (`SqlModel.is_metadata_only_change`)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from jinja2 import nodes
from sqlglot.tokens import Tokenizer
from sqlmesh.core import dialect as d
from sqlmesh.core.macros import RuntimeStage

from ci_bot.protocol.rules import find_rule
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.rules.changes.results import is_proved_at_all_times
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import JINJA_PARSER, RUN_DATES, list_jinja_macros
from ci_bot.worker.sqlmesh_compat import is_sql_model

if TYPE_CHECKING:
    from sqlglot import exp
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
    """Queries and statements with the same text in the load, and another one in a run."""
    before, after = pair.before, pair.after
    if not (is_sql_model(before) and is_sql_model(after) and _is_metadata(before, after)):
        return
    found = compare_run_renderings(pair)
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
        if sqlmesh_compat.share_rendered_query(before, after)
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


def _is_metadata(before: Model, after: Model) -> bool:
    """Whether SQLMesh treats the edit as metadata; it renders both sides to decide."""
    try:
        return bool(after.is_metadata_only_change(before))
    except Exception:  # a macro of the project may raise anything; the plan reports it
        return False


def compare_run_renderings(pair: ModelPair) -> RunDifference | None:
    """Whether runs render two definitions differently although the load does not; None if not.

    "unknown" if two texts differ in a part that no rendering has reached.
    """
    before, after = pair.before, pair.after
    if not (is_sql_model(before) and is_sql_model(after)):
        return None
    if _list_written_texts(before) == _list_written_texts(after):
        return None
    if not (
        any(_KNOWN_TO_RUNS.search(_collect_code(model)) for model in (before, after))
        or sqlmesh_compat.share_rendered_query(before, after)
    ):
        return None  # a run renders the same text as the load
    for render in _list_renderings(before, after):
        old, new = _render_or_none(render, before), _render_or_none(render, after)
        if old is None or new is None:
            return "unknown"
        if old != new:
            return "shown"
    return None if _has_one_meaning(pair, before, after) else "unknown"


def _list_written_texts(model: SqlModel) -> tuple[str, ...]:
    statements = (*(model.pre_statements_ or ()), *(model.post_statements_ or ()))
    return (model.query_.sql, *(item.sql for item in statements))


def _collect_code(model: SqlModel) -> str:
    """Collects the texts of the query, its statements and definitions, and of their macros."""
    python = (item.payload for item in model.python_env.values() if item.payload)
    return "\n".join([*_list_written_texts(model), *map(str, python), *list_jinja_macros(model)])


RunRendering = Callable[[Any], list[Any]]


def _list_renderings(before: SqlModel, after: SqlModel) -> Iterator[RunRendering]:
    for stage in _STAGES:
        for start, end in _INTERVALS:
            run = {"start": start, "end": end, "execution_time": end, "runtime_stage": stage}
            yield partial(_render_all, run)
    if isinstance(before.query, d.JinjaQuery) or isinstance(after.query, d.JinjaQuery):
        yield lambda model: [sqlmesh_compat.render_on_earlier_runs(model)]


def _render_all(run: Mapping[str, Any], model: Model) -> list[exp.Expr | None]:
    return [
        *model.render_pre_statements(**run),
        model.render_query(**run),
        *model.render_post_statements(**run),
    ]


def _render_or_none(render: RunRendering, model: Model) -> str | None:
    """Renders the text that the engine gets; None if the project's code fails without an engine."""
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
        return _split_parts(before) == _split_parts(after)
    except Exception:  # a template that cannot be split is the same only if its text is
        return before == after


def _split_parts(text: str) -> list[object]:
    parts: list[object] = []
    tree = JINJA_PARSER.parse(text)
    for data in tree.find_all(nodes.TemplateData):
        tokens = Tokenizer(dialect="spark").tokenize(data.data)
        parts.append([(token.token_type, token.text) for token in tokens])
        data.data = ""
    return [*parts, tree]
