"""What the Jinja of a dbt model hides: macros, branches of later runs, and not what dbt says of it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model
from sqlmesh.utils.jinja import JinjaMacroRegistry, MacroInfo

from ci_bot.worker.review.lineage_inputs import describe_change_beside_query
from ci_bot.worker.review.query_definition import read_definition_for_impact
from ci_bot.worker.sql.lineage.propagation import list_own_changes
from ci_bot.worker.sql.lineage.sources import LineageModel
from tests.unit.sql.lineage import dbt_builtins

MACRO = "{% macro twice(x) %}{{ x }} * 2{% endmacro %}"
LATER = "{% if is_incremental() %} WHERE day > (SELECT MAX(day) FROM db.m) {% endif %}"


def model(query: str, macro: str = MACRO, kind: str | None = None, **globals_: Any) -> Any:
    """A model as SQLMesh makes it of one of dbt's."""
    name = macro.split()[2].partition("(")[0]
    registry = JinjaMacroRegistry(
        root_macros={name: MacroInfo(definition=macro, depends_on=[])},
        create_builtins_module=dbt_builtins.__name__,
    )
    registry.add_globals(globals_)
    kind = kind or "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)"
    text = f"MODEL (name db.m, kind {kind});\nJINJA_QUERY_BEGIN;\n{query}\nJINJA_END;"
    return load_sql_based_model(
        parse(text, default_dialect="spark"), dialect="spark", jinja_macros=registry
    )


def told(before: str, after: str, macro: str = MACRO, **of_model: Any) -> set[tuple[Any, str]]:
    """What an edit is said to change of the model: columns (None: its rows), and how."""
    old, new = model(before, macro, **of_model), model(after, macro, **of_model)
    edited = LineageModel(
        "db.m",
        parents=("db.t",),
        before=lambda: read_definition_for_impact(old),
        after=lambda: read_definition_for_impact(new),
        beside_query=describe_change_beside_query(old, new),
        deciding=frozenset({"id"}),
    )
    return {(part.column, part.how) for part in list_own_changes(edited, {})}


def query(value: str = "1", later: str = LATER) -> str:
    return f"SELECT id, day, {value} AS v FROM {{{{ ref('t') }}}} {later} "


@pytest.mark.parametrize("value", ["COUNT(*)", "MIN(day)"])
def test_an_edited_query__whose_dbt_attributes_follow_it__is_no_changed_macro(value: str) -> None:
    before = model(query(), model={"checksum": "a", "created_at": 1}, config={"tags": []})
    after = model(query(value), model={"checksum": "b", "created_at": 2}, config={"tags": []})
    assert describe_change_beside_query(before, after) is None


def test_a_macro_that_changes__and_asks_for_more_than_earlier_runs__is_told() -> None:
    later = "{% if is_incremental() and true %} WHERE id > 1 {% endif %}"
    before = model(query("{{ twice(1) }}", later), model={"checksum": "a"})
    after = model(query("{{ twice(1) }}", later), MACRO.replace("* 2", "* 3"))
    assert (
        describe_change_beside_query(before, after)
        == "A macro changes that computes with the times of a run."
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (query("a"), query("b"), {("v", "computed")}),
        (query("a"), query("a") + "-- a comment\n", set()),
        (query("a"), query("a").replace("SELECT", "SELECT\n"), set()),
        (query("a"), query("a, b", LATER).replace("a, b AS v", "a AS v, b AS w"), {("w", "added")}),
        (
            query("a", "{% if not is_incremental() %} WHERE day > '2020-01-01' {% endif %}"),
            query("b", "{% if not is_incremental() %} WHERE day > '2020-01-01' {% endif %}"),
            {("v", "computed")},
        ),
        # A column whose name reads like a time of SQLMesh is a column.
        (query("start_date"), query("end_date"), {("v", "computed")}),
    ],
)
def test_an_edit__outside_of_what_later_runs_filter__changes_no_rows(
    before: str, after: str, expected: set[tuple[str | None, str]]
) -> None:
    assert told(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (query(), query(later=LATER.replace(">", ">="))),
        (query(), query(later="")),
        (query(later=""), query()),
        (query(), query(later=LATER.replace("is_incremental()", "not is_incremental()"))),
        # Nothing but a later run reads the name that gets another meaning.
        (
            query(later="").replace("db", "db")
            + " JOIN (SELECT id AS k, a AS ts FROM db.u) ON k = id "
            "{% if is_incremental() %} WHERE ts > 1 {% endif %}",
            query(later="") + " JOIN (SELECT id AS k, b AS ts FROM db.u) ON k = id "
            "{% if is_incremental() %} WHERE ts > 1 {% endif %}",
        ),
    ],
)
def test_an_edit__of_what_later_runs_filter__changes_rows(before: str, after: str) -> None:
    assert (None, "rows") in told(before, after)


FROM_A_MACRO = (
    "{% macro twice(x) %}{% if is_incremental() %}WHERE id > {{ x }}{% endif %}{% endmacro %}"
)


@pytest.mark.parametrize("later", ["{{ twice(%s) }}", "{%% set n = %s %%}{{ twice(n) }}"])
def test_an_edit__of_what_a_macro_filters_in_later_runs__changes_rows(later: str) -> None:
    assert (None, "rows") in told(query(later=later % 1), query(later=later % 2), FROM_A_MACRO)
    assert told(query("a", later % 1), query("b", later % 1), FROM_A_MACRO) == {("v", "computed")}


@pytest.mark.parametrize(
    "later",
    [
        "{% if is_incremental() and var('days') %} WHERE id > 1 {% endif %}",
        "{% if flags.FULL_REFRESH %} WHERE id > 1 {% endif %}{{ '' if is_incremental() }}",
        "{% if start_ds > '2020-01-01' %} WHERE id > 1 {% endif %}",
        "{% if is_incremental() %} WHERE day > '{{ run_started_at }}' {% endif %}",
        "{% if is_incremental() %} WHERE day > '{{ dbt.run_started_at }}' {% endif %}",
        "{% for x in [1] %} {% if is_incremental() %} WHERE id > {{ x }} {% endif %} {% endfor %}",
        "{% if is_incremental() %} WHERE day > @start_ds {% endif %}",
    ],
)
def test_an_edit__where_a_load_cannot_show_what_a_run_reads__may_change_rows(later: str) -> None:
    assert (None, "rows") in told(query("a", later), query("b", later))


def test_a_project_s_own_is_incremental__is_not_taken_for_dbts() -> None:
    own = "{% macro is_incremental() %}{{ caller_says }}{% endmacro %}"
    assert read_definition_for_impact(model(query(), own)).incremental is None
    assert read_definition_for_impact(model(query())).incremental is not None


def test_a_model_that_no_run_extends__has_one_rendering() -> None:
    assert told(query("a"), query("a", LATER.replace(">", ">=")), kind="FULL") == set()
