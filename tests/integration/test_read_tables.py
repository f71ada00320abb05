"""What a model depends on is found without rendering it, and is what rendering finds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlglot import parse_one
from sqlmesh.core import dialect as d
from sqlmesh.core.model import SqlModel, load_sql_based_model, load_sql_based_models

from ci_bot.worker.sqlmesh_compat.models_and_trees import list_tables_of_plain_query
from ci_bot.worker.sqlmesh_compat.skipped_work import set_sqlmesh_dependencies
from tests.corpus.labelled import read_cases

CASES = read_cases(Path(__file__).parent.parent / "corpus")
DIALECTS = ("duckdb", "spark", "snowflake", "bigquery", "postgres", "tsql")

QUERIES = (
    "SELECT a.x FROM db.a AS a JOIN c.db.b USING (x) LEFT JOIN d ON d.x = a.x",
    "WITH W AS (SELECT * FROM db.a) SELECT x FROM w",
    'WITH "W" AS (SELECT * FROM db.a) SELECT x FROM w',
    "WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a) SELECT * FROM b, db.a",
    "WITH a AS (WITH a AS (SELECT * FROM db.b) SELECT * FROM a) SELECT * FROM a",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 9) SELECT x FROM r",
    "SELECT x FROM (SELECT x FROM db.a UNION SELECT x FROM DB.B) AS q",
    "SELECT x FROM db.a EXCEPT SELECT x FROM (db.b)",
    "SELECT * FROM (db.a AS a JOIN db.b AS b ON a.x = b.x) JOIN db.c AS c ON c.x = a.x",
    "SELECT x, (SELECT MAX(y) FROM db.b WHERE b.x = a.x) AS m FROM db.a WHERE EXISTS "
    "(SELECT 1 FROM db.c) AND x IN (SELECT x FROM D.e)",
    "SELECT * FROM (VALUES (1, 2)) AS v(x, y) CROSS JOIN db.a",
    'SELECT "A"."X" FROM "Db"."A" AS "A"',
    "SELECT 1 AS x",
    "SELECT a.x FROM db.a AS a, db.one AS one",
    "SELECT t.x FROM db.A AS T WHERE T.X > 1",
    "SELECT t.x FROM /* sqlglot.meta case_sensitive */ DB.A AS t JOIN DB.A AS u ON t.x = u.x",
    "SELECT t.x FROM DB.A /* sqlglot.meta case_sensitive */ AS t",
    'SELECT t.x FROM "Db"."A" AS t JOIN Db.A AS u ON t.x = u.x JOIN c."Db".A AS v ON v.x = t.x',
    # A name of a CTE that means a table, or might.
    "WITH a AS (SELECT * FROM a) SELECT * FROM a",
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM db.c) SELECT * FROM a JOIN b ON a.x = b.x",
    "WITH a AS (SELECT * FROM db.b) SELECT * FROM A",
    'WITH a AS (SELECT * FROM db.b) SELECT * FROM "A"',
    'WITH "A" AS (SELECT * FROM db.b) SELECT * FROM "A" UNION ALL SELECT * FROM a',
    "WITH a AS (SELECT * FROM db.b) SELECT * FROM db.a",
    "WITH a AS (SELECT * FROM db.b), A AS (SELECT * FROM db.c) SELECT * FROM a",
    "WITH a AS (SELECT * FROM db.b) SELECT * FROM (SELECT * FROM a) AS q, a WHERE x IN (SELECT x FROM a)",
    "SELECT * FROM (WITH a AS (SELECT * FROM db.b) SELECT * FROM a) AS q JOIN a ON a.x = q.x",
    "WITH a AS (SELECT 1 AS x) (SELECT x FROM a) UNION ALL (SELECT x FROM b)",
    "SELECT * FROM (WITH a AS (SELECT * FROM db.b) SELECT * FROM a) AS q",
    "SELECT * FROM db.a AS a, LATERAL (SELECT * FROM db.b AS b WHERE b.x = a.x) AS q",
    "SELECT * FROM db.a WHERE x IN (WITH q AS (SELECT x FROM db.b) SELECT x FROM q)",
    # One name for two sources.
    "SELECT * FROM db.a JOIN dc.a ON TRUE",
    "SELECT * FROM db.a AS q JOIN (SELECT * FROM db.b) AS q ON TRUE",
    "SELECT * FROM db.a JOIN db.A AS b ON TRUE UNION ALL SELECT * FROM db.a",
    "SELECT * FROM c.db.a JOIN C.DB.b ON TRUE JOIN d ON EXISTS (SELECT 1 FROM d AS e WHERE e.x = d.x)",
)
PLAIN = tuple(
    f"SELECT {columns} FROM {tables}"
    for columns in ("x", "*", "(SELECT MAX(y) FROM db.c) AS y")
    for tables in (
        "db.a",
        "db.a AS a LEFT JOIN (SELECT x FROM db.b UNION ALL SELECT x FROM db.a) AS b ON a.x = b.x",
        "db.a AS one, db.a AS two WHERE EXISTS (SELECT 1 FROM db.b)",
    )
)
ODD = {
    "duckdb": (
        "SELECT * FROM db.a, UNNEST(a.list) AS u(x)",
        "FROM db.a SELECT x",
        "SELECT * FROM read_csv('file.csv') AS f JOIN db.a USING (x)",
        "SELECT * FROM 'file.parquet'",
        "SELECT list_transform(l, y -> y + 1) AS l FROM db.a",
    ),
    "spark": (
        "SELECT x, y FROM db.a LATERAL VIEW EXPLODE(l) AS y",
        "SELECT * FROM db.a PIVOT (SUM(y) FOR x IN ('b', 'c'))",
        "SELECT /*+ BROADCAST(b) */ a.x FROM db.a AS a JOIN db.b AS b ON a.x = b.x",
        "SELECT * FROM `c`.`db`.`a` TABLESAMPLE (10 PERCENT)",
    ),
    "snowflake": (
        "SELECT f.value FROM db.a AS a, LATERAL FLATTEN(input => a.l) AS f",
        "SELECT $1 FROM db.a",
    ),
    "bigquery": (
        "SELECT x FROM `project.db.a`, UNNEST(l) AS x",
        "SELECT * FROM `my-project`.db.a",
        "SELECT * FROM db.a AS a, a.l AS x",
        "SELECT * FROM db.a AS a JOIN a.l AS x ON x.y = a.y",
        "SELECT * FROM db.a, a.l",
    ),
}


def found(parsed: Any, dialect: str, catalog: str | None) -> tuple[set[str], set[str]]:
    """What the shortcut finds, and what SQLMesh finds."""
    models = [
        load_sql_based_model(
            [one.copy() for one in parsed], dialect=dialect, default_catalog=catalog
        )
        for _ in range(2)
    ]
    set_sqlmesh_dependencies(models[0])
    mine: set[str] = models[0].full_depends_on
    return mine, models[1].full_depends_on


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dependencies__are_those_of_the_rendered_query(dialect: str) -> None:
    for query in (*QUERIES, *ODD.get(dialect, ())):
        try:
            parsed = d.parse(f"MODEL (name db.me, kind FULL);\n\n{query}", default_dialect=dialect)
        except Exception:
            assert query in QUERIES, f"{dialect} reads {query}"
            continue
        for catalog in (None, "Cat"):
            mine, theirs = found(parsed, dialect, catalog)
            assert mine == theirs, query


def test_dependencies__of_a_plain_query_need_no_scopes() -> None:
    with_cte = [f"WITH q AS (SELECT x FROM db.e) {query} ORDER BY x" for query in PLAIN]
    for query in (
        *PLAIN,
        *with_cte,
        "WITH q AS (SELECT 1), r AS (SELECT * FROM q) SELECT * FROM r",
    ):
        tables = list_tables_of_plain_query(parse_one(query, dialect="spark"))
        assert tables is not None, query
        parsed = d.parse(f"MODEL (name me, kind FULL);\n\n{query}", default_dialect="spark")
        mine, theirs = found(parsed, "spark", None)
        assert mine == theirs == {f'"{table.db}"."{table.name}"' for table in tables}, query


def test_dependencies__are_found_without_rendering() -> None:
    parsed = d.parse("MODEL (name db.me, kind FULL);\n\nSELECT x FROM a", default_dialect="duckdb")
    model = load_sql_based_model(parsed, dialect="duckdb")
    set_sqlmesh_dependencies(model)
    assert "_query_renderer" not in vars(model)
    assert model.full_depends_on == {'"a"'}


@pytest.mark.parametrize(
    "text",
    [
        "MODEL (name a, kind FULL, depends_on (b));\n\nSELECT x FROM c",
        "MODEL (name a, kind FULL);\n\n@DEF(t, b);\n\nSELECT x FROM @t",
        "MODEL (name a, kind FULL);\n\nSELECT x FROM @IF(TRUE, b, c)",
        "MODEL (name a, kind FULL);\n\nJINJA_QUERY_BEGIN;\nSELECT x FROM {{ 'b' }}\nJINJA_END;",
    ],
)
def test_dependencies__of_other_models_are_sqlmesh_own(text: str) -> None:
    mine, theirs = found(d.parse(text, default_dialect="duckdb"), "duckdb", None)
    assert mine == theirs


def _loaded(text: str, path: str) -> list[Any]:
    """The models of a file; none where it needs macros of its project."""
    with suppress(Exception):
        models: list[Any] = load_sql_based_models(
            d.parse(text, default_dialect="spark"),
            get_variables=lambda _: {},
            path=Path(path),
            dialect="spark",
            default_catalog="spark_catalog",
        )
        return models
    return []


def test_dependencies__of_every_labelled_model() -> None:
    seen: set[str] = set()
    plain = 0
    for case in CASES:
        for path, content in (*case.base.items(), *case.head.items()):
            text = content.decode("utf-8", "replace")
            if path.endswith(".sql") and "models/" in path and text not in seen:
                seen.add(text)
                for model in _loaded(text, path):
                    if isinstance(model, SqlModel):
                        plain += list_tables_of_plain_query(model.query) is not None
                        set_sqlmesh_dependencies(model)
                        mine = set(model.full_depends_on)
                        model._full_depends_on = None
                        assert mine == model.full_depends_on, path
    assert len(seen) > 30
    assert plain > len(seen) / 2
