"""What the product says of two queries: proof and execution, as a review asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from sqlglot.schema import MappingSchema
from sqlmesh.core import dialect as d
from sqlmesh.core.model import create_external_model, load_sql_based_model

from ci_bot.worker.duckdb_trials import DuckdbTrialVerdict
from ci_bot.worker.rules.changes.results import is_proved_at_all_times, is_reported_as_same
from ci_bot.worker.rules.executions import judge_pair as execute_pair
from ci_bot.worker.rules.inputs import JudgedModels, RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.sql import ModelQueries
from tests.query_pairs.pairs import QueryPair, Table

Verdict = Literal["same", "differs", "not known"]


def judge_pair(pair: QueryPair) -> Verdict:
    """The product's claim about a pair. Whatever the product has, it is asked for here only."""
    inputs, changed = _patient_inputs(), _pair_models(pair)
    if is_reported_as_same(changed, inputs):
        return "same"
    return "differs" if execute_pair(changed, inputs).verdict == "differs" else "not known"


def claim_same(pair: QueryPair) -> Verdict:
    """The same, where it only matters what is called the same: most pairs are not run for it."""
    inputs, changed = _patient_inputs(), _pair_models(pair)
    is_same = is_proved_at_all_times(changed) and is_reported_as_same(changed, inputs)
    return "same" if is_same else "not known"


def is_proved_same(pair: QueryPair) -> bool:
    """Whether the proof alone calls both queries the same, without a run of them."""
    return is_proved_at_all_times(_pair_models(pair))


def execution_of(pair: QueryPair) -> DuckdbTrialVerdict:
    """What execution says of a pair."""
    return execute_pair(_pair_models(pair), _patient_inputs())


def _patient_inputs() -> RuleInputs:
    """Without a limit that a busy machine could meet: the same verdict each time."""
    patient = JudgedModels(seconds=60, seconds_for_a_model=60)
    return RuleInputs(before={}, after={}, judged_models=patient)


def _pair_models(pair: QueryPair) -> ModelPair:
    before, after = models_of(pair)
    return ModelPair(before, after, (), ModelQueries())


def models_of(pair: QueryPair) -> tuple[Any, Any]:
    """Both queries as models of a project that knows the columns of what they read."""
    base, head = (load_model(query, pair.tables, pair.dialect) for query in (pair.base, pair.head))
    return base, head


def load_model(query: str, tables: Iterable[Table], dialect: str = "spark") -> Any:
    """A model with one query, over external models."""
    model = load_sql_based_model(
        d.parse(f"MODEL (name db.m, kind FULL); {query}", default_dialect=dialect),
        defaults={"dialect": dialect, "start": "2023-01-01"},
        dialect=dialect,
        path=Path("/repository/models/m.sql"),
        module_path=Path("/repository"),
    )
    schema = MappingSchema(normalize=False)
    for table in tables:
        _add_table(schema, table, dialect)
    model.update_schema(schema)
    return model


def _add_table(schema: MappingSchema, table: Table, dialect: str) -> None:
    source = create_external_model(table.name, columns=dict(table.types), dialect=dialect)
    columns = source.columns_to_types
    schema.add_table(source.fqn, columns, dialect=dialect, normalize=False, match_depth=False)


def rendered_text(model: Any) -> str:
    """The text that SQLMesh sends to Spark for a model's query."""
    query = model.render_query(needs_optimization=True)
    if query is None:
        raise AssertionError(f"cannot be rendered: {model.query}")
    return str(query.sql(dialect="spark"))
