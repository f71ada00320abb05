"""What stands in a file, read without loading anything of its project."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ci_bot.worker.sql_effects.read_statement import _ACTING_NODES, ACTING_WORDS
from ci_bot.worker.sql_effects.unrendered_sql import FileEffects, read_effects_of_raw_file


def model(post: str = "", pre: str = "", properties: str = "") -> FileEffects:
    text = f"MODEL (name shop.a, kind FULL, dialect spark{properties});\n{pre}\nSELECT 1 AS x;\n"
    return read_effects_of_raw_file("models/a.sql", f"{text}{post}", "duckdb")


def told(reading: FileEffects) -> list[tuple[str, str]]:
    return [(item.severity, item.description) for item in reading.judged]


INSERTED = ("blocker", "writes rows into `shop.orders` (INSERT)")
DROPPED = ("blocker", "drops `shop.orders` (DROP TABLE)")
LITERAL = {
    "INSERT INTO shop.orders SELECT 1;": [INSERTED],
    "@IF(@x = 1, INSERT INTO shop.orders SELECT 1);": [INSERTED],
    "@log('INSERT INTO shop.orders SELECT 1');": [INSERTED],
    "JINJA_STATEMENT_BEGIN; INSERT INTO shop.orders SELECT 1; JINJA_END;": [INSERTED],
    "JINJA_STATEMENT_BEGIN; {{ run_query('DROP TABLE shop.orders') }}; JINJA_END;": [DROPPED],
    "JINJA_STATEMENT_BEGIN; {% if x %}SELECT 1{% else %}DROP TABLE shop.orders{% endif %}; "
    "JINJA_END;": [DROPPED],
    "ON_VIRTUAL_UPDATE_BEGIN; JINJA_STATEMENT_BEGIN; DROP TABLE shop.orders; JINJA_END; "
    "ON_VIRTUAL_UPDATE_END;": [DROPPED],
    "INSERT INTO @this_model SELECT 1;": [("high", "writes rows into `@this_model` (INSERT)")],
    "INSERT INTO shop.a SELECT 1;": [("high", "writes rows into `shop.a` (INSERT)")],
    "JINJA_STATEMENT_BEGIN; TRUNCATE TABLE {{ this_model }}; JINJA_END;": [
        ("high", "writes rows into `@this_model` (TRUNCATE)")
    ],
    "ADD JAR /x.jar;": [("blocker", "loads or runs a program (ADD JAR)")],
    "@DEF(x, reflect('a', 'b'));": [
        ("blocker", "loads or runs a program (reflect: REFLECT('a', 'b'))")
    ],
    "CREATE TEMPORARY VIEW v AS SELECT 1; DROP VIEW v;": [],
    "SET spark.sql.shuffle.partitions = 5;": [],
    "@IF(@runtime_stage = 'evaluating', ANALYZE TABLE @this_model COMPUTE STATISTICS);": [],
}


@pytest.mark.parametrize("post", sorted(LITERAL))
def test_model__what_stands_there_literally_counts(post: str) -> None:
    assert told(model(post)) == LITERAL[post]


@pytest.mark.parametrize(
    "post",
    [
        "INSERT INTO @{schema}.log SELECT 1;",
        'INSERT INTO "@{schema}".log SELECT 1;',
        "INSERT INTO @target('log') SELECT 1;",
        "@grants();",
        "JINJA_STATEMENT_BEGIN; INSERT INTO {{ target }} SELECT 1; JINJA_END;",
        "JINJA_STATEMENT_BEGIN; INSERT INTO {{ schema }}.log SELECT 1; JINJA_END;",
        "JINJA_STATEMENT_BEGIN; {{ grants() }}; JINJA_END;",
    ],
)
def test_model__what_only_running_would_tell_is_undecided(post: str) -> None:
    reading = model(post)

    assert reading.judged == ()
    assert len(reading.undecided) == 1


@pytest.mark.parametrize(
    "properties",
    [
        ", physical_properties (\"a'='b') LOCATION '/x' OPTIONS('c\" = 'd')",
        ", virtual_properties ('write.data.path' = '/x')",
        ", storage_format \"PARQUET LOCATION '/x'\"",
    ],
)
def test_model__properties_that_lead_elsewhere(properties: str) -> None:
    (found,) = model(properties=properties).judged

    assert (found.statement.slot, found.severity) == ("MODEL block", "blocker")


def test_query__that_runs_a_program() -> None:
    assert told(model(pre="SELECT java_method('a', 'b') AS y UNION ALL")) == [
        ("blocker", "loads or runs a program (java_method: JAVA_METHOD('a', 'b'))")
    ]


def test_jinja_macros__are_read_as_a_template() -> None:
    text = "{% macro log(x) %}INSERT INTO shop.orders SELECT '{{ x }}'{% endmacro %}"

    assert told(read_effects_of_raw_file("macros/log.sql", text, "spark")) == [INSERTED]


def test_audit__is_read_like_a_model() -> None:
    text = "AUDIT (name a, dialect spark); SELECT * FROM @this_model WHERE reflect('a', 'b') = 1"

    assert [
        severity for severity, _ in told(read_effects_of_raw_file("audits/a.sql", text, "spark"))
    ] == ["blocker"]


def test_configuration__every_key_that_is_executed() -> None:
    text = """\
