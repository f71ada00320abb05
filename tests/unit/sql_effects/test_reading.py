"""What a statement's text says that it does: Spark's, Delta's and Iceberg's, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp
from sqlmesh.core import dialect as d
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.sql_effects.read_statement import list_statement_effects

# From the grammars of Spark 3.4 to 4.1 and of the SQL extensions of Delta and Iceberg; statement,
# and each effect as action, kind and target.
KINDS: dict[str, list[tuple[str, str, str]]] = {
    "INSERT INTO a.b SELECT 1": [("writes", "INSERT", "a.b")],
    "INSERT INTO a.b (x, y) VALUES (1, 2)": [("writes", "INSERT", "a.b")],
    "INSERT OVERWRITE TABLE a.b PARTITION (ds = 'x') SELECT 1": [
        ("writes", "INSERT OVERWRITE", "a.b")
    ],
    "INSERT OVERWRITE a.b BY NAME SELECT 1": [("writes", "INSERT OVERWRITE", "a.b")],
    "INSERT INTO TABLE a.b REPLACE WHERE x = 1 SELECT 1": [("writes", "INSERT", "a.b")],
    "INSERT INTO cat.a.b.branch_audit SELECT 1": [("writes", "INSERT", "cat.a.b.branch_audit")],
    "INSERT INTO parquet.`/warehouse/a` SELECT 1": [("writes", "INSERT", "parquet./warehouse/a")],
    "INSERT INTO IDENTIFIER('a.b') SELECT 1": [("writes", "INSERT", "identifier")],
    "INSERT OVERWRITE LOCAL DIRECTORY '/x' ROW FORMAT DELIMITED SELECT 1": [
        ("writes", "INSERT OVERWRITE DIRECTORY", "-")
    ],
    "WITH x AS (SELECT 1 AS a) INSERT INTO a.b SELECT * FROM x": [("writes", "INSERT", "a.b")],
    "WITH x AS (SELECT 1 AS a) MERGE INTO a.b AS t USING x ON t.a = x.a WHEN MATCHED THEN DELETE": [
        ("writes", "MERGE", "a.b")
    ],
    "MERGE INTO a.b AS t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT *": [("writes", "MERGE", "a.b")],
    "DELETE FROM a.b WHERE x = 1": [("writes", "DELETE", "a.b")],
    "UPDATE a.b SET x = 1": [("writes", "UPDATE", "a.b")],
    "TRUNCATE TABLE a.b": [("writes", "TRUNCATE", "a.b")],
    "LOAD DATA INPATH '/x' OVERWRITE INTO TABLE a.b": [
        ("writes", "LOAD DATA", "a.b"),
        ("moves", "LOAD DATA", "-"),
    ],
    "COPY INTO a.b FROM '/x' FILEFORMAT = PARQUET": [("writes", "COPY", "a.b")],
    "DROP TABLE IF EXISTS a.b PURGE": [("drops", "DROP TABLE", "a.b")],
    "DROP VIEW a.b": [("drops", "DROP VIEW", "a.b")],
    "DROP FUNCTION a.f": [("drops", "DROP FUNCTION", "a.f")],
    "DROP SCHEMA a CASCADE": [("drops", "DROP SCHEMA", "a")],
    "CREATE TABLE a.b AS SELECT 1": [("creates", "CREATE TABLE", "a.b")],
    "CREATE TABLE IF NOT EXISTS a.b LIKE c.d": [("creates", "CREATE TABLE", "a.b")],
    "CREATE OR REPLACE TABLE a.b SHALLOW CLONE c.d": [("replaces", "CREATE TABLE", "a.b")],
    "CREATE OR REPLACE VIEW a.b AS SELECT 1": [("replaces", "CREATE VIEW", "a.b")],
    "CREATE SCHEMA IF NOT EXISTS a": [("creates", "CREATE SCHEMA", "a")],
    "CREATE DATABASE a": [("creates", "CREATE DATABASE", "a")],
    "CREATE INDEX i ON TABLE a.b (x)": [("describes", "CREATE INDEX", "a.b")],
    "CREATE FUNCTION a.f(x INT) RETURNS INT RETURN x + 1": [("creates", "CREATE FUNCTION", "a.f")],
    "SELECT 1 AS x INTO a.b": [("nothing", "SELECT", "-"), ("creates", "SELECT INTO", "a.b")],
    "ALTER TABLE a.b SET TBLPROPERTIES ('x' = 'y')": [
        ("describes", "ALTER TABLE SET TBLPROPERTIES", "a.b")
    ],
    "ALTER TABLE a.b UNSET TBLPROPERTIES IF EXISTS ('x')": [
        ("describes", "ALTER TABLE UNSET TBLPROPERTIES", "a.b")
    ],
    "ALTER TABLE a.b RENAME TO a.c": [
        ("drops", "ALTER TABLE RENAME", "a.b"),
        ("creates", "ALTER TABLE RENAME", "a.c"),
    ],
    "ALTER TABLE a.b RENAME TO c": [
        ("drops", "ALTER TABLE RENAME", "a.b"),
        ("creates", "ALTER TABLE RENAME", "a.c"),
    ],
    "ALTER VIEW a.b AS SELECT 1": [("replaces", "ALTER VIEW", "a.b")],
    "ALTER TABLE a.b ADD COLUMNS (x INT)": [("alters", "ALTER TABLE", "a.b")],
    "ALTER TABLE a.b DROP COLUMN x": [("alters", "ALTER TABLE DROP COLUMN", "a.b")],
    "ALTER TABLE a.b ALTER COLUMN x TYPE BIGINT": [("alters", "ALTER TABLE", "a.b")],
    "ALTER TABLE a.b ALTER COLUMN x COMMENT 'y'": [("describes", "ALTER TABLE COMMENT", "a.b")],
    "ALTER TABLE a.b DROP IF EXISTS PARTITION (ds = 'x') PURGE": [
        ("alters", "ALTER TABLE DROP IF EXISTS PARTITION", "a.b")
    ],
    "ALTER TABLE a.b RECOVER PARTITIONS": [("describes", "ALTER TABLE RECOVER PARTITIONS", "a.b")],
    "ALTER TABLE cat.a.b ADD PARTITION FIELD bucket(16, id)": [
        ("alters", "ALTER TABLE ADD PARTITION FIELD", "cat.a.b")
    ],
    "ALTER TABLE cat.a.b WRITE ORDERED BY x": [("describes", "ALTER TABLE WRITE", "cat.a.b")],
    "ALTER TABLE cat.a.b CREATE BRANCH audit": [("alters", "ALTER TABLE CREATE BRANCH", "cat.a.b")],
    "COMMENT ON TABLE a.b IS 'x'": [("describes", "COMMENT", "a.b")],
    "COMMENT ON SCHEMA a IS 'x'": [("describes", "COMMENT", "a")],
    "ANALYZE TABLE a.b COMPUTE STATISTICS FOR ALL COLUMNS": [("describes", "ANALYZE", "a.b")],
    "ANALYZE TABLES IN a COMPUTE STATISTICS": [("describes", "ANALYZE", "a")],
    "MSCK REPAIR TABLE a.b": [("describes", "MSCK REPAIR TABLE", "a.b")],
    "OPTIMIZE a.b ZORDER BY (x)": [("describes", "OPTIMIZE", "a.b")],
    "VACUUM a.b RETAIN 0 HOURS": [("alters", "VACUUM", "a.b")],
    "VACUUM '/warehouse/a'": [("alters", "VACUUM", "-")],
    "GRANT SELECT ON TABLE a.b TO ROLE r": [("grants", "GRANT", "a.b")],
    "REVOKE SELECT ON VIEW a.b FROM r": [("grants", "REVOKE", "a.b")],
    "GRANT USAGE ON SCHEMA a TO r": [("grants", "GRANT", "a")],
    "USE a": [("directs", "USE", "a")],
    "USE CATALOG a": [("directs", "USE CATALOG", "-")],
    "SET spark.sql.catalog.evil = org.acme.Catalog": [("directs", "SET", "-")],
    "SET spark.sql.sources.partitionOverwriteMode = static": [("directs", "SET", "-")],
    "SET spark.sql.parquet.output.committer.class = org.acme.C": [("directs", "SET", "-")],
    "SET fs.s3a.endpoint = elsewhere": [("directs", "SET", "-")],
    "SET target = a.b": [("directs", "SET", "-")],
    "SET CATALOG a": [("directs", "SET", "-")],
    "SET ROLE admin": [("directs", "SET", "-")],
}


@pytest.mark.parametrize("sql", sorted(KINDS))
def test_kind(sql: str) -> None:
    found = [
        (e.action, e.kind, ".".join(e.target or ("-",)))
        for e in list_statement_effects(sql, "spark")
    ]

    assert found == KINDS[sql]


CODE = [
    "ADD JAR /x.jar",
    "ADD FILES '/x' '/y'",
    'ADD ARCHIVE "ivy://org.acme:udf:1"',
    "CREATE FUNCTION a.f AS 'org.acme.F' USING JAR '/x.jar'",
    "CREATE OR REPLACE TEMPORARY FUNCTION f AS 'org.acme.F' USING JAR '/x.jar', FILE '/y'",
    "CREATE TEMPORARY FUNCTION f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'",
    "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON AS $$ return 1 $$",
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS STRING RETURN java_method('a', 'b')",
    "SELECT java_method('java.lang.System', 'exit', 1)",
    "SELECT `Java_Method`('a', 'b')",
    "SELECT system.builtin.REFLECT('a', 'b')",
    "SELECT * FROM t WHERE x IN (SELECT try_reflect('a', 'b'))",
    "SELECT * FROM t LATERAL VIEW EXPLODE(ARRAY(reflect('a', 'b'))) AS y",
    "VALUES (java_method('a', 'b'))",
    "CACHE TABLE x AS SELECT java_method('a', 'b')",
    "INSERT INTO a.b SELECT reflect('a', 'b')",
    "OPTIMIZE a.b WHERE reflect('a', 'b') = 'x'",
    "FROM t |> SELECT reflect('a', 'b')",
    "SELECT TRANSFORM(x) USING '/bin/sh -c id' AS (y) FROM t",
    "SELECT 1 AS a,\u00a0reflect\u3000('a', 'b')",
]


@pytest.mark.parametrize("sql", CODE)
def test_code__is_seen_wherever_it_stands(sql: str) -> None:
    assert "code" in {effect.action for effect in list_statement_effects(sql, "spark")}


UNKNOWN = [
    "INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT 1",
    "FROM a.raw INSERT INTO a.b SELECT * INSERT INTO a.c SELECT *",
    "FROM a.raw INSERT OVERWRITE TABLE a.b SELECT *",
    "DROP TABLE IDENTIFIER('a.' || 'b')",
    "SELECT IDENTIFIER('reflect')('a', 'b')",
    "FROM t MAP x USING '/bin/sh'",
    "CREATE TABLE a.b (x INT) USING parquet LOCATION '/warehouse/prod'",
    "CREATE TABLE a.b (x INT) USING parquet OPTIONS ('path' = '/warehouse/prod')",
    "CREATE TABLE a.b (x INT) USING org.acme.Source",
    "CREATE TABLE a.b (x INT) TBLPROPERTIES ('write.data.path' = '/warehouse/prod')",
    "CREATE DATABASE a LOCATION '/warehouse/prod'",
    "CREATE TEMPORARY VIEW v USING parquet OPTIONS (path '/warehouse/prod')",
    "CREATE TEMPORARY VIEW v USING org.apache.spark.sql.jdbc OPTIONS (url 'jdbc:x')",
    "CREATE TEMPORARY TABLE v USING parquet OPTIONS (path '/warehouse/prod')",
    "ALTER TABLE a.b SET LOCATION '/warehouse/prod'",
    "ALTER TABLE a.b ADD PARTITION (ds = 'x') LOCATION '/warehouse/prod'",
    "ALTER TABLE a.b SET SERDE 'org.acme.S'",
    "ALTER TABLE a.b SET TBLPROPERTIES ('write.metadata.path' = '/warehouse/prod')",
    "ALTER TABLE a.b EXCHANGE PARTITION (ds = 'x') WITH TABLE a.c",
    "ALTER DATABASE a SET LOCATION '/warehouse/prod'",
    "CALL cat.system.rollback_to_snapshot('a.b', 1)",
    "EXECUTE IMMEDIATE 'DROP TABLE a.b'",
    "EXPLAIN INSERT INTO a.b SELECT 1",
    "BEGIN INSERT INTO a.b SELECT 1; END",
    "EXPORT TABLE a.b TO '/x'",
    "IMPORT TABLE a.b FROM '/x'",
    "RESTORE TABLE a.b TO VERSION AS OF 1",
    "CONVERT TO DELTA a.b",
    "GRANT r TO USER u",
    "RESET",
    "DFS -rm -r /warehouse",
    "NULL",
    "@grants()",
    "INSERT INTO @target SELECT 1",
    "this is no SQL",
    # The parser itself fails: it looks for the value of the second entry.
    "INSERT INTO a.b SELECT MAP(x)",
    "SELECT ${target}",
    "SELECT '${q}' AS x",
    "SELECT 1 /* /* */ INSERT INTO a.b SELECT 1 /* */ */",
    "ALTER TABLE a.b /* hidden */ DROP COLUMN x",
]


@pytest.mark.parametrize("sql", UNKNOWN)
def test_unknown__is_said_to_be(sql: str) -> None:
    assert "unknown" in {effect.action for effect in list_statement_effects(sql, "spark")}


@pytest.mark.parametrize(
    ("sql", "moved"),
    [
        ("LOAD DATA INPATH '/x/a.txt' INTO TABLE a.b", ["the files of '/x/a.txt'"]),
        ("LOAD DATA INPATH '/x' OVERWRITE INTO TABLE a.b PARTITION (d = 1)", ["the files of '/x'"]),
        ("LOAD DATA LOCAL INPATH '/x/a.txt' INTO TABLE a.b", []),
    ],
)
def test_load__moves_its_source_away_unless_it_is_local(sql: str, moved: list[str]) -> None:
    found = list_statement_effects(sql, "spark")

    assert ("writes", "LOAD DATA", ("a", "b")) in {(e.action, e.kind, e.target) for e in found}
    assert [e.detail for e in found if e.action == "moves"] == moved


@pytest.mark.parametrize(
    "sql",
    [
        "OPTIMIZE @this_model",
        "OPTIMIZE @this_model ZORDER BY (a)",
        "VACUUM @this_model RETAIN 168 HOURS",
        "MSCK REPAIR TABLE @this_model",
        "ALTER TABLE @this_model RECOVER PARTITIONS",
    ],
)
def test_variable__in_what_sqlmesh_keeps_as_text(sql: str) -> None:
    """SQLMesh gives it to the engine as it stands."""
    text = f"MODEL (name a.b, kind FULL, dialect spark);\nSELECT 1 AS a;\n{sql};"
    model: Any = load_sql_based_model(d.parse(text))
    (tree,) = model.render_post_statements(this_model=exp.to_table("c.d"))
    (effect,) = list_statement_effects(
        sqlmesh_compat.render_as_sqlmesh_executes(tree, "spark"), "spark"
    )

    assert effect.action == "fails"
    assert "JINJA_STATEMENT_BEGIN" in effect.detail


@pytest.mark.parametrize(
    "sql", ["OPTIMIZE a.b WHERE c = '@x'", "SHOW TABLES LIKE '@x'", "VACUUM a.b"]
)
def test_variable__is_none_in_a_string(sql: str) -> None:
    assert "fails" not in {effect.action for effect in list_statement_effects(sql, "spark")}


# What people really have in their projects: SQLMesh's documentation and public repositories.
HARMLESS = [
    "SET spark.sql.shuffle.partitions = 10",
    "SET spark.sql.adaptive.enabled=true",
    "SET spark.sql.autoBroadcastJoinThreshold = -1",
    "SET spark.sql.sources.partitionOverwriteMode = dynamic",
    "SET hive.exec.dynamic.partition.mode = nonstrict",
    "SET spark.databricks.delta.schema.autoMerge.enabled = true",
    "SET spark.sql.shuffle.partitions",
    "CACHE TABLE countries AS SELECT * FROM raw.countries",
    "CACHE LAZY TABLE x OPTIONS ('storageLevel' = 'DISK_ONLY') AS SELECT 1",
    "CACHE TABLE raw.orders",
    "UNCACHE TABLE countries",
    "REFRESH TABLE raw.orders",
    "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
    "CREATE TEMP VIEW v COMMENT 'x' AS WITH a AS (SELECT 1 AS b) SELECT * FROM a",
    "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1",
    "CREATE OR REPLACE TEMPORARY FUNCTION add_one(x INT) RETURNS INT RETURN x + 1",
    "DROP TEMPORARY FUNCTION IF EXISTS add_one",
    "SHOW TABLES IN a",
    "DESCRIBE TABLE EXTENDED a.b",
    "SELECT 'DROP TABLE a.b; INSERT INTO a.b' AS temp",
    "SELECT \"it's\" AS `insert into`, r'\\d+' AS pattern -- DROP TABLE a.b",
    "/* TRUNCATE TABLE a.b */ SELECT /*+ BROADCAST(t) */ * FROM t",
    "FROM a.b |> WHERE x = 1 |> SELECT x",
    "FROM a.b SELECT *",
    "(SELECT 1)",
    "SELECT TRANSFORM(ARRAY(1), x -> x + 1)",
]


@pytest.mark.parametrize("sql", HARMLESS)
def test_harmless__says_nothing(sql: str) -> None:
    assert {effect.action for effect in list_statement_effects(sql, "spark")} == {"nothing"}


# Parsers before sqlglot 30 keep such statements as text, or do not read them.
KNOWS_VARIABLES = int(sqlglot.__version__.partition(".")[0]) >= 30


@pytest.mark.parametrize(
    ("sql", "actions"),
    [
        ("DECLARE VARIABLE v INT DEFAULT 5", {"nothing"}),
        ("SET VARIABLE v = 6", {"nothing"}),
        ("SET VAR (a, b) = (SELECT 1, 2)", {"nothing"}),
        ("SET VARIABLE v = (SELECT reflect('a', 'b'))", {"nothing", "code"}),
    ],
)
def test_variable_of_the_session__is_read_or_unknown(sql: str, actions: set[str]) -> None:
    found = {effect.action for effect in list_statement_effects(sql, "spark")}

    assert found == (actions if KNOWS_VARIABLES else {"unknown"})


@pytest.mark.parametrize(
    ("sql", "action"),
    [
        ("SET query_timeout = 300000", "nothing"),
        ("SET search_path = other", "directs"),
        ("SET x = 1, role = admin", "directs"),
        ("CREATE TEMP TABLE t AS SELECT 1", "nothing"),
        ("INSTALL httpfs", "unknown"),
        ("COPY a.b TO 'x.parquet'", "writes"),
        ("ANALYZE a.b", "describes"),
    ],
)
def test_other_engine__is_read_by_the_same_rules(sql: str, action: str) -> None:
    assert action in {effect.action for effect in list_statement_effects(sql, "duckdb")}


def test_several_statements__are_each_read() -> None:
    found = list_statement_effects("SET x = 1; DROP TABLE a.b; SELECT 1", "duckdb")

    assert [effect.action for effect in found] == ["nothing", "drops", "nothing"]


@given(st.sampled_from(sorted(KINDS)), st.integers(0, 12), st.integers(1, 3))
def test_statement__with_words_left_out__is_read_or_said_to_be_unknown(
    sql: str, start: int, count: int
) -> None:
    """Spark's grammar has more optional words than anybody lists: `DELETE a.b` is one such form."""
    words = sql.split()

    found = list_statement_effects(" ".join(words[:start] + words[start + count :]), "spark")

    assert found


@pytest.mark.parametrize("sql", ["DELETE a.b", "delete a.b where x = 1"])
def test_delete__without_from__is_no_harmless_statement(sql: str) -> None:
    assert {effect.action for effect in list_statement_effects(sql, "spark")} <= {
        "writes",
        "unknown",
    }
