"""What a model depends on is found without rendering it, and is what rendering finds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlmesh.core import dialect as d
from sqlmesh.core.model import SqlModel, load_sql_based_model, load_sql_based_models

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
    for case in CASES:
        for path, content in (*case.base.items(), *case.head.items()):
            text = content.decode("utf-8", "replace")
            if path.endswith(".sql") and "models/" in path and text not in seen:
                seen.add(text)
                for model in _loaded(text, path):
                    if isinstance(model, SqlModel):
                        set_sqlmesh_dependencies(model)
                        mine = set(model.full_depends_on)
                        model._full_depends_on = None
                        assert mine == model.full_depends_on, path
    assert len(seen) > 30
