"""Edits that SQLMesh takes for metadata, since only a run renders what they change."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlmesh.core.model.cache import OptimizedQueryCache

from ci_bot.protocol.plan import Finding
from tests.unit.rules.world import change, models, seen

RULE = "changed-in-runs"
FULL = "MODEL (name mart.m, kind FULL);\n"
BY_TIME = "MODEL (name mart.m, kind INCREMENTAL_BY_TIME_RANGE (time_column order_ts));\n"
PLAIN = "SELECT o.order_id, {0} AS v FROM raw.orders AS o"
FILTERED = (
    "SELECT o.order_id, o.order_ts FROM raw.orders AS o\n"
    "WHERE o.order_ts BETWEEN @start_ts AND @end_ts AND {0}"
)
STATEMENT = "DELETE FROM mart.m WHERE v < @IF(@runtime_stage = 'evaluating', {0}, 0);\n"
JINJA = "JINJA_QUERY_BEGIN;\nSELECT o.order_id, o.order_ts FROM raw.orders AS o\n{0}\nJINJA_END;"


def found(before: str, after: str) -> list[Finding]:
    return seen(change({"m.sql": before}, {"m.sql": after}), RULE)


def is_metadata(before: str, after: str) -> bool:
    """SQLMesh's own word for the edit: without it, another rule would have to judge."""
    (old,), (new,) = (
        [model for name, model in models({"m.sql": text}).items() if "mart" in name]
        for text in (before, after)
    )
    return bool(new.is_metadata_only_change(old))


RUN_ONLY = {
    "the stage of a run": (
        FULL + PLAIN.format("@IF(@runtime_stage = 'evaluating', 1, 0)"),
        FULL + PLAIN.format("@IF(@runtime_stage = 'evaluating', 2, 0)"),
    ),
    "the stage in which tables are made": (
        FULL + PLAIN.format("@IF(@runtime_stage = 'creating', 1, 0)"),
        FULL + PLAIN.format("@IF(@runtime_stage = 'creating', 2, 0)"),
    ),
    "a definition": (
        FULL + "@DEF(v, @IF(@runtime_stage = 'evaluating', 1, 0));\n" + PLAIN.format("@v"),
        FULL + "@DEF(v, @IF(@runtime_stage = 'evaluating', 2, 0));\n" + PLAIN.format("@v"),
    ),
    "a filter from a date on": (
        BY_TIME + FILTERED.format("@IF(@start_ds > '2020-01-01', o.amount > 0, TRUE)"),
        BY_TIME + FILTERED.format("@IF(@start_ds > '2020-01-01', o.amount > 5, TRUE)"),
    ),
    "a Jinja block on a date": (
        BY_TIME + JINJA.format("{% if start_ds > '2020-01-01' %}WHERE o.amount > 0{% endif %}"),
        BY_TIME + JINJA.format("{% if start_ds > '2020-01-01' %}WHERE o.amount > 5{% endif %}"),
    ),
    "a statement": (
        FULL + STATEMENT.format(1) + PLAIN.format("1"),
        FULL + STATEMENT.format(2) + PLAIN.format("1"),
    ),
}
NOT_REACHED = {
    "another date": (
        BY_TIME + FILTERED.format("@IF(@start_ds > '2020-01-01', o.amount > 0, TRUE)"),
        BY_TIME + FILTERED.format("@IF(@start_ds > '2021-01-01', o.amount > 0, TRUE)"),
    ),
    "a month of the year in Jinja": (
        BY_TIME + JINJA.format("{% if start_ds[5:7] == '12' %}WHERE o.amount > 0{% endif %}"),
        BY_TIME + JINJA.format("{% if start_ds[5:7] == '12' %}WHERE o.amount > 5{% endif %}"),
    ),
}
HARMLESS = {
    "a comment": (
        FULL + PLAIN.format("@IF(@runtime_stage = 'evaluating', 1, 0)"),
        FULL + PLAIN.format("/* in euro */ @IF(@runtime_stage = 'evaluating', 1, 0)"),
    ),
    "blanks and a comment in Jinja": (
        BY_TIME + JINJA.format("{% if start_ds > '2020-01-01' %}WHERE o.amount > 0{% endif %}"),
        BY_TIME
        + JINJA.format(
            "{# late #}{% if start_ds > '2020-01-01' %}\n  WHERE o.amount > 0 -- paid\n{% endif %}"
        ),
    ),
    "the dates that every run filters by": (
        BY_TIME + FILTERED.format("TRUE"),
        BY_TIME + FILTERED.format("/* all of a run */ TRUE"),
    ),
    "an owner": (
        FULL + PLAIN.format("@IF(@runtime_stage = 'evaluating', 1, 0)"),
        FULL.replace(");", ", owner ann);")
        + PLAIN.format("@IF(@runtime_stage = 'evaluating', 1, 0)"),
    ),
    "Jinja of the load alone": (
        BY_TIME + JINJA.format("{% if 1 == 1 %}WHERE o.amount > 0{% endif %}"),
        BY_TIME + JINJA.format("{% if 2 == 2 %}WHERE o.amount > 0{% endif %}"),
    ),
}


