"""Views are asked for side by side, and each answer stays with its view."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlmesh.core.dialect import parse
from sqlmesh.core.environment import EnvironmentNamingInfo
from sqlmesh.core.model import load_sql_based_model
from sqlmesh.core.snapshot import Snapshot, SnapshotChangeCategory

from ci_bot.worker.runtime.spark_catalog import SparkCatalog, SparkRelation

VIEWS = [SparkRelation("spark_catalog", "shop__pr_7", f"m{number}") for number in range(20)]


class Spark:
    """Answers only when so many questions are on their way; every third view does not resolve."""

    def __init__(self, together: int) -> None:
        self._together = threading.Barrier(together)

    def query_rows(self, sql: str) -> Sequence[Any]:
        self._together.wait(10)
        number = int(sql.split("`m")[1].split("`", maxsplit=1)[0])
        if number % 3 == 0:
            raise RuntimeError(f"no m{number}\nand a plan of many lines")
        return []


def test_resolve__asks_for_several_at_once_and_mixes_nothing_up() -> None:
    answers = SparkCatalog(Spark(together=4)).resolve_relations(VIEWS, at_once=4)
    assert list(answers) == VIEWS
    said = {view: str(error).splitlines()[0] if error else None for view, error in answers.items()}
    assert said == {
        view: f"no m{number}" if number % 3 == 0 else None for number, view in enumerate(VIEWS)
    }


def test_resolve__of_nothing_asks_nothing() -> None:
    assert SparkCatalog(Spark(together=1)).resolve_relations([], at_once=4) == {}


def test_resolve__asks_as_it_is_told_to() -> None:
    looked: list[SparkRelation] = []
    answers = SparkCatalog(Spark(together=99)).resolve_relations(VIEWS, analyse=looked.append)
    assert looked == VIEWS
    assert set(answers.values()) == {None}


@pytest.mark.parametrize(
    "raw", ["a\\b", "a\\nb", "a'b", "a b", "a.b", "ü", "a/b", "1a", "select", "a``b", "a\u2028b"]
)
def test_relation__of_a_view_is_the_one_that_sqlmesh_creates(raw: str) -> None:
    """`"` is not among them: see below."""
    definition = f"MODEL (name shop.`{raw}`, kind FULL, dialect spark);\nSELECT 1 AS x"
    model = load_sql_based_model(
        parse(definition, default_dialect="spark"), default_catalog="spark_catalog", dialect="spark"
    )
    snapshot = Snapshot.from_node(model, nodes={})
    snapshot.categorize_as(SnapshotChangeCategory.BREAKING)
    name = snapshot.qualified_view_name.for_environment(
        EnvironmentNamingInfo(name="pr_1"), dialect="spark"
    )
    found = SparkRelation.parse_name(name, "other")
    # What `EngineAdapter.create_view` makes of it.
    created = exp.to_table(name)
    assert (found.catalog, found.schema, found.name) == (
        created.catalog,
        created.db,
        raw.replace("``", "`"),
    )
    assert created.name == found.name


def test_model__with_a_double_quote_in_its_name__gets_no_view_from_sqlmesh() -> None:
    """SQLMesh cannot read the name that it has written itself, so there is nothing to find."""
    definition = 'MODEL (name shop.`a"b`, kind FULL, dialect spark);\nSELECT 1 AS x'
    model = load_sql_based_model(
        parse(definition, default_dialect="spark"), default_catalog="c", dialect="spark"
    )
    with pytest.raises(ParseError):
        snapshot = Snapshot.from_node(model, nodes={})
        snapshot.categorize_as(SnapshotChangeCategory.BREAKING)
        snapshot.table_name()
