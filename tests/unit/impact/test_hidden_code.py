"""What beside the query decides about a model: macros of Jinja, and not what dbt says of a model."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model
from sqlmesh.utils.jinja import JinjaMacroRegistry, MacroInfo

from ci_bot.worker.review.lineage_inputs import beside_query

MACRO = "{% macro twice(x) %}{{ x }} * 2{% endmacro %}"


def model(query: str, macro: str = MACRO, **globals_: Any) -> Any:
    """An incremental model of dbt's kind: its text has a branch for later runs."""
    registry = JinjaMacroRegistry(root_macros={"twice": MacroInfo(definition=macro, depends_on=[])})
    registry.add_globals(globals_)
    text = f"""
    MODEL (name db.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id));
    JINJA_QUERY_BEGIN;
    SELECT id, {query} AS v FROM db.t {{% if is_incremental %}} WHERE id > 1 {{% endif %}};
    JINJA_END;
    """
    return load_sql_based_model(
        parse(text, default_dialect="spark"), dialect="spark", jinja_macros=registry
    )


@pytest.mark.parametrize("query", ["COUNT(*)", "MIN(day)"])
def test_an_edited_query__whose_dbt_attributes_follow_it__is_no_changed_macro(query: str) -> None:
    before = model("1", model={"checksum": "a", "created_at": 1}, config={"tags": []})
    after = model(query, model={"checksum": "b", "created_at": 2}, config={"tags": []})
    assert beside_query(before, after) is None


def test_a_macro_that_changes__is_told() -> None:
    before = model("{{ twice(1) }}", model={"checksum": "a"})
    after = model("{{ twice(1) }}", MACRO.replace("* 2", "* 3"), model={"checksum": "a"})
    assert beside_query(before, after) == "A macro changes that computes with the times of a run."
