"""However a writing statement is spelled and wrapped, it is never called harmless.

A grammar of statements, from the reference of Spark's SQL, is written with odd case, blanks,
comments and quotes, and put into every place of a model where SQLMesh renders it.
"""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ci_bot.worker.sql_effects.plan_statements import judge_statement_effects_of_models
from ci_bot.worker.sql_effects.unrendered_sql import read_effects_of_raw_file
from tests.oracle.fuzzing import caught, fuzz
from tests.unit.rules.world import models

TARGETS = (
    "shop.orders",
    "`shop`.`orders`",
    "spark_catalog.shop.orders",
    "sqlmesh__shop.shop__orders__1597506474",
    "temp.temporary",
    "`this_model`.`select`",
)
WRITES = (
    "INSERT INTO {t} SELECT 1 , 'temp '",
    "INSERT INTO TABLE {t} ( a , b ) VALUES ( 1 , 'SET x = 1' )",
    "INSERT OVERWRITE TABLE {t} PARTITION ( ds = 'x' ) SELECT 1",
    "WITH x AS ( SELECT 1 AS a ) INSERT INTO {t} SELECT a FROM x",
    "WITH temp AS ( SELECT 1 AS a ) INSERT OVERWRITE {t} SELECT a FROM temp",
    "DELETE FROM {t} WHERE a = 'CREATE TEMPORARY VIEW'",
    "UPDATE {t} SET a = 'temp'",
    "MERGE INTO {t} AS a USING shop.b AS b ON a.x = b.x WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE {t}",
    "DROP TABLE IF EXISTS {t}",
    "DROP VIEW {t}",
    "CREATE OR REPLACE TABLE {t} AS SELECT 'temp' AS a",
    "CREATE OR REPLACE VIEW {t} AS SELECT 'temporary' AS a",
    "ALTER TABLE {t} ADD COLUMNS ( a INT )",
    "ALTER TABLE {t} RENAME TO shop.temp",
    "ALTER TABLE {t} SET TBLPROPERTIES ( 'temp' = 'x' )",
    "LOAD DATA INPATH '/temp' OVERWRITE INTO TABLE {t}",
    "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "COMMENT ON TABLE {t} IS 'temporary'",
    "GRANT SELECT ON TABLE {t} TO temp",
)
_QUOTED = re.compile(r"('[^']*'|`[^`]*`)")
# Each wrapping makes a statement, or a Jinja block, of a statement.
WRAPPINGS = (
    "{s}",
    "@IF(1 = 1, {s})",
    "@IF(@runtime_stage = 'evaluating', {s})",
    "@IF(@runtime_stage = 'creating', {s})",
    "JINJA_STATEMENT_BEGIN; {s}; JINJA_END",
    "JINJA_STATEMENT_BEGIN; {{% if True %}}{s}{{% endif %}}; JINJA_END",
    "JINJA_STATEMENT_BEGIN; {{{{ 'SELECT 1' }}}}; {s}; JINJA_END",
)
PLACES = (
    "{s};\nSELECT 1 AS a",
    "SELECT 1 AS a;\n{s};\n",
    "SELECT 1 AS a;\nSET spark.sql.ansi.enabled = true;\n{s};\n",
    "SELECT 1 AS a;\nON_VIRTUAL_UPDATE_BEGIN;\n{s};\nON_VIRTUAL_UPDATE_END;\n",
)
SEPARATORS = (" ", "\n", "\t ", " /* temp */ ", "\n-- SELECT\n")


@st.composite
def spelled(draw: st.DrawFn) -> str:
    """A writing statement in some spelling."""
    seed = draw(st.integers(0, 2**32 - 1))
    chance = random.Random(seed)
    text = draw(st.sampled_from(WRITES)).format(t=draw(st.sampled_from(TARGETS)))
    pieces = []
    for piece in _QUOTED.split(text):
        if _QUOTED.fullmatch(piece):
            pieces.append(piece)
            continue
        cased = "".join(chance.choice((c.upper(), c.lower())) for c in piece)
        pieces.append(re.sub(" ", lambda _: chance.choice(SEPARATORS), cased))
    return "".join(pieces)


