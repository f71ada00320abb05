"""Runs the changed models of a review on generated rows, within one budget of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.protocol.review_inputs import (
    ExampleInput,
    ExampleOutput,
    ExecutionExample,
    ModelExecution,
)
from ci_bot.redaction import redact_shapes, shorten_redacted
from ci_bot.worker import duckdb_trials
from ci_bot.worker.duckdb_trials import (
    DuckdbFields,
    DuckdbTrialVerdict,
    ValueType,
    judge_queries_on_duckdb,
)
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair, rename_tables
from ci_bot.worker.rules.source_columns import SourceTables, is_personal
from ci_bot.worker.sql import (
    ModelQueries,
    ModelQuery,
    inline_model_queries,
    plain_name,
    replace_tables_by_queries,
    table_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

ONE_TEXT = "the same text"
# The report shows at most this many models of a review.
MOST_EXECUTIONS = 200
LONGEST_VALUE = 60
_NO_TEXT = "a query that takes the engine to render"
_MANY_TEXTS = "a macro that renders another text each time"
# At most this many readers are run together with the models that they read: this takes a tenth of a
# large review's processor time.
_MOST_READERS = 4


def judge_pair(pair: ModelPair, inputs: RuleInputs) -> DuckdbTrialVerdict:
    """Returns the verdict of an execution of both versions of a model; it runs once in a review."""
    return inputs.judged_models.judge_once(
        pair.after.fqn,
        lambda seconds, data_sets: _run_both_versions(pair, inputs, seconds, data_sets),
    )


def list_executions(inputs: RuleInputs) -> list[ModelExecution]:
    """Lists the models that were run, as the report shows them, those with an example first."""
    if not inputs.judged_models.found:  # the names of a large project take time
        return []
    shown = {plain_name(fqn): inputs.names.short_name(fqn) for fqn in inputs.before}
    shown |= {plain_name(fqn): inputs.names.short_name(fqn) for fqn in inputs.after}
    found = [
        ModelExecution(
            model=inputs.names.short_name(name),
            result=verdict.verdict,
            data_sets=verdict.data_sets,
            reason=verdict.reason or None,
            example=make_execution_example(verdict.example, shown) if verdict.example else None,
        )
        for name, verdict in inputs.judged_models.found.items()
        if verdict.reason != ONE_TEXT
    ]
    return sorted(found, key=lambda one: (one.example is None, one.model))[:MOST_EXECUTIONS]


def make_execution_example(
    example: duckdb_trials.FoundDuckdbExample, shown: Mapping[str, str]
) -> ExecutionExample:
    """Makes the example of a report; `shown` maps its tables to names for people."""
    return ExecutionExample(
        inputs=[
            ExampleInput(
                table=shown.get(table.name, table.name),
                columns=[name for name, _ in table.columns],
                rows=[_render_example_row(row) for row in table.rows],
            )
            for table in example.tables
        ],
        columns=list(example.columns),
        outputs=[
            ExampleOutput(
                before=_render_example_row(before) if before is not None else None,
                after=_render_example_row(after) if after is not None else None,
            )
            for before, after in example.rows
        ],
        differing=list(example.differing),
    )


def _render_example_row(row: Iterable[Any]) -> list[str | None]:
    return [None if value is None else _render_example_value(value) for value in row]


def _render_example_value(value: Any) -> str:
    """Renders a value as SQL writes it, without the type's name before dates."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return shorten_redacted(redact_shapes("'" + value.replace("'", "''") + "'"), LONGEST_VALUE)
    if isinstance(value, dict | DuckdbFields):
        pairs = value.items() if isinstance(value, dict) else value
        return f"{{{', '.join(f'{name}: {_render_example_part(one)}' for name, one in pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_render_example_part, value))}]"
    return str(value)


def _render_example_part(value: Any) -> str:
    return "NULL" if value is None else _render_example_value(value)


def _run_both_versions(
    pair: ModelPair, inputs: RuleInputs, seconds: float, data_sets: int
) -> DuckdbTrialVerdict:
    old, new = pair.query_before, pair.query_after
    if old is None or new is None:
        return _make_untried_verdict("a model without a query")
    before, after = _render_apart(old), _render_apart(new)
    if isinstance(before, str):
        return _make_untried_verdict(before)
    if isinstance(after, str):
        return _make_untried_verdict(after)
    before = rename_tables(inline_model_queries(before, pair.removed), pair.new_names)
    after = inline_model_queries(after, pair.added)
    known = (pair.before, pair.after, *pair.removed.values(), *pair.added.values())
    return _run_query_trial(
        (before, after),
        inputs,
        _find_source_tables(inputs, pair.queries).read_tables(
            known, (before, after), pair.new_names
        ),
        seed_of=(pair.before, pair.after),
        seconds=seconds,
        data_sets=data_sets,
    )


