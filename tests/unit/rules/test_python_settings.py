"""Settings that Python changes in the session of Spark."""

from __future__ import annotations

import pytest

from ci_bot.worker.rules.files.macro_code import find_settings_in_python_files
from tests.unit.rules.world import files

PATH = "models/days.py"
MODEL = """
@model("mart.days", columns={{"day": "date"}})
def execute(context, start, end, execution_time, **kwargs):
    spark = context.spark
    {}
    return spark.table("raw.orders")
"""


def seen(before: str | None, after: str, path: str = PATH) -> list[tuple[str, int | None]]:
    inputs = files({path: before} if before is not None else {}, {path: after})
    return [(found.evidence, found.line) for found in find_settings_in_python_files(inputs)]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("spark.conf.set('spark.sql.session.timeZone', 'Asia/Tokyo')", "session.timeZone"),
        ("context.spark.conf.set('spark.sql.ansi.enabled', True)", "ansi.enabled"),
        ("conf.set('spark.sql.caseSensitive', 'true')", "caseSensitive"),
        ("spark.sql(\"SET TIME ZONE 'Asia/Tokyo'\")", "session.timeZone"),
        ("spark.sql('SET spark.sql.legacy.timeParserPolicy = LEGACY')", "timeParserPolicy"),
        ("context.engine_adapter.execute('SET TIME ZONE LOCAL')", "session.timeZone"),
        ("spark.builder.config('spark.sql.storeAssignmentPolicy', 'LEGACY')", "storeAssignment"),
        ("spark.conf.set(key, value)", "whose name it computes"),
        ("spark.conf.set('spark.sql.acme.mode', 'x')", "spark.sql.acme.mode"),
    ],
)
def test_settings__that_reach_other_models(line: str, key: str) -> None:
    ((evidence, at),) = seen(MODEL.format("pass"), MODEL.format(line))

    assert key in evidence
    assert "models that are built after it" in evidence
    assert at == 5


@pytest.mark.parametrize(
    "line",
    [
        "spark.conf.set('spark.sql.shuffle.partitions', 10)",
        "spark.conf.get('spark.sql.session.timeZone')",
        "spark.sql('SELECT 1')",
        "rows.set('a', 1)",
        "frame.write.option('timeZone', 'UTC')",
        "spark.sql(query)",
    ],
)
def test_settings__of_speed_and_others_are_left_alone(line: str) -> None:
    assert seen(MODEL.format("pass"), MODEL.format(line)) == []


def test_settings__that_were_there_before() -> None:
    text = MODEL.format("spark.conf.set('spark.sql.ansi.enabled', 'true')")

    assert seen(text, text.replace("raw.orders", "raw.sales")) == []
    assert len(seen(text, text.replace("'true'", "'false'"))) == 1


def test_settings__of_files_that_are_none_of_the_project() -> None:
    assert seen(None, "spark.conf.set('spark.sql.ansi.enabled', 'true')", "notes/x.txt") == []
    assert seen(None, "spark.conf.set(", PATH) == []
