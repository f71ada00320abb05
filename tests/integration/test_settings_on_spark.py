"""Settings of Spark, held against Spark itself: that it knows them, and which SET it takes.

What SQLMesh makes of a SET is asked of SQLMesh.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlmesh.core import dialect as d
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.sql_effects.read_statement import list_statement_effects
from ci_bot.worker.sql_effects.spark_settings import find_effect_of_setting, find_setting_spelling
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# What Spark describes and what no table here judges: they hide texts in plans, or leave rights.
NOT_JUDGED = {
    "spark.sql.redaction.options.regex",
    "spark.sql.redaction.string.regex",
    "spark.sql.truncateTable.ignorePermissionAcl.enabled",
}


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    with one_jvm(write_shop(tmp_path_factory.mktemp("settings-shop"))) as made:
        yield made


def test_meaning__of_every_setting_that_spark_describes(jvm: OneJvm) -> None:
    (rows,) = jvm.sql("SET -v")
    keys = {row[0] for row in rows}

    assert len(keys) > 150
    assert {key for key in keys if find_effect_of_setting(key) == "unknown"} <= NOT_JUDGED
    assert {key for key in keys if (known := find_setting_spelling(key)) and known != key} == set()


SETS = [
    "SET TIME ZONE 'UTC'",
    "SET spark.sql.ansi.enabled = false",
    "SET `spark.sql.ansi.enabled` = false",
    "SET spark.sql.session.timeZone = 'UTC'",
    "SET spark.sql.shuffle.partitions = 4",
    "SET `spark.sql.shuffle.partitions` = 4",
    "JINJA_STATEMENT_BEGIN;\nSET spark.sql.ansi.enabled = false;\nJINJA_END",
    "SET `spark.executor.memory` = 1",
]


@pytest.mark.parametrize("sql", SETS)
@pytest.mark.by_day(4)
def test_set__fails_where_it_is_said_to(jvm: OneJvm, sql: str) -> None:
    text = f"MODEL (name a.b, kind FULL, dialect spark);\n{sql};\nSELECT 1 AS a"
    model: Any = load_sql_based_model(d.parse(text))
    (tree,) = model.render_pre_statements()
    given = sqlmesh_compat.render_as_sqlmesh_executes(tree, "spark")

    said = {effect.action for effect in list_statement_effects(given, "spark")}

    assert ("fails" in said) == _fails(jvm, given), given


def _fails(jvm: OneJvm, sql: str) -> bool:
    try:
        jvm.sql(sql)
    except Exception:  # of whichever kind Spark's client gives
        return True
    return False