model_defaults:
  dialect: spark
  post_statements:
    - INSERT INTO shop.orders SELECT 1
    - {sql: DROP TABLE shop.orders, transaction: false}
  on_virtual_update:
    - GRANT SELECT ON VIEW @this_model TO r
after_all:
  - "@grants()"
  - WITH x AS (SELECT 1) INSERT INTO shop.orders SELECT * FROM x
  - "{% if x %}DROP TABLE shop.orders{% endif %}"
  - this is no SQL
"""
    reading = read_effects_of_raw_file("config.yaml", text, "spark")

    assert [(i.statement.slot, i.severity) for i in reading.judged] == [
        ("post_statements", "blocker"),
        ("post_statements", "blocker"),
        ("on_virtual_update", "high"),
        ("after_all", "blocker"),
        ("after_all", "blocker"),
        ("after_all", "blocker"),
    ]
    assert reading.undecided[0] == "GRANT SELECT ON VIEW @this_model TO r"


@pytest.mark.parametrize(
    ("path", "text"),
    [("models/a.sql", "SELEC T FROM 1 ("), ("config.yaml", "after_all: b\n c: d: e\n")],
)
def test_file__that_cannot_be_read_breaks_nothing(path: str, text: str) -> None:
    assert read_effects_of_raw_file(path, text, "spark").judged == ()


def test_file__of_another_kind_says_nothing() -> None:
    assert read_effects_of_raw_file("README.md", "DROP TABLE shop.orders", "spark") == FileEffects()


def test_reading__evaluates_nothing_of_a_file() -> None:
    # SQLMesh evaluates such a name as Python when it renders the macro.
    text = (
        "MODEL (name a.b, kind FULL, dialect spark);\n"
        "SELECT @IF(`a' + (str(print('evaluated')) and '') + 'b` IS NULL, 1, 1) AS x;\n"
        "JINJA_STATEMENT_BEGIN; {{ ''.__class__.__mro__ }} {% set x = print('evaluated') %}; "
        "JINJA_END;"
    )
    code = (
        "import sys\nfrom ci_bot.worker.sql_effects.unrendered_sql import read_effects_of_raw_file\n"
        "print(read_effects_of_raw_file('a.sql', sys.argv[1], 'spark').judged)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, text], check=True, capture_output=True, text=True
    )

    assert done.stdout == "()\n"


@pytest.mark.parametrize(
    "text",
    [
        "WITH gone AS (DELETE FROM shop.orders RETURNING *) SELECT * FROM gone",
        "/* a report */ SELECT * INTO shop.orders FROM shop.lines",
        "SELECT REFLECT('java.lang.System', 'exit', '0')",
        "SELECT `reflect`('java.lang.System', 'exit', '0')",
        "SELECT TRANSFORM(a) USING 'rm -rf /' FROM shop.orders",
        "-- a report\nSELECT 1;\nDROP TABLE shop.orders;",
        "SELECT 1 AS a\n;DROP TABLE shop.orders",
        "WITH a AS (SELECT 1) INSERT INTO shop.orders SELECT * FROM a",
        "SELECT @IF(TRUE, 1, INSERT INTO shop.orders SELECT 1)",
        "SELECT {{ run('DROP TABLE shop.orders') }}",
    ],
)
def test_query__that_does_more_is_not_passed_over(text: str) -> None:
    found = [
        one
        for dialect in ("spark", "postgres")
        for one in read_effects_of_raw_file("q.sql", text, dialect).judged
    ]
    assert "blocker" in {item.severity for item in found}


def test_words_that_act__hold_one_for_each_node_that_does_something() -> None:
    """A query without any of them is not parsed."""
    for key in _ACTING_NODES - {"command"}:
        assert any(key.startswith(word) for word in ACTING_WORDS), key


@pytest.mark.parametrize("sql", ["DROP TABLE shop.orders, shop.b", "DROP TABLE a; SELECT MAP(x)"])
def test_configuration__with_a_statement_that_no_parser_reads_is_unknown(sql: str) -> None:
    """Of the second one, the parser itself fails with an IndexError."""
    reading = read_effects_of_raw_file("config.yaml", f"after_all: ['{sql}']", "spark")
    assert [(one.severity, one.effect.action) for one in reading.judged] == [("blocker", "unknown")]


@pytest.mark.parametrize(
    "text",
    [
        "before_all: [DROP TABLE shop.orders]",
        '"before\\u005fall": [DROP TABLE shop.orders]',
        "? before_all\n: [DROP TABLE shop.orders]",
        "a: &x [DROP TABLE shop.orders]\nb: {after_all: *x}",
        '!!str "before_all": [DROP TABLE shop.orders]',
    ],
)
def test_configuration__however_its_keys_are_spelled(text: str) -> None:
    assert told(read_effects_of_raw_file("config.yaml", text, "spark")) == [DROPPED]


@pytest.mark.parametrize(
    "statement",
    [
        "JINJA_STATEMENT_BEGIN;\nOPTIMIZE {{ this_model }} ZORDER BY (a);\nJINJA_END",
        "@SQL('OPTIMIZE @this_model')",
        "@SQL('VACUUM @this_model')",
    ],
)
def test_maintenance__of_the_models_own_table_is_left_alone(statement: str) -> None:
    text = f"MODEL (name a.b, kind FULL, dialect spark);\nSELECT 1 AS a;\n{statement};"

    assert [
        j.description
        for j in read_effects_of_raw_file("m.sql", text, "spark").judged
        if j.severity == "blocker"
    ] == []


@pytest.mark.parametrize(
    "statement",
    [
        "LOAD DATA INPATH '/x' INTO TABLE @this_model",
        "JINJA_STATEMENT_BEGIN;\nLOAD DATA INPATH '/x' INTO TABLE {{ this_model }};\nJINJA_END",
        "@IF(@x, LOAD DATA INPATH '/x' INTO TABLE @this_model)",
    ],
)
def test_load__into_the_models_own_table_moves_files_of_others(statement: str) -> None:
    text = f"MODEL (name a.b, kind FULL, dialect spark);\nSELECT 1 AS a;\n{statement};"

    (said,) = (
        j.description
        for j in read_effects_of_raw_file("m.sql", text, "spark").judged
        if j.severity == "blocker"
    )
    assert said == "moves away the files of '/x' (LOAD DATA)"