@st.composite
def written(draw: st.DrawFn) -> str:
    """A model with a writing statement somewhere."""
    wrapping = draw(st.sampled_from(WRAPPINGS))
    # A virtual update is neither of these stages, and really executes nothing then.
    places = PLACES[:-1] if "runtime_stage" in wrapping else PLACES
    placed = draw(st.sampled_from(places)).format(s=wrapping.format(s=draw(spelled())))
    return f"MODEL (name mart.a, kind FULL, dialect spark);\n{placed}"


def weights(text: str) -> set[str]:
    made = models({"models/a.sql": text}, external={})
    return {
        item.severity
        for item in judge_statement_effects_of_models([(m, None) for m in made.values()], "spark")
    }


@fuzz(2_000)
@given(written())
def test_rendered__a_write_is_never_harmless(text: str) -> None:
    assert "blocker" in weights(text)


@fuzz(2_000)
@given(written())
def test_raw__a_literal_write_is_seen(text: str) -> None:
    reading = read_effects_of_raw_file("models/a.sql", text, "spark")

    assert "blocker" in {item.severity for item in reading.judged}, reading


def by_first_word(text: str) -> bool:
    """Whether a judge of first words calls the statement of a model harmful."""
    body = text.split(";", 1)[1].replace("SELECT 1 AS a", "")
    return bool(re.match(r"\s*(INSERT|DELETE|DROP|TRUNCATE|MERGE)\b", body)) and "temp" not in body


def test_mutation__a_judge_of_words_is_caught() -> None:
    everything: SearchStrategy[str] = written()

    assert caught(everything, lambda text: not by_first_word(text))


OWN = [
    "INSERT INTO @this_model SELECT 1",
    "@IF(@runtime_stage = 'evaluating', DELETE FROM @this_model WHERE FALSE)",
    "JINJA_STATEMENT_BEGIN; TRUNCATE TABLE {{ this_model }}; JINJA_END",
    "ALTER TABLE @this_model ADD COLUMNS (b INT)",
    "ON_VIRTUAL_UPDATE_BEGIN; GRANT SELECT ON VIEW @this_model TO ROLE r; ON_VIRTUAL_UPDATE_END",
]
QUIET = [
    "ANALYZE TABLE @this_model COMPUTE STATISTICS",
    "@IF(@runtime_stage = 'evaluating', ANALYZE TABLE @this_model COMPUTE STATISTICS)",
    "ALTER TABLE @this_model SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "COMMENT ON TABLE @this_model IS 'what it holds'",
    "MSCK REPAIR TABLE mart.a",
    "OPTIMIZE mart.a",
    "CREATE TEMPORARY VIEW v AS SELECT 1; DROP VIEW v",
    "CACHE TABLE v AS SELECT 1; DROP VIEW IF EXISTS v",
    "@DEF(x, 1)",
]


HIDDEN = [
    "@IF(@start_ds = '1999-12-31', DROP TABLE shop.orders)",
    "@IF(FALSE, INSERT INTO shop.orders SELECT 1)",
    "JINJA_STATEMENT_BEGIN; {% if start_ds == '1999-12-31' %}DROP TABLE shop.orders{% endif %}; "
    "JINJA_END",
    "INSERT INTO @this_model SELECT 1; @IF(FALSE, INSERT INTO shop.orders SELECT 1)",
    "ON_VIRTUAL_UPDATE_BEGIN; @IF(@runtime_stage = 'x', DROP VIEW shop.orders); "
    "ON_VIRTUAL_UPDATE_END",
    "@DEF(call, java_method('a', 'b')); @IF(FALSE, SELECT @call)",
]


@pytest.mark.parametrize("statement", HIDDEN)
def test_branch__that_no_rendering_takes_counts(statement: str) -> None:
    model = f"MODEL (name mart.a, kind FULL, dialect spark); SELECT 1 AS a; {statement};"

    assert "blocker" in weights(model)


@pytest.mark.parametrize("statement", OWN)
def test_own_table__is_for_a_person_to_look_at(statement: str) -> None:
    model = f"MODEL (name mart.a, kind FULL, dialect spark); SELECT 1 AS a; {statement};"

    assert weights(model) == {"high"}


@pytest.mark.parametrize("statement", QUIET)
def test_own_table__statistics_comments_and_views_of_the_session_say_nothing(
    statement: str,
) -> None:
    model = f"MODEL (name mart.a, kind FULL, dialect spark); SELECT 1 AS a; {statement};"

    assert weights(model) == set()