def _run_query_trial(
    queries: tuple[exp.Expr, exp.Expr],
    inputs: RuleInputs,
    tables: Mapping[str, Mapping[str, ValueType]],
    *,
    seed_of: Iterable[Model],
    seconds: float,
    data_sets: int,
) -> DuckdbTrialVerdict:
    """Runs two queries and judges them; the hashes of the models in `seed_of` are the seed."""
    before, after = (query.sql(dialect="spark", comments=False) for query in queries)
    if before == after:
        return DuckdbTrialVerdict("alike", reason=ONE_TEXT)
    if (reason := _explain_dependence(*queries, {**inputs.before, **inputs.after})) is not None:
        return _make_untried_verdict(reason)
    return judge_queries_on_duckdb(
        before,
        after,
        tables,
        seed=" ".join(str(model.data_hash) for model in seed_of),
        seconds=seconds,
        data_sets=data_sets,
        is_private=is_personal,
    )


def _find_source_tables(inputs: RuleInputs, queries: ModelQueries) -> SourceTables:
    """Returns the source tables of the review: several models share the types of one query."""
    judged = inputs.judged_models
    if judged.sources is None:
        judged.sources = SourceTables(inputs.before, inputs.after, queries)
    return judged.sources


def find_missed_changes(inputs: RuleInputs, readers: Iterable[str]) -> dict[str, str]:
    """Finds changed models whose reader has another result although it reads no changed column.

    Each reader is run twice on the same rows: on the old versions of the models that it reads, and
    on the new ones.

    Args:
        readers: fully qualified names of readers that read no change, as the column impact shows.

    Returns:
        The changed models by their fully qualified names, each with a sentence that says how the
        difference was found.
    """
    queries = ModelQueries(inputs.after, inputs.before)
    missed: dict[str, str] = {}
    tried = 0
    for name in readers:
        if tried == _MOST_READERS:
            break
        edited = {
            parent: (inputs.before[parent], inputs.after[parent])
            for parent in sorted(inputs.after[name].depends_on & inputs.direct)
            if parent in inputs.before and parent in inputs.after
        }
        if not edited:
            continue
        tried += 1
        verdict = inputs.judged_models.judge_once(
            f"{name} above {', '.join(edited)}",
            partial(_execute_reader_of_change, inputs, inputs.after[name], edited, queries),
        )
        if verdict.verdict == "differs":
            shown = inputs.names.short_name(name)
            start = f"Run above it on generated rows, {shown} gives another result, and reads no "
            missed |= dict.fromkeys(edited, f"{start}column that is listed as changed.")
    return missed


def _execute_reader_of_change(
    inputs: RuleInputs,
    reader: Model,
    edited: Mapping[str, tuple[Model, Model]],
    queries: ModelQueries,
    seconds: float,
    data_sets: int,
) -> DuckdbTrialVerdict:
    own = _render_apart(queries.query_of(reader))
    before, after = dict[str, exp.Query](), dict[str, exp.Query]()
    for name, (old, new) in edited.items():
        for side, model in ((before, old), (after, new)):
            if isinstance(tree := _render_apart(queries.query_of(model)), str):
                return _make_untried_verdict(tree)
            side[name] = tree
    if isinstance(own, str):
        return _make_untried_verdict(own)
    models = [reader, *(model for pair in edited.values() for model in pair)]
    texts = (replace_tables_by_queries(own, before), replace_tables_by_queries(own, after))
    return _run_query_trial(
        texts,
        inputs,
        _find_source_tables(inputs, queries).read_tables(models, texts, {}),
        seed_of=models,
        seconds=seconds,
        data_sets=data_sets,
    )


def _render_apart(query: ModelQuery | None) -> exp.Query | str:
    """Renders the query with three different times as start, end and now, or returns why it cannot.

    With three different times the renderer removes no condition.
    """
    if query is None or query.rendered_apart is None:
        return _NO_TEXT
    return query.rendered_apart if query.renders_one_text else _MANY_TEXTS


def _make_untried_verdict(reason: str) -> DuckdbTrialVerdict:
    return DuckdbTrialVerdict("not_tried", reason=reason)


def _explain_dependence(
    before: exp.Expr, after: exp.Expr, models: Mapping[str, Model]
) -> str | None:
    """Explains why rows cannot be generated for each table alone; None if they can.

    If only one side reads a model, and the queries also read a table from which that model is
    computed (or the reverse), generated rows of both would contradict each other.
    """
    one, other = (
        {table_name(table) for table in query.find_all(exp.Table)} for query in (before, after)
    )
    if one == other:
        return None
    by_name = {plain_name(fqn): model for fqn, model in models.items()}
    for name in one ^ other:
        for second in (one | other) - {name}:
            if name in _list_above(second, by_name) or second in _list_above(name, by_name):
                return "two models of which one is computed from the other"
    return None


def _list_above(name: str, models: Mapping[str, Model]) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        model = models.get(pending.pop())
        above = {plain_name(parent) for parent in model.depends_on} if model is not None else set()
        pending += above - found
        found |= above
    return found
