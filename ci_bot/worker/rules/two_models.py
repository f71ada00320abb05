"""Compares the results of two models in the way of a review: with a proof and an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ci_bot.protocol.review_inputs import SameAnswer
from ci_bot.protocol.rules import quote_names
from ci_bot.worker.duckdb_trials import DuckdbTrialVerdict
from ci_bot.worker.rules.changes.results import is_proved_at_all_times, is_reported_as_same
from ci_bot.worker.rules.executions import ONE_TEXT, judge_pair, make_execution_example
from ci_bot.worker.rules.inputs import JudgedModels, RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.sql import ModelQueries, ModelQuery, plain_name

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# Somebody waits only for this answer, so it may take longer than for one model of a review.
_SECONDS = 10.0
_PROVED = "It is proved that both give the same rows,"
_UNPROVED = "It is not proved that both give the same rows,"


def compare_models(before: Model, after: Model) -> SameAnswer:
    """Compares the results of two models' queries.

    Args:
        before, after: SQLMesh's models; their mapping schemas have the tables that they read.

    Returns:
        The verdict, a sentence about it, and rows on which the results differ, if any were found.
    """
    pair = ModelPair(before, after, (), ModelQueries())
    judged = JudgedModels(seconds=_SECONDS, seconds_for_a_model=_SECONDS)
    inputs = RuleInputs({}, {}, judged_models=judged)
    executed = judge_pair(pair, inputs)
    sets = executed.data_sets
    if executed.verdict == "differs":
        example = (
            make_execution_example(executed.example, {}) if executed.example is not None else None
        )
        sentence = "They give different results if they read the rows below."
        if example is None:
            sentence = (
                "They give different results on generated rows, but no small example was found."
            )
        return SameAnswer(verdict="differs", data_sets=sets, told=sentence, example=example)
    if other_columns := _compare_result_columns(pair):
        return SameAnswer(verdict="differs", data_sets=sets, told=other_columns)
    if is_reported_as_same(pair, inputs):
        return SameAnswer(verdict="same", data_sets=sets, told=_describe_same(pair, executed))
    reason = f"{_describe_unknown(pair, executed)}{_describe_missing(pair)}"
    return SameAnswer(verdict="not_known", data_sets=sets, told=reason)


def _describe_same(pair: ModelPair, executed: DuckdbTrialVerdict) -> str:
    sentence = f"{_PROVED} and {_describe_alike(executed)}."
    if executed.verdict != "alike" or executed.reason == ONE_TEXT:
        sentence = "Spark gets the same text for both."
    before, after = (
        _list_known_result_columns(query) for query in (pair.query_before, pair.query_after)
    )
    return sentence + (" Their columns are in another order." if before != after else "")


def _describe_unknown(pair: ModelPair, executed: DuckdbTrialVerdict) -> str:
    is_proved = is_proved_at_all_times(pair)
    proved, joined = (_PROVED, "but") if is_proved else (_UNPROVED, "and")
    if executed.verdict == "alike":
        return f"{proved} {joined} {_describe_alike(executed)}."
    return f"{proved} {joined} they were not run, because of {executed.reason}."


def _describe_alike(executed: DuckdbTrialVerdict) -> str:
    return f"{executed.data_sets} generated data sets did not tell them apart"


def _describe_missing(pair: ModelPair) -> str:
    """Describes the tables whose columns are unknown; empty if there are none."""
    known: set[str] = set()
    for model in (pair.before, pair.after):
        known |= {name for name in model.depends_on if _is_in_schema(name, model.mapping_schema)}
    read = pair.before.depends_on | pair.after.depends_on
    missing = sorted(plain_name(name) for name in read - known)
    if not missing:
        return ""
    return f" A file given with `--schema` can list the columns of {quote_names(missing)}."


def _is_in_schema(name: str, schema: Any) -> bool:
    parts = plain_name(name).split(".")
    found = schema
    for part in parts:
        found = (
            {plain_name(key): value for key, value in found.items()}.get(part) if found else None
        )
    return bool(found)


def _compare_result_columns(pair: ModelPair) -> str | None:
    """Describes the differences of result columns; None if they are the same or unknown."""
    before, after = (
        _list_known_result_columns(query) for query in (pair.query_before, pair.query_after)
    )
    if before is None or after is None or set(before) == set(after):
        return None
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    parts = [f"only the first one has {quote_names(gone)}"] if gone else []
    parts += [f"only the second one has {quote_names(new)}"] if new else []
    return f"They give different columns: {' and '.join(parts)}."


def _list_known_result_columns(query: ModelQuery | None) -> tuple[str, ...] | None:
    tree = query.rendered_query if query is not None else None
    names = tuple(tree.named_selects) if tree is not None else ()
    return None if not names or "*" in names else names