# One entry of SQLMesh's cache for two texts: what is rendered first counts for both.
ONE_ENTRY = {
    "brackets count from 0": ("ELEMENT_AT(e.tags, 1)", "e.tags[1]"),
    "brackets do not count from the end": ("e.tags[-1]", "ELEMENT_AT(e.tags, -1)"),
    "an index that is computed": ("ELEMENT_AT(e.tags, e.id)", "e.tags[e.id]"),
    "TRY gives NULL beyond the end": ("ELEMENT_AT(e.tags, 9)", "TRY_ELEMENT_AT(e.tags, 9)"),
    "within a filter": (
        "CASE WHEN ELEMENT_AT(e.tags, 1) = 'a' THEN 1 END",
        "CASE WHEN e.tags[1] = 'a' THEN 1 END",
    ),
}
EVENTS = {"raw.events": {"id": "INT", "tags": "ARRAY<STRING>"}}


@pytest.mark.parametrize("name", ONE_ENTRY)
def test_check_runs__two_texts_of_one_cache_entry__are_high(name: str, tmp_path: Path) -> None:
    old, new = (
        {"m.sql": FULL + f"SELECT e.id, {value} AS v FROM raw.events AS e"}
        for value in ONE_ENTRY[name]
    )
    found = change(old, new, external=EVENTS)
    # As a load does: the project first, then what the state holds.
    cache = OptimizedQueryCache(tmp_path)
    for side in (found.after, found.before):
        cache.with_optimized_query(side['"spark_catalog"."mart"."m"'])

    (finding,) = seen(found, RULE)

    assert finding.severity == "high"
    assert "one entry for both" in finding.evidence
    assert not seen(found, "same-result")


@pytest.mark.parametrize("name", RUN_ONLY)
def test_check_runs__an_edit_that_a_run_renders__is_high(name: str) -> None:
    before, after = RUN_ONLY[name]
    assert is_metadata(before, after)
    (finding,) = found(before, after)
    assert finding.severity == "high"
    assert finding.evidence.startswith("The next run computes it otherwise")


@pytest.mark.parametrize("name", NOT_REACHED)
def test_check_runs__an_edit_that_no_rendering_reaches__may_be_another(name: str) -> None:
    before, after = NOT_REACHED[name]
    assert is_metadata(before, after)
    (finding,) = found(before, after)
    assert finding.evidence.startswith("The next run may compute it otherwise")


@pytest.mark.parametrize("name", HARMLESS)
def test_check_runs__an_edit_that_no_run_renders__is_quiet(name: str) -> None:
    before, after = HARMLESS[name]
    assert is_metadata(before, after)
    assert not found(before, after)


def test_check_runs__an_edit_that_loading_shows__is_left_to_other_rules() -> None:
    before = FULL + PLAIN.format("@IF(@runtime_stage = 'evaluating', 1, 0)")
    after = FULL + PLAIN.format("@IF(@runtime_stage = 'evaluating', 2, 1)")
    assert not is_metadata(before, after)
    assert not found(before, after)


def test_world__a_run_only_edit__is_in_no_other_finding() -> None:
    before, after = RUN_ONLY["the stage of a run"]
    assert {one.rule for one in seen(change({"m.sql": before}, {"m.sql": after}))} == {RULE}
